//! The journal of a run: one event a line, as JSON, only ever appended to. `docs/journal.md`
//! documents every event.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde_json::Value;
use weigh_model::event::{Event, JOURNAL_SCHEMA};
use weigh_stats::Histogram;

use crate::record_error::RecordError;

/// Writes the journal. Every event is handed to the operating system at once, and a finished
/// trial is on the disk before the next one begins: a crash costs the trial in progress. As long
/// as it lives nobody else can write to the same journal.
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
        lock(&file, path)?;
        Ok(Writer { file, path: path.to_owned(), length_bytes: 0 })
    }

    /// Goes on with a journal after its last event, and returns what stands in it. A last line
    /// that was torn is cut off.
    ///
    /// # Errors
    /// If somebody else writes to it now, if a newer version has written it, or if it cannot be
    /// read or written.
    pub fn resume(path: &Path) -> Result<(Writer, Journal), RecordError> {
        let failed = |problem| RecordError::new(path, problem);
        let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        lock(&file, path)?;
        let journal = Reader::new(BufReader::new(&file)).read().map_err(failed)?;
        journal.check_version(path)?;
        let mend = |file: &mut File| -> io::Result<u64> {
            let whole = whole_lines_bytes(file)?;
            if journal.torn_line.is_some() {
                file.set_len(whole)?;
            }
            let end = file.seek(SeekFrom::End(0))?;
            if end == whole {
                return Ok(end);
            }
            // The last line is an event of which only the end is missing.
            file.write_all(b"\n")?;
            Ok(end + 1)
        };
        let length_bytes = mend(&mut file).map_err(failed)?;
        Ok((Writer { file, path: path.to_owned(), length_bytes }, journal))
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

/// The lock goes with the process, however it ends, and shows whoever lists runs that somebody
/// writes here; a child that it was about to start may hold it a moment longer. A file system
/// without locks takes nothing from the record.
fn lock(file: &File, path: &Path) -> Result<(), RecordError> {
    for _ in 0..LOCK_TRIES {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) | Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            Err(problem) => return Err(RecordError::new(path, problem.into())),
        }
    }
    let problem = "another weigh records into this run";
    Err(RecordError::saying(path, problem, "wait until it has ended, or end it"))
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
    /// Who wrote it, if that was a version whose journals this one cannot read.
    pub newer: Option<Newer>,
}

/// A format of journals that came after ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newer {
    /// The format: `weigh/journal/2`.
    pub schema: String,
    /// The version of Weighbridge that wrote it.
    pub version: String,
}

impl Journal {
    /// The recorded times that cannot be read, one sentence each. Figures do not depend on them,
    /// but curves, histograms and files of times are made without them.
    pub fn unreadable_times(&self) -> Vec<String> {
        let trials = self.events.iter().filter_map(|event| match event {
            Event::TrialFinished(trial) => Some(trial),
            _ => None,
        });
        let times = trials.flat_map(|trial| trial.histograms.iter().map(move |time| (trial, time)));
        times
            .filter_map(|(trial, (time, text))| {
                Histogram::from_base64(text).err()?;
                Some(format!(
                    "the recorded {time} of trial {} cannot be read: pictures and files of times \
                     lack it, the figures do not",
                    trial.trial
                ))
            })
            .collect()
    }

    /// Refuses what a newer version wrote: its keys may mean something else.
    pub fn check_version(&self, path: &Path) -> Result<(), RecordError> {
        let Some(Newer { schema, version }) = &self.newer else { return Ok(()) };
        let own = env!("CARGO_PKG_VERSION");
        Err(RecordError::saying(
            path,
            format!(
                "it is in the format {schema}, written by weigh {version}; this is weigh {own}, \
                 which reads {JOURNAL_SCHEMA}"
            ),
            format!("use weigh {version} or later"),
        ))
    }
}

