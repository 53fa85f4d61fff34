//! The part of a cell's times from the due time that is the generator's own lateness, and the
//! consequence for each figure: none, the figure with its share, or no figure at all. Decided here
//! once for tables, page, comparisons, conditions, goals and studies
//! (`docs/decisions/0040-lag-is-an-error-bar.md`).

use weigh_model::Warning;
use weigh_model::condition::quantile_of;
use weigh_model::metrics::QUANTILES;
use weigh_model::warnings::{Severity, WarningRecord};

use super::cell::Cell;
use super::metric::Metric;
use crate::figures::time;

/// Effect of the generator's lateness on a figure, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lateness {
    /// Too small to matter, or the figure has none.
    Negligible,
    /// The figure is reported with this share.
    Material(f64),
    /// More than half of the figure: it is not reported.
    Dominant(f64),
}

impl Lateness {
    /// The effect on the figure `metric` of `cell`. If the lateness of a figure is unknown, the
    /// warnings of its record decide.
    pub fn of(cell: &Cell, metric: &str) -> Lateness {
        let value = cell.metrics.get(metric).and_then(|own| own.value);
        let (Some(value), Some(lag)) = (value, lag_ns(cell, metric)) else {
            return Lateness::Negligible;
        };
        let ends = cell.metrics.get(metric).and_then(|own| own.low.zip(own.high));
        Lateness::judged(value, lag, ends)
    }

    /// The rule: a figure, its lateness, and the figure's interval at 95 %.
    pub fn judged(value: f64, lag: f64, ends: Option<(f64, f64)>) -> Lateness {
        let is_within_interval = ends.is_some_and(|(low, high)| lag < (high - low) / 2.0);
        match () {
            () if lag > DOMINANT * value => Lateness::Dominant(lag),
            () if lag < NEGLIGIBLE * value || is_within_interval || lag <= 0.0 => {
                Lateness::Negligible
            }
            () => Lateness::Material(lag),
        }
    }

    /// The part that is reported with the figure; 0 if none is.
    pub fn said_ns(self) -> f64 {
        match self {
            Lateness::Material(lag) => lag,
            Lateness::Negligible | Lateness::Dominant(_) => 0.0,
        }
    }
}

/// Generator's lateness in the figure `metric` of `cell`, nanoseconds; `None` if the figure has
/// none or it is unknown. In records of earlier versions it is the time from due to sent, which is
/// the generator's alone if no message waited for the window.
pub fn lag_ns(cell: &Cell, metric: &str) -> Option<f64> {
    let value = |name: &str| cell.metrics.get(name).and_then(|own| own.value);
    let [recorded, from_sent] = names(metric)?;
    if let Some(lag) = cell.metrics.get(&recorded) {
        return lag.value;
    }
    if let Some(lag) = lag_of_neighbours(cell, &recorded) {
        return Some(lag);
    }
    let nothing_waited = value("held_up_ratio") == Some(0.0) && !cell.metrics.contains_key("polls");
    let lag = value(metric)? - value(&from_sent)?;
    nothing_waited.then_some(lag.max(0.0))
}

/// The lateness of a quantile that is not kept: the larger one of the kept quantiles on either side
/// of it, if those are known.
fn lag_of_neighbours(cell: &Cell, recorded: &str) -> Option<f64> {
    let (time, part) = recorded.split_once('.')?;
    let q = quantile_of(recorded).filter(|_| part.starts_with('p'))?;
    let of = |part: &str| cell.metrics.get(&format!("{time}.{part}"))?.value;
    let below = QUANTILES.iter().rev().find(|(_, kept)| *kept <= q).and_then(|(part, _)| of(part));
    let above = QUANTILES.iter().filter(|(_, kept)| *kept >= q).find_map(|(part, _)| of(part));
    let above = above.or_else(|| of("max"));
    below.into_iter().chain(above).reduce(f64::max)
}

/// The figure of every repetition without the generator's lateness; `None` if there is none to
/// subtract.
pub(crate) fn without_lag(cell: &Cell, metric: &str) -> Option<Vec<f64>> {
    let mean = lag_ns(cell, metric).filter(|lag| *lag > 0.0)?;
    let [recorded, from_sent] = names(metric)?;
    let of = |name: &str| -> Option<Vec<f64>> {
        cell.metrics.get(name)?.values.iter().copied().collect()
    };
    let values = of(metric)?;
    let each = of(&recorded).or_else(|| {
        let lags = values.iter().zip(of(&from_sent)?).map(|(value, sent)| value - sent);
        Some(lags.collect())
    });
    let each = each.filter(|each| each.len() == values.len());
    let each = each.unwrap_or_else(|| vec![mean; values.len()]);
    Some(values.iter().zip(each).map(|(value, lag)| (value - lag.max(0.0)).max(0.0)).collect())
}

/// True if `warning` makes the figure `metric` of `cell` invalid because the generator was late.
fn takes_away(warning: &WarningRecord, cell: &Cell, metric: &str) -> bool {
    if names(metric).is_none() {
        return false;
    }
    let is_old = warning.severity == Severity::InvalidTimes;
    match lag_ns(cell, metric) {
        // Only the warning of the record is known.
        None => is_old,
        Some(_) => {
            (is_old || warning.code == CODE)
                && matches!(Lateness::of(cell, metric), Lateness::Dominant(_))
        }
    }
}

