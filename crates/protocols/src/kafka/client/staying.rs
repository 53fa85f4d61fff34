//! Life in a group: heartbeats, commits, the notice of a rebalance, and the end of the membership.

use weigh_model::Nanos;
use weigh_model::connection::{Emit, Fault, Outbox};

use super::super::codec::groups;
use super::super::errors;
use super::super::group_plan::GROUP_WITHIN;
use super::{Awaited, Client, Stage};

impl Client {
    /// Sends what is due: a heartbeat, a commit. Both wait behind the fetch that the broker holds.
    pub(super) fn stay(&mut self, now: Nanos, out: &mut Outbox) {
        let plan = self.plan.clone();
        let (Some(group), Some(member)) = (&plan.group, self.state.member.as_deref_mut()) else {
            return;
        };
        let commits = member.takes_commit(group, now);
        let beats = member.takes_heartbeat(group, now);
        self.wake_at = member.next();
        if commits {
            self.commit(Stage::Ready, out);
        }
        if beats {
            self.heartbeat(Stage::Ready, out);
        }
    }

    pub(super) fn heartbeat(&mut self, stage: Stage, out: &mut Outbox) {
        self.say(Awaited::Heartbeat, stage, out, |buffer, number, own| {
            groups::put_heartbeat(buffer, number, &own.id);
        });
    }

    /// Commits where it reads.
    pub(super) fn commit(&mut self, stage: Stage, out: &mut Outbox) {
        let next = self.state.consuming.places();
        self.say(Awaited::Commit, stage, out, |buffer, number, own| {
            let topic = own.plan.topic.as_bytes();
            groups::put_offset_commit(buffer, number, &own.id, topic, next.into_iter());
        });
    }

    /// The answer to a heartbeat or a commit.
    pub(super) fn kept(
        &mut self,
        what: Awaited,
        fields: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let is_commit = what == Awaited::Commit;
        let error = match is_commit {
            true => groups::read_offset_commit(fields)?,
            false => groups::read_heartbeat(fields)?,
        };
        match (self.stage, error) {
            (Stage::Ready, error) => {
                if let Some(member) = self.state.member.as_deref_mut() {
                    let awaits = match is_commit {
                        true => &mut member.awaits_commit,
                        false => &mut member.awaits_heartbeat,
                    };
                    *awaits = false;
                }
                self.remain(error, now, out)
            }
            (Stage::Gathering, errors::NONE) => {
                self.wait(error, now);
                Ok(())
            }
            (Stage::Gathering, errors::REBALANCE_IN_PROGRESS) => self.join(now, out),
            (Stage::Resuming, errors::NONE) => {
                self.proceed(now, out, emit);
                Ok(())
            }
            (Stage::Resuming, error) => self.remain(error, now, out),
            (Stage::Committing, errors::NONE) => {
                self.stand(now, out, emit);
                Ok(())
            }
            (Stage::Gathering | Stage::Committing, error) => self.pause_or_end(error, now),
            // In a rebalance the answer to JoinGroup decides.
            _ => Ok(()),
        }
    }

    /// Decides by the answer of the coordinator whether it is still a member.
    fn remain(&mut self, error: i16, now: Nanos, out: &mut Outbox) -> Result<(), Fault> {
        match error {
            errors::NONE => Ok(()),
            errors::REBALANCE_IN_PROGRESS
            | errors::ILLEGAL_GENERATION
            | errors::UNKNOWN_MEMBER_ID => self.part(error, now, out),
            errors::COORDINATOR_LOAD_IN_PROGRESS | errors::COORDINATOR_NOT_AVAILABLE => {
                if self.stage == Stage::Resuming {
                    self.wait(error, now);
                }
                Ok(())
            }
            error => {
                let words = errors::words(error as u16);
                let name = self.group_name();
                Err(Fault::Ended(format!("{name}: {}: {}", words.name, words.advice)))
            }
        }
    }

    /// The group is divided anew: nothing more is asked for, and the fetch that the broker holds is
    /// awaited.
    fn part(&mut self, error: i16, now: Nanos, out: &mut Outbox) -> Result<(), Fault> {
        let session = self.plan.group.as_ref().map_or(Nanos(0), |group| group.session);
        self.state.deadline = now + session + GROUP_WITHIN;
        if let Some(member) = self.state.member.as_deref_mut() {
            member.stopped_at.get_or_insert(now);
            member.may_commit = error == errors::REBALANCE_IN_PROGRESS;
            if error == errors::UNKNOWN_MEMBER_ID {
                member.forget_id();
            }
        }
        self.stage = Stage::Parting;
        self.wake_at = self.state.deadline;
        match self.state.awaited.contains(&Awaited::Fetch) {
            true => Ok(()),
            false => self.rejoin(now, out),
        }
    }

    /// Joins the group again, after a commit of what it read if the coordinator takes one.
    pub(super) fn rejoin(&mut self, now: Nanos, out: &mut Outbox) -> Result<(), Fault> {
        let may_commit = self.state.member.as_ref().is_some_and(|member| member.may_commit);
        if may_commit && self.state.consuming.has_places() {
            self.commit(Stage::Parting, out);
        }
        self.join(now, out)
    }

    /// Ends the membership, after a last commit. Both wait behind the fetch that the broker holds.
    pub(super) fn leave(&mut self, out: &mut Outbox) {
        let reads = matches!(self.stage, Stage::Ready | Stage::Parting);
        let may_commit = reads && self.state.consuming.has_places();
        let is_member = self.state.member.as_ref().is_some_and(|member| !member.id.is_empty());
        if !is_member {
            return;
        }
        if may_commit {
            self.commit(Stage::Leaving, out);
        }
        self.say(Awaited::Leave, Stage::Leaving, out, |buffer, number, own| {
            groups::put_leave_group(buffer, number, &own.id);
        });
    }
}
