//! Published studies, replayed: what their authors asked, did and found, as data; the plans that
//! do it their way and the right way; and a verdict on every claim, made from the runs alone.
//! Texts and results go in, an [`Outcome`] comes out.

pub mod carry;
mod judging;
pub mod outcome;
pub mod plans;
pub mod published;
mod reading;
pub mod runs;
pub mod scale;
pub mod search;
pub mod study;
pub mod texts;
pub mod verdict;

pub use outcome::Outcome;
pub use runs::{RunMade, RunState, Runs};
pub use scale::{Scale, Way};
pub use study::Study;
pub use texts::{StudyProblems, StudyTexts};
pub use verdict::Verdict;
