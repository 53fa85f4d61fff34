//! What the coordinator of a trial decides, from what it hears and the time alone. It sends nothing
//! and reads no clock, so a thousand agents run in a test on virtual time.

use std::time::Duration;

use weigh_engine::job::Failure;
use weigh_model::Nanos;

use super::hand::NotDone;
use super::start::Starting;
use crate::messages::{Answer, Fault, Start, State, Whole};
use crate::sums::Sums;

/// The decisions of a trial. All times are those of the coordinator's trial clock.
pub struct Control {
    turn: u64,
    shards: u32,
    silence: Nanos,
    /// Names of the agents, by rank.
    names: Vec<String>,
    /// What is known of the agents, and published to them.
    pub sums: Sums,
    starting: Starting,
    failing: Option<Failing>,
    /// How often the user has asked to stop.
    stop_level: u8,
    published: Option<Nanos>,
    is_changed: bool,
}

/// A trial that has failed, while agents say why.
struct Failing {
    failure: Option<Failure>,
    since: Nanos,
    lost: Vec<u32>,
}

/// When an agent was heard.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    /// Its rank.
    pub rank: u32,
    /// Time since its last answer.
    pub silent: Nanos,
    /// True if it no longer obeys.
    pub is_disowned: bool,
}

impl Control {
    /// A trial of `shards` shards on the agents of these names, by rank. One that is silent for
    /// longer than `silence` is lost.
    pub fn new(turn: u64, shards: u32, silence: Duration, names: Vec<String>) -> Control {
        let agents = names.len();
        Control {
            turn,
            shards,
            silence: Nanos(u64::try_from(silence.as_nanos()).unwrap_or(u64::MAX)),
            names,
            sums: Sums::new(turn, agents),
            starting: Starting::new(agents),
            failing: None,
            stop_level: 0,
            published: None,
            is_changed: true,
        }
    }

    /// Takes over an agent's state.
    pub fn hear(&mut self, state: State) {
        self.is_changed |= self.sums.hear(state);
    }

    /// Notes how often the user has asked to stop.
    pub fn stop(&mut self, level: u8) {
        self.is_changed |= level > self.stop_level;
        self.stop_level = self.stop_level.max(level);
    }

    /// An agent has not taken its part.
    pub fn note_not_taken(&mut self, rank: u32, why: NotDone, now: Nanos) {
        let name = self.name(rank);
        let failure = match why {
            NotDone::Refused(reason) => Failure::Ourselves(format!("{name}: {reason}")),
            NotDone::Lost(reason) => Failure::Lost(format!("{name}: {reason}")),
        };
        self.fail(failure, now);
    }

    /// An agent has answered whether it can start at the moment that was named. Returns the start
    /// to confirm, once all can.
    pub fn take_named(
        &mut self,
        rank: u32,
        answer: Result<Answer, String>,
        now: Nanos,
    ) -> Option<Start> {
        match self.starting.take_answer(rank, answer, now) {
            Ok(true) => {
                self.sums.start_ns = Some(self.starting.start().0);
                self.is_changed = true;
                return Some(self.start());
            }
            Ok(false) => {}
            Err(reason) => self.call_off(rank, &reason, now),
        }
        None
    }

    /// An agent has answered to the confirmation of the start. One that was not reached with it
    /// fails by itself.
    pub fn take_confirmed(&mut self, rank: u32, answer: Result<Answer, String>, now: Nanos) {
        if let Ok(Answer::Refused(reason)) = answer {
            self.call_off(rank, &reason, now);
        }
    }

    /// Sees which agents are lost, and which have failed.
    pub fn see_failures(&mut self, sightings: impl Iterator<Item = Sighting>, now: Nanos) {
        for Sighting { rank, silent, is_disowned } in sightings {
            let is_silent = silent > self.silence;
            if is_silent || is_disowned {
                let why = match is_silent {
                    true => format!("did not answer for {} s", self.silence.as_secs_f64()),
                    false => "was released, or was cut off for too long".to_owned(),
                };
                self.fail(Failure::Lost(format!("{} {why}", self.name(rank))), now);
                self.note_lost(rank);
            }
        }
        let mut faults = self.sums.states().iter().filter_map(|state| {
            let fault = state.fault.clone()?;
            Some((state.rank, matches!(fault, Fault::Lost { .. }), fault))
        });
        match faults.next() {
            Some((rank, is_lost, fault)) => {
                self.fail(fault.failure(&self.name(rank)), now);
                if is_lost {
                    self.note_lost(rank);
                }
            }
            None if self.sums.states().iter().any(|own| own.has_failed || own.is_alone) => {
                match self.is_stopped() {
                    true => self.end_everywhere(),
                    false => self.start_failing(now),
                }
            }
            None => {}
        }
    }

    /// True once the trial has failed, or was ended before its start.
    pub fn is_ending(&self) -> bool {
        self.failing.is_some() || self.sums.has_failed
    }

    /// True while agents say why the trial has failed.
    pub fn is_failing(&self) -> bool {
        self.failing.is_some()
    }

