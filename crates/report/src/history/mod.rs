//! Earlier measurements: all runs in a folder, and a metric from run to run. The folders are the
//! source. An index next to them (`index.sqlite`) only saves reading them again: it is rebuilt
//! whenever it is missing, stale, of another version or broken, and may be deleted at any time.

mod entry;
#[cfg(feature = "index")]
mod index;
mod listing;
mod stamp;

pub use entry::Listing;
pub use entry::{FigureEntry, RunEntry, WorstWarning};
pub use listing::History;

/// The index's file in the folder of runs.
pub const INDEX: &str = "index.sqlite";
