//! The folder of a run: `runs/<time>-<name>/` with the plan, the journal, the summary, the page,
//! the cells as CSV and the recorded times for HdrHistogram's tools.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use weigh_model::numbers::{bytes, size};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use weigh_model::plan::Plan;

use super::attempts;
use super::digest::sha256_of;
use super::files::{Kept, STUDY, plain_name, replace};
use super::reader::{Journal, Reader};
use super::record_error::RecordError;
use super::writer::Writer;

/// The folder of one run.
///
/// # Examples
///
/// ```
/// use std::path::Path;
/// use weigh_report::RunFolder;
/// # let runs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/stored/compare");
///
/// let run = RunFolder::find(Path::new(runs), "latest")?;
/// assert!(run.id().ends_with("-compare"));
/// # Ok::<(), weigh_report::RecordError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
    id: String,
}

impl RunFolder {
    /// Creates the folder of a new run in `runs`. Never touches an existing one: a second run of
    /// the same second and name gets `-2`.
    ///
    /// # Errors
    /// If nothing can be written, or less than [`FREE_BYTES_MIN`] are free.
    pub fn create(runs: &Path, name: &str, started: SystemTime) -> Result<RunFolder, RecordError> {
        let failed = |problem| RecordError::new(runs, problem);
        fs::create_dir_all(runs).map_err(failed)?;
        check_space(runs)?;
        let stem = format!("{}-{}", folder_time(started), plain_name(name));
        for number in 1..=SAME_SECOND_MAX {
            let id = if number == 1 { stem.clone() } else { format!("{stem}-{number}") };
            let path = runs.join(&id);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(RunFolder { path, id }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }

    /// Creates the folder of a run that is part of a study, which names it. Fails if the folder
    /// exists, and as [`RunFolder::create`] does.
    ///
    /// # Errors
    /// If the folder exists, and as [`RunFolder::create`].
    pub fn create_at(path: &Path) -> Result<RunFolder, RecordError> {
        let failed = |problem| RecordError::new(path, problem);
        let above = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(above).map_err(failed)?;
        check_space(above)?;
        fs::create_dir(path).map_err(failed)?;
        let id = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(RunFolder { path: path.to_owned(), id })
    }

    /// Finds a run by its path or, below `runs`, by its id; [`LATEST`] is the newest one there.
    ///
    /// # Errors
    /// If there is no such run.
    pub fn find(runs: &Path, path_or_id: &str) -> Result<RunFolder, RecordError> {
        let newest = if path_or_id == LATEST { newest_below(runs) } else { None };
        let id = newest.as_deref().unwrap_or(path_or_id);
        let places = [PathBuf::from(path_or_id), runs.join(id)];
        let found = places.iter().find(|place| place.join(JOURNAL).is_file());
        let path = found.ok_or_else(|| {
            let shown = runs.display();
            let known = newest_below(runs);
            let newest = match &known {
                Some(id) => format!("type latest, or {id}, the newest run in the folder {shown}"),
                None if path_or_id == LATEST => {
                    "type weigh compare, or name another folder with --runs".to_owned()
                }
                None => "check the path, or name the folder of the runs with --runs".to_owned(),
            };
            if let Some(study) = places.iter().find(|place| place.join(STUDY).is_file()) {
                let problem = "it is the run of a study, and has a run of each of its plans";
                return RecordError::saying(study, problem, "name the folder of one of them");
            }
            match places.iter().find(|place| place.is_dir()) {
                Some(folder) => {
                    let problem = format!("the folder has no {JOURNAL}, so it is not a run");
                    RecordError::saying(folder, problem, newest)
                }
                None if known.is_some() => {
                    RecordError::saying(&places[0], "there is no such run", newest)
                }
                None => {
                    let problem =
                        format!("there is no such run, and the folder {shown} has none either");
                    RecordError::saying(&places[0], problem, newest)
                }
            }
        })?;
        let absolute = path.canonicalize().map_err(|problem| RecordError::new(path, problem))?;
        let id = absolute.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(RunFolder { path: path.clone(), id })
    }

    /// All runs in `runs`, the oldest first; none if there is no such folder.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn all_below(runs: &Path) -> Result<Vec<RunFolder>, RecordError> {
        let mut ids: Vec<String> = match fs::read_dir(runs) {
            Ok(entries) => run_ids(entries).collect(),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(problem) => return Err(RecordError::new(runs, problem)),
        };
        ids.sort();
        Ok(ids.into_iter().map(|id| RunFolder { path: runs.join(&id), id }).collect())
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run's id: the folder's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Begins the journal.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn create_journal(&self) -> Result<Writer, RecordError> {
        let writer = Writer::create(&self.path.join(JOURNAL))?;
        // Makes the names of files on the disk survive a power cut. Not every file system supports
        // it, and an error would not help those that do not.
        for folder in [Some(&*self.path), self.path.parent()].into_iter().flatten() {
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(writer)
    }

    /// Continues the journal of an earlier run, and returns its content.
    ///
    /// # Errors
    /// See [`Writer::resume`].
    pub fn resume_journal(&self) -> Result<(Writer, Journal), RecordError> {
        Writer::resume(&self.path.join(JOURNAL))
    }

    /// Reads the journal, without attempts at a trial that a later one replaced.
    ///
    /// # Errors
    /// If it cannot be read, or a newer version has written it.
    pub fn read_journal(&self) -> Result<Journal, RecordError> {
        let path = self.path.join(JOURNAL);
        let journal = Reader::open(&path)?.read();
        let mut journal = journal.map_err(|problem| RecordError::unread(&path, problem))?;
        journal.check_version(&path)?;
        if let Cow::Owned(counted) = attempts::counted(&journal.events) {
            journal.events = counted;
        }
        Ok(journal)
    }

    /// Writes `plan.toml`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_plan(&self, plan: &Plan) -> Result<(), RecordError> {
        let path = self.path.join("plan.toml");
        let text = plan.to_toml().map_err(|error| {
            let fix = "give values that TOML can hold (whole numbers below 2^63)";
            RecordError::saying(&path, error.to_string(), fix)
        })?;
        replace(&path, text.as_bytes(), Kept::AtOnce)
    }

    /// SHA-256 of the journal in hexadecimal digits; `None` if it cannot be read.
    pub fn journal_sha256(&self) -> Option<String> {
        sha256_of(File::open(self.path.join(JOURNAL)).ok()?).ok()
    }

    /// Writes one file of the folder, replacing it as a whole.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_file(&self, name: &str, content: &[u8]) -> Result<(), RecordError> {
        replace(&self.path.join(name), content, Kept::InTime)
    }
}

/// The time as the journal and the summary hold it: RFC 3339, UTC, whole seconds.
pub fn rfc3339(time: SystemTime) -> String {
    timestamp(time).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The time as a folder's name holds it: `2026-11-21T01-02-03`, UTC.
pub fn folder_time(time: SystemTime) -> String {
    timestamp(time).strftime("%Y-%m-%dT%H-%M-%S").to_string()
}

fn timestamp(time: SystemTime) -> jiff::Zoned {
    // A clock outside the years that can be written is wrong: the epoch shows it.
    Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::UTC)
}

fn check_space(folder: &Path) -> Result<(), RecordError> {
    let space =
        rustix::fs::statvfs(folder).map_err(|problem| RecordError::new(folder, problem.into()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if free >= FREE_BYTES_MIN {
        return Ok(());
    }
    let (free, needed) = (bytes(free as f64), size(FREE_BYTES_MIN));
    let problem = format!("only {free} are free, a run may need {needed}");
    Err(RecordError::saying(
        folder,
        problem,
        "free some space, or record elsewhere with --runs DIR",
    ))
}

fn newest_below(runs: &Path) -> Option<String> {
    run_ids(fs::read_dir(runs).ok()?).max()
}

fn run_ids(entries: fs::ReadDir) -> impl Iterator<Item = String> {
    let journals =
        entries.filter_map(Result::ok).filter(|entry| entry.path().join(JOURNAL).is_file());
    journals.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// The journal's name in the folder.
pub const JOURNAL: &str = "journal.jsonl";

/// Bytes that must be free before a run begins: a long journal and all tables fit.
pub const FREE_BYTES_MIN: u64 = 32 << 20;

/// Name of the newest run.
pub const LATEST: &str = "latest";

const SAME_SECOND_MAX: u32 = 1000;
