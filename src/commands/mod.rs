//! One file per command.

pub mod audit;
pub mod autocannon;
pub mod background;
pub mod clock;
pub mod compare;
pub mod devices;
pub mod diff;
pub mod doctor;
pub mod export;
pub mod facade;
pub mod inspect;
pub mod install;
pub mod limit;
pub mod meters;
pub mod mqtt_stresser;
pub mod negative;
pub mod observe;
pub mod open;
pub mod probe;
pub mod programs;
pub mod report;
pub mod run;
pub mod rundown;
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
mod started;
pub mod stats;
pub mod study;
pub mod targets;
pub mod wrk;
