//! Shows what was weighed. Everything here is made from the events of a run: live or read back
//! from its journal, the result is the same.

mod attempts;
mod axis_table;
pub mod cells;
mod cells_csv;
pub mod checks;
pub mod comparisons;
mod course;
mod decisions;
pub mod diff;
pub mod digest;
mod emulated_table;
mod energy;
pub mod exports;
pub mod figures;
pub mod github;
pub mod interference;
pub mod journal;
pub mod judging;
pub mod junit;
pub mod ladder;
mod late;
pub mod lateness;
mod limit_beside;
mod limit_curve;
pub mod limit_text;
pub mod limits;
pub mod lint;
pub mod marks;
mod meeting;
mod metric;
pub mod modelled;
mod modelled_table;
mod notes;
pub mod page;
mod pairs;
pub mod pictures;
pub mod quantiles;
mod radio_view;
pub mod reading;
pub mod record_error;
mod recorded_times;
mod ruled_table;
pub mod run_folder;
mod shape;
mod stage_table;
mod stages;
mod stalled;
pub mod study_folder;
pub mod summary;
pub mod table;
mod thresholds;
mod too_early;
pub mod unmeasured;
mod verdict_lines;
mod wire_bytes;

pub use journal::{Journal, Reader, Writer};
pub use record_error::RecordError;
pub use run_folder::RunFolder;
pub use study_folder::StudyFolder;
pub use summary::Summary;

/// The word in a trial's scene under which stands what came of asking a server given by URL for its
/// own counters.
pub const COUNTERS_ASKED: &str = "counters";
