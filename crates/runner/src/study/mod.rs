//! The run of a study: the runs of its plans in one folder, and their joint results.

pub mod context;
pub mod external_servers;
pub mod library;
pub mod parts;
pub mod server_trials;
pub mod session;
pub mod several_runs;
pub mod study_run;
pub mod tool_parts;
pub mod tools;
