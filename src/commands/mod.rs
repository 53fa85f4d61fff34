//! One file per command.

pub mod audit;
pub mod compare;
pub mod diff;
pub mod doctor;
pub mod export;
pub mod report;
pub mod run;
pub mod runs;
pub mod serve;
pub mod stats;
pub mod targets;
