//! Writes the log of one discharge. Each line is synced before the next is made, space is reserved
//! in advance, and the size is limited.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::Errno;

use crate::discharges::archive::{FOLDER_PREFIX, PART_PREFIX, PART_SUFFIX, numbered};
use crate::discharges::entry::{Begun, EndReason, Entry};
use crate::discharges::line;

/// The log of a running discharge.
///
/// The log has parts of a third of its limit. The first part and the newest two are kept; every
/// line holds the counts of the whole discharge so far, so deleting parts between them loses no
/// count.
#[derive(Debug)]
pub struct DischargeLog {
    folder: PathBuf,
    begun: Begun,
    file: File,
    length_bytes: u64,
    part_bytes_max: u64,
    has_end: bool,
}

/// Reason for which a line could not be written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The storage is full. Lines written before can be read.
    #[error(
        "{}: no room for {bytes} more bytes of the log: make room, name another folder with --log, \
         or type a smaller --log-max", .path.display()
    )]
    Full {
        /// The file or folder.
        path: PathBuf,
        /// Bytes that were needed.
        bytes: u64,
    },
    /// The plan does not fit into a log of this size.
    #[error("--log-max: the plan alone needs {bytes} bytes of every part: type at least {needed}B")]
    TooSmall {
        /// Size of the first line, bytes.
        bytes: u64,
        /// The smallest sufficient limit, bytes.
        needed: u64,
    },
    /// Any other error of the operating system.
    #[error("{}: cannot be written: {problem}; name another folder with --log", .path.display())]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        problem: io::Error,
    },
}

impl DischargeLog {
    /// Creates the log of a new discharge in `root`, of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// A full storage, or a folder that cannot be written.
    pub fn create(root: &Path, begun: Begun, bytes_max: u64) -> Result<DischargeLog, LogError> {
        fs::create_dir_all(root).map_err(|problem| failed(root, problem, 0))?;
        let part_bytes_max = bytes_max / PARTS;
        let first = encode(root, &Entry::Begun(Box::new(begun.clone())))?;
        let bytes = first.len() as u64;
        if bytes + END_ROOM_BYTES > part_bytes_max / 2 {
            let needed = PARTS * 2 * (bytes + END_ROOM_BYTES) + PARTS;
            return Err(LogError::TooSmall { bytes, needed });
        }
        let folder = make_folder(root)?;
        let begun = Begun { part: 1, ..begun };
        match open_part(&folder, &begun, part_bytes_max) {
            Ok((file, length_bytes)) => {
                sync_folder(root);
                let has_end = false;
                Ok(DischargeLog { folder, begun, file, length_bytes, part_bytes_max, has_end })
            }
            Err(error) => {
                // A discharge that never started leaves no folder.
                let _ = fs::remove_dir(&folder);
                Err(error)
            }
        }
    }

    /// The folder of the discharge.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a line and syncs it.
    ///
    /// # Errors
    /// A full or failing storage. Lines before it stay readable, and the reason for the end is
    /// recorded if one more line can be written.
    pub fn note(&mut self, entry: &Entry) -> Result<(), LogError> {
        let line = encode(&self.part_path(), entry)?;
        let is_end = matches!(entry, Entry::Ended { .. });
        let room = if is_end { 0 } else { END_ROOM_BYTES };
        if self.length_bytes + line.len() as u64 + room > self.part_bytes_max {
            self.turn_over().inspect_err(|error| self.tell_end(error, entry))?;
        }
        let written = self.append(&line);
        self.has_end |= is_end && written.is_ok();
        written.inspect_err(|error| self.tell_end(error, entry))
    }

    /// Records that the program failed, unless an end is recorded. Without it, the next boot would
    /// make it look like a power cut.
    pub fn give_up(&mut self, at_ns: u64) {
        self.tell(at_ns, EndReason::Failed);
    }

