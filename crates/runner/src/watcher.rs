//! Interface for progress of a run, such as a terminal. The library itself prints nothing.

use std::path::Path;
use std::time::Instant;
use weigh_model::numbers::count;

use crate::scheduler::Sequence;
use weigh_model::units::Nanos;
use weigh_model::visible::visible_line;
use weigh_model::{Load, Pattern};

use crate::trial::ticks::Tick;

/// Receives the progress of a run.
///
/// # Examples
///
/// Prints the lines that the user must see, and no progress:
///
/// ```
/// use weigh_runner::runner::Runner;
/// use weigh_runner::watcher::Watcher;
///
/// struct Notices;
///
/// impl Watcher for Notices {
///     fn say(&self, text: &str) {
///         eprintln!("{text}");
///     }
/// }
///
/// let mut runner = Runner::new("/usr/local/bin/weigh", "runs")?;
/// runner.watch = |_is_quiet| Box::new(Notices);
/// # Ok::<(), weigh_runner::exit::Stop>(())
/// ```
pub trait Watcher: Send + Sync {
    /// A run begins to record in `_folder`.
    fn begun(&self, _folder: &Path) {}
    /// Shows a line that the user must see now.
    fn say(&self, text: &str);
    /// Shows a line that may interest a waiting user.
    fn note(&self, _text: &str) {}
    /// A trial starts.
    fn trial(&self, _standing: Standing) {}
    /// `_open` of `_all` connections of the trial are open.
    fn opening(&self, _open: u64, _all: u64) {}
    /// Counts of the trial in the last period, at most a second.
    fn tick(&self, _tick: &Tick) {}
    /// A trial has ended.
    fn trial_done(&self) {}
    /// The journal of the run is complete; a signal may end the program from now on.
    fn recorded(&self) {}
}

/// Makes the watcher of a run, which may suppress progress.
pub type Watch = fn(is_quiet: bool) -> Box<dyn Watcher>;

/// A watcher that shows nothing, for runs that only leave a folder and a result.
///
/// # Examples
///
/// ```
/// use weigh_runner::watcher::{Silent, Watcher};
///
/// Silent::watch(true).say("not shown");
/// ```
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

/// Position in a run when a trial starts.
///
/// # Examples
///
/// ```
/// use weigh_model::{Load, Pattern};
/// use weigh_runner::watcher::Standing;
///
/// let standing = Standing::in_search("tcp", &Load::closed(Pattern::Request, 1), 3);
/// assert_eq!(standing.text(), "trial 3");
/// ```
#[derive(Clone)]
pub struct Standing {
    /// Name of the trial, on one line.
    pub name: String,
    /// Its number, from 1.
    pub number: u64,
    /// Total number of trials, at least and at most.
    pub of: (u64, u64),
    /// Time left, at least and at most; 0 if unknown.
    pub left: (Nanos, Nanos),
    /// Duration of its load, if time limits it, and number of messages, if that does.
    pub planned: (Option<Nanos>, Option<u64>),
    /// Pattern of its load.
    pub pattern: Pattern,
    /// Messages due per second, if its load has a rate.
    pub offered_per_s: Option<f64>,
    /// Its start.
    pub since: Instant,
}

impl Standing {
    /// Before the trial `name` of this load, the next of `sequence`; `budget_left` is what remains
    /// of the plan's time budget, if it has one.
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
            offered_per_s: load.offered_per_s(),
            since: Instant::now(),
        }
    }

    /// Before trial `number` of a search, whose total is unknown.
    pub fn in_search(name: &str, load: &Load, number: u64) -> Standing {
        Standing {
            name: visible_line(name).into_owned(),
            number,
            of: (0, 0),
            left: (Nanos(0), Nanos(0)),
            planned: (load.duration.map(|time| time + load.warmup), load.messages),
            pattern: load.pattern,
            offered_per_s: load.offered_per_s(),
            since: Instant::now(),
        }
    }

    /// The text, such as `trial 3 of 12 to 20, 2 min 5 s left`.
    pub fn text(&self) -> String {
        if self.of.1 == 0 {
            return format!("trial {}", count(self.number));
        }
        let (least, most) = self.of;
        let of = match least == most {
            true => count(most),
            false => format!("{} to {}", count(least), count(most)),
        };
        let passed = Nanos(self.since.elapsed().as_nanos() as u64);
        let left = |time: Nanos| Nanos(time.0.saturating_sub(passed.0));
        let times = (left(self.left.0).rough(), left(self.left.1).rough());
        let left = match times {
            _ if self.left.1.0 == 0 => String::new(),
            (least, most) if least == most || self.left.0.0 == 0 => format!(", {most} left"),
            (least, most) => format!(", {least} to {most} left"),
        };
        format!("trial {} of {of}{left}", count(self.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_said_as_people_say_it() {
        let mut standing = Standing {
            name: "tcp".to_owned(),
            number: 3,
            of: (12, 20),
            left: (Nanos(0), Nanos(0)),
            planned: (None, None),
            pattern: Pattern::Request,
            offered_per_s: None,
            since: Instant::now(),
        };
        assert_eq!(standing.text(), "trial 3 of 12 to 20");
        standing.left = (Nanos::from_secs(3000), Nanos::from_secs(9000));
        standing.of.0 = 20;
        assert!(standing.text().starts_with("trial 3 of 20, "), "{}", standing.text());
    }
}
