//! Numbers and names of metrics as a reader reads them: the lowest room, it knows no run.

pub mod marks;
mod numbers;
pub(crate) mod words;

pub use numbers::*;
pub(crate) use words::{capital, spoken};
