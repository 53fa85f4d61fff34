//! Emulates the output of wrk, and of wrk2 with a rate. wrk corrects its latencies: it assumes that
//! requests were due at the mean interval between requests of a connection, and adds values for
//! requests that a slow one would have delayed (github.com/wg/wrk, `main` in src/wrk.c and
//! `stats_correct` in src/stats.c). Its requests per second are of one thread, the mean of counts
//! of 100 ms.
//!
//! wrk2 (github.com/giltene/wrk2, commit 0052ff8) counts from the due time, as Weighbridge does.
//! After ten seconds, and 5 ms for each connection of a thread, it calibrates: it discards the
//! latencies recorded so far (`calibrate` in src/wrk.c), and starts to sample the rate of its
//! threads. A shorter run keeps all its latencies and samples no rate. A record here has the times
//! of the whole run, so wrk2's latencies of a longer run cannot be computed from it.

use weigh_model::Nanos;

use crate::emulate::comparison::{Comparison, Left, NOTHING, Row, ms, number};
use crate::emulate::counts::Counts;

/// The options of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Threads that share the connections.
    pub threads: u32,
    /// True if the distribution of latencies is printed.
    pub is_detailed: bool,
}

/// Compares its lines with the exact figures.
pub fn compare(left: &Left<'_>, asked: Asked) -> Comparison {
    let is_paced = left.load.rate.is_some();
    // Every answer has its time there, whatever its status; errors have the time since sending.
    let errors = Counts::of(&left.times("error_time_ns"), US_NS);
    let measured = Counts::of(&left.times("service_time_ns"), US_NS).and(&errors);
    let answers = measured.count();
    let from_due = Counts::of(&left.times("response_time_ns"), US_NS).and(&errors);
    let theirs = if is_paced { from_due } else { corrected(&measured, cycle_us(left, answers)) };
    let calibrated = is_paced.then(|| calibrated_after(left, asked.threads)).flatten();
    let exact = left.times("response_time_ns");
    let us = |value: Option<f64>| match calibrated {
        None => ms(value.map(|us| us * 1e3)),
        Some(_) => NOTHING.to_owned(),
    };
    let per_thread = match (is_paced, calibrated) {
        (false, _) => per_thread(answers, left.load.duration, asked.threads),
        (true, None) => NOTHING.to_owned(),
        (true, Some(after)) => sampled(left, after, asked.threads),
    };
    let deviation = theirs.deviation(true);
    let near = deviation.filter(|_| calibrated.is_none()).map(|own| theirs.within(own));
    let mut rows = vec![
        Row::new("Latency Avg", us(theirs.mean()), ms(exact.mean())),
        Row::new("Latency Stdev", us(deviation), NOTHING.into()),
        Row::new("Latency Max", us(theirs.max().map(|us| us as f64)), longest(left)),
        Row::new("Latency +/- Stdev", percent(near), NOTHING.into()),
        Row::new("Req/Sec Avg", per_thread, NOTHING.into()),
    ];
    if asked.threads == 1 && !is_paced {
        rows.extend(looks(left));
    }
    let quantiles: &[f64] = match (asked.is_detailed, is_paced) {
        (false, _) => &[],
        (true, false) => &[0.5, 0.75, 0.9, 0.99],
        (true, true) => &[0.5, 0.75, 0.9, 0.99, 0.999, 0.9999],
    };
    rows.extend(quantiles.iter().map(|q| {
        let value = quantile(&theirs, *q, is_paced).map(|us| us as f64);
        let exact = ms(exact.quantile(*q).map(|ns| ns as f64));
        Row::new(format!("Latency {}%", number(q * 100.0)), us(value), exact)
    }));
    let rate = |seconds: Option<f64>| {
        let per_s = seconds.filter(|seconds| *seconds > 0.0).map(|s| answers as f64 / s);
        per_s.map_or_else(|| NOTHING.to_owned(), number)
    };
    let run_s = left.load.duration.map(Nanos::as_secs_f64);
    rows.push(Row::new("requests", number(answers as f64), number(answers as f64)));
    // Answers after the end of the load do not count into a rate.
    let exact = left.metric("throughput_out_per_s").filter(|_| left.load.arrival.is_open());
    let exact = exact.map_or_else(|| rate(left.metric("window_s")), number);
    rows.push(Row::new("Requests/sec", rate(run_s), exact));
    let tool = if is_paced { "wrk2" } else { "wrk" };
    let why = match is_paced {
        true => why_paced(left, calibrated),
        false => why(left, &measured, &theirs),
    };
    Comparison { tool, rows, why }
}

