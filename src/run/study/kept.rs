//! What the run of a study keeps in its folder: what was asked, the study's own files, the runs of
//! its plans, which of them are done whenever one more is, and at the end what came of them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use weigh_report::run_folder::{JOURNAL, RunFolder, rfc3339};
use weigh_report::study_folder::{PAGE, STUDY, StudyFolder};
use weigh_study::outcome::Outcome;
use weigh_study::runs::NOT_ASKED;
use weigh_study::study::About;
use weigh_study::{RunMade, RunState, Runs, Study, StudyTexts, runs};

use crate::exit::{Exit, Stop};
use crate::planning::study_parts::Asked;
use crate::run::chronicle::not_recorded;

/// The run of a study on the disk. While it lives nobody else goes on with it.
pub struct Kept {
    /// Where it lies.
    pub folder: StudyFolder,
    /// What is known of it beside the results of its runs.
    pub about: About,
    /// The runs of its plans, as far as they were made.
    pub runs: Runs,
    _lock: File,
}

impl Kept {
    /// Makes the folder of a new run below `runs`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(
        runs: &Path,
        texts: &StudyTexts,
        asked: &Asked,
        data: Option<&Path>,
    ) -> Result<Kept, Stop> {
        let started = SystemTime::now();
        let folder = StudyFolder::create(runs, &texts.name, started, texts.files());
        let folder = folder.map_err(not_recorded)?;
        let lock = folder.lock().map_err(not_recorded)?;
        let about = About {
            scale: asked.scale,
            id: folder.id().to_owned(),
            started: rfc3339(started),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: RUNNING.to_owned(),
            ways: asked.ways.clone(),
            only: asked.only.clone(),
            data: data.map(|data| absolute(data).display().to_string()),
            runs: place_of(&folder),
        };
        Ok(Kept { folder, about, runs: Runs::new(), _lock: lock })
    }

    /// Opens one that ended early, to go on with it.
    ///
    /// # Errors
    /// If it cannot be read, or somebody else goes on with it.
    pub fn open(folder: StudyFolder) -> Result<Kept, Stop> {
        let lock = folder.lock().map_err(Stop::usage)?;
        let (about, runs) = read(&folder)?;
        Ok(Kept { folder, about, runs, _lock: lock })
    }

    /// What was asked for when it was started.
    pub fn asked(&self) -> Asked {
        let About { scale, ways, only, .. } = self.about.clone();
        Asked { scale, ways, only }
    }

    /// The folder of the run of this name, there or not.
    pub fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(runs::folder(name))
    }

    /// Takes what the journal of the run of this name says; nothing where it says nothing yet.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn take(&mut self, name: &str) -> Result<bool, Stop> {
        let made = made(&self.folder, name)?;
        let is_there = made.is_some();
        self.runs.extend(made.map(|made| (name.to_owned(), made)));
        Ok(is_there)
    }

    /// Whether there is a run of this name, over or not.
    pub fn has(&self, name: &str) -> bool {
        matches!(self.runs.get(name), Some(RunState::Made(_)))
    }

    /// Whether the run of this name is over.
    pub fn is_done(&self, name: &str) -> bool {
        match self.runs.get(name) {
            Some(RunState::Made(made)) => made.summary.run.outcome == DONE,
            _ => false,
        }
    }

    /// Notes why there is no run of this name.
    pub fn skip(&mut self, name: &str, why: &str) {
        self.runs.insert(name.to_owned(), RunState::Skipped(why.to_owned()));
    }

    /// Writes what was run so far. Claims are judged at the end: that takes a processor, which the
    /// next plan needs.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn note(&self, study: &Study) -> Result<(), Stop> {
        let progress = study.progress(&self.about, &self.runs);
        self.folder.write_file(STUDY, progress.to_json().as_bytes()).map_err(not_recorded)
    }

    /// What came of the study so far.
    pub fn outcome(&self, study: &Study) -> Outcome {
        study.outcome(&self.about, &self.runs)
    }

    /// Writes it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, study: &Study, outcome: &Outcome) -> Result<(), Stop> {
        write(&self.folder, study, outcome)
    }
}

