//! Groups the trials of a run by their point of the matrix and summarises each group.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use weigh_model::Warning;
use weigh_model::event::TrialFinished;
use weigh_model::ledger::Ledger;
use weigh_model::plan::Plan;
use weigh_model::trial::Point;
use weigh_model::warnings::{Severity, WarningRecord};

use super::cell::{Cell, Failure, REPETITIONS_MIN};
use super::cell_name::{name, varied_keys};
use super::course::Courses;
use super::energy::Energies;
use super::lateness::LATEST_HOST;
use super::metric::Metric;
use super::quantiles::infinite;
use super::{lateness, lint};

/// One cell for every point among `trials`, in the order of the plan: trials run in another order.
pub(crate) fn build(
    trials: &[&TrialFinished],
    failures: &[Failure],
    plan: &Plan,
    courses: &Courses,
    energies: &Energies<'_>,
) -> Vec<Cell> {
    let order: BTreeMap<String, usize> =
        plan.cases.iter().enumerate().rev().map(|(at, case)| (text_of(case), at)).collect();
    let mut of_points: BTreeMap<String, Vec<&TrialFinished>> = BTreeMap::new();
    let mut first_seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, trial) in trials.iter().copied().enumerate() {
        let key = text_of(&trial.point);
        first_seen.entry(key.clone()).or_insert(index);
        of_points.entry(key).or_default().push(trial);
    }
    let mut groups: Vec<(String, Vec<&TrialFinished>)> = of_points.into_iter().collect();
    groups.sort_by_key(|(key, _)| {
        (order.get(key).copied().unwrap_or(usize::MAX), first_seen.get(key).copied())
    });
    let points: Vec<&Point> = groups.iter().map(|(_, trials)| &trials[0].point).collect();
    let varied = varied_keys(&points);
    let mut cells: Vec<Cell> = groups
        .into_iter()
        .map(|(key, mut of_point)| {
            of_point.sort_by_key(|trial| trial.repetition);
            let failed = failures.iter().filter(|failure| text_of(&failure.point) == key);
            let name = name(&of_point[0].point, &varied);
            cell(name, &of_point, failed.collect(), plan, courses, energies)
        })
        .collect();
    for cell in &mut cells {
        lateness::drop_outdated(cell);
        cell.warnings.extend(lateness::warning(cell).map(|warning| warning.record()));
    }
    lint::cells::add(&mut cells, plan);
    cells
}

/// A point as a unique text: its keys are in order.
fn text_of(point: &impl Serialize) -> String {
    serde_json::to_string(point).unwrap_or_default()
}

pub(crate) fn cell(
    name: String,
    trials: &[&TrialFinished],
    failed: Vec<&Failure>,
    plan: &Plan,
    courses: &Courses,
    energies: &Energies<'_>,
) -> Cell {
    let first = trials[0];
    let mut ledger = Ledger::zero();
    trials.iter().for_each(|trial| ledger.add(&trial.ledger));
    let found = courses.found(trials, plan);
    let mut warnings = warnings(trials, &ledger, failed, (plan, energies));
    warnings.extend(found.warning().map(|warning| warning.record()));
    Cell {
        name,
        point: first.point.clone(),
        guarantee: first.guarantee,
        durability: first.durability,
        target: first.target.clone(),
        repetitions: trials.len() as u32,
        valid: warnings.iter().all(|warning| warning.severity != Severity::Invalid),
        metrics: metrics(trials, energies),
        samples: samples(trials),
        ledger,
        warnings,
        granted: granted(trials),
        steady_state: found.counts,
        scene: scene(trials),
    }
}

/// The scene of the first trial; the latest host of a fleet only if it was that of all trials.
fn scene(trials: &[&TrialFinished]) -> BTreeMap<String, String> {
    let mut scene = trials[0].scene.clone();
    if trials.iter().any(|trial| trial.scene.get(LATEST_HOST) != scene.get(LATEST_HOST)) {
        scene.remove(LATEST_HOST);
    }
    scene
}

