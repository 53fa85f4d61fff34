//! Single runs and runs of studies as one list, for commands that treat them alike.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use weigh_report::StudyFolder;
use weigh_report::history::History;

use crate::show::run_list::{StudyEntry, outcome};
use weigh_runner::exit::Stop;
use weigh_runner::study::study_run;

/// A run, or the run of a study.
pub struct Listed {
    /// Its ID: the folder's name.
    pub id: String,
    /// Its folder.
    pub path: PathBuf,
    /// When it started, RFC 3339.
    pub started: String,
    /// `done`, `interrupted`, `failed`, `crashed` or `in progress`.
    pub outcome: String,
}

impl Listed {
    /// When it started; 1970 if that cannot be read.
    pub fn moment(&self) -> Timestamp {
        self.started.parse().unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// Everything below `runs`, the oldest first. Folders that cannot be read and links are left out,
/// with a message.
///
/// # Errors
/// A folder that exists and cannot be read.
pub fn all(runs: &Path) -> Result<Vec<Listed>, Stop> {
    let listing = History::below(runs).list(None).map_err(Stop::usage)?;
    for note in &listing.notes {
        eprintln!("weigh: {note}");
    }
    let single = listing.entries.iter().map(|entry| Listed {
        id: entry.id.clone(),
        path: runs.join(&entry.id),
        started: entry.started.clone(),
        outcome: outcome(entry).to_owned(),
    });
    let of_studies = studies(runs)?.into_iter().map(|entry| Listed {
        path: runs.join(&entry.id),
        id: entry.id,
        started: entry.started,
        outcome: entry.outcome,
    });
    let mut all: Vec<Listed> = single.chain(of_studies).collect();
    all.retain(|listed| {
        let is_link = listed.path.is_symlink();
        if is_link {
            eprintln!("weigh: {} is a link: it is not changed", listed.path.display());
        }
        !is_link
    });
    all.sort_by_key(|listed| (listed.moment(), listed.id.clone()));
    Ok(all)
}

/// The runs of studies below `runs`, the oldest first; those that cannot be read are left out, with
/// a message.
///
/// # Errors
/// A folder that exists and cannot be read.
pub fn studies(runs: &Path) -> Result<Vec<StudyEntry>, Stop> {
    let mut entries = Vec::new();
    for folder in StudyFolder::all_below(runs).map_err(Stop::usage)? {
        match study_run::document(&folder) {
            Ok(outcome) => entries.push(StudyEntry::of(&folder, &outcome)),
            Err(unreadable) => eprintln!("weigh: {unreadable}"),
        }
    }
    Ok(entries)
}
