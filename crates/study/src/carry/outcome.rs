//! The answer, as it stands in `study.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_report::figures::{count, time};

use crate::outcome::Link;

/// Number of units that a server carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CarryOutcome {
    /// The id of the question.
    pub id: String,
    /// The question.
    pub question: String,
    /// Name of the unit: `farm`.
    pub unit: String,
    /// Devices of one unit.
    pub sensors: u32,
    /// Seconds from one message of a device to its next.
    pub interval_s: f64,
    /// Cores of the server.
    pub cores: f64,
    /// Memory of the server, bytes.
    pub memory_bytes: f64,
    /// Kernel memory of an open connection, bytes; added to that of the process.
    pub kernel_bytes_per_connection: f64,
    /// Source of that figure.
    pub kernel_bytes_source: String,
    /// The longest response at the 99th percentile, nanoseconds.
    pub p99_limit_ns: f64,
    /// The answer, line by line.
    pub lanes: Vec<LaneShown>,
    /// Costs by family.
    pub families: Vec<FamilyShown>,
    /// From how many messages a connection on one way costs less than the other.
    pub break_even: Vec<BreakEvenShown>,
    /// The costs beside figures of others.
    pub anchors: Vec<AnchorShown>,
    /// Runs and cells that say nothing, and why.
    pub missing: Vec<String>,
}

impl CarryOutcome {
    /// True if the costs of the lane's family predict as well as required.
    pub fn predicts(&self, lane: &LaneShown) -> bool {
        let own = self.families.iter().find(|family| family.name == lane.family);
        own.is_some_and(|family| family.is_predictive)
    }

    /// Limits of the measured floors, each once, with the labels of its lanes.
    pub fn reservations(&self) -> Vec<(&str, Vec<&str>)> {
        let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
        for lane in &self.lanes {
            for why in lane.floor.iter().flat_map(|floor| &floor.reservations) {
                match found.iter_mut().find(|(known, _)| known == why) {
                    Some((_, lanes)) => lanes.push(&lane.label),
                    None => found.push((why, vec![&lane.label])),
                }
            }
        }
        found
    }

    /// The shares of the cores that are answered, as the longest line has them.
    pub fn headrooms(&self) -> Vec<f64> {
        let longest = self.lanes.iter().max_by_key(|lane| lane.carried.len());
        longest.map_or(Vec::new(), |lane| lane.carried.iter().map(|own| own.headroom).collect())
    }

    /// The cores in words: `1 core`, `1.5 cores`.
    pub fn cores_in_words(&self) -> String {
        format!("{} core{}", self.cores, if self.cores == 1.0 { "" } else { "s" })
    }

    /// What is to be known of lines where each message has a connection of its own; nothing where
    /// there are none.
    pub fn of_turns(&self) -> Option<&'static str> {
        self.lanes.iter().any(|lane| lane.is_per_connection).then_some(TURNS)
    }
}

impl Floor {
    /// What was measured, in words: devices with a connection each, or the rate of that many
    /// devices.
    pub fn in_words(&self, lane: &LaneShown) -> String {
        let devices = count(self.devices as u64);
        if lane.is_per_connection && self.clients < self.devices {
            let turns = count(self.clients as u64);
            return format!("the rate of {devices} devices, by {turns} that took turns");
        }
        format!("{devices} devices")
    }

    /// Its p99 in words; empty if there are no answers.
    pub fn p99_in_words(&self) -> String {
        match (self.p99_ns, self.p99_has_lag) {
            (None, _) => String::new(),
            (Some(p99), false) => format!("p99 {}", time(p99, false)),
            (Some(p99), true) => {
                format!("p99 at most {} (including the generator's own lag)", time(p99, false))
            }
        }
    }
}

/// Ports are not a driver of the model.
const TURNS: &str = "A connection for each message: the model covers processor time but not ports. \
Behind one address there are at most 64,511 of them to one port of a server, and a closed \
connection keeps its port for a minute.";

