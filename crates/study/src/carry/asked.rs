//! What `[[carry]]` of a study asks.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};
use weigh_model::units::{Bytes, Nanos};

/// The question of a study about capacity.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Its id.
    pub id: String,
    /// The question.
    pub question: String,
    /// Name of the unit, in the singular: `farm`.
    pub unit: String,
    /// Devices of one unit.
    pub sensors: u32,
    /// Every device says something once in this time.
    pub interval: Nanos,
    /// The server.
    pub server: Server,
    /// The longest response at the 99th percentile, where a response can be seen.
    pub p99: Nanos,
    /// Runs whose cells the costs are fitted to: `right/farms-cost`.
    pub fit: Vec<String>,
    /// Runs whose cells were not fitted: the model must predict them, and they show what was
    /// carried.
    #[serde(default)]
    pub check: Vec<String>,
    /// Searches for the highest rate of all devices together that meets the goals.
    #[serde(default)]
    pub capacity: Vec<String>,
    /// Root mean square error, as a share, up to which the held-out cells count as predicted.
    pub held_out_error_max: f64,
    /// Cells that share their costs.
    pub family: Vec<FamilyAsked>,
    /// Lines of the answer.
    pub lane: Vec<LaneAsked>,
    /// Pairs of which is asked from how many messages a connection on one costs less.
    #[serde(default)]
    pub break_even: Vec<Pair>,
    /// Figures of others to compare the costs with.
    #[serde(default)]
    pub anchor: Vec<Anchor>,
}

/// Resources of the server.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Cores.
    pub cores: f64,
    /// Memory.
    pub memory: Bytes,
    /// Shares of the cores that may be used, each answered.
    pub headroom: Vec<f64>,
    /// Kernel memory of an open connection, bytes, which is not part of a process.
    pub kernel_bytes_per_connection: f64,
    /// Source of that figure.
    pub kernel_bytes_source: String,
}

/// Cells that share their costs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamilyAsked {
    /// Its name, for lanes.
    pub name: String,
    /// Its label in the answer.
    pub label: String,
    /// Its protocol, as in the points of its cells.
    pub protocol: String,
    /// The key whose values have a cost of a message of their own: `mqtt.qos`.
    #[serde(default)]
    pub split: Option<String>,
    /// Number of times that a message of a value of `split` reaches the server, twice with QoS 2;
    /// 1 for those left out.
    #[serde(default)]
    pub arrivals: BTreeMap<String, f64>,
}

/// One line of the answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneAsked {
    /// Its label.
    pub label: String,
    /// Its family's name.
    pub family: String,
    /// The value of the family's `split`.
    #[serde(default)]
    pub variant: String,
    /// True inside TLS.
    #[serde(default)]
    pub tls: bool,
    /// True where each message has a connection of its own.
    #[serde(default)]
    pub per_connection: bool,
    /// True where such a connection resumes a TLS session.
    #[serde(default)]
    pub resumed: bool,
}

/// Two ways of the same guarantee, by labels of lanes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The one.
    pub a: String,
    /// The other.
    pub b: String,
}

/// A figure of others.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anchor {
    /// The lane to compare with, by its label.
    pub lane: String,
    /// Processor time of a message, microseconds.
    pub us_per_message: f64,
    /// Rate of that figure, messages a second on each core.
    pub per_s_per_core: f64,
    /// Its source.
    pub source: String,
    /// Difference between that and this, shown if they are more than a factor of 2 apart.
    pub differs: String,
}

/// Error in `[[carry]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedWrong {
    /// The error.
    pub text: String,
    /// What to type instead.
    pub fix: String,
}

impl Asked {
    /// The runs that it rests on, by name.
    pub fn runs(&self) -> impl Iterator<Item = &String> {
        self.fit.iter().chain(&self.check).chain(&self.capacity)
    }

    pub(super) fn read(table: &Table, is_plan: &dyn Fn(&str) -> bool) -> Result<Asked, AskedWrong> {
        let asked: Asked = Value::Table(table.clone()).try_into().map_err(|error| AskedWrong {
            text: format!("[[carry]]: {}", error.to_string().trim()),
            fix: "see docs/guide/how-many-devices.md".to_owned(),
        })?;
        for name in asked.runs() {
            if !is_plan(name) {
                return wrong(format!("unknown plan {name:?}"), "add its table to the plan file");
            }
        }
        asked.check_numbers()?;
        for lane in &asked.lane {
            let family = asked.family.iter().find(|family| family.name == lane.family);
            let Some(family) = family else {
                let text = format!("lane {:?}: unknown family {:?}", lane.label, lane.family);
                return wrong(text, "add [[carry.family]] of this name");
            };
            if family.split.is_some() == lane.variant.is_empty() {
                let text = format!("lane {:?}: variant and split need each other", lane.label);
                return wrong(text, "give the lane the value of its family's split, or neither");
            }
            if lane.resumed && !(lane.tls && lane.per_connection) {
                let text = format!("lane {:?} resumes TLS sessions, but opens none", lane.label);
                return wrong(text, "make tls and per_connection true, or remove resumed");
            }
        }
        let pairs = asked.break_even.iter().flat_map(|pair| [&pair.a, &pair.b]);
        for label in pairs.chain(asked.anchor.iter().map(|anchor| &anchor.lane)) {
            if !asked.lane.iter().any(|lane| lane.label == *label) {
                return wrong(format!("unknown lane {label:?}"), "name one of [[carry.lane]]");
            }
        }
        Ok(asked)
    }

    fn check_numbers(&self) -> Result<(), AskedWrong> {
        let is_share = |share: &f64| *share > 0.0 && *share <= 1.0;
        let server = &self.server;
        let checks = [
            (self.sensors > 0, "sensors: give at least 1"),
            (self.interval.0 > 0, "interval: give some time"),
            (server.cores > 0.0, "server.cores: give more than 0"),
            (server.memory.0 > 0, "server.memory: give some"),
            (server.kernel_bytes_per_connection >= 0.0, "server.kernel_bytes_per_connection < 0"),
            (!server.headroom.is_empty(), "server.headroom: name at least one share"),
            (server.headroom.iter().all(is_share), "server.headroom: give shares from 0 to 1"),
            (self.held_out_error_max > 0.0, "held_out_error_max: give more than 0"),
            (!self.fit.is_empty(), "fit: name at least one run"),
        ];
        match checks.into_iter().find(|(holds, _)| !holds) {
            Some((_, text)) => wrong(text.to_owned(), "see docs/guide/how-many-devices.md"),
            None => Ok(()),
        }
    }
}

fn wrong<T>(text: String, fix: &str) -> Result<T, AskedWrong> {
    Err(AskedWrong { text, fix: fix.to_owned() })
}
