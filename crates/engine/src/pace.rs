//! The limit of a trial's pace, read from its record: the metrics contain how full everything was.

use weigh_model::binding::GENERATOR_FULL_PERCENT;
use weigh_model::binding::{Bound, Pace};
use weigh_model::event::TrialFinished;
use weigh_model::{Arrival, Load, Pattern, Warning};
use weigh_stats::histogram::Histogram;

/// Returns the pace of a trial, and how full everything was.
pub fn of(finished: &TrialFinished, load: &Load) -> Pace {
    let metric = |name: &str| finished.metrics.get(name).copied().filter(|own| own.is_finite());
    let is_open = load.arrival.is_open();
    let messages = finished.ledger.messages as f64;
    let offered = metric("window_s").map(|seconds| messages / seconds).filter(|_| is_open);
    // Between the messages of a closed loop with pauses the slots are free.
    let is_always_full = !is_open && load.think.0 == 0 && load.pattern != Pattern::Hold;
    let held_up = if is_always_full { Some(1.0) } else { metric("held_up_ratio") };
    let ways = [metric("path.up.asked_ratio"), metric("path.down.asked_ratio")];
    let in_flight = finished.granted.get("in_flight").copied();
    Pace {
        offered_per_s: offered,
        achieved_per_s: metric("throughput_in_per_s").unwrap_or(0.0),
        edge_per_s: metric("window_s").map_or(0.0, |seconds| EDGE_MESSAGES / seconds),
        connections: load.connections,
        in_flight: in_flight.and_then(|own| u32::try_from(own).ok()),
        is_window_asked: load.window.is_some() && load.window.map(u64::from) == in_flight,
        service_ns: metric("service_time_ns.mean"),
        fastest_ns: fastest_ns(finished),
        held_up,
        answers_per_wakeup: metric("answers_per_wakeup"),
        generator_percent: metric("generator_cpu_percent.max"),
        target_percent: metric("target_cpu_percent.mean"),
        path_asked: ways.into_iter().flatten().reduce(f64::max),
        is_behind: finished.warnings.iter().any(|warning| warning.code == "backlog"),
    }
}

fn fastest_ns(finished: &TrialFinished) -> Option<f64> {
    let recorded = Histogram::from_base64(finished.histograms.get("service_time_ns")?).ok()?;
    recorded.min().map(|ns| ns as f64)
}

/// Records what set the pace, in place of an earlier diagnosis: more may be known now. A burst
/// leaves as fast as it can, and a closed loop as fast as answers come, so that only a full
/// generator is recorded for them.
pub fn diagnose(finished: &mut TrialFinished, load: &Load) {
    finished.warnings.retain(|warning| !CODES.contains(&warning.code.as_str()));
    if load.arrival == Arrival::Burst {
        return;
    }
    let pace = of(finished, load);
    let is_full = pace.generator_percent.is_some_and(|own| own >= GENERATOR_FULL_PERCENT);
    let bound = pace.bound().filter(|bound| match bound {
        Bound::Slots | Bound::Path(_) => pace.offered_per_s.is_some() || is_full,
        Bound::Target(_) => pace.offered_per_s.is_some(),
        Bound::Generator(_) => true,
    });
    let rates = pace.offered_per_s.filter(|_| pace.fell_short());
    let is_told = bound.is_some_and(|bound| !matches!(bound, Bound::Generator(_)));
    let rates = rates.map(|offered| Warning::RateNotReached(offered, pace.achieved_per_s));
    let warnings =
        [rates.filter(|_| !is_told), bound.map(|bound| Warning::Bound(Box::new(pace), bound))];
    finished.warnings.extend(warnings.iter().flatten().map(Warning::record));
}

/// Messages due at the very end of a window that a moment's delay carries over it.
const EDGE_MESSAGES: f64 = 2.0;

/// Codes of the warnings of [`diagnose`].
const CODES: [&str; 5] = [
    "rate-not-reached",
    "generator-limited",
    "round-trip-limited",
    "target-limited",
    "path-limited",
];
