//! Progress of a run: a bar on a terminal; otherwise a line for each trial and one per second. Both
//! show rate and p99 of the last half second first, then the trial and the time left.

use std::io::IsTerminal;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::show::fold::folded;
use indicatif::{ProgressBar, ProgressStyle};
use weigh_engine::interval_times::IntervalTimes;
use weigh_model::Pattern;
use weigh_model::event::Interval;
use weigh_model::units::Nanos;
use weigh_report::Style;
use weigh_report::figures::{count, three_digits, time};
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::trial::ticks::Tick;
use weigh_runner::watcher::{Standing, Watcher};

/// Prints lines on stderr: notes before a run and during it.
pub struct Lines;

impl Watcher for Lines {
    fn say(&self, text: &str) {
        let line = format!("weigh: {text}");
        match console::Term::stderr().is_term() {
            true => eprintln!("{}", folded(&line, usize::from(style_of_progress().width))),
            false => eprintln!("{line}"),
        }
    }

    fn note(&self, text: &str) {
        self.say(text);
    }
}

/// Prints why the program stops, and returns its exit code.
pub fn stopped(stop: Stop) -> Exit {
    match stop.is_rendered() {
        // Colours of its own must stay visible.
        true => std::eprintln!("weigh: {stop}"),
        false => Lines.say(&stop.to_string()),
    }
    stop.exit()
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
                let message = format!("{text}  {}  {}", standing.text(), standing.name);
                bar.set_message(message);
                bar.set_position(position(standing));
            }
            None if !self.is_quiet && underway.said.elapsed() >= Duration::from_millis(900) => {
                underway.said = Instant::now();
                eprintln!("weigh:   {text}");
            }
            None => {}
        }
    }
}

impl Watcher for Display {
    fn trial(&self, standing: Standing) {
        match self.bar.get_or_init(|| self.new_bar()) {
            Some(bar) => {
                bar.set_message(format!("{}  {}", standing.text(), standing.name));
                bar.set_position(position(&standing));
            }
            None if !self.is_quiet => eprintln!("weigh: {}: {}", standing.text(), standing.name),
            None => {}
        }
        if let Ok(mut trial) = self.trial.lock() {
            let pace = Pace::new(&standing);
            *trial = Some(Underway { standing, pace, said: Instant::now() });
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

/// Returns the position of the bar, of [`PARTS`], by the longest possible run.
fn position(own: &Standing) -> u64 {
    let planned = own.planned.0.unwrap_or(Nanos::NEVER).as_secs_f64();
    let share = (own.since.elapsed().as_secs_f64() / planned).min(1.0);
    let done = if own.of.1 == 0 { share } else { (own.number - 1) as f64 + share };
    (done / own.of.1.max(1) as f64 * PARTS as f64) as u64
}

/// Counts since the last line, and of the whole trial so far.
struct Pace {
    length_ns: u64,
    sent: u64,
    done: u64,
    is_warmup: bool,
    times: IntervalTimes,
    connections: u64,
    /// Time since the load began.
    passed: Nanos,
    sent_in_all: u64,
    planned: (Option<Nanos>, Option<u64>),
    pattern: Pattern,
}

impl Pace {
    fn new(standing: &Standing) -> Pace {
        Pace {
            length_ns: 0,
            sent: 0,
            done: 0,
            is_warmup: false,
            times: IntervalTimes::default(),
            connections: 0,
            passed: Nanos(0),
            sent_in_all: 0,
            planned: standing.planned,
            pattern: standing.pattern,
        }
    }

    fn add(&mut self, tick: &Tick) {
        let counts = tick.counts();
        self.length_ns += tick.length_ns();
        self.passed.0 += tick.length_ns();
        self.sent += counts.sent;
        self.sent_in_all += counts.sent;
        self.done += counts.delivered.max(counts.acknowledged);
        self.is_warmup = counts.warmup;
        self.connections = tick.connections();
        self.times.merge(tick.times());
    }

    fn is_long_enough(&self) -> bool {
        self.length_ns >= SAID_EVERY_NS
    }

    /// True if nothing is left to send and messages in flight are awaited.
    fn is_draining(&self) -> bool {
        let is_over = self.planned.0.is_some_and(|planned| self.passed > planned);
        let is_sent = self.planned.1.is_some_and(|messages| self.sent_in_all >= messages);
        self.sent == 0 && (is_over || is_sent)
    }

    /// Returns the text and resets the counts.
    fn take_text(&mut self) -> String {
        let text = self.text();
        (self.sent, self.done, self.length_ns) = (0, 0, 0);
        self.times = IntervalTimes::default();
        text
    }

    fn text(&self) -> String {
        let seconds = self.length_ns as f64 / 1e9;
        let rate = |messages: u64| rate(messages as f64 / seconds);
        let warmup = if self.is_warmup { " (warm-up)" } else { "" };
        if self.pattern == Pattern::Hold {
            return format!("{} connections{warmup}", count(self.connections));
        }
        if self.is_draining() {
            return format!("{} out/s, all sent, waiting for answers", rate(self.done));
        }
        let mut told = Interval::default();
        self.times.tell(&mut told);
        let p99 = told.response_time_ns_p99.map_or(String::new(), |p99| {
            format!(", p99 {}", time(p99 as f64, style_of_progress().is_ascii))
        });
        format!("{} in/s, {} out/s{p99}{warmup}", rate(self.sent), rate(self.done))
    }
}

/// Returns messages per second: whole from 100 on, three digits below.
fn rate(per_second: f64) -> String {
    if per_second < 99.95 { three_digits(per_second) } else { count(per_second.round() as u64) }
}

/// Shortest time of a rate: a little less than half of the interval between two lines.
const SAID_EVERY_NS: u64 = 450_000_000;

/// Parts of the bar.
const PARTS: u64 = 10_000;

/// Returns the style of text on stdout.
pub fn style() -> Style {
    let stdout = console::Term::stdout();
    let width = stdout.is_term().then(|| stdout.size().1);
    Style::from_environment(width, |name| std::env::var(name).ok())
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
        Pace::new(&Standing { name, number: 1, of, left, planned, pattern, since })
    }

    fn tick(sent: u64, acknowledged: u64) -> Tick {
        let length_ns = Some(500_000_000);
        let at_ns = 600_000_000;
        let interval = Interval { at_ns, sent, acknowledged, length_ns, ..Interval::default() };
        Tick::of(0, ShardInterval { interval, ..ShardInterval::default() })
    }

    #[test]
    fn low_rates_have_fractions_and_high_ones_thousands() {
        for (per_second, text) in [(0.0, "0"), (0.25, "0.250"), (12.34, "12.3"), (99.97, "100")] {
            assert_eq!(rate(per_second), text);
        }
        assert_eq!(rate(51_200.4), "51,200");
    }

    #[test]
    fn who_waits_for_the_last_answers_is_not_told_that_nothing_happens() {
        let mut timed = pace((Some(Nanos::from_millis(500)), None));
        timed.add(&tick(100, 50));
        assert_eq!(timed.take_text(), "200 in/s, 100 out/s");
        timed.add(&tick(0, 50));
        assert_eq!(timed.take_text(), "100 out/s, all sent, waiting for answers");
        let mut counted = pace((None, Some(100)));
        counted.add(&tick(99, 0));
        counted.take_text();
        counted.add(&tick(0, 0));
        assert_eq!(counted.take_text(), "0 in/s, 0 out/s", "a target that hangs");
    }
}
