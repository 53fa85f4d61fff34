//! Emulates the output of autocannon. It samples its counts once a second (`sampleInt`), decides
//! only there that it is done, and reports the time until then; its rate is the mean of these
//! seconds (github.com/mcollina/autocannon, `tickInterval` in lib/run.js, v2 to v8). Its latencies
//! are whole milliseconds. With a rate it adds values that it did not measure, one for every
//! millisecond that a request took (`recordValueWithExpectedInterval` with `Math.ceil(1 / rate)`,
//! same file).

use std::collections::BTreeMap;

use weigh_model::{Load, Nanos};

use crate::emulate::comparison::{Comparison, Left, NOTHING, Row, ms, number};
use crate::emulate::counts::Counts;
use crate::emulate::trial_facts::TrialFacts;

/// Its sampling period.
pub const TICK: Nanos = Nanos::from_secs(1);

/// Number of samples in a run of this length, at least one.
pub fn ticks(length: Nanos) -> u64 {
    length.0.div_ceil(TICK.0).max(1)
}

/// Its time and its rate. Its run begins when it connects.
pub(crate) fn figures(told: &TrialFacts<'_>) -> BTreeMap<&'static str, f64> {
    let Some((first, last)) = told.between else { return BTreeMap::new() };
    let ticks = ticks(told.load.duration.unwrap_or(told.set_up + (last - first))) as f64;
    let per_s = told.answers() as f64 / (ticks * TICK.as_secs_f64());
    [("autocannon_time_s", ticks * TICK.as_secs_f64()), ("autocannon_per_s", per_s)].into()
}

/// Compares its lines with the exact figures.
pub fn compare(left: &Left<'_>) -> Comparison {
    let exact = left.times("response_time_ns");
    let told = Counts::of(&left.times("service_time_ns"), MS_NS)
        .and(&Counts::of(&left.times("error_time_ns"), MS_NS));
    let invented = if left.load.rate.is_some() { invented(&told) } else { Counts::default() };
    let added = invented.count();
    let told = told.and(&invented);
    let mut rows: Vec<Row> = [0.025, 0.5, 0.975, 0.99]
        .into_iter()
        .map(|q| {
            let name = format!("Latency {}%", number(q * 100.0));
            let theirs = told.quantile(q).map(|ms| ms as f64);
            Row::new(name, whole_ms(theirs), ms(exact.quantile(q).map(|ns| ns as f64)))
        })
        .collect();
    let max = told.max().map(|ms| ms as f64);
    rows.push(Row::new("Latency Avg", whole_ms(told.mean().map(up)), ms(exact.mean())));
    rows.push(Row::new("Latency Stdev", whole_ms(told.deviation(false).map(up)), NOTHING.into()));
    rows.push(Row::new("Latency Max", whole_ms(max), ms(exact.max().map(|ns| ns as f64))));
    rows.extend(rates(left));
    let requests = |count: String, time_s: Option<f64>| match time_s {
        Some(time_s) => format!("{count} in {} s", number(time_s)),
        None => NOTHING.to_owned(),
    };
    let sent = left.finished.ledger.sent;
    let theirs = requests(counted(sent + overcount(left.load)), left.metric("autocannon_time_s"));
    let exact = requests(number(sent as f64), exact_time_s(left));
    rows.push(Row::new("requests", theirs, exact));
    Comparison { tool: "autocannon", rows, why: why(left, &told, added) }
}

fn exact_time_s(left: &Left<'_>) -> Option<f64> {
    left.metric("transfer_time_s")
}

/// Its counts per second.
fn rates(left: &Left<'_>) -> Vec<Row> {
    let time_s = left.metric("autocannon_time_s").unwrap_or(1.0);
    let each = left.answers_each(TICK, Nanos::from_secs_f64(time_s));
    let each = Counts::of_values(each.unwrap_or_default());
    let middles = on_grid(&each, |(lowest, width)| lowest + width / 2);
    let highest = on_grid(&each, |(lowest, width)| lowest + width - 1);
    let shown = |value: Option<f64>| value.map_or_else(|| NOTHING.to_owned(), number);
    let mut rows: Vec<Row> = [0.01, 0.025, 0.5, 0.975]
        .into_iter()
        .map(|q| {
            let name = format!("Req/Sec {}%", number(q * 100.0));
            Row::new(name, shown(highest.quantile(q).map(|count| count as f64)), NOTHING.into())
        })
        .collect();
    let exact = left.metric("throughput_out_per_s");
    let mean = middles.mean().or(left.metric("autocannon_per_s")).map(up);
    // Seconds without an answer do not count as the minimum.
    let least = each.iter().map(|own| own.0).find(|count| *count > 0).or(each.min());
    rows.push(Row::new("Req/Sec Avg", shown(mean), shown(exact)));
    rows.push(Row::new("Req/Sec Stdev", shown(middles.deviation(false).map(up)), NOTHING.into()));
    rows.push(Row::new("Req/Sec Min", shown(least.map(|count| count as f64)), NOTHING.into()));
    rows
}

/// The counts of seconds are in an HdrHistogram of three digits (lib/histUtil.js): from 2,048 on
/// 1,024 steps for each power of two. Each value becomes what `of` makes of the lowest one of its
/// step and the step's width.
fn on_grid(each: &Counts, of: fn((u64, u64)) -> u64) -> Counts {
    let mut told = Counts::default();
    for (value, count) in each.iter() {
        let powers = (u64::BITS - value.leading_zeros()).saturating_sub(GRID_BITS);
        let width = 1 << powers;
        told.add(of((value / width * width, width)), count);
    }
    told
}

/// Requests that it reports as sent and did not send: with a rate it counts a connection's whole
/// share when it makes the connection, and then each request but the first again
/// (`initialiseClients` in lib/run.js).
fn overcount(load: &Load) -> u64 {
    let first = u64::from(load.window.unwrap_or(1));
    let shares = (0..load.connections).filter_map(|client| load.share_of_second(client));
    shares.map(|share| share.saturating_sub(first)).sum()
}

/// Formats a count like its last line: in thousands from 1,000 on (lib/format.js).
fn counted(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        _ => format!("{}k", (count + 500) / 1_000),
    }
}