fn metrics(trials: &[&TrialFinished], energies: &Energies<'_>) -> BTreeMap<String, Metric> {
    let mut values: BTreeMap<&str, Vec<(u32, f64)>> = BTreeMap::new();
    for trial in trials {
        for (name, value) in trial.metrics.iter().chain(energies.figures(trial)) {
            values.entry(name).or_default().push((trial.repetition, *value));
        }
    }
    let metric = |(name, values): (&str, Vec<(u32, f64)>)| {
        (name.to_owned(), Metric::of(name, &values, samples_min(trials, name)))
    };
    let mut metrics = values.into_iter().map(metric).collect();
    energies.widen(&mut metrics, trials);
    metrics
}

/// Number of values of the metric `name` in the repetition with the fewest: those of its recorded
/// time, and the messages that are infinite in it.
fn samples_min(trials: &[&TrialFinished], name: &str) -> Option<u64> {
    let (time, _) = name.rsplit_once('.')?;
    let having = trials.iter().filter(|trial| trial.metrics.contains_key(name));
    let samples = |trial: &&TrialFinished| Some(trial.samples.get(time)? + infinite(trial, time));
    having.filter_map(samples).min()
}

/// Number of values of each recorded time in the repetition with the fewest, including the messages
/// that are infinite in it. A repetition may have none, such as one with nothing but error answers.
fn samples(trials: &[&TrialFinished]) -> BTreeMap<String, u64> {
    let names: BTreeSet<&String> = trials.iter().flat_map(|trial| trial.samples.keys()).collect();
    let values = |trial: &&TrialFinished, name: &str| {
        trial.samples.get(name).copied().unwrap_or(0) + infinite(trial, name)
    };
    let least = |name: &String| trials.iter().map(|trial| values(trial, name)).min().unwrap_or(0);
    names.into_iter().map(|name| (name.clone(), least(name))).collect()
}

fn granted(trials: &[&TrialFinished]) -> BTreeMap<String, u64> {
    let mut least: BTreeMap<String, u64> = BTreeMap::new();
    for (name, value) in trials.iter().flat_map(|trial| &trial.granted) {
        let known = least.entry(name.clone()).or_insert(*value);
        *known = (*known).min(*value);
    }
    least
}

/// The warnings of all repetitions, each once (with the figures of the first that has it), and
/// those of the whole cell.
fn warnings(
    trials: &[&TrialFinished],
    ledger: &Ledger,
    failed: Vec<&Failure>,
    (plan, energies): (&Plan, &Energies<'_>),
) -> Vec<WarningRecord> {
    let mut warnings: Vec<WarningRecord> = Vec::new();
    let mut add = |warning: WarningRecord| {
        let is_same = |known: &WarningRecord| {
            known.code == warning.code
                && without_figures(&known.text) == without_figures(&warning.text)
        };
        if !warnings.iter().any(is_same) {
            warnings.push(warning);
        }
    };
    trials.iter().flat_map(|trial| &trial.warnings).cloned().for_each(&mut add);
    trials.iter().flat_map(|trial| energies.warnings(trial)).for_each(&mut add);
    let broken = trials.iter().flat_map(|trial| lint::trial::warnings(trial, plan));
    broken.map(|warning| warning.record()).for_each(&mut add);
    for contradiction in trials.iter().filter_map(|trial| trial.ledger.contradiction()) {
        add(Warning::LedgerContradiction(contradiction).record());
    }
    if ledger.delivered.is_none() {
        add(Warning::Unconfirmed.record());
    }
    for failure in failed {
        add(WarningRecord {
            code: "trial-failed".to_owned(),
            severity: Severity::Warning,
            text: format!("a repetition could not be done: {}", failure.error),
            advice: "fix the cause and resume the run (weigh run --resume); figures use only the \
                     other repetitions"
                .to_owned(),
        });
    }
    if (trials.len() as u32) < REPETITIONS_MIN {
        add(Warning::FewRepetitions(trials.len() as u32).record());
    }
    warnings
}

/// The words of a text without its figures.
fn without_figures(text: &str) -> Vec<&str> {
    let is_figure = |word: &&str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        word.starts_with(|c: char| c.is_ascii_digit())
    };
    text.split_whitespace().filter(|word| !is_figure(word)).collect()
}
