//! Reports on numbers: those of `weigh stats`, of discharges and of two clocks.

pub mod clocks;
pub mod file;
pub mod report;
pub mod rundown;
pub mod text;
