//! The result of a run as one document, `weigh/summary/1`: what `summary.json` holds and `--json`
//! prints. It is made from the run's events alone, so a replayed journal gives the same.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_model::doubt::{DoubtRecord, Severity};
use weigh_model::energy::MeterChosen;
use weigh_model::event::{Event, HostFacts, RunStarted, TrialFinished};
use weigh_model::ledger::Ledger;
use weigh_model::plan::Plan;
use weigh_model::protocol::Guarantee;
use weigh_model::trial::Point;

use crate::cells;
use crate::comparisons;
use crate::course::Courses;
use crate::decisions;
use crate::energy::{self, Energies};
use crate::interference;
use crate::judging::Answer;
use crate::ladder::{self, Ladder};
use crate::lateness;
use crate::limits::{self, Limit};
use crate::modelled::{self, Modelled};
use crate::shape::{DoubtShape, GuaranteeShape, HostShape, LedgerShape, MeterShape};
use crate::thresholds;

pub use crate::comparisons::{Comparison, Difference, Multiplicity, Ratio, Shift, Verdict};
pub use crate::energy::BudgetLine;
pub use crate::interference::Interference;
pub use crate::metric::{Bounds, Median, Metric, Normality, possible};
pub use crate::thresholds::{Judged, Threshold};

/// The name and version of the document's format.
pub const SUMMARY_SCHEMA: &str = "weigh/summary/1";

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// [`SUMMARY_SCHEMA`].
    pub schema: String,
    /// What was run, when, and where.
    pub run: Run,
    /// One entry per point of the matrix that has a result, in the order of the plan.
    pub cells: Vec<Cell>,
    /// Pairs of cells that differ in one factor only, metric by metric.
    pub comparisons: Vec<Comparison>,
    /// What so many comparisons together mean for each of them.
    #[serde(default)]
    pub multiplicity: Multiplicity,
    /// What the plan says must hold, and whether it does; empty where it says nothing.
    #[serde(default)]
    pub thresholds: Vec<Threshold>,
    /// What a search for a limit has found, one entry per lane; absent where none was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// The curves of loads that were raised in steps and held; absent where none was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ladders: Vec<Ladder>,
    /// What lay beneath the cells that had a second workload beneath them; absent where none had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interference: Vec<Interference>,
    /// What energy was modelled for, and what that rests on; absent where nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled: Option<Modelled>,
    /// Sentences of a published study and whether they held; empty outside studies.
    pub claims: Vec<serde_json::Value>,
    /// Trials that could not be done.
    pub failures: Vec<Failure>,
}

/// What was run, when, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The run's id: its folder's name.
    pub id: String,
    /// When it started, RFC 3339.
    pub started: String,
    /// The version of Weighbridge.
    pub version: String,
    /// `done`, `interrupted`, `failed`, or `unfinished` where the journal has no last line.
    pub outcome: String,
    /// The machine.
    #[schemars(with = "HostShape")]
    pub host: HostFacts,
    /// The plan as resolved.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub plan: Plan,
    /// The meter of energy, or why there was none; absent where nobody looked for one.
    #[schemars(with = "Option<MeterShape>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<MeterChosen>,
}

/// All repetitions of one point of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// A short name, unique in the run; comparisons refer to it.
    pub name: String,
    /// Plan keys with dots, and their values.
    pub point: Point,
    /// What the protocol promises here.
    #[schemars(with = "GuaranteeShape")]
    pub guarantee: Guarantee,
    /// What the target is, as it told itself.
    pub target: String,
    /// How many trials the cell rests on.
    pub repetitions: u32,
    /// False when a doubt says that the result must not be used.
    pub valid: bool,
    /// By name (`response_time_ns.p99`); what was not measured is absent.
    pub metrics: BTreeMap<String, Metric>,
    /// By recorded time (`response_time_ns`): how many values stand behind its quantiles in the
    /// repetition with the fewest, lost messages included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub samples: BTreeMap<String, u64>,
    /// Where every message went: the sum over the repetitions.
    #[schemars(with = "LedgerShape")]
    pub ledger: Ledger,
    /// What makes the result doubtful, each once.
    #[schemars(with = "Vec<DoubtShape>")]
    pub doubts: Vec<DoubtRecord>,
    /// What the server granted or announced, the least over all repetitions.
    pub granted: BTreeMap<String, u64>,
    /// How many repetitions took which course within the measured window: `flat`, `warm-up`,
    /// `slow-down`, `not steady` or `too short to tell`; empty where no course was recorded or
    /// the load is not meant to be steady.
    #[serde(default)]
    pub steady_state: BTreeMap<String, u32>,
    /// What lay between the parties, where they were hosts of their own: the path, what carried its
    /// packets, and the state of the wire that was listened on. Of the first repetition.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scene: BTreeMap<String, String>,
}

