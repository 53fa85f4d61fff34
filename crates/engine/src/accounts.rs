//! The ledger's bookkeeping: what each producer sent and how it ended, what each consumer got,
//! and, at the end, where every message went and why.

use std::collections::BTreeMap;
use std::ops::Range;

use weigh_model::ledger::{Cause, NotSentCause};
use weigh_model::portable_fields;
use weigh_model::tally::{Bits, Tally};
use weigh_model::{Ledger, Load, Nanos, Topology};

use crate::regroupings::Regroupings;

/// Counts of one producer in the measured window, by sequence number if that matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProducerAccount {
    /// Index over all shards.
    pub index: u32,
    /// Warm-up messages handed to the transport.
    pub warmup_sent: u64,
    /// Messages handed to the transport: numbers 0 to `sent - 1`.
    pub sent: u64,
    /// Times at which the first and the last of them were sent; `None` before the first.
    pub sent_between: Option<(Nanos, Nanos)>,
    /// Time at which the last one was confirmed.
    pub last_confirmed: Option<Nanos>,
    /// Messages confirmed in time.
    pub confirmed: u64,
    /// Messages confirmed after Tmax.
    pub confirmed_late: u64,
    /// Messages confirmed with the information that no client subscribes.
    pub no_subscriber: u64,
    /// Messages that were lost on the way to the server, by cause.
    pub failed: BTreeMap<Cause, u64>,
    /// Numbers of confirmed messages; kept only if consumers report what arrived.
    pub confirmed_bits: Bits,
    /// Numbers of failed messages with their cause; kept only if consumers report what arrived.
    pub failed_numbers: BTreeMap<u64, Cause>,
    /// Numbers sent over connections that were lost; it is unknown how far these messages got.
    pub cut: Vec<Range<u64>>,
}

/// Messages that one consumer received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerAccount {
    /// Index over all shards.
    pub index: u32,
    /// Everything that arrived, by identity.
    pub tally: Tally,
    /// Time at which the last message arrived that had not arrived before.
    pub last_arrived: Option<Nanos>,
    /// Time at which the last message arrived, whether measured or not.
    pub last_heard: Option<Nanos>,
    /// True if its connection was lost before the end.
    pub was_disconnected: bool,
    /// True if messages still arrived when the time limit of the last one was over: what follows
    /// the last that arrived was on its way.
    pub was_behind: bool,
}

/// The books of one shard, or of all shards together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Every producer's.
    pub producers: Vec<ProducerAccount>,
    /// Every consumer's.
    pub consumers: Vec<ConsumerAccount>,
    /// Measured messages that were due and never handed over, by cause.
    pub not_sent: BTreeMap<NotSentCause, u64>,
    /// Messages that the server did not process, as it said, and that were sent again.
    pub sent_again: u64,
    /// Datagrams that the kernel dropped at full receive queues of the generator.
    pub queue_drops: u64,
    /// Sockets at which the kernel refused to cut runs of datagrams.
    pub uncut_sockets: u64,
    /// Bytes of memory that identities took when the books were closed, wherever that was.
    pub identity_bytes: u64,
    /// New divisions of messages among the consumers of a group.
    pub regroupings: Regroupings,
}

impl ProducerAccount {
    /// Messages that may arrive: those that our own side dropped will not.
    pub fn left(&self) -> u64 {
        self.sent - self.failed.get(&Cause::ProducerDropped).copied().unwrap_or(0)
    }

    /// One more message was handed to the transport at `sent`.
    #[inline]
    pub(crate) fn hand_over(&mut self, sent: Nanos) {
        self.sent += 1;
        match &mut self.sent_between {
            Some((_, last)) => *last = sent,
            None => self.sent_between = Some((sent, sent)),
        }
    }

    /// Message `number` failed on its way to the server.
    pub fn fail(&mut self, number: u64, cause: Cause, has_consumers: bool) {
        *self.failed.entry(cause).or_default() += 1;
        if has_consumers {
            self.failed_numbers.insert(number, cause);
        }
    }

    /// Message `number` was confirmed.
    pub fn confirm(&mut self, number: u64, is_late: bool, has_consumers: bool) {
        if is_late {
            self.confirmed_late += 1;
        } else {
            self.confirmed += 1;
        }
        if has_consumers {
            self.confirmed_bits.set(number);
        }
    }
}

