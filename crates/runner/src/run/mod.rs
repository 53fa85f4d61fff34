//! A whole run: trials in sequence, a journal written as they run, and the results.

pub mod baseline;
pub mod conduct;
pub mod experiment;
pub mod history;
pub mod live_file;
pub mod resumption;
pub mod run_record;
pub mod session;