impl Cell {
    /// The doubt for which `metric` of this cell must not be used, if there is one: one that spoils
    /// everything, or the generator's lateness where that is more than half of the figure.
    pub fn spoilt_by(&self, metric: &str) -> Option<&DoubtRecord> {
        self.doubts.iter().find(|doubt| self.is_spoilt(doubt, metric))
    }

    /// The figure `metric`, unless the generator's lateness is more than half of it.
    pub fn shown(&self, metric: &str) -> Option<&Metric> {
        self.metrics.get(metric).filter(|_| !lateness::is_withheld(self, metric))
    }

    /// Whether a figure of this cell is not to be taken because of this doubt of it.
    pub fn is_spoilt(&self, doubt: &DoubtRecord, metric: &str) -> bool {
        doubt.severity == Severity::Invalid || lateness::takes_away(doubt, self, metric)
    }
}

/// A trial that could not be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Its id.
    pub trial: String,
    /// Its point of the matrix.
    pub point: Point,
    /// What went wrong.
    pub error: String,
}

/// A stream of events without its first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no run_started among the events: this is not the journal of a run")]
pub struct NotARun;

impl Summary {
    /// Sums up a run, finished or not. A trial that stands in the events twice (a resumed run)
    /// counts once, and a failure that was mended later not at all.
    pub fn from_events(events: &[Event]) -> Result<Summary, NotARun> {
        let started = events.iter().find_map(|event| match event {
            Event::RunStarted(started) => Some(&**started),
            _ => None,
        });
        let started = started.ok_or(NotARun)?;
        let trials = finished_trials(events);
        let failures = failures(events, &trials);
        let (courses, energies) = (Courses::of(events), Energies::of(events));
        let mut cells = cells::build(&trials, &failures, &started.plan, &courses, &energies);
        decisions::tell(&mut cells, events, started);
        let modelled = modelled::add(&mut cells, events, (started, &trials));
        let limits = limits::from_events(events);
        let ladders = ladder::ladders(&cells, &started.plan.load, events);
        // The loads of a search are compared by the search, and by nobody else.
        let is_search = !limits.is_empty();
        let mut comparisons = match is_search {
            true => Vec::new(),
            false => comparisons::build(&cells, &started.plan, &trials),
        };
        let multiplicity = comparisons::together(&mut comparisons);
        let interference = interference::from_events(&cells, events, &trials);
        let thresholds = match is_search {
            true => thresholds::judge_search(&started.plan, (&cells, &limits), &trials),
            false => thresholds::judge(&started.plan, &cells, &failures),
        };
        Ok(Summary {
            schema: SUMMARY_SCHEMA.to_owned(),
            run: run(started, events),
            cells,
            comparisons,
            multiplicity,
            thresholds,
            limits,
            ladders,
            interference,
            modelled,
            claims: Vec::new(),
            failures,
        })
    }

    /// Whether all thresholds of the plan hold; true without any.
    pub fn thresholds_hold(&self) -> bool {
        self.answer() == Answer::Holds
    }

    /// What all thresholds of the plan come to: one that failed counts more than one that could
    /// not be decided.
    pub fn answer(&self) -> Answer {
        let answers = self.thresholds.iter().map(Threshold::answer);
        answers.min().unwrap_or(Answer::Holds)
    }

    /// The document as it is written and printed, with a line break at its end.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.expect("a summary has only text keys, and its numbers are finite") + "\n"
    }

    /// The JSON Schema (2020-12) of the document, as checked in at `schemas/`.
    pub fn json_schema() -> String {
        let schema = schemars::schema_for!(Summary);
        serde_json::to_string_pretty(&schema).expect("a schema is plain JSON") + "\n"
    }
}

/// The unit of a metric, from the end of its name; statistics after a dot (`.p99`) do not count.
pub fn unit_of(name: &str) -> &'static str {
    if name.starts_with("counter.") {
        return "count";
    }
    let parts = || name.rsplit('.');
    SUFFIXES
        .iter()
        .find(|(suffix, _)| {
            parts().any(|part| {
                part == *suffix || part.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('_'))
            })
        })
        .map_or("1", |(_, unit)| unit)
}

fn run(started: &RunStarted, events: &[Event]) -> Run {
    let outcome = events.iter().rev().find_map(|event| match event {
        Event::RunFinished { outcome } => Some(outcome.clone()),
        _ => None,
    });
    Run {
        id: started.id.clone(),
        started: started.started.clone(),
        version: started.version.clone(),
        outcome: outcome.unwrap_or_else(|| "unfinished".to_owned()),
        host: started.host.clone(),
        plan: started.plan.clone(),
        meter: energy::meter(events),
    }
}

