//! What a run or a comparison of two comes to for a program: checks that hold or not, as JUnit XML
//! and as annotations of GitHub.

mod check;
pub mod github;
pub mod junit;

pub use check::{Check, MEASURED, PROVEN, of_diff, of_run};
