//! Detects a change of a run without reading it: times of last change and sizes of its journal and
//! its summary.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The journal's and the summary's time of last change and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    journal: Option<(u128, u64)>,
    summary: Option<(u128, u64)>,
}

impl Stamp {
    pub(crate) fn of(folder: &Path) -> Stamp {
        let of = |name: &str| {
            let facts = fs::metadata(folder.join(name)).ok()?;
            let changed = facts.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            Some((changed.as_nanos(), facts.len()))
        };
        Stamp { journal: of(crate::journal::JOURNAL), summary: of("summary.json") }
    }

    /// True if there is a summary that is not older than the journal.
    pub(crate) fn has_current_summary(&self) -> bool {
        match (self.journal, self.summary) {
            (Some((journal, _)), Some((summary, _))) => summary >= journal,
            (None, Some(_)) => true,
            _ => false,
        }
    }

    /// Text form for the index.
    #[cfg(feature = "index")]
    pub(crate) fn text(&self) -> String {
        let of = |file: Option<(u128, u64)>| {
            file.map_or_else(|| "-".to_owned(), |(changed, size)| format!("{changed}/{size}"))
        };
        format!("{} {}", of(self.journal), of(self.summary))
    }
}
