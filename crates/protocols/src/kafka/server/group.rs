//! A consumer group as its coordinator sees it: members, the generation, and committed offsets.
//! Time passes for it when a request comes: a member that was silent for too long is removed then.

use std::collections::BTreeMap;
use std::sync::Arc;

use weigh_model::Nanos;

use super::place::Place;
use crate::kafka::errors;

/// A group.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) generation: i32,
    phase: Phase,
    members: BTreeMap<Id, Member>,
    leader: Id,
    /// Name of the strategy that all members know.
    pub(super) protocol: Box<[u8]>,
    /// Ids of members that have not joined with them yet, and until when they are kept.
    announced: BTreeMap<Id, Nanos>,
    /// Until when members that have not joined are waited for.
    rebalance_until: Nanos,
    /// Next offsets and the words of the member, by topic and partition.
    pub(super) offsets: BTreeMap<(Arc<[u8]>, i32), Committed>,
    /// Connections whose request can be answered now.
    woken: Vec<Place>,
}

/// Id of a member.
pub(super) type Id = Box<[u8]>;

/// Where a group stands (`GroupState` of Kafka).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Empty,
    /// Members are to join.
    Preparing,
    /// The leader is to assign the partitions.
    Completing,
    Stable,
}

/// What a group has read to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Committed {
    pub(super) offset: i64,
    pub(super) words: Option<Box<[u8]>>,
}

/// How a member wants to take part.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) session: Nanos,
    pub(super) rebalance: Nanos,
    pub(super) kind: Box<[u8]>,
    /// Strategies that it knows, the preferred one first.
    pub(super) protocols: Vec<Strategy>,
}

/// Name of a strategy, and the subscription of a member for it.
pub(super) type Strategy = (Box<[u8]>, Box<[u8]>);

#[derive(Debug)]
struct Member {
    wish: Wish,
    expires: Nanos,
    /// It joined the generation, or the one that is prepared.
    has_joined: bool,
    waits: Waits,
    assignment: Box<[u8]>,
}

/// A request of a member that is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Nothing,
    Join(Place),
    Sync(Place),
}

/// What becomes of a request to join or to get an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The generation is complete: the id of the member.
    Ready(Id),
    /// It is decided by then.
    Waits(Nanos),
}

impl Group {
    /// A request to join, from a member with this id.
    ///
    /// # Errors
    /// The code of Kafka's answer.
    pub(super) fn join(
        &mut self,
        id: &[u8],
        wish: Wish,
        place: Place,
        now: Nanos,
    ) -> Result<Entry, i16> {
        self.expire(now);
        let is_announced = self.announced.contains_key(id);
        let known = self.members.get(id);
        if known.is_none() && !is_announced {
            return Err(errors::UNKNOWN_MEMBER_ID);
        }
        if !self.fits(id, &wish) {
            return Err(errors::INCONSISTENT_GROUP_PROTOCOL);
        }
        let is_full = self.members.len() >= MEMBERS_MAX || self.bytes_with(&wish) > BYTES_MAX;
        if known.is_none() && is_full {
            return Err(errors::GROUP_MAX_SIZE_REACHED);
        }
        let is_same = known.is_some_and(|own| own.wish.protocols == wish.protocols);
        let stays = match self.phase {
            Phase::Completing => is_same,
            Phase::Stable => is_same && *self.leader != *id,
            Phase::Empty | Phase::Preparing => false,
        };
        self.announced.remove(id);
        let expires = now + wish.session;
        if stays {
            self.members.get_mut(id).into_iter().for_each(|own| own.expires = expires);
            return Ok(Entry::Ready(id.into()));
        }
        let assignment = Box::default();
        let waits = Waits::Join(place);
        let member = Member { wish, expires, has_joined: true, waits, assignment };
        self.members.insert(id.into(), member);
        self.prepare(now);
        if self.phase == Phase::Preparing {
            return Ok(Entry::Waits(self.undecided_until(now)));
        }
        Ok(self.answered(id.into(), place, now))
    }

    /// Takes a new id for a member; it is kept as long as its session.
    ///
    /// # Errors
    /// If there are too many.
    pub(super) fn announce(&mut self, id: &[u8], until: Nanos) -> Result<(), i16> {
        if self.announced.len() >= MEMBERS_MAX {
            return Err(errors::GROUP_MAX_SIZE_REACHED);
        }
        self.announced.insert(id.into(), until);
        Ok(())
    }

    /// A request to join that waits at this place: whether it is decided now.
    ///
    /// # Errors
    /// The code of Kafka's answer.
    pub(super) fn joined(&mut self, place: Place, now: Nanos) -> Result<Entry, i16> {
        self.expire(now);
        let waiting = self.waiting(Waits::Join(place)).ok_or(errors::UNKNOWN_MEMBER_ID)?;
        match self.phase {
            Phase::Preparing => Ok(Entry::Waits(self.undecided_until(now))),
            _ => Ok(self.answered(waiting, place, now)),
        }
    }

