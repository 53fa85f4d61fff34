//! Shows what was weighed. Everything here is made from the events of a run: live or read back
//! from its journal, the result is the same.

mod attempts;
pub mod cells;
mod cells_csv;
pub mod comparisons;
pub mod exports;
pub mod figures;
pub mod journal;
pub mod lint;
mod notes;
pub mod page;
pub mod pictures;
pub mod record_error;
mod recorded_times;
pub mod run_folder;
mod shape;
pub mod summary;
pub mod table;

pub use journal::{Journal, Reader, Writer};
pub use record_error::RecordError;
pub use run_folder::RunFolder;
pub use summary::Summary;
