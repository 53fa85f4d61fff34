//! A whole run: trials in their sequence, a journal that is written as they go, and the results.

pub mod chronicle;
pub mod conduct;
pub mod experiment;
pub mod null_path;
pub mod resumption;
pub mod run_record;
pub mod sitting;