    /// Starts the next part.
    fn turn_over(&mut self) -> Result<(), LogError> {
        let part = self.begun.part + 1;
        if part > PARTS as u32 {
            let oldest = part_path(&self.folder, part - 2);
            match fs::remove_file(&oldest) {
                Err(problem) if problem.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(&oldest, problem, 0));
                }
                _ => {}
            }
        }
        let begun = Begun { part, ..self.begun.clone() };
        let (file, length_bytes) = open_part(&self.folder, &begun, self.part_bytes_max)?;
        self.give_back();
        (self.file, self.length_bytes, self.begun) = (file, length_bytes, begun);
        Ok(())
    }

    /// Writes why the log ends, in the space reserved for that line.
    fn tell_end(&mut self, error: &LogError, entry: &Entry) {
        let Some(at_ns) = time_of(entry) else { return };
        let is_full = matches!(error, LogError::Full { .. });
        self.tell(at_ns, if is_full { EndReason::Full } else { EndReason::Failed });
    }

    fn tell(&mut self, at_ns: u64, reason: EndReason) {
        if self.has_end {
            return;
        }
        if let Ok(line) = line::encode(&Entry::Ended { at_ns, reason }) {
            // If this fails too, the lines before it are still valid.
            self.has_end = self.append(&line).is_ok();
        }
    }

    /// Appends a complete line, or nothing.
    fn append(&mut self, line: &[u8]) -> Result<(), LogError> {
        let written = self.file.write_all(line).and_then(|()| self.file.sync_data());
        if let Err(problem) = written {
            let _ = self.file.set_len(self.length_bytes);
            let _ = self.file.seek(SeekFrom::Start(self.length_bytes));
            return Err(failed(&self.part_path(), problem, line.len() as u64));
        }
        self.length_bytes += line.len() as u64;
        Ok(())
    }

    fn part_path(&self) -> PathBuf {
        part_path(&self.folder, self.begun.part)
    }

    /// Frees the reserved space that the part did not need. On failure it stays reserved, which is
    /// harmless.
    fn give_back(&self) {
        let _ = self.file.set_len(self.length_bytes);
    }
}

impl Drop for DischargeLog {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Makes the folder of the next discharge. Discharges are ordered by number, not by time: many
/// boards have no clock that runs without power.
fn make_folder(root: &Path) -> Result<PathBuf, LogError> {
    let unread = |problem| failed(root, problem, 0);
    let names = fs::read_dir(root).map_err(unread)?.flatten().map(|entry| entry.file_name());
    let numbers = names.filter_map(|name| numbered(&name.to_string_lossy(), FOLDER_PREFIX, ""));
    let mut number = numbers.max().unwrap_or(0) + 1;
    loop {
        let folder = root.join(format!("{FOLDER_PREFIX}{number:04}"));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(failed(&folder, error, 0)),
        }
    }
}

/// Starts a part: reserves its space, locks it while it is written, and syncs its first line.
fn open_part(folder: &Path, begun: &Begun, bytes: u64) -> Result<(File, u64), LogError> {
    let path = part_path(folder, begun.part);
    let made = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
    let mut file = made.map_err(|problem| failed(&path, problem, bytes))?;
    let line = encode(&path, &Entry::Begun(Box::new(begun.clone())))?;
    if let Err(problem) = begin_part(&mut file, &line, bytes) {
        let _ = fs::remove_file(&path);
        return Err(failed(&path, problem, bytes));
    }
    sync_folder(folder);
    Ok((file, line.len() as u64))
}

fn begin_part(file: &mut File, line: &[u8], bytes: u64) -> io::Result<()> {
    take_room(file, bytes)?;
    // The lock is optional: some file systems have none.
    let _ = rustix::fs::flock(&*file, FlockOperation::NonBlockingLockExclusive);
    file.write_all(line)?;
    file.sync_data()
}

/// Reserves space without making the file longer, if the file system can. FAT cannot; there a full
/// card is noticed at the first line that does not fit.
fn take_room(file: &File, bytes: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
        Err(problem) => Err(problem.into()),
    }
}

/// Syncs the folder, so that a power cut does not lose the file's name. Not every file system
/// supports this.
fn sync_folder(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

fn encode(path: &Path, entry: &Entry) -> Result<Vec<u8>, LogError> {
    line::encode(entry).map_err(|problem| failed(path, problem.into(), 0))
}

fn part_path(folder: &Path, part: u32) -> PathBuf {
    folder.join(format!("{PART_PREFIX}{part:04}{PART_SUFFIX}"))
}

fn time_of(entry: &Entry) -> Option<u64> {
    match entry {
        Entry::Begun(_) => None,
        Entry::Standing(standing) => Some(standing.at_ns),
        Entry::Trouble { at_ns, .. } | Entry::Ended { at_ns, .. } => Some(*at_ns),
    }
}

fn failed(path: &Path, problem: io::Error, bytes: u64) -> LogError {
    let path = path.to_owned();
    match Errno::from_io_error(&problem) {
        // The storage, the quota or the maximum size of a file is exhausted.
        Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => LogError::Full { path, bytes },
        _ => LogError::Unwritable { path, problem },
    }
}

/// Parts that are kept: the first one, and the newest two.
const PARTS: u64 = 3;

/// Space reserved for the line with the reason for the end: twice the longest.
const END_ROOM_BYTES: u64 = 256;
