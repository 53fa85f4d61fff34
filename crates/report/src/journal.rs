//! The journal of a run: one event a line, as JSON, only ever appended to. `docs/journal.md`
//! documents every event.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use weigh_model::event::Event;

use crate::record_error::RecordError;

/// Writes the journal. Every event is handed to the operating system at once, and a finished
/// trial is on the disk before the next one begins: a crash costs the trial in progress.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    length_bytes: u64,
}

impl Writer {
    /// Begins a new journal; refuses a file that is there already.
    pub fn create(path: &Path) -> Result<Writer, RecordError> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = file.map_err(|problem| RecordError::new(path, problem))?;
        hold(&file);
        Ok(Writer { file, path: path.to_owned(), length_bytes: 0 })
    }

    /// Goes on with a journal, after its last whole line; a torn one is cut off.
    pub fn resume(path: &Path) -> Result<Writer, RecordError> {
        let open = || -> io::Result<(File, u64)> {
            let mut file = OpenOptions::new().read(true).write(true).open(path)?;
            hold(&file);
            let length_bytes = whole_lines_bytes(&mut file)?;
            file.set_len(length_bytes)?;
            file.seek(SeekFrom::Start(length_bytes))?;
            Ok((file, length_bytes))
        };
        let (file, length_bytes) = open().map_err(|problem| RecordError::new(path, problem))?;
        Ok(Writer { file, path: path.to_owned(), length_bytes })
    }

    /// Appends one event. If it cannot be written whole, what was written of it is taken back, so
    /// that the journal stays readable and the call may be tried again.
    pub fn write(&mut self, event: &Event) -> Result<(), RecordError> {
        let written = self.append(event);
        if written.is_err() {
            // The first error is the one to report; a torn line is tolerated by readers anyway.
            let _ = self.file.set_len(self.length_bytes);
            let _ = self.file.seek(SeekFrom::Start(self.length_bytes));
        }
        written.map_err(|problem| RecordError::new(&self.path, problem))
    }

    /// Reads everything that stands in it, also where its folder has been removed meanwhile.
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
    matches!(event, Event::TrialFinished(_) | Event::TrialFailed { .. } | Event::RunFinished { .. })
}

/// Shows to whoever lists runs that somebody writes here, until the process ends, however it ends.
/// A file system without locks takes nothing from the record.
fn hold(file: &File) {
    let _ = file.try_lock();
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

/// What stands in a journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journal {
    /// All events that could be read, in their order.
    pub events: Vec<Event>,
    /// Lines that are no event.
    pub bad_lines: Vec<BadLine>,
    /// Number of the last line, from 1, if it was torn by a crash; nothing to worry about.
    pub torn_line: Option<u64>,
}

/// A line that is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 1.
    pub line: u64,
    /// Why it cannot be read.
    pub problem: String,
}

/// Reads journals.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    line: u64,
}

impl Reader<BufReader<File>> {
    /// Opens a journal.
    pub fn open(path: &Path) -> Result<Reader<BufReader<File>>, RecordError> {
        let file = File::open(path).map_err(|problem| RecordError::new(path, problem))?;
        Ok(Reader::new(BufReader::new(file)))
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> Reader<R> {
        Reader { input, line: 0 }
    }

    /// Reads everything. Bad lines are named and passed over; a last line that has no end and is
    /// no event was torn by a crash.
    pub fn read(mut self) -> io::Result<Journal> {
        let mut journal = Journal::default();
        let mut text = Vec::new();
        loop {
            text.clear();
            if self.input.read_until(b'\n', &mut text)? == 0 {
                return Ok(journal);
            }
            self.line += 1;
            if text.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<Event>(&text) {
                Ok(event) => journal.events.push(event),
                Err(_) if text.last() != Some(&b'\n') => journal.torn_line = Some(self.line),
                Err(error) => {
                    journal.bad_lines.push(BadLine { line: self.line, problem: column(&error) });
                }
            }
        }
    }
}

/// The message of `error` without its line, which is always the first of the line read.
fn column(error: &serde_json::Error) -> String {
    error.to_string().replace("at line 1 column", "at column")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished() -> Event {
        Event::RunFinished { outcome: "done".to_owned() }
    }

    /// `/dev/full` takes every open and no byte, as a full disk does.
    #[test]
    fn a_full_disk_is_reported_with_the_mend() {
        let path = PathBuf::from("/dev/full");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let mut writer = Writer { file, path, length_bytes: 0 };
        let error = writer.write(&finished()).unwrap_err();
        assert_eq!(error.problem.kind(), io::ErrorKind::StorageFull);
        let text = error.to_string();
        assert!(text.starts_with("/dev/full: ") && text.contains("--runs DIR"), "{text}");
    }

    #[test]
    fn bad_lines_are_named_and_a_torn_last_one_is_forgiven() {
        let line = serde_json::to_string(&finished()).unwrap();
        let text = format!("{line}\nnonsense\n\n{{\"event\":\"unheard_of\"}}\n{line}\n{{\"eve");
        let journal = Reader::new(text.as_bytes()).read().unwrap();
        assert_eq!(journal.events, [finished(), finished()]);
        let lines: Vec<u64> = journal.bad_lines.iter().map(|bad| bad.line).collect();
        assert_eq!((lines, journal.torn_line), (vec![2, 4], Some(6)));
        assert!(journal.bad_lines[1].problem.contains("unheard_of"), "{:?}", journal.bad_lines);
        let binary = Reader::new(&[0xFF, 0, b'\n'][..]).read().unwrap();
        assert_eq!(binary.bad_lines.len(), 1);
    }

    #[test]
    fn a_last_line_without_its_end_counts_if_it_is_whole() {
        let line = serde_json::to_string(&finished()).unwrap();
        let journal = Reader::new(line.as_bytes()).read().unwrap();
        assert_eq!((journal.events.len(), journal.torn_line), (1, None));
    }
}
