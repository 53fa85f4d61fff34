//! Results of conditions: the exit code, the last line on standard error, and the reports for
//! continuous integration (JUnit XML, annotations of GitHub Actions).

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use weigh_model::Condition;
use weigh_plan::metrics;
use weigh_report::checks::{Check, MEASURED, PROVEN, github, junit};
use weigh_report::summary::Answer;

use crate::output_file;
use weigh_runner::exit::{Exit, Stop};

/// Values of `--undecided`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Undecided {
    /// End with 0
    Pass,
    /// End with 99
    Fail,
}

/// Flags for the exit code and the reports of conditions.
#[derive(Args, Clone, Default)]
pub struct Verdicts {
    /// Exit with 0 (pass) or 99 (fail) if a condition is undecided [default: exit with 98]
    #[arg(long, value_name = "pass|fail", hide_possible_values = true)]
    undecided: Option<Undecided>,
    /// Write the results of the conditions as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print failed conditions as annotations of GitHub Actions, on standard error
    #[arg(long)]
    github: bool,
}

/// Reads a condition of `--fail-if` that one run alone can decide.
///
/// # Errors
/// The error, and what to type instead.
pub fn fail_if(text: &str) -> Result<Condition, String> {
    let is_capacity = text.trim().starts_with("capacity");
    let capacity = if is_capacity { text.trim().parse::<Condition>().ok() } else { None };
    match capacity {
        Some(condition) => Ok(condition),
        None => metrics::absolute(text).map_err(|wrong| wrong.to_string()),
    }
}

/// Reads a condition of `weigh diff --fail-if`, which may be a change.
///
/// # Errors
/// The error, and what to type instead.
pub fn fail_if_changed(text: &str) -> Result<Condition, String> {
    metrics::condition(text).map_err(|wrong| wrong.to_string())
}

impl Verdicts {
    /// Sets `--undecided fail`, for an older flag with that meaning.
    pub fn strict(self, is_strict: bool) -> Verdicts {
        let undecided = self.undecided.or(is_strict.then_some(Undecided::Fail));
        Verdicts { undecided, ..self }
    }

    /// Writes and prints the results of `checks`, and returns the exit code. The document has the
    /// name `name` and the start time `started`.
    ///
    /// # Errors
    /// If the JUnit file cannot be written.
    pub fn conclude(&self, (name, started): (&str, &str), checks: &[Check]) -> Result<Exit, Stop> {
        if let Some(path) = &self.junit {
            let document = junit::document(name, started, checks, self.policy());
            output_file::write(path, document).map_err(|error| {
                let path = path.display();
                let text = format!("--junit {path}: cannot be written: {error}; name another file");
                Stop::new(Exit::Record, text)
            })?;
        }
        if self.github {
            eprint!("{}", github::annotations(checks, self.policy()));
        }
        let empty = checks.iter().filter(|check| check.condition == MEASURED);
        for check in empty {
            eprintln!("weigh: NOTHING WAS MEASURED: {}: {}", check.case, check.text);
        }
        Ok(self.tell(checks))
    }

    /// Returns the exit code for undecided conditions.
    pub fn of_undecided(&self) -> Exit {
        match self.undecided {
            None => Exit::Undecided,
            Some(Undecided::Pass) => Exit::Done,
            Some(Undecided::Fail) => Exit::Finding,
        }
    }

    /// Prints the condition that decides the exit code, and the reason.
    fn tell(&self, checks: &[Check]) -> Exit {
        let of = |answer: Answer| -> Vec<&Check> {
            checks.iter().filter(|check| check.answer == answer).collect()
        };
        let (failed, open) = (of(Answer::Failed), of(Answer::Undecided));
        let more = |all: &[&Check]| match all.len() {
            0 | 1 => String::new(),
            many => format!(" (and {} more)", many - 1),
        };
        if let Some(first) = failed.first() {
            eprintln!("weigh: failed (exit code 99): {}{}", first.line(), more(&failed));
            return Exit::Finding;
        }
        let Some(first) = open.first() else { return Exit::Done };
        let exit = self.of_undecided();
        let (code, hint) = match exit {
            Exit::Undecided => ("98", "; with --undecided pass it is 0"),
            Exit::Finding => ("99, by --undecided fail", ""),
            _ => ("0, by --undecided pass", ""),
        };
        let (what, first) = match first.condition.as_str() {
            MEASURED => ("nothing was measured", first.case.clone()),
            PROVEN => ("undecided", first.text.clone()),
            _ => ("undecided", first.line()),
        };
        eprintln!("weigh: {what} (exit code {code}): {first}{}{hint}", more(&open));
        exit
    }

    fn policy(&self) -> junit::Undecided {
        match self.undecided {
            None => junit::Undecided::Told,
            Some(Undecided::Pass) => junit::Undecided::Passes,
            Some(Undecided::Fail) => junit::Undecided::Fails,
        }
    }
}
