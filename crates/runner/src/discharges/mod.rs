//! Discharges of a battery: logged so that a power cut costs at most the last second, read after
//! the reboot, and compared.

pub mod archive;
pub mod discharge;
pub mod entry;
pub mod line;
pub mod log;
pub mod report;
pub mod start;

pub use archive::{Archive, ArchiveError};
pub use discharge::{Discharge, Ending};
pub use entry::Entry;
pub use log::{DischargeLog, LogError};
pub use report::Report;
pub use start::Start;
