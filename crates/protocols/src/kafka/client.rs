//! The client: one connection of a producer or a consumer as a state machine.

mod batches;
mod consuming;
mod fetches;
mod joining;
mod member;
mod producing;
mod set_up;
mod staying;

use std::collections::VecDeque;
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{Batch, Connection, Emit, Fault, Metered, Op, Outbox, Reply, Timing};
use weigh_model::content::{Meter, Phase, StreamCounts};
use weigh_model::protocol::{Role, Seat};

use self::consuming::Consuming;
use self::member::Member;
use self::producing::Producing;
use super::codec::{Flaw, answers, frame};
use super::errors;
use super::group_plan::GROUP_WITHIN;
use super::plan::Plan;

/// A client connection.
#[derive(Debug)]
pub(super) struct Client {
    plan: Arc<Plan>,
    seat: Seat,
    stage: Stage,
    /// Number of the next request.
    correlation: i32,
    /// When to act without being asked: a request of the set-up is repeated, linger is over, or a
    /// heartbeat is due.
    wake_at: Nanos,
    state: Box<State>,
    meter: Meter,
}

/// What a connection remembers.
#[derive(Debug, Default)]
struct State {
    /// Requests in flight: answers come in their order.
    awaited: VecDeque<Awaited>,
    /// When the set-up is given up.
    deadline: Nanos,
    /// The error for which a request of the set-up is repeated.
    passing: i16,
    producing: Producing,
    consuming: Consuming,
    /// Membership in a group, of a consumer that has one.
    member: Option<Box<Member>>,
}

/// A request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Versions,
    Creation,
    Metadata,
    Offsets,
    ProducerId,
    /// A batch of this number of messages.
    Batch(u32),
    Fetch,
    Coordinator,
    Join,
    Sync,
    /// Offsets that the group has committed.
    Recall,
    Commit,
    Heartbeat,
    Leave,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Before [`Connection::open`].
    New,
    Versions,
    Creation,
    Metadata,
    Offsets,
    ProducerId,
    Coordinator,
    /// JoinGroup is answered once all members have joined.
    Joining,
    /// SyncGroup is answered once the leader has assigned the partitions.
    Syncing,
    /// The group is not complete yet: it asks by heartbeats.
    Gathering,
    Recalling,
    /// The offsets of the begin are committed.
    Committing,
    /// A connection was lost: whether this one is the same member is asked by a heartbeat.
    Resuming,
    /// A rebalance has begun, and a fetch is still held.
    Parting,
    /// Messages may flow.
    Ready,
    /// The engine closes it.
    Leaving,
}

impl Client {
    pub(super) fn new(plan: Arc<Plan>, seat: Seat) -> Client {
        Client {
            seat,
            stage: Stage::New,
            correlation: 0,
            wake_at: Nanos::NEVER,
            state: Box::default(),
            meter: Meter::default(),
            plan,
        }
    }

    fn phase(&self) -> Phase {
        match self.stage {
            Stage::Ready => Phase::Messages,
            Stage::Leaving => Phase::TearDown,
            _ if self.has_opened() => Phase::Messages,
            _ => Phase::SetUp,
        }
    }

    /// True for a member of a group that was ready on this connection: a rebalance belongs to the
    /// messages.
    fn has_opened(&self) -> bool {
        self.state.member.as_ref().is_some_and(|member| member.is_open)
    }

    /// Notes a request that will be answered; returns its number.
    fn number(&mut self, awaited: Awaited) -> i32 {
        self.state.awaited.push_back(awaited);
        self.next_number()
    }

    fn next_number(&mut self) -> i32 {
        let number = self.correlation;
        self.correlation = number.wrapping_add(1);
        number
    }

    /// Takes an answer; returns the bytes of the messages in it.
    fn take(
        &mut self,
        content: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let (correlation, fields) = answers::read_head(content)?;
        let in_flight = self.state.awaited.len() as i32;
        let Some(awaited) = self.state.awaited.pop_front() else {
            return Err(Flaw::Correlation(correlation).into());
        };
        if correlation != self.correlation.wrapping_sub(in_flight) {
            return Err(Flaw::Correlation(correlation).into());
        }
        match awaited {
            Awaited::Batch(messages) => {
                self.confirmed(fields, messages, now, out, emit)?;
                Ok(0)
            }
            Awaited::Fetch => self.fetched(fields, now, out, emit),
            Awaited::Coordinator | Awaited::Join | Awaited::Sync | Awaited::Recall => {
                self.entering(awaited, fields, now, out, emit)?;
                Ok(0)
            }
            Awaited::Commit | Awaited::Heartbeat => {
                self.kept(awaited, fields, now, out, emit)?;
                Ok(0)
            }
            _ => {
                self.set_up(awaited, fields, now, out, emit)?;
                Ok(0)
            }
        }
    }

    /// The first bytes of a server must be those of an answer.
    fn judged(&self, flaw: Flaw, input: &[u8]) -> Fault {
        if self.stage > Stage::Versions {
            return flaw.into();
        }
        let start = &input[..input.len().min(SHOWN_BYTES_MAX)];
        let text = || format!("it starts with \"{}\"", start.escape_ascii());
        Fault::OtherProtocol(crate::requests::answers_in_tls(input).unwrap_or_else(text))
    }
}

impl Connection for Client {
    fn open(&mut self, now: Nanos, out: &mut Outbox, _emit: Emit<'_>) {
        self.state.deadline = now + SET_UP_WITHIN;
        self.ask(Awaited::Versions, out);
    }

