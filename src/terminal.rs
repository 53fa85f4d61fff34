//! What a user sees while it runs: a bar with the time left on a terminal, a line a second
//! without one.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use weigh_engine::job::Progress;
use weigh_model::Nanos;
use weigh_model::event::Interval;

use crate::series::Series;

/// Shows how a run goes, on stderr.
pub struct Display {
    bar: Option<ProgressBar>,
    is_quiet: bool,
    trials: u64,
    trial: Mutex<Option<Running>>,
}

/// The trial that is running.
#[derive(Clone, Copy)]
struct Running {
    number: u64,
    since: Instant,
    planned: Option<Nanos>,
}

impl Display {
    /// For a run of so many trials.
    pub fn new(trials: u64, is_quiet: bool) -> Display {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = (is_terminal && !is_quiet).then(|| {
            let template = "{bar:24} trial {prefix}, {eta} left  {wide_msg}";
            let style = ProgressStyle::with_template(template);
            ProgressBar::new(trials * PARTS)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        if let Some(bar) = &bar {
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        Display { bar, is_quiet, trials, trial: Mutex::new(None) }
    }

    /// A trial begins; `planned` is how long it sends, if time is its limit.
    pub fn trial(&self, name: &str, planned: Option<Nanos>) {
        let number = self.running().map_or(0, |trial| trial.number + 1);
        if let Ok(mut trial) = self.trial.lock() {
            *trial = Some(Running { number, since: Instant::now(), planned });
        }
        match &self.bar {
            Some(bar) => {
                bar.set_prefix(format!("{} of {}", number + 1, self.trials));
                bar.set_message(name.to_owned());
            }
            None if !self.is_quiet => eprintln!("weigh: {name}"),
            None => {}
        }
    }

    /// A trial is over.
    pub fn trial_done(&self) {
        if let (Some(bar), Some(trial)) = (&self.bar, self.running()) {
            bar.set_position((trial.number + 1) * PARTS);
        }
    }

    /// Something the user must see now.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("weigh: {text}")),
            None => eprintln!("weigh: {text}"),
        }
    }

    /// Listens to a trial until all its senders are gone, and hands its intervals over, those of
    /// all shards put together in `series`.
    pub fn follow(
        &self,
        name: &str,
        heard: &Receiver<(u32, Progress)>,
        mut series: Series,
    ) -> Vec<Interval> {
        let mut said = Instant::now();
        let mut since = Pace::default();
        loop {
            match heard.recv_timeout(Duration::from_secs(1)) {
                Ok((_, Progress::Opening(standing, all))) => {
                    self.line(name, &format!("{standing} of {all} connections"), &mut said);
                }
                Ok((shard, Progress::Interval(told))) => {
                    since.add(shard, &told.interval);
                    series.add(shard, *told);
                    if since.is_long_enough() {
                        self.line(name, &std::mem::take(&mut since).text(), &mut said);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return series.finish(),
            }
        }
    }

    fn running(&self) -> Option<Running> {
        self.trial.lock().ok().and_then(|trial| *trial)
    }

    fn line(&self, name: &str, text: &str, said: &mut Instant) {
        match &self.bar {
            Some(bar) => {
                bar.set_message(format!("{name}: {text}"));
                bar.set_position(self.running().map_or(0, Running::position));
            }
            None if !self.is_quiet && said.elapsed() >= Duration::from_millis(900) => {
                *said = Instant::now();
                eprintln!("weigh:   {text}");
            }
            None => {}
        }
    }
}

impl Running {
    /// How far the bar is, in parts.
    fn position(self) -> u64 {
        let planned = self.planned.unwrap_or(Nanos::NEVER).as_secs_f64();
        let share = (self.since.elapsed().as_secs_f64() / planned).min(1.0);
        self.number * PARTS + (share * PARTS as f64) as u64
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What was done since it was last said.
#[derive(Default)]
struct Pace {
    sent: u64,
    done: u64,
    is_warmup: bool,
    /// The time that each shard has told of.
    lengths_ns: BTreeMap<u32, u64>,
}

impl Pace {
    fn add(&mut self, shard: u32, interval: &Interval) {
        self.sent += interval.sent;
        self.done += interval.delivered.max(interval.acknowledged);
        self.is_warmup = interval.warmup;
        *self.lengths_ns.entry(shard).or_default() += interval.length_ns.unwrap_or(0);
    }

    fn length_ns(&self) -> u64 {
        self.lengths_ns.values().copied().max().unwrap_or(0)
    }

    fn is_long_enough(&self) -> bool {
        self.length_ns() >= SAID_EVERY_NS
    }

    fn text(&self) -> String {
        let seconds = self.length_ns() as f64 / 1e9;
        let rate = |count: u64| (count as f64 / seconds).round();
        let warmup = if self.is_warmup { " (warm-up)" } else { "" };
        format!("{} in/s, {} out/s{warmup}", rate(self.sent), rate(self.done))
    }
}

/// Rates are those of at least this time, a little less than what is told of a second.
const SAID_EVERY_NS: u64 = 450_000_000;

/// Parts of the bar for each trial.
const PARTS: u64 = 1000;

/// Columns of the terminal behind stdout.
pub fn width() -> u16 {
    console::Term::stdout().size().1
}
