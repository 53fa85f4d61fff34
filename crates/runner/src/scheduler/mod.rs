//! Decides which trial is next. A pure state machine from a plan and the events of a run to the
//! next trial, so that a run that crashed continues exactly where it stopped. For the reasons of
//! the order see `docs/decisions/0010-order-of-trials.md`.

mod axes;
mod clock;
mod order;
mod precision;
mod sequence;

pub use sequence::{Next, Remaining, Sequence, Step};
