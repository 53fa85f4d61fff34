//! Progress of a run: a bar on a terminal; without one a line for each trial and one a second. Both
//! show rate and p99 of the last half second first (at low rates of the last seconds), then the
//! trial and the time left.

use std::collections::VecDeque;
use std::io::{IsTerminal, Write as _};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use weigh_engine::interval_times::IntervalTimes;
use weigh_model::Pattern;
use weigh_model::event::Interval;
use weigh_model::numbers::{count, exact, time};
use weigh_model::refusal::without_number;
use weigh_model::units::Nanos;
use weigh_model::visible::visible;
use weigh_report::Style;
use weigh_report::terminal::fold::{folded, shortened};
use weigh_report::terminal::{Extent, ascii_signs};
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::trial::ticks::Tick;
use weigh_runner::watcher::{Standing, Watcher};

/// Prints lines on stderr: notes before a run and during it.
pub struct Lines;

impl Watcher for Lines {
    fn say(&self, text: &str) {
        eprintln!("weigh: {text}");
    }

    fn note(&self, text: &str) {
        self.say(text);
    }
}

/// Writes a line to standard error, as wide as the terminal, with control characters made visible.
pub fn to_stderr(line: &str) {
    let style = style_of_progress();
    let line = without_number(line);
    let line = visible(&line);
    let line = if style.is_ascii { ascii_signs(&line) } else { line.into_owned() };
    put(&format!("{}\n", folded(&line, usize::from(style.width))));
}

/// Writes lines of clap, which have colours of their own, as wide as the terminal.
pub fn styled_to_stderr(text: &str) {
    let style = style_of_progress();
    let plain = console::strip_ansi_codes(text);
    let text = if style.has_colour { text } else { &*plain };
    put(&folded(text, usize::from(style.width)));
}

