//! One file per command.

pub mod compare;
pub mod doctor;
pub mod report;
pub mod runs;
pub mod serve;
pub mod stats;
pub mod targets;
