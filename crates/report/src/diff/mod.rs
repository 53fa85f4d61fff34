//! Compares two runs, cell by cell: the ratio of B to A with its interval, the verdict, and whether
//! a condition such as `response_time_ns.p99 > +5%` holds. `docs/decisions/0012` explains which
//! figure decides.

mod answer;
mod compare;
mod digits;
mod document;
mod input;
mod judgements;
mod matching;
mod rows;
mod text;
mod warnings;

pub use compare::Asked;
pub use document::{DIFF_SCHEMA, Diff, Effect, Figure, Holds, Judgement, Row, RunHead};
pub use input::Side;
pub use text::render;