    /// Names the start once all shards are ready; `round_trip` is asked then, and is the longest
    /// to any agent. Fails if agents have not acknowledged it in time.
    pub fn name_start(&mut self, round_trip: impl FnOnce() -> Nanos, now: Nanos) -> Option<Start> {
        if self.sums.counts().ready == self.shards && !self.starting.is_named() {
            self.starting.name(now, round_trip());
            return Some(self.start());
        }
        if let Some(late) = self.starting.overdue(now)
            && !self.is_stopped()
        {
            let late = late.iter().map(|rank| self.name(*rank)).collect::<Vec<_>>().join(", ");
            let text = format!("the start was called off: {late} did not acknowledge it in time");
            self.fail(Failure::Lost(text), now);
        }
        None
    }

    /// How long to wait for an answer about the start.
    pub fn patience(&self) -> Duration {
        self.starting.patience()
    }

    /// The coordinator's observer is done with the connections.
    pub fn let_go(&mut self) {
        self.is_changed |= self.sums.is_held_here;
        self.sums.is_held_here = false;
    }

    /// True once everything is here, or all agents have said why they failed; `is_observed` once
    /// the observer has seen the end of the window.
    pub fn is_over(&self, is_observed: bool, now: Nanos) -> bool {
        let Some(failing) = &self.failing else {
            return self.sums.is_delivered() && is_observed;
        };
        let since = Nanos(now.0.saturating_sub(failing.since.0));
        let mut states = self.sums.states().iter().zip(0..);
        let all_over = states.all(|(state, rank)| {
            state.is_over || state.number == 0 || failing.lost.contains(&rank)
        });
        // An agent's reason may come after its failure.
        let is_known = failing.failure.is_some() || since > REASON_DELAY;
        (all_over && is_known && !self.is_changed) || since > FAILING_PATIENCE
    }

    /// Fails the trial, for the first reason that is given.
    pub fn fail(&mut self, failure: Failure, now: Nanos) {
        self.start_failing(now);
        if let Some(failing) = &mut self.failing {
            failing.failure.get_or_insert(failure);
        }
    }

    /// The state of all, if it is to be published now: after a change, and ten times a second.
    pub fn publish(&mut self, now: Nanos) -> Option<Whole> {
        let since = self.published.map(|published| Nanos(now.0.saturating_sub(published.0)));
        let is_due =
            since.is_none_or(|since| since >= EVERY || (self.is_changed && since >= self.apart()));
        is_due.then(|| {
            self.is_changed = false;
            self.published = Some(now);
            self.sums.whole(self.stop_level)
        })
    }

    /// The last states of the agents by rank, or why the trial has failed; and the agents that are
    /// lost.
    pub fn ended(&self) -> (Result<Vec<State>, Failure>, Vec<u32>) {
        match &self.failing {
            None => (Ok(self.sums.states().to_vec()), Vec::new()),
            Some(failing) => {
                let unknown = || Failure::Lost("an agent gave up without a reason".to_owned());
                (Err(failing.failure.clone().unwrap_or_else(unknown)), failing.lost.clone())
            }
        }
    }

    /// An agent in a sentence.
    pub fn name(&self, rank: u32) -> String {
        self.names.get(rank as usize).cloned().unwrap_or_else(|| format!("agent {rank}"))
    }

    fn start(&self) -> Start {
        Start { turn: self.turn, start_ns: self.starting.start().0 }
    }

    fn is_stopped(&self) -> bool {
        let mut states = self.sums.states().iter();
        self.stop_level > 0 || states.any(|state| state.stop_level > 0)
    }

    fn call_off(&mut self, rank: u32, reason: &str, now: Nanos) {
        // Without a load there is no start to keep.
        if !self.is_stopped() {
            let name = self.name(rank);
            let text = format!("the start was called off: {name}: {reason}");
            self.fail(Failure::Lost(text), now);
        }
    }

    /// Nothing more is expected of this agent in the trial.
    fn note_lost(&mut self, rank: u32) {
        let lost = self.failing.as_mut().map(|failing| &mut failing.lost);
        lost.filter(|lost| !lost.contains(&rank)).into_iter().for_each(|lost| lost.push(rank));
    }

    fn start_failing(&mut self, since: Nanos) {
        if self.failing.is_none() {
            self.failing = Some(Failing { failure: None, since, lost: Vec::new() });
            self.end_everywhere();
        }
    }

    /// Ends the shards of all agents, because some have failed, or were stopped before the start:
    /// then what they deliver is the result.
    fn end_everywhere(&mut self) {
        self.is_changed |= !self.sums.has_failed;
        self.sums.has_failed = true;
        self.sums.is_held_here = false;
    }

    /// The least time between two states of all, which every agent reads: more with many agents.
    fn apart(&self) -> Nanos {
        Nanos(APART_PER_AGENT.0.saturating_mul(self.names.len() as u64)).clamp(APART_MIN, EVERY)
    }
}

const EVERY: Nanos = Nanos::from_millis(100);
const APART_MIN: Nanos = Nanos::from_millis(5);
const APART_PER_AGENT: Nanos = Nanos(200_000);
const REASON_DELAY: Nanos = Nanos::from_secs(2);
/// Connections of a trial that failed are closed within this.
const FAILING_PATIENCE: Nanos = Nanos::from_secs(10);
