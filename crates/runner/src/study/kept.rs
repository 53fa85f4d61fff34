//! What the run of a study keeps in its folder: what was asked, the study's own files, the runs of
//! its plans, which of them are done whenever one more is, and at the end what came of them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use weigh_model::event::Event;
use weigh_report::journal::{JOURNAL, PAGE, STUDY, rfc3339};
use weigh_report::{RunFolder, StudyFolder};
use weigh_study::outcome::Outcome;
use weigh_study::runs::NOT_ASKED;
use weigh_study::study::About;
use weigh_study::{Occasion, RunMade, RunState, Runs, Study, StudyTexts, runs};

use crate::exit::{Exit, Stop};
use crate::run::chronicle::not_recorded;
use crate::study::parts::Asked;
use crate::study::tools::journal;

/// The run of a study on the disk. While it lives nobody else goes on with it.
pub struct Kept {
    /// Where it lies.
    pub folder: StudyFolder,
    /// What is known of it beside the results of its runs.
    pub about: About,
    /// The runs of its plans, as far as they were made.
    pub runs: Runs,
    origin: Origin,
    _lock: File,
}

/// What its runs were started with.
#[derive(Clone, Debug, Default)]
struct Origin {
    /// SHA-256 of `study.toml`, each once: more than one if the file was changed between sittings.
    hashes: Vec<String>,
    /// True if a journal does not say which: older versions did not.
    is_older: bool,
    /// The boots of the machine in which it was started and resumed.
    boots: Vec<String>,
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
        let boots = weigh_observe::boot::id().into_iter().collect();
        let origin = Origin { hashes: vec![texts.hash()], is_older: false, boots };
        Ok(Kept { folder, about, runs: Runs::new(), origin, _lock: lock })
    }

    /// Opens one that ended early, to go on with it.
    ///
    /// # Errors
    /// If it cannot be read, or somebody else goes on with it.
    pub fn open(folder: StudyFolder) -> Result<Kept, Stop> {
        let lock = folder.lock().map_err(Stop::usage)?;
        let Read { about, runs, mut origin } = read(&folder)?;
        origin.boot(weigh_observe::boot::id());
        Ok(Kept { folder, about, runs, origin, _lock: lock })
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
        self.runs.extend(made.map(|(made, _)| (name.to_owned(), made)));
        Ok(is_there)
    }

    /// Whether there is a run of this name, over or not.
    pub fn has(&self, name: &str) -> bool {
        matches!(self.runs.get(name), Some(RunState::Made(_) | RunState::Tool(_)))
    }

    /// Whether the run of this name is over.
    pub fn is_done(&self, name: &str) -> bool {
        match self.runs.get(name) {
            Some(RunState::Made(made)) => made.summary.run.outcome == DONE,
            Some(RunState::Tool(made)) => made.is_done,
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
        let progress = study.progress(&self.about, &self.occasion());
        self.folder.write_file(STUDY, progress.to_json().as_bytes()).map_err(not_recorded)
    }

    /// What came of the study so far.
    pub fn outcome(&self, study: &Study) -> Outcome {
        study.outcome(&self.about, &[self.occasion()])
    }

    fn occasion(&self) -> Occasion {
        occasion(&self.about, &self.origin, self.runs.clone())
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
    let outcome = judged(folder, study)?;
    if is_in_progress {
        return Ok((outcome, false));
    }
    let _lock = lock.map_err(Stop::usage)?;
    write(folder, study, &outcome)?;
    Ok((outcome, true))
}

/// The answers of a study's run by this study, which need not be the one that was kept with it.
///
/// # Errors
/// If the run cannot be read.
pub fn judged(folder: &StudyFolder, study: &Study) -> Result<Outcome, Stop> {
    let (about, occasion) = evidence(folder)?;
    Ok(study.outcome(&about, &[occasion]))
}

/// A run of a study as evidence, with what was asked of it.
///
/// # Errors
/// If it cannot be read.
pub fn evidence(folder: &StudyFolder) -> Result<(About, Occasion), Stop> {
    let Read { about, runs, origin } = read(folder)?;
    let occasion = occasion(&about, &origin, runs);
    Ok((about, occasion))
}

fn occasion(about: &About, origin: &Origin, runs: Runs) -> Occasion {
    Occasion {
        run: about.id.clone(),
        started: about.started.clone(),
        version: about.version.clone(),
        scale: about.scale,
        state: about.state.clone(),
        study_hash: origin.study_hash(),
        boot: (!origin.boots.is_empty()).then(|| origin.boots.join(" ")),
        runs,
    }
}

impl Origin {
    /// The study file, if all of it was run by one that is known. Of several all: none of them is
    /// the one by which all of it was run.
    fn study_hash(&self) -> Option<String> {
        (!self.is_older && !self.hashes.is_empty()).then(|| self.hashes.join(" "))
    }

    fn hash(&mut self, hash: &str) {
        if !self.hashes.iter().any(|known| known == hash) {
            self.hashes.push(hash.to_owned());
        }
    }

    fn boot(&mut self, boot: Option<String>) {
        self.boots.extend(boot.filter(|boot| !self.boots.contains(boot)));
    }

    /// Takes in what the journal of one more of its runs says.
    fn add(&mut self, events: &[Event]) {
        for event in events {
            match event {
                Event::RunStarted(started) => {
                    match &started.setup.study_hash {
                        Some(hash) => self.hash(hash),
                        None => self.is_older = true,
                    }
                    self.boot(started.setup.boot.clone());
                }
                Event::RunResumed(resumed) => self.boot(resumed.boot.clone()),
                _ => {}
            }
        }
    }
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

/// What `study.json` says. Of one that an older version has written that is what was asked for and
/// what was run: its claims have other answers, and are left out.
///
/// # Errors
/// If it cannot be read.
pub fn document(folder: &StudyFolder) -> Result<Outcome, Stop> {
    let text = folder.document().map_err(Stop::usage)?;
    let read = serde_json::from_str(&text).or_else(|error| without_answers(&text).ok_or(error));
    read.map_err(|error| {
        let path = folder.path().join(STUDY);
        Stop::usage(format!("{}: cannot be read: {error}; start a new run", path.display()))
    })
}

/// The document without its claims and pictures.
fn without_answers(text: &str) -> Option<Outcome> {
    let mut document: serde_json::Value = serde_json::from_str(text).ok()?;
    let all = document.as_object_mut()?;
    for key in ["claims", "figures"] {
        all.insert(key.to_owned(), serde_json::Value::Array(Vec::new()));
    }
    ["certainty", "carry"].iter().for_each(|key| drop(all.remove(*key)));
    serde_json::from_value(document).ok()
}

fn write(folder: &StudyFolder, study: &Study, outcome: &Outcome) -> Result<(), Stop> {
    folder.write_file(STUDY, outcome.to_json().as_bytes()).map_err(not_recorded)?;
    let page = weigh_study::page::page(study, outcome);
    folder.write_file(PAGE, page.as_bytes()).map_err(not_recorded)
}

/// What was asked of a study's run, what its runs came to, and what they were started with.
struct Read {
    about: About,
    runs: Runs,
    origin: Origin,
}

fn read(folder: &StudyFolder) -> Result<Read, Stop> {
    let outcome = document(folder)?;
    let begun = outcome.occasions.first();
    let mut origin = Origin::default();
    let words = |text: Option<&String>| {
        text.map_or_else(Vec::new, |text| text.split_whitespace().map(str::to_owned).collect())
    };
    origin.hashes = words(begun.and_then(|own| own.study_hash.as_ref()));
    origin.boots = words(begun.and_then(|own| own.boot.as_ref()));
    let mut runs = Runs::new();
    let plans = outcome.experiments.iter().flat_map(|experiment| &experiment.runs);
    let named = plans.map(|run| (&run.name, &run.skipped));
    let named = named.chain(outcome.tools.iter().map(|tool| (&tool.name, &tool.skipped)));
    for (name, skipped) in named {
        let state = match made(folder, name) {
            Ok(Some((made, events))) => {
                origin.add(&events);
                Some(made)
            }
            Ok(None) => skipped.clone().filter(|why| why != NOT_ASKED).map(RunState::Skipped),
            Err(unreadable) => Some(RunState::Skipped(unreadable.to_string())),
        };
        runs.extend(state.map(|state| (name.clone(), state)));
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
    Ok(Read { about, runs, origin })
}

/// Where the runs lie among which this one is, as it was typed; `None` for the default.
fn place_of(folder: &StudyFolder) -> Option<String> {
    let runs = folder.path().parent()?.display().to_string();
    match runs.as_str() {
        "" => Some(".".to_owned()),
        DEFAULT_RUNS => None,
        _ => Some(runs),
    }
}

/// The same folder from wherever the program is started to go on.
fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The run of this name, if its journal holds one, and the journal's events.
fn made(folder: &StudyFolder, name: &str) -> Result<Option<(RunState, Vec<Event>)>, Stop> {
    let own = runs::folder(name);
    let path = folder.path().join(&own);
    if name.starts_with(TOOLS) {
        let made = journal::read(&path, name)?;
        return Ok(made.map(|made| (RunState::Tool(Box::new(made)), Vec::new())));
    }
    if !has_begun(&path) {
        return Ok(None);
    }
    let run = RunFolder::find(folder.path(), &own).map_err(Stop::usage)?;
    let journal = run.read_journal().map_err(Stop::usage)?;
    let made = RunMade::of(&own, &journal.events)
        .map_err(|error| Stop::new(Exit::Internal, format!("{}: {error}", path.display())))?;
    Ok(Some((RunState::Made(Box::new(made)), journal.events)))
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

/// What the names of runs of real programs begin with.
const TOOLS: &str = "tools/";

/// Where runs are kept unless somebody says otherwise.
const DEFAULT_RUNS: &str = "runs";
