//! Traces of messages through stages that stand one behind the other, put together by identity from
//! what each stage wrote down: where every message went, and how long it was at each stage.
//!
//! A trace is cut at its time stamps: due, sent, arrived at each stage in turn, committed by the
//! last. Each piece begins where the one before ends, so the pieces of a message add up to its
//! delivery time exactly. A stage's piece is its hop: from its arrival there to its arrival at the
//! next stage, the connection between them included; at the last, to its commit. The time before
//! the first stage is the broker's hop where there is one, else a gap.
//!
//! Memory is that of the ledger, and of messages whose traces are not whole yet.

use std::collections::{BTreeMap, HashMap};

use weigh_model::hop::{Hop, HopStage};
use weigh_model::mark::{Mark, Reading};
use weigh_model::tally::Tally;
use weigh_model::{Ledger, Load, Nanos};

use crate::accounts::{Accounts, ConsumerAccount};
use crate::lag_free::LagFree;
use crate::recorder::Sending;
use crate::times::Times;

/// The stages that a message goes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Those that write down when they had it, in their order; at least one, the last keeps it.
    pub stages: Vec<HopStage>,
    /// True if a broker, which writes nothing down, is before the first.
    pub has_broker: bool,
}

/// A message that left the generator, on the clock of the hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Its producer, over all shards.
    pub producer: u32,
    /// Its number at its producer.
    pub number: u64,
    /// Due time.
    pub due: Nanos,
    /// Time at which it was handed to the transport.
    pub sent: Nanos,
    /// Part of the time between the two that was the generator's own lateness.
    pub own_lag: Nanos,
}

/// Puts traces together. Departures and hops may come in any order; the nearer to that of time, the
/// less memory it takes.
#[derive(Debug)]
pub struct Tracer {
    route: Route,
    tag: u16,
    timeout: Nanos,
    open: HashMap<(u32, u64), Trace>,
    /// Messages that the last stage keeps.
    kept: Tally,
    delivery: Times,
    one_way: Times,
    delivery_lag: LagFree,
    pieces: Vec<Piece>,
    held: Vec<Piece>,
    whole: u64,
    broken: u64,
    last_kept: Option<Nanos>,
    /// Until when what is kept counts as kept in time, and how much was; what was sent by then and
    /// kept later.
    until: Nanos,
    within: u64,
    after: u64,
}

/// Known times of one message.
#[derive(Clone, Copy, Debug, Default)]
struct Trace {
    departed: Option<Sending>,
    hops: [Option<(Nanos, Nanos)>; HopStage::ALL.len()],
    /// Further times that the last stage kept it before it was known when it departed.
    again: u32,
}

/// The result of the traces of a trial.
#[derive(Debug)]
pub struct Traced {
    /// The ledger; delivered is committed by the last stage within Tmax.
    pub ledger: Ledger,
    /// Due to committed.
    pub delivery: Times,
    /// Sent to committed.
    pub one_way: Times,
    /// Delivery times without the generator's own lateness.
    pub delivery_lag: LagFree,
    /// By metric name: the pieces of whole traces in their order, and how long each stage but the
    /// last held a message until it was done with it.
    pub times: Vec<Piece>,
    /// Messages whose whole trace is known.
    pub whole: u64,
    /// Messages that were kept and whose trace has a hole, or stamps that contradict each other: a
    /// stage had them twice, or lost what it had written down when it was killed.
    pub broken: u64,
    /// Time at which the last of them was committed.
    pub last_kept: Option<Nanos>,
    /// Messages committed in time and before the moment given to [`Tracer::counting_until`].
    pub within: u64,
    /// Messages sent before it and committed after it.
    pub after: u64,
}

/// A part of the traces of all messages.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    /// The metric: `stage.api.hop_time_ns`.
    pub name: String,
    /// The time of every message.
    pub times: Times,
    sum_ns: u64,
}

impl Piece {
    fn named(name: String) -> Piece {
        Piece { name, ..Piece::default() }
    }

