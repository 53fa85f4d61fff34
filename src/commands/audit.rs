//! `weigh audit`: broken rules in the figures of others, or in a run of our own.

use std::path::{Path, PathBuf};

use clap::Args;
use weigh_audit::figure::Fact;
use weigh_audit::{Source, facts};
use weigh_model::Rule;
use weigh_report::Summary;
use weigh_report::lint::verdict;
use weigh_report::run_folder::RunFolder;

use crate::exit::{Exit, Stop};
use crate::show::output;

/// The flags of `weigh audit`.
#[derive(Args)]
#[command(after_long_help = FORMATS_HELP)]
pub struct Audit {
    /// Files that belong together: a table of figures, the output of a tool; or one run, by its
    /// folder, its id or its summary.json
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// What is known beside the figures, as TOML: docs/guide/auditing-figures.md
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// Only this rule, L01 to L20; may be given several times
    #[arg(long = "rule", value_name = "RULE")]
    rules: Vec<Rule>,
    /// Prints the findings as JSON
    #[arg(long)]
    json: bool,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

impl Audit {
    /// Reads, asks, and ends with 99 if a rule is broken.
    pub fn run(self) -> Result<Exit, Stop> {
        if let [file] = &self.files[..]
            && let Some(summary) = own_run(file, &self.runs)?
        {
            let verdict = verdict::of(&summary, &self.rules);
            output::put(&if self.json { verdict.to_json() } else { verdict.to_text() })?;
            return Ok(if verdict.is_clean() { Exit::Done } else { Exit::Finding });
        }
        let sources: Vec<Source> =
            self.files.iter().map(|file| source(file)).collect::<Result<_, _>>()?;
        let mut audit = weigh_audit::audit(&sources, &self.beside()?).map_err(Stop::usage)?;
        audit.keep(&self.rules);
        output::put(&if self.json { audit.to_json() } else { audit.to_text() })?;
        Ok(if audit.findings.is_empty() { Exit::Done } else { Exit::Finding })
    }

    fn beside(&self) -> Result<Vec<Fact>, Stop> {
        let Some(path) = &self.facts else { return Ok(Vec::new()) };
        let source = source(&path.to_string_lossy())?;
        facts::read(&source.name, &source.text).map_err(Stop::usage)
    }
}

/// A run of ours: its folder, its id below `runs`, or its summary.
fn own_run(name: &str, runs: &Path) -> Result<Option<Summary>, Stop> {
    let path = Path::new(name);
    let is_file = path.is_file();
    if !is_file {
        let folder = RunFolder::find(runs, name).map_err(|error| {
            Stop::usage(format!("{name}: there is no such file, and as the name of a run: {error}"))
        })?;
        let journal = folder.read_journal().map_err(Stop::usage)?;
        return folder.summary(&journal.events).map(Some).map_err(Stop::usage);
    }
    let source = source(name)?;
    let is_summary = source.text.contains("\"weigh/summary/");
    if !is_summary {
        return Ok(None);
    }
    let summary = serde_json::from_str(&source.text).map_err(|error| {
        Stop::usage(format!("{name}: this summary cannot be read: {error}; name its run's folder"))
    })?;
    Ok(Some(summary))
}

fn source(name: &str) -> Result<Source, Stop> {
    let bytes = std::fs::read(name)
        .map_err(|error| Stop::usage(format!("{name}: {error}; name a file that can be read")))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        Stop::usage(format!("{name}: this is no text; give one of these: {FORMATS_HELP}"))
    })?;
    Ok(Source { name: name.to_owned(), text })
}

const FORMATS_HELP: &str = weigh_audit::formats::FORMATS;
