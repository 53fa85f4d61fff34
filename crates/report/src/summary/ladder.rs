//! Step and hold: a load that was raised in steps and held at each, as a curve of rates in and out,
//! times, errors and the target's processor. The curve may have a plateau. It is never averaged:
//! the mean over a ramp does not describe any load.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_limit::curve::{Hold, plateau};
use weigh_model::arrival::Step;
use weigh_model::event::{Event, Interval, TrialFinished};
use weigh_model::{Arrival, Load};

use super::cell::Cell;
use super::limit_curve::PlateauShown;

/// The curve of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ladder {
    /// The cell's name.
    pub cell: String,
    /// The holds, in the order of the load.
    pub holds: Vec<HoldShown>,
    /// The plateau, where the output no longer follows the load. A description, never a capacity.
    pub plateau: Option<PlateauShown>,
    /// Why there is none.
    pub no_plateau: Option<String>,
}

/// One load that was held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HoldShown {
    /// Offered load: messages per second, or the unit of the axis.
    pub offered: f64,
    /// Number of windows, or trials, of the means.
    pub windows: usize,
    /// Messages per second sent.
    pub input_per_s: Option<f64>,
    /// Messages per second received.
    pub output_per_s: Option<f64>,
    /// The 99 % quantile of response time, or of delivery time if nothing is confirmed. In a load
    /// raised in steps it is a mean: of the quantiles of those intervals that have a hundred
    /// messages. While a queue grows, it is less than the quantile of the whole step. Null if no
    /// interval has a hundred.
    pub time_ns_p99: Option<f64>,
    /// Error answers divided by sent messages.
    pub errors_ratio: Option<f64>,
    /// Use of the target's cores, percent.
    pub target_cpu_percent: Option<f64>,
}

/// The curves of all cells whose load has steps.
pub(crate) fn ladders(cells: &[Cell], base: &Load, events: &[Event]) -> Vec<Ladder> {
    let steps = cells.iter().filter_map(|cell| {
        let own = |key: &str| cell.point.get(key).cloned();
        let arrival = own("load.arrival").and_then(|value| serde_json::from_value(value).ok());
        let connections = own("load.connections").and_then(|value| value.as_u64());
        let connections = connections.unwrap_or(u64::from(base.connections));
        match arrival.unwrap_or_else(|| base.arrival.clone()) {
            Arrival::Steps(steps) => Some((cell, spans(&steps, connections))),
            _ => None,
        }
    });
    steps.filter_map(|(cell, spans)| ladder(cell, &spans, events)).collect()
}

/// A step: its offered load, and its begin and end within the measured window, nanoseconds.
struct Span {
    offered: f64,
    from_ns: u64,
    to_ns: u64,
}

fn spans(steps: &[Step], connections: u64) -> Vec<Span> {
    let mut from_ns = 0;
    let span = |step: &Step| {
        let begun = from_ns;
        from_ns += step.hold.0;
        let times = if step.rate.per_client { connections as f64 } else { 1.0 };
        Span { offered: times * step.rate.per_second, from_ns: begun, to_ns: from_ns }
    };
    steps.iter().map(span).collect()
}

fn ladder(cell: &Cell, spans: &[Span], events: &[Event]) -> Option<Ladder> {
    let mut trials: BTreeMap<&str, Vec<&Interval>> = BTreeMap::new();
    let is_own = |trial: &TrialFinished| trial.point == cell.point;
    for event in events {
        if let Event::TrialFinished(trial) = event
            && is_own(trial)
        {
            trials.insert(&trial.trial, Vec::new());
        }
    }
    for event in events {
        if let Event::Interval(interval) = event
            && let Some(own) = trials.get_mut(interval.trial.as_str())
            && !interval.warmup
        {
            own.push(interval);
        }
    }
    let mut held: Vec<(f64, Vec<&Interval>)> = Vec::new();
    for (span, intervals) in spans.iter().flat_map(|span| trials.values().map(move |t| (span, t))) {
        let own = within(span, intervals);
        match held.iter_mut().find(|(offered, _)| *offered == span.offered) {
            Some((_, known)) => known.extend(own),
            None => held.push((span.offered, own)),
        }
    }
    held.retain(|(_, windows)| !windows.is_empty());
    held.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let found = plateau(&held.iter().map(hold).collect::<Vec<_>>());
    let holds: Vec<HoldShown> = held.iter().map(shown).collect();
    (!holds.is_empty()).then(|| Ladder {
        cell: cell.name.clone(),
        holds,
        no_plateau: found.as_ref().err().map(ToString::to_string),
        plateau: found.ok().map(|found| PlateauShown {
            begins: found.begins,
            level_per_s: found.level,
            level_between: found.level_between,
        }),
    })
}

