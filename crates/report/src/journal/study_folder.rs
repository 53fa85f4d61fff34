//! The folder of a study's run: `runs/<time>-study-<name>/` with `study.json`, `report.html`, the
//! study's own files as they were run, and the runs of its plans, each in its own folder.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::files::{Kept, STUDY, replace};
use super::record_error::RecordError;
use super::run_folder::{LATEST, RunFolder};

/// The folder of a study's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyFolder {
    path: PathBuf,
    id: String,
}

impl StudyFolder {
    /// Creates the folder of a new run of the study `name` in `runs`, with the files of the study,
    /// each with its name and text.
    ///
    /// # Errors
    /// As [`RunFolder::create`].
    pub fn create<'f>(
        runs: &Path,
        name: &str,
        started: SystemTime,
        files: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> Result<StudyFolder, RecordError> {
        let made = RunFolder::create(runs, &format!("study-{name}"), started)?;
        let folder = StudyFolder { path: made.path().to_owned(), id: made.id().to_owned() };
        let own = folder.path.join(FILES);
        fs::create_dir(&own).map_err(|problem| RecordError::new(&own, problem))?;
        for (file, text) in files {
            replace(&own.join(file), text.as_bytes(), Kept::AtOnce)?;
        }
        Ok(folder)
    }

    /// Finds the run of a study by its path or, below `runs`, by its id; `latest` is the newest.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(runs: &Path, path_or_id: &str) -> Result<StudyFolder, RecordError> {
        let newest = StudyFolder::all_below(runs)?.pop();
        if path_or_id == LATEST
            && let Some(newest) = newest
        {
            return Ok(newest);
        }
        let places = [PathBuf::from(path_or_id), runs.join(path_or_id)];
        let found = places.iter().find(|place| place.join(STUDY).is_file());
        let path = found.ok_or_else(|| {
            let fix = match &newest {
                Some(newest) => {
                    let runs = runs.display();
                    format!("type latest, or {}, the newest one below {runs}", newest.id)
                }
                None => {
                    let runs = runs.display();
                    format!("there is none below {runs} yet: type weigh study run NAME")
                }
            };
            let there = places.iter().find(|place| place.is_dir()).unwrap_or(&places[0]);
            let problem = format!("there is no {STUDY} here, so it is not the run of a study");
            RecordError::saying(there, problem, fix)
        })?;
        let absolute = path.canonicalize().map_err(|problem| RecordError::new(path, problem))?;
        let id = absolute.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(StudyFolder { path: path.clone(), id })
    }

    /// The run of a study with this name, where names of single runs are allowed too: `latest` is a
    /// study if nothing is newer.
    pub fn named(runs: &Path, path_or_id: &str) -> Option<StudyFolder> {
        let found = StudyFolder::find(runs, path_or_id).ok()?;
        let newest = RunFolder::find(runs, LATEST);
        let is_older = newest.is_ok_and(|run| run.id() > &*found.id);
        (path_or_id != LATEST || !is_older).then_some(found)
    }

    /// All runs of studies in `runs`, the oldest first; none if there is no such folder.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn all_below(runs: &Path) -> Result<Vec<StudyFolder>, RecordError> {
        let entries = match fs::read_dir(runs) {
            Ok(entries) => entries,
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(problem) => return Err(RecordError::new(runs, problem)),
        };
        let found = entries.filter_map(Result::ok).map(|entry| entry.path());
        let mut paths: Vec<PathBuf> = found.filter(|path| path.join(STUDY).is_file()).collect();
        paths.sort();
        let of = |path: PathBuf| {
            let id = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            StudyFolder { path, id }
        };
        Ok(paths.into_iter().map(of).collect())
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The id: the folder's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The text of `study.json`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn document(&self) -> Result<String, RecordError> {
        let path = self.path.join(STUDY);
        fs::read_to_string(&path).map_err(|problem| RecordError::unread(&path, problem))
    }

    /// The study's own files as they were run, each with its name and text, by name.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn files(&self) -> Result<Vec<(String, String)>, RecordError> {
        let own = self.path.join(FILES);
        let entries = fs::read_dir(&own).map_err(|problem| RecordError::new(&own, problem))?;
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|problem| RecordError::new(&own, problem))?;
            let text = fs::read_to_string(entry.path());
            let text = text.map_err(|problem| RecordError::new(&entry.path(), problem))?;
            files.push((entry.file_name().to_string_lossy().into_owned(), text));
        }
        files.sort();
        Ok(files)
    }

    /// Writes one file of the folder, replacing it as a whole.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_file(&self, name: &str, content: &[u8]) -> Result<(), RecordError> {
        replace(&self.path.join(name), content, Kept::AtOnce)
    }

    /// Prevents other processes from continuing this run until the returned lock is dropped.
    ///
    /// # Errors
    /// If another process continues it now.
    pub fn lock(&self) -> Result<File, RecordError> {
        let failed = |problem| RecordError::new(&self.path, problem);
        let folder = File::open(&self.path).map_err(failed)?;
        match folder.try_lock() {
            Ok(()) => Ok(folder),
            Err(TryLockError::WouldBlock) => {
                let problem = "another process runs this study now";
                Err(RecordError::saying(&self.path, problem, "wait until it ends"))
            }
            Err(TryLockError::Error(problem)) => Err(failed(problem)),
        }
    }

    /// True while another process continues it.
    pub fn is_in_progress(&self) -> bool {
        let Ok(folder) = File::open(&self.path) else { return false };
        matches!(folder.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

/// The page, as in the folder of a run.
pub const PAGE: &str = "report.html";

/// The folder with the study's own files.
const FILES: &str = "study";
