//! The metrics of a summary in the order of their importance to readers.

use super::comparison::Verdict;
use super::document::Summary;
use super::lateness::is_withheld;

/// The metrics in which cells are compared.
pub const HEADLINES: &[&str] = &[
    "response_time_ns.p50",
    "response_time_ns.p99",
    "service_time_ns.p50",
    "service_time_ns.p99",
    "delivery_time_ns.p50",
    "delivery_time_ns.p99",
    "throughput_out_per_s",
    "target_cpu_us_per_message",
    "wire.bytes_per_message",
    "energy_j_per_message",
    "energy_above_idle_j_per_message",
    "energy_mah_per_session",
];

/// The metric of the first screen: the first in this order that half of the cells have and may
/// show, and in which something was compared; without any comparison, the first that they have.
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
/// Bytes by phase and layer, and the generator's share of a time, are left out: tables have them.
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