fn longest(left: &Left<'_>) -> String {
    ms(left.times("response_time_ns").max().map(|ns| ns as f64))
}

/// wrk takes the value of rank `round(q n + 0.5)` (`stats_percentile` in src/stats.c); wrk2 has an
/// HdrHistogram.
fn quantile(all: &Counts, q: f64, is_paced: bool) -> Option<u64> {
    match is_paced {
        true => all.quantile(q),
        false => all.at_rank((q * all.count() as f64 + 0.5).round() as u64),
    }
}

/// Distribution of the rates of one thread per 100 ms; samples without answers are skipped
/// (`record_rate` in src/wrk.c). With several threads the share of each is unknown.
fn looks(left: &Left<'_>) -> [Row; 3] {
    let tenths = left.answers_each(TENTH, left.load.duration.unwrap_or_default());
    let per_s = |answers: u64| answers * 1_000_000_000 / TENTH.0;
    let rates = tenths.unwrap_or_default().into_iter().filter(|own| *own > 0).map(per_s);
    let rates = Counts::of_values(rates);
    let deviation = rates.deviation(true);
    let shown = |value: Option<f64>| value.map_or_else(|| NOTHING.to_owned(), number);
    let near = percent(deviation.map(|own| rates.within(own)));
    [
        Row::new("Req/Sec Stdev", shown(deviation), NOTHING.into()),
        Row::new("Req/Sec Max", shown(rates.max().map(|own| own as f64)), NOTHING.into()),
        Row::new("Req/Sec +/- Stdev", near, NOTHING.into()),
    ]
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| NOTHING.to_owned(), |share| format!("{:.2} %", 100.0 * share))
}

/// Time at which wrk2 discards what it has recorded; `None` if the run ends before.
fn calibrated_after(left: &Left<'_>, threads: u32) -> Option<Nanos> {
    let of_a_thread = u64::from(left.load.connections / threads.max(1));
    let after = Nanos(CALIBRATION.0 + of_a_thread * EACH_CONNECTION.0);
    left.load.duration.filter(|run| *run > after).map(|_| after)
}

/// The rate of a thread after its calibration, from the time series.
fn sampled(left: &Left<'_>, after: Nanos, threads: u32) -> String {
    let run = left.load.duration.unwrap_or_default();
    let tenths = left.answers_each(TENTH, run);
    let skipped = after.0.div_ceil(TENTH.0);
    let answers = tenths.map(|each| each.iter().skip(skipped as usize).sum::<u64>());
    let rest = Nanos(run.0.saturating_sub(skipped * TENTH.0));
    answers.map_or_else(|| NOTHING.to_owned(), |answers| per_thread(answers, Some(rest), threads))
}

/// Mean rate of one thread in this time, per second.
fn per_thread(answers: u64, time: Option<Nanos>, threads: u32) -> String {
    let seconds = time.map_or(0.0, Nanos::as_secs_f64);
    match seconds > 0.0 {
        true => number(answers as f64 / seconds / f64::from(threads.max(1))),
        false => NOTHING.to_owned(),
    }
}

/// Mean time from one request of a connection to the next, microseconds.
fn cycle_us(left: &Left<'_>, answers: u64) -> u64 {
    let of_each = answers / u64::from(left.load.connections.max(1));
    let run = left.load.duration.unwrap_or_default();
    run.0 / US_NS / of_each.max(1)
}

/// Corrects measured latencies: for one of n µs, with requests expected every e µs, it adds n - e,
/// n - 2 e and so on while they are above e.
fn corrected(measured: &Counts, expected_us: u64) -> Counts {
    let mut all = measured.clone();
    if expected_us == 0 {
        return all;
    }
    for (value, count) in measured.iter().filter(|(value, _)| *value >= 2 * expected_us) {
        let mut added = value - expected_us;
        while added > expected_us {
            all.add(added, count);
            added -= expected_us;
        }
    }
    all
}

fn why_paced(left: &Left<'_>, calibrated: Option<Nanos>) -> String {
    let run_s = left.load.duration.map_or(0.0, Nanos::as_secs_f64);
    match calibrated {
        Some(after) => format!(
            "Both count from the moment a request was due; wrk2 discards the latencies of its \
             first {} s, {} % of this run, to calibrate itself. The exact column includes \
             them, and they cannot be removed afterwards, so the latencies of wrk2 cannot be \
             computed.",
            number(after.as_secs_f64()),
            number(100.0 * after.as_secs_f64() / run_s),
        ),
        None => format!(
            "Both count from the moment a request was due, so they agree. wrk2 calibrates itself \
             after {} s and samples the rate of its threads only from then on; this run lasted {} \
             s, so it has no such rate.",
            number(CALIBRATION.as_secs_f64()),
            number(run_s),
        ),
    }
}

