//! `weigh diff`: two runs, cell by cell, for people and for jobs of continuous integration.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use weigh_model::Condition;
use weigh_report::diff::{Asked, Diff as Compared, Side, render};
use weigh_report::table::Style;

use crate::exit::{Exit, Stop};
use crate::show::output;

/// The flags of `weigh diff`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Diff {
    /// The run to compare with: an id, latest, latest~1, a folder, summary.json or journal.jsonl;
    /// or several with commas between them
    a: String,
    /// The run that is compared
    b: String,
    /// Ends with code 99 if this holds in a cell, or if no cell of both runs has the figures:
    /// "response_time_ns.p99 > +5%", "loss > 0"
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<Condition>,
    /// Ends with code 99 also where it cannot be told whether a condition holds
    #[arg(long, requires = "fail_if")]
    strict: bool,
    /// What this host shows between equals: no smaller effect is called one
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = percent)]
    aa_limit: f64,
    /// Shows all metrics, not only the headlines
    #[arg(long)]
    all: bool,
    /// Prints a JSON document instead of the table
    #[arg(long)]
    json: bool,
    /// Prints the table as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

impl Diff {
    /// Reads both runs and shows what changed.
    pub fn run(self) -> Result<Exit, Stop> {
        let (a, b) = (self.side(&self.a)?, self.side(&self.b)?);
        let asked = Asked { fail_if: self.fail_if, all: self.all, aa_limit: self.aa_limit };
        let diff = Compared::of(&a, &b, &asked)
            .map_err(|problem| Stop::usage(format!("--fail-if {problem}")))?;
        if self.json {
            output::put(&diff.to_json())?;
        } else {
            let width = std::io::stdout().is_terminal().then(crate::show::terminal::width);
            let style = Style::from_environment(width, |name| std::env::var(name).ok());
            output::put(&render(&diff, if self.markdown { Style::markdown() } else { style }))?;
        }
        for condition in &diff.unjudged {
            let why = if diff.rows.is_empty() {
                "the runs have no cell in common"
            } else {
                "no cell that both runs have has its figures"
            };
            eprintln!(
                "weigh: --fail-if \"{condition}\" guards nothing: {why}; compare runs of the same \
                 plan and targets"
            );
        }
        Ok(if diff.finds(self.strict) { Exit::Finding } else { Exit::Done })
    }

    fn side(&self, name: &str) -> Result<Side, Stop> {
        let side = Side::find(&self.runs, name).map_err(Stop::usage)?;
        for bad in &side.bad_lines {
            eprintln!("weigh: {}: {bad}", side.path.display());
        }
        Ok(side)
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    number
        .filter(|percent| (0.0..1000.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "type a share such as 3%".to_owned())
}

const AFTER_HELP: &str = "\
Of several runs a side, weighed in turn, the values are the means of the runs: then what drifts
between runs is in the intervals.

A change (\"> +5%\") holds where the ratio is beyond it and its interval leaves 1 out: chance alone
seldom does both. A value (\"> 500ms\", \"loss > 0\") is held against B's figure. What the data
cannot carry is \"cannot tell\", and ends with code 99 only with --strict.";
