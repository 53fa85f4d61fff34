//! Live capture: a ring that the kernel fills, with a filter that the kernel applies.

pub mod bpf;
pub mod interface;
mod live;
mod ordered;
mod ring;
mod socket;

pub use live::{Capture, Options, Tap};
