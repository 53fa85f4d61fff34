//! Published studies, replayed: what their authors asked, did and found, as data; the plans that
//! do it their way and the right way; and three answers to every claim, made from the runs alone.
//! Texts and results go in, an [`Outcome`] comes out.

pub mod answers;
pub mod audit;
pub mod audit_page;
pub mod carry;
pub mod expression;
pub mod occasion;
pub mod occasions;
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
pub mod tools;

mod agreement;
mod answer_words;
mod break_even;
mod claim_outcome;
mod claim_reading;
mod compared;
mod conditions;
mod coverage;
mod drawing;
mod evidence;
mod figure_reading;
mod figures;
mod found;
mod judging;
mod late;
mod measuring;
mod openings;
mod operations;
mod plan_reading;
mod quantity_reading;
mod reading;
mod run_checks;
mod shown;
mod slips;
mod statistics;
mod warnings;
mod written;

pub use answers::{Printed, Replayed, Why};
pub use occasion::Occasion;
pub use outcome::Outcome;
pub use runs::{RunMade, RunState, Runs};
pub use scale::{Scale, Way};
pub use study::Study;
pub use texts::{StudyProblems, StudyTexts};

/// The JSON Schema (2020-12) of `study.toml`, as checked in at `schemas/`.
pub fn study_schema() -> String {
    written::StudyFile::json_schema()
}

/// The JSON Schema (2020-12) of `tools.toml`, as checked in at `schemas/`.
pub fn tools_schema() -> String {
    tools::json_schema()
}
