//! What a user sees while it runs: a bar on a terminal, a line for each trial and one a second
//! without. Both tell which trial it is, the time left, and what the last half second was like.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use weigh_engine::interval_times::IntervalTimes;
use weigh_engine::job::{Progress, ShardInterval};
use weigh_model::event::Interval;
use weigh_model::units::Nanos;
use weigh_model::visible::visible_line;
use weigh_model::{Load, Pattern};
use weigh_report::table::Style;
use weigh_sequence::Sequence;

use crate::run::series::Series;

/// Shows how a run goes, on stderr.
pub struct Display {
    bar: Option<ProgressBar>,
    is_quiet: bool,
    trial: Mutex<Option<Standing>>,
}

/// Where a run stands when a trial begins.
#[derive(Clone)]
pub struct Standing {
    name: String,
    /// Its number, from 1.
    number: u64,
    /// How many there will be, at least and at most.
    of: (u64, u64),
    /// How long it all takes from here, at least and at most; 0 where nothing is known.
    left: (Nanos, Nanos),
    /// How long it sends, if time is its limit, and how many messages, if that is.
    planned: (Option<Nanos>, Option<u64>),
    pattern: Pattern,
    since: Instant,
}

impl Standing {
    /// Before the trial `name` of this load, the next of `sequence`; so much time is left of the
    /// plan's budget, if it has one.
    pub fn new(
        name: &str,
        load: &Load,
        sequence: &Sequence,
        budget_left: Option<Nanos>,
    ) -> Standing {
        let (done, left) = (sequence.done_count(), sequence.remaining());
        let in_budget = |time: Nanos| time.min(budget_left.unwrap_or(Nanos::NEVER));
        Standing {
            name: visible_line(name).into_owned(),
            number: done + 1,
            of: ((done + left.least).max(done + 1), done + left.most),
            left: (in_budget(left.time_least), in_budget(left.time_most)),
            planned: (load.duration.map(|time| time + load.warmup), load.messages),
            pattern: load.pattern,
            since: Instant::now(),
        }
    }

    /// Before trial `number` of a search, of which nobody knows how many there will be.
    pub fn in_search(name: &str, load: &Load, number: u64) -> Standing {
        Standing {
            name: visible_line(name).into_owned(),
            number,
            of: (0, 0),
            left: (Nanos(0), Nanos(0)),
            planned: (load.duration.map(|time| time + load.warmup), load.messages),
            pattern: load.pattern,
            since: Instant::now(),
        }
    }

    /// `trial 3 of 12 to 20, 2m 5s left`.
    fn text(&self) -> String {
        if self.of.1 == 0 {
            return format!("trial {}", self.number);
        }
        let (least, most) = self.of;
        let of = if least == most { most.to_string() } else { format!("{least} to {most}") };
        let passed = Nanos(self.since.elapsed().as_nanos() as u64);
        let left = |time: Nanos| Nanos(time.0.saturating_sub(passed.0));
        let times = (rough(left(self.left.0)), rough(left(self.left.1)));
        let left = match times {
            _ if self.left.1.0 == 0 => String::new(),
            (least, most) if least == most || self.left.0.0 == 0 => format!(", {most} left"),
            (least, most) => format!(", {least} to {most} left"),
        };
        format!("trial {} of {of}{left}", self.number)
    }

    /// How far the bar is, of [`PARTS`], by the most that can come.
    fn position(&self) -> u64 {
        let planned = self.planned.0.unwrap_or(Nanos::NEVER).as_secs_f64();
        let share = (self.since.elapsed().as_secs_f64() / planned).min(1.0);
        let done = if self.of.1 == 0 { share } else { (self.number - 1) as f64 + share };
        (done / self.of.1.max(1) as f64 * PARTS as f64) as u64
    }
}

