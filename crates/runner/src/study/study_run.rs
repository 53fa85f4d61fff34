//! Files of a study's run: the request, the study's own files, the runs of its plans with their
//! states, and at the end the results.

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
use crate::run::history::not_recorded;
use crate::study::parts::Asked;
use crate::study::tools::journal;

/// The run of a study on the disk, locked while this value exists.
///
/// # Examples
///
/// The folder of a run whose plans have not been run:
///
/// ```
/// use weigh_runner::study::library::Studies;
/// use weigh_runner::study::parts::Asked;
/// use weigh_runner::study::study_run::StudyRun;
/// use weigh_study::{Scale, Way};
/// # let runs = std::env::temp_dir().join(format!("weigh-study-{}", std::process::id()));
///
/// let studies = Studies::load(None)?;
/// let asked = Asked { scale: Scale::Quick, ways: vec![Way::Right], only: Vec::new() };
/// let run = StudyRun::begin(&runs, studies.find("hydroponics")?, &asked, None)?;
/// assert!(run.folder.path().join("study").is_dir());
/// assert!(run.runs.is_empty());
/// # std::fs::remove_dir_all(&runs)?;
/// # Ok::<(), weigh_runner::exit::Stop>(())
/// ```
pub struct StudyRun {
    /// Its folder.
    pub folder: StudyFolder,
    /// Facts of the run besides the results of its plans.
    pub about: About,
    /// The runs of its plans so far.
    pub runs: Runs,
    origin: Origin,
    _lock: File,
}

/// Versions with which its runs were started.
#[derive(Clone, Debug, Default)]
struct Origin {
    /// SHA-256 of `study.toml`, each once: more than one if the file was changed between sessions.
    hashes: Vec<String>,
    /// True if a journal of an older version does not record it.
    is_older: bool,
    /// Boots of the machine in which it was started and resumed.
    boots: Vec<String>,
}

impl StudyRun {
    /// Makes the folder of a new run in `runs`.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn begin(
        runs: &Path,
        texts: &StudyTexts,
        asked: &Asked,
        data: Option<&Path>,
    ) -> Result<StudyRun, Stop> {
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
        Ok(StudyRun { folder, about, runs: Runs::new(), origin, _lock: lock })
    }

    /// Opens a run that ended early, to resume it.
    ///
    /// # Errors
    /// A run that cannot be read, or that another process writes.
    pub fn open(folder: StudyFolder) -> Result<StudyRun, Stop> {
        let lock = folder.lock().map_err(Stop::usage)?;
        let Read { about, runs, mut origin } = read(&folder)?;
        origin.boot(weigh_observe::boot::id());
        Ok(StudyRun { folder, about, runs, origin, _lock: lock })
    }

    /// The request with which it was started.
    pub fn asked(&self) -> Asked {
        let About { scale, ways, only, .. } = self.about.clone();
        Asked { scale, ways, only }
    }

    /// The folder of the run of this name, which may not exist.
    pub fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(runs::folder(name))
    }

    /// Reads the journal of the run of this name; false if it has no result yet.
    ///
    /// # Errors
    /// A journal that cannot be read.
    pub fn take(&mut self, name: &str) -> Result<bool, Stop> {
        let made = made(&self.folder, name)?;
        let is_there = made.is_some();
        self.runs.extend(made.map(|(made, _)| (name.to_owned(), made)));
        Ok(is_there)
    }

    /// True if there is a run of this name, finished or not.
    pub fn has(&self, name: &str) -> bool {
        matches!(self.runs.get(name), Some(RunState::Made(_) | RunState::Tool(_)))
    }

    /// True if the run of this name is finished.
    pub fn is_done(&self, name: &str) -> bool {
        match self.runs.get(name) {
            Some(RunState::Made(made)) => made.summary.run.outcome == DONE,
            Some(RunState::Tool(made)) => made.is_done,
            _ => false,
        }
    }

    /// Records why there is no run of this name.
    pub fn skip(&mut self, name: &str, why: &str) {
        self.runs.insert(name.to_owned(), RunState::Skipped(why.to_owned()));
    }

    /// Writes the state of the runs so far. Claims are judged at the end, because that takes CPU
    /// time that the next plan needs.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn note(&self, study: &Study) -> Result<(), Stop> {
        let progress = study.progress(&self.about, &self.occasion());
        self.folder.write_file(STUDY, progress.to_json().as_bytes()).map_err(not_recorded)
    }

    /// Results of the study so far.
    pub fn outcome(&self, study: &Study) -> Outcome {
        study.outcome(&self.about, &[self.occasion()])
    }

    fn occasion(&self) -> Occasion {
        occasion(&self.about, &self.origin, self.runs.clone())
    }

    /// Writes the results.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, study: &Study, outcome: &Outcome) -> Result<(), Stop> {
        write(&self.folder, study, outcome)
    }
}

/// Recomputes the results of a study's run from its files and the journals of its runs. They are
/// written unless another process is resuming the run; also returns whether they were.
///
/// # Errors
/// Files that cannot be read or written.
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

/// Judges a study's run by this study, which may differ from the copy in its folder.
///
/// # Errors
/// A run that cannot be read.
pub fn judged(folder: &StudyFolder, study: &Study) -> Result<Outcome, Stop> {
    let (about, occasion) = evidence(folder)?;
    Ok(study.outcome(&about, &[occasion]))
}

/// The evidence of a study's run, with its request.
///
/// # Errors
/// A run that cannot be read.
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
    /// Hash of the study file; all of them if it was changed between sessions, and `None` if a part
    /// is unknown.
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

    /// Adds the journal of one of its runs.
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

/// The study in the folder of its run.
///
/// # Errors
/// Files that cannot be read.
pub fn texts(folder: &StudyFolder) -> Result<StudyTexts, Stop> {
    let name = document(folder)?.study;
    let files = folder.files().map_err(Stop::usage)?;
    let files = files.iter().map(|(file, text)| (file.as_str(), text.clone()));
    Ok(StudyTexts::of(&name, &folder.path().join("study").display().to_string(), files))
}

/// Reads `study.json`. Of a document of an older version it reads the request and the state of the
/// runs: its claims have another form, and are left out.
///
/// # Errors
/// A file that cannot be read.
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

/// Request, results and versions of a study's run.
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

/// The folder of runs that contains this one, as typed; `None` for the default.
fn place_of(folder: &StudyFolder) -> Option<String> {
    let runs = folder.path().parent()?.display().to_string();
    match runs.as_str() {
        "" => Some(".".to_owned()),
        DEFAULT_RUNS => None,
        _ => Some(runs),
    }
}

/// The absolute path, valid from any folder in which the program resumes the run.
fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The run of this name, if its journal has one, and the journal's events.
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

/// True if the journal in this folder has at least its complete first line, without which the plan
/// is unknown.
pub fn has_begun(path: &Path) -> bool {
    std::fs::read(path.join(JOURNAL)).is_ok_and(|journal| journal.contains(&b'\n'))
}

/// A run of a study that is in progress, or was killed.
pub const RUNNING: &str = "running";

/// A finished run.
pub const DONE: &str = "done";

/// A run that a signal ended early.
pub const INTERRUPTED: &str = "interrupted";

/// A run that could not be recorded.
pub const FAILED: &str = "failed";

/// Prefix of the names of runs of real programs.
const TOOLS: &str = "tools/";

/// The default folder of runs.
const DEFAULT_RUNS: &str = "runs";