/// True if the figure must not be used because the generator was late.
pub(crate) fn is_withheld(cell: &Cell, metric: &str) -> bool {
    cell.warnings.iter().any(|warning| takes_away(warning, cell, metric))
}

/// The figure that replaces one that is not reported: the same time from sending on.
pub(crate) fn instead(metric: &str) -> Option<String> {
    names(metric).map(|[_, from_sent]| from_sent)
}

/// The metric with the lateness in the figure `metric`.
pub(crate) fn lag_name(metric: &str) -> Option<String> {
    names(metric).map(|[recorded, _]| recorded)
}

/// The warning on figures of a cell that are not reported; `None` if all are.
pub(crate) fn warning(cell: &Cell) -> Option<Warning> {
    let mut parts = Vec::new();
    for (name, said) in
        [("response_time_ns", "response time"), ("delivery_time_ns", "delivery time")]
    {
        for part in PARTS {
            let metric = format!("{name}.{part}");
            let value = cell.metrics.get(&metric).and_then(|own| own.value);
            if let (Some(value), Lateness::Dominant(lag)) = (value, Lateness::of(cell, &metric)) {
                let [lag, value] = [lag, value].map(|ns| time(ns, false));
                parts.push(format!("{said} {part} ({lag} of {value})"));
            }
        }
    }
    let more = parts.len().saturating_sub(PARTS_SAID);
    parts.truncate(PARTS_SAID);
    let more = if more > 0 { format!(" and {more} more figures") } else { String::new() };
    let host = cell.scene.get(LATEST_HOST).map(|host| format!("; latest: {host}"));
    let host = host.unwrap_or_default();
    (!parts.is_empty()).then(|| Warning::GeneratorLag(parts.join(", ") + &more + &host))
}

/// Removes warnings of earlier versions about a whole cell if each figure is judged separately.
pub(crate) fn drop_outdated(cell: &mut Cell) {
    let figures = || cell.metrics.iter().filter(|(name, _)| names(name).is_some());
    let is_known = figures().all(|(name, own)| own.value.is_none() || lag_ns(cell, name).is_some());
    if is_known && figures().next().is_some() {
        cell.warnings.retain(|warning| warning.severity != Severity::InvalidTimes);
    }
}

/// The recorded lateness of a figure and the same figure from sending on, by name; `None` for a
/// figure that does not begin with the due time of a message.
fn names(metric: &str) -> Option<[String; 2]> {
    let (time, part) = metric.split_once('.')?;
    let [lag, from_sent] = match time {
        "response_time_ns" => ["response_time_lag_ns", "service_time_ns"],
        "delivery_time_ns" => ["delivery_time_lag_ns", "one_way_time_ns"],
        _ => return None,
    };
    Some([lag, from_sent].map(|name| format!("{name}.{part}")))
}

/// Key of a scene: the host of a fleet that sent latest.
pub const LATEST_HOST: &str = "fleet.latest";

/// The code of the warning on figures that are not reported.
const CODE: &str = "generator-lag";

/// Below this share of a figure lateness is not reported.
const NEGLIGIBLE: f64 = 0.05;

/// Above this share of a figure it is not reported.
pub const DOMINANT: f64 = 0.5;

/// The statistics checked for the warning, in the order of its text.
const PARTS: [&str; 7] = ["p50", "p99", "max", "mean", "p90", "p95", "p999"];

const PARTS_SAID: usize = 3;

impl Cell {
    /// The warning that makes `metric` of this cell invalid, if there is one: one on the whole
    /// result, or the generator's lateness if that is more than half of the figure.
    pub fn invalidated_by(&self, metric: &str) -> Option<&WarningRecord> {
        self.warnings.iter().find(|warning| self.is_invalidated_by(warning, metric))
    }

    /// The figure `metric`, unless the generator's lateness is more than half of it.
    pub fn shown(&self, metric: &str) -> Option<&Metric> {
        self.metrics.get(metric).filter(|_| !is_withheld(self, metric))
    }

    /// Whether this warning makes a figure of this cell invalid.
    pub fn is_invalidated_by(&self, warning: &WarningRecord, metric: &str) -> bool {
        warning.severity == Severity::Invalid || takes_away(warning, self, metric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_judged_at_its_borders() {
        let of = |lag, ends| Lateness::judged(100.0, lag, ends);
        assert_eq!(of(0.0, None), Lateness::Negligible);
        assert_eq!(of(4.99, None), Lateness::Negligible);
        assert_eq!(of(5.0, None), Lateness::Material(5.0));
        assert_eq!(of(50.0, None), Lateness::Material(50.0));
        assert_eq!(of(50.01, None), Lateness::Dominant(50.01));
        // Below the interval's half width it is within what the figure says of itself.
        assert_eq!(of(19.9, Some((80.0, 120.0))), Lateness::Negligible);
        assert_eq!(of(20.0, Some((80.0, 120.0))), Lateness::Material(20.0));
        // More than half is withheld however wide the interval is.
        assert_eq!(of(60.0, Some((0.0, 200.0))), Lateness::Dominant(60.0));
        assert_eq!(Lateness::judged(0.0, 0.0, None), Lateness::Negligible);
        assert_eq!([of(20.0, None), of(60.0, None)].map(Lateness::said_ns), [20.0, 0.0]);
    }
}
