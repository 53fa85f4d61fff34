//! The run of a study: the runs of its plans in one folder, and what comes of them together.

pub mod context;
pub mod elsewhere;
pub mod judged;
pub mod kept;
pub mod library;
pub mod parts;
pub mod sitting;
pub mod tool_parts;
pub mod tools;
pub mod tried;
