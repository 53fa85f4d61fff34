//! The figures of a run with one case: nothing is compared.

use super::ranking::{TIMES, figure, time_word};
use crate::figures::between;
use crate::summary::metric::ends;
use crate::summary::{AnswerKind, Cell};

/// CPU time, bytes and the time that the case has, each with its interval.
pub(super) fn lines(cell: &Cell) -> Vec<(AnswerKind, String)> {
    let mut lines = Vec::new();
    for (kind, metric, what) in [
        (AnswerKind::Cpu, "target_cpu_us_per_message", "Server CPU per message"),
        (AnswerKind::Bytes, "wire.bytes_per_message", "Bytes on the wire per message"),
    ] {
        lines.extend(said(cell, metric).map(|figure| (kind, format!("{what}: {figure}"))));
    }
    let time = ["p99", "p50"].into_iter().find_map(|part| {
        TIMES.into_iter().find_map(|family| {
            let figure = said(cell, &format!("{family}.{part}"))?;
            let part = if part == "p50" { "median" } else { part };
            Some(format!("{part} of {}: {figure}", time_word(family)))
        })
    });
    lines.extend(time.map(|text| (AnswerKind::Time, text)));
    lines
}

/// The figure with its interval; `None` if the case does not have it or it is not reported.
fn said(cell: &Cell, metric: &str) -> Option<String> {
    let own = cell.shown(metric)?;
    let value = own.value?;
    let unit = figure(metric, value);
    match (ends(own), metric.contains("_ns")) {
        (None, _) => Some(unit),
        (Some(ends), true) => Some(crate::figures::time_between(value, Some(ends), false)),
        (Some(ends), false) => {
            let unit = unit.rsplit(' ').next().unwrap_or_default();
            Some(format!("{} {unit}", between(value, Some(ends))))
        }
    }
}
