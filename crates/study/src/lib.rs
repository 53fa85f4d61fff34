//! Published studies, replayed: what their authors asked, did and found, as data; the plans that
//! do it their way and the right way; and a verdict on every claim, made from the runs alone.
//! Texts and results go in, an [`Outcome`] comes out.

pub mod audit_page;
pub mod carry;
pub mod expression;
pub mod outcome;
pub mod page;
pub mod plans;
pub mod published;
pub mod quantity;
pub mod runs;
pub mod scale;
pub mod search;
pub mod selector;
pub mod study;
pub mod texts;
pub mod verdict;

mod claim_reading;
mod conditions;
mod doubts;
mod drawing;
mod figure_reading;
mod figures;
mod judging;
mod late;
mod measuring;
mod plan_reading;
mod reading;
mod run_checks;
mod verdict_words;
mod written;

pub use outcome::Outcome;
pub use runs::{RunMade, RunState, Runs};
pub use scale::{Scale, Way};
pub use study::Study;
pub use texts::{StudyProblems, StudyTexts};
pub use verdict::Verdict;

/// The JSON Schema (2020-12) of `study.toml`, as checked in at `schemas/`.
pub fn study_schema() -> String {
    written::StudyFile::json_schema()
}
