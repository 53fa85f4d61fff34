//! The tests of the report as its users see it: the table, the summary, and the run's folder.

mod messages;
mod recording;
mod rendering;
mod story;
