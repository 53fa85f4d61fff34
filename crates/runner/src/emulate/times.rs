//! Two averages that need no tool: messages over the sum of their times, and one average over a run
//! whose load was still rising.

use std::collections::BTreeMap;

use weigh_stats::histogram::Histogram;

use crate::emulate::trial_facts::TrialFacts;

/// Messages divided by the sum of their times. With one message in flight it is the rate; with N in
/// flight it is N times too small.
pub(crate) fn sum_of_times(told: &TrialFacts<'_>) -> BTreeMap<&'static str, f64> {
    let confirmed = told.calls.unwrap_or(told.service);
    let times = if confirmed.is_empty() { told.one_way } else { confirmed };
    let mean_ns = times.mean().filter(|mean| *mean > 0.0);
    mean_ns.map(|mean_ns| ("sum_of_times_per_s", 1e9 / mean_ns)).into_iter().collect()
}

/// The aggregate report of JMeter: all samples of a run, errors and ramp included, over the time
/// from the start of the first to the end of the last (JMeter's user manual, "Aggregate Report").
/// Without confirmations, a sample ends when it is sent, and has no useful time.
pub(crate) fn ramp_average(told: &TrialFacts<'_>) -> BTreeMap<&'static str, f64> {
    let mut samples = told.calls.unwrap_or(told.service).clone();
    samples.merge(told.errors);
    let is_confirmed = !samples.is_empty();
    let count = if is_confirmed { samples.count() } else { told.sent };
    let span = match (told.between, told.last_sent) {
        (Some((first, last)), _) if is_confirmed => Some(last - first),
        (Some((first, _)), Some(last_sent)) => Some(last_sent - first),
        _ => None,
    };
    let mut figures = BTreeMap::new();
    if let Some(span) = span.filter(|span| span.0 > 0) {
        figures.insert("ramp_average_per_s", count as f64 / span.as_secs_f64());
    }
    figures.extend(is_confirmed.then(|| parts(&samples)).into_iter().flatten());
    figures
}

fn parts(samples: &Histogram) -> impl Iterator<Item = (&'static str, f64)> {
    let quantile = |q| samples.quantile(q).map(|value| value as f64);
    let all = [
        ("ramp_average_time_ns.mean", samples.mean()),
        ("ramp_average_time_ns.p50", quantile(0.5)),
        ("ramp_average_time_ns.p90", quantile(0.9)),
        ("ramp_average_time_ns.max", samples.max().map(|max| max as f64)),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulate::figures::figures;
    use crate::emulate::trial_facts::tests::{load, with};
    use serde_json::json;
    use weigh_model::{Emulation, Nanos};

    /// Ten loops of 500 µs each for a second: 20,000 messages, and 2,000/s by their sum.
    #[test]
    fn the_sum_of_times_is_as_many_times_too_small_as_there_are_loops() {
        let between = (Nanos(0), Nanos::from_secs(1));
        with(&load(&json!({})), (20_000, Nanos::from_micros(500)), between, |told| {
            let figure = figures(told, Emulation::SumOfTimes)["sum_of_times_per_s"];
            assert!((figure / 2_000.0 - 1.0).abs() < 0.001, "{figure}");
        });
    }

    /// Samples of a light and of a heavy load, and errors that came fast: one mean of all three.
    #[test]
    fn the_ramp_is_in_the_average_and_errors_too() {
        let (mut service, mut errors) = (Histogram::new(), Histogram::new());
        service.record_n(1_000_000, 500);
        service.record_n(9_000_000, 300);
        errors.record_n(2_000_000, 200);
        let load = load(&json!({ "arrival": "ramp:2s", "duration": "2s" }));
        let between = (Nanos::from_secs(1), Nanos::from_secs(3));
        with(&load, (1, Nanos(1)), between, |told| {
            let told = TrialFacts { service: &service, errors: &errors, ..*told };
            let figures = figures(&told, Emulation::RampAverage);
            assert_eq!(figures["ramp_average_per_s"], 500.0);
            let mean = figures["ramp_average_time_ns.mean"];
            assert!((mean / 3.6e6 - 1.0).abs() < 0.001, "{mean}");
            let median = figures["ramp_average_time_ns.p50"];
            assert!((median / 1e6 - 1.0).abs() < 0.001, "{median}");
        });
    }

    /// 300 µs to connect and 200 µs to the answer are a call of 500 µs for its caller.
    #[test]
    fn connecting_for_every_message_is_in_its_time() {
        let mut calls = Histogram::new();
        calls.record_n(500_000, 20_000);
        let between = (Nanos(0), Nanos::from_secs(1));
        with(&load(&json!({})), (20_000, Nanos::from_micros(200)), between, |told| {
            let told = TrialFacts { calls: Some(&calls), ..*told };
            let figure = figures(&told, Emulation::SumOfTimes)["sum_of_times_per_s"];
            assert!((figure / 2_000.0 - 1.0).abs() < 0.001, "{figure}");
            let mean = figures(&told, Emulation::RampAverage)["ramp_average_time_ns.mean"];
            assert!((mean / 5e5 - 1.0).abs() < 0.001, "{mean}");
        });
    }

    #[test]
    fn what_nobody_confirms_is_counted_by_sending() {
        let none = Histogram::new();
        let load = load(&json!({ "arrival": "ramp:2s", "duration": "2s" }));
        with(&load, (1, Nanos(1)), (Nanos(0), Nanos::from_secs(9)), |told| {
            let last_sent = Some(Nanos::from_secs(2));
            let told = TrialFacts { service: &none, sent: 140_000, last_sent, ..*told };
            let figures = figures(&told, Emulation::RampAverage);
            assert_eq!(figures, [("ramp_average_per_s", 70_000.0)].into());
        });
    }
}
