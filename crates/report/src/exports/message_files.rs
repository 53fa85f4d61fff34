//! The files of single messages of a run: one for each trial, so that a crash loses only that of
//! the trial in progress.

use std::path::PathBuf;

use weigh_model::event::{Event, TrialFinished};

use super::MessageReader;
use crate::journal::{RecordError, RunFolder};
use crate::summary::Summary;
use crate::summary::trials::finished_trials;

/// The file of a trial in the folder of its run.
pub fn path(folder: &RunFolder, trial: &str) -> PathBuf {
    folder.path().join("messages").join(format!("{trial}.parquet"))
}

/// A trial with its messages.
pub struct RecordedTrial<'e> {
    /// Its result.
    pub trial: &'e TrialFinished,
    /// The name of its cell.
    pub cell: &'e str,
    /// Its messages.
    pub messages: MessageReader,
}

/// Finished trials of a run that keeps single messages, but have no file: the disk was full.
pub fn missing<'e>(folder: &RunFolder, events: &'e [Event]) -> Vec<&'e TrialFinished> {
    let finished = finished_trials(events);
    finished.into_iter().filter(|trial| !path(folder, &trial.trial).is_file()).collect()
}

/// The messages of all trials of a run that have a file, in the order of the journal. Files are
/// opened one by one: drop each item before the next.
///
/// # Errors
/// If the run has no record of single messages.
pub fn trials<'e>(
    folder: &'e RunFolder,
    summary: &'e Summary,
    events: &'e [Event],
) -> Result<impl Iterator<Item = Result<RecordedTrial<'e>, RecordError>>, RecordError> {
    let mut finished = finished_trials(events);
    finished.retain(|trial| path(folder, &trial.trial).is_file());
    if finished.is_empty() {
        return Err(RecordError::saying(
            &folder.path().join("messages"),
            "this run has no record of single messages",
            "measure again with --keep-messages",
        ));
    }
    Ok(finished.into_iter().map(move |trial| {
        let cell = summary.cells.iter().find(|cell| cell.point == trial.point);
        let messages = MessageReader::open(&path(folder, &trial.trial))?;
        Ok(RecordedTrial { trial, cell: cell.map_or("", |cell| &cell.name), messages })
    }))
}