impl Accounts {
    /// The time limit `timeout` of the last message is over at `now`: notes the consumers whose
    /// messages still arrive.
    pub(crate) fn note_backlogs(&mut self, now: Nanos, timeout: Nanos) {
        let recent = Nanos(timeout.0 / RECENT_PART);
        for consumer in &mut self.consumers {
            consumer.was_behind = consumer.last_heard.is_some_and(|heard| now - heard <= recent);
        }
    }

    /// Closes the books: nothing is entered any more.
    pub fn close(&mut self) {
        self.identity_bytes = self.memory_bytes();
    }

    /// Adds another shard's books.
    pub fn merge(&mut self, other: Accounts) {
        self.sent_again += other.sent_again;
        self.queue_drops += other.queue_drops;
        self.uncut_sockets += other.uncut_sockets;
        self.identity_bytes += other.identity_bytes;
        self.regroupings.add(other.regroupings);
        self.producers.extend(other.producers);
        self.consumers.extend(other.consumers);
        for (cause, count) in other.not_sent {
            *self.not_sent.entry(cause).or_default() += count;
        }
    }

    /// Returns the ledger: the place where every message ended. `confirms` is true if the protocol
    /// confirms messages.
    pub fn settle(&self, load: &Load, confirms: bool) -> Ledger {
        let mut ledger = self.handed_over(load);
        match load.delivers() {
            true => self.settle_pairs(load, &mut ledger),
            _ if confirms => self.settle_confirmed(&mut ledger),
            _ => (ledger.delivered, ledger.lost) = (None, None),
        }
        attribute_queue_drops(&mut ledger, self.queue_drops);
        ledger
    }

    /// Returns the ledger for messages that are stored: `stored` reports what arrived, in place of
    /// a consumer of the generator.
    pub fn settle_kept(&self, load: &Load, stored: &ConsumerAccount) -> Ledger {
        let mut ledger = self.handed_over(load);
        self.settle_by(load, std::slice::from_ref(stored), &mut ledger);
        ledger
    }

    /// Returns the part of the ledger that is known without knowing where the messages ended.
    fn handed_over(&self, load: &Load) -> Ledger {
        let not_sent: u64 = self.not_sent.values().sum();
        let sent: u64 = self.producers.iter().map(|producer| producer.sent).sum();
        let copies = load.copies();
        Ledger {
            messages: sent + not_sent,
            scheduled: (sent + not_sent) * copies,
            not_sent: not_sent * copies,
            sent: sent * copies,
            not_sent_causes: self
                .not_sent
                .iter()
                .filter(|(_, count)| **count > 0)
                .map(|(cause, count)| (*cause, count * copies))
                .collect(),
            acknowledged: copies * self.sum(|p| p.confirmed + p.confirmed_late),
            no_subscriber: copies * self.sum(|p| p.no_subscriber),
            ..Ledger::zero()
        }
    }

    /// Consumers that share their messages, as the one consumer that they are together.
    pub(crate) fn sharing_consumers(&self) -> ConsumerAccount {
        let mut all = ConsumerAccount::default();
        for consumer in &self.consumers {
            all.tally.absorb(&consumer.tally);
            all.was_disconnected |= consumer.was_disconnected;
            all.was_behind |= consumer.was_behind;
        }
        all
    }

    /// Bytes of memory that identities take.
    pub fn memory_bytes(&self) -> u64 {
        let consumers: usize = self.consumers.iter().map(|c| c.tally.memory_bytes()).sum();
        let producers: usize = self
            .producers
            .iter()
            .map(|p| p.confirmed_bits.memory_bytes() + p.failed_numbers.len() * FAILED_BYTES)
            .sum();
        (consumers + producers) as u64
    }

    fn sum(&self, of: impl Fn(&ProducerAccount) -> u64) -> u64 {
        self.producers.iter().map(of).sum()
    }

    /// Delivered means confirmed: each message ended exactly once, so counts are enough.
    fn settle_confirmed(&self, ledger: &mut Ledger) {
        ledger.delivered = Some(self.sum(|p| p.confirmed));
        ledger.late = self.sum(|p| p.confirmed_late);
        ledger.received = ledger.acknowledged;
        for producer in &self.producers {
            for (cause, count) in &producer.failed {
                *ledger.causes.entry(*cause).or_default() += count;
            }
        }
        ledger.lost = Some(ledger.causes.values().sum());
    }

    /// Delivered means that a consumer got it: every pair is looked up by identity.
    fn settle_pairs(&self, load: &Load, ledger: &mut Ledger) {
        let sharing = (load.topology == Topology::Shared).then(|| self.sharing_consumers());
        let consumers = sharing.as_ref().map_or(&self.consumers[..], std::slice::from_ref);
        self.settle_by(load, consumers, ledger);
    }

