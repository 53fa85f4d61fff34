//! Who is told how a run goes while it goes: a terminal, or no one. The library itself prints
//! nothing.

use std::time::Instant;

use crate::scheduler::Sequence;
use weigh_model::units::Nanos;
use weigh_model::visible::visible_line;
use weigh_model::{Load, Pattern};

use crate::trial::ticks::Tick;

/// Is told how a run goes.
pub trait Watcher: Send + Sync {
    /// Something the user must see now.
    fn say(&self, text: &str);
    /// Something the user may want to know while waiting.
    fn note(&self, _text: &str) {}
    /// A trial begins.
    fn trial(&self, _standing: Standing) {}
    /// This many connections of the trial stand, of so many.
    fn opening(&self, _open: u64, _all: u64) {}
    /// What the trial did in the last moment, at most a second.
    fn tick(&self, _tick: &Tick) {}
    /// A trial is over.
    fn trial_done(&self) {}
}

/// Makes who watches a run, which may be one that wants to say nothing on the way.
pub type Watch = fn(is_quiet: bool) -> Box<dyn Watcher>;

/// Watches nothing: a run that only leaves its folder and its result.
pub struct Silent;

impl Silent {
    /// A [`Watch`] that makes one.
    pub fn watch(_is_quiet: bool) -> Box<dyn Watcher> {
        Box::new(Silent)
    }
}

impl Watcher for Silent {
    fn say(&self, _text: &str) {}
}

/// Where a run stands when a trial begins.
#[derive(Clone)]
pub struct Standing {
    /// What the trial is called, on one line.
    pub name: String,
    /// Its number, from 1.
    pub number: u64,
    /// How many there will be, at least and at most.
    pub of: (u64, u64),
    /// How long it all takes from here, at least and at most; 0 where nothing is known.
    pub left: (Nanos, Nanos),
    /// How long it sends, if time is its limit, and how many messages, if that is.
    pub planned: (Option<Nanos>, Option<u64>),
    /// What its messages are.
    pub pattern: Pattern,
    /// When it began.
    pub since: Instant,
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
    pub fn text(&self) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

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
