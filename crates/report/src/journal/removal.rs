//! Removes the folders of runs. Each is claimed first: a run that is being recorded keeps its lock,
//! and what is not a run is refused.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::files::STUDY;
use super::record_error::RecordError;
use super::run_folder::{JOURNAL, RunFolder};
use super::study_folder::StudyFolder;

/// A run, or the run of a study, that may be removed. No process can continue it while this value
/// exists.
#[derive(Debug)]
pub struct Removal {
    path: PathBuf,
    id: String,
    bytes: u64,
    /// Released when the value is dropped, after the last file.
    _locks: Vec<File>,
}

impl Removal {
    /// Claims the run `path_or_id`: a path, or an ID below `runs`.
    ///
    /// # Errors
    /// If it is not a run, is a link, is part of a study's run, contains the folder of runs or the
    /// current folder, or another process records it.
    pub fn claim(runs: &Path, path_or_id: &str) -> Result<Removal, RecordError> {
        let found = match StudyFolder::named(runs, path_or_id) {
            Some(study) => study.path().to_owned(),
            None => RunFolder::find(runs, path_or_id)?.path().to_owned(),
        };
        Removal::of(runs, &found)
    }

    /// Claims the run in the folder `path`.
    ///
    /// # Errors
    /// As [`Removal::claim`].
    pub fn of(runs: &Path, path: &Path) -> Result<Removal, RecordError> {
        // A slash at the end would follow a link.
        let path: PathBuf = path.components().collect();
        let failed = |problem| RecordError::new(&path, problem);
        if fs::symlink_metadata(&path).map_err(failed)?.is_symlink() {
            let to = fs::read_link(&path).map_err(failed)?;
            let problem = format!("it is a link to {}", to.display());
            return Err(RecordError::saying(&path, problem, "remove the link with rm"));
        }
        let whole = path.canonicalize().map_err(failed)?;
        check_place(&path, &whole, runs)?;
        let mut locks = Vec::new();
        if whole.join(STUDY).is_file() {
            let folder = File::open(&whole).map_err(failed)?;
            lock(&folder, &path)?;
            locks.push(folder);
            for run in RunFolder::all_below(&whole)? {
                locks.push(journal(run.path())?);
            }
        } else {
            locks.push(journal(&whole)?);
        }
        let bytes = bytes_below(&whole).map_err(failed)?;
        let id = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Removal { path: whole, id, bytes, _locks: locks })
    }

    /// The run's ID: its folder's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its folder, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes on disk that its removal frees.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Removes the folder; links in it are removed, not followed. The file that makes it a run goes
    /// last: a folder whose removal was interrupted can be removed again.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove(self) -> Result<u64, RecordError> {
        let failed = |problem: io::Error| stuck(&self.path, &problem);
        let last = [self.path.join(JOURNAL), self.path.join(STUDY)];
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            if last.contains(&path) {
                continue;
            }
            let is_folder = entry.file_type().map_err(failed)?.is_dir();
            let removed =
                if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(|problem| stuck(&path, &problem))?;
        }
        for path in last.iter().filter(|path| path.exists()) {
            fs::remove_file(path).map_err(|problem| stuck(path, &problem))?;
        }
        fs::remove_dir(&self.path).map_err(failed)?;
        Ok(self.bytes)
    }
}

/// A file that cannot be removed.
fn stuck(path: &Path, problem: &io::Error) -> RecordError {
    let problem = format!("it cannot be removed: {problem}");
    RecordError::saying(path, problem, "check who may write to its folder, and try again")
}

/// Refuses places whose removal would take more than the run.
fn check_place(path: &Path, whole: &Path, runs: &Path) -> Result<(), RecordError> {
    if whole.parent().is_some_and(|above| above.join(STUDY).is_file()) {
        let problem = "it is part of the run of a study";
        return Err(RecordError::saying(path, problem, "name the folder of the whole study run"));
    }
    let kept = [runs.canonicalize().ok(), std::env::current_dir().ok()];
    if let Some(kept) = kept.iter().flatten().find(|kept| kept.starts_with(whole)) {
        let problem = format!("it contains {}", kept.display());
        return Err(RecordError::saying(path, problem, "change to a folder outside of the run"));
    }
    Ok(())
}

/// The locked journal of the run in `folder`.
fn journal(folder: &Path) -> Result<File, RecordError> {
    let path = folder.join(JOURNAL);
    let failed = |problem| RecordError::new(&path, problem);
    let file = File::open(&path).map_err(failed)?;
    lock(&file, folder)?;
    let mut first = String::new();
    let read = BufReader::new((&file).take(FIRST_BYTES_MAX)).read_line(&mut first);
    read.map_err(|problem| RecordError::unread(&path, problem))?;
    // A run that crashed at its start has an empty journal.
    if first.is_empty() || first.contains(FIRST_EVENT) {
        return Ok(file);
    }
    let problem = format!("{JOURNAL} does not begin as a run does, so the folder is not a run");
    Err(RecordError::saying(folder, problem, "remove it with rm if you do not need it"))
}

