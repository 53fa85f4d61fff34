//! Small files of the kernel that hold one number or one word each.

use std::fs;
use std::path::{Path, PathBuf};

use super::MeterError;

/// The word in a file; `None` if the file is missing or empty.
pub(super) fn word(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let word = text.trim();
    (!word.is_empty()).then(|| word.to_owned())
}

/// The number in a file; `None` if it is missing or not a whole number.
pub(super) fn number(path: &Path) -> Option<i64> {
    word(path)?.parse().ok()
}

/// The number in a file that existed when the meter was opened.
pub(super) fn reading(path: &Path) -> Result<i64, MeterError> {
    let gone = |reason: String| MeterError::Vanished { path: path.display().to_string(), reason };
    let text = fs::read_to_string(path).map_err(|error| gone(error.to_string()))?;
    let text = text.trim();
    text.parse().map_err(|_| gone(format!("expected a whole number, found {text:?}")))
}

/// Folders in `parent`, by their names' numbers and then letters; empty if it does not exist.
pub(super) fn folders(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let mut found: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect();
    found.sort_by_key(|path| (name(path).len(), name(path)));
    found
}

/// The last part of a path.
pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
