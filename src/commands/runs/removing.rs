//! The question and the removal that `weigh runs rm` and `weigh runs prune` share.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use weigh_report::RecordError;
use weigh_report::figures::bytes;
use weigh_report::journal::Removal;

use weigh_runner::exit::{Exit, Stop};

/// A run that may be removed.
pub struct Removable {
    /// Its ID: the folder's name.
    pub id: String,
    /// Its folder, without links.
    pub path: PathBuf,
    /// Bytes on disk that its removal frees.
    pub bytes: u64,
}

impl Removable {
    /// What is known of a claimed run. Its locks end here: they are taken again to remove it.
    pub fn of(claimed: &Removal) -> Removable {
        Removable {
            id: claimed.id().to_owned(),
            path: claimed.path().to_owned(),
            bytes: claimed.bytes(),
        }
    }
}

/// `3 runs, 12.3 MiB`.
pub fn counted(all: &[Removable]) -> String {
    let plural = if all.len() == 1 { "" } else { "s" };
    let sum: u64 = all.iter().map(|run| run.bytes).sum();
    format!("{} run{plural}, {}", all.len(), bytes(sum as f64))
}

/// Asks before runs are removed.
///
/// # Errors
/// If the answer is not yes, or the user cannot be asked.
pub fn ask(all: &[Removable]) -> Result<(), Stop> {
    let no = |why: &str| Stop::usage(format!("{why}: nothing was removed\nhelp: type --yes"));
    if !std::io::stdin().is_terminal() {
        return Err(no("removing runs needs a confirmation, and stdin is not a terminal"));
    }
    eprint!("weigh: remove {}? [y/N] ", counted(all));
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(no("not confirmed")) }
}

/// Removes the runs and prints what was freed. A run that cannot be removed does not keep the
/// others.
///
/// # Errors
/// The last run that could not be removed.
pub fn remove(runs: &Path, all: &[Removable]) -> Result<Exit, Stop> {
    let mut failed: Vec<RecordError> = Vec::new();
    let mut removed = Vec::new();
    for run in all {
        match Removal::of(runs, &run.path).and_then(Removal::remove) {
            Ok(bytes) => {
                removed.push(Removable { id: run.id.clone(), path: run.path.clone(), bytes });
            }
            Err(error) => failed.push(error),
        }
    }
    if !removed.is_empty() {
        eprintln!("weigh: removed {} freed", counted(&removed));
    }
    let Some(last) = failed.pop() else { return Ok(Exit::Done) };
    failed.iter().for_each(|error| eprintln!("weigh: {error}"));
    Err(Stop::new(Exit::Record, last))
}
