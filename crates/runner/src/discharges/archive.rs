//! Reads the discharges in a folder, and decides which lane is next.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use weigh_model::plan::Plan;

use crate::discharges::discharge::{Discharge, Ending};
use crate::discharges::entry::{Begun, Entry, SCHEMA};
use crate::discharges::line::{self, Lines};
use crate::discharges::start::Start;

/// The discharges of a folder, in their order.
#[derive(Debug, Default)]
pub struct Archive {
    /// Those that can be read.
    pub discharges: Vec<Discharge>,
    /// Those that cannot, and why.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// Reason for which a folder of discharges cannot be read or used.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The operating system reported an error.
    #[error("{}: cannot be read: {problem}; name a folder of discharges", .path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        problem: io::Error,
    },
    /// The folder has no discharge.
    #[error(
        "{}: holds no discharge: run one with weigh energy rundown PLAN.toml, or name another \
         folder",
        .path.display()
    )]
    Empty {
        /// The file or folder.
        path: PathBuf,
    },
    /// The folder has discharges of another plan, which cannot be compared with these.
    #[error(
        "{}: holds discharges of another plan ({what}): name another folder with --log",
        .path.display()
    )]
    OtherPlan {
        /// The folder.
        path: PathBuf,
        /// The other plan's name, or the difference.
        what: String,
    },
    /// Another process writes to it now.
    #[error("{}: another weigh runs this battery down: wait until it has ended", .path.display())]
    Running {
        /// The folder of the discharge.
        path: PathBuf,
    },
}

impl Archive {
    /// Reads a folder of discharges, the folder of one, or one of its parts. `now` is this start of
    /// this machine: on the machine that was run down it distinguishes a power cut from a killed
    /// program; on another machine it is not used.
    ///
    /// # Errors
    /// A path where nothing can be read.
    pub fn open(path: &Path, now: &Start) -> Result<Archive, ArchiveError> {
        let mut archive = Archive::load(path)?;
        archive.tell_endings(|last| now.is_same_machine(last).then_some(now));
        Ok(archive)
    }

    fn load(path: &Path) -> Result<Archive, ArchiveError> {
        let unread = |problem| ArchiveError::Unreadable { path: path.to_owned(), problem };
        let kind = fs::metadata(path).map_err(unread)?;
        let mut archive = Archive::default();
        if kind.is_file() {
            archive.take(0, path, vec![path.to_owned()]);
        } else {
            let own = members(path, PART_PREFIX, PART_SUFFIX).map_err(unread)?;
            if own.is_empty() {
                for (number, folder) in members(path, FOLDER_PREFIX, "").map_err(unread)? {
                    let parts = members(&folder, PART_PREFIX, PART_SUFFIX).map_err(unread)?;
                    archive.take(number, &folder, parts.into_iter().map(|part| part.1).collect());
                }
            } else {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let number = numbered(&name, FOLDER_PREFIX, "").unwrap_or(0);
                archive.take(number, path, own.into_iter().map(|part| part.1).collect());
            }
        }
        if archive.discharges.is_empty() && archive.unreadable.is_empty() {
            return Err(ArchiveError::Empty { path: path.to_owned() });
        }
        Ok(archive)
    }

    /// Reads `path` for the next discharge of this plan with these lanes; empty if there is no
    /// folder yet. `now` is the start of the next discharge. A board without a name counts as the
    /// board of the earlier discharges; otherwise its next lane would never come.
    ///
    /// # Errors
    /// A folder with discharges of another plan, or with one that still runs.
    pub fn for_another(
        path: &Path,
        (plan, lanes): (&Plan, &[String]),
        now: &Start,
    ) -> Result<Archive, ArchiveError> {
        let mut archive = match Archive::load(path) {
            Ok(archive) => archive,
            Err(ArchiveError::Empty { .. }) => return Ok(Archive::default()),
            Err(ArchiveError::Unreadable { problem, .. })
                if problem.kind() == io::ErrorKind::NotFound =>
            {
                return Ok(Archive::default());
            }
            Err(error) => return Err(error),
        };
        archive.tell_endings(|last| (!now.is_another_machine(last)).then_some(now));
        for discharge in &archive.discharges {
            if discharge.ending == Ending::Running {
                return Err(ArchiveError::Running { path: discharge.folder.clone() });
            }
            let begun = &discharge.begun;
            if begun.plan != *plan || begun.lanes != lanes {
                let what = match begun.plan.name == plan.name {
                    true => format!("{} as it was before it was changed", plan.name),
                    false => begun.plan.name.clone(),
                };
                return Err(ArchiveError::OtherPlan { path: path.to_owned(), what });
            }
        }
        Ok(archive)
    }

