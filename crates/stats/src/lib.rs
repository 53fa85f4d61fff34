//! Weighs numbers: estimates with their intervals, comparisons, quantiles, histograms. Knows no
//! unit, protocol or file: numbers go in, numbers come out.

pub mod comparison;
pub mod estimate;
pub mod histogram;
pub mod quantile;
pub mod share;

pub use comparison::{Comparison, Ratio, Refusal, Verdict};
pub use estimate::Estimate;
pub use histogram::Histogram;

/// The confidence of every interval in this crate.
pub const CONFIDENCE: f64 = 0.95;
