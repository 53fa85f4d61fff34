//! What a turn of a shard works with, and what becomes of a request.

use weigh_model::Nanos;

pub(super) use crate::broker_core::Place;

/// One turn of a shard, with the connections whose request may be answered now.
pub(super) type Turn<'t> = crate::broker_core::Turn<'t, Vec<Place>>;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was answered, or has no answer.
    Answered,
    /// It is answered by then, or looked at again.
    Waits(Nanos),
    /// The connection ends: a batch without an answer failed.
    Ends,
}
