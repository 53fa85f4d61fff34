//! The rendezvous of a trial whose shards are all in this process: atomics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use weigh_model::Nanos;

use super::orders::Orders;
use super::{Rendezvous, Totals};

/// Numbers that the shards of one process exchange.
#[derive(Debug)]
pub struct OneProcess {
    orders: Arc<Orders>,
    shards: u32,
    /// Shards whose connections all stand.
    ready: AtomicU32,
    /// Start of the load, nanoseconds; 0 until all shards are ready.
    start_ns: AtomicU64,
    sent: AtomicU64,
    arrived: AtomicU64,
    last_due_ns: AtomicU64,
    /// Shards that have finished sending. Written after their numbers, and read before them.
    sending_done: AtomicU32,
    /// Shards to which nothing more will come.
    complete: AtomicU32,
}

impl OneProcess {
    /// The rendezvous of a trial with this many shards.
    pub fn new(shards: u32) -> OneProcess {
        OneProcess {
            orders: Arc::default(),
            shards,
            ready: AtomicU32::new(0),
            start_ns: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
            last_due_ns: AtomicU64::new(0),
            sending_done: AtomicU32::new(0),
            complete: AtomicU32::new(0),
        }
    }
}

impl Rendezvous for OneProcess {
    fn orders(&self) -> &Arc<Orders> {
        &self.orders
    }

    fn note_ready(&self) {
        self.ready.fetch_add(1, Ordering::SeqCst);
    }

    /// The first shard that asks once all are ready sets it.
    fn start(&self, now: Nanos) -> Option<Nanos> {
        if self.ready.load(Ordering::SeqCst) < self.shards {
            return None;
        }
        let ahead = (now + START_AHEAD).0;
        let set = self.start_ns.compare_exchange(0, ahead, Ordering::SeqCst, Ordering::SeqCst);
        Some(Nanos(set.map_or_else(|already| already, |_| ahead)))
    }

    fn note_sent(&self, messages: u64, last_due: Nanos) {
        self.sent.fetch_add(messages, Ordering::SeqCst);
        self.last_due_ns.fetch_max(last_due.0, Ordering::SeqCst);
        self.sending_done.fetch_add(1, Ordering::SeqCst);
    }

    fn note_dropped(&self) {
        self.sent.fetch_sub(1, Ordering::SeqCst);
    }

    fn note_arrived(&self, messages: u64) {
        self.arrived.fetch_add(messages, Ordering::SeqCst);
    }

    fn note_complete(&self) {
        self.complete.fetch_add(1, Ordering::SeqCst);
    }

    fn totals(&self) -> Option<Totals> {
        let is_known = self.sending_done.load(Ordering::SeqCst) >= self.shards;
        is_known.then(|| Totals {
            sent: self.sent.load(Ordering::SeqCst),
            arrived: self.arrived.load(Ordering::SeqCst),
            last_due: Nanos(self.last_due_ns.load(Ordering::SeqCst)),
        })
    }

    fn is_complete(&self) -> bool {
        self.complete.load(Ordering::SeqCst) >= self.shards
    }

    fn is_in_one_process(&self) -> bool {
        true
    }
}

/// Time from the last opened connection to the start of the load: long enough for all shards to
/// notice.
const START_AHEAD: Nanos = Nanos::from_millis(2);