    fn room(&self) -> u32 {
        match (self.stage, self.seat.role) {
            (Stage::Ready, Role::Producer) => self.state.producing.room(&self.plan),
            _ => 0,
        }
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        self.state.producing.append(op, self.plan.acks);
        self.send_if_due(now, out);
        self.state.producing.reply(self.plan.acks)
    }

    fn receive(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            if self.stage == Stage::Leaving {
                self.meter.read(Phase::TearDown, rest.len(), 0);
                return Ok(input.len());
            }
            let read = frame::read_frame(rest, ANSWER_BYTES_MAX);
            let Some((content, bytes)) = read.map_err(|flaw| self.judged(flaw, rest))? else {
                return Ok(used);
            };
            used += bytes;
            let phase = self.phase();
            let payload = self.take(content, now, out, emit)?;
            self.meter.read(phase, bytes, payload);
        }
    }

    fn end(&mut self, rest: &[u8], _emit: Emit<'_>) -> Result<(), Fault> {
        let text = match self.stage {
            Stage::Ready | Stage::Leaving | Stage::Parting if rest.is_empty() => return Ok(()),
            Stage::Ready | Stage::Leaving | Stage::Parting => {
                "it closed the connection in the middle of an answer"
            }
            Stage::New | Stage::Versions => {
                "it closed the connection instead of answering ApiVersions: a listener with TLS \
                 does so (type --tls on), and one with SASL (not supported)"
            }
            _ => "it closed the connection before it was ready",
        };
        Err(Fault::Ended(text.to_owned()))
    }

    /// Kafka has no disconnect. A batch that still waits leaves before the end, and a member leaves
    /// its group.
    fn close(&mut self, out: &mut Outbox) {
        if self.stage == Stage::Ready && self.state.producing.has_messages() {
            self.send_batch(out);
        }
        self.leave(out);
        self.stage = Stage::Leaving;
        self.wake_at = Nanos::NEVER;
    }

    fn timing(&self) -> Timing {
        Timing::Exact
    }

    fn next_wake(&self) -> Option<Nanos> {
        (self.wake_at != Nanos::NEVER).then_some(self.wake_at)
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox, _emit: Emit<'_>) -> Result<(), Fault> {
        if now < self.wake_at {
            return Ok(());
        }
        self.wake_at = Nanos::NEVER;
        match self.stage {
            Stage::Ready if self.state.member.is_some() => {
                self.stay(now, out);
                Ok(())
            }
            Stage::Ready => {
                self.state.producing.note_due();
                self.send_if_due(now, out);
                Ok(())
            }
            Stage::New | Stage::Leaving => Ok(()),
            Stage::Coordinator
            | Stage::Joining
            | Stage::Syncing
            | Stage::Gathering
            | Stage::Recalling
            | Stage::Committing
            | Stage::Resuming
            | Stage::Parting => self.wake_member(now, out),
            _ if now >= self.state.deadline => {
                let about = format!("topic {} after {SET_UP_WITHIN}", self.plan.topic);
                Err(errors::refused(self.state.passing, &about))
            }
            Stage::Creation => self.ask_again(Awaited::Creation, out),
            Stage::Offsets => self.ask_again(Awaited::Offsets, out),
            Stage::ProducerId => self.ask_again(Awaited::ProducerId, out),
            Stage::Versions | Stage::Metadata => self.ask_again(Awaited::Metadata, out),
        }
    }

    /// A consumer continues at the offset where its last connection ended.
    fn resumes(&self) -> bool {
        self.seat.role == Role::Consumer
    }

    /// A group is complete once its last member is there.
    fn opens_within(&self) -> Option<Nanos> {
        let is_member = self.seat.role == Role::Consumer && self.plan.group.is_some();
        is_member.then_some(SET_UP_WITHIN + GROUP_WITHIN)
    }

    fn batch(&mut self) -> Option<&mut dyn Batch> {
        Some(self)
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(self)
    }
}

/// Several messages as one record batch, whatever `linger` and `batch_size` say.
impl Batch for Client {
    fn room_together(&mut self) -> u32 {
        match self.stage == Stage::Ready && self.state.producing.has_slot(&self.plan) {
            true => self.room(),
            false => 0,
        }
    }

    fn send_together(&mut self, ops: &[Op<'_>], _now: Nanos, out: &mut Outbox) -> Reply {
        for op in ops {
            self.state.producing.append(op, self.plan.acks);
        }
        self.send_batch(out);
        self.state.producing.reply(self.plan.acks)
    }
}

impl Metered for Client {
    fn meter(&mut self) {
        self.meter.start();
    }

    fn counts(&mut self) -> Option<StreamCounts> {
        self.meter.counts()
    }
}

impl Drop for Client {
    /// Offsets, or the membership, for the next connection of this seat.
    fn drop(&mut self) {
        if let (Some(group), Some(member)) = (&self.plan.group, &self.state.member) {
            let reads = matches!(self.stage, Stage::Ready | Stage::Resuming);
            let places = reads.then(|| self.state.consuming.places());
            if self.stage != Stage::Leaving {
                group.leave(self.seat.index, member.left(places));
            }
            return;
        }
        if let Some(offsets) = self.state.consuming.take_offsets() {
            self.plan.leave_cursor(self.seat.index, offsets);
        }
    }
}

/// Largest answer that is read: twice the largest fetch, since the first batch always comes whole.
const ANSWER_BYTES_MAX: usize = 128 << 20;

/// Time for the topic to be created and to have its leaders.
const SET_UP_WITHIN: Nanos = Nanos::from_secs(10);

const SHOWN_BYTES_MAX: usize = 24;

/// Idle loads hold a hundred thousand clients.
const _: () = assert!(size_of::<Client>() <= 64);
