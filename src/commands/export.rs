//! `weigh export`: a run in the formats of other tools, and its table for a paper.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use weigh_model::numbers::count;

use clap::{Args, ValueEnum};
use weigh_model::condition::resolve;
use weigh_model::event::Event;
use weigh_report::exports::{
    HAS_MESSAGES, cells, column_names, intervals, jtl, latex, markdown, message_files,
    message_table, openmetrics, packets, repetitions,
};
use weigh_report::{RecordError, RunFolder, Summary};

use crate::output_file::OutputFile;
use crate::planning::metric_names::{flat_name, unknown};
use crate::show::output;
use weigh_runner::exit::{Exit, Stop};

/// Flags of `weigh export`.
#[derive(Args)]
pub struct Export {
    /// Run: its folder, its ID, or `latest`
    run: String,
    /// Format to write
    #[arg(long, value_enum)]
    format: Format,
    /// Rows of the format csv [default: cells]
    #[arg(long, value_enum)]
    rows: Option<Rows>,
    /// With --rows repetitions: one row for each metric, with its name, unit and value
    #[arg(long)]
    long: bool,
    /// Columns of the formats latex and markdown, such as p50,p99,lost [default: as `weigh report`]
    #[arg(long, value_name = "METRICS", value_delimiter = ',')]
    metrics: Vec<String>,
    /// File to write [default: standard output]
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Folder of the runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

/// Formats of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Cells with their metrics and ledgers, as CSV; with --rows repetitions every repetition
    Csv,
    /// The table of cells for a paper, with booktabs
    Latex,
    /// The table of cells in Markdown
    Markdown,
    /// The time series of every trial, as CSV
    Intervals,
    /// The packets of one session of each cell, as CSV; needs a run with --wire
    Packets,
    /// Metrics, histograms and ledgers as OpenMetrics text
    Openmetrics,
    /// Single messages as CSV; needs a run with --keep-messages
    Messages,
    /// Single messages as JMeter results; needs a run with --keep-messages
    Jtl,
}

/// The rows of a table of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rows {
    /// One row per cell: means with their intervals
    Cells,
    /// One row per cell and repetition: one column for each metric
    Repetitions,
}

/// What is written, with the options of its format.
struct Content {
    format: Format,
    rows: Rows,
    is_long: bool,
    /// Columns; none for those of the terminal's table.
    metrics: Vec<String>,
}

impl Export {
    /// Writes the run in the given format.
    ///
    /// # Errors
    /// A run that cannot be read, a format that this build or this run does not have, and a file
    /// that cannot be written.
    ///
    /// # Errors
    /// If an option does not fit the format, the run cannot be read or the file not be written.
    pub fn run(self) -> Result<Exit, Stop> {
        self.check()?;
        let of_messages = matches!(self.format, Format::Messages | Format::Jtl);
        if of_messages && !HAS_MESSAGES {
            return Err(Stop::unbuilt("record of single messages"));
        }
        let folder = RunFolder::find(&self.runs, &self.run).map_err(Stop::usage)?;
        let journal = folder.read_journal().map_err(Stop::usage)?;
        for bad in &journal.bad_lines {
            eprintln!("weigh: {}: {bad}", folder.path().display());
        }
        let summary = Summary::from_events(&journal.events).map_err(Stop::usage)?;
        let run = Run { folder: &folder, summary: &summary, events: &journal.events };
        let content = self.content(&summary)?;
        if of_messages {
            tell_missing(&folder, &journal.events);
        }
        let left_out = match &self.output {
            Some(path) => run.write_file(&content, path)?,
            None if io::stdout().is_terminal() => {
                let mut text = Vec::new();
                let left_out = run.write(&content, &mut text, Path::new("stdout"));
                output::put_document(&String::from_utf8_lossy(&text))?;
                left_out.map_err(unwritten)?
            }
            None => {
                let out = io::stdout().lock();
                let left_out = run.write(&content, BufWriter::new(out), Path::new("stdout"));
                match left_out {
                    // The reader of the pipe has closed it: enough was read.
                    Err(error) if error.problem.kind() == io::ErrorKind::BrokenPipe => None,
                    other => other.map_err(unwritten)?,
                }
            }
        };
        left_out.into_iter().for_each(tell_left_out);
        Ok(Exit::Done)
    }