    /// The next of `lanes` lanes: one with the fewest complete discharges, and of those the one
    /// after the last lane, so that two lanes alternate A B A B. A battery ages with each
    /// discharge: all of A before all of B would measure that too.
    pub fn next_lane(&self, lanes: usize) -> usize {
        let complete = || self.discharges.iter().filter(|discharge| discharge.is_complete());
        let places: Vec<usize> =
            complete().filter_map(|discharge| discharge.begun.place()).collect();
        let count = |lane: usize| places.iter().filter(|place| **place == lane).count();
        let first = places.last().map_or(0, |last| (last + 1) % lanes.max(1));
        let in_turn = (0..lanes).map(|step| (first + step) % lanes);
        in_turn.min_by_key(|lane| count(*lane)).unwrap_or(0)
    }

    /// Reads one discharge from its parts.
    fn take(&mut self, number: u32, folder: &Path, parts: Vec<PathBuf>) {
        match read_parts(&parts) {
            Ok((begun, lines, is_running)) => {
                let folder = folder.to_owned();
                let mut discharge = Discharge::new(number, folder, begun, &lines.entries);
                discharge.torn_bytes = lines.torn_bytes;
                discharge.damaged_lines = lines.damaged;
                discharge.ending = if is_running { Ending::Running } else { discharge.ending };
                self.discharges.push(discharge);
            }
            Err(reason) => self.unreadable.push((folder.to_owned(), reason)),
        }
    }

    /// Decides whether the power went after each discharge, by the next start of its machine: that
    /// of the next discharge in the folder, unless it is of another machine, and for the last one
    /// `now`.
    fn tell_endings<'n>(&mut self, now: impl Fn(&Start) -> Option<&'n Start>) {
        let starts: Vec<Start> =
            self.discharges.iter().map(|discharge| discharge.begun.start()).collect();
        for (index, discharge) in self.discharges.iter_mut().enumerate() {
            let own = &starts[index];
            let next = starts[index + 1..].iter().find(|next| !own.is_another_machine(next));
            discharge.judge(next.or_else(|| now(own)));
        }
    }
}

/// Lines of all parts, the first line, and whether a process still writes them.
fn read_parts(parts: &[PathBuf]) -> Result<(Begun, Lines, bool), String> {
    let mut all = Lines::default();
    let mut is_running = false;
    for (index, path) in parts.iter().enumerate() {
        let content = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let lines = line::read(&content);
        all.entries.extend(lines.entries);
        all.damaged += lines.damaged;
        if index + 1 == parts.len() {
            all.torn_bytes = lines.torn_bytes;
            is_running = is_written(path);
        } else {
            // Only the last line of a part can have been cut by the power.
            all.damaged += u64::from(lines.torn_bytes > 0);
        }
    }
    let begun = all.entries.iter().find_map(|entry| match entry {
        Entry::Begun(begun) => Some(begun),
        _ => None,
    });
    let begun = begun.ok_or("no complete line says which plan was run")?;
    if begun.schema != SCHEMA {
        let schema = &begun.schema;
        return Err(format!("has the schema {schema}; this version reads {SCHEMA}"));
    }
    Ok((Begun::clone(begun), all, is_running))
}

/// True if a process writes it: the writer holds a lock.
fn is_written(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let asked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared);
    asked == Err(Errno::WOULDBLOCK)
}

/// Entries of `folder` named like `part-0001.log`, in the order of their numbers.
fn members(folder: &Path, prefix: &str, suffix: &str) -> io::Result<Vec<(u32, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if let Some(number) = numbered(&name.to_string_lossy(), prefix, suffix) {
            found.push((number, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

/// The number in such a name.
pub(crate) fn numbered(name: &str, prefix: &str, suffix: &str) -> Option<u32> {
    name.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok()
}

/// Prefix of the folder of a discharge.
pub(crate) const FOLDER_PREFIX: &str = "discharge-";

/// Prefix of a part of a log.
pub(crate) const PART_PREFIX: &str = "part-";

/// Suffix of a part of a log.
pub(crate) const PART_SUFFIX: &str = ".log";
