//! What the shards of a trial agree on: when the load starts, how much all of them sent, when
//! nothing more can come. The shards of one process meet in
//! [`OneProcess`](one_process::OneProcess). Processes that run a part of the shards each meet in an
//! implementation of their own, which carries the same numbers between hosts.
//!
//! A trial calls it in this order, each shard in its own thread:
//!
//! ```text
//! note_ready ─► start … start ─► note_sent ─► note_arrived, totals, is_complete … ─► note_complete
//! connections   polled until     nothing      polled while draining                  nothing more
//! stand         it is known      more is sent                                        can come
//! ```
//!
//! Nothing here is called between a message's due time and the kernel. What every step of a shard
//! reads is in [`Orders`], plain atomics that an implementation writes.
//!
//! All times are on the trial's clock. Where it covers several hosts, each of them places the zero
//! of its clock ([`Generator::start`](crate::generator::Generator::start)) by the offset that it
//! measured, so that one moment is one number everywhere, within the bound of that measurement.

pub mod one_process;
pub mod orders;

use std::sync::Arc;

use weigh_model::Nanos;

use orders::Orders;

/// The place where all shards of a trial meet, of which some may be in other processes.
///
/// Methods return at once: an implementation over a network answers with what it last heard, and
/// sends in a thread of its own. What it knows of other hosts may be late, as long as it is
/// consistent: who sees that a host's shard has finished sees what that shard noted before.
pub trait Rendezvous: Send + Sync {
    /// Orders to the shards of this process, the same object at every call.
    fn orders(&self) -> &Arc<Orders>;

    /// A shard of this process has all the connections that stand before the load. Once for each
    /// shard; one that failed before never calls it.
    fn note_ready(&self);

    /// The start of the load; `None` until all shards of the trial are ready. Shards call it every
    /// 0.5 ms, with the time it is. All get the same answer, however often they ask.
    ///
    /// The answer must be known to each shard at least 2 ms before the start, or its first messages
    /// are late; they count as such. Nothing is sent before the start, so one barrier is enough for
    /// consumers to stand before producers send.
    fn start(&self, now: Nanos) -> Option<Nanos>;

    /// A shard of this process sends nothing more. It sent this number of measured messages that
    /// may arrive, the last of which was due at `last_due`, 0 if it sent none. Once for each shard.
    fn note_sent(&self, messages: u64, last_due: Nanos);

    /// A message that a shard of this process had counted with [`Rendezvous::note_sent`] was lost
    /// on our own side: no consumer is to wait for it.
    fn note_dropped(&self);

    /// Consumers of this process got this many more messages for the first time. Called while
    /// draining only.
    fn note_arrived(&self, messages: u64);

    /// A shard of this process knows from [`Rendezvous::totals`] that nothing more can come to it.
    /// Once for each shard, at most.
    fn note_complete(&self);

    /// Numbers of all shards of the trial; `None` until every one of them sends nothing more.
    fn totals(&self) -> Option<Totals>;

    /// True once all shards of the trial have called [`Rendezvous::note_complete`].
    fn is_complete(&self) -> bool;

    /// True if all shards of the trial are in this process, so that it sees all that comes in.
    fn is_in_one_process(&self) -> bool {
        false
    }
}

/// Numbers of all shards of a trial, after the last of them has sent its last message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Measured messages that were sent and may arrive: the sum over all shards. It only falls.
    pub sent: u64,
    /// Messages that consumers got for the first time, in time or late: the sum over all shards,
    /// as last reported. It only grows.
    pub arrived: u64,
    /// The latest due time of a message that was sent, 0 if none was.
    pub last_due: Nanos,
}