fn why(left: &Left<'_>, measured: &Counts, theirs: &Counts) -> String {
    let exact = |q: f64| ms(left.times("response_time_ns").quantile(q).map(|ns| ns as f64));
    let told = |q: f64| ms(quantile(theirs, q, false).map(|us| us as f64 * 1e3));
    let added = theirs.count().saturating_sub(measured.count());
    if added > 0 {
        return format!(
            "wrk adds {} latencies that it did not measure, as if requests had been due every {} \
             whatever the server did: its 99th percentile is {}, and {} was measured. In a closed \
             loop nothing was due while a connection waited; weigh compare -R offers a rate and \
             counts the waiting time.",
            number(added as f64),
            ms(Some(cycle_us(left, measured.count()) as f64 * 1e3)),
            told(0.99),
            exact(0.99),
        );
    }
    format!(
        "No answer took twice the mean cycle of {}, so wrk's correction adds nothing and the \
         figures agree; both wait for an answer before the next request, so the delay behind a \
         slow one is in neither (weigh compare -R counts it).",
        ms(Some(cycle_us(left, measured.count()) as f64 * 1e3)),
    )
}

const US_NS: u64 = 1_000;

/// `CALIBRATE_DELAY_MS` of wrk2's src/main.h.
const CALIBRATION: Nanos = Nanos::from_secs(10);

/// Added per connection of a thread (`thread_main` in src/wrk.c).
const EACH_CONNECTION: Nanos = Nanos::from_millis(5);

