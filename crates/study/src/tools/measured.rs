//! The figures of a tool, as quantities of conditions and of comparisons.

use weigh_stats::propagation::Known;

use super::{ToolMade, unit_of};
use crate::measuring::{Absent, Measured, Measuring, Repeated};
use crate::openings::REPETITIONS_MIN;
use crate::outcome::Link;

impl Measuring<'_> {
    /// The load of a tool, as a text to compare; empty where it was not run.
    pub(crate) fn tool_load(&self, run: &str) -> String {
        let Ok(made) = self.tool_made(run) else { return String::new() };
        let messages = made.values("messages").first().copied().unwrap_or(0.0);
        let target = made.repetitions.first().map_or("", |one| one.target.as_str());
        format!("{messages} {target} {:?}", made.begun.arguments)
    }

    /// A figure of a tool: the mean over its repetitions.
    pub(crate) fn tool(&self, run: &str, figure: &str) -> Result<Measured, Absent> {
        let made = self.tool_made(run)?;
        let link = Link { run: run.to_owned(), folder: made.folder.clone(), ..Link::default() };
        let links = vec![Link { cell: figure.to_owned(), ..link }];
        let absent =
            |reason: String| Absent { reason, links: links.clone(), is_without_run: false };
        let values = made.values(figure);
        if values.is_empty() {
            return Err(absent(match made.failures.first() {
                Some((_, error)) => format!("{run} failed: {error}"),
                None => format!("{run}: {figure} was not measured"),
            }));
        }
        let known = Known::mean_of(&values).ok_or_else(|| {
            absent(format!("{run}: one repetition of {figure} has no interval: repeat it"))
        })?;
        let key = format!("{run} {figure}");
        Ok(Measured {
            estimate: known.estimate(),
            draws: self.draws(&key, known, POSSIBLE),
            n: Some(values.len() as u32),
            openings: openings(run, made, values.len()),
            repeated: Some(Repeated { place: run.to_owned(), values }),
            unit: unit_of(figure).to_owned(),
            links,
            note: None,
        })
    }
}

/// Why a figure of this tool must not decide.
fn openings(run: &str, made: &ToolMade, repetitions: usize) -> Vec<String> {
    let mut reasons: Vec<String> =
        made.warnings().iter().map(|warning| format!("{run}: {warning}")).collect();
    if repetitions < REPETITIONS_MIN {
        reasons.push(format!(
            "{run} has {repetitions} repetitions; an answer needs {REPETITIONS_MIN}"
        ));
    }
    reasons
}

/// Times, counts, rates and bytes: no figure of a tool is below 0.
const POSSIBLE: (f64, f64) = (0.0, f64::INFINITY);
