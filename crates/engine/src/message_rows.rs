//! From what shards noted to a row for each message, or for each pair of message and consumer.
//! Only what is in flight is held in memory, and what was lost until the end of the trial, up to
//! a bound that is said when it is reached.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

use weigh_model::ledger::{Cause, NotSentCause};
use weigh_model::message::{LossCause, MessageRow, MessageState};
use weigh_model::{Load, Nanos, Topology};

use crate::accounts::{Accounts, ConsumerAccount, hears, why_lost};
use crate::message_log::MessageEvent;

/// Puts the rows of one trial together.
#[derive(Debug)]
pub struct MessageRows {
    load: Load,
    confirms: bool,
    /// By producer.
    lanes: Vec<Lane>,
    /// Entries in all lanes.
    held: usize,
    held_max: usize,
    unsettled: u64,
}

/// The messages of one producer that are not settled.
#[derive(Debug, Default)]
struct Lane {
    /// All messages with smaller numbers are known to be sent: a shard reports them in their order.
    sent_below: u64,
    entries: BTreeMap<u64, Entry>,
}

/// A message whose rows are not all made.
#[derive(Clone, Debug)]
struct Entry {
    due: Nanos,
    /// [`Nanos::NEVER`] until its sending was heard of.
    sent: Nanos,
    confirmed: Nanos,
    connection: u32,
    body_bytes: u32,
    /// True once nothing more is to come from the server to its producer.
    is_answered: bool,
    failure: Option<Cause>,
    /// Pairs without a row.
    missing: u32,
    /// Arrivals that wait for the confirmation.
    arrivals: Vec<Arrival>,
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    consumer: u32,
    at: Nanos,
    is_late: bool,
}

impl MessageRows {
    /// Creates the rows of a trial under `load`; `confirms` is true if the protocol confirms
    /// messages.
    pub fn new(load: &Load, confirms: bool) -> MessageRows {
        MessageRows {
            load: load.clone(),
            confirms,
            lanes: Vec::new(),
            held: 0,
            held_max: HELD_MAX,
            unsettled: 0,
        }
    }

    /// Takes in what a shard noted, and hands over the rows that it completes.
    pub fn hear(&mut self, event: MessageEvent, each: &mut dyn FnMut(&MessageRow)) {
        match event {
            MessageEvent::Sent { producer, connection, number, due, sent, body_bytes, .. } => {
                let is_answered = !self.confirms;
                self.change_if_open(producer, number, true, each, |entry| {
                    (entry.due, entry.sent) = (due, sent);
                    (entry.connection, entry.body_bytes) = (connection, body_bytes);
                    entry.is_answered |= is_answered;
                });
            }
            MessageEvent::Confirmed { producer, number, at } => {
                self.change(producer, number, each, |entry| {
                    (entry.confirmed, entry.is_answered) = (at, true);
                });
            }
            MessageEvent::Failed { producer, number, at, cause } => {
                self.change(producer, number, each, |entry| {
                    (entry.confirmed, entry.is_answered) = (at, true);
                    entry.failure = Some(cause);
                });
            }
            MessageEvent::Arrived { consumer, producer, number, at, is_late } => {
                self.change(producer, number, each, |entry| {
                    entry.arrivals.push(Arrival { consumer, at, is_late });
                });
            }
            MessageEvent::NotSent { cause, count } => {
                let row = never_sent(cause);
                (0..count * self.load.copies().max(1)).for_each(|_| each(&row));
            }
        }
    }

    /// Ends the trial: hands over the rows of everything that never arrived, with the causes that
    /// the books know, and returns the number of messages whose events are unknown.
    pub fn finish(mut self, accounts: &Accounts, each: &mut dyn FnMut(&MessageRow)) -> u64 {
        let has_consumers = self.load.delivers();
        for (producer, lane) in self.lanes.iter_mut().enumerate() {
            for (&number, entry) in &mut lane.entries {
                let whole = Whole { producer: producer as u32, number };
                if entry.sent == Nanos::NEVER {
                    self.unsettled += entry.arrivals.len() as u64;
                } else if has_consumers {
                    entry.tell_arrivals(whole, each);
                } else if entry.missing > 0 {
                    each(&entry.row(whole, MessageState::Lost, Some(Cause::Unknown)));
                }
            }
        }
        if has_consumers {
            self.tell_lost(accounts, each);
        }
        self.unsettled
    }

    /// Pairs that never became a delivery, in the order in which the books look for causes.
    fn tell_lost(&self, accounts: &Accounts, each: &mut dyn FnMut(&MessageRow)) {
        let sharing =
            (self.load.topology == Topology::Shared).then(|| accounts.sharing_consumers());
        let consumers = sharing.as_ref().map_or(&accounts.consumers[..], std::slice::from_ref);
        for consumer in consumers {
            let mut corrupt_unknown = consumer.tally.corrupt_unknown;
            for producer in &accounts.producers {
                if !hears(&self.load, consumer.index, producer.index) {
                    continue;
                }
                let Some(lane) = self.lanes.get(producer.index as usize) else { continue };
                for (&number, entry) in &lane.entries {
                    let is_lost = entry.sent != Nanos::NEVER && entry.missing > 0;
                    if !is_lost || consumer.tally.lane(producer.index).has(number) {
                        continue;
                    }
                    let cause = why_lost(consumer, producer, number, &mut corrupt_unknown);
                    let whole = Whole { producer: producer.index, number };
                    each(&self.lost_pair(entry, whole, consumer, cause));
                }
            }
        }
    }