/// A line that is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 1.
    pub line: u64,
    /// Why it cannot be read.
    pub problem: String,
    /// What stood there, as far as it can be told.
    pub lost: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadLine { line, problem, lost } = self;
        write!(f, "line {line} is damaged ({problem}): {lost} is lost, the rest is kept")
    }
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
        let file = File::open(path).map_err(|problem| RecordError::unread(path, problem))?;
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
            if journal.events.is_empty()
                && let Some(newer) = newer(&text)
            {
                journal.newer = Some(newer);
                return Ok(journal);
            }
            match serde_json::from_slice::<Event>(&text) {
                Ok(event) => journal.events.push(event),
                Err(_) if text.last() != Some(&b'\n') => journal.torn_line = Some(self.line),
                Err(error) => {
                    let (line, lost) = (self.line, lost(&text));
                    journal.bad_lines.push(BadLine { line, problem: column(&error), lost });
                }
            }
        }
    }
}

/// The format of a first line that a later version wrote.
fn newer(line: &[u8]) -> Option<Newer> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let schema = value["schema"].as_str().filter(|_| value["event"] == "run_started")?;
    let number = |schema: &str| schema.strip_prefix(SCHEMA_NAME)?.parse::<u64>().ok();
    let is_newer = number(schema)? > number(JOURNAL_SCHEMA)?;
    let version = value["version"].as_str().unwrap_or("of a later date").to_owned();
    is_newer.then(|| Newer { schema: schema.to_owned(), version })
}

/// What a damaged line was about, from the keys that are still to be found in it.
fn lost(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let value_of = |key: &str| {
        let (_, rest) = text.split_once(&format!("\"{key}\":\""))?;
        let value = rest.split_once('"')?.0;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        (!value.is_empty() && value.chars().all(is_plain)).then(|| value.to_owned())
    };
    match (value_of("event"), value_of("trial")) {
        (Some(event), Some(trial)) => format!("{event} of trial {trial}"),
        (Some(event), None) => event,
        (None, Some(trial)) => format!("an event of trial {trial}"),
        (None, None) => "an event".to_owned(),
    }
}

/// The message of `error` with its column alone: its line is always the one that was read, whose
/// end counts as the beginning of a second one.
fn column(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&place) {
        Some(text) if error.line() > 1 => format!("{text} at its end"),
        Some(text) => format!("{text} at column {}", error.column()),
        None => text,
    }
}

/// A second in all.
const LOCK_TRIES: u32 = 40;
const LOCK_PAUSE: Duration = Duration::from_millis(25);

/// What stands before the number of a format.
const SCHEMA_NAME: &str = "weigh/journal/";

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
        let cut = Reader::new(&b"{\"event\":\"run_fin\n"[..]).read().unwrap();
        let problem = &cut.bad_lines[0].problem;
        assert!(!problem.contains("line 2") && !problem.contains("line 1"), "{problem}");
        let open = Reader::new(&b"{\"event\":\n"[..]).read().unwrap();
        assert!(open.bad_lines[0].problem.ends_with("at its end"), "{:?}", open.bad_lines);
        let binary = Reader::new(&[0xFF, 0, b'\n'][..]).read().unwrap();
        assert_eq!(binary.bad_lines.len(), 1);
    }

    #[test]
    fn a_last_line_without_its_end_counts_if_it_is_whole() {
        let line = serde_json::to_string(&finished()).unwrap();
        let journal = Reader::new(line.as_bytes()).read().unwrap();
        assert_eq!((journal.events.len(), journal.torn_line), (1, None));
    }

    #[test]
    fn what_a_damaged_line_was_about_is_told() {
        for (line, told) in [
            (
                &b"{\"event\":\"trial_finished\",\"trial\":\"77aa\",\"poi\xFF"[..],
                "trial_finished of trial 77aa",
            ),
            (b"{\"event\":\"unheard_of\"}", "unheard_of"),
            (b"\"trial\":\"77aa\"", "an event of trial 77aa"),
            (b"nonsense", "an event"),
            (b"{\"event\":\"<script>\"}", "an event"),
        ] {
            assert_eq!(lost(line), told);
        }
    }

    #[test]
    fn a_newer_format_is_named_and_not_read() {
        let text =
            "{\"event\":\"run_started\",\"schema\":\"weigh/journal/2\",\"version\":\"9.1\"}\n{}\n";
        let journal = Reader::new(text.as_bytes()).read().unwrap();
        assert!(journal.events.is_empty() && journal.bad_lines.is_empty());
        let error = journal.check_version(Path::new("journal.jsonl")).unwrap_err().to_string();
        for part in ["weigh/journal/2", "weigh 9.1 or later", "which reads weigh/journal/1"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
