//! The answer, as it stands in `study.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_report::figures::{count, time};

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

impl CarryOutcome {
    /// True if the costs of the lane's family foretold as well as was asked.
    pub fn foretells(&self, lane: &LaneShown) -> bool {
        let own = self.families.iter().find(|family| family.name == lane.family);
        own.is_some_and(|family| family.is_foretelling)
    }

    /// What floors do not show, each once, with the labels of its lanes.
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
    /// What was measured, in words: devices that held a connection each, or the rate of so many.
    pub fn in_words(&self, lane: &LaneShown) -> String {
        let devices = count(self.devices as u64);
        if lane.is_per_connection && self.clients < self.devices {
            let turns = count(self.clients as u64);
            return format!("the rate of {devices} devices, by {turns} that took turns");
        }
        format!("{devices} devices")
    }

    /// Its p99 in words; empty where nobody answers.
    pub fn p99_in_words(&self) -> String {
        match (self.p99_ns, self.p99_has_lag) {
            (None, _) => String::new(),
            (Some(p99), false) => format!("p99 {}", time(p99, false)),
            (Some(p99), true) => {
                format!("p99 at most {} (with the generator's own lag in it)", time(p99, false))
            }
        }
    }
}

/// Ports are no driver of the model.
const TURNS: &str = "A connection each: processor time alone is modelled, and not ports. Behind \
    one address there are 64,511 of them to one port of a server at most, and a closed connection \
    keeps its own for a minute.";

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
    /// nobody; null where no wake-ups were fitted.
    pub awake_s: Option<f64>,
    /// What the answers are multiplied by: the median of measured over foretold of all cells that
    /// were foretold; null where nothing was fitted.
    #[serde(default)]
    pub correction: Option<f64>,
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
    /// As many connections were held, and as high a rate was carried, in different cells; where
    /// each message has a connection of its own, as high a rate, by fewer devices that took turns.
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
    /// Devices that there were: as many as connections where they were held, and where each message
    /// had its own as many as took turns.
    #[serde(default)]
    pub clients: f64,
    /// The worst p99 of its repetitions, nanoseconds; null where nobody answers.
    pub p99_ns: Option<f64>,
    /// True if a generator that was late itself is in it, so that it is an upper bound.
    #[serde(default)]
    pub p99_has_lag: bool,
    /// What it does not show, a sentence each.
    #[serde(default)]
    pub reservations: Vec<String>,
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
    /// What ended it, if something did that is not the goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// Where it comes from.
    pub link: Link,
}

/// What the model says of one share of the cores.
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
    /// What is at its end first: `processor` or `memory`; `nothing measured` where neither is.
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
