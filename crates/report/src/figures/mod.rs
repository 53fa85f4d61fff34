//! Numbers and names of metrics for people: the lowest module, independent of runs.

pub mod marks;
mod numbers;
pub(crate) mod words;

pub use numbers::*;
pub(crate) use words::{capital, method_words, spoken};
