//! Every picture of a run, as options of ECharts: made once here, drawn by `weigh-charts` on the
//! page and on the command line alike. Options hold no colours and no functions, only their names
//! (`"$c1"`, `"@mark"`), and refer to data that pictures share (`{"$rows": [...]}`).

mod axes;
mod cost;
mod curves;
mod dots;
mod flow;
mod histograms;
mod loads;
mod matrix;
mod modelled;
mod over_time;
mod scale;
mod search;
pub(crate) mod session;
mod shared;
mod stacked;
mod tcp_looks;
mod way;
mod wire;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use weigh_model::event::{Event, TrialFinished};

use crate::comparisons::HEADLINES;
use crate::lateness::is_withheld;
use crate::summary::{Metric, Summary, Verdict, finished_trials};

pub(crate) use matrix::{Line, Matrix, is_quantity, point_key, quantity};
pub(crate) use words::{capital, spoken};

/// All pictures of a run, and what they share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gallery {
    /// Names and colours of the cells, and the figures of every metric: what options refer to.
    pub shared: Value,
    /// The pictures, in the order of the page.
    pub pictures: Vec<Picture>,
}

/// One picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picture {
    /// A name that can be a file's: `axis-load.connections-response_time_ns.p99`.
    pub name: String,
    /// What it shows of its subject.
    pub kind: Kind,
    /// What it is about: a metric's name, a cell's number, or what a group has in common.
    pub subject: String,
    /// Where a subject takes several pictures, which part of it this one is, such as `1 to 40 of
    /// 200`; empty where it is whole.
    pub part: String,
    /// What it shows, in a line.
    pub title: String,
    /// How to read it, and what was left out.
    pub note: String,
    /// Height of what is drawn, CSS pixels; legend and title come on top.
    pub height: u32,
    /// What the functions named in the option need to know: the unit, the whole.
    pub about: Value,
    /// The option for ECharts.
    pub option: Value,
}

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A metric of every cell: repetitions, mean, interval.
    Dots,
    /// A metric along a key of the plan, a line for each remaining point.
    Axis,
    /// Percentiles of a recorded time, a line a cell.
    Curve,
    /// Where the messages of a cell went.
    Flow,
    /// How often which time was seen in a cell.
    Histogram,
    /// What happened in a cell second by second.
    OverTime,
    /// What a message costs, by who pays.
    Cost,
    /// What a message would take from a battery, by what it is for: modelled.
    Modelled,
    /// What a message or a session takes on the wire, by layer.
    Wire,
    /// The way of a message through the stages of a pipeline.
    Way,
    /// One session packet by packet.
    Session,
    /// A search for a limit, trial by trial.
    Search,
    /// What came out at which load.
    Loads,
}

impl Gallery {
    /// The pictures of `summary`, which was made from `events`.
    pub fn new(summary: &Summary, events: &[Event]) -> Gallery {
        let matrix = Matrix::new(&summary.cells);
        let trials = trials_by_cell(summary, events);
        let mut pictures = search::pictures(summary);
        pictures.extend(loads::pictures(summary));
        // Stages have pictures of their own: those of each metric would be ten times all others.
        for metric in metrics(summary).into_iter().filter(|name| !name.starts_with("stage.")) {
            pictures.extend(axes::pictures(summary, &matrix, metric));
            pictures.extend(dots::pictures(summary, metric));
        }
        let recorded = curves::Recorded::of(summary, &trials);
        pictures.extend(curves::pictures(summary, &matrix, &recorded));
        pictures.extend(cost::pictures(summary));
        pictures.extend(way::pictures(summary, &matrix));
        pictures.extend(wire::pictures(summary));
        pictures.extend(modelled::pictures(summary));
        pictures.extend(session::pictures(&matrix, &trials, events));
        pictures.extend(flow::pictures(summary, &matrix));
        pictures.extend(histograms::pictures(&matrix, &recorded));
        pictures.extend(over_time::pictures(&matrix, &summary.cells, &trials, events));
        pictures.iter_mut().for_each(|picture| scale::drop_unplaceable(&mut picture.option));
        Gallery { shared: shared::data(summary, &matrix, &metrics(summary)), pictures }
    }

    /// The picture for the first screen: a search for a limit, else the metric that the answer is
    /// about, along the first axis if there is one. `None` where nothing was weighed.
    pub fn headline(&self, summary: &Summary) -> Option<&Picture> {
        let search = self.pictures.iter().find(|picture| picture.kind == Kind::Search);
        if search.is_some() {
            return search;
        }
        let metric = headline_metric(summary)?;
        let of_metric = || self.pictures.iter().filter(|picture| picture.subject == metric);
        let axis = of_metric().find(|picture| picture.kind == Kind::Axis);
        axis.or_else(|| of_metric().find(|picture| picture.kind == Kind::Dots))
    }
}

/// The metric of the first screen: the first in this order that half of the cells have and may
/// show, and in which something was compared; where nothing was in any of them, the first that
/// they have.
pub(crate) fn headline_metric(summary: &Summary) -> Option<&'static str> {
    let having = |metric: &str| {
        let has_value =
            |cell: &&crate::summary::Cell| cell.metrics.get(metric).is_some_and(|m| m.n > 0);
        let is_shown = |cell: &&crate::summary::Cell| !is_withheld(cell, metric);
        summary.cells.iter().filter(has_value).filter(is_shown).count()
    };
    let enough = summary.cells.len().div_ceil(2).max(1);
    let is_compared = |metric: &str| {
        let of_metric = summary.comparisons.iter().filter(|c| c.metric == metric);
        of_metric.into_iter().any(|comparison| comparison.verdict != Verdict::Refused)
    };
    let shown = || FIRST.iter().copied().filter(|metric| having(metric) >= enough);
    shown().find(|metric| is_compared(metric)).or_else(|| shown().next())
}

