//! Share of the generator's own lateness in a trial's response and delivery times, quantile by
//! quantile: the quantile of the recorded times minus that of the same messages without it.

use std::collections::BTreeMap;

use weigh_model::Load;
use weigh_model::metrics::QUANTILES;
use weigh_stats::histogram::Histogram;
use weigh_stats::quantile::quantile_with_loss;

use crate::outcome::Outcome;

/// The share of every statistic that is finite and rests on enough messages, by metric name. A
/// loop without a schedule has no due times that the generator could be late for: it has none.
pub fn of(outcome: &Outcome, load: &Load) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::new();
    if !load.arrival.has_schedule() {
        return metrics;
    }
    let recorder = &outcome.shards.recorder;
    let response = (&recorder.response, recorder.response_lag.of_all(&recorder.service));
    let delivery = (&recorder.delivery, recorder.delivery_lag.of_all(&recorder.one_way));
    for (name, share, (times, without)) in [
        ("response_time_ns", "response_time_lag_ns", response),
        ("delivery_time_ns", "delivery_time_lag_ns", delivery),
    ] {
        if times.count() == 0 || times.count() != without.count() {
            continue;
        }
        let lost = outcome.ledger.infinite(name, load.delivers(), load.copies());
        let shares = shares(times, &without, lost);
        metrics.extend(shares.map(|(part, share_ns)| (format!("{share}.{part}"), share_ns)));
    }
    metrics
}

/// The share of each statistic, nanoseconds. A statistic that falls into the lost share has none.
fn shares(
    times: &Histogram,
    without: &Histogram,
    lost: u64,
) -> impl Iterator<Item = (&'static str, f64)> {
    let less = |with: Option<f64>, without: Option<f64>| Some((with? - without?).max(0.0));
    let samples = times.count() + lost;
    let bears = move |q: f64| samples as f64 >= 1.0 / (1.0 - q);
    let quantile = |(part, q): (&'static str, f64)| {
        let of = |times| quantile_with_loss(times, lost, q).map(|value| value as f64);
        (part, less(of(times), of(without)))
    };
    // Lost messages are infinite delay, and so are the mean and the maximum with them.
    let finite = |value: Option<f64>| value.filter(|_| lost == 0);
    let max = |times: &Histogram| times.max().map(|value| value as f64);
    let all = [
        ("mean", finite(less(times.mean(), without.mean()))),
        ("max", finite(less(max(times), max(without)))),
    ];
    let quantiles: Vec<_> =
        QUANTILES.into_iter().filter(|(_, q)| bears(*q)).map(quantile).collect();
    all.into_iter().chain(quantiles).filter_map(|(part, share)| Some((part, share?)))
}
