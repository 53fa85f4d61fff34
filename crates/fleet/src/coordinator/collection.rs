//! Reads from the object store what agents found: after a trial, or once its coordinator was
//! killed.

use std::ops::Range;
use std::time::Duration;

use weigh_engine::outcome::ShardOutcome;
use weigh_model::Nanos;

use super::outcome::{FleetOutcome, HostPart};
use super::trial_clocks::skew_bound;
use crate::bus::Bus;
use crate::facts::AgentFacts;
use crate::hash::Hash;
use crate::messages::read;
use crate::order::Attempt;
use crate::stored_part::{KnownClock, StoredPart};
use crate::subjects;

/// The objects of one attempt at a trial.
pub struct Collection<'f> {
    /// The bus.
    pub bus: &'f Bus,
    /// The attempt.
    pub attempt: &'f Attempt,
    /// Number of shards of all agents together.
    pub shards: u32,
    /// Number of agents.
    pub agents: u32,
}

/// What an agent reported of its part.
pub struct Reported<'f> {
    /// Its rank.
    pub rank: u32,
    /// Its host.
    pub facts: &'f AgentFacts,
    /// The shards that it ran.
    pub here: Range<u32>,
    /// Hashes of their outcomes.
    pub hashes: &'f [Hash],
    /// What is known of its clock.
    pub clock: KnownClock,
    /// Time from the arrival of the confirmed start to the start, nanoseconds.
    pub start_slack_ns: u64,
}

impl Collection<'_> {
    /// Names of all its objects.
    pub fn names(&self) -> Vec<String> {
        let outcomes = (0..self.shards).map(|shard| subjects::outcome(self.attempt, shard));
        let messages = (0..self.agents).map(|rank| subjects::messages(self.attempt, rank));
        let parts = (0..self.agents).map(|rank| subjects::part(self.attempt, rank));
        outcomes.chain(messages).chain(parts).collect()
    }

    /// Reads the outcomes of an agent.
    ///
    /// # Errors
    /// Outcomes that are missing, unreadable, or not those that the agent stored.
    pub fn part(&self, own: &Reported<'_>) -> Result<(HostPart, Vec<ShardOutcome>), String> {
        let Reported { rank, facts, here, hashes, clock, start_slack_ns } = own;
        if hashes.len() != here.len() {
            return Err(format!("{} outcomes were stored of {} shards", hashes.len(), here.len()));
        }
        let outcomes = here.clone().zip(*hashes).map(|(shard, hash)| self.outcome(shard, *hash));
        let outcomes = outcomes.collect::<Result<Vec<_>, _>>()?;
        let part = HostPart {
            rank: *rank,
            name: facts.name.clone(),
            shards: here.clone(),
            offset_ns: clock.offset_ns,
            clock_bound_ns: clock.error_ns,
            drift_ppm: clock.drift_ppm,
            drift_bound_ppm: clock.drift_bound_ppm,
            start_slack_ns: *start_slack_ns,
            cpu: outcomes.iter().fold(Nanos(0), |sum, outcome| sum + outcome.cpu),
            cpu_max: outcomes.iter().map(|outcome| outcome.cpu).max().unwrap_or_default(),
            facts: (*facts).clone(),
        };
        Ok((part, outcomes))
    }

    /// Reads the record of single messages of an agent.
    ///
    /// # Errors
    /// A record that is missing, or is not the one that the agent stored.
    pub fn messages(&self, rank: u32, hash: Hash) -> Result<Vec<u8>, String> {
        let bytes = self.bus.get(&subjects::messages(self.attempt, rank), MESSAGES_PATIENCE);
        let bytes = bytes.map_err(|error| error.to_string())?;
        match Hash::of(&bytes) == hash {
            true => Ok(bytes),
            false => Err("the record of single messages is not the one it stored".to_owned()),
        }
    }

    /// Reads a trial whose coordinator is gone. Clock errors are those at the start: what the
    /// clocks drifted since is not known.
    ///
    /// # Errors
    /// What is missing of a trial that is not complete.
    pub fn without_coordinator(&self) -> Result<FleetOutcome, String> {
        let (mut shards, mut hosts, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        let mut messages = Vec::new();
        for part in self.stored_parts()? {
            let name = format!("agent {} ({})", part.rank, part.facts.name);
            if part.here.start as usize != shards.len() {
                return Err(format!("{name} stored shards that do not follow those before it"));
            }
            let unknown = || format!("{name} did not hear how well its clock is known");
            let clock = part.clock.ok_or_else(unknown)?;
            let reported = Reported {
                rank: part.rank,
                facts: &part.facts,
                here: part.here.clone(),
                hashes: &part.outcomes,
                clock,
                start_slack_ns: part.start_slack_ns,
            };
            let (host, outcomes) =
                self.part(&reported).map_err(|reason| format!("{name}: {reason}"))?;
            let kept = part.messages.map(|hash| self.messages(part.rank, hash)).transpose();
            messages.extend(kept.map_err(|reason| format!("{name}: {reason}"))?);
            errors.push(clock.error_ns);
            hosts.push(host);
            shards.extend(outcomes);
        }
        if shards.len() != self.shards as usize {
            return Err(format!("{} of {} outcomes are there", shards.len(), self.shards));
        }
        if shards.iter().any(|shard| shard.was_interrupted || shard.failure.is_some()) {
            return Err("it was stopped or failed".to_owned());
        }
        Ok(FleetOutcome { shards, hosts, messages, start_skew_bound_ns: skew_bound(&errors) })
    }

    /// The parts of all agents, by rank.
    fn stored_parts(&self) -> Result<Vec<StoredPart>, String> {
        let names: Vec<String> =
            (0..self.agents).map(|rank| subjects::part(self.attempt, rank)).collect();
        let there = names.iter().filter(|name| self.bus.has(name)).count();
        if there < names.len() {
            return Err(format!("{there} of {} agents have stored their outcomes", names.len()));
        }
        let part = |name: &String| {
            let bytes = self.bus.get(name, PATIENCE).map_err(|error| error.to_string())?;
            read(&bytes).ok_or_else(|| format!("{name} is unreadable"))
        };
        names.iter().map(part).collect()
    }

    fn outcome(&self, shard: u32, hash: Hash) -> Result<ShardOutcome, String> {
        let bytes = self.bus.get(&subjects::outcome(self.attempt, shard), PATIENCE);
        let bytes = bytes.map_err(|error| error.to_string())?;
        if Hash::of(&bytes) != hash {
            return Err(format!("the outcome of shard {shard} is not the one it stored"));
        }
        let unreadable = |error| format!("the outcome of shard {shard} is unreadable: {error}");
        ShardOutcome::from_bytes(&bytes).map_err(unreadable)
    }
}

const PATIENCE: Duration = Duration::from_secs(30);
/// A record may be a gigabyte.
const MESSAGES_PATIENCE: Duration = Duration::from_secs(300);
