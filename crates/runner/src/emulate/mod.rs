//! Emulates other tools: applies their arithmetic to an exact record. The load stays the same, so
//! the figures of a published table can be compared with the exact ones, and a user of another tool
//! finds its figure and the reason for the difference.
//!
//! Every module names the source of the tool that it follows.

pub mod autocannon;
pub mod comparison;
mod counts;
mod figures;
pub mod htop;
pub mod mqtt_stresser;
pub mod times;
pub mod trial_facts;
pub mod wrk;

pub use comparison::{Comparison, Row};
pub use figures::figures;
pub use trial_facts::{Client, TrialFacts};
