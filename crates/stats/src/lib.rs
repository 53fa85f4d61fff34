//! Statistics: estimates with their intervals, comparisons, quantiles, histograms. Independent of
//! units, protocols and files: numbers in, numbers out.

pub mod average;
pub mod bootstrap;
pub mod comparison;
pub mod cost_model;
pub mod estimate;
pub mod hierarchy;
pub mod histogram;
pub mod interval;
pub mod line;
pub mod normality;
pub mod order_statistic;
pub mod outlier;
pub mod paired;
pub mod propagation;
pub mod quantile;
pub mod random;
pub mod rank;
pub mod refusal;
pub mod runs;
pub mod segments;
pub mod share;
pub mod steady_state;
pub mod within_run;

pub use comparison::{Comparison, Ratio, Verdict};
pub use estimate::Estimate;
pub use histogram::Histogram;
pub use interval::{Interval, Method};
pub use refusal::Refusal;
pub use runs::RunsMean;

/// The confidence of every interval in this crate.
pub const CONFIDENCE: f64 = 0.95;
