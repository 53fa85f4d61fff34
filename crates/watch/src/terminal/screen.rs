//! The layout of the screen: what must be seen first is at the top; where there is room, trials and
//! warnings stand at the right.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use weigh_model::live::QUANTILES;
use weigh_model::numbers::percent;
use weigh_model::visible::visible_line;
use weigh_report::terminal::ascii_signs;
use weigh_report::terminal::fold::shown_width;

use super::bars::bars;
use super::courses::courses;
use super::head::head;
use super::ledger::ledger;
use super::line::Mood;
use super::lists::{thresholds, trials, warnings};
use super::shown::{Look, Shown};
use super::view::{KEYS, View};

/// Draws the screen.
pub fn draw(frame: &mut Frame<'_>, shown: &Shown<'_>, view: &View, look: Look) {
    let area = frame.area();
    let [body, keys] = Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(area);
    let [main, side] = match area.width >= WIDE_COLUMNS {
        true => Layout::horizontal([Constraint::Min(0), Constraint::Length(SIDE_COLUMNS)])
            .spacing(2)
            .areas(body),
        false => [body, Rect::default()],
    };
    let is_wide = side.width > 0;
    let first = head(shown, view);
    let below = match is_wide {
        true => Vec::new(),
        false => trials(shown, view, TRIALS_BELOW),
    };
    let warned = match is_wide {
        true => Vec::new(),
        false => warnings(shown, WARNINGS_BELOW),
    };
    let counted = [ledger(shown), thresholds(shown)].concat();
    let used = first.len() + counted.len() + below.len() + warned.len();
    let room = usize::from(main.height).saturating_sub(used);
    let chart = room.min(CHART_ROWS_MAX * 2);
    let lines: Vec<(Mood, String)> = match chart >= CHARTS_ROWS_MIN {
        true => {
            [first, charts(shown, view, (main.width, chart), look), counted, below, warned].concat()
        }
        false => [first, counted, below, warned].concat(),
    };
    paint(frame, main, &lines, look);
    if is_wide {
        let rows = usize::from(side.height).saturating_sub(2) * 2 / 3;
        let lines = [
            trials(shown, view, rows),
            vec![(Mood::Plain, String::new())],
            warnings(shown, usize::from(side.height) / 3),
        ];
        paint(frame, side, &lines.concat(), look);
    }
    paint(frame, keys, &[(Mood::Dim, keys_line(shown, view))], look);
    if view.shows_help {
        help(frame, area, look);
    }
}

/// Rate and times over time, one above the other.
fn charts(
    shown: &Shown<'_>,
    view: &View,
    (width, rows): (u16, usize),
    look: Look,
) -> Vec<(Mood, String)> {
    let [rate, times] = courses(shown, view);
    let each = rows / 2;
    let mut lines = Vec::new();
    for course in [rate, times] {
        let size = (usize::from(width), each - 1);
        let (drawn, top) = bars(&course.values, course.line, size, look.is_ascii);
        lines.push((Mood::Dim, (course.title)(top)));
        lines.extend(drawn.into_iter().map(|row| (Mood::Chart, row)));
    }
    lines
}

/// The last line: keys, and what the view itself uses.
fn keys_line(shown: &Shown<'_>, view: &View) -> String {
    let name = QUANTILES[view.quantile].1;
    format!(
        "q close · ? keys · p {name} · space hold · ←→ trials · this view {} of a core",
        percent(shown.own_percent)
    )
}

/// The keys, in the middle of the screen.
fn help(frame: &mut Frame<'_>, area: Rect, look: Look) {
    let rows = KEYS.map(|(key, what)| (Mood::Plain, format!(" {key:<12} {what}")));
    let height = (rows.len() as u16 + 2).min(area.height);
    let width = HELP_COLUMNS.min(area.width);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, place);
    let block = match look.is_ascii {
        true => Block::bordered().border_set(ASCII_BORDER).title(" Keys "),
        false => Block::bordered().title(" Keys "),
    };
    let inner = block.inner(place);
    frame.render_widget(block, place);
    paint(frame, inner, &rows, look);
}

