//! The files made from the journal of a run in its folder: summary, page, cells as CSV and recorded
//! times. They can be made again at any time.

use std::fs;

use weigh_model::event::Event;

use crate::exports::recorded_times::HISTOGRAMS;
use crate::exports::{cells, recorded_times};
use crate::journal::{JOURNAL, RecordError, RunFolder, attempts};
use crate::page::{Provenance, page};
use crate::summary::Summary;

impl RunFolder {
    /// Writes `summary.json`, `report.html`, `cells.csv` and, in a folder, the recorded times of a
    /// run, finished or not, and returns the summary. Each file is replaced as a whole.
    ///
    /// # Errors
    /// If the events are not those of a run, or a file cannot be written.
    pub fn write_results(&self, events: &[Event]) -> Result<Summary, RecordError> {
        let events = &*attempts::counted(events);
        let summary = self.summary(events)?;
        self.write_file("summary.json", summary.to_json().as_bytes())?;
        let provenance = Provenance { journal_sha256: self.journal_sha256() };
        let page = page(&summary, events, &provenance);
        self.write_file("report.html", page.as_bytes())?;
        self.write_file("cells.csv", &cells::csv(&summary))?;
        let files = recorded_times::files(&summary, events);
        if !files.is_empty() {
            let folder = self.path().join(HISTOGRAMS);
            fs::create_dir_all(&folder).map_err(|problem| RecordError::new(&folder, problem))?;
        }
        for file in files {
            self.write_file(&format!("{HISTOGRAMS}/{}", file.name), &file.content)?;
            // An earlier version wrote it here.
            let _ = fs::remove_file(self.path().join(&file.name));
        }
        Ok(summary)
    }

    /// Returns the summary of what was read from the journal.
    ///
    /// # Errors
    /// If the first line is missing, so that it is unknown what was measured.
    pub fn summary(&self, events: &[Event]) -> Result<Summary, RecordError> {
        Summary::from_events(events).map_err(|error| {
            let path = self.path().join(JOURNAL);
            RecordError::saying(&path, error.to_string(), "name the folder of another run")
        })
    }
}
