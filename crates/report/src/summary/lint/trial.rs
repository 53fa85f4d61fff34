//! Rules that the record of a single trial can break. Weighbridge keeps them by construction, so a
//! broken one is a fault of it or of the journal; that is why they are checked.

use weigh_model::event::TrialFinished;
use weigh_model::metrics::QUANTILES;
use weigh_model::numbers::{count, exact, percent, span};
use weigh_model::plan::Plan;
use weigh_model::{Arrival, Pattern, Rule, Warning};

use super::asked::Asked;

/// The rules that `trial` breaks.
pub fn warnings(trial: &TrialFinished, plan: &Plan) -> Vec<Warning> {
    let asked = Asked::of(&trial.point, plan);
    let found = [
        (Rule::L02, throughput_from_latency(trial, &asked)),
        (Rule::L05, grid(trial)),
        (Rule::L06, whole_counts(trial)),
        (Rule::L07, order(trial)),
        (Rule::L09, cpu_rate(trial, &asked)),
        (Rule::L12, errors(trial)),
        (Rule::L14, headers(trial)),
        (Rule::L15, connections(trial, &asked)),
        (Rule::L19, generator(trial, &asked)),
    ];
    found.into_iter().filter_map(|(rule, seen)| Some(Warning::Broken(rule, seen?))).collect()
}

/// L02: in a closed loop with several in flight, throughput is one over the mean response time.
fn throughput_from_latency(trial: &TrialFinished, asked: &Asked) -> Option<String> {
    // What the server or the pattern allowed may be less than what was asked for.
    let granted = ["in_flight", "receive_maximum"].map(|name| trial.granted.get(name).copied());
    let granted = granted.into_iter().flatten().min().unwrap_or(u64::MAX);
    let in_flight = asked.connections * asked.window.unwrap_or(1).min(granted);
    if asked.arrival != Arrival::Closed || in_flight < 2 || trial.ledger.lost != Some(0) {
        return None;
    }
    let rate = metric(trial, "throughput_in_per_s")?;
    let mean_ns = metric(trial, "response_time_ns.mean")?;
    let product = rate * mean_ns / 1e9;
    // With a pause between messages, the average in flight may be one.
    let is_inverse = (product - 1.0).abs() <= INVERSE_MAX && asked.think.0 == 0;
    is_inverse.then(|| {
        format!(
            "throughput is one over the mean response time (product {product:.4}), with \
             {in_flight} in flight"
        )
    })
}

/// L05: all quantiles are whole steps apart.
fn grid(trial: &TrialFinished) -> Option<String> {
    ["response_time_ns", "delivery_time_ns"].into_iter().find_map(|time| {
        let values: Vec<f64> =
            QUANTILES.iter().filter_map(|(q, _)| metric(trial, &format!("{time}.{q}"))).collect();
        let (first, last) = (*values.first()?, *values.last()?);
        if values.len() < QUANTILES.len() {
            return None;
        }
        let step = GRIDS_NS.into_iter().find(|step| {
            let slack = GRID_SLACK * step;
            let is_whole = |value: f64| {
                let over = (value - first).rem_euclid(*step);
                over.min(step - over) <= slack
            };
            // Buckets must be narrow compared with the step, and the values on different steps, for
            // a decision.
            let is_fine = BUCKET_SHARE * last <= slack;
            let are_apart = values.windows(2).all(|pair| pair[1] - pair[0] > 0.5 * step);
            is_fine && are_apart && values.iter().all(|value| is_whole(*value))
        })?;
        Some(format!("{time}: all quantiles are whole steps of {} apart", span(step)))
    })
}

/// L06: the acceptance ratio is not that of whole counts.
fn whole_counts(trial: &TrialFinished) -> Option<String> {
    let ratio = metric(trial, "acceptance_ratio")?;
    let (delivered, sent) = (trial.ledger.delivered?, trial.ledger.sent);
    let counted = delivered as f64 / sent.max(1) as f64;
    ((ratio - counted).abs() > RATIO_SLACK).then(|| {
        let (delivered, sent) = (count(delivered), count(sent));
        format!("acceptance_ratio is {ratio}, but {delivered} of {sent} were delivered: {counted}")
    })
}

/// L07: statistics of one quantity in an impossible order.
fn order(trial: &TrialFinished) -> Option<String> {
    let names = trial.metrics.keys().filter_map(|name| name.strip_suffix(".max"));
    // Shares of lateness are differences of separate statistics, and have no order.
    let names = names.filter(|name| !name.ends_with("_time_lag_ns"));
    names.into_iter().find_map(|name| {
        let of = |part: &str| metric(trial, &format!("{name}.{part}"));
        let max = of("max")?;
        let mean = of("mean").filter(|mean| *mean > max * (1.0 + ORDER_SLACK));
        if let Some(mean) = mean {
            let (max, mean) = (exact(max), exact(mean));
            return Some(format!("{name}: the maximum {max} is below the mean {mean}"));
        }
        let mut before: Option<(&str, f64)> = None;
        for part in QUANTILES.iter().map(|(part, _)| part).chain(&["max"]) {
            let Some(value) = of(part) else { continue };
            if let Some((low, below)) = before
                && below > value * (1.0 + ORDER_SLACK)
            {
                let (below, value) = (exact(below), exact(value));
                return Some(format!("{name}: {low} {below} is above {part} {value}"));
            }
            before = Some((part, value));
        }
        None
    })
}

