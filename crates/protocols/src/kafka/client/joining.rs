//! The way into a group: its coordinator, membership, the assignment, and where to begin to read.
//! Before the load a member waits until the group is complete; in a rebalance it takes its share.

use weigh_model::Nanos;
use weigh_model::connection::{Emit, Fault, Outbox, Signal};

use super::super::codec::embedded::{put_subscription, read_assignment};
use super::super::codec::groups::{self, Join, MemberOf};
use super::super::codec::requests::FetchFrom;
use super::super::errors;
use super::super::group_plan::{GROUP_WITHIN, GroupPlan};
use super::super::plan::Plan;
use super::consuming::UNKNOWN;
use super::member::Member;
use super::{Awaited, Client, Stage};

impl Client {
    /// Begins with the partitions that this broker, of this number, leads.
    pub(super) fn enter(&mut self, broker: i32, led: Vec<i32>, now: Nanos, out: &mut Outbox) {
        let left = self.plan.group.as_ref().and_then(|group| group.take(self.seat.index));
        self.state.member = Some(Box::new(Member::new(broker, led, left, now)));
        self.state.deadline = now + GROUP_WITHIN;
        self.find_coordinator(out);
    }

    fn find_coordinator(&mut self, out: &mut Outbox) {
        self.say(Awaited::Coordinator, Stage::Coordinator, out, |buffer, number, own| {
            groups::put_find_coordinator(buffer, number, own.group.name.as_bytes());
        });
    }

