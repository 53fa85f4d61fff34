//! The tests of the report as its users see it: the table, the page, and the run's folder.

mod diff;
mod energy;
mod exports;
mod interference;
mod journal_size;
mod lateness;
#[cfg(feature = "parquet")]
mod messages;
mod modelled;
mod page;
mod recording;
mod rendering;
mod resuming;
mod slow_paths;
mod stages;
mod storing;
mod story;
mod wire;