    /// A request that waited at this place is answered; its member was not silent meanwhile.
    fn answered(&mut self, id: Id, place: Place, now: Nanos) -> Entry {
        self.woken.retain(|own| *own != place);
        if let Some(member) = self.members.get_mut(&id) {
            member.waits = Waits::Nothing;
            member.expires = now + member.wish.session;
        }
        Entry::Ready(id)
    }

    /// A request for an assignment; the leader brings those of all members.
    ///
    /// # Errors
    /// The code of Kafka's answer.
    pub(super) fn sync(
        &mut self,
        id: &[u8],
        generation: i32,
        assignments: &[(&[u8], &[u8])],
        place: Place,
        now: Nanos,
    ) -> Result<Entry, i16> {
        self.alive(id, generation, now)?;
        match self.phase {
            Phase::Empty => return Err(errors::UNKNOWN_MEMBER_ID),
            Phase::Preparing => return Err(errors::REBALANCE_IN_PROGRESS),
            Phase::Stable => return Ok(Entry::Ready(id.into())),
            Phase::Completing => {}
        }
        if *self.leader == *id {
            for (member, assignment) in assignments {
                if let Some(member) = self.members.get_mut(*member) {
                    member.assignment = (*assignment).into();
                }
            }
            self.phase = Phase::Stable;
            self.wake_all();
            return Ok(Entry::Ready(id.into()));
        }
        if let Some(member) = self.members.get_mut(id) {
            member.waits = Waits::Sync(place);
        }
        Ok(Entry::Waits(self.leader_until(now)))
    }

    /// A request for an assignment that waits at this place: whether it is decided now.
    ///
    /// # Errors
    /// The code of Kafka's answer.
    pub(super) fn synced(&mut self, place: Place, now: Nanos) -> Result<Entry, i16> {
        self.expire(now);
        let waiting = self.waiting(Waits::Sync(place)).ok_or(errors::UNKNOWN_MEMBER_ID)?;
        match self.phase {
            Phase::Completing => Ok(Entry::Waits(self.leader_until(now))),
            Phase::Stable => Ok(self.answered(waiting, place, now)),
            Phase::Empty | Phase::Preparing => {
                self.answered(waiting, place, now);
                Err(errors::REBALANCE_IN_PROGRESS)
            }
        }
    }

    /// A sign of life of a member of this generation.
    ///
    /// # Errors
    /// The code of Kafka's answer.
    pub(super) fn heartbeat(&mut self, id: &[u8], generation: i32, now: Nanos) -> Result<(), i16> {
        self.alive(id, generation, now)?;
        match self.phase {
            Phase::Preparing => Err(errors::REBALANCE_IN_PROGRESS),
            _ => Ok(()),
        }
    }

    /// True if this member may commit. A commit without a membership is one by a program that
    /// assigns itself its partitions.
    ///
    /// # Errors
    /// The code of Kafka's answer.
    pub(super) fn may_commit(&mut self, id: &[u8], generation: i32, now: Nanos) -> Result<(), i16> {
        if generation < 0 && id.is_empty() {
            self.expire(now);
            return match self.members.is_empty() {
                true => Ok(()),
                false => Err(errors::UNKNOWN_MEMBER_ID),
            };
        }
        self.alive(id, generation, now)?;
        match self.phase {
            Phase::Completing => Err(errors::REBALANCE_IN_PROGRESS),
            _ => Ok(()),
        }
    }

    /// The end of a membership.
    ///
    /// # Errors
    /// The code of Kafka's answer.
    pub(super) fn leave(&mut self, id: &[u8], now: Nanos) -> Result<(), i16> {
        self.expire(now);
        let was_announced = self.announced.remove(id).is_some();
        match self.members.remove(id) {
            Some(member) => {
                self.wake(member.waits);
                self.prepare(now);
                Ok(())
            }
            None if was_announced => Ok(()),
            None => Err(errors::UNKNOWN_MEMBER_ID),
        }
    }

    /// A connection is gone: no request of it waits.
    pub(super) fn forget(&mut self, place: Place) {
        for member in self.members.values_mut() {
            if matches!(member.waits, Waits::Join(own) | Waits::Sync(own) if own == place) {
                member.waits = Waits::Nothing;
            }
        }
    }

    /// Id of the leader.
    pub(super) fn leader(&self) -> &[u8] {
        &self.leader
    }

    /// Each member with its subscription for the chosen strategy.
    pub(super) fn subscriptions(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.members.iter().map(|(id, member)| {
            let own = member.wish.protocols.iter().find(|(name, _)| *name == self.protocol);
            (&**id, own.map_or(&[][..], |(_, subscription)| subscription))
        })
    }

    pub(super) fn assignment(&self, id: &[u8]) -> &[u8] {
        self.members.get(id).map_or(&[], |member| &member.assignment)
    }

    /// True if nothing is left of it.
    pub(super) fn is_gone(&self) -> bool {
        self.members.is_empty() && self.announced.is_empty() && self.offsets.is_empty()
    }

    /// Takes the connections whose request can be answered now.
    pub(super) fn take_woken(&mut self) -> Vec<Place> {
        std::mem::take(&mut self.woken)
    }