    fn record(&mut self, time: Nanos) {
        self.times.record(time.0);
        self.sum_ns += time.0;
    }

    /// The mean, to the nanosecond: those of all pieces add up. `None` of nothing.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.times.count();
        (count > 0).then(|| self.sum_ns as f64 / count as f64)
    }
}

impl Tracer {
    /// Of the trial `tag`, whose messages are late after `timeout`.
    pub fn new(route: Route, tag: u16, timeout: Nanos) -> Tracer {
        let named = |stage: &HopStage, what: &str| format!("stage.{}.{what}", stage.name());
        let first = route.stages.first().copied().unwrap_or(HopStage::Store);
        let before = match route.has_broker {
            true => "stage.broker.hop_time_ns".to_owned(),
            false => named(&first, "gap_time_ns"),
        };
        let mut pieces = vec!["stage.generator.hop_time_ns".to_owned(), before];
        pieces.extend(route.stages.iter().map(|stage| named(stage, "hop_time_ns")));
        let passing = route.stages.iter().take(route.stages.len().saturating_sub(1));
        let held = passing.map(|stage| named(stage, "held_time_ns"));
        Tracer {
            tag,
            timeout,
            open: HashMap::new(),
            kept: Tally::default(),
            delivery: Times::default(),
            one_way: Times::default(),
            delivery_lag: LagFree::default(),
            pieces: pieces.into_iter().map(Piece::named).collect(),
            held: held.map(Piece::named).collect(),
            whole: 0,
            broken: 0,
            last_kept: None,
            until: Nanos::NEVER,
            within: 0,
            after: 0,
            route,
        }
    }

    /// Counts what is kept before `until`, the end of the measured window, apart.
    pub fn counting_until(self, until: Nanos) -> Tracer {
        Tracer { until, ..self }
    }

    /// A measured message left.
    pub fn departed(&mut self, departure: &Departure) {
        let key = (departure.producer, departure.number);
        let trace = self.open.entry(key).or_default();
        let Departure { due, sent, own_lag, .. } = *departure;
        trace.departed = Some(Sending { due, sent, own_lag });
        let trace = *trace;
        if let Some((_, committed)) = self.last_hop(&trace) {
            for _ in 0..=trace.again {
                self.keep(key, &trace, committed);
            }
        }
        self.close_if_whole(key);
    }

    /// A stage was done with a message; those of other trials and of the warm-up are passed over.
    pub fn passed(&mut self, hop: &Hop) {
        if hop.tag != self.tag || hop.warmup || !self.route.stages.contains(&hop.stage) {
            return;
        }
        let key = (hop.producer, hop.sequence);
        let is_last = self.route.stages.last() == Some(&hop.stage);
        if self.kept.lane(hop.producer).has(hop.sequence) && (is_last || !self.is_open(key)) {
            if is_last {
                self.kept.note(whole(key), false);
            }
            return;
        }
        let trace = self.open.entry(key).or_default();
        let known = &mut trace.hops[hop.stage as usize];
        if known.is_some() {
            // What a stage has twice counts where it is kept.
            trace.again += u32::from(is_last);
            return;
        }
        *known = Some((hop.arrived, hop.left));
        let trace = *trace;
        if is_last && trace.departed.is_some() {
            self.keep(key, &trace, hop.left);
        }
        self.close_if_whole(key);
    }

    /// Returns the result. `accounts` are the generator's books, with the confirmed and the failed
    /// messages by number; `was_cut_off` is true if a stage ended to which messages were in
    /// transit.
    pub fn finish(mut self, accounts: &Accounts, load: &Load, was_cut_off: bool) -> Traced {
        self.broken += self.open.iter().filter(|(key, _)| self.has(**key)).count() as u64;
        let tally = std::mem::take(&mut self.kept);
        let stored =
            ConsumerAccount { tally, was_disconnected: was_cut_off, ..ConsumerAccount::default() };
        let mut ledger = accounts.settle_kept(load, &stored);
        ledger.last_seen = self.last_seen(accounts, &stored.tally);
        let Tracer { delivery, one_way, delivery_lag, mut pieces, held, whole, broken, .. } = self;
        let Tracer { last_kept, within, after, .. } = self;
        pieces.extend(held);
        Traced {
            ledger,
            delivery,
            one_way,
            delivery_lag,
            times: pieces,
            whole,
            broken,
            last_kept,
            within,
            after,
        }
    }