/// The costs of a family, and how well they predict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FamilyShown {
    /// Its name.
    pub name: String,
    /// Its label.
    pub label: String,
    /// Costs by driver; empty if nothing could be fitted.
    pub terms: Vec<Term>,
    /// Time for which the server stays awake once it was woken, seconds: later arrivals in it do
    /// not wake it again; null where no wake-ups were fitted.
    pub awake_s: Option<f64>,
    /// Factor of the answers: the median of measured over predicted of all cells that
    /// were predicted; null if nothing was fitted.
    #[serde(default)]
    pub correction: Option<f64>,
    /// Condition number of the scaled drivers; from about 30 on terms trade against each other.
    pub condition: Option<f64>,
    /// Cells that were fitted.
    pub cells: usize,
    /// Repetitions of them: the rows of the fit.
    pub runs: usize,
    /// Residual of each fitted cell: measured less fitted, as a share of measured.
    pub residuals: Vec<HeldOutShown>,
    /// Every fitted cell, predicted by a fit to the other two thirds.
    pub held_out: Vec<HeldOutShown>,
    /// Root mean square of their relative errors; null if none could be predicted.
    pub held_out_error: Option<f64>,
    /// Cells of other runs, predicted.
    pub checked: Vec<HeldOutShown>,
    /// Root mean square of their relative errors; null where there are none.
    pub checked_error: Option<f64>,
    /// The error up to which the prediction counts as good.
    pub error_max: f64,
    /// True if both errors are known and stay below that.
    #[serde(rename = "is_foretelling")]
    pub is_predictive: bool,
    /// Why there is no fit; absent where there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Memory of a connection; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryShown>,
}

/// Cost of one driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Term {
    /// Name of the driver.
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

/// A predicted cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldOutShown {
    /// Name of the cell.
    pub link: Link,
    /// Percent of a core, measured.
    pub measured_percent: f64,
    /// Percent of a core, predicted; null if the other cells cannot predict it.
    #[serde(rename = "foretold_percent")]
    pub predicted_percent: Option<f64>,
}

/// Distance of an estimate from the measured range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// One cell held as many devices at as high a rate.
    Measured,
    /// As many connections were held, and as high a rate was carried, in different cells; where
    /// each message has a connection of its own, as high a rate, by fewer devices that took turns.
    Composed,
    /// More than was measured: the model alone.
    Beyond,
}

/// A line of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaneShown {
    /// Its label.
    pub label: String,
    /// Its family's name.
    pub family: String,
    /// True inside TLS.
    pub is_tls: bool,
    /// True where each message has a connection of its own.
    pub is_per_connection: bool,
    /// The most that one cell carried while it met the goals; null where none did.
    pub floor: Option<Floor>,
    /// Result of its search, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchShown>,
    /// Estimates of the model, for every share of the cores.
    pub carried: Vec<Carried>,
    /// Most messages per second at which the goals were met.
    pub rate_measured_max: f64,
    /// Most connections that were held.
    pub connections_measured_max: f64,
    /// Measured result at a number of devices, if a cell can stand for it.
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
    /// Devices that there were: as many as connections where they were held, and where each message
    /// had its own as many as took turns.
    #[serde(default)]
    pub clients: f64,
    /// Worst p99 of its repetitions, nanoseconds; null if there are no answers.
    pub p99_ns: Option<f64>,
    /// True if a generator that was late itself is in it, so that it is an upper bound.
    #[serde(default)]
    pub p99_has_lag: bool,
    /// Its limits, a sentence each.
    #[serde(default)]
    pub reservations: Vec<String>,
    /// Its sources.
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
    /// What ended it, other than a goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// Its sources.
    pub link: Link,
}

/// Estimate of the model for one share of the cores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Carried {
    /// The share of the cores that may be used.
    pub headroom: f64,
    /// Devices; null where nothing bounds them.
    pub devices: Option<f64>,
    /// Lower end of the 95 % interval; null where nothing bounds it.
    pub devices_low: Option<f64>,
    /// Upper end; null where nothing bounds it.
    pub devices_high: Option<f64>,
    /// Units, rounded down; null where nothing bounds them.
    pub units: Option<f64>,
    /// Lower end, rounded down; null where nothing bounds it.
    pub units_low: Option<f64>,
    /// Upper end, rounded down; null where nothing bounds it.
    pub units_high: Option<f64>,
    /// The resource exhausted first: `processor` or `memory`; `nothing measured` if neither is
    /// known.
    pub binds: String,
    /// Number of devices that the other one would allow; null where it does not bind at all.
    pub otherwise_devices: Option<f64>,
    /// Distance of that from the measured range.
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
    /// Distance from the measured range.
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
    /// The comparison in words.
    pub sentence: String,
}

/// A cost beside a figure of others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnchorShown {
    /// The lane.
    pub lane: String,
    /// Microseconds of a message, of others.
    pub theirs_us: f64,
    /// Source of that.
    pub source: String,
    /// Microseconds of a message here, at the same rate on each core.
    pub ours_us: Option<f64>,
    /// Their figure over the one measured here.
    pub factor: Option<f64>,
    /// The comparison in words, with the difference where they are more than a factor of 2 apart.
    pub sentence: String,
}
