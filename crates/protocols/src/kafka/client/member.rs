//! A consumer as a member of a group: what it knows about the group, and when it has to speak.

use weigh_model::Nanos;

use super::super::codec::Flaw;
use super::super::codec::embedded::{put_assignment, share_of, subscribes};
use super::super::codec::groups::Fellow;
use super::super::codec::requests::FetchFrom;
use super::super::group_plan::{GroupPlan, Left};

/// State of a member.
#[derive(Debug, Default)]
pub(super) struct Member {
    /// Id that the coordinator gave it; empty if it has none.
    pub(super) id: Vec<u8>,
    pub(super) generation: i32,
    /// Number of the broker of this connection.
    pub(super) broker: i32,
    /// Partitions that this broker leads, in rising order: what a leader divides.
    pub(super) led: Vec<i32>,
    /// What a leader gives to each member of the generation.
    pub(super) assignments: Vec<(Vec<u8>, Vec<u8>)>,
    /// Its own partitions.
    pub(super) partitions: Vec<i32>,
    /// Where it read on its last connection, until it continues there.
    pub(super) places: Option<Vec<FetchFrom>>,
    /// Members of the generation, if its leader says so.
    pub(super) fellows: Option<u32>,
    /// It was ready once, on this connection or an earlier one.
    pub(super) has_stood: bool,
    /// It was ready on this connection.
    pub(super) is_open: bool,
    pub(super) awaits_heartbeat: bool,
    pub(super) awaits_commit: bool,
    heartbeat_at: Nanos,
    commit_at: Nanos,
    /// Since when it has read nothing, in a rebalance.
    pub(super) stopped_at: Option<Nanos>,
    /// It may commit before it joins again: the coordinator still knows it.
    pub(super) may_commit: bool,
}

impl Member {
    /// A member that continues what its last connection left, if there was one.
    pub(super) fn new(broker: i32, led: Vec<i32>, left: Option<Left>, now: Nanos) -> Member {
        let Left { id, generation, places, has_stood } = left.unwrap_or_default();
        // The connection was lost in a rebalance.
        let stopped_at = (has_stood && places.is_none()).then_some(now);
        let own = Member { id, generation, broker, led, places, has_stood, ..Member::default() };
        Member { stopped_at, ..own }
    }

    /// What the next connection needs, if this one reads in these places.
    pub(super) fn left(&self, places: Option<Vec<FetchFrom>>) -> Left {
        Left {
            id: self.id.clone(),
            generation: self.generation,
            places: places.or_else(|| self.places.clone()),
            has_stood: self.has_stood,
        }
    }

    /// Divides the partitions among all members, as their leader.
    ///
    /// # Errors
    /// A subscription that cannot be read.
    pub(super) fn divide(&mut self, topic: &[u8], fellows: &[Fellow<'_>]) -> Result<(), Flaw> {
        let mut ids = Vec::with_capacity(fellows.len());
        for fellow in fellows {
            if subscribes(fellow.subscription, topic)? {
                ids.push(fellow.member);
            }
        }
        ids.sort_unstable();
        let count = fellows.len() as u32;
        let give = |(place, id): (usize, &&[u8])| {
            let mut assignment = Vec::new();
            put_assignment(&mut assignment, topic, share_of(&self.led, place, ids.len()), count);
            (id.to_vec(), assignment)
        };
        self.assignments = ids.iter().enumerate().map(give).collect();
        Ok(())
    }

    /// Begins to send heartbeats and commits.
    pub(super) fn start(&mut self, plan: &GroupPlan, now: Nanos) {
        (self.awaits_heartbeat, self.awaits_commit) = (false, false);
        self.heartbeat_at = now + plan.heartbeat;
        self.commit_at = match plan.commit {
            Nanos(0) => Nanos::NEVER,
            every => now + every,
        };
    }

    /// When it has to speak.
    pub(super) fn next(&self) -> Nanos {
        self.heartbeat_at.min(self.commit_at)
    }

    /// True if a heartbeat is due and the last one was answered; the next is due an interval later.
    pub(super) fn takes_heartbeat(&mut self, plan: &GroupPlan, now: Nanos) -> bool {
        if now < self.heartbeat_at {
            return false;
        }
        self.heartbeat_at = now + plan.heartbeat;
        !std::mem::replace(&mut self.awaits_heartbeat, true)
    }

    /// True if a commit is due and the last one was answered; the next is due an interval later.
    pub(super) fn takes_commit(&mut self, plan: &GroupPlan, now: Nanos) -> bool {
        if now < self.commit_at {
            return false;
        }
        self.commit_at = now + plan.commit;
        !std::mem::replace(&mut self.awaits_commit, true)
    }

    /// The coordinator does not know it any more: it needs another id.
    pub(super) fn forget_id(&mut self) {
        self.id.clear();
        self.generation = NO_GENERATION;
    }
}

/// The generation of a consumer without a membership.
const NO_GENERATION: i32 = -1;
