//! The states of all agents of a trial, and the one state that is made of them.

use crate::messages::{Counts, State, Whole};

/// The last state of each agent.
pub struct Sums {
    turn: u64,
    states: Vec<State>,
    number: u64,
    /// Number of the last report of each agent that has arrived.
    pub reported: Vec<u64>,
    /// The start, once all agents have agreed to it, nanoseconds.
    pub start_ns: Option<u64>,
    /// True until the coordinator's observer is done with the connections.
    pub is_held_here: bool,
    /// True once the trial has failed.
    pub has_failed: bool,
}

impl Sums {
    /// Nothing is known of these agents yet.
    pub fn new(turn: u64, agents: usize) -> Sums {
        Sums {
            turn,
            states: vec![State::default(); agents],
            number: 0,
            reported: vec![0; agents],
            start_ns: None,
            is_held_here: true,
            has_failed: false,
        }
    }

    /// Takes a state over, unless it is of another trial, or not newer than what is known. True if
    /// other agents wait for what is new in it.
    pub fn hear(&mut self, state: State) -> bool {
        let Some(known) = self.states.get_mut(state.rank as usize) else { return false };
        if state.turn != self.turn || state.number <= known.number {
            return false;
        }
        let awaited = |state: &State| {
            let ends = (state.has_failed, state.is_alone, state.is_over);
            (state.counts, state.stop_level, state.is_held, ends)
        };
        let is_news = awaited(known) != awaited(&state);
        *known = state;
        is_news
    }

    /// Number of the trial in its session.
    pub fn turn(&self) -> u64 {
        self.turn
    }

    /// The last state of each agent, by rank.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// Sums over all agents.
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.states.iter().for_each(|state| sum.add(state.counts));
        sum
    }

    /// Takes a report over. True if it is the next one of this agent: one that is missing before
    /// it comes again.
    pub fn take_report(&mut self, turn: u64, rank: u32, number: u64) -> bool {
        let Some(last) = self.reported.get_mut(rank as usize) else { return false };
        let is_next = turn == self.turn && number == *last + 1;
        *last += u64::from(is_next);
        is_next
    }

    /// The state of all, to be published; `stop_level` is how often this process was asked to
    /// stop.
    pub fn whole(&mut self, stop_level: u8) -> Whole {
        self.number += 1;
        let held = self.states.iter().filter(|state| state.is_held).map(|state| state.rank);
        let levels = self.states.iter().map(|state| state.stop_level);
        Whole {
            turn: self.turn,
            number: self.number,
            counts: self.counts(),
            start_ns: self.start_ns,
            stop_level: levels.fold(stop_level, u8::max),
            has_failed: self.has_failed,
            is_held_here: self.is_held_here,
            held: held.collect(),
            reported: self.reported.clone(),
        }
    }

    /// True once everything of every agent is stored and reported.
    pub fn is_delivered(&self) -> bool {
        let mut both = self.states.iter().zip(&self.reported);
        both.all(|(state, reported)| state.outcomes.is_some() && state.reports == *reported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(rank: u32, number: u64, sent: u64) -> State {
        let counts = Counts { ready: 1, sent, last_due_ns: sent * 10, ..Counts::default() };
        State { turn: 3, rank, number, counts, ..State::default() }
    }

    #[test]
    fn a_sum_counts_every_agent_once() {
        let mut sums = Sums::new(3, 2);
        assert!(sums.hear(state(0, 1, 5)) && sums.hear(state(1, 1, 7)));
        assert!(!sums.hear(state(1, 1, 7)), "twice");
        assert!(sums.hear(state(1, 3, 8)));
        assert!(!sums.hear(state(1, 2, 7)), "late");
        assert!(!sums.hear(state(1, 4, 8)), "nothing is new in it");
        assert!(!sums.hear(state(2, 1, 7)), "not one of the agents");
        assert!(!sums.hear(State { turn: 2, ..state(0, 9, 9) }), "the trial before");
        let counts = sums.whole(0).counts;
        assert_eq!((counts.ready, counts.sent, counts.last_due_ns), (2, 13, 80));
    }

    #[test]
    fn reports_are_taken_in_their_order() {
        let mut sums = Sums::new(3, 2);
        let taken = [(0, 1), (0, 1), (0, 3), (0, 2), (0, 3), (1, 1), (2, 1)];
        let taken = taken.map(|(rank, number)| sums.take_report(3, rank, number));
        assert_eq!(taken, [true, false, false, true, true, true, false]);
        assert!(!sums.take_report(2, 0, 4));
        assert_eq!(sums.whole(0).reported, [3, 1]);
    }

    #[test]
    fn orders_reach_all_from_wherever_they_come() {
        let mut sums = Sums::new(3, 2);
        sums.hear(State { stop_level: 1, is_held: true, ..state(1, 1, 0) });
        let whole = sums.whole(0);
        assert_eq!((whole.stop_level, whole.held, whole.is_held_here), (1, vec![1], true));
        assert_eq!(sums.whole(2).stop_level, 2);
    }

    #[test]
    fn everything_is_there_when_the_last_report_is() {
        let mut sums = Sums::new(3, 1);
        sums.hear(State { reports: 1, outcomes: Some(Vec::new()), ..state(0, 1, 0) });
        assert!(!sums.is_delivered());
        assert!(sums.take_report(3, 0, 1) && sums.is_delivered());
    }
}
