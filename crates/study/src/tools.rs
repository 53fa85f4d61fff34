//! Real client programs of a study (`tools.toml`): arguments, target, repetitions, output, and the
//! figures to compare with. Their runs are named `tools/NAME`.

mod figures;
mod journal;
mod measured;
mod printed;
mod reading;
mod shown;
mod written;

use std::collections::BTreeMap;

use weigh_model::Nanos;
use weigh_plan::Resolved;

use crate::quantity::Quantity;
use crate::scale::Scale;

pub use figures::{EMULATED, unit_of};
pub use journal::{TOOL_JOURNAL, TOOL_SCHEMA, ToolBegun, ToolLine, ToolMade, ToolRepetition};
pub use printed::figures_in;
pub use shown::{ToolCompared, ToolFigure, ToolShown};

pub(crate) use crate::slips::no_figure;
pub(crate) use reading::{alone, complete, read};
pub(crate) use shown::shown;
pub use written::{Prints, Starts};

/// A real program, and how it is started.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name of its run: `tools/curl-post`.
    pub name: String,
    /// The name of its entry: `curl-post`.
    pub entry: String,
    /// Description in one sentence.
    pub about: String,
    /// The experiments it belongs to, by id.
    pub experiments: Vec<String>,
    /// The program, as it is searched on `PATH`.
    pub program: String,
    /// How it reports its version; `None` if it is not asked.
    pub version: Option<VersionAsked>,
    /// Command that installs it.
    pub install: String,
    /// Its arguments, with places such as `{url}`.
    pub arguments: Vec<String>,
    /// Environment of the program and of the steps before it, with places.
    pub environment: BTreeMap<String, String>,
    /// A line of its standard input, given once for each message; `None` for no input.
    pub line: Option<String>,
    /// Number of starts.
    pub starts: Starts,
    /// Format of its output.
    pub prints: Prints,
    /// Command that runs to its end before every repetition and is not measured.
    pub before: Vec<Step>,
    /// Files in its folder, with places, by name.
    pub files: BTreeMap<String, String>,
    /// The same load made by `weigh` after every repetition: the words behind `weigh`. Empty where
    /// there is none.
    pub emulation: Vec<String>,
    /// Runs to compare its figures with, besides its emulation.
    pub compares: Vec<ToolCompare>,
    /// Needs: names of targets, or `wire`.
    pub needs: Vec<String>,
    /// Plan at each scale.
    pub scales: BTreeMap<Scale, ToolPlanned>,
}

/// How a program reports its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionAsked {
    /// The arguments that make it report.
    pub arguments: Vec<String>,
    /// The text before the version in what it prints.
    pub after: String,
}

/// A program that is run before a repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The program.
    pub program: String,
    /// Its arguments, with places.
    pub arguments: Vec<String>,
    /// A line of its standard input, given once for each message.
    pub line: Option<String>,
}

/// A figure of a tool beside a figure of another run, or a published one.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCompare {
    /// The tool's figure: `cpu_s_per_message`.
    pub figure: String,
    /// The other side in words.
    pub what: String,
    /// The other figure.
    pub with: Quantity,
    /// Factor from the other figure's unit to the unit of the tool's figure.
    pub factor: f64,
}

/// Plan of a tool at one scale.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolPlanned {
    /// The plan of one case that names the target and the wire; `None` where no target is started.
    pub resolved: Option<Resolved>,
    /// Messages of one repetition.
    pub messages: u64,
    /// Connections that make them.
    pub clients: u32,
    /// Repetitions.
    pub repetitions: u32,
    /// Time after which a repetition is stopped and counted as failed.
    pub within: Nanos,
    /// Usual time of a repetition, for the estimate that is printed beforehand.
    pub lasts: Nanos,
}

impl Tool {
    /// Plan at this scale.
    pub fn at(&self, scale: Scale) -> &ToolPlanned {
        &self.scales[&scale]
    }

    /// True if its packets are counted.
    pub fn is_heard(&self) -> bool {
        let plans = self.scales.values().filter_map(|planned| planned.resolved.as_ref());
        plans.into_iter().any(|resolved| resolved.plan.observe.wire)
    }

    /// The programs that must be on `PATH`, each once.
    pub fn programs(&self) -> Vec<&str> {
        let steps = self.before.iter().map(|step| step.program.as_str());
        let mut programs: Vec<&str> = vec![&self.program];
        for program in steps {
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
        programs
    }
}

/// The JSON Schema (2020-12) of `tools.toml`.
pub(crate) fn json_schema() -> String {
    written::ToolsFile::json_schema()
}

/// `text` with its places filled in: `{url}` by the value of `url`.
pub fn filled(text: &str, values: &BTreeMap<&str, String>) -> String {
    let mut filled = text.to_owned();
    for (name, value) in values {
        filled = filled.replace(&format!("{{{name}}}"), value);
    }
    filled
}

/// The places of arguments, lines and files.
pub const PLACES: [&str; 8] = ["url", "host", "port", "ca", "dir", "messages", "clients", "each"];
