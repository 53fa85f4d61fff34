//! Turns the words of a command line into a plan that can be run.

pub mod call_options;
pub mod conduct;
pub mod counts;
pub mod energy;
pub mod fleet_options;
pub mod lane_options;
pub mod limit_goals;
pub mod limit_load;
pub mod main_job;
pub mod metric_names;
pub mod options;
pub mod past;
pub mod plan_file;
pub mod request_options;
pub mod tls_options;
pub mod verdicts;
