//! From the events of a run to its [`Summary`]: cells with estimates, comparisons, thresholds,
//! limits and broken rules. All output is made from it.

mod build;
pub mod cell;
pub(crate) mod cell_name;
mod cells;
pub(crate) mod comparison;
pub mod comparisons;
mod course;
mod decisions;
pub mod document;
pub(crate) mod energy;
pub(crate) mod figure_text;
pub(crate) mod headlines;
pub mod interference;
pub mod judging;
pub mod ladder;
pub mod lateness;
pub mod limit;
pub(crate) mod limit_checks;
pub(crate) mod limit_curve;
mod limits;
pub mod lint;
pub(crate) mod matrix;
pub(crate) mod metric;
pub mod modelled;
pub(crate) mod pairs;
pub mod quantiles;
pub mod reading;
pub(crate) mod shape;
pub(crate) mod threshold;
pub(crate) mod thresholds;
pub(crate) mod trials;
pub mod unmeasured;
pub(crate) mod wire_bytes;

pub use build::NotARun;
pub use cell::{COUNTERS_ASKED, Cell, Failure, REPETITIONS_MIN};
pub use comparison::{Comparison, Difference, Multiplicity, Ratio, Shift, Verdict};
pub use document::{Run, SUMMARY_SCHEMA, Summary};
pub use headlines::HEADLINES;
pub use interference::Interference;
pub use limit::Limit;
pub(crate) use matrix::Matrix;
pub use metric::{Bounds, BudgetLine, Median, Metric, Normality, possible};
pub use threshold::{Answer, Judged, Threshold};
