//! Whether a run is in progress.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::run_folder::JOURNAL;

/// True if a process records into the run in `folder`: it holds the lock of the journal, which ends
/// with the process, however that ends.
pub fn is_being_written(folder: &Path) -> bool {
    let Ok(journal) = File::open(folder.join(JOURNAL)) else { return false };
    matches!(journal.try_lock_shared(), Err(TryLockError::WouldBlock))
}
