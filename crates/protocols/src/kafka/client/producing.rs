//! What a producer sends: messages gather in a batch until it is sent, and one answer confirms all
//! of them.

use std::collections::VecDeque;

use weigh_model::connection::{Emit, Op, Outbox, Reply, Signal, Ticket};

use super::super::codec::batch::{self, HEAD_BYTES, Producer};
use super::super::codec::requests::{Produce, put_produce};
use super::super::errors;
use super::super::plan::Plan;
use super::super::settings::Acks;

/// State of a producer.
#[derive(Debug, Default)]
pub(super) struct Producing {
    /// Where it may write; the turn says where the next batch goes.
    targets: Vec<Target>,
    turn: usize,
    /// Identity, of an idempotent producer.
    identity: Option<(i64, i16)>,
    /// The records of the open batch, their number, and the bytes of their values.
    records: Vec<u8>,
    count: u32,
    payload: usize,
    /// Linger is over for it.
    is_due: bool,
    /// Messages without an answer, those of the open batch last.
    tickets: VecDeque<Ticket>,
    /// Batches without an answer.
    in_flight: u32,
    /// A batch of an idempotent producer failed with this code: all later ones would.
    broken: Option<u16>,
}

/// A partition.
#[derive(Clone, Copy, Debug)]
struct Target {
    partition: i32,
    /// Number of the next message, of an idempotent producer.
    sequence: i32,
}

impl Producing {
    pub(super) fn start(&mut self, partitions: &[i32]) {
        let target = |partition: &i32| Target { partition: *partition, sequence: 0 };
        self.targets = partitions.iter().map(target).collect();
    }

    pub(super) fn identify(&mut self, id: i64, epoch: i16) {
        self.identity = Some((id, epoch));
    }

    pub(super) fn partitions(&self) -> Vec<i32> {
        self.targets.iter().map(|target| target.partition).collect()
    }

    pub(super) fn has_messages(&self) -> bool {
        self.count > 0
    }

    /// True if a batch may be sent now.
    pub(super) fn has_slot(&self, plan: &Plan) -> bool {
        self.in_flight < plan.in_flight_max && self.broken.is_none()
    }

    fn is_full(&self, plan: &Plan) -> bool {
        HEAD_BYTES + self.records.len() >= plan.batch_bytes
    }

    pub(super) fn room(&self, plan: &Plan) -> u32 {
        if self.broken.is_some() {
            return 0;
        }
        match (self.has_slot(plan), self.is_full(plan)) {
            (true, _) => u32::MAX - self.tickets.len() as u32,
            // What fits into the open batch depends on its size.
            (false, is_full) => u32::from(!is_full),
        }
    }

    /// Adds a message to the open batch.
    pub(super) fn append(&mut self, op: &Op<'_>, acks: Acks) {
        batch::put_record(&mut self.records, self.count as i32, op.body);
        self.count += 1;
        self.payload += op.body.len();
        if acks != Acks::Nothing {
            self.tickets.push_back(op.ticket);
        }
    }

    pub(super) fn reply(&self, acks: Acks) -> Reply {
        match acks {
            Acks::Nothing => Reply::None,
            _ => Reply::Awaited,
        }
    }

    pub(super) fn note_due(&mut self) {
        self.is_due = true;
    }

    /// True if the open batch is to leave as soon as it may.
    pub(super) fn is_due(&self, plan: &Plan) -> bool {
        plan.linger.0 == 0 || self.is_due || self.is_full(plan)
    }

    /// Counts the open batch as one in flight; returns the number of its messages.
    pub(super) fn begin(&mut self) -> u32 {
        self.in_flight += 1;
        self.count
    }

    /// The answer to the oldest batch, of this number of messages.
    pub(super) fn answered(&mut self, error: i16, messages: u32, acks: Acks, emit: Emit<'_>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if error != errors::NONE {
            self.refuse(messages, error as u16, emit);
            if acks.is_idempotent() {
                self.broken.get_or_insert(error as u16);
            }
            return;
        }
        for _ in 0..messages {
            if let Some(ticket) = self.tickets.pop_front() {
                emit(Signal::Done(ticket));
            }
        }
    }

    /// True if no batch can be sent any more.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// True if that is so and nothing is in flight; what was never sent is refused.
    pub(super) fn has_ended(&mut self, emit: Emit<'_>) -> bool {
        let Some(code) = self.broken.filter(|_| self.in_flight == 0) else { return false };
        self.refuse(self.tickets.len() as u32, code, emit);
        self.records.clear();
        (self.count, self.payload) = (0, 0);
        true
    }

    /// Refuses the oldest messages.
    fn refuse(&mut self, messages: u32, code: u16, emit: Emit<'_>) {
        for _ in 0..messages {
            if let Some(ticket) = self.tickets.pop_front() {
                emit(Signal::Refused(ticket, code));
            }
        }
    }

    /// Writes the open batch, and begins another in the next partition; returns the bytes of its
    /// messages.
    pub(super) fn write(&mut self, number: i32, plan: &Plan, out: &mut Outbox) -> usize {
        let turn = self.turn;
        let Some(target) = self.targets.get_mut(turn) else { return 0 };
        let producer = match self.identity {
            Some((id, epoch)) => Producer { id, epoch, sequence: target.sequence },
            None => Producer::NONE,
        };
        let produce = Produce {
            topic: plan.topic.as_bytes(),
            partition: target.partition,
            acks: plan.acks.number(),
            producer,
            count: self.count as i32,
            records: &self.records,
        };
        put_produce(out.buffer(), number, &produce);
        // Behind the last number comes 0 (`DefaultRecordBatch.incrementSequence`).
        let next = i64::from(target.sequence) + i64::from(self.count);
        target.sequence = (next % (i64::from(i32::MAX) + 1)) as i32;
        self.turn = (turn + 1) % self.targets.len();
        self.records.clear();
        (self.count, self.is_due) = (0, false);
        std::mem::take(&mut self.payload)
    }
}
