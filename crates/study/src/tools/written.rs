//! `tools.toml` as parsed, before it is checked against the other files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Spanned, Table};

use crate::written::QuantityFile;

/// How often a program is started in a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Starts {
    /// Once for each message, one after another.
    #[serde(rename = "message")]
    EachMessage,
    /// Once for all messages.
    #[serde(rename = "once")]
    Once,
}

/// What a program prints of its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Prints {
    /// Nothing that is read.
    Nothing,
    /// The JSON of autocannon (`--json`).
    Autocannon,
    /// The report of mqtt-stresser.
    MqttStresser,
    /// The summary of JMeter without its window (`-n`).
    Jmeter,
}

/// Real client programs of a study, run beside its plans.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "The tools of a study of Weighbridge")]
#[schemars(extend("$id" = "urn:weigh:schema:tools:1"))]
pub(crate) struct ToolsFile {
    /// The programs.
    #[serde(default)]
    #[schemars(with = "Vec<ToolFile>")]
    pub tool: Vec<Spanned<ToolFile>>,
}

/// A program, its arguments and its target.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolFile {
    /// Its name: the run is tools/NAME.
    #[schemars(with = "String")]
    pub name: Spanned<String>,
    /// What it does, in one sentence.
    pub about: String,
    /// The experiments it belongs to, by id.
    #[schemars(with = "Vec<String>")]
    pub experiments: Vec<Spanned<String>>,
    /// The program, searched on PATH.
    pub program: String,
    /// How it reports its version.
    pub version: Option<VersionFile>,
    /// What to type to get it.
    pub install: String,
    /// Its arguments. Places are filled in: {url} {host} {port} {ca} {dir} {messages} {clients}
    /// {each}, where {each} is the number of messages of one client.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub arguments: Vec<Spanned<String>>,
    /// Environment of the program and of the steps before it, with places.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// A line of its standard input, given once for each message.
    #[schemars(with = "Option<String>")]
    pub line: Option<Spanned<String>>,
    /// message: it is started once for each message; once (the default): once for all.
    pub starts: Option<Starts>,
    /// What it prints: nothing (the default), autocannon, mqtt-stresser or jmeter.
    pub prints: Option<Prints>,
    /// Messages of one repetition.
    pub messages: u64,
    /// Connections that make them; 1 if left out.
    pub clients: Option<u32>,
    /// Repetitions; at least 5 for a figure that may decide a claim.
    pub repetitions: u32,
    /// How long a repetition may take before it is ended: "60s" if left out, at most 10 minutes.
    #[schemars(with = "Option<String>")]
    pub within: Option<Spanned<String>>,
    /// How long a repetition usually takes: "1s" if left out.
    #[schemars(with = "Option<String>")]
    pub lasts: Option<Spanned<String>>,
    /// Programs that are run to their end before every repetition and not measured.
    #[serde(default)]
    pub before: Vec<StepFile>,
    /// Files in its folder {dir}, by name, with places.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The same load made by weigh after every repetition: the words behind weigh.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub emulation: Vec<Spanned<String>>,
    /// What its figures are compared with.
    #[serde(default)]
    #[schemars(with = "Vec<CompareFile>")]
    pub compare: Vec<Spanned<CompareFile>>,
    /// Its target in the language of plans: protocol, target, path, observe.wire and the keys of
    /// the protocol. Left out where none is started.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    #[expect(dead_code, reason = "read again with the places of its keys")]
    pub plan: Option<Table>,
    /// What is less at --scale quick.
    pub quick: Option<ScaleFile>,
    /// What is less in tests.
    pub mini: Option<ScaleFile>,
}

/// How a program reports its version.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionFile {
    /// The arguments that make it report.
    pub arguments: Vec<String>,
    /// The text before the version in what it prints.
    pub after: String,
}

/// A program that is run before a repetition.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepFile {
    /// The program, searched on PATH.
    pub program: String,
    /// Its arguments, with places.
    #[schemars(with = "Vec<String>")]
    pub arguments: Vec<Spanned<String>>,
    /// A line of its standard input, given once for each message.
    #[schemars(with = "Option<String>")]
    pub line: Option<Spanned<String>>,
}

/// A figure of a tool beside another one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompareFile {
    /// The tool's figure.
    pub figure: String,
    /// What it is compared with, in words.
    pub what: String,
    /// The other figure, as below [claim.let].
    pub with: QuantityFile,
    /// Factor from its unit to the unit of the tool's figure; 1 if left out.
    #[serde(default = "one")]
    pub factor: f64,
}

/// What is less at a scale.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScaleFile {
    /// Messages of one repetition.
    pub messages: Option<u64>,
    /// Connections that make them.
    pub clients: Option<u32>,
    /// Repetitions.
    pub repetitions: Option<u32>,
    /// How long a repetition usually takes.
    #[schemars(with = "Option<String>")]
    pub lasts: Option<Spanned<String>>,
    /// Keys of the plan.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    #[expect(dead_code, reason = "read again with the places of its keys")]
    pub plan: Option<Table>,
}

impl ToolsFile {
    /// The JSON Schema (2020-12) of tools.toml.
    pub(crate) fn json_schema() -> String {
        let schema = schemars::schema_for!(ToolsFile);
        serde_json::to_string_pretty(&schema).expect("a schema is plain JSON") + "\n"
    }
}

fn one() -> f64 {
    1.0
}
