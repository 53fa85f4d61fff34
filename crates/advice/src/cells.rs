//! Measured cells as a document, `weigh/cells/1`: what a calibration made, or what was read from
//! runs. A cell has its load and the cost of every repetition; the costs of drivers are fitted to
//! them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cost::{Load, Measured};
use crate::refusal::Wrong;

/// The name of the format.
pub const SCHEMA: &str = "weigh/cells/1";

/// Cells of one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("$id" = "urn:weigh:schema:cells:1"))]
pub struct Cells {
    /// `weigh/cells/1`.
    pub schema: String,
    /// Source of the cells: the calibration or the runs.
    pub source: String,
    /// Time of the first trial, RFC 3339.
    pub made: String,
    /// The version of Weighbridge.
    pub weigh: String,
    /// The machine.
    pub machine: Machine,
    /// True of built-in cells: they never count as this machine's, however alike it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shipped: bool,
    /// The cells.
    pub cells: Vec<Cell>,
}

/// A machine, as far as costs depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// `x86_64`, `aarch64`; empty if it is unknown.
    pub architecture: String,
    /// Model name of the processor.
    pub cpu: String,
    /// Cores.
    pub cores: u32,
    /// Kernel release.
    pub kernel: String,
    /// `kvm`, `none` and so on.
    pub virtualisation: String,
}

/// One measured cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Name of the protocol: `mqtt`.
    pub protocol: String,
    /// Server: `reference`, `mosquitto`.
    pub target: String,
    /// Settings that make its lane: `qos=1`; empty where none were varied, or nothing was sent.
    pub variant: String,
    /// True inside TLS.
    pub is_tls: bool,
    /// True if every message had a connection of its own.
    pub is_per_connection: bool,
    /// Size of a body, bytes; 0 where nothing was sent.
    pub size_bytes: f64,
    /// Connections that stood all the time, subscribers included; 0 where each message had its own.
    pub connections: f64,
    /// How often a message reached the server.
    pub arrivals: f64,
    /// Messages that were lost, late or not sent, in all repetitions.
    pub missed: u64,
    /// The 99th percentile of the time to a confirmation in the worst repetition, seconds; null if
    /// nothing confirms, or the generator was late.
    pub p99_s: Option<f64>,
    /// Repetitions.
    pub repetitions: Vec<Repetition>,
}

/// One repetition, per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repetition {
    /// Messages.
    pub messages: f64,
    /// Connections opened without TLS.
    pub opened: f64,
    /// Connections opened with a full handshake.
    pub full: f64,
    /// Connections opened with a resumed handshake.
    pub resumed: f64,
    /// Deliveries to subscribers.
    pub deliveries: f64,
    /// Cores that the server used.
    pub cores: f64,
    /// Largest memory of the server's process, bytes; null if it was not read.
    pub memory_bytes: Option<f64>,
}

impl Cells {
    /// Reads a document. `file` is named in errors.
    ///
    /// # Errors
    /// Text of another form, and numbers that are not finite or below 0.
    pub fn read(file: &str, text: &str) -> Result<Cells, Wrong> {
        let fix = "make one with: weigh advise --calibrate --save-cells FILE";
        let read: Cells = serde_json::from_str(text)
            .map_err(|error| Wrong::new(file, format!("not a file of cells: {error}"), fix))?;
        if read.schema != SCHEMA {
            let problem = format!("its schema is {:?} and not {SCHEMA:?}", read.schema);
            return Err(Wrong::new(file, problem, fix));
        }
        if let Some(cell) = read.cells.iter().find(|cell| !cell.is_sound()) {
            let problem = format!("the cell {} has a number below 0", cell.name());
            return Err(Wrong::new(file, problem, fix));
        }
        Ok(read)
    }

    /// As one JSON document, with a line's end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The JSON Schema of these documents.
    pub fn schema() -> String {
        let schema = schemars::schema_for!(Cells);
        let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
        text.push('\n');
        text
    }
}

impl Machine {
    /// Words for a sentence.
    pub fn words(&self) -> String {
        let cpu = if self.cpu.is_empty() { "an unknown processor" } else { &self.cpu };
        let inside = match self.virtualisation.as_str() {
            "" | "none" => String::new(),
            own => format!(", {own}"),
        };
        format!("{cpu}, {} cores{inside}", self.cores)
    }
}

impl Cell {
    /// A short name.
    pub fn name(&self) -> String {
        let variant =
            if self.variant.is_empty() { String::new() } else { format!(" {}", self.variant) };
        format!("{}{variant} ({})", self.protocol, self.target)
    }

    /// Mean messages per second.
    pub fn rate_per_s(&self) -> f64 {
        self.mean(|own| own.messages)
    }

    /// Mean over the repetitions.
    pub fn mean(&self, of: impl Fn(&Repetition) -> f64) -> f64 {
        self.repetitions.iter().map(of).sum::<f64>() / self.repetitions.len().max(1) as f64
    }

    /// The load of one repetition. `has_bytes` counts bytes of bodies as a driver.
    pub fn load(&self, own: &Repetition, has_bytes: bool) -> Load {
        let bytes = if has_bytes { own.messages * self.size_bytes } else { 0.0 };
        Load {
            variant: self.variant.clone(),
            connections: self.connections,
            messages: own.messages,
            arrivals: self.arrivals,
            sealed: if self.is_tls { own.messages } else { 0.0 },
            bytes,
            sealed_bytes: if self.is_tls { bytes } else { 0.0 },
            deliveries: own.deliveries,
            opened: own.opened,
            full: own.full,
            resumed: own.resumed,
        }
    }

    /// The repetitions as evidence of a cost.
    pub fn measured(&self, has_bytes: bool) -> Vec<Measured> {
        let of = |own: &Repetition| Measured { load: self.load(own, has_bytes), cores: own.cores };
        self.repetitions.iter().map(of).collect()
    }

    fn is_sound(&self) -> bool {
        let is_amount = |value: f64| value.is_finite() && value >= 0.0;
        let is_each = |own: &Repetition| {
            let all = [own.messages, own.opened, own.full, own.resumed, own.deliveries, own.cores];
            all.into_iter().chain(own.memory_bytes).all(is_amount)
        };
        [self.size_bytes, self.connections, self.arrivals].into_iter().all(is_amount)
            && self.p99_s.is_none_or(is_amount)
            && !self.repetitions.is_empty()
            && self.repetitions.iter().all(is_each)
    }
}

/// Cells by the name of their family.
pub fn by_family<'c>(
    documents: impl IntoIterator<Item = &'c Cells>,
) -> BTreeMap<String, Vec<(&'c Cells, &'c Cell)>> {
    let mut found: BTreeMap<String, Vec<(&Cells, &Cell)>> = BTreeMap::new();
    for document in documents {
        for cell in &document.cells {
            let name = format!("{}@{}", cell.protocol, cell.target);
            found.entry(name).or_default().push((document, cell));
        }
    }
    found
}