/// L09: a CPU percentage without the rate at which it was used.
fn cpu_rate(trial: &TrialFinished, asked: &Asked) -> Option<String> {
    let used = metric(trial, "target_cpu_percent.mean")?;
    let has_rate = trial.metrics.contains_key("throughput_in_per_s");
    // Nothing is sent over connections that are only held: there the rate is 0.
    (!has_rate && asked.pattern != Pattern::Hold && trial.ledger.sent > 0)
        .then(|| format!("the target used {} of its cores, at an unknown rate", percent(used)))
}

/// L12: more response times than confirmations, with errors among the answers.
fn errors(trial: &TrialFinished) -> Option<String> {
    let share = metric(trial, "errors_ratio").filter(|share| *share > ERRORS_MAX)?;
    let timed = trial.samples.get("response_time_ns").copied()?;
    let confirmed = trial.ledger.acknowledged;
    (timed > confirmed && confirmed > 0).then(|| {
        format!(
            "{} of the exchanges failed, and {} response times of {} confirmed messages include \
             some of them",
            percent(share * 100.0),
            count(timed),
            count(confirmed)
        )
    })
}

/// L14: fewer bytes of transport headers than the segments of the bodies need.
fn headers(trial: &TrialFinished) -> Option<String> {
    let header_bytes = metric(trial, "wire.header_bytes")?;
    let body_bytes = metric(trial, "body_bytes")? * trial.ledger.sent as f64;
    let segments = (body_bytes / SEGMENT_BYTES_MAX).ceil();
    let least = segments * TCP_HEADER_BYTES;
    (header_bytes < least).then(|| {
        let [header_bytes, segments, least] = [header_bytes, segments, least].map(exact);
        format!("{header_bytes} header bytes for {segments} segments, which need {least}")
    })
}

/// L15: connections were opened for the messages, although the plan keeps them.
fn connections(trial: &TrialFinished, asked: &Asked) -> Option<String> {
    let is_said = matches!(asked.pattern, Pattern::Session | Pattern::Hold)
        || trial.point.iter().any(|(key, value)| key.ends_with(".keep_alive") && *value == false);
    let opened = trial.samples.get("connect_time_ns").copied()?;
    let messages = trial.ledger.messages;
    let asked_for = asked.connections + asked.subscribers;
    let is_many = 2 * opened > messages && opened > 2 * asked_for;
    (is_many && !is_said && messages > 0).then(|| {
        let (opened, messages) = (count(opened), count(messages));
        format!(
            "{opened} connections were opened for {messages} messages (connections of the warm-up \
             included)"
        )
    })
}

/// L19: a load as fast as possible, without the generator's CPU.
fn generator(trial: &TrialFinished, asked: &Asked) -> Option<String> {
    let is_fastest = !asked.has_rate() && asked.pattern != Pattern::Hold && asked.think.0 == 0;
    let is_known = trial.metrics.contains_key("generator_cpu_percent.max");
    (is_fastest && !is_known && trial.metrics.contains_key("throughput_in_per_s"))
        .then(|| "load as fast as possible, and the generator's CPU was not recorded".to_owned())
}

/// A finite value of the trial.
fn metric(trial: &TrialFinished, name: &str) -> Option<f64> {
    trial.metrics.get(name).copied().filter(|value| value.is_finite())
}

/// Ticks that clocks and timers have, nanoseconds: kernels at 100, 250 and 1,000 Hz, and seconds.
const GRIDS_NS: [f64; 5] = [1e9, 1e8, 1e7, 4e6, 1e6];

/// The share of a step by which a value may miss it: by chance, five quantiles do so, four of them
/// free, once in 400,000.
const GRID_SLACK: f64 = 0.02;

/// The width of a bucket of recorded times, as a share of the value.
const BUCKET_SHARE: f64 = 0.001;

/// Largest difference of throughput x response time from 1 that counts as 1.
const INVERSE_MAX: f64 = 0.005;

/// Tolerance for rounding in binary and in buckets.
const RATIO_SLACK: f64 = 1e-9;

const ORDER_SLACK: f64 = 0.001;

/// The share of errors from which they matter in a latency.
const ERRORS_MAX: f64 = 0.001;

/// The largest segment: loopback, 65,536 bytes minus the headers of IPv4 and TCP.
const SEGMENT_BYTES_MAX: f64 = 65_496.0;

/// A TCP header without options (RFC 9293, section 3.1).
const TCP_HEADER_BYTES: f64 = 20.0;
