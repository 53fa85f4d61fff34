//! Shows what was weighed. Everything here is made from the events of a run: live or read back
//! from its journal, the result is the same.

mod attempts;
mod axis_table;
pub mod cells;
mod cells_csv;
pub mod comparisons;
mod course;
mod decisions;
pub mod diff;
pub mod exports;
pub mod figures;
pub mod journal;
pub mod lint;
mod meeting;
mod metric;
mod notes;
pub mod page;
mod pairs;
pub mod pictures;
pub mod record_error;
mod recorded_times;
pub mod run_folder;
mod shape;
pub mod summary;
pub mod table;
mod thresholds;
mod verdict_lines;

pub use journal::{Journal, Reader, Writer};
pub use record_error::RecordError;
pub use run_folder::RunFolder;
pub use summary::Summary;
