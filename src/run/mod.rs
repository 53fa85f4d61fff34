//! Carrying a run out: trial after trial, each with its target, all of it recorded.

pub mod chronicle;
pub mod counters;
pub mod experiment;
pub mod identity;
pub mod interrupts;
pub mod kept;
pub mod messages;
pub mod record;
pub mod resumption;
pub mod run_record;
pub mod series;
pub mod sitting;
pub mod target;
pub mod trial_run;
