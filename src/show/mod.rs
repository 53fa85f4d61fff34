//! Output for users: progress, tables, files.

pub mod citation;
#[cfg(feature = "watch")]
pub mod live_view;
pub mod output;
#[cfg(feature = "plots")]
pub mod plots;
pub mod run_list;
pub mod study_text;
pub mod terminal;
pub mod tool_text;
