//! Send lags of messages: from due to sent, of all, and of those for which only the generator was
//! late.

use weigh_model::portable_fields;

use crate::times::Times;

/// The send lags of measured messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SendLags {
    /// Due to sent: the generator's own error, or the wait for a free slot. Complete once settled.
    pub all: Times,
    /// Due to sent of those messages that a slot was free for: the generator's own error alone.
    pub own: Times,
    /// Lags that were equal one after another and are not in their histogram yet.
    run: Run,
    is_settled: bool,
}

/// Equal send lags, one after another: in a burst all that is due together and stamped together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Run {
    lag_ns: u64,
    was_held_up: bool,
    count: u64,
}

impl SendLags {
    /// Records one lag, nanoseconds; `was_held_up` if the window was full when the message became
    /// due.
    #[inline]
    pub fn record(&mut self, lag_ns: u64, was_held_up: bool) {
        if (lag_ns, was_held_up) == (self.run.lag_ns, self.run.was_held_up) {
            self.run.count += 1;
        } else {
            self.end_run(Run { lag_ns, was_held_up, count: 1 });
        }
    }

    /// Ends the record: nothing is sent any more.
    pub fn settle(&mut self) {
        self.end_run(Run::default());
        if !self.is_settled {
            self.all.merge(&self.own);
            self.is_settled = true;
        }
    }

    /// Adds another shard's lags; both are settled.
    pub fn merge(&mut self, other: &SendLags) {
        self.all.merge(&other.all);
        self.own.merge(&other.own);
    }

    /// Puts the lags that were equal into their histogram and begins with another one.
    fn end_run(&mut self, next: Run) {
        let Run { lag_ns, was_held_up, count } = std::mem::replace(&mut self.run, next);
        if count > 0 {
            // Those of the others are added to these when all is over: one record for each.
            let lags = if was_held_up { &mut self.all } else { &mut self.own };
            lags.record_n(lag_ns, count);
        }
    }
}

portable_fields!(SendLags { all, own, run, is_settled });
portable_fields!(Run { lag_ns, was_held_up, count });
