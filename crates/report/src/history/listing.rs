//! Lists runs: unchanged ones are taken from the index, the others are read.

use std::path::{Path, PathBuf};

use crate::journal::is_being_written;
use crate::{RecordError, RunFolder};

use crate::history::entry::Listing;
use crate::history::entry::{RunRead, UNFINISHED};
#[cfg(feature = "index")]
use crate::history::index::Index;
use crate::history::stamp::Stamp;

/// The runs below a folder.
#[derive(Clone, Debug)]
pub struct History {
    runs: PathBuf,
}

impl History {
    /// The runs below `runs`.
    pub fn below(runs: &Path) -> History {
        History { runs: runs.to_owned() }
    }

    /// Lists them, with the figures of `metric`.
    ///
    /// # Errors
    /// Only if the folder itself cannot be read.
    pub fn list(&self, metric: Option<&str>) -> Result<Listing, RecordError> {
        let folders = RunFolder::all_below(&self.runs)?;
        let stamped: Vec<(RunFolder, Stamp)> = folders
            .into_iter()
            .map(|folder| {
                let stamp = Stamp::of(folder.path());
                (folder, stamp)
            })
            .collect();
        let mut listing =
            if stamped.is_empty() { Listing::default() } else { self.by_index(&stamped, metric) };
        for entry in listing.entries.iter_mut().filter(|entry| entry.outcome == UNFINISHED) {
            entry.in_progress = is_being_written(&self.runs.join(&entry.id));
        }
        Ok(listing)
    }

    #[cfg(feature = "index")]
    fn by_index(&self, stamped: &[(RunFolder, Stamp)], metric: Option<&str>) -> Listing {
        let (index, note) = Index::open(&self.runs);
        let listed = index.and_then(|index| index.list(stamped, metric));
        let listing = listed.unwrap_or_else(|| without_index(stamped, metric));
        let notes = note.into_iter().chain(listing.notes).collect();
        Listing { notes, ..listing }
    }

    #[cfg(not(feature = "index"))]
    fn by_index(&self, stamped: &[(RunFolder, Stamp)], metric: Option<&str>) -> Listing {
        without_index(stamped, metric)
    }
}

/// Reads every run.
fn without_index(stamped: &[(RunFolder, Stamp)], metric: Option<&str>) -> Listing {
    let mut listing = Listing::default();
    for (folder, stamp) in stamped {
        let read = RunRead::of(folder, stamp);
        listing.read += 1;
        if metric.is_some() {
            listing.metrics.extend(read.figures.iter().map(|(name, _)| name.clone()));
        }
        let of_metric = read.figures.into_iter().filter(|(name, _)| Some(name.as_str()) == metric);
        listing.figures.extend(of_metric.map(|(_, figure)| figure));
        listing.take(folder, read.entry);
    }
    listing
}
