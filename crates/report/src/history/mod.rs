//! What was weighed before: all runs below a folder, and how a metric went from run to run. The
//! folders are the truth. An index beside them (`index.sqlite`) only saves reading them again: it
//! is made from them whenever it is missing, stale, of another version or broken, and may be
//! deleted at any time.

mod entry;
#[cfg(feature = "index")]
mod index;
mod listing;
mod stamp;

pub use entry::Listing;
pub use entry::{FigureEntry, RunEntry, WorstDoubt};
pub use listing::History;

/// The index's file in the folder of runs.
pub const INDEX: &str = "index.sqlite";