/// Interval of the time series that these commands record.
const TENTH: Nanos = Nanos::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulate::comparison::tests::{finished, tenths};
    use crate::emulate::trial_facts::tests::load;
    use serde_json::json;
    use weigh_model::event::Interval;
    use weigh_stats::histogram::Histogram;

    /// The loop of the tool's source, on an array as it has one.
    fn as_in_the_source(values: &[u64], expected: u64) -> Counts {
        let max = *values.iter().max().unwrap();
        let mut data = vec![0u64; max as usize + 1];
        values.iter().for_each(|value| data[*value as usize] += 1);
        for n in expected * 2..=max {
            let count = data[n as usize];
            let mut m = n as i64 - expected as i64;
            while count > 0 && m > expected as i64 {
                data[m as usize] += count;
                m -= expected as i64;
            }
        }
        let mut counts = Counts::default();
        let seen = data.iter().enumerate().filter(|(_, count)| **count > 0);
        seen.for_each(|(value, count)| counts.add(value as u64, *count));
        counts
    }

    #[test]
    fn the_correction_is_that_of_the_source() {
        for (values, expected) in
            [(&[100, 110, 90, 1_000, 250][..], 100), (&[5, 5, 6], 5), (&[7, 700, 701, 699], 7)]
        {
            let counts = Counts::of_values(values.iter().copied());
            assert_eq!(corrected(&counts, expected), as_in_the_source(values, expected));
        }
    }

    /// Four connections, 1 ms each, one stall of 100 ms in a second: what is added, and why.
    #[test]
    fn each_line_is_compared_with_the_exact_figure() {
        let load = load(&json!({ "duration": "1s" }));
        let mut times = Histogram::new();
        times.record_n(1_000_000, 3_990);
        times.record_n(100_000_000, 10);
        let trial = finished(json!({ "window_s": 1.0 }), &times);
        let left = Left { load: &load, finished: &trial, intervals: &[] };
        let told = compare(&left, Asked { threads: 2, is_detailed: true });
        let row = |name: &str| told.rows.iter().find(|row| row.name == name).unwrap();
        assert_eq!((&*row("Req/Sec Avg").tool, &*row("Requests/sec").tool), ("2,000", "4,000"));
        assert_eq!((&*row("Latency 50%").tool, &*row("Latency 50%").exact), ("1 ms", "1 ms"));
        let high = row("Latency 99%");
        assert_eq!(&*high.exact, "1 ms");
        assert_ne!(high.tool, high.exact, "980 values were added to 4,000");
        assert!(told.why.contains("latencies that it did not measure"), "{}", told.why);
        let plain = compare(&left, Asked { threads: 2, is_detailed: false });
        assert!(plain.rows.len() < told.rows.len());
    }

    /// Four connections on two threads calibrate after 10.01 s: a shorter run keeps its latencies
    /// and has no rate of a thread, a longer one has the rate of what is left, and no latencies.
    #[test]
    fn wrk2_has_latencies_only_of_a_run_that_it_does_not_calibrate_in() {
        let mut times = Histogram::new();
        times.record_n(1_000_000, 4_000);
        let trial = finished(json!({ "window_s": 12.0 }), &times);
        let told = |duration: &str, intervals: &[Interval]| {
            let load = load(&json!({ "duration": duration, "arrival": "constant", "rate": "9/s" }));
            let left = Left { load: &load, finished: &trial, intervals };
            let told = compare(&left, Asked { threads: 2, is_detailed: true });
            let row = |name: &str| {
                let row = told.rows.iter().find(|row| row.name == name).unwrap();
                (row.tool.clone(), row.exact.clone())
            };
            assert_eq!(told.tool, "wrk2");
            (row("Latency 99%"), row("Latency Avg").0, row("Req/Sec Avg").0, told.why)
        };
        let both = |tool: &str, exact: &str| (tool.to_owned(), exact.to_owned());
        let (high, mean, rate, why) = told("10s", &[]);
        assert_eq!((high, &*mean, &*rate), (both("1 ms", "1 ms"), "1 ms", "-"));
        assert!(why.contains("no such rate"), "{why}");
        // A tenth of a second each: nothing but 50 answers in each after the calibration counts.
        let intervals = tenths(&[vec![10; 101], vec![50; 19]].concat());
        let (high, mean, rate, why) = told("12s", &intervals);
        assert_eq!((high, &*mean, &*rate), (both("-", "1 ms"), "-", "250"));
        assert!(why.contains("cannot be removed"), "{why}");
        let (_, _, rate, _) = told("12s", &[]);
        assert_eq!(rate, "-", "no time series");
    }

    /// A server that answers with errors alone: the tool reports their latencies, and exact ones of
    /// messages there are none.
    #[test]
    fn answers_that_are_errors_have_latencies_too() {
        let load = load(&json!({ "duration": "1s" }));
        let mut times = Histogram::new();
        times.record_n(2_000_000, 100);
        let mut trial = finished(json!({ "window_s": 1.0 }), &Histogram::new());
        trial.histograms.insert("error_time_ns".to_owned(), times.to_base64());
        let left = Left { load: &load, finished: &trial, intervals: &[] };
        let told = compare(&left, Asked { threads: 2, is_detailed: true });
        let row = |name: &str| told.rows.iter().find(|row| row.name == name).unwrap();
        let (median, all) = (row("Latency 50%"), row("requests"));
        assert_eq!((&*median.tool, &*median.exact, &*all.tool), ("2 ms", "-", "100"));
    }

    /// Ten values: half of them have a rank of round(5.5) = 6, where HdrHistogram has 5.
    #[test]
    fn quantiles_have_the_rank_of_the_source() {
        let counts = Counts::of_values(1..=10);
        assert_eq!([false, true].map(|own| quantile(&counts, 0.5, own)), [Some(6), Some(5)]);
        assert_eq!([0.9, 0.99].map(|q| quantile(&counts, q, false)), [Some(10), Some(10)]);
    }

    /// One thread that answered 40 and 60 in a tenth each, and nothing in the third.
    #[test]
    fn one_thread_has_the_rates_of_its_looks() {
        let load = load(&json!({ "duration": "300ms" }));
        let mut times = Histogram::new();
        times.record_n(1_000_000, 100);
        let trial = finished(json!({ "window_s": 0.3 }), &times);
        let intervals = tenths(&[40, 60, 0]);
        let left = Left { load: &load, finished: &trial, intervals: &intervals };
        let told = compare(&left, Asked { threads: 1, is_detailed: false });
        let row = |name: &str| told.rows.iter().find(|row| row.name == name).unwrap().tool.clone();
        assert_eq!((row("Req/Sec Stdev"), row("Req/Sec Max")), ("141".into(), "600".into()));
        assert_eq!(row("Req/Sec +/- Stdev"), "100.00 %");
        assert_eq!(row("Latency +/- Stdev"), "100.00 %");
    }

    #[test]
    fn one_stall_of_ten_cycles_adds_eight_values() {
        let counts = Counts::of_values([100, 100, 100, 1_000]);
        assert_eq!(corrected(&counts, 100).count(), 4 + 8);
        assert_eq!(corrected(&counts, 0), counts);
    }
}
