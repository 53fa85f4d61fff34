//! Why a file could not be recorded or read, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// A file or folder of a run that could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}; {fix}", path.display())]
pub struct RecordError {
    /// The file or folder.
    pub path: PathBuf,
    /// What went wrong.
    pub problem: io::Error,
    /// How to fix it.
    pub fix: String,
}

impl RecordError {
    /// An error of the operating system at `path`.
    pub fn new(path: &Path, problem: io::Error) -> RecordError {
        let fix = fix(problem.kind()).to_owned();
        RecordError { path: path.to_owned(), problem, fix }
    }

    /// An error of the operating system while `path` was to be read.
    pub fn unread(path: &Path, problem: io::Error) -> RecordError {
        let fix = match problem.kind() {
            io::ErrorKind::PermissionDenied => "ask its owner, or name a run that you may read",
            io::ErrorKind::NotFound => "check the path",
            _ => "name another run",
        };
        RecordError { path: path.to_owned(), problem, fix: fix.to_owned() }
    }

    /// An error that is not from the operating system.
    pub fn saying(path: &Path, problem: impl Into<String>, fix: impl Into<String>) -> RecordError {
        let problem = io::Error::other(problem.into());
        RecordError { path: path.to_owned(), problem, fix: fix.into() }
    }
}

fn fix(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or record elsewhere with --runs DIR"
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "choose a writable folder with --runs DIR"
        }
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "move away the existing file, or record elsewhere with --runs DIR"
        }
        _ => "check the disk, or record elsewhere with --runs DIR",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What could not be read is no reason to write elsewhere.
    #[test]
    fn reading_and_writing_are_told_apart() {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let path = Path::new("runs/a/journal.jsonl");
        assert!(RecordError::new(path, denied()).to_string().contains("--runs DIR"));
        let unread = RecordError::unread(path, denied()).to_string();
        assert!(unread.contains("you may read") && !unread.contains("--runs"), "{unread}");
    }
}
