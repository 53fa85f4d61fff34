//! Groups the trials of a run by their point of the matrix and sums each group up.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use weigh_model::Doubt;
use weigh_model::doubt::{DoubtRecord, Severity};
use weigh_model::event::TrialFinished;
use weigh_model::ledger::Ledger;
use weigh_model::plan::Plan;
use weigh_model::trial::Point;

use crate::lint;
use crate::summary::{Cell, Failure, Metric};

/// Repetitions below which no comparison should be believed (rule L13).
pub const REPETITIONS_MIN: u32 = 5;

/// One cell for every point among `trials`, in the order of the plan: trials run in an order of
/// their own.
pub(crate) fn build(trials: &[&TrialFinished], failures: &[Failure], plan: &Plan) -> Vec<Cell> {
    let mut points: Vec<&Point> = Vec::new();
    for trial in trials {
        if !points.contains(&&trial.point) {
            points.push(&trial.point);
        }
    }
    let cases: Vec<Option<Value>> =
        plan.cases.iter().map(|case| serde_json::to_value(case).ok()).collect();
    points.sort_by_key(|point| {
        let point = serde_json::to_value(point).ok();
        cases.iter().position(|case| *case == point).unwrap_or(usize::MAX)
    });
    let varied = varied_keys(&points);
    let mut cells: Vec<Cell> = points
        .into_iter()
        .map(|point| {
            let mut of_point: Vec<&TrialFinished> =
                trials.iter().copied().filter(|trial| trial.point == *point).collect();
            of_point.sort_by_key(|trial| trial.repetition);
            let failed = failures.iter().filter(|failure| failure.point == *point);
            cell(name(point, &varied), &of_point, failed, plan)
        })
        .collect();
    lint::cells::add(&mut cells, plan);
    cells
}

/// True if the cell's target is a reference server, which Weighbridge carries itself.
pub fn is_reference(cell: &Cell) -> bool {
    cell.point.get("target").is_none_or(|target| target == "reference")
}

fn cell<'a>(
    name: String,
    trials: &[&TrialFinished],
    failed: impl Iterator<Item = &'a Failure>,
    plan: &Plan,
) -> Cell {
    let first = trials[0];
    let mut ledger = Ledger::zero();
    trials.iter().for_each(|trial| ledger.add(&trial.ledger));
    let doubts = doubts(trials, &ledger, failed, plan);
    Cell {
        name,
        point: first.point.clone(),
        guarantee: first.guarantee,
        target: first.target.clone(),
        repetitions: trials.len() as u32,
        valid: doubts.iter().all(|doubt| doubt.severity != Severity::Invalid),
        metrics: metrics(trials),
        ledger,
        doubts,
        granted: granted(trials),
    }
}

fn metrics(trials: &[&TrialFinished]) -> BTreeMap<String, Metric> {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, value) in trials.iter().flat_map(|trial| &trial.metrics) {
        values.entry(name).or_default().push(*value);
    }
    values.into_iter().map(|(name, values)| (name.to_owned(), Metric::new(name, &values))).collect()
}

fn granted(trials: &[&TrialFinished]) -> BTreeMap<String, u64> {
    let mut least: BTreeMap<String, u64> = BTreeMap::new();
    for (name, value) in trials.iter().flat_map(|trial| &trial.granted) {
        let known = least.entry(name.clone()).or_insert(*value);
        *known = (*known).min(*value);
    }
    least
}

/// The doubts of all repetitions, each once (with the figures of the first that has it), and
/// those that only the whole cell can have.
fn doubts<'a>(
    trials: &[&TrialFinished],
    ledger: &Ledger,
    failed: impl Iterator<Item = &'a Failure>,
    plan: &Plan,
) -> Vec<DoubtRecord> {
    let mut doubts: Vec<DoubtRecord> = Vec::new();
    let mut add = |doubt: DoubtRecord| {
        let is_same = |known: &DoubtRecord| {
            known.code == doubt.code && without_figures(&known.text) == without_figures(&doubt.text)
        };
        if !doubts.iter().any(is_same) {
            doubts.push(doubt);
        }
    };
    trials.iter().flat_map(|trial| &trial.doubts).cloned().for_each(&mut add);
    let broken = trials.iter().flat_map(|trial| lint::trial::doubts(trial, plan));
    broken.map(|doubt| doubt.record()).for_each(&mut add);
    for contradiction in trials.iter().filter_map(|trial| trial.ledger.contradiction()) {
        add(Doubt::LedgerContradiction(contradiction).record());
    }
    if ledger.delivered.is_none() {
        add(Doubt::Unconfirmed.record());
    }
    for failure in failed {
        add(DoubtRecord {
            code: "trial-failed".to_owned(),
            severity: Severity::Doubt,
            text: format!("a repetition could not be done: {}", failure.error),
            advice: "mend it and resume the run; the figures rest on the other repetitions"
                .to_owned(),
        });
    }
    if (trials.len() as u32) < REPETITIONS_MIN {
        add(Doubt::FewRepetitions(trials.len() as u32).record());
    }
    doubts
}

/// The words of a text that are not figures.
fn without_figures(text: &str) -> Vec<&str> {
    let is_figure = |word: &&str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        word.starts_with(|c: char| c.is_ascii_digit())
    };
    text.split_whitespace().filter(|word| !is_figure(word)).collect()
}

/// The keys whose values are not the same in all points of one protocol, and the pattern where
/// it is not the same in all: beside the protocol they tell every two points apart.
fn varied_keys<'a>(points: &[&'a Point]) -> BTreeSet<&'a str> {
    let keys = points.iter().flat_map(|point| point.keys().map(String::as_str));
    keys.filter(|key| {
        let differ = |left: &&Point, right: &&Point| {
            let is_alike = *key == PATTERN || left.get("protocol") == right.get("protocol");
            is_alike && left.get(*key) != right.get(*key)
        };
        points.iter().any(|left| points.iter().any(|right| differ(left, right)))
    })
    .collect()
}

/// A point's name outside the table: `mqtt qos=1 on reference`.
pub(crate) fn point_name(point: &Point) -> String {
    name(point, &BTreeSet::new())
}

/// Protocol, the pattern where it varies, the protocol's own keys and whatever else varies in
/// the run, and the target: `mqtt deliver qos=1 on reference`.
fn name(point: &Point, varied: &BTreeSet<&str>) -> String {
    let protocol = point.get("protocol").map_or_else(|| "?".to_owned(), plain);
    let own = format!("{protocol}.");
    let mut name = protocol.clone();
    if let Some(pattern) = point.get(PATTERN).filter(|_| varied.contains(PATTERN)) {
        name += &format!(" {}", plain(pattern));
    }
    for (key, value) in point {
        let is_head = ["protocol", "target", PATTERN].contains(&key.as_str());
        if !is_head && (key.starts_with(&own) || varied.contains(key.as_str())) {
            let short = key.strip_prefix(&own).or(key.strip_prefix("load.")).unwrap_or(key);
            name += &format!(" {short}={}", plain(value));
        }
    }
    name + " on " + &point.get("target").map_or_else(|| "reference".to_owned(), plain)
}

/// The key whose value needs no name to be understood.
const PATTERN: &str = "load.pattern";

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