    /// Refuses options that have no effect on the format.
    fn check(&self) -> Result<(), Stop> {
        let wrong = |flag: &str, fits: &str| {
            Err(Stop::usage(format!("{flag} has no effect here\nhelp: use it with {fits}")))
        };
        if self.rows.is_some() && self.format != Format::Csv {
            return wrong("--rows", "--format csv");
        }
        if self.long && self.rows != Some(Rows::Repetitions) {
            return wrong("--long", "--format csv --rows repetitions");
        }
        if !self.metrics.is_empty() && !matches!(self.format, Format::Latex | Format::Markdown) {
            return wrong("--metrics", "--format latex or --format markdown");
        }
        Ok(())
    }

    /// What is written of this run. A metric that it does not have is an error.
    fn content(&self, summary: &Summary) -> Result<Content, Stop> {
        let known = column_names(summary);
        let metric = |text: &String| -> Result<String, Stop> {
            let text = text.trim();
            if known.contains(text) {
                return Ok(text.to_owned());
            }
            let name = flat_name("--metrics", text)?;
            let name = resolve(&name, |name| known.contains(name));
            match known.contains(&*name) {
                true => Ok(name.into_owned()),
                false => Err(unknown(("--metrics", text), text, "no case", known.iter().copied())),
            }
        };
        let metrics = self.metrics.iter().map(metric).collect::<Result<Vec<_>, _>>()?;
        let rows = self.rows.unwrap_or(Rows::Cells);
        Ok(Content { format: self.format, rows, is_long: self.long, metrics })
    }
}

/// The run that is exported.
struct Run<'r> {
    folder: &'r RunFolder,
    summary: &'r Summary,
    events: &'r [Event],
}

impl Run<'_> {
    fn write_file(&self, content: &Content, path: &Path) -> Result<Option<jtl::LeftOut>, Stop> {
        let failed = |problem| unwritten(RecordError::new(path, problem));
        let mut output = OutputFile::open(path).map_err(failed)?;
        let left_out = self.write(content, BufWriter::new(&mut output), path).map_err(unwritten)?;
        output.finish().map_err(failed)?;
        Ok(left_out)
    }

    fn write(
        &self,
        content: &Content,
        mut out: impl Write,
        path: &Path,
    ) -> Result<Option<jtl::LeftOut>, RecordError> {
        let failed = |problem| RecordError::new(path, problem);
        let Run { folder, summary, events } = self;
        let mut left_out = None;
        match content.format {
            Format::Csv if content.rows == Rows::Repetitions => {
                let written = match content.is_long {
                    true => repetitions::long(&mut out, summary, events),
                    false => repetitions::wide(&mut out, summary, events),
                };
                written.map_err(failed)?;
            }
            Format::Csv => out.write_all(&cells::csv(summary)).map_err(failed)?,
            Format::Latex | Format::Markdown => {
                let is_latex = content.format == Format::Latex;
                let table = if is_latex { latex::table } else { markdown::table };
                out.write_all(table(summary, &content.metrics).as_bytes()).map_err(failed)?;
            }
            Format::Intervals => intervals::write(&mut out, summary, events).map_err(failed)?,
            Format::Packets => packets::write(&mut out, summary, events).map_err(failed)?,
            Format::Openmetrics => {
                let text = openmetrics::text(summary, events);
                out.write_all(text.as_bytes()).map_err(failed)?;
            }
            Format::Messages => message_table::write(&mut out, folder, summary, events)?,
            Format::Jtl => left_out = Some(jtl::write(&mut out, folder, summary, events)?),
        }
        out.flush().map_err(failed)?;
        Ok(left_out)
    }
}

/// Reports trials without a file, which are left out. If none has one, the next error reports it.
fn tell_missing(folder: &RunFolder, events: &[Event]) {
    let missing = message_files::missing(folder, events);
    if !folder.path().join("messages").is_dir() {
        return;
    }
    for trial in missing {
        eprintln!("weigh: trial {} has no file of messages and is left out", trial.trial);
    }
}

fn tell_left_out(left_out: jtl::LeftOut) {
    let jtl::LeftOut { not_sent, unknown } = left_out;
    if not_sent > 0 {
        let not_sent = count(not_sent);
        eprintln!(
            "weigh: {not_sent} messages were never sent and are left out, because JMeter \
                   has no form for them"
        );
    }
    if unknown > 0 {
        eprintln!(
            "weigh: {} messages were sent without a confirmation or a subscriber and are left out",
            count(unknown)
        );
    }
}

fn unwritten(error: RecordError) -> Stop {
    let is_ours = error.path.ends_with("messages");
    Stop::new(if is_ours { Exit::Usage } else { Exit::Record }, error)
}
