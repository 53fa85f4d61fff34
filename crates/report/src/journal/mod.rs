//! The files of a run on disk: its journal, one event a line, and the folders of runs and studies.

pub(crate) mod attempts;
pub mod digest;
pub(crate) mod files;
mod reader;
mod record_error;
mod recording;
mod removal;
mod run_folder;
mod study_folder;
mod writer;

pub use files::STUDY;
pub use reader::{BadLine, Journal, Newer, Reader};
pub use record_error::RecordError;
pub use recording::is_being_written;
pub use removal::Removal;
pub use run_folder::{FREE_BYTES_MIN, JOURNAL, LATEST, RunFolder, folder_time, rfc3339};
pub use study_folder::{PAGE, StudyFolder};
pub use writer::Writer;