/// Explains the largest difference in this run.
fn why(left: &Left<'_>, told: &Counts, added: u64) -> String {
    let (theirs, exact) = (left.metric("autocannon_time_s"), exact_time_s(left));
    let rate = left.metric("throughput_out_per_s").unwrap_or(0.0);
    let per_s = left.metric("autocannon_per_s").unwrap_or(0.0);
    let times = left.times("response_time_ns");
    let median_ns = times.quantile(0.5).unwrap_or(0) as f64;
    match theirs.zip(exact) {
        Some((theirs, exact)) if left.load.messages.is_some() && theirs > LATE * exact => format!(
            "All requests were answered after {} s; autocannon checks only once a second, so it \
             reports {} s, and a mean of {}/s where {}/s were done.",
            number(exact),
            number(theirs),
            number(per_s),
            number(rate),
        ),
        _ if added > 0 => format!(
            "With a rate autocannon assumes that every connection owed a request each \
             millisecond: {} of the {} latencies in its table were never measured, and its median \
             is {} ms where half of the requests took {} or less from when they were due.",
            number(added as f64),
            number(told.count() as f64),
            told.quantile(0.5).unwrap_or(0),
            ms(Some(median_ns)),
        ),
        _ if median_ns < MS_NS as f64 => format!(
            "autocannon truncates latencies to whole milliseconds: half of the answers came \
             within {}, and it reports {} ms; both wait for an answer before the next request, so \
             the delay behind a slow one is in neither (weigh compare -R counts it).",
            ms(Some(median_ns)),
            told.quantile(0.5).unwrap_or(0),
        ),
        _ => format!(
            "Both wait for an answer before the next request: while the slowest took {}, {} \
             connections sent nothing that could have waited, so that delay is in neither (weigh \
             compare -R counts it); autocannon reports whole milliseconds.",
            ms(times.max().map(|ns| ns as f64)),
            left.load.connections,
        ),
    }
}

/// The values that it adds with a rate: for a request that took v ms, v - 1, v - 2 and so on down
/// to 1.
fn invented(measured: &Counts) -> Counts {
    let mut added = Counts::default();
    let mut longer = 0;
    let mut above = measured.max().unwrap_or(0);
    for (value, count) in measured.iter().rev() {
        // Every longer value adds each value from here up to the next measured one.
        for between in value.max(1)..above {
            added.add(between, longer);
        }
        (longer, above) = (longer + count, value.max(1).min(above));
    }
    for rest in 1..above {
        added.add(rest, longer);
    }
    added
}

/// Rounds up to hundredths, like its means.
fn up(value: f64) -> f64 {
    (value * 100.0).ceil() / 100.0
}

fn whole_ms(value: Option<f64>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |ms| format!("{} ms", number(ms)))
}

/// Ratio from which on the time until its last sample is the largest difference.
const LATE: f64 = 1.05;

const MS_NS: u64 = 1_000_000;

