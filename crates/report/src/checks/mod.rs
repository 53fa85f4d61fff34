//! The checks of a run or of a comparison of two, for programs: as JUnit XML and as annotations of
//! GitHub.

mod check;
pub mod github;
pub mod junit;

pub use check::{Check, MEASURED, PROVEN, of_diff, of_run};