/// What came of a study's run, made again from its files and the journals of its runs, and whether
/// it was written: while somebody goes on with the run the folder is theirs.
///
/// # Errors
/// If they cannot be read or written.
pub fn made_again(folder: &StudyFolder, study: &Study) -> Result<(Outcome, bool), Stop> {
    let lock = folder.lock();
    let is_in_progress = lock.is_err() && folder.is_in_progress();
    let (about, runs) = read(folder)?;
    let outcome = study.outcome(&about, &runs);
    if is_in_progress {
        return Ok((outcome, false));
    }
    let _lock = lock.map_err(Stop::usage)?;
    write(folder, study, &outcome)?;
    Ok((outcome, true))
}

/// The study whose files were kept with its run.
///
/// # Errors
/// If they cannot be read.
pub fn texts(folder: &StudyFolder) -> Result<StudyTexts, Stop> {
    let name = document(folder)?.study;
    let files = folder.files().map_err(Stop::usage)?;
    let files = files.iter().map(|(file, text)| (file.as_str(), text.clone()));
    Ok(StudyTexts::of(&name, &folder.path().join("study").display().to_string(), files))
}

/// What `study.json` says.
///
/// # Errors
/// If it cannot be read.
pub fn document(folder: &StudyFolder) -> Result<Outcome, Stop> {
    let text = folder.document().map_err(Stop::usage)?;
    serde_json::from_str(&text).map_err(|error| {
        let path = folder.path().join(STUDY);
        Stop::usage(format!("{}: cannot be read: {error}; start a new run", path.display()))
    })
}

fn write(folder: &StudyFolder, study: &Study, outcome: &Outcome) -> Result<(), Stop> {
    folder.write_file(STUDY, outcome.to_json().as_bytes()).map_err(not_recorded)?;
    let page = weigh_study::page::page(study, outcome);
    folder.write_file(PAGE, page.as_bytes()).map_err(not_recorded)
}

/// What was asked of a study's run, and what its runs came to.
fn read(folder: &StudyFolder) -> Result<(About, Runs), Stop> {
    let outcome = document(folder)?;
    let mut runs = Runs::new();
    for run in outcome.experiments.iter().flat_map(|experiment| &experiment.runs) {
        let state = match made(folder, &run.name) {
            Ok(Some(made)) => Some(made),
            Ok(None) => run.skipped.clone().filter(|why| why != NOT_ASKED).map(RunState::Skipped),
            Err(unreadable) => Some(RunState::Skipped(unreadable.to_string())),
        };
        runs.extend(state.map(|state| (run.name.clone(), state)));
    }
    let about = About {
        scale: outcome.scale,
        id: folder.id().to_owned(),
        started: outcome.started,
        version: outcome.version,
        state: outcome.state,
        ways: outcome.ways,
        only: outcome.only,
        data: outcome.data,
        runs: place_of(folder),
    };
    Ok((about, runs))
}

/// Where the runs lie among which this one is, as it was typed; `None` for the default.
fn place_of(folder: &StudyFolder) -> Option<String> {
    let runs = folder.path().parent().map(|runs| runs.display().to_string());
    runs.filter(|runs| !runs.is_empty() && runs != DEFAULT_RUNS)
}

/// The same folder from wherever the program is started to go on.
fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The run of this name, if its journal holds one.
fn made(folder: &StudyFolder, name: &str) -> Result<Option<RunState>, Stop> {
    let own = runs::folder(name);
    let path = folder.path().join(&own);
    if !has_begun(&path) {
        return Ok(None);
    }
    let run = RunFolder::find(folder.path(), &own).map_err(Stop::usage)?;
    let journal = run.read_journal().map_err(Stop::usage)?;
    let made = RunMade::of(&own, &journal.events)
        .map_err(|error| Stop::new(Exit::Internal, format!("{}: {error}", path.display())))?;
    Ok(Some(RunState::Made(Box::new(made))))
}

/// Whether the journal in this folder has at least its first line, without which nobody knows what
/// was run.
pub fn has_begun(path: &Path) -> bool {
    std::fs::read(path.join(JOURNAL)).is_ok_and(|journal| journal.contains(&b'\n'))
}

/// A run of a study that is not over, or was killed.
pub const RUNNING: &str = "running";

/// One that is over.
pub const DONE: &str = "done";

/// One that a signal ended early.
pub const INTERRUPTED: &str = "interrupted";

/// One that could not be recorded any more.
pub const FAILED: &str = "failed";

/// Where runs are kept unless somebody says otherwise.
const DEFAULT_RUNS: &str = "runs";
