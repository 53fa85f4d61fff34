//! All warnings: one list, the source of their texts and of the table in `docs/guide/warnings.md`.
//! Records store a warning under the key `doubts`, for compatibility.

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