/// Bits of the counts that are exact.
const GRID_BITS: u32 = 11;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulate::comparison::tests::{finished, tenths};
    use crate::emulate::figures::figures;
    use crate::emulate::trial_facts::tests::{load, with};
    use serde_json::json;
    use weigh_model::Emulation;
    use weigh_stats::histogram::Histogram;

    /// 100 requests that take 5 ms, and 10,000 that take 900: one look each. What takes 1.2 s, two.
    #[test]
    fn it_ends_in_its_own_second() {
        for (count, length_ms, time_s, per_s) in
            [(100, 5, 1.0, 100.0), (10_000, 900, 1.0, 10_000.0), (1_200, 1_200, 2.0, 600.0)]
        {
            let between = (Nanos::from_millis(40), Nanos::from_millis(40 + length_ms));
            with(&load(&json!({})), (count, Nanos(50_000)), between, |told| {
                let figures = figures(told, Emulation::Autocannon);
                assert_eq!(figures["autocannon_time_s"], time_s, "{count}");
                assert_eq!(figures["autocannon_per_s"], per_s, "{count}");
            });
        }
    }

    /// 200 answers of 40 µs within 5 ms: its second, its mean, no latency at all, and why.
    #[test]
    fn each_line_is_compared_with_the_exact_figure() {
        let load = load(&json!({ "messages": 200 }));
        let mut times = Histogram::new();
        times.record_n(40_000, 200);
        let metrics = json!({
            "autocannon_time_s": 1.0, "autocannon_per_s": 200.0, "transfer_time_s": 0.005,
            "throughput_out_per_s": 40_000.0,
        });
        let trial = finished(metrics, &times);
        let intervals = tenths(&[200]);
        let told = compare(&Left { load: &load, finished: &trial, intervals: &intervals });
        let row = |name: &str| told.rows.iter().find(|row| row.name == name).unwrap();
        let (median, rate) = (row("Latency 50%"), row("Req/Sec Avg"));
        assert_eq!((&*median.tool, &*median.exact), ("0 ms", "0.04 ms"));
        assert_eq!((&*rate.tool, &*rate.exact), ("200", "40,000"));
        let all = row("requests");
        assert_eq!((&*all.tool, &*all.exact), ("200 in 1 s", "200 in 0.005 s"));
        assert!(told.why.contains("0.005 s") && told.why.contains("40,000/s"), "{}", told.why);
    }

    /// 5,001 is in the step from 5,000 to 5,003; below 2,048 each count is its own.
    #[test]
    fn counts_of_seconds_lie_on_a_grid_of_three_digits() {
        let each = Counts::of_values([2_047, 5_001, 70_000]);
        let lowest = on_grid(&each, |(lowest, _)| lowest);
        let highest = on_grid(&each, |(lowest, width)| lowest + width - 1);
        assert_eq!(lowest, Counts::of_values([2_047, 5_000, 69_952]));
        assert_eq!(highest, Counts::of_values([2_047, 5_003, 70_015]));
    }

    /// A share of ten for each of four: nine of each are counted twice.
    #[test]
    fn a_share_is_counted_when_the_connection_is_made() {
        let paced = json!({ "arrival": "each-second", "rate": "40/s", "duration": "3s" });
        assert_eq!(overcount(&load(&paced)), 36);
        assert_eq!(overcount(&load(&json!({}))), 0);
        assert_eq!((counted(999), counted(1_499)), ("999".to_owned(), "1k".to_owned()));
    }

    /// A second in which nothing arrived is not a minimum, but it is in the mean.
    #[test]
    fn seconds_of_nothing_are_in_the_mean_alone() {
        let load = load(&json!({ "duration": "2s" }));
        let mut times = Histogram::new();
        times.record_n(40_000, 200);
        let metrics = json!({ "autocannon_time_s": 2.0, "autocannon_per_s": 100.0 });
        let trial = finished(metrics, &times);
        let intervals = tenths(&[&[200][..], &[0; 19]].concat());
        let rows = rates(&Left { load: &load, finished: &trial, intervals: &intervals });
        let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap().tool.clone();
        assert_eq!((row("Req/Sec Avg"), row("Req/Sec Min")), ("100".into(), "200".into()));
        assert_eq!(row("Req/Sec Stdev"), "100");
    }

    #[test]
    fn a_run_of_ten_seconds_is_looked_at_ten_times() {
        let load = load(&json!({ "duration": "10s" }));
        let between = (Nanos(0), Nanos::from_millis(10_003));
        with(&load, (50_000, Nanos(50_000)), between, |told| {
            let figures = figures(told, Emulation::Autocannon);
            assert_eq!(figures["autocannon_time_s"], 10.0);
            assert_eq!(figures["autocannon_per_s"], 5_000.0);
        });
    }

    /// Of one request of 5 ms it adds 4, 3, 2 and 1; of one of 2 ms a 1; of those below 2 nothing.
    #[test]
    fn a_rate_adds_a_value_for_every_millisecond() {
        let counts = |values: &[u64]| Counts::of_values(values.iter().copied());
        assert_eq!(invented(&counts(&[5])), counts(&[4, 3, 2, 1]));
        assert_eq!(invented(&counts(&[0, 1, 2, 5])), counts(&[1, 4, 3, 2, 1]));
        assert_eq!(invented(&counts(&[0, 1])).count(), 0);
    }
}
