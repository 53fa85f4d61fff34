//! What is watched: a run, or a study, whose runs follow one another.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use weigh_report::journal::{JOURNAL, STUDY};

/// What is watched.
#[derive(Clone, Debug)]
pub enum Subject {
    /// The run in this folder.
    Run(PathBuf),
    /// The study in this folder, which has a folder for each of its runs.
    Study(PathBuf),
}

impl Subject {
    /// What the folder has: a study, or else a run.
    pub fn at(folder: &Path) -> Subject {
        match folder.join(STUDY).is_file() && !folder.join(JOURNAL).is_file() {
            true => Subject::Study(folder.to_owned()),
            false => Subject::Run(folder.to_owned()),
        }
    }

    /// The folder of the run to be shown: of a study the one that was written last. The folder
    /// itself if a study has no run yet.
    pub fn newest(&self) -> PathBuf {
        match self {
            Subject::Run(folder) => folder.clone(),
            Subject::Study(folder) => newest_below(folder).unwrap_or_else(|| folder.clone()),
        }
    }

    /// The run that follows `shown`, which is over; `None` if there is none yet.
    pub fn next(&self, shown: &Path) -> Option<PathBuf> {
        let Subject::Study(folder) = self else { return None };
        newest_below(folder).filter(|newest| newest != shown)
    }

    /// The id of the study; `None` for a run.
    pub fn study(&self) -> Option<String> {
        let Subject::Study(folder) = self else { return None };
        let absolute = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        absolute.file_name().map(|name| name.to_string_lossy().into_owned())
    }
}

/// The run whose journal was written last. Of journals of one moment, as copies have them, the last
/// by name.
fn newest_below(study: &Path) -> Option<PathBuf> {
    let folders = fs::read_dir(study).ok()?.flatten().map(|entry| entry.path());
    let written = |folder: PathBuf| {
        let facts = fs::metadata(folder.join(JOURNAL)).ok()?;
        Some((facts.modified().unwrap_or(SystemTime::UNIX_EPOCH), folder))
    };
    folders.filter_map(written).max().map(|(_, folder)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_runs_of_a_study_follow_one_another() {
        let study = tempfile::tempdir().unwrap();
        assert_eq!(Subject::at(study.path()).study(), None);
        fs::write(study.path().join(STUDY), "{}").unwrap();
        let subject = Subject::at(study.path());
        assert!(subject.study().is_some());
        assert_eq!(subject.newest(), study.path());
        for run in ["b", "a"] {
            let before = subject.newest();
            let folder = study.path().join(run);
            fs::create_dir(&folder).unwrap();
            let journal = fs::File::create(folder.join(JOURNAL)).unwrap();
            let seconds = if run == "a" { 2 } else { 1 };
            let written = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            journal.set_modified(written).unwrap();
            assert_eq!(subject.next(&before), Some(folder.clone()));
            assert_eq!((subject.newest(), subject.next(&folder)), (folder, None));
        }
    }

    #[test]
    fn a_run_is_followed_by_none() {
        let run = tempfile::tempdir().unwrap();
        fs::write(run.path().join(JOURNAL), "").unwrap();
        let subject = Subject::at(run.path());
        assert_eq!((subject.newest(), subject.next(run.path())), (run.path().to_owned(), None));
    }
}
