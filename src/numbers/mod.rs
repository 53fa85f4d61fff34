//! `weigh stats`: files of numbers in, a report on them out.

pub mod file;
pub mod report;
pub mod text;
