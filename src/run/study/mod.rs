//! The run of a study: the runs of its plans in one folder, and what comes of them together.

pub mod judged;
pub mod kept;
pub mod sitting;
pub mod tools;
pub mod tried;