    /// Returns the ledger by what `consumers` received.
    fn settle_by(&self, load: &Load, consumers: &[ConsumerAccount], ledger: &mut Ledger) {
        let mut delivered = 0;
        for consumer in consumers {
            ledger.received += consumer.tally.received;
            ledger.duplicates += consumer.tally.duplicates;
            ledger.reordered += consumer.tally.reordered;
            ledger.corrupt += consumer.tally.corrupt;
            ledger.foreign += consumer.tally.foreign;
            let mut corrupt_unknown = consumer.tally.corrupt_unknown;
            for producer in self.producers.iter().filter(|p| hears(load, consumer.index, p.index)) {
                let lane = consumer.tally.lane(producer.index);
                for number in 0..producer.sent {
                    match (lane.has(number), lane.was_late(number)) {
                        (true, false) => delivered += 1,
                        (true, true) => ledger.late += 1,
                        (false, _) => {
                            let cause = why_lost(consumer, producer, number, &mut corrupt_unknown);
                            *ledger.causes.entry(cause).or_default() += 1;
                            ledger.acked_not_delivered +=
                                u64::from(producer.confirmed_bits.get(number));
                        }
                    }
                }
            }
        }
        ledger.delivered = Some(delivered);
        ledger.lost = Some(ledger.causes.values().sum());
    }
}

portable_fields!(ProducerAccount {
    index,
    warmup_sent,
    sent,
    sent_between,
    last_confirmed,
    confirmed,
    confirmed_late,
    no_subscriber,
    failed,
    confirmed_bits,
    failed_numbers,
    cut,
});
portable_fields!(ConsumerAccount {
    index,
    tally,
    last_arrived,
    last_heard,
    was_disconnected,
    was_behind
});
portable_fields!(Accounts {
    producers,
    consumers,
    not_sent,
    sent_again,
    queue_drops,
    uncut_sockets,
    identity_bytes,
    regroupings
});

/// True if consumer `consumer` should get what producer `producer` sends.
pub fn hears(load: &Load, consumer: u32, producer: u32) -> bool {
    load.topology != Topology::Pairs || consumer == producer
}

/// The cause of a lost pair: what is known of this very message first, what is known of its
/// connections after that.
pub(crate) fn why_lost(
    consumer: &ConsumerAccount,
    producer: &ProducerAccount,
    number: u64,
    corrupt_unknown: &mut u64,
) -> Cause {
    if consumer.tally.lane(producer.index).was_corrupt(number) {
        return Cause::Corrupt;
    }
    if let Some(cause) = producer.failed_numbers.get(&number) {
        return *cause;
    }
    if *corrupt_unknown > 0 {
        *corrupt_unknown -= 1;
        return Cause::Corrupt;
    }
    if consumer.was_disconnected {
        return Cause::SubscriberDisconnected;
    }
    if producer.cut.iter().any(|range| range.contains(&number)) {
        return Cause::ConnectionClosed;
    }
    // A queue before the consumer was not empty: what followed would have come later still.
    if consumer.was_behind && number >= consumer.tally.lane(producer.index).end() {
        return Cause::Timeout;
    }
    Cause::Unknown
}

/// Gives up to `dropped` of the losses without a known cause to the server's own drop counter.
pub fn attribute_server_drops(ledger: &mut Ledger, dropped: u64) {
    attribute(ledger, &[Cause::Unknown], Cause::ServerDropped, dropped);
}

/// Attributes up to `dropped` of the losses without any other sign to full receive queues.
pub fn attribute_queue_drops(ledger: &mut Ledger, dropped: u64) {
    attribute(ledger, &[Cause::Unknown, Cause::Timeout], Cause::ReceiveQueueFull, dropped);
}

fn attribute(ledger: &mut Ledger, from: &[Cause], to: Cause, mut count: u64) {
    for cause in from {
        let known = ledger.causes.get(cause).copied().unwrap_or(0);
        let attributed = known.min(count);
        if attributed > 0 {
            count -= attributed;
            *ledger.causes.entry(to).or_default() += attributed;
            ledger.causes.insert(*cause, known - attributed);
        }
    }
    ledger.causes.retain(|_, count| *count > 0);
}

/// A message that came within this part of its time limit before the end shows that others are on
/// their way.
const RECENT_PART: u64 = 10;

/// Bytes that one entry of a map of failed numbers takes, its share of the tree included.
const FAILED_BYTES: usize = 24;