    /// Removes members that were silent for too long, and ends a rebalance whose time is over.
    pub(super) fn expire(&mut self, now: Nanos) {
        self.announced.retain(|_, until| *until > now);
        let before = self.members.len();
        self.members.retain(|_, own| own.waits != Waits::Nothing || own.expires > now);
        let is_over = self.phase == Phase::Preparing && now >= self.rebalance_until;
        if is_over {
            self.members.retain(|_, own| own.has_joined);
        }
        let lost_leader =
            self.phase == Phase::Completing && !self.members.contains_key(&self.leader);
        if self.members.len() < before || lost_leader {
            self.prepare(now);
        }
    }

    /// Asks a member that is known, in its generation.
    fn alive(&mut self, id: &[u8], generation: i32, now: Nanos) -> Result<(), i16> {
        self.expire(now);
        let member = self.members.get_mut(id).ok_or(errors::UNKNOWN_MEMBER_ID)?;
        if generation != self.generation {
            return Err(errors::ILLEGAL_GENERATION);
        }
        member.expires = now + member.wish.session;
        Ok(())
    }

    /// Something changed: the members have to join again. If all have, the generation is complete.
    fn prepare(&mut self, now: Nanos) {
        if self.members.is_empty() {
            self.phase = Phase::Empty;
            self.generation = self.generation.wrapping_add(1);
            return;
        }
        if self.phase != Phase::Preparing {
            self.phase = Phase::Preparing;
            let longest = self.members.values().map(|own| own.wish.rebalance).max();
            self.rebalance_until = now + longest.unwrap_or_default();
            for member in self.members.values_mut() {
                member.has_joined = matches!(member.waits, Waits::Join(_));
            }
            self.wake_all();
        }
        if self.members.values().all(|own| own.has_joined) {
            self.complete(now);
        }
    }

    fn complete(&mut self, now: Nanos) {
        self.generation = self.generation.wrapping_add(1).max(1);
        self.phase = Phase::Completing;
        self.protocol = self.shared_protocol();
        if !self.members.contains_key(&self.leader) {
            self.leader = self.members.keys().next().cloned().unwrap_or_default();
        }
        for member in self.members.values_mut() {
            member.expires = now + member.wish.session;
            member.assignment = Box::default();
        }
        self.wake_all();
    }

    /// The strategy that all members know, by the order of the leader or the first member.
    fn shared_protocol(&self) -> Box<[u8]> {
        let first = self.members.get(&self.leader).or(self.members.values().next());
        let names = first.into_iter().flat_map(|own| own.wish.protocols.iter());
        let mut names = names.map(|(name, _)| name);
        let common = names.find(|name| self.members.values().all(|own| own.wish.knows(name)));
        common.cloned().unwrap_or_default()
    }

    /// True if a member has the kind of the others and a strategy that all of them know.
    fn fits(&self, id: &[u8], wish: &Wish) -> bool {
        let others = || self.members.iter().filter(|(own, _)| ***own != *id);
        let is_same_kind = others().all(|(_, own)| own.wish.kind == wish.kind);
        let is_known = |name: &[u8]| others().all(|(_, own)| own.wish.knows(name));
        is_same_kind && wish.protocols.iter().any(|(name, _)| is_known(name))
    }

    fn bytes_with(&self, wish: &Wish) -> usize {
        let all = self.members.values().map(|own| &own.wish).chain([wish]);
        let protocols = all.flat_map(|own| own.protocols.iter());
        protocols.map(|(name, subscription)| name.len() + subscription.len()).sum()
    }

    /// When a rebalance is looked at again: members that did not join may be gone by then.
    fn undecided_until(&self, now: Nanos) -> Nanos {
        let missing = self.members.values().filter(|own| !own.has_joined);
        let first = missing.map(|own| own.expires).fold(self.rebalance_until, Nanos::min);
        first.max(now + LOOK_AFTER)
    }

    /// When the leader may be gone.
    fn leader_until(&self, now: Nanos) -> Nanos {
        let expires = self.members.get(&self.leader).map_or(now, |own| own.expires);
        expires.max(now + LOOK_AFTER)
    }

    fn waiting(&self, how: Waits) -> Option<Id> {
        let found = self.members.iter().find(|(_, own)| own.waits == how);
        found.map(|(id, _)| id.clone())
    }

    fn wake_all(&mut self) {
        let all: Vec<Waits> = self.members.values().map(|own| own.waits).collect();
        all.into_iter().for_each(|waits| self.wake(waits));
    }

    fn wake(&mut self, waits: Waits) {
        if let Waits::Join(place) | Waits::Sync(place) = waits {
            self.woken.push(place);
        }
    }
}

impl Wish {
    fn knows(&self, name: &[u8]) -> bool {
        self.protocols.iter().any(|(own, _)| **own == *name)
    }
}

/// Shortest time until a request that waits is looked at again.
const LOOK_AFTER: Nanos = Nanos::from_millis(10);

/// Most members of a group, and most bytes of their subscriptions.
const MEMBERS_MAX: usize = 1000;
const BYTES_MAX: usize = 1 << 20;