    /// Returns where the lost messages were seen last, by the name of the stage.
    fn last_seen(&self, accounts: &Accounts, kept: &Tally) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for producer in &accounts.producers {
            let lane = kept.lane(producer.index);
            for number in (0..producer.sent).filter(|number| !lane.has(*number)) {
                let trace = self.open.get(&(producer.index, number));
                let mut stages = self.route.stages.iter().rev();
                let seen = stages.find(|s| trace.is_some_and(|w| w.hops[**s as usize].is_some()));
                let name = match (seen, producer.confirmed_bits.get(number)) {
                    (Some(stage), _) => stage.name(),
                    (None, true) if self.route.has_broker => BROKER,
                    (None, true) => self.route.stages.first().map_or(GENERATOR, |s| s.name()),
                    (None, false) => GENERATOR,
                };
                *counts.entry(name.to_owned()).or_default() += 1;
            }
        }
        counts
    }

    fn is_open(&self, key: (u32, u64)) -> bool {
        self.open.contains_key(&key)
    }

    fn has(&self, (producer, number): (u32, u64)) -> bool {
        self.kept.lane(producer).has(number)
    }

    fn last_hop(&self, trace: &Trace) -> Option<(Nanos, Nanos)> {
        trace.hops[*self.route.stages.last()? as usize]
    }

    /// The last stage committed it.
    fn keep(&mut self, key: (u32, u64), trace: &Trace, committed: Nanos) {
        let Some(Sending { due, sent, own_lag }) = trace.departed else { return };
        let is_new = !self.has(key);
        let delivery_ns = committed.0.saturating_sub(due.0);
        self.kept.note(whole(key), delivery_ns > self.timeout.0);
        if is_new {
            self.delivery.record(delivery_ns);
            let one_way_ns = committed.0.saturating_sub(sent.0);
            self.one_way.record(one_way_ns);
            self.delivery_lag.record(one_way_ns, delivery_ns.saturating_sub(own_lag.0));
            self.last_kept = self.last_kept.max(Some(committed));
            let is_in_time = delivery_ns <= self.timeout.0;
            self.within += u64::from(is_in_time && committed < self.until);
            self.after += u64::from(committed >= self.until && sent < self.until);
        }
    }

    fn close_if_whole(&mut self, key: (u32, u64)) {
        let Some(trace) = self.open.get(&key) else { return };
        let hops: Option<Vec<_>> =
            self.route.stages.iter().map(|s| trace.hops[*s as usize]).collect();
        let (Some(Sending { due, sent, .. }), Some(hops)) = (trace.departed, hops) else { return };
        self.open.remove(&key);
        let mut stamps = vec![due, sent];
        stamps.extend(hops.iter().map(|(arrived, _)| *arrived));
        stamps.extend(hops.last().map(|(_, left)| *left));
        if !stamps.is_sorted() {
            self.broken += 1;
            return;
        }
        self.whole += 1;
        for (pair, piece) in stamps.windows(2).zip(&mut self.pieces) {
            piece.record(pair[1] - pair[0]);
        }
        for ((arrived, left), piece) in hops.iter().zip(&mut self.held) {
            piece.record(*left - *arrived);
        }
    }
}

/// The identity of a message that arrived whole.
fn whole((producer, sequence): (u32, u64)) -> Reading {
    let (due, lag) = (Nanos(0), Nanos(0));
    Reading::Whole(Mark { tag: 0, warmup: false, producer, sequence, due, lag, own_lag: lag })
}

/// The stage before all others: the generator.
pub const GENERATOR: &str = "generator";

/// The stage that writes nothing down.
pub const BROKER: &str = "broker";

#[cfg(test)]
mod tests;
