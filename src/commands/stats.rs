//! `weigh stats`: computes mean, interval and verdict for a file of numbers, as for the figures of
//! a run.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use clap::Args;
use weigh_model::refusal;

use crate::numbers::file::NumberFile;
use crate::numbers::report::NumberReport;
use crate::numbers::text as number_text;
use crate::show::output;
use weigh_runner::exit::{Exit, Stop};

/// Flags of `weigh stats`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Stats {
    /// File with one number per line, or columns with the number last; - for standard input
    file: PathBuf,
    /// Take the first of two columns for runs, not for groups to compare
    #[arg(long)]
    levels: bool,
    /// Cost of one more repetition at every level, outermost first, in any unit
    #[arg(long, value_name = "C,C,…", value_delimiter = ',')]
    costs: Vec<f64>,
    /// Print a JSON document instead of the table
    #[arg(long)]
    json: bool,
}

impl Stats {
    /// Reads the file and prints the report.
    ///
    /// # Errors
    /// A file that cannot be read, and numbers that allow no statement.
    pub fn run(self) -> Result<Exit, Stop> {
        let name = self.file.display().to_string();
        let at = |problem: String| {
            let said = format!("{name}: {problem}");
            Stop::usage(refusal::with_fix(&said, "name a file of numbers"))
        };
        let file = if name == "-" {
            NumberFile::read(io::stdin().lock())
        } else {
            let opened = File::open(&self.file).map_err(|error| {
                at(format!("cannot be read: {error}\nhelp: check the path of the file"))
            })?;
            NumberFile::read(opened)
        };
        let file = file.map_err(|error| at(error.to_string()))?;
        let report = NumberReport::of(&file, self.levels, &self.costs).map_err(at)?;
        if self.json {
            let text = serde_json::to_string_pretty(&report)
                .map_err(|error| Stop::new(Exit::Internal, error))?;
            output::put_document(&(text + "\n"))?;
        } else {
            output::put(&number_text::render(&report))?;
        }
        Ok(Exit::Done)
    }
}

const AFTER_HELP: &str = "\
One column is one sample. Two columns are a group and its value: all pairs of groups are compared.
More columns are levels of repetition, outermost first (host,run,window,value): the result shows the
variation of each level and where to repeat. A first column called \"group\" compares groups.";