/// Draws lines; what does not fit ends with a sign.
fn paint(frame: &mut Frame<'_>, area: Rect, lines: &[(Mood, String)], look: Look) {
    let width = usize::from(area.width);
    let lines = lines.iter().take(usize::from(area.height)).map(|(mood, text)| {
        let text = cut(&visible_line(text), width);
        let text = if look.is_ascii { ascii(&text) } else { text };
        Line::from(Span::styled(text, style(*mood, look)))
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

/// A line that is too long ends with a sign.
fn cut(text: &str, width: usize) -> String {
    let mut kept = text.to_owned();
    while shown_width(&kept) > width && !kept.is_empty() {
        let over = shown_width(&kept) - width;
        let letters = kept.chars().count().saturating_sub(over + 1);
        kept = text.chars().take(letters).collect();
        if width > 0 {
            kept.push('…');
        }
        if letters == 0 {
            break;
        }
    }
    kept
}

/// The signs of this screen in ASCII.
fn ascii(text: &str) -> String {
    let signs = [('✓', "ok"), ('✗', "NO"), ('·', "|"), ('←', "<-"), ('→', "->"), ('…', "~")];
    let text = signs.into_iter().fold(text.to_owned(), |text, (sign, own)| text.replace(sign, own));
    ascii_signs(&text)
}

fn style(mood: Mood, look: Look) -> Style {
    let style = Style::default();
    if !look.has_colour {
        return match mood {
            Mood::Head => style.bold(),
            _ => style,
        };
    }
    match mood {
        Mood::Plain => style,
        Mood::Head => style.bold(),
        Mood::Dim => style.fg(Color::DarkGray),
        Mood::Good => style.fg(Color::Green),
        Mood::Bad => style.fg(Color::Red),
        Mood::Caution => style.fg(Color::Yellow),
        Mood::Chart => style.fg(Color::Blue),
    }
}

/// Columns from which trials and warnings stand at the right.
const WIDE_COLUMNS: u16 = 140;

const SIDE_COLUMNS: u16 = 76;

/// Trials and warnings below the rest, where there is no room beside it.
const TRIALS_BELOW: usize = 4;
const WARNINGS_BELOW: usize = 2;

/// Rows of both charts together: fewer show nothing.
const CHARTS_ROWS_MIN: usize = 4;

/// Rows of one chart, with its title: more show nothing new.
const CHART_ROWS_MAX: usize = 22;

const HELP_COLUMNS: u16 = 72;

const ASCII_BORDER: ratatui::symbols::border::Set<'static> = ratatui::symbols::border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use weigh_model::event::Interval;
    use weigh_model::live::{Quantiles, Second, TrialStanding};

    use crate::process::Resources;
    use crate::state::RunState;

    const STORED: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/stored/compare/2026-11-23T03-55-39-compare/journal.jsonl"
    );

    /// The stored run up to the line in which `event` stands for the `number`th time.
    fn state(event: &str, number: usize) -> RunState {
        let mut state = RunState::default();
        let mut left = number;
        for line in std::fs::read_to_string(STORED).unwrap().lines() {
            left -= usize::from(line.contains(&format!("\"event\":\"{event}\"")));
            state.add_line(line.as_bytes());
            if left == 0 {
                return state;
            }
        }
        panic!("the stored run has fewer than {number} of {event}");
    }

    /// A second of a load of 5,000/s with a busy generator.
    fn second(number: u64, generator_cpu_percent: f64) -> Second {
        let counts = Interval {
            at_ns: number * 1_000_000_000,
            length_ns: Some(1_000_000_000),
            sent: 5000,
            acknowledged: 4998,
            delivered: 4997,
            errors: 3,
            connections: 60,
            generator_cpu_percent: Some(generator_cpu_percent),
            send_lag_ns_p99: Some(12_300),
            ..Interval::default()
        };
        let quantiles = Quantiles {
            values: 4998,
            response_ns: [64_100, 70_000, 80_000, 90_000, 168_000, 900_000].map(Some),
            send_lag_ns: [Some(1); QUANTILES.len()],
            response_ns_max: Some(4_330_000),
        };
        let standing = TrialStanding {
            name: "mqtt".to_owned(),
            number: 3,
            of: [12, 12],
            left_ns: [95_000_000_000; 2],
            passed_ns: 30_000_000_000,
            offered_per_s: Some(5000.0),
        };
        let (counts, quantiles) = (Some(counts), Some(quantiles));
        Second { number, end: number, standing, counts, quantiles, ..Second::default() }
    }

    fn shown(state: &RunState) -> Shown<'_> {
        Shown {
            state,
            study: None,
            is_recorded: true,
            is_read: true,
            resources: Resources {
                open_files: Some(120),
                open_files_max: Some(1024),
                ports_max: Some(28_232),
                memory_bytes: Some(20 << 20),
                cpu_s: None,
            },
            generator_percent: Some(14.0),
            own_percent: 0.3,
            problem: None,
        }
    }

    fn text(shown: &Shown<'_>, view: &View, (width, height): (u16, u16), look: Look) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, shown, view, look)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let rows = (0..height).map(|y| {
            let row: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
            row.trim_end().to_owned()
        });
        rows.collect::<Vec<_>>().join("\n")
    }

    fn live(generator_cpu_percent: f64) -> RunState {
        let mut state = state("trial_started", 3);
        state.add_seconds((1..=30).map(|number| second(number, generator_cpu_percent)).collect());
        state
    }

    /// What must be seen stands on the smallest screen, and on a wide one nothing less.
    #[test]
    fn a_running_trial_has_all_its_figures_at_both_sizes() {
        let state = live(12.0);
        for size in [(80, 24), (200, 60)] {
            let text = text(&shown(&state), &View::default(), size, Look::default());
            for part in [
                "trial 3 of 12, 1 min 5 s left",
                "is not the limit: busiest thread 12 % of a core, send lag p99 12.3 µs",
                "load       offered 5,000/s, sent 5,000/s, confirmed 4,998/s, delivered 4,997/s",
                "errors     3 error answers",
                "p50 64.1 µs, p99 168 µs from the due time",
                "process    14 % of a core, 20.0 MiB, files 120 of 1,024, ports 60 of 28,232",
                "2 trials: scheduled 120, sent 120, delivered 120, late 0, lost 0",
                "measuring, 30 s",
                "running",
                "this view 0.3 % of a core",
                "█",
            ] {
                assert!(text.contains(part), "{part} at {size:?}:\n{text}");
            }
        }
    }

    #[test]
    fn a_generator_that_is_the_limit_is_said_first() {
        let state = live(99.0);
        let text = text(&shown(&state), &View::default(), (80, 24), Look::default());
        let limit = text.find("is the limit: these figures are its own").expect("it is said");
        assert!(limit < text.find("p50").unwrap());
    }

    #[test]
    fn the_chosen_percentile_is_named_and_drawn() {
        let state = live(12.0);
        let view = View { quantile: QUANTILES.len() - 1, ..View::default() };
        let text = text(&shown(&state), &view, (80, 24), Look::default());
        assert!(
            text.contains("p99.9 900 µs") && text.contains("p99.9 from the due time (top 900 µs)")
        );
    }

    #[test]
    fn a_run_that_ended_shows_its_results() {
        let state = state("run_finished", 1);
        let own = Shown { is_recorded: false, ..shown(&state) };
        let text = text(&own, &View::default(), (80, 24), Look::default());
        assert!(text.contains("ended: done") && text.contains("throughput"), "{text}");
        assert!(!text.contains("running"), "{text}");
        let first = View { trial: Some(0), ..View::default() };
        let text = self::text(&own, &first, (80, 24), Look::default());
        assert!(text.contains("qos=2 on reference · repetition 1 · result"), "{text}");
    }

    #[test]
    fn a_run_of_a_study_is_named_with_it() {
        let state = state("run_finished", 1);
        let own = Shown { study: Some("2026-11-23-study-tiny"), ..shown(&state) };
        let text = text(&own, &View::default(), (80, 24), Look::default());
        assert!(text.starts_with("2026-11-23-study-tiny, run "), "{text}");
    }

    #[test]
    fn a_killed_run_and_a_lost_journal_say_so() {
        let state = state("trial_started", 2);
        let own = Shown { is_recorded: false, ..shown(&state) };
        let text = text(&own, &View::default(), (80, 24), Look::default());
        assert!(text.contains("ended early") && text.contains("cut off"), "{text}");
        let own = Shown { problem: Some("journal.jsonl: the run was removed"), ..own };
        let text = self::text(&own, &View::default(), (80, 24), Look::default());
        assert!(text.contains("the run was removed"), "{text}");
    }

    #[test]
    fn ascii_has_no_other_character_and_no_size_panics() {
        let state = live(12.0);
        let look = Look { is_ascii: true, has_colour: false };
        let help = View { shows_help: true, is_paused: true, ..View::default() };
        let drawn = text(&shown(&state), &help, (200, 60), look);
        assert!(drawn.is_ascii(), "{drawn}");
        for size in [(1, 1), (10, 3), (40, 10), (79, 23), (139, 24), (141, 9), (300, 100)] {
            text(&shown(&state), &help, size, Look { has_colour: true, is_ascii: false });
            text(&shown(&RunState::default()), &View::default(), size, look);
        }
    }
}
