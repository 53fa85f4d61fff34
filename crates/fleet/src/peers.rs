//! The states of all agents, added up by one of them once no coordinator does.

use weigh_model::Nanos;

use crate::messages::{State, Whole};
use crate::sums::Sums;

/// What an agent without a coordinator hears of all agents, itself among them.
pub struct Peers {
    sums: Sums,
    /// Of all agents.
    shards: u32,
    silence: Nanos,
    since: Nanos,
    /// When each was heard last, by rank.
    heard: Vec<Nanos>,
}

impl Peers {
    /// Nothing has been heard at `now` of the agents that run the `shards` of the trial `turn`. One
    /// that is not heard for longer than `silence` is gone.
    pub fn new(turn: u64, shards: u32, silence: Nanos, now: Nanos) -> Peers {
        // Each agent runs a shard at least.
        let agents = shards as usize;
        let mut sums = Sums::new(turn, agents);
        sums.is_held_here = false;
        Peers { sums, shards, silence, since: now, heard: vec![now; agents] }
    }

    /// Takes a state over. Returns that of all, once every agent has been heard or one has failed.
    pub fn hear(&mut self, state: State, now: Nanos) -> Option<Whole> {
        let (rank, has_failed) = (state.rank as usize, state.has_failed);
        if state.turn != self.sums.turn() || rank >= self.heard.len() {
            return None;
        }
        self.heard[rank] = now;
        self.sums.hear(state);
        self.sums.has_failed |= has_failed;
        (self.is_whole() || self.sums.has_failed).then(|| self.sums.whole(0))
    }

    /// True if an agent is gone: it was not heard for too long, and has not ended its part.
    pub fn is_one_gone(&self, now: Nanos) -> bool {
        let is_old = |heard: Nanos| now.0.saturating_sub(heard.0) > self.silence.0;
        if !self.is_whole() {
            return is_old(self.since);
        }
        let mut both = self.sums.states().iter().zip(&self.heard);
        both.any(|(state, heard)| state.number > 0 && !state.is_over && is_old(*heard))
    }

    /// True once all agents have ended their parts.
    pub fn are_over(&self) -> bool {
        let mut known = self.sums.states().iter().filter(|state| state.number > 0);
        self.is_whole() && known.all(|state| state.is_over)
    }

    /// True once every agent has been heard: all shards were ready before the load.
    fn is_whole(&self) -> bool {
        self.sums.counts().ready == self.shards
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Counts;

    fn state(rank: u32, number: u64, sent: u64) -> State {
        let counts = Counts { ready: 2, sending_done: 2, sent, ..Counts::default() };
        State { turn: 3, rank, number, counts, ..State::default() }
    }

    fn at(seconds: u64) -> Nanos {
        Nanos::from_secs(seconds)
    }

    #[test]
    fn sums_are_those_of_all_or_none() {
        let mut peers = Peers::new(3, 4, at(10), at(0));
        assert_eq!(peers.hear(state(0, 1, 5), at(1)), None);
        assert_eq!(peers.hear(State { turn: 2, ..state(1, 9, 9) }, at(1)), None);
        assert_eq!(peers.hear(state(7, 1, 9), at(1)), None);
        let whole = peers.hear(state(1, 1, 7), at(1)).expect("all were heard");
        assert_eq!((whole.counts.sent, whole.counts.sending_done), (12, 4));
        assert!(!whole.is_held_here && !whole.has_failed);
    }

    #[test]
    fn an_agent_that_is_silent_is_gone_unless_it_is_done() {
        let mut peers = Peers::new(3, 4, at(10), at(0));
        peers.hear(state(0, 1, 5), at(9));
        assert!(!peers.is_one_gone(at(10)) && peers.is_one_gone(at(11)), "1 was never heard");
        peers.hear(state(1, 1, 5), at(11));
        assert!(!peers.is_one_gone(at(19)) && peers.is_one_gone(at(20)), "0 is silent");
        peers.hear(State { is_over: true, ..state(0, 2, 5) }, at(20));
        assert!(!peers.is_one_gone(at(21)) && !peers.are_over());
        peers.hear(State { is_over: true, ..state(1, 2, 5) }, at(21));
        assert!(!peers.is_one_gone(at(900)) && peers.are_over());
    }

    #[test]
    fn a_failure_of_one_is_heard_at_once() {
        let mut peers = Peers::new(3, 4, at(10), at(0));
        let whole = peers.hear(State { has_failed: true, ..state(0, 1, 5) }, at(1));
        assert!(whole.is_some_and(|whole| whole.has_failed));
    }
}
