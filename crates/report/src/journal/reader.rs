//! The journal of a run: one event a line, as JSON, only ever appended to. `docs/journal.md`
//! documents every event.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde_json::Value;
use weigh_model::event::{Event, JOURNAL_SCHEMA};
use weigh_stats::Histogram;

use super::record_error::RecordError;

/// The content of a journal.
///
/// # Examples
///
/// A journal whose last line was cut off by a crash:
///
/// ```
/// use weigh_report::Reader;
///
/// let text = "{\"event\":\"run_finished\",\"outcome\":\"done\"}\n{\"event\":\"tri";
/// let journal = Reader::new(text.as_bytes()).read()?;
/// assert_eq!((journal.events.len(), journal.torn_line), (1, Some(2)));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journal {
    /// All events that could be read, in their order.
    pub events: Vec<Event>,
    /// Lines that are not events.
    pub bad_lines: Vec<BadLine>,
    /// Number of the last line, from 1, if a crash cut it off; this is harmless.
    pub torn_line: Option<u64>,
    /// The version that wrote it, if this one cannot read its journals.
    pub newer: Option<Newer>,
}

/// A newer format of journals.
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

    /// Refuses journals of a newer version: their keys may have another meaning.
    ///
    /// # Errors
    /// If the journal is of a newer version.
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

/// A line that is not an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 1.
    pub line: u64,
    /// Why it cannot be read.
    pub problem: String,
    /// What was lost, as far as it is known.
    pub lost: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadLine { line, problem, lost } = self;
        write!(f, "line {line} is damaged ({problem}): {lost} is lost, all other lines are kept")
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
    ///
    /// # Errors
    /// If the file cannot be opened.
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

    /// Reads everything. Bad lines are reported and skipped; a last line that has no end and is not
    /// an event was cut off by a crash.
    ///
    /// # Errors
    /// If reading fails.
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

/// Describes a damaged line, by the keys that can still be found in it.
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

/// The message of `error` with its column only: its line is always the one that was read, whose end
/// counts as the beginning of a second one.
fn column(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&place) {
        Some(text) if error.line() > 1 => format!("{text} at its end"),
        Some(text) => format!("{text} at column {}", error.column()),
        None => text,
    }
}

/// Text before the number of a format.
const SCHEMA_NAME: &str = "weigh/journal/";

#[cfg(test)]
mod tests {
    use super::*;

    fn finished() -> Event {
        Event::RunFinished { outcome: "done".to_owned() }
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
