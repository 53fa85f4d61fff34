//! One file per command.

pub mod advise;
pub mod agent;
pub mod audit;
pub mod background;
pub mod clock;
pub mod compare;
pub mod completions;
pub mod diff;
pub mod doctor;
pub mod energy;
pub mod export;
pub mod facade;
pub mod fleet;
pub mod install;
pub mod limit;
pub mod man;
pub mod moved;
pub mod negative;
pub mod observe;
pub mod probe;
pub mod programs;
pub mod refused;
pub mod report;
pub mod run;
pub mod runs;
pub mod seal;
pub mod serve;
#[cfg(feature = "pipeline")]
mod serve_flags;
#[cfg(feature = "pipeline")]
pub mod serve_pipeline;
#[cfg(feature = "pipeline")]
pub mod serve_stage;
mod serve_words;
pub mod size;
mod started;
pub use started::temporary_folder;
pub mod stats;
pub mod study;
pub mod targets;
pub mod watch;
