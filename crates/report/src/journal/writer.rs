//! Writes the journal of a run: one event a line, synced to disk when a trial ends.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use weigh_model::event::Event;

use super::reader::{Journal, Reader};
use super::record_error::RecordError;

/// Writes the journal. Every event is handed to the operating system at once, and a finished trial
/// is on the disk before the next one begins: a crash loses only the trial in progress. While it
/// exists no other process can write to the same journal.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    length_bytes: u64,
}

impl Writer {
    /// Begins a new journal; refuses an existing file.
    ///
    /// # Errors
    /// If the file exists, or cannot be created or locked.
    pub fn create(path: &Path) -> Result<Writer, RecordError> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = file.map_err(|problem| RecordError::new(path, problem))?;
        lock(&file, path)?;
        Ok(Writer { file, path: path.to_owned(), length_bytes: 0 })
    }

    /// Continues a journal after its last event, and returns its content. A last line that was cut
    /// off is removed.
    ///
    /// # Errors
    /// If another process writes to it now, if a newer version has written it, or if it cannot be
    /// read or written.
    pub fn resume(path: &Path) -> Result<(Writer, Journal), RecordError> {
        let failed = |problem| RecordError::new(path, problem);
        let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        lock(&file, path)?;
        let journal = Reader::new(BufReader::new(&file)).read().map_err(failed)?;
        journal.check_version(path)?;
        let fix = |file: &mut File| -> io::Result<u64> {
            let whole = whole_lines_bytes(file)?;
            if journal.torn_line.is_some() {
                file.set_len(whole)?;
            }
            let end = file.seek(SeekFrom::End(0))?;
            if end == whole {
                return Ok(end);
            }
            // The last line is an event of which only the line end is missing.
            file.write_all(b"\n")?;
            Ok(end + 1)
        };
        let length_bytes = fix(&mut file).map_err(failed)?;
        Ok((Writer { file, path: path.to_owned(), length_bytes }, journal))
    }

    /// Appends one event. If it cannot be written completely, the written part is removed, so that
    /// the journal stays readable and the call may be repeated.
    ///
    /// # Errors
    /// If the event cannot be written.
    pub fn write(&mut self, event: &Event) -> Result<(), RecordError> {
        let written = self.append(event);
        if written.is_err() {
            // The first error is reported; readers tolerate a line that was cut off.
            let _ = self.file.set_len(self.length_bytes);
            let _ = self.file.seek(SeekFrom::Start(self.length_bytes));
        }
        written.map_err(|problem| RecordError::new(&self.path, problem))
    }

    /// Reads the whole content, also if its folder was removed in the meantime.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_back(&mut self) -> Result<Journal, RecordError> {
        let mut read = || -> io::Result<Journal> {
            self.file.seek(SeekFrom::Start(0))?;
            let written = (&self.file).take(self.length_bytes);
            let journal = Reader::new(BufReader::new(written)).read()?;
            self.file.seek(SeekFrom::Start(self.length_bytes))?;
            Ok(journal)
        };
        read().map_err(|problem| RecordError::new(&self.path, problem))
    }

    fn append(&mut self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        if ends_something(event) {
            self.file.sync_data()?;
        }
        self.length_bytes += line.len() as u64;
        Ok(())
    }
}

fn ends_something(event: &Event) -> bool {
    matches!(
        event,
        Event::RunStarted(_)
            | Event::TrialFinished(_)
            | Event::TrialFailed { .. }
            | Event::SearchTold { .. }
            | Event::RunResumed(_)
            | Event::RunFinished { .. }
    )
}

/// The lock ends with the process, however that ends, and shows to lists of runs that the run is in
/// progress; a child that is being started may hold it a moment longer. On a file system without
/// locks the journal is written without one.
fn lock(file: &File, path: &Path) -> Result<(), RecordError> {
    for _ in 0..LOCK_TRIES {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) | Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            Err(problem) => return Err(RecordError::new(path, problem.into())),
        }
    }
    let problem = "another weigh process records into this run";
    Err(RecordError::saying(path, problem, "wait until it has ended, or stop it"))
}

/// Length of the file up to the end of its last line that has an end.
fn whole_lines_bytes(file: &mut File) -> io::Result<u64> {
    let mut block = [0u8; 8192];
    let mut end = file.seek(SeekFrom::End(0))?;
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let part = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// One second in total.
const LOCK_TRIES: u32 = 40;

const LOCK_PAUSE: Duration = Duration::from_millis(25);

#[cfg(test)]
mod tests {
    use super::*;

    /// `/dev/full` takes every open and no byte, as a full disk does.
    #[test]
    fn a_full_disk_is_reported_with_the_fix() {
        let path = PathBuf::from("/dev/full");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let mut writer = Writer { file, path, length_bytes: 0 };
        let error = writer.write(&Event::RunFinished { outcome: "done".to_owned() }).unwrap_err();
        assert_eq!(error.problem.kind(), io::ErrorKind::StorageFull);
        let text = error.to_string();
        assert!(text.starts_with("/dev/full: ") && text.contains("--runs DIR"), "{text}");
    }
}
