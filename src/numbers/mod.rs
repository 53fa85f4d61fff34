//! Numbers in, reports on them out: of `weigh stats`, of discharges, of two clocks.

pub mod clocks;
pub mod file;
pub mod report;
pub mod rundown;
pub mod text;