/// Writes a text to standard error as it is. A pipe that was closed (`2>&1 | head`) is not an
/// error, so that it does not end a run.
pub fn put(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Prints why the program stops, and returns its exit code.
pub fn stopped(stop: Stop) -> Exit {
    match stop.is_rendered() {
        // Colours of its own must stay visible.
        true => put(&format!("weigh: {}\n", folded_around_source(&stop.to_string()))),
        false => Lines.say(&stop.to_string()),
    }
    stop.exit()
}

/// The text of an error in a plan: its sentences fit the terminal, the lines of the plan stay as
/// they are.
fn folded_around_source(text: &str) -> String {
    let width = usize::from(style_of_progress().width);
    let shown = |line: &str| match line.contains('|') {
        true => line.to_owned(),
        false => folded(line, width),
    };
    text.split_inclusive('\n').map(shown).collect()
}

/// Shows the progress of a run on stderr.
pub struct Display {
    is_quiet: bool,
    /// The bar, drawn from the first trial on if stderr is a terminal.
    bar: OnceLock<Option<ProgressBar>>,
    trial: Mutex<Option<Underway>>,
}

/// The trial that is shown.
struct Underway {
    standing: Standing,
    pace: Pace,
    /// Time of the last line.
    said: Instant,
    /// True if the last line said that answers are awaited.
    is_waiting: bool,
}

impl Display {
    /// Returns the display of a run that begins.
    pub fn new(is_quiet: bool) -> Display {
        Display { is_quiet, bar: OnceLock::new(), trial: Mutex::new(None) }
    }

    fn new_bar(&self) -> Option<ProgressBar> {
        let style = ProgressStyle::with_template("{bar:10} {wide_msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let is_shown = std::io::stderr().is_terminal() && !self.is_quiet;
        let bar = is_shown.then(|| ProgressBar::new(PARTS).with_style(style))?;
        bar.enable_steady_tick(Duration::from_millis(250));
        Some(bar)
    }

    /// Returns the bar, if one is drawn.
    fn bar(&self) -> Option<&ProgressBar> {
        self.bar.get()?.as_ref()
    }

    /// Shows a run that begins, unless it `is_quiet`.
    pub fn watch(is_quiet: bool) -> Box<dyn Watcher> {
        Box::new(Display::new(is_quiet))
    }

    fn line(&self, underway: &mut Underway, text: &str) {
        let standing = &underway.standing;
        match self.bar() {
            Some(bar) => {
                bar.set_message(fitting(&format!("{text}  {}", words(standing))));
                bar.set_position(position(standing));
            }
            None if !self.is_quiet => {
                let is_waiting = text.ends_with(WAITING);
                // Lines that say the same are not repeated each second.
                let pause = match is_waiting && underway.is_waiting {
                    true => Duration::from_secs(10),
                    false => Duration::from_millis(900),
                };
                if underway.said.elapsed() >= pause {
                    underway.said = Instant::now();
                    underway.is_waiting = is_waiting;
                    eprintln!("weigh:   {text}");
                }
            }
            None => {}
        }
    }
}

impl Watcher for Display {
    fn trial(&self, standing: Standing) {
        match self.bar.get_or_init(|| self.new_bar()) {
            Some(bar) => {
                bar.set_message(fitting(&words(&standing)));
                bar.set_position(position(&standing));
            }
            None if !self.is_quiet => eprintln!("weigh: {}: {}", standing.text(), standing.name),
            None => {}
        }
        if let Ok(mut trial) = self.trial.lock() {
            let pace = Pace::new(&standing);
            *trial = Some(Underway { standing, pace, said: Instant::now(), is_waiting: false });
        }
    }

    fn opening(&self, open: u64, all: u64) {
        let Ok(mut trial) = self.trial.lock() else { return };
        if let Some(underway) = trial.as_mut() {
            self.line(underway, &format!("{} of {} connections", count(open), count(all)));
        }
    }

    fn tick(&self, tick: &Tick) {
        let Ok(mut trial) = self.trial.lock() else { return };
        let Some(underway) = trial.as_mut().filter(|_| !self.is_quiet) else { return };
        underway.pace.add(tick);
        if underway.pace.is_long_enough() {
            let text = underway.pace.take_text();
            self.line(underway, &text);
        }
    }

    fn trial_done(&self) {
        let Ok(trial) = self.trial.lock() else { return };
        if let (Some(bar), Some(underway)) = (self.bar(), trial.as_ref()) {
            let own = &underway.standing;
            bar.set_position((own.number * PARTS).checked_div(own.of.1).unwrap_or(PARTS));
        }
    }

    fn say(&self, text: &str) {
        match self.bar() {
            Some(bar) => bar.suspend(|| Lines.say(text)),
            None => Lines.say(text),
        }
    }

    fn note(&self, text: &str) {
        if !self.is_quiet {
            self.say(text);
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(bar) = self.bar() {
            bar.finish_and_clear();
        }
    }
}

fn words(standing: &Standing) -> String {
    format!("{}  {}", standing.text(), standing.name)
}

/// As much of it as fits beside the bar, up to the end of a word.
fn fitting(message: &str) -> String {
    shortened(message, usize::from(style_of_progress().width).saturating_sub(BAR_COLUMNS))
}

/// Returns the position of the bar, of [`PARTS`], by the longest possible run.
fn position(own: &Standing) -> u64 {
    let planned = own.planned.0.unwrap_or(Nanos::NEVER).as_secs_f64();
    let share = (own.since.elapsed().as_secs_f64() / planned).min(1.0);
    let done = if own.of.1 == 0 { share } else { (own.number - 1) as f64 + share };
    (done / own.of.1.max(1) as f64 * PARTS as f64) as u64
}

/// Counts of the last moments of a trial, and of the whole trial so far.
struct Pace {
    /// Since it was last shown.
    current: Slice,
    /// What was shown before, the oldest first.
    shown: VecDeque<Slice>,
    is_warmup: bool,
    connections: u64,
    /// Time since the load began.
    passed: Nanos,
    sent_in_all: u64,
    planned: (Option<Nanos>, Option<u64>),
    pattern: Pattern,
}

/// What was done between two times that it was shown.
#[derive(Clone, Default)]
struct Slice {
    length_ns: u64,
    sent: u64,
    done: u64,
    times: IntervalTimes,
}

impl Slice {
    /// True if it has messages enough for a rate.
    fn is_enough(&self) -> bool {
        self.sent.max(self.done) >= MESSAGES_MIN
    }

    fn add(&mut self, other: &Slice) {
        self.length_ns += other.length_ns;
        self.sent += other.sent;
        self.done += other.done;
        self.times.merge(&other.times);
    }
}

impl Pace {
    fn new(standing: &Standing) -> Pace {
        Pace {
            current: Slice::default(),
            shown: VecDeque::new(),
            is_warmup: false,
            connections: 0,
            passed: Nanos(0),
            sent_in_all: 0,
            planned: standing.planned,
            pattern: standing.pattern,
        }
    }

    fn add(&mut self, tick: &Tick) {
        let counts = tick.counts();
        self.current.length_ns += tick.length_ns();
        self.passed.0 += tick.length_ns();
        self.current.sent += counts.sent;
        self.sent_in_all += counts.sent;
        self.current.done += counts.delivered.max(counts.acknowledged);
        self.is_warmup = counts.warmup;
        self.connections = tick.connections();
        self.current.times.merge(tick.times());
    }

    fn is_long_enough(&self) -> bool {
        self.current.length_ns >= SAID_EVERY_NS
    }

    /// True if nothing is left to send and messages in flight are awaited.
    fn is_draining(&self) -> bool {
        let is_over = self.planned.0.is_some_and(|planned| self.passed > planned);
        let is_sent = self.planned.1.is_some_and(|messages| self.sent_in_all >= messages);
        self.current.sent == 0 && (is_over || is_sent)
    }

    /// Returns what to show, and starts the next slice.
    fn take_text(&mut self) -> String {
        let text = self.text();
        self.shown.push_back(std::mem::take(&mut self.current));
        self.shown.drain(..self.shown.len().saturating_sub(SLICES_MAX));
        text
    }

    /// The newest slices, as many as have enough messages for a rate.
    fn recent(&self) -> Slice {
        let mut recent = self.current.clone();
        for slice in self.shown.iter().rev() {
            // A slice that was enough alone is of a higher rate than what followed.
            if recent.is_enough() || slice.is_enough() || recent.length_ns >= RECENT_NS {
                break;
            }
            recent.add(slice);
        }
        recent
    }

    fn text(&self) -> String {
        let warmup = if self.is_warmup { " (warm-up)" } else { "" };
        if self.pattern == Pattern::Hold {
            return format!("{} connections{warmup}", count(self.connections));
        }
        if self.is_draining() {
            let Slice { done, length_ns, .. } = self.current;
            let done = rate(done, length_ns);
            return format!("{done} delivered/s, {WAITING}");
        }
        let recent = self.recent();
        let mut told = Interval::default();
        recent.times.tell(&mut told);
        let is_ascii = style_of_progress().is_ascii;
        let quantile = told.response_time_ns_p99.map(|p99| ("p99", p99));
        let quantile = quantile.or(told.response_time_ns_p50.map(|p50| ("p50", p50)));
        let quantile = quantile
            .map_or(String::new(), |(name, ns)| format!(", {name} {}", time(ns as f64, is_ascii)));
        let [sent, done] = [recent.sent, recent.done].map(|own| rate(own, recent.length_ns));
        format!("{sent} sent/s, {done} delivered/s{quantile}{warmup}")
    }
}

/// Returns messages per second: whole from 100 on, two digits below 10.
fn rate(messages: u64, length_ns: u64) -> String {
    let per_second = messages as f64 * 1e9 / length_ns.max(1) as f64;
    let step = match per_second {
        ..10.0 => 0.1,
        ..100.0 => 1.0,
        _ => return count(per_second.round() as u64),
    };
    exact((per_second / step).round() * step)
}

/// Shortest time of a rate: a little less than half of the interval between two lines.
const SAID_EVERY_NS: u64 = 450_000_000;

/// At a low rate the slices of this time count together,
const RECENT_NS: u64 = 10_000_000_000;

/// until they have this number of messages.
const MESSAGES_MIN: u64 = 10;

/// How a line ends when nothing is left to send.
const WAITING: &str = "all sent, waiting for answers";

/// Slices that are kept: as many as that time has.
const SLICES_MAX: usize = (RECENT_NS / SAID_EVERY_NS) as usize + 1;

/// Columns of the bar, and the blank behind it.
const BAR_COLUMNS: usize = 11;

/// Parts of the bar.
const PARTS: u64 = 10_000;

/// Returns the style of text on stdout.
pub fn style() -> Style {
    let stdout = console::Term::stdout();
    let width = stdout.is_term().then(|| stdout.size().1);
    Style::from_environment(width, |name| std::env::var(name).ok())
}

/// Returns the style of the table of a run: its key columns, or with `is_wide` all of them, side by
/// side.
pub fn table_style(is_wide: bool) -> Style {
    match is_wide {
        true => Style { extent: Extent::Wide, ..style() },
        false => style(),
    }
}

/// Returns the style of text on stderr, which shows progress.
fn style_of_progress() -> Style {
    let stderr = console::Term::stderr();
    let width = stderr.is_term().then(|| stderr.size().1);
    Style::from_environment(width, |name| std::env::var(name).ok())
}

/// Returns the columns of text on stdout.
pub fn width() -> usize {
    usize::from(style().width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_engine::job::ShardInterval;

    fn pace(planned: (Option<Nanos>, Option<u64>)) -> Pace {
        let (name, of, left) = (String::new(), (1, 1), (Nanos(0), Nanos(0)));
        let (pattern, since) = (Pattern::Request, Instant::now());
        let offered_per_s = None;
        Pace::new(&Standing { name, number: 1, of, left, planned, pattern, offered_per_s, since })
    }

    fn tick(sent: u64, acknowledged: u64) -> Tick {
        let length_ns = Some(500_000_000);
        let at_ns = 600_000_000;
        let interval = Interval { at_ns, sent, acknowledged, length_ns, ..Interval::default() };
        Tick::of(0, ShardInterval { interval, ..ShardInterval::default() })
    }

    #[test]
    fn low_rates_have_fractions_and_high_ones_thousands() {
        for (messages, seconds, text) in
            [(0, 1, "0"), (2, 5, "0.4"), (4, 3, "1.3"), (62, 5, "12"), (51_204, 1, "51,204")]
        {
            assert_eq!(rate(messages, seconds * 1_000_000_000), text);
        }
    }

    #[test]
    fn a_low_rate_is_that_of_several_seconds() {
        let mut slow = pace((None, None));
        let shown = |slow: &mut Pace, sent| {
            slow.add(&tick(sent, sent));
            slow.take_text()
        };
        assert_eq!(shown(&mut slow, 1), "2 sent/s, 2 delivered/s");
        for _ in 0..3 {
            shown(&mut slow, 0);
        }
        assert_eq!(shown(&mut slow, 0), "0.4 sent/s, 0.4 delivered/s");
        assert_eq!(
            shown(&mut slow, 100),
            "200 sent/s, 200 delivered/s",
            "that slice alone is enough"
        );
        (0..100).for_each(|_| drop(shown(&mut slow, 0)));
        assert_eq!(shown(&mut slow, 0), "0 sent/s, 0 delivered/s");
        assert!(slow.shown.len() <= SLICES_MAX);
    }

    #[test]
    fn who_waits_for_the_last_answers_is_not_told_that_nothing_happens() {
        let mut timed = pace((Some(Nanos::from_millis(500)), None));
        timed.add(&tick(100, 50));
        assert_eq!(timed.take_text(), "200 sent/s, 100 delivered/s");
        timed.add(&tick(0, 50));
        assert_eq!(timed.take_text(), "100 delivered/s, all sent, waiting for answers");
        let mut counted = pace((None, Some(100)));
        counted.add(&tick(99, 0));
        counted.take_text();
        counted.add(&tick(0, 0));
        assert_eq!(counted.take_text(), "0 sent/s, 0 delivered/s", "a target that hangs");
    }
}
