//! A tool in the outcome: its figures with their intervals, each compared with the report of its
//! emulation and with figures of other runs, with the difference.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_stats::propagation::DRAWS;

use super::{EMULATED, Tool, ToolCompare, ToolMade, unit_of};
use crate::conditions::finite;
use crate::evidence::{Asked, Evidence, Sighted, Valued};
use crate::quantity::Quantity;
use crate::runs::{NOT_ASKED, RunState, Runs};

/// A real program beside the emulation of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolShown {
    /// The name of its run in the study: `tools/curl-post`.
    pub name: String,
    /// What it does.
    pub about: String,
    /// The experiments it belongs to, by id.
    pub experiments: Vec<String>,
    /// The program.
    pub program: String,
    /// Its version as it reports it; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The target as it reports itself; empty where none was started.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Its folder, relative to that of the study's run; absent where it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Why it was not run, and what would help; absent where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Repetitions that are over.
    pub repetitions: usize,
    /// Why repetitions failed, each reason once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// What weakens its figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Its figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<ToolFigure>,
}

/// A figure of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolFigure {
    /// Its name: `cpu_s_per_message`.
    pub name: String,
    /// Its unit: `s`, `ms`, `bytes`, `1/s`, or `1` for plain numbers.
    pub unit: String,
    /// The mean over the repetitions.
    pub mean: f64,
    /// Lower end of the 95 % interval; null for one repetition.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval; null for one repetition.
    pub high: Option<f64>,
    /// Repetitions behind it.
    pub n: usize,
    /// What it is compared with.
    #[serde(rename = "beside", default, skip_serializing_if = "Vec::is_empty")]
    pub compared_with: Vec<ToolCompared>,
}

/// A figure of Weighbridge, or a published one, beside a figure of a tool. Values have the unit of
/// the tool's figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCompared {
    /// What it is.
    pub what: String,
    /// Its value; null where there is none.
    pub value: Option<f64>,
    /// Lower end of its 95 % interval; null where it is exact, absent or unbounded.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval; null where it is exact, absent or unbounded.
    pub high: Option<f64>,
    /// The tool's figure less this one; null where one is missing.
    pub difference: Option<f64>,
    /// Lower end of the difference's 95 % interval.
    pub difference_low: Option<f64>,
    /// Upper end of the difference's 95 % interval.
    pub difference_high: Option<f64>,
    /// Why there is no value; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What an outcome says of a tool, by the runs of one occasion. Figures are worked out where there
/// is `evidence` of all occasions: that takes time.
pub(crate) fn shown(tool: &Tool, runs: &Runs, evidence: Option<&Evidence<'_>>) -> ToolShown {
    let mut shown = ToolShown {
        name: tool.name.clone(),
        about: tool.about.clone(),
        experiments: tool.experiments.clone(),
        program: tool.program.clone(),
        version: None,
        target: String::new(),
        folder: None,
        skipped: None,
        repetitions: 0,
        failures: Vec::new(),
        warnings: Vec::new(),
        figures: Vec::new(),
    };
    let made = match runs.get(&tool.name) {
        Some(RunState::Tool(made)) => made,
        Some(RunState::Skipped(reason)) => {
            return ToolShown { skipped: Some(reason.clone()), ..shown };
        }
        _ => return ToolShown { skipped: Some(NOT_ASKED.to_owned()), ..shown },
    };
    shown.version = made.begun.program_version.clone();
    shown.target = made.repetitions.first().map(|one| one.target.clone()).unwrap_or_default();
    shown.folder = Some(made.folder.clone());
    shown.repetitions = made.repetitions.len();
    for (_, error) in &made.failures {
        if !shown.failures.contains(error) {
            shown.failures.push(error.clone());
        }
    }
    shown.warnings = made.warnings();
    if let Some(evidence) = evidence {
        shown.figures = figures(tool, made, evidence);
    }
    shown
}

fn figures(tool: &Tool, made: &ToolMade, evidence: &Evidence<'_>) -> Vec<ToolFigure> {
    let known = made.figures();
    let own = tool.figures().into_iter().filter(|name| !name.starts_with(EMULATED));
    let own = own.filter(|name| known.contains(name.as_str()));
    own.map(|name| {
        let quantity = of_tool(tool, &name);
        let mut comparisons = Vec::new();
        let emulated = format!("{EMULATED}{name}");
        if known.contains(emulated.as_str()) {
            let other = of_tool(tool, &emulated);
            let pair = [("a", &quantity), ("b", &other)];
            comparisons.push(compared(tool.emulation_name(), pair, 1.0, evidence));
        }
        for compare in tool.compares.iter().filter(|compare| compare.figure == name) {
            let ToolCompare { what, with, factor, .. } = compare;
            let pair = [("a", &quantity), ("b", with)];
            comparisons.push(compared(what.clone(), pair, *factor, evidence));
        }
        let values = made.values(&name);
        let plain = values.iter().sum::<f64>() / values.len() as f64;
        let valued = valued(&[("a", &quantity)], &|values| values[0], evidence);
        let (mean, ends) = match valued {
            Ok(valued) => (valued.estimate, (finite(valued.ends.0), finite(valued.ends.1))),
            // One repetition has no interval.
            Err(_) => (plain, (None, None)),
        };
        let unit = unit_of(&name).to_owned();
        ToolFigure {
            name,
            unit,
            mean,
            low: ends.0,
            high: ends.1,
            n: values.len(),
            compared_with: comparisons,
        }
    })
    .collect()
}

fn of_tool(tool: &Tool, figure: &str) -> Quantity {
    Quantity::Tool { run: tool.name.clone(), figure: figure.to_owned() }
}

/// The second of the two quantities, in the unit of the first by this factor, and the difference.
fn compared(
    what: String,
    [own, other]: [(&str, &Quantity); 2],
    factor: f64,
    evidence: &Evidence<'_>,
) -> ToolCompared {
    let mut result = ToolCompared {
        what,
        value: None,
        low: None,
        high: None,
        difference: None,
        difference_low: None,
        difference_high: None,
        reason: String::new(),
    };
    match valued(&[other], &|values| values[0] * factor, evidence) {
        Ok(valued) => {
            result.value = finite(valued.estimate);
            let is_exact = valued.ends.0 == valued.ends.1;
            result.low = finite(valued.ends.0).filter(|_| !is_exact);
            result.high = finite(valued.ends.1).filter(|_| !is_exact);
        }
        Err(reason) => return ToolCompared { reason, ..result },
    }
    match valued(&[own, other], &|values| values[0] - values[1] * factor, evidence) {
        Ok(valued) => {
            result.difference = finite(valued.estimate);
            result.difference_low = finite(valued.ends.0);
            result.difference_high = finite(valued.ends.1);
        }
        Err(reason) => result.reason = reason,
    }
    result
}

/// What is made of these quantities, by all occasions that have them.
fn valued(
    named: &[(&str, &Quantity)],
    value: &dyn Fn(&[f64]) -> f64,
    evidence: &Evidence<'_>,
) -> Result<Valued, String> {
    let sighted = named.iter().map(|(name, quantity)| evidence.look(name, quantity));
    let sighted: Vec<Sighted<'_>> =
        sighted.collect::<Result<_, _>>().map_err(|absent| absent.reason)?;
    let texts: Vec<String> = named.iter().map(|(_, quantity)| quantity.to_string()).collect();
    let name = texts.join(" less ");
    evidence.evaluate(&Asked { name: &name, value, draws: DRAWS, cores_min: 0 }, &sighted)
}