impl Display {
    /// Of a run that begins.
    pub fn new(is_quiet: bool) -> Display {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = (is_terminal && !is_quiet).then(|| {
            let style = ProgressStyle::with_template("{bar:24} {prefix}  {wide_msg}");
            ProgressBar::new(PARTS)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        if let Some(bar) = &bar {
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        Display { bar, is_quiet, trial: Mutex::new(None) }
    }

    /// A trial begins.
    pub fn trial(&self, standing: Standing) {
        match &self.bar {
            Some(bar) => {
                bar.set_prefix(standing.text());
                bar.set_message(standing.name.clone());
                bar.set_position(standing.position());
            }
            None if !self.is_quiet => eprintln!("weigh: {}: {}", standing.text(), standing.name),
            None => {}
        }
        if let Ok(mut trial) = self.trial.lock() {
            *trial = Some(standing);
        }
    }

    /// A trial is over.
    pub fn trial_done(&self) {
        if let (Some(bar), Some(trial)) = (&self.bar, self.standing()) {
            let done = (trial.number * PARTS).checked_div(trial.of.1).unwrap_or(PARTS);
            bar.set_position(done);
        }
    }

    /// Something the user must see now.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("weigh: {text}")),
            None => eprintln!("weigh: {text}"),
        }
    }

    /// Something the user may want to know while waiting; nothing where nobody wants to.
    pub fn note(&self, text: &str) {
        if !self.is_quiet {
            self.say(text);
        }
    }

    /// Listens to a trial of so many shards until all its senders are gone, and hands its intervals
    /// over, those of all shards put together in `series`.
    pub fn follow(
        &self,
        heard: &Receiver<(u32, Progress)>,
        shards: usize,
        mut series: Series,
    ) -> Vec<Interval> {
        let Some(standing) = self.standing() else { return Vec::new() };
        let mut said = Instant::now();
        let mut pace = Pace::new(&standing, shards);
        let mut opened = BTreeMap::new();
        loop {
            match heard.recv_timeout(Duration::from_secs(1)) {
                Ok((shard, Progress::Opening(open, all))) => {
                    opened.insert(shard, (open, all));
                    self.line(&standing, &opening(&opened), &mut said);
                }
                Ok((shard, Progress::Interval(told))) => {
                    if !self.is_quiet {
                        pace.add(shard, &told);
                    }
                    series.add(shard, *told);
                    if pace.is_long_enough() {
                        self.line(&standing, &pace.take_text(), &mut said);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return series.finish(),
            }
        }
    }

    fn standing(&self) -> Option<Standing> {
        self.trial.lock().ok().and_then(|trial| trial.clone())
    }

    fn line(&self, standing: &Standing, text: &str, said: &mut Instant) {
        match &self.bar {
            Some(bar) => {
                bar.set_prefix(standing.text());
                bar.set_message(format!("{}: {text}", standing.name));
                bar.set_position(standing.position());
            }
            None if !self.is_quiet && said.elapsed() >= Duration::from_millis(900) => {
                *said = Instant::now();
                eprintln!("weigh:   {text}");
            }
            None => {}
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// How many connections stand, of how many, over all shards that open some.
fn opening(opened: &BTreeMap<u32, (u64, u64)>) -> String {
    let [open, all] = opened.values().fold([0, 0], |[open, all], own| [open + own.0, all + own.1]);
    format!("{open} of {all} connections")
}

/// What was done since it was last said, and what the whole trial has done so far.
struct Pace {
    /// How many shards tell of themselves.
    of_shards: usize,
    sent: u64,
    done: u64,
    is_warmup: bool,
    times: IntervalTimes,
    /// By shard: the time that it has told of since, and its connections.
    shards: BTreeMap<u32, (u64, u64)>,
    /// The time that the first shard has told of in all.
    passed: Nanos,
    sent_in_all: u64,
    planned: (Option<Nanos>, Option<u64>),
    pattern: Pattern,
}

impl Pace {
    fn new(standing: &Standing, of_shards: usize) -> Pace {
        Pace {
            of_shards,
            sent: 0,
            done: 0,
            is_warmup: false,
            times: IntervalTimes::default(),
            shards: BTreeMap::new(),
            passed: Nanos(0),
            sent_in_all: 0,
            planned: standing.planned,
            pattern: standing.pattern,
        }
    }

    fn add(&mut self, shard: u32, told: &ShardInterval) {
        let interval = &told.interval;
        let length_ns = interval.length_ns.unwrap_or(0);
        self.sent += interval.sent;
        self.sent_in_all += interval.sent;
        self.done += interval.delivered.max(interval.acknowledged);
        self.is_warmup = interval.warmup;
        self.times.merge(&told.times);
        let known = self.shards.entry(shard).or_default();
        *known = (known.0 + length_ns, interval.connections);
        if shard == 0 {
            self.passed.0 += length_ns;
        }
    }

    fn length_ns(&self) -> u64 {
        self.shards.values().map(|(length_ns, _)| *length_ns).max().unwrap_or(0)
    }

    /// True if every shard has told of so much: the rate of some is not that of the trial. Those
    /// without a connection, or done with theirs, say nothing, and nobody waits for them for long.
    fn is_long_enough(&self) -> bool {
        let told = self.shards.values().filter(|(length_ns, _)| *length_ns >= SAID_EVERY_NS);
        told.count() >= self.of_shards || self.length_ns() >= WAITED_NS
    }

    /// True once there is nothing left to send: what is under way is awaited.
    fn is_draining(&self) -> bool {
        let is_over = self.planned.0.is_some_and(|planned| self.passed > planned);
        let is_sent = self.planned.1.is_some_and(|messages| self.sent_in_all >= messages);
        self.sent == 0 && (is_over || is_sent)
    }

    /// Says it, and begins anew.
    fn take_text(&mut self) -> String {
        let text = self.text();
        (self.sent, self.done, self.times) = (0, 0, IntervalTimes::default());
        self.shards.values_mut().for_each(|known| known.0 = 0);
        text
    }

    fn text(&self) -> String {
        let seconds = self.length_ns() as f64 / 1e9;
        let rate = |count: u64| (count as f64 / seconds).round();
        let warmup = if self.is_warmup { " (warm-up)" } else { "" };
        if self.pattern == Pattern::Hold {
            let standing: u64 = self.shards.values().map(|(_, connections)| connections).sum();
            return format!("{standing} connections{warmup}");
        }
        if self.is_draining() {
            return format!("all sent, waiting for what is under way: {} out/s", rate(self.done));
        }
        let mut told = Interval::default();
        self.times.tell(&mut told);
        let p99 = told.response_time_ns_p99.map_or(String::new(), |p99| {
            format!(", p99 {}", weigh_report::figures::time(p99 as f64, is_ascii()))
        });
        format!("{} in/s, {} out/s{p99}{warmup}", rate(self.sent), rate(self.done))
    }
}

/// A time as somebody who waits wants it: `2h 5m`, `3m 20s`, `12s`.
pub fn rough(time: Nanos) -> String {
    let seconds = time.0.div_ceil(1_000_000_000);
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (hours, minutes, _) => format!("{hours}h {minutes}m"),
    }
}

/// Rates are those of at least this time, a little less than what is told of a second.
const SAID_EVERY_NS: u64 = 450_000_000;

/// So much of one shard's time is waited for what the others tell.
const WAITED_NS: u64 = 2_500_000_000;

/// Parts of the bar.
const PARTS: u64 = 10_000;

/// Whether the locale leaves only ASCII, as tables decide it.
fn is_ascii() -> bool {
    Style::from_environment(None, |name| std::env::var(name).ok()).is_ascii
}

/// Columns of the terminal behind stdout, or so many where there is none.
pub fn width_or(columns: usize) -> usize {
    if std::io::stdout().is_terminal() { usize::from(width()) } else { columns }
}

/// Columns of the terminal behind stdout.
pub fn width() -> u16 {
    console::Term::stdout().size().1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(planned: (Option<Nanos>, Option<u64>)) -> Pace {
        let (name, of, left) = (String::new(), (1, 1), (Nanos(0), Nanos(0)));
        let (pattern, since) = (Pattern::Request, Instant::now());
        Pace::new(&Standing { name, number: 1, of, left, planned, pattern, since }, 1)
    }

    fn told(sent: u64, acknowledged: u64) -> ShardInterval {
        let length_ns = Some(500_000_000);
        let interval = Interval { sent, acknowledged, length_ns, ..Interval::default() };
        ShardInterval { interval, ..ShardInterval::default() }
    }

    #[test]
    fn who_waits_for_the_last_answers_is_not_told_that_nothing_happens() {
        let mut timed = pace((Some(Nanos::from_millis(500)), None));
        timed.add(0, &told(100, 50));
        assert_eq!(timed.take_text(), "200 in/s, 100 out/s");
        timed.add(0, &told(0, 50));
        assert_eq!(timed.take_text(), "all sent, waiting for what is under way: 100 out/s");
        let mut counted = pace((None, Some(100)));
        counted.add(0, &told(99, 0));
        counted.take_text();
        counted.add(0, &told(0, 0));
        assert_eq!(counted.take_text(), "0 in/s, 0 out/s", "a target that hangs");
    }

    /// Six shards that each tell once a second: the rate of one is not that of the trial.
    #[test]
    fn the_rate_of_a_trial_is_that_of_all_its_shards() {
        let mut six = Pace { of_shards: 6, ..pace((Some(Nanos::from_secs(60)), None)) };
        for shard in 0..6 {
            assert!(!six.is_long_enough(), "{shard} of 6 have told");
            six.add(shard, &told(100, 100));
        }
        assert!(six.is_long_enough());
        assert_eq!(six.take_text(), "1200 in/s, 1200 out/s");
        assert!(!six.is_long_enough(), "it begins anew");
        (0..5).for_each(|_| six.add(3, &told(1, 1)));
        assert!(six.is_long_enough(), "the others are done");
        let opened = (0..6).map(|shard| (shard, (u64::from(shard), 10))).collect();
        assert_eq!(opening(&opened), "15 of 60 connections");
    }

    #[test]
    fn what_is_left_is_said_as_people_say_it() {
        for (seconds, text) in [(0, "0s"), (59, "59s"), (200, "3m 20s"), (7500, "2h 5m")] {
            assert_eq!(rough(Nanos::from_secs(seconds)), text);
        }
        let mut standing = Standing {
            name: "tcp".to_owned(),
            number: 3,
            of: (12, 20),
            left: (Nanos(0), Nanos(0)),
            planned: (None, None),
            pattern: Pattern::Request,
            since: Instant::now(),
        };
        assert_eq!(standing.text(), "trial 3 of 12 to 20");
        standing.left = (Nanos::from_secs(3000), Nanos::from_secs(9000));
        standing.of.0 = 20;
        assert!(standing.text().starts_with("trial 3 of 20, "), "{}", standing.text());
    }
}
