//! Oracle O12: answers of SciPy, made by `scipy/make.py` and stored with its version. Closed forms
//! agree to 1e-10, the bootstrap within its Monte-Carlo error.

use serde_json::Value;
use weigh_stats::estimate::{Estimate, t_quantile};
use weigh_stats::normality::{Normality, skewness_p};
use weigh_stats::order_statistic::ranks;
use weigh_stats::quantile::interpolated;
use weigh_stats::rank::RankTest;
use weigh_stats::share::share_interval;
use weigh_stats::within_run::autocorrelation;

#[test]
fn quantiles_of_distributions_are_scipys() {
    let answers = &answers()["quantiles"];
    for row in rows(&answers["t_975"]) {
        close(t_quantile(row[0]), row[1], 1e-10, "t");
    }
    for row in rows(&answers["ranks"]) {
        let found = ranks(row[0] as u64, row[1]).expect("enough values");
        assert_eq!(found, (row[2] as u64, row[3] as u64), "n {}, quantile {}", row[0], row[1]);
    }
    for row in rows(&answers["shares"]) {
        let (low, high) = share_interval(row[0] as u64, row[1] as u64);
        assert!((low - row[2]).abs() < 1e-10, "{} of {}: {low}", row[0], row[1]);
        assert!((high - row[3]).abs() < 1e-10, "{} of {}: {high}", row[0], row[1]);
    }
}

#[test]
fn closed_forms_are_scipys() {
    for_each_set(|set, left, _| {
        let estimate = Estimate::of_mean(left).expect("values");
        let bounds = numbers(&set["t_interval"]);
        close(estimate.low.expect("n > 2"), bounds[0], 1e-10, "t low");
        close(estimate.high.expect("n > 2"), bounds[1], 1e-10, "t high");
        let normality = Normality::of(left).expect("spread");
        close(normality.skewness, number(&set["skewness"]), 1e-9, "skewness");
        close(skewness_p(left).expect("n > 7"), number(&set["skewness_p"]), 1e-9, "skewness p");
        let mut sorted = left.to_vec();
        sorted.sort_by(f64::total_cmp);
        for (q, expected) in [0.1, 0.5, 0.9].into_iter().zip(numbers(&set["quantiles"])) {
            close(interpolated(&sorted, q), expected, 1e-10, "quantile");
        }
        for (lag, expected) in (1..).zip(numbers(&set["autocorrelation"])) {
            assert!((autocorrelation(left, lag) - expected).abs() < 1e-10, "lag {lag}");
        }
        // Both rest on the same approximations, with normal quantiles of different precision.
        close(normality.w, number(&set["shapiro_w"]), 1e-6, "W");
        let p = number(&set["shapiro_p"]);
        assert!((normality.p - p).abs() < 1e-5, "{} is not {p}", normality.p);
    });
}

#[test]
fn rank_tests_are_scipys() {
    for_each_set(|set, left, right| {
        let normal = RankTest::normal(left, right).expect("spread");
        close(normal.u, number(&set["u"]), 1e-12, "U");
        close(normal.p, number(&set["normal_p"]), 1e-10, "normal p");
        let exact = RankTest::exact(left, right).expect("values");
        close(exact.p, number(&set["exact_p"]), 1e-10, "exact p");
        let chosen = RankTest::of(left, right).expect("values");
        assert_eq!(chosen, if set["ties"] == true { normal } else { exact });
        if set["ties"] == true {
            return;
        }
        let shift = &set["hodges_lehmann"];
        close(exact.shift, number(&shift["shift"]), 1e-9, "shift");
        let interval = exact.interval.expect("enough values");
        close(interval.low, number(&shift["low"]), 1e-10, "low");
        close(interval.high, number(&shift["high"]), 1e-10, "high");
        let approximate = normal.interval.expect("enough values");
        let apart = (approximate.half_width() / interval.half_width() - 1.0).abs();
        assert!(apart < 0.25, "exact {interval:?}, normal {approximate:?}");
    });
}

fn for_each_set(check: impl Fn(&Value, &[f64], &[f64])) {
    let answers = answers();
    let sets = answers["sets"].as_array().expect("sets");
    assert_eq!(sets.len(), 20);
    for (index, set) in sets.iter().enumerate() {
        println!("set {index} of SciPy {}", answers["scipy"]);
        check(set, &numbers(&set["left"]), &numbers(&set["right"]));
    }
}

fn answers() -> Value {
    serde_json::from_str(include_str!("scipy/answers.json")).expect("JSON")
}

fn rows(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().expect("rows").iter().map(numbers).collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("numbers").iter().map(number).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Asserts a relative difference of at most `tolerance`.
fn close(found: f64, expected: f64, tolerance: f64, what: &str) {
    let apart = (found - expected).abs() / expected.abs().max(1e-300);
    assert!(apart <= tolerance || found == expected, "{what}: {found} is not {expected}");
}
