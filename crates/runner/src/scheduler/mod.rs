//! Which trial is next. A pure state machine: a plan and the events of a run go in, the next trial
//! comes out, so that a run that died goes on exactly where it stopped. Why the order is this one:
//! `docs/decisions/0010-order-of-trials.md`.

mod axes;
mod clock;
mod order;
mod precision;
mod sequence;

pub use sequence::{Next, Remaining, Sequence, Step};
