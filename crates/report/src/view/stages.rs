//! The stages that the messages of a cell passed, in their order, with the time and the resources
//! of each.

use crate::figures::{between, bytes, time_between};
use crate::summary::metric::ends;
use crate::summary::{Cell, Metric};

/// A stage of a cell, or the gap before one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stage {
    name: &'static str,
    is_gap: bool,
}

impl Stage {
    /// Its name.
    pub(crate) fn label(self) -> String {
        if self.is_gap { format!("to the {}", self.name) } else { self.name.to_owned() }
    }

    /// A statistic of its part of the route.
    pub(crate) fn time<'c>(self, cell: &'c Cell, statistic: &str) -> Option<&'c Metric> {
        let piece = if self.is_gap { "gap_time_ns" } else { "hop_time_ns" };
        cell.metrics.get(&format!("stage.{}.{piece}.{statistic}", self.name))
    }

    /// Another figure of it.
    fn figure<'c>(self, cell: &'c Cell, what: &str) -> Option<&'c Metric> {
        let metric = cell.metrics.get(&format!("stage.{}.{what}", self.name));
        metric.filter(|_| !self.is_gap)
    }
}

/// The stages of a cell in the order of a message; empty if there are none.
pub(crate) fn of(cell: &Cell) -> Vec<Stage> {
    let both = |name| [true, false].map(|is_gap| Stage { name, is_gap });
    let all = NAMES.iter().flat_map(|name| both(*name));
    all.filter(|stage| {
        stage.time(cell, "mean").is_some() || stage.figure(cell, "cpu_percent.mean").is_some()
    })
    .collect()
}

/// The headings of a table of stages.
pub(crate) const HEADINGS: [&str; 8] =
    ["stage", "hop\nmean", "hop\np50", "hop\np99", "held\nmean", "CPU\nµs/msg", "CPU %", "memory"];

/// The row of a stage.
pub(crate) fn row(stage: Stage, cell: &Cell, is_ascii: bool) -> Vec<String> {
    let shown = |metric: Option<&Metric>, show: &dyn Fn(f64, &Metric) -> String| {
        let value = metric.and_then(|metric| Some((metric.value?, metric)));
        value.map_or_else(|| ABSENT.to_owned(), |(value, metric)| show(value, metric))
    };
    let time = |metric| shown(metric, &|value, own| time_between(value, ends(own), is_ascii));
    let plain = |what| shown(stage.figure(cell, what), &|value, own| between(value, ends(own)));
    vec![
        stage.label(),
        time(stage.time(cell, "mean")),
        time(stage.time(cell, "p50")),
        time(stage.time(cell, "p99")),
        time(stage.figure(cell, "held_time_ns.mean")),
        plain("cpu_us_per_message"),
        plain("cpu_percent.mean"),
        shown(stage.figure(cell, "memory_bytes.max"), &|value, _| bytes(value)),
    ]
}

/// The legend of the table.
pub(crate) const LEGEND: &str = "hop: from a message's arrival at the stage to its arrival at the \
    next one, at the last to its commit (generator: due to sent; broker: sent to the gateway); \
    the hops of a message add up to its delivery time; held: arrival to confirmed, what lies \
    behind included";

/// All stages, in the order of a message.
const NAMES: [&str; 5] = ["generator", "broker", "gateway", "api", "store"];

const ABSENT: &str = "\u{2013}";