/// Names of the metrics that are shown one by one: the headlines in their order, then the others.
/// What the wire carried by phase and layer is left out, and how much of a time is the generator's
/// lateness: tables have it all.
pub(crate) fn metrics(summary: &Summary) -> Vec<&str> {
    let is_part = |name: &&str| TOGETHER.iter().any(|start| name.starts_with(start));
    let all = summary.cells.iter().flat_map(|cell| cell.metrics.keys().map(String::as_str));
    let mut names: Vec<&str> = all.filter(|name| !is_part(name)).collect();
    names.sort_unstable();
    names.dedup();
    let rank = |name: &&str| HEADLINES.iter().position(|known| known == name);
    names.sort_by_key(|name| rank(name).unwrap_or(usize::MAX));
    names
}

/// The results of every cell, by repetition.
pub(crate) fn trials_by_cell<'a>(
    summary: &Summary,
    events: &'a [Event],
) -> Vec<Vec<&'a TrialFinished>> {
    let mut by_point: BTreeMap<String, Vec<&TrialFinished>> = BTreeMap::new();
    for trial in finished_trials(events) {
        by_point.entry(point_key(&trial.point)).or_default().push(trial);
    }
    let mut of_cell = |point| by_point.remove(&point_key(point)).unwrap_or_default();
    let mut trials: Vec<Vec<&TrialFinished>> =
        summary.cells.iter().map(|cell| of_cell(&cell.point)).collect();
    trials.iter_mut().for_each(|trials| trials.sort_by_key(|trial| trial.repetition));
    trials
}

/// How many repetitions the means of these metrics rest on, as a caption says it: their intervals
/// need three.
fn of_repetitions<'m>(metrics: impl IntoIterator<Item = &'m Metric>) -> String {
    let numbers: BTreeSet<u32> = metrics.into_iter().map(|metric| metric.n).collect();
    match (numbers.first(), numbers.last()) {
        (Some(1), Some(1)) => "1 repetition, so there is no interval".to_owned(),
        (Some(2), Some(2)) => "2 repetitions, too few for an interval".to_owned(),
        (Some(least), Some(most)) if least == most => format!("{least} repetitions"),
        (Some(least @ ..3), Some(most)) => {
            format!("{least} to {most} repetitions; no interval below 3")
        }
        (Some(least), Some(most)) => format!("{least} to {most} repetitions"),
        _ => "no repetition".to_owned(),
    }
}

/// The range `first..end` of `all` in words, counted from 1; empty where it is everything.
fn part(first: usize, end: usize, all: usize) -> String {
    if end - first == all { String::new() } else { format!("{} to {end} of {all}", first + 1) }
}

/// `value` with five significant digits: more than any picture or table shows, and less than half
/// of what it would take in full.
pub fn lean(value: f64) -> Value {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { Value::from(0) } else { Value::Null };
    }
    let scale = 10f64.powi(4 - value.abs().log10().floor() as i32);
    let rounded = (value * scale).round() / scale;
    let is_whole = rounded.fract() == 0.0 && rounded.abs() < WHOLE_MAX;
    if is_whole { Value::from(rounded as i64) } else { Value::from(rounded) }
}

/// Whole numbers below this are exact as floating point.
const WHOLE_MAX: f64 = 9e15;

/// Beginnings of metrics that are shown together.
const TOGETHER: [&str; 6] = [
    "wire.layers.",
    "wire.phases.",
    "wire.sent.layers.",
    "wire.received.layers.",
    "response_time_lag_ns.",
    "delivery_time_lag_ns.",
];

/// Metrics for the first screen, in the order in which they are preferred.
const FIRST: [&str; 7] = [
    "response_time_ns.p99",
    "service_time_ns.p99",
    "delivery_time_ns.p99",
    "response_time_ns.p50",
    "service_time_ns.p50",
    "delivery_time_ns.p50",
    "throughput_out_per_s",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caption_names_the_repetitions_that_there_were() {
        let of = |numbers: &[usize]| {
            let metrics = numbers.iter().map(|n| Metric::new("window_s", &vec![1.0; *n]));
            of_repetitions(&metrics.collect::<Vec<_>>())
        };
        for (numbers, said) in [
            (&[10, 10][..], "10 repetitions"),
            (&[5, 10], "5 to 10 repetitions"),
            (&[1], "1 repetition, so there is no interval"),
            (&[2, 2], "2 repetitions, too few for an interval"),
            (&[2, 5], "2 to 5 repetitions; no interval below 3"),
        ] {
            assert_eq!(of(numbers), said);
        }
    }

    #[test]
    fn lean_numbers_keep_five_digits() {
        for (value, text) in [
            (0.0, "0"),
            (123_456.7, "123460"),
            (0.012_345_67, "0.012346"),
            (-2.5, "-2.5"),
            (f64::INFINITY, "null"),
        ] {
            assert_eq!(lean(value).to_string(), text);
        }
    }
}