/// The windows of a step after it has settled: those in its last four fifths.
fn within<'e>(span: &Span, intervals: &[&'e Interval]) -> Vec<&'e Interval> {
    let begin = |interval: &Interval| interval.at_ns - interval.length_ns.unwrap_or(0);
    let Some(window) = intervals.first().map(|first| begin(first)) else { return Vec::new() };
    let settled = span.from_ns + (span.to_ns - span.from_ns) / 5;
    let is_inside = |interval: &&&Interval| {
        let is_before_end = !interval.draining && interval.at_ns <= window + span.to_ns;
        begin(interval) >= window + settled && is_before_end
    };
    intervals.iter().filter(is_inside).copied().collect()
}

fn per_s(count: u64, interval: &Interval) -> Option<f64> {
    let length = interval.length_ns.filter(|ns| *ns > 0)?;
    Some(count as f64 * 1e9 / length as f64)
}

/// Confirmed messages; delivered ones if nothing is confirmed.
fn done(interval: &Interval) -> u64 {
    if interval.delivered > 0 { interval.delivered } else { interval.acknowledged }
}

fn hold((offered, windows): &(f64, Vec<&Interval>)) -> Hold {
    Hold::of(*offered, windows.iter().filter_map(|own| per_s(done(own), own)).collect())
}

fn shown((offered, windows): &(f64, Vec<&Interval>)) -> HoldShown {
    let mean = |of: &dyn Fn(&Interval) -> Option<f64>| {
        let values: Vec<f64> = windows.iter().filter_map(|own| of(own)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let sum = |of: &dyn Fn(&Interval) -> u64| windows.iter().map(|own| of(own)).sum::<u64>();
    let sent = sum(&|own| own.sent);
    HoldShown {
        offered: *offered,
        windows: windows.len(),
        input_per_s: mean(&|own| per_s(own.sent, own)),
        output_per_s: mean(&|own| per_s(done(own), own)),
        time_ns_p99: mean(&|own| own.response_time_ns_p99.map(|time| time as f64)),
        errors_ratio: (sent > 0).then(|| sum(&|own| own.errors) as f64 / sent as f64),
        target_cpu_percent: mean(&|own| own.target_cpu_percent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A target that takes 3,000 a second, looked at each 100 ms while the load rises by 500/s each
    /// second; the first fifth of every step still has the output of the one before.
    #[test]
    fn a_step_is_what_stands_after_it_has_settled() {
        let steps: Vec<(f64, u64)> = (1..=12).map(|n| (500.0 * n as f64, 1_000_000_000)).collect();
        let mut from_ns = 0;
        let mut spans = Vec::new();
        for (offered, hold) in &steps {
            spans.push(Span { offered: *offered, from_ns, to_ns: from_ns + hold });
            from_ns += hold;
        }
        let interval = |number: u64| {
            let step = (number / 10) as usize;
            let settled = if number % 10 < 2 { step.saturating_sub(1) } else { step };
            Interval {
                at_ns: 700_000_000 + (number + 1) * 100_000_000,
                length_ns: Some(100_000_000),
                sent: (steps[step].0 / 10.0) as u64,
                acknowledged: (steps[settled].0.min(3000.0) / 10.0) as u64,
                ..Interval::default()
            }
        };
        let mut intervals: Vec<Interval> = (0..120).map(interval).collect();
        // A moment of draining, in which answers come without a load, is no window.
        let (at_ns, length_ns) = (intervals[119].at_ns - 1_000_000, Some(1_000_000));
        intervals[119].at_ns = at_ns;
        let rest = Interval { at_ns: at_ns + 1_000_000, length_ns, ..Interval::default() };
        intervals.push(Interval { draining: true, acknowledged: 500, ..rest });
        let all: Vec<&Interval> = intervals.iter().collect();
        let held: Vec<_> = spans.iter().map(|span| (span.offered, within(span, &all))).collect();
        for (offered, windows) in &held {
            assert_eq!(windows.len(), 8, "{offered}");
        }
        assert_eq!(shown(&held[3]).output_per_s, Some(2000.0));
        assert_eq!(shown(&held[9]).output_per_s, Some(3000.0));
        assert_eq!(shown(&held[9]).input_per_s, Some(5000.0));
        let found = plateau(&held.iter().map(hold).collect::<Vec<_>>()).unwrap();
        assert!((found.level - 3000.0).abs() < 1.0, "{found:?}");
        assert!(found.begins.0 <= 3000.0 && 3000.0 <= found.begins.1, "{found:?}");
    }
}