/// Takes the lock that the writer of a run holds. Without locks on this file system, it is unknown
/// whether the run is in progress.
fn lock(file: &File, folder: &Path) -> Result<(), RecordError> {
    let (problem, help) = match file.try_lock() {
        Ok(()) => return Ok(()),
        Err(TryLockError::WouldBlock) => {
            ("another process records into this run".to_owned(), "wait until it has ended")
        }
        Err(TryLockError::Error(error)) => (
            format!("it is unknown whether the run is in progress, because a lock failed: {error}"),
            "remove it with rm if no process records into it",
        ),
    };
    Err(RecordError::saying(folder, problem, help))
}

/// Bytes on disk of everything below `folder`. A file with a second name outside is not freed.
fn bytes_below(folder: &Path) -> io::Result<u64> {
    let (mut open, mut bytes) = (vec![folder.to_owned()], 0);
    let mut linked: BTreeSet<u64> = BTreeSet::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let data = entry.metadata()?;
            let is_freed = data.is_dir() || data.nlink() == 1 || !linked.insert(data.ino());
            if data.is_dir() {
                open.push(entry.path());
            }
            bytes += if is_freed { data.blocks() * BLOCK_BYTES } else { 0 };
        }
    }
    Ok(bytes)
}

/// The first event of every journal.
const FIRST_EVENT: &str = "\"run_started\"";

/// More than the first event of any run.
const FIRST_BYTES_MAX: u64 = 64 << 20;

/// The unit of `st_blocks` (stat(2)).
const BLOCK_BYTES: u64 = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let name = format!("weigh-removal-{}-{name}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(folder.join("runs")).unwrap();
            Place(folder.canonicalize().unwrap())
        }

        fn runs(&self) -> PathBuf {
            self.0.join("runs")
        }

        fn run(&self, at: &str) -> PathBuf {
            let path = self.0.join(at);
            fs::create_dir_all(path.join("hdr")).unwrap();
            fs::write(path.join(JOURNAL), "{\"event\":\"run_started\"}\n").unwrap();
            fs::write(path.join("hdr/1.hgrm"), "x".repeat(10_000)).unwrap();
            path
        }

        fn refused(&self, name: &str) -> String {
            Removal::claim(&self.runs(), name).unwrap_err().to_string()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_run_goes_with_all_its_files_and_nothing_else() {
        let place = Place::new("whole");
        let (run, other) = (place.run("runs/a"), place.run("runs/b"));
        fs::write(place.0.join("kept"), "kept").unwrap();
        symlink(place.0.join("kept"), run.join("hdr/link")).unwrap();
        symlink(&other, run.join("folder")).unwrap();
        let claimed = Removal::claim(&place.runs(), "a").unwrap();
        assert!(claimed.bytes() >= 10_000, "{}", claimed.bytes());
        let said = claimed.bytes();
        assert_eq!(claimed.remove().unwrap(), said);
        assert!(!run.exists() && other.join("hdr/1.hgrm").is_file());
        assert_eq!(fs::read_to_string(place.0.join("kept")).unwrap(), "kept");
    }

    #[test]
    fn what_is_not_a_run_is_refused() {
        let place = Place::new("refused");
        fs::create_dir_all(place.runs().join("notes")).unwrap();
        assert!(place.refused("notes").contains("it is not a run"));
        fs::write(place.runs().join("notes").join(JOURNAL), "dear diary\n").unwrap();
        assert!(place.refused("notes").contains("does not begin as a run does"));
        let outside = place.run("elsewhere");
        symlink(&outside, place.runs().join("link")).unwrap();
        assert!(place.refused("link").contains("it is a link to"));
        let slash = format!("{}/", place.runs().join("link").display());
        assert!(place.refused(&slash).contains("it is a link to"));
        fs::write(place.0.join(JOURNAL), "{\"event\":\"run_started\"}\n").unwrap();
        assert!(place.refused(&place.0.to_string_lossy()).contains("it contains"));
        assert!(outside.join("hdr/1.hgrm").is_file() && place.runs().join("notes").is_dir());
    }

    #[test]
    fn a_run_that_is_being_recorded_is_refused() {
        let place = Place::new("locked");
        let run = place.run("runs/a");
        let writer = File::open(run.join(JOURNAL)).unwrap();
        writer.try_lock().unwrap();
        assert!(place.refused("a").contains("another process records into this run"));
        drop(writer);
        let first = Removal::claim(&place.runs(), "a").unwrap();
        assert!(place.refused("a").contains("another process"), "claimed once");
        drop(first);
        assert!(Removal::claim(&place.runs(), "a").is_ok());
    }

    #[test]
    fn the_run_of_a_study_goes_as_a_whole_or_stays() {
        let place = Place::new("study");
        let part = place.run("runs/study/part");
        let study = place.runs().join("study");
        fs::write(study.join(STUDY), "{}").unwrap();
        assert!(place.refused(&part.to_string_lossy()).contains("part of the run of a study"));
        let held = File::open(&study).unwrap();
        held.try_lock().unwrap();
        assert!(place.refused("study").contains("another process"));
        drop(held);
        let writer = File::open(part.join(JOURNAL)).unwrap();
        writer.try_lock().unwrap();
        assert!(place.refused("study").contains("another process"));
        drop(writer);
        Removal::claim(&place.runs(), "study").unwrap().remove().unwrap();
        assert!(!study.exists() && place.runs().is_dir());
    }
}
