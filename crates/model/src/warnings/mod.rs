//! Everything that may make a result doubtful: one list, from which come the texts of warnings and
//! the table in `docs/guide/warnings.md`. Records call a warning a doubt, as they always have.

#[macro_use]
mod entry;
mod list;
mod record;
mod table;

pub use crate::severity::Severity;
pub use entry::Entry;
pub use list::{WARNINGS, Warning};
pub use record::WarningRecord;
pub use table::table;