/// The result of every trial, the first one if there are several.
pub(crate) fn finished_trials(events: &[Event]) -> Vec<&TrialFinished> {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let finished = events.iter().filter_map(|event| match event {
        Event::TrialFinished(trial) => Some(&**trial),
        _ => None,
    });
    finished.filter(|trial| known.insert(&trial.trial)).collect()
}

/// The last failure of every trial that has no result.
fn failures(events: &[Event], trials: &[&TrialFinished]) -> Vec<Failure> {
    let finished: BTreeSet<&str> = trials.iter().map(|trial| trial.trial.as_str()).collect();
    let mut failures: Vec<Failure> = Vec::new();
    for event in events {
        if let Event::TrialFailed { trial, point, error } = event
            && !finished.contains(trial.as_str())
        {
            failures.retain(|known| known.trial != *trial);
            let (trial, point, error) = (trial.clone(), point.clone(), error.clone());
            failures.push(Failure { trial, point, error });
        }
    }
    failures
}

/// Ends of metric names and their units; the first that fits counts, so longer ones come first.
const SUFFIXES: &[(&str, &str)] = &[
    ("bytes_per_message", "B/message"),
    ("bytes_per_session", "B/session"),
    ("packets_per_message", "packets/message"),
    ("packets_per_session", "packets/session"),
    ("us_per_message", "us/message"),
    ("j_per_message", "J/message"),
    ("j_per_session", "J/session"),
    ("mah_per_session", "mAh/session"),
    ("j_per_session", "J/session"),
    ("sessions_per_charge", "sessions/charge"),
    ("messages_per_charge", "messages/charge"),
    ("days_per_charge", "days/charge"),
    ("bytes_per_s", "B/s"),
    ("per_s", "1/s"),
    ("percent", "%"),
    ("bytes", "B"),
    ("packets", "packets"),
    ("ratio", "1"),
    ("ns", "ns"),
    ("us", "us"),
    ("ms", "ms"),
    ("s", "s"),
    ("j", "J"),
    ("w", "W"),
    ("v", "V"),
    ("connections", "connections"),
    ("clients", "clients"),
    ("messages", "messages"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_from_names() {
        for (name, unit) in [
            ("response_time_ns.p99", "ns"),
            ("throughput_out_per_s", "1/s"),
            ("goodput_bytes_per_s", "B/s"),
            ("acceptance_ratio", "1"),
            ("transfer_time_s", "s"),
            ("target_cpu_percent.mean", "%"),
            ("target_cpu_us_per_message", "us/message"),
            ("target_memory_bytes.max", "B"),
            ("target_memory_bytes.before", "B"),
            ("counter.dropped", "count"),
            ("subscriber_stall_s", "s"),
            ("wire.sent.packets", "packets"),
            ("wire.bytes_per_message", "B/message"),
            ("wire.phases.set_up.bytes_per_session", "B/session"),
            ("wire.phases.messages.layers.link_bytes", "B"),
            ("wire.messages", "messages"),
            ("wire.connections", "connections"),
            ("wire.payload.bytes_per_session", "B/session"),
            ("wire.packets_per_message", "packets/message"),
            ("wire.layers.link_bytes", "B"),
            ("wire.retransmitted_packets", "packets"),
            ("wire.too_early_packets", "packets"),
            ("late_time_ns.max", "ns"),
            ("energy_j_per_message", "J/message"),
            ("energy_mah_per_session", "mAh/session"),
            ("energy_above_idle_j_per_session", "J/session"),
            ("energy_above_idle_j", "J"),
            ("energy_idle_power_w", "W"),
            ("energy_voltage_v", "V"),
            ("modelled_energy_j_per_message", "J/message"),
            ("modelled_energy_j_per_session", "J/session"),
            ("modelled_energy_mah_per_session", "mAh/session"),
            ("modelled_sessions_per_charge", "sessions/charge"),
            ("modelled_messages_per_charge", "messages/charge"),
            ("modelled_lifetime_s", "s"),
            ("modelled_wake_j_per_message", "J/message"),
            ("modelled_days_per_charge", "days/charge"),
            ("capacity_per_s", "1/s"),
            ("htop_cpu_percent.mean", "%"),
            ("autocannon_time_s", "s"),
            ("mqtt_stresser_receive_ratio", "1"),
            ("mqtt_stresser_receive_per_s", "1/s"),
            ("mqtt_stresser_completed_clients", "clients"),
            ("sum_of_times_per_s", "1/s"),
            ("ramp_average_time_ns.p90", "ns"),
        ] {
            assert_eq!(unit_of(name), unit, "{name}");
        }
    }

    #[test]
    fn the_schema_in_the_repository_is_current() {
        crate::shape::assert_stored("summary.schema.json", &Summary::json_schema());
    }
}
