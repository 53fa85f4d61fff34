//! The answer, as it stands in `study.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outcome::Link;

/// How many units a server carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CarryOutcome {
    /// The id of the question.
    pub id: String,
    /// The question.
    pub question: String,
    /// What is counted: `farm`.
    pub unit: String,
    /// Devices of one unit.
    pub sensors: u32,
    /// Seconds from one message of a device to its next.
    pub interval_s: f64,
    /// Cores of the server.
    pub cores: f64,
    /// Memory of the server, bytes.
    pub memory_bytes: f64,
    /// What the kernel keeps for an open connection, bytes; added to what the process showed.
    pub kernel_bytes_per_connection: f64,
    /// Where that is from.
    pub kernel_bytes_source: String,
    /// The longest response at the 99th percentile, nanoseconds.
    pub p99_limit_ns: f64,
    /// The answer, line by line.
    pub lanes: Vec<LaneShown>,
    /// What costs what.
    pub families: Vec<FamilyShown>,
    /// From how many messages a connection on one way costs less than the other.
    pub break_even: Vec<BreakEvenShown>,
    /// The costs beside figures of others.
    pub anchors: Vec<AnchorShown>,
    /// Runs and cells that say nothing, and why.
    pub missing: Vec<String>,
}

/// The costs of a family, and how well they foretell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FamilyShown {
    /// Its name.
    pub name: String,
    /// How it is called.
    pub label: String,
    /// What costs what; empty where nothing could be fitted.
    pub terms: Vec<Term>,
    /// How long the server stays awake once it was woken, seconds: what arrives meanwhile wakes
    /// nobody.
    pub awake_s: f64,
    /// Condition number of the scaled drivers; from about 30 on terms trade against each other.
    pub condition: Option<f64>,
    /// Cells that were fitted.
    pub cells: usize,
    /// Repetitions of them: the rows of the fit.
    pub runs: usize,
    /// What each fitted cell left: measured less fitted, as a share of measured.
    pub residuals: Vec<HeldOutShown>,
    /// Every fitted cell, foretold by a fit to the other two thirds.
    pub held_out: Vec<HeldOutShown>,
    /// Root mean square of their relative errors; null where none could be foretold.
    pub held_out_error: Option<f64>,
    /// Cells of other runs, foretold.
    pub checked: Vec<HeldOutShown>,
    /// Root mean square of their relative errors; null where there are none.
    pub checked_error: Option<f64>,
    /// The error up to which this counts as foretold.
    pub error_max: f64,
    /// True if both errors are known and stay below that.
    pub is_foretelling: bool,
    /// Why there is no fit; absent where there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// What memory a connection takes; absent where it could not be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryShown>,
}

/// What one thing costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Term {
    /// What it is.
    pub name: String,
    /// Processor time, microseconds; of the process itself and of a connection per second.
    pub cpu_us: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Memory of the server's process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryShown {
    /// Without connections, bytes.
    pub base_bytes: f64,
    /// A connection, bytes.
    pub connection_bytes: f64,
    /// A connection inside TLS, bytes; null where none was measured.
    pub tls_connection_bytes: Option<f64>,
}

/// A cell, foretold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldOutShown {
    /// Which.
    pub link: Link,
    /// Percent of a core, measured.
    pub measured_percent: f64,
    /// Percent of a core, foretold; null where the other cells cannot.
    pub foretold_percent: Option<f64>,
}

/// How far something lies from what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// One cell held as many devices at as high a rate.
    Measured,
    /// As many connections were held, and as high a rate was carried, in different cells.
    Composed,
    /// More than was measured: the model alone.
    Beyond,
}

/// A line of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaneShown {
    /// How it is called.
    pub label: String,
    /// Its family's name.
    pub family: String,
    /// True inside TLS.
    pub is_tls: bool,
    /// True where each message has a connection of its own.
    pub is_per_connection: bool,
    /// The most that one cell carried while it met the goals; null where none did.
    pub floor: Option<Floor>,
    /// What a search found, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchShown>,
    /// What the model says, for every share of the cores.
    pub carried: Vec<Carried>,
    /// Most messages per second at which the goals were met.
    pub rate_measured_max: f64,
    /// Most connections that were held.
    pub connections_measured_max: f64,
    /// What was measured at so many devices, where a cell can stand for that.
    pub points: Vec<LanePoint>,
    /// The model's line.
    pub line: Vec<LanePoint>,
    /// Why there is no answer; absent where there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// The most that was carried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Floor {
    /// Devices: as many as connections were held, and as the rate is that of.
    pub devices: f64,
    /// Units.
    pub units: f64,
    /// Messages per second.
    pub rate_per_s: f64,
    /// Connections held; 0 where each message had its own.
    pub connections: f64,
    /// The worst p99 of its repetitions, nanoseconds; null where nobody answers.
    pub p99_ns: Option<f64>,
    /// Where it comes from.
    pub link: Link,
}

/// The bounds of a search for the highest rate, as devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchShown {
    /// Devices whose rate met the goal; null where none did.
    pub low_devices: Option<f64>,
    /// Devices whose rate missed it; null where none did.
    pub high_devices: Option<f64>,
    /// The search's own sentence.
    pub sentence: String,
    /// Where it comes from.
    pub link: Link,
}

/// What the model says of one share of the cores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Carried {
    /// The share of the cores that may be used.
    pub headroom: f64,
    /// Devices.
    pub devices: f64,
    /// Lower end of the 95 % interval.
    pub devices_low: f64,
    /// Upper end.
    pub devices_high: f64,
    /// Units, rounded down.
    pub units: f64,
    /// Lower end, rounded down.
    pub units_low: f64,
    /// Upper end, rounded down.
    pub units_high: f64,
    /// What is at its end first: `processor` or `memory`.
    pub binds: String,
    /// What the other one would allow, devices; null where it does not bind at all.
    pub otherwise_devices: Option<f64>,
    /// How far that lies from what was measured.
    pub reach: Reach,
}

/// A point of a lane's picture.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LanePoint {
    /// Devices.
    pub devices: f64,
    /// Percent of a core.
    pub percent: f64,
    /// Lower end of the 95 % interval; of a measured point the smallest repetition.
    pub low: f64,
    /// Upper end; of a measured point the largest repetition.
    pub high: f64,
    /// How far it lies from what was measured.
    pub reach: Reach,
}

/// From how many messages a connection on one way costs less.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakEvenShown {
    /// The one way.
    pub a: String,
    /// The other.
    pub b: String,
    /// Messages on one connection at which both cost the same; null where one always costs less.
    pub messages: Option<f64>,
    /// Lower end of the 95 % interval; null where there is none.
    pub low: Option<f64>,
    /// Upper end; null where nothing bounds it.
    pub high: Option<f64>,
    /// Share of the resamples in which `a` costs less with one message on a connection.
    pub a_cheaper_at_one: f64,
    /// Share of the resamples in which `a` costs less with endlessly many.
    pub a_cheaper_at_many: f64,
    /// The same in words.
    pub sentence: String,
}

/// A cost beside a figure of others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnchorShown {
    /// The lane.
    pub lane: String,
    /// Microseconds of a message, of others.
    pub theirs_us: f64,
    /// Where that is from.
    pub source: String,
    /// Microseconds of a message here, at the same rate on each core.
    pub ours_us: Option<f64>,
    /// Theirs over ours.
    pub factor: Option<f64>,
    /// The same in words, and what differs where they are more than a factor of 2 apart.
    pub sentence: String,
}