    fn lost_pair(
        &self,
        entry: &Entry,
        whole: Whole,
        consumer: &ConsumerAccount,
        cause: Cause,
    ) -> MessageRow {
        let state = state_of(cause);
        let is_shared = self.load.topology == Topology::Shared;
        let consumer = (!is_shared).then_some(consumer.index);
        MessageRow { consumer, ..entry.row(whole, state, Some(cause)) }
    }

    /// Changes the entry of a message, hands over what that completes, and forgets what is done.
    fn change(
        &mut self,
        producer: u32,
        number: u64,
        each: &mut dyn FnMut(&MessageRow),
        change: impl FnOnce(&mut Entry),
    ) {
        self.change_if_open(producer, number, false, each, change);
    }

    fn change_if_open(
        &mut self,
        producer: u32,
        number: u64,
        is_sending: bool,
        each: &mut dyn FnMut(&MessageRow),
        change: impl FnOnce(&mut Entry),
    ) {
        let place = producer as usize;
        if place >= self.lanes.len() {
            self.lanes.resize_with(place + 1, Lane::default);
        }
        let lane = &mut self.lanes[place];
        let is_known = number < lane.sent_below;
        lane.sent_below = lane.sent_below.max(if is_sending { number + 1 } else { 0 });
        let has_consumers = self.load.delivers();
        let entry = match lane.entries.entry(number) {
            Slot::Occupied(entry) => entry.into_mut(),
            // It is settled: a second consumer of those that share it, or past the bound.
            Slot::Vacant(_) if is_known => return,
            Slot::Vacant(vacant) => {
                self.held += 1;
                let copies = self.load.copies().max(1) as u32;
                vacant.insert(Entry::new(if has_consumers { copies } else { 1 }))
            }
        };
        change(entry);
        let whole = Whole { producer, number };
        if entry.is_answered && entry.sent != Nanos::NEVER {
            match has_consumers {
                true => entry.tell_arrivals(whole, each),
                false => entry.tell_answer(whole, self.load.timeout, self.confirms, each),
            }
        }
        if entry.missing == 0 {
            lane.entries.remove(&number);
            self.held -= 1;
        }
        if self.held > self.held_max
            && let Some((number, mut oldest)) = lane.entries.pop_first()
        {
            self.held -= 1;
            let whole = Whole { producer, number };
            oldest.tell_arrivals(whole, each);
            self.unsettled += u64::from(oldest.missing);
            let row = oldest.row(whole, MessageState::Unsettled, None);
            (0..oldest.missing).for_each(|_| each(&row));
        }
    }
}

/// Identity of a message.
#[derive(Clone, Copy)]
struct Whole {
    producer: u32,
    number: u64,
}

impl Entry {
    fn new(missing: u32) -> Entry {
        Entry {
            due: Nanos::NEVER,
            sent: Nanos::NEVER,
            confirmed: Nanos::NEVER,
            connection: 0,
            body_bytes: 0,
            is_answered: false,
            failure: None,
            missing,
            arrivals: Vec::new(),
        }
    }

    /// A row for each arrival that has none.
    fn tell_arrivals(&mut self, whole: Whole, each: &mut dyn FnMut(&MessageRow)) {
        for arrival in std::mem::take(&mut self.arrivals) {
            if self.missing == 0 {
                // A message that consumers share, and that two of them got.
                continue;
            }
            self.missing -= 1;
            let state = if arrival.is_late { MessageState::Late } else { MessageState::Delivered };
            each(&MessageRow {
                consumer: Some(arrival.consumer),
                delivered_ns: Some(arrival.at.0),
                ..self.row(whole, state, None)
            });
        }
    }

    /// The row of a message whose answer is its end.
    fn tell_answer(
        &mut self,
        whole: Whole,
        timeout: Nanos,
        confirms: bool,
        each: &mut dyn FnMut(&MessageRow),
    ) {
        self.missing = 0;
        let state = match self.failure {
            Some(cause) => state_of(cause),
            None if !confirms => MessageState::Sent,
            None if self.confirmed - self.due > timeout => MessageState::Late,
            None => MessageState::Delivered,
        };
        each(&self.row(whole, state, self.failure));
    }

    fn row(&self, whole: Whole, state: MessageState, cause: Option<Cause>) -> MessageRow {
        let known = |time: Nanos| (time != Nanos::NEVER).then_some(time.0);
        MessageRow {
            producer: Some(whole.producer),
            sequence: Some(whole.number),
            connection: Some(self.connection),
            consumer: None,
            due_ns: known(self.due),
            sent_ns: known(self.sent),
            confirmed_ns: known(self.confirmed),
            delivered_ns: None,
            state,
            cause: cause.map(LossCause::Lost),
            body_bytes: Some(self.body_bytes),
        }
    }
}

fn never_sent(cause: NotSentCause) -> MessageRow {
    MessageRow {
        producer: None,
        sequence: None,
        connection: None,
        consumer: None,
        due_ns: None,
        sent_ns: None,
        confirmed_ns: None,
        delivered_ns: None,
        state: MessageState::NotSent,
        cause: Some(LossCause::NotSent(cause)),
        body_bytes: None,
    }
}

fn state_of(cause: Cause) -> MessageState {
    if cause == Cause::ErrorAnswer { MessageState::Error } else { MessageState::Lost }
}

/// Messages whose end is awaited at once: at 150 bytes each, 150 MB even if more are lost.
const HELD_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests;
