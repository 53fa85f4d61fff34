//! `weigh diff`: compares two runs cell by cell, for readers and for continuous integration.

use std::path::PathBuf;

use clap::Args;
use weigh_model::Condition;
use weigh_report::diff::{Asked, Diff as Compared, Side, render};
use weigh_report::{Style, checks};

use crate::planning::verdicts::{self, Verdicts};
use crate::show::{output, terminal};
use weigh_runner::exit::{Exit, Stop};

/// Flags of `weigh diff`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Diff {
    /// Run to compare with: an ID, latest, latest~1, a folder, summary.json or journal.jsonl;
    /// several separated by commas
    #[arg(value_name = "BEFORE")]
    a: String,
    /// Run to compare, named in the same ways
    #[arg(value_name = "AFTER")]
    b: String,
    /// End with exit code 99 if this is true of a case, and with 98 if it is undecided: "p99 >
    /// +5%", "loss > 0" (docs/guide/conditions.md)
    #[arg(long, value_name = "CONDITION", value_parser = verdicts::fail_if_changed)]
    fail_if: Vec<Condition>,
    #[command(flatten)]
    verdicts: Verdicts,
    /// Older name of --undecided fail
    #[arg(long, hide = true, requires = "fail_if", conflicts_with = "undecided")]
    strict: bool,
    /// Ignore differences smaller than this (noise between identical runs)
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = percent)]
    aa_limit: f64,
    /// Show all metrics, not only the most important ones
    #[arg(long)]
    all: bool,
    /// Print a JSON document instead of the table
    #[arg(long)]
    json: bool,
    /// Print the table as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Folder of the runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

impl Diff {
    /// Reads both runs and prints the differences.
    ///
    /// # Errors
    /// A run that cannot be read, and a condition of `--fail-if` that is wrong.
    pub fn run(self) -> Result<Exit, Stop> {
        let (a, b) = match (self.side(&self.a), self.side(&self.b)) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(a), Err(b)) if self.a != self.b => return Err(both(&a, &b)),
            (Err(wrong), _) | (_, Err(wrong)) => return Err(wrong),
        };
        let asked = Asked { fail_if: self.fail_if, all: self.all, aa_limit: self.aa_limit };
        let diff = Compared::of(&a, &b, &asked)
            .map_err(|problem| Stop::usage(format!("--fail-if {problem}")))?;
        if self.json {
            output::put_document(&diff.to_json())?;
        } else {
            let style = if self.markdown { Style::markdown() } else { terminal::style() };
            output::put_table(&render(&diff, style))?;
        }
        let verdicts = self.verdicts.strict(self.strict);
        let name = format!("{} to {}", diff.a.id, diff.b.id);
        verdicts.conclude((&name, &diff.b.started), &checks::of_diff(&diff))
    }

    fn side(&self, name: &str) -> Result<Side, Stop> {
        let side = Side::find_for(&self.runs, name, &self.fail_if).map_err(Stop::usage)?;
        for bad in &side.bad_lines {
            eprintln!("weigh: {}: {bad}", side.path.display());
        }
        Ok(side)
    }
}

/// The error of two runs that cannot be read.
fn both(a: &Stop, b: &Stop) -> Stop {
    let (a, b) = (a.to_string(), b.to_string());
    let problem = a.split_once("\nhelp: ").map_or(&*a, |(problem, _)| problem);
    Stop::usage(format!("{problem}\n{b}"))
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    number
        .filter(|percent| (0.0..1000.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "type a share such as 3%".to_owned())
}

const AFTER_HELP: &str = "\
With several runs on a side, measured in turn, the values are the means of the runs, so that the
intervals include the drift between runs.

A condition on a change, such as \"> +5%\":
  true       the ratio is above 1.05, and its interval lies above 1
  false      the ratio is at most 1.05, and its interval ends below 1.10, twice the limit, so that
             a little noise does not prevent an answer
  undecided  anything else: exit code 98, unless --undecided is given
A condition on a value (\"> 500ms\", \"loss > 0\") is about AFTER, which the table calls B.";
