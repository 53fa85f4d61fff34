//! Durations of trials by the events of a run, for the time budget.

use std::collections::BTreeMap;

use weigh_model::Nanos;

/// The run's own clock, by its events. It does not include the time between a run and its
/// resumption.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clock {
    /// Duration of a trial of each case by the plan, if known.
    planned: Vec<Option<Nanos>>,
    /// The longest duration of a trial of a case, from its start to the next start.
    longest: BTreeMap<usize, Nanos>,
    /// The last trial that started: its case, its time, and whether it ended.
    last: Option<(usize, Nanos, bool)>,
}

impl Clock {
    /// Makes a clock for cases with these planned durations.
    pub fn new(planned: Vec<Option<Nanos>>) -> Clock {
        Clock { planned, ..Clock::default() }
    }

    /// Notes that a trial of `case` started at `at`.
    pub fn started(&mut self, case: usize, at: Nanos) {
        // The duration of an interrupted trial does not count.
        if let Some((before, since, true)) = self.last {
            let took = Nanos(at.0.saturating_sub(since.0));
            let longest = self.longest.entry(before).or_default();
            *longest = (*longest).max(took);
        }
        self.last = Some((case, at, false));
    }

    /// Notes that the last trial has ended.
    pub fn ended(&mut self) {
        if let Some(last) = &mut self.last {
            last.2 = true;
        }
    }

    /// Expected duration of the next trial of `case`: the longest of its own so far, at least the
    /// planned one; without both, the longest of any case.
    pub fn expected(&self, case: usize) -> Nanos {
        let planned = self.planned.get(case).copied().flatten();
        let own = self.longest.get(&case).copied();
        let any = || self.longest.values().copied().max();
        own.max(planned).or_else(any).unwrap_or_default()
    }

    /// The least time that the clock can show, by its events.
    pub fn now(&self) -> Nanos {
        match self.last {
            Some((case, since, true)) => since + self.expected(case),
            Some((_, since, false)) => since,
            None => Nanos(0),
        }
    }
}
