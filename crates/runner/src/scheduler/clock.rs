//! How long trials take, as the events of a run tell: what the time budget is held against.

use std::collections::BTreeMap;

use weigh_model::Nanos;

/// The run's own clock, as far as events tell of it. Time between a run and its resumption is not
/// on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clock {
    /// What the plan says that a trial of each case takes, where it says so.
    planned: Vec<Option<Nanos>>,
    /// The longest that a trial of a case took, from its begin to the begin of the next.
    longest: BTreeMap<usize, Nanos>,
    /// The last trial that began: which case, when, and whether it ended.
    last: Option<(usize, Nanos, bool)>,
}

impl Clock {
    /// For cases that take so long by the plan.
    pub fn new(planned: Vec<Option<Nanos>>) -> Clock {
        Clock { planned, ..Clock::default() }
    }

    /// A trial of `case` began at `at`.
    pub fn started(&mut self, case: usize, at: Nanos) {
        // A trial that was cut short says nothing about how long one takes.
        if let Some((before, since, true)) = self.last {
            let took = Nanos(at.0.saturating_sub(since.0));
            let longest = self.longest.entry(before).or_default();
            *longest = (*longest).max(took);
        }
        self.last = Some((case, at, false));
    }

    /// The trial that began last has ended.
    pub fn ended(&mut self) {
        if let Some(last) = &mut self.last {
            last.2 = true;
        }
    }

    /// How long the next trial of `case` will take: as long as the longest of its own so far, at
    /// least what the plan says; without both, as long as the longest of any case.
    pub fn expected(&self, case: usize) -> Nanos {
        let planned = self.planned.get(case).copied().flatten();
        let own = self.longest.get(&case).copied();
        let any = || self.longest.values().copied().max();
        own.max(planned).or_else(any).unwrap_or_default()
    }

    /// What the clock shows at least, by what has happened.
    pub fn now(&self) -> Nanos {
        match self.last {
            Some((case, since, true)) => since + self.expected(case),
            Some((_, since, false)) => since,
            None => Nanos(0),
        }
    }
}