    /// Sends a request of a member, and goes to this stage.
    pub(super) fn say(
        &mut self,
        what: Awaited,
        stage: Stage,
        out: &mut Outbox,
        put: impl FnOnce(&mut Vec<u8>, i32, &Own<'_>),
    ) {
        self.request(what, stage, out, |client, buffer, number| {
            let plan = &client.plan;
            let (Some(group), Some(member)) = (&plan.group, &client.state.member) else { return };
            let id = MemberOf {
                group: group.name.as_bytes(),
                generation: member.generation,
                member: &member.id,
            };
            put(buffer, number, &Own { plan, group, member, id });
        });
        if stage != Stage::Ready {
            self.wake_at = self.state.deadline;
        }
    }

    /// Takes an answer until it is in the group.
    pub(super) fn entering(
        &mut self,
        what: Awaited,
        fields: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        match what {
            Awaited::Coordinator => self.coordinated(fields, now, out),
            Awaited::Join => self.joined(fields, now, out),
            Awaited::Sync => self.assigned(fields, now, out, emit),
            _ => self.recalled(fields, now, out, emit),
        }
    }

    fn coordinated(&mut self, fields: &[u8], now: Nanos, out: &mut Outbox) -> Result<(), Fault> {
        let found = groups::read_find_coordinator(fields)?;
        let Some(member) = self.state.member.as_deref_mut() else { return Ok(()) };
        match found.error {
            errors::NONE if found.node != member.broker => {
                let reason = format!(
                    "{} is coordinated by kafka://{}:{}, and a client stays at the broker of its \
                     URL: type that one, or another kafka.group, whose name decides about it",
                    self.group_name(),
                    found.host,
                    found.port
                );
                Err(Fault::Refused { code: errors::NOT_COORDINATOR as u16, reason })
            }
            errors::NONE => match member.places.take() {
                Some(places) => {
                    self.resume(&places, out);
                    Ok(())
                }
                None => self.join(now, out),
            },
            error => self.pause_or_end(error, now),
        }
    }

    /// Continues as the member that the last connection was, where it read, if the coordinator
    /// still knows it: what another one reads by now is not read twice.
    fn resume(&mut self, places: &[FetchFrom], out: &mut Outbox) {
        let Some(member) = self.state.member.as_deref_mut() else { return };
        member.partitions = places.iter().map(|own| own.partition).collect();
        self.begin_at(Some(places.iter().map(|own| own.offset).collect()));
        self.heartbeat(Stage::Resuming, out);
    }

    /// Asks for membership, with the id that the coordinator gave, if it did.
    pub(super) fn join(&mut self, now: Nanos, out: &mut Outbox) -> Result<(), Fault> {
        if now >= self.state.deadline {
            return Err(self.not_complete());
        }
        self.say(Awaited::Join, Stage::Joining, out, |buffer, number, own| {
            let mut subscription = Vec::new();
            put_subscription(&mut subscription, own.plan.topic.as_bytes());
            let join = Join {
                group: own.id.group,
                member: own.id.member,
                session_ms: milliseconds(own.group.session),
                rebalance_ms: REBALANCE_MS,
                subscription: &subscription,
            };
            groups::put_join_group(buffer, number, &join);
        });
        Ok(())
    }

    fn joined(&mut self, fields: &[u8], now: Nanos, out: &mut Outbox) -> Result<(), Fault> {
        let joined = groups::read_join_group(fields)?;
        let Some(member) = self.state.member.as_deref_mut() else { return Ok(()) };
        match joined.error {
            errors::NONE => {
                member.id = joined.member.to_vec();
                member.generation = joined.generation;
                member.assignments.clear();
                if joined.leader == joined.member {
                    member.divide(self.plan.topic.as_bytes(), &joined.fellows)?;
                }
                self.say(Awaited::Sync, Stage::Syncing, out, |buffer, number, own| {
                    groups::put_sync_group(buffer, number, &own.id, &own.member.assignments);
                });
                Ok(())
            }
            errors::MEMBER_ID_REQUIRED if member.id.is_empty() && !joined.member.is_empty() => {
                member.id = joined.member.to_vec();
                self.join(now, out)
            }
            error => self.pause_or_end(error, now),
        }
    }

    /// SyncGroup: the partitions of this member.
    fn assigned(
        &mut self,
        fields: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let (error, bytes) = groups::read_sync_group(fields)?;
        match error {
            errors::NONE => {}
            errors::REBALANCE_IN_PROGRESS => return self.join(now, out),
            error => return self.pause_or_end(error, now),
        }
        let plan = self.plan.clone();
        let assignment = read_assignment(bytes, plan.topic.as_bytes())?;
        let (Some(group), Some(member)) = (&plan.group, self.state.member.as_deref_mut()) else {
            return Ok(());
        };
        let other = assignment.partitions.iter().find(|own| !member.led.contains(own));
        if let Some(other) = other {
            let topic = &plan.topic;
            let text = format!("assigned partition {other} of {topic}, which it does not lead");
            return Err(Fault::Malformed(text));
        }
        member.partitions = assignment.partitions;
        member.fellows = assignment.members;
        let (is_complete, has_stood) = (member.fellows == Some(group.members), member.has_stood);
        match (has_stood, is_complete) {
            (true, _) if self.is_without_partitions() => self.stand(now, out, emit),
            (true, _) => self.recall(out),
            (false, true) => {
                self.begin_at(None);
                self.ask(Awaited::Offsets, out);
            }
            (false, false) => {
                self.stage = Stage::Gathering;
                self.wake_at = (now + ASK_AFTER).min(self.state.deadline);
            }
        }
        Ok(())
    }

    fn is_without_partitions(&self) -> bool {
        self.state.member.as_ref().is_none_or(|member| member.partitions.is_empty())
    }

    /// Begins to read its partitions at these offsets, or at ones that are not known yet.
    fn begin_at(&mut self, offsets: Option<Vec<i64>>) {
        let Some(member) = &self.state.member else { return };
        let offsets = offsets.unwrap_or_else(|| vec![UNKNOWN; member.partitions.len()]);
        let topic = &self.plan.topic;
        self.state.consuming.start(topic, &member.partitions, Some(offsets));
    }

    /// Asks where the group has read to.
    pub(super) fn recall(&mut self, out: &mut Outbox) {
        self.say(Awaited::Recall, Stage::Recalling, out, |buffer, number, own| {
            let (topic, partitions) = (own.plan.topic.as_bytes(), &own.member.partitions);
            groups::put_offset_fetch(buffer, number, own.id.group, topic, partitions);
        });
    }

    /// OffsetFetch: where the group has read to.
    fn recalled(
        &mut self,
        fields: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let (error, found) = groups::read_offset_fetch(fields)?;
        let failed = found.iter().map(|own| own.error).find(|error| *error != errors::NONE);
        match (error, failed) {
            (errors::NONE, None) => {}
            (errors::NONE, Some(error)) | (error, _) => return self.pause_or_end(error, now),
        }
        let Some(member) = &self.state.member else { return Ok(()) };
        let offset_of = |partition: &i32| {
            let own = found.iter().find(|own| own.partition == *partition);
            own.map(|own| own.offset.max(UNKNOWN))
        };
        let offsets: Option<Vec<i64>> = member.partitions.iter().map(offset_of).collect();
        let Some(offsets) = offsets else {
            return Err(Fault::Malformed("OffsetFetch without a partition".to_owned()));
        };
        self.begin_at(Some(offsets));
        self.proceed(now, out, emit);
        Ok(())
    }

    /// Reads on, once all offsets are known.
    pub(super) fn proceed(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        let places = self.state.consuming.places();
        match places.iter().all(|own| own.offset > UNKNOWN) {
            true => self.stand(now, out, emit),
            false => self.ask(Awaited::Offsets, out),
        }
    }

    /// The offsets are known: before the load the group commits them, so that a rebalance before
    /// the first commit loses nothing.
    pub(super) fn begun(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        match self.state.member.as_ref().is_some_and(|member| member.has_stood) {
            true => self.stand(now, out, emit),
            false => self.commit(Stage::Committing, out),
        }
    }

    /// Messages may flow.
    pub(super) fn stand(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        let plan = self.plan.clone();
        let (Some(group), Some(member)) = (&plan.group, self.state.member.as_deref_mut()) else {
            return;
        };
        if !std::mem::replace(&mut member.is_open, true) {
            emit(Signal::Ready);
        }
        member.has_stood = true;
        if let Some(since) = member.stopped_at.take() {
            emit(Signal::Regrouped(now.since(since)));
        }
        member.start(group, now);
        self.wake_at = member.next();
        self.stage = Stage::Ready;
        if !self.is_without_partitions() {
            self.fetch(out);
        }
    }

    /// An error before it is in the group: asks again a moment later if it passes by itself.
    pub(super) fn pause_or_end(&mut self, error: i16, now: Nanos) -> Result<(), Fault> {
        match error {
            errors::UNKNOWN_MEMBER_ID => {
                if let Some(member) = self.state.member.as_deref_mut() {
                    member.forget_id();
                }
                self.stage = Stage::Joining;
            }
            errors::ILLEGAL_GENERATION | errors::REBALANCE_IN_PROGRESS => {
                self.stage = Stage::Joining;
            }
            errors::NOT_COORDINATOR => self.stage = Stage::Coordinator,
            // A member that has an id already is asked for one: it is not known any more.
            errors::MEMBER_ID_REQUIRED => self.stage = Stage::Joining,
            error if errors::is_passing(error) => {}
            error => return Err(errors::refused(error, &self.group_name())),
        }
        self.wait(error, now);
        Ok(())
    }

    /// Its time has come before it is in the group: it repeats a request, or gives the group up.
    pub(super) fn wake_member(&mut self, now: Nanos, out: &mut Outbox) -> Result<(), Fault> {
        if now >= self.state.deadline {
            return Err(self.not_complete());
        }
        self.wake_at = self.state.deadline;
        if !self.state.awaited.is_empty() {
            return Ok(());
        }
        match self.stage {
            Stage::Coordinator => self.find_coordinator(out),
            Stage::Joining => return self.join(now, out),
            Stage::Recalling => self.recall(out),
            Stage::Committing => self.commit(Stage::Committing, out),
            Stage::Gathering | Stage::Resuming => self.heartbeat(self.stage, out),
            _ => {}
        }
        Ok(())
    }

    /// Why the group is given up.
    fn not_complete(&self) -> Fault {
        let name = self.group_name();
        let fellows = self.state.member.as_ref().and_then(|member| member.fellows);
        let unanswered = match self.stage {
            Stage::Coordinator => "FindCoordinator",
            Stage::Joining => "JoinGroup",
            Stage::Syncing => "SyncGroup, and the leader of the group assigns the partitions",
            Stage::Recalling => "OffsetFetch",
            Stage::Committing => "OffsetCommit",
            Stage::Resuming => "Heartbeat",
            _ => "Fetch",
        };
        let found = match (self.stage, fellows, self.state.awaited.is_empty()) {
            (Stage::Gathering, Some(members), _) => {
                let own = self.plan.group.as_ref().map_or(0, |group| group.members);
                format!(
                    "it has {members} members, and this load {own} consumers; another program, or \
                     one that was killed, is in it: type another kafka.group"
                )
            }
            (Stage::Gathering, None, _) => {
                "another program leads it: type another kafka.group".to_owned()
            }
            (_, _, true) => return errors::refused(self.state.passing, &name),
            (_, _, false) => format!("the broker did not answer {unanswered}"),
        };
        let reason = format!("{name} was not complete in time: {found}");
        Fault::Refused { code: errors::REBALANCE_IN_PROGRESS as u16, reason }
    }

    pub(super) fn group_name(&self) -> String {
        format!("group {}", self.plan.group.as_ref().map_or("", |group| &group.name))
    }
}

/// What requests of a member are made of.
pub(super) struct Own<'a> {
    pub(super) plan: &'a Plan,
    pub(super) group: &'a GroupPlan,
    pub(super) member: &'a Member,
    pub(super) id: MemberOf<'a>,
}

fn milliseconds(time: Nanos) -> i32 {
    time.0.div_ceil(1_000_000).min(i32::MAX as u64) as i32
}

/// Interval at which a member asks whether more have come, before the load.
const ASK_AFTER: Nanos = Nanos::from_millis(100);

/// How long the broker waits for a member that is to join again: `max.poll.interval.ms` of Kafka's
/// clients.
const REBALANCE_MS: i32 = 300_000;
