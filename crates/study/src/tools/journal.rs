//! The journal of a tool's run: a line of JSON for its beginning, one for every repetition as it
//! ends, and one for its end. Finished repetitions are never repeated.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use weigh_model::event::HostFacts;

/// The name and version of the journal's format.
pub const TOOL_SCHEMA: &str = "weigh/tool/1";

/// The name of the file in the folder of a tool's run.
pub const TOOL_JOURNAL: &str = "repetitions.jsonl";

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ToolLine {
    /// The run begins, or is resumed.
    ToolStarted(Box<ToolBegun>),
    /// A repetition is over.
    RepetitionFinished(ToolRepetition),
    /// A repetition could not be done.
    RepetitionFailed {
        /// Its number, from 0.
        repetition: u32,
        /// When it failed, RFC 3339.
        at: String,
        /// Why, with the end of what the program printed.
        error: String,
    },
    /// Nothing is left to do.
    ToolFinished,
}

/// What is known of a tool's run when it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolBegun {
    /// [`TOOL_SCHEMA`].
    pub schema: String,
    /// The run's name in the study: `tools/curl-post`.
    pub name: String,
    /// The program.
    pub program: String,
    /// Its version as it reports it; absent where it is not asked, or does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_version: Option<String>,
    /// The arguments, with their places.
    pub arguments: Vec<String>,
    /// When it started, RFC 3339.
    pub started: String,
    /// The version of Weighbridge.
    pub version: String,
    /// The machine, as in `weigh/summary/1`.
    pub host: HostFacts,
}

/// A repetition that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRepetition {
    /// Its number, from 0.
    pub repetition: u32,
    /// When it ended, RFC 3339.
    pub at: String,
    /// The target as it reports itself; empty where none was started.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Its figures by name; those of its emulation begin with `emulated.`.
    pub figures: BTreeMap<String, f64>,
    /// What weakens it, in plain sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The run of a tool, as far as it was made.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolMade {
    /// Its folder, relative to that of the study's run.
    pub folder: String,
    /// What was known when it began.
    pub begun: ToolBegun,
    /// Its repetitions, by number, each once.
    pub repetitions: Vec<ToolRepetition>,
    /// Repetitions that could not be done and were not made up for: number and reason.
    pub failures: Vec<(u32, String)>,
    /// True once nothing was left to do.
    pub is_done: bool,
}

impl ToolMade {
    /// From the text of a journal; `None` where its first line is not whole. A last line that was
    /// cut short is left out.
    ///
    /// # Errors
    /// If a line in it is none of such a journal: its number and what is wrong.
    pub fn of(folder: &str, text: &str) -> Result<Option<ToolMade>, String> {
        let mut made: Option<ToolMade> = None;
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for (at, line) in whole.lines().enumerate() {
            let read = serde_json::from_str::<ToolLine>(line);
            let read = read.map_err(|error| format!("line {}: {error}", at + 1))?;
            match (read, &mut made) {
                (ToolLine::ToolStarted(begun), None) => {
                    if begun.schema != TOOL_SCHEMA {
                        return Err(format!("line {}: unknown schema {:?}", at + 1, begun.schema));
                    }
                    made = Some(ToolMade {
                        folder: folder.to_owned(),
                        begun: *begun,
                        repetitions: Vec::new(),
                        failures: Vec::new(),
                        is_done: false,
                    });
                }
                (line, Some(made)) => made.take(line),
                (_, None) => return Err(format!("line {}: the run has not begun", at + 1)),
            }
        }
        if let Some(made) = &mut made {
            made.repetitions.sort_by_key(|one| one.repetition);
            let done: BTreeSet<u32> = made.repetitions.iter().map(|one| one.repetition).collect();
            made.failures.retain(|(number, _)| !done.contains(number));
        }
        Ok(made)
    }

    fn take(&mut self, line: ToolLine) {
        match line {
            // Resumed: what was known at first stays.
            ToolLine::ToolStarted(_) => self.is_done = false,
            ToolLine::RepetitionFinished(one) => {
                self.repetitions.retain(|known| known.repetition != one.repetition);
                self.repetitions.push(one);
            }
            ToolLine::RepetitionFailed { repetition, error, .. } => {
                self.failures.retain(|(known, _)| *known != repetition);
                self.failures.push((repetition, error));
            }
            ToolLine::ToolFinished => self.is_done = true,
        }
    }

    /// The numbers of the repetitions that are left of this many.
    pub fn left(&self, repetitions: u32) -> Vec<u32> {
        let is_done = |number: &u32| self.repetitions.iter().any(|one| one.repetition == *number);
        (0..repetitions).filter(|number| !is_done(number)).collect()
    }

    /// The values of a figure, one for each repetition that has it, in their order.
    pub fn values(&self, figure: &str) -> Vec<f64> {
        self.repetitions.iter().filter_map(|one| one.figures.get(figure).copied()).collect()
    }

    /// The names of all figures that a repetition has.
    pub fn figures(&self) -> BTreeSet<&str> {
        self.repetitions.iter().flat_map(|one| one.figures.keys().map(String::as_str)).collect()
    }

    /// What weakens it: each warning as it was given first, and in how many repetitions there was
    /// one that differs from it in its numbers alone.
    pub fn warnings(&self) -> Vec<String> {
        let plain = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
        let mut found: Vec<(&String, usize)> = Vec::new();
        for warning in self.repetitions.iter().flat_map(|one| &one.warnings) {
            match found.iter_mut().find(|(first, _)| plain(first) == plain(warning)) {
                Some((_, count)) => *count += 1,
                None => found.push((warning, 1)),
            }
        }
        let all = self.repetitions.len();
        let words = |(text, count): (&String, usize)| match all {
            1 => text.clone(),
            _ => format!("{text} (in {count} of {all} repetitions, the first one shown)"),
        };
        found.into_iter().map(words).collect()
    }
}

impl ToolLine {
    /// The line as it is written, with its line break.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string(self);
        json.expect("a line has only text keys, and its numbers are finite") + "\n"
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn begun() -> ToolLine {
        ToolLine::ToolStarted(Box::new(ToolBegun {
            schema: TOOL_SCHEMA.to_owned(),
            name: "tools/curl-post".to_owned(),
            program: "curl".to_owned(),
            program_version: Some("7.88.1".to_owned()),
            arguments: vec!["{url}/messages".to_owned()],
            started: "2026-11-22T20:00:00Z".to_owned(),
            version: "0.1.0".to_owned(),
            host: serde_json::from_value(serde_json::json!({
                "cpu": "A processor", "cores": 2, "memory_bytes": 4294967296u64, "kernel": "",
                "virtualisation": "", "clock_source": "", "governor": "", "congestion_control": "",
            }))
            .unwrap(),
        }))
    }

    pub(crate) fn finished(repetition: u32, cpu_s: f64) -> ToolLine {
        ToolLine::RepetitionFinished(ToolRepetition {
            repetition,
            at: "2026-11-22T20:00:01Z".to_owned(),
            target: "weigh reference http1".to_owned(),
            figures: [("cpu_s_per_message".to_owned(), cpu_s)].into(),
            warnings: Vec::new(),
        })
    }

    fn failed(repetition: u32) -> ToolLine {
        let (at, error) = (String::new(), "exit status 22".to_owned());
        ToolLine::RepetitionFailed { repetition, at, error }
    }

    fn text(lines: &[ToolLine]) -> String {
        lines.iter().map(ToolLine::to_json).collect()
    }

    #[test]
    fn a_journal_says_what_is_left_to_do() {
        let lines = [begun(), finished(1, 2.0), failed(0), failed(2), begun(), finished(0, 1.0)];
        let made = ToolMade::of("tools-curl-post", &text(&lines)).unwrap().unwrap();
        assert_eq!((made.left(4), made.is_done), (vec![2, 3], false));
        assert_eq!(made.values("cpu_s_per_message"), [1.0, 2.0]);
        assert_eq!(made.failures, [(2, "exit status 22".to_owned())]);
        let lines = [&lines[..], &[finished(2, 1.0), ToolLine::ToolFinished]].concat();
        let made = ToolMade::of("tools-curl-post", &text(&lines)).unwrap().unwrap();
        assert!(made.is_done && made.failures.is_empty());
        assert_eq!(made.begun.program_version.as_deref(), Some("7.88.1"));
    }

    #[test]
    fn a_line_that_was_cut_short_is_left_out() {
        let whole = text(&[begun(), finished(0, 1.0)]);
        let cut = whole.clone() + &finished(1, 1.0).to_json()[..20];
        assert_eq!(ToolMade::of("f", &cut), ToolMade::of("f", &whole));
        assert_eq!(ToolMade::of("f", &begun().to_json()[..40]), Ok(None));
        assert_eq!(ToolMade::of("f", ""), Ok(None));
    }

    #[test]
    fn what_is_no_journal_is_refused_with_its_line() {
        let other = begun().to_json().replace(TOOL_SCHEMA, "weigh/tool/9");
        for (text, said) in [
            (finished(0, 1.0).to_json(), "line 1: the run has not begun"),
            (begun().to_json() + "{}\n", "line 2"),
            (other, "unknown schema"),
        ] {
            let error = ToolMade::of("f", &text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
