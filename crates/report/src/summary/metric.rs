//! One metric of a cell: its value with an interval and its method, or why there is none, and
//! further statistics to judge them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_stats::outlier::Rule;
use weigh_stats::quantile::values_needed;
use weigh_stats::{Interval, Refusal, RunsMean};

use weigh_model::metrics::{quantile_of, unit_of};

/// One line of a metric's uncertainty budget (JCGM 100, clause 4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetLine {
    /// Source of the uncertainty: `repetitions`, `meter gain`, `sampling`.
    pub source: String,
    /// Standard uncertainty in the metric's unit.
    pub standard_uncertainty: f64,
    /// True if repetitions do not reduce it.
    pub is_systematic: bool,
    /// Where its size is from.
    pub basis: String,
}

/// One metric of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// The mean over the repetitions; null if one of them is: a quantile in the lost share.
    pub value: Option<f64>,
    /// Lower end of the interval at 95 %, not below 0 if the metric cannot be; null if there is
    /// none, such as with fewer than 3 repetitions.
    pub low: Option<f64>,
    /// Upper end of the interval at 95 %; null if there is none.
    pub high: Option<f64>,
    /// Method of the interval, such as `t over runs, corrected for skewness`; null if there is
    /// none.
    #[serde(default)]
    pub method: Option<String>,
    /// Why there is no interval; absent if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// A second interval, if one should be checked: with fewer than 10 repetitions, and with skewed
    /// ones.
    #[serde(rename = "beside", default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<Bounds>,
    /// The unit of all values.
    pub unit: String,
    /// Number of repetitions with a value.
    pub n: u32,
    /// The value of every repetition, in the order of repetitions.
    pub values: Vec<Option<f64>>,
    /// Standard deviation from repetition to repetition; null with fewer than 2.
    #[serde(default)]
    pub deviation: Option<f64>,
    /// The median over the repetitions; absent with fewer than 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<Median>,
    /// Whether the repetitions look normal; absent with too few values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normality: Option<Normality>,
    /// Repetitions, from 0, whose value is an outlier (Tukey's fences). They are part of every
    /// figure; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outliers: Vec<u32>,
    /// Sources of uncertainty, the largest first; absent if the repetitions are the only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budget: Vec<BudgetLine>,
}

/// An interval and its method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds {
    /// Lower end at 95 %.
    pub low: f64,
    /// Upper end at 95 %.
    pub high: f64,
    /// Method of the interval.
    pub method: String,
}

/// A median with its interval from order statistics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Median {
    /// The median.
    pub value: f64,
    /// Lower end of the interval at 95 %; null with fewer than 6 values.
    pub low: Option<f64>,
    /// Upper end of the interval at 95 %; null with fewer than 6 values.
    pub high: Option<f64>,
}

/// Whether values look normal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Normality {
    /// Shapiro and Wilk's p: small if they do not look normal.
    pub p: f64,
    /// Skewness; 0 is symmetrical.
    pub skewness: f64,
}

impl Bounds {
    pub(crate) fn of(interval: &Interval) -> Bounds {
        let Interval { low, high, method } = *interval;
        Bounds { low, high, method: method.name().to_owned() }
    }

    /// Cut off at `floor`: values below it are not possible. The coverage is unchanged, since the
    /// part that is left out never contained the true value.
    fn not_below(self, floor: f64) -> Bounds {
        Bounds { low: self.low.max(floor), ..self }
    }
}

impl Metric {
    /// Summarises the values of a cell's repetitions, counted from 0; infinite ones become null.
    /// The interval of a quantity that cannot be negative, such as a time or a rate, ends at 0
    /// (decision 7).
    pub fn new(name: &str, values: &[f64]) -> Metric {
        let values: Vec<(u32, f64)> = (0..).zip(values.iter().copied()).collect();
        Metric::of(name, &values, None)
    }

    /// Summarises the values of repetitions, each with its number. `samples_min` is the number of
    /// values in the repetition with the fewest, if known: a quantile that needs more gets no
    /// interval (rule L17).
    pub(crate) fn of(name: &str, values: &[(u32, f64)], samples_min: Option<u64>) -> Metric {
        let plain: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        let mut metric = Metric {
            unit: unit_of(name).to_owned(),
            n: values.len() as u32,
            values: plain.iter().map(|value| value.is_finite().then_some(*value)).collect(),
            ..Metric::default()
        };
        let Ok(weighed) = RunsMean::of(&plain) else {
            metric.refused = Some(IN_LOSS.to_owned());
            return metric;
        };
        metric.value = Some(weighed.mean);
        metric.deviation = (weighed.n > 1).then_some(weighed.deviation);
        match thin_tail(name, samples_min).map_or(weighed.interval, Err) {
            Ok(interval) => {
                let floor = floor(name, &plain);
                let Bounds { low, high, method } = Bounds::of(&interval).not_below(floor);
                (metric.low, metric.high, metric.method) = (Some(low), Some(high), Some(method));
                let bootstrap = weighed.bootstrap.as_ref().map(Bounds::of);
                metric.bootstrap = bootstrap.map(|bounds| bounds.not_below(floor));
            }
            Err(refusal) => metric.refused = Some(refusal.to_string()),
        }
        if weighed.n > 2 {
            let interval = weighed.median_interval.ok();
            metric.median = Some(Median {
                value: weighed.median,
                low: interval.map(|interval| interval.low),
                high: interval.map(|interval| interval.high),
            });
        }
        let normality = weighed.normality;
        metric.normality = normality.map(|n| Normality { p: n.p, skewness: n.skewness });
        metric.outliers = weighed.outliers.iter().map(|at| values[*at].0).collect();
        metric
    }

    /// The indices of the outliers in `values`: not every repetition need have the metric.
    pub(crate) fn outlier_places(&self) -> Vec<usize> {
        let values: Option<Vec<f64>> = self.values.iter().copied().collect();
        values.map_or_else(Vec::new, |values| Rule::TukeyFences.flags(&values))
    }
}

/// The possible values of the metric, given these: not below 0 if it cannot be negative, and not
/// above 1 if it is a share of a whole.
pub fn possible(name: &str, values: &[f64]) -> (f64, f64) {
    let is_share = SHARES.contains(&name) && values.iter().all(|value| *value <= 1.0);
    (floor(name, values), if is_share { 1.0 } else { f64::INFINITY })
}

/// The smallest possible value of the metric. Times, rates, shares, sizes and counts are not
/// negative; a one-way time between two clocks and metrics without a known unit may be, and so may
/// any metric with negative values.
fn floor(name: &str, values: &[f64]) -> f64 {
    let is_share = name.split('.').any(|part| part.ends_with("ratio"));
    let is_signed = name.starts_with("one_way_time_ns") || (unit_of(name) == "1" && !is_share);
    let is_bounded = !is_signed && values.iter().all(|value| *value >= 0.0);
    if is_bounded { 0.0 } else { f64::NEG_INFINITY }
}

/// Why the quantile that `name` ends with cannot be computed from this number of values.
fn thin_tail(name: &str, samples_min: Option<u64>) -> Option<Refusal> {
    let (q, have) = (quantile_of(name)?, samples_min?);
    let needed = values_needed(q);
    (have < needed).then_some(Refusal::TailTooThin { q, have, needed })
}

/// Metrics that are a part of a whole.
const SHARES: [&str; 4] =
    ["acceptance_ratio", "loss_ratio", "errors_ratio", "mqtt_stresser_receive_ratio"];

/// Text instead of an interval if a repetition has no finite value.
const IN_LOSS: &str = "in the lost share, which has no upper bound";

/// The interval of a figure.
pub(crate) fn ends(metric: &Metric) -> Option<(f64, f64)> {
    Some((metric.low?, metric.high?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_quantile_is_null_and_takes_the_mean_with_it() {
        let metric = Metric::new("response_time_ns.p99", &[1.0, f64::INFINITY, 3.0]);
        assert_eq!((metric.value, metric.low, metric.n), (None, None, 3));
        assert_eq!(metric.values, [Some(1.0), None, Some(3.0)]);
        assert!(metric.refused.unwrap().contains("lost share"));
    }

    #[test]
    fn an_interval_says_how_it_was_made_or_why_there_is_none() {
        let five = Metric::new("response_time_ns.p50", &[10.0, 11.0, 9.5, 10.4, 10.1]);
        assert_eq!(five.method.as_deref(), Some("t over runs, corrected for skewness"));
        assert_eq!(five.bootstrap.unwrap().method, "studentised bootstrap over runs");
        assert!(five.refused.is_none() && five.median.unwrap().low.is_none());
        let two = Metric::new("response_time_ns.p50", &[10.0, 11.0]);
        assert!(two.refused.unwrap().contains("at least 3 repetitions"));
        assert_eq!((two.low, two.method, two.median), (None, None, None));
    }

    #[test]
    fn what_cannot_be_negative_has_no_interval_below_zero() {
        let values = [1.0, 1.1, 0.9, 1.0, 30.0];
        let of = |name: &str| Metric::new(name, &values);
        for name in ["response_time_ns.p50", "throughput_out_per_s", "acceptance_ratio"] {
            let metric = of(name);
            assert_eq!(metric.low, Some(0.0), "{name}");
            assert!(metric.bootstrap.unwrap().low >= 0.0, "{name}");
        }
        let signed = of("one_way_time_ns.p50");
        assert!(signed.low.unwrap() < 0.0, "two clocks");
        assert_eq!(signed.high, of("response_time_ns.p50").high, "the upper end stays");
        let seen = Metric::new("window_s", &[-1.0, 1.0, 0.5, -0.5, 0.1]);
        assert!(seen.low.unwrap() < 0.0, "what was seen is possible");
    }

    #[test]
    fn a_share_is_between_nothing_and_all() {
        assert_eq!(possible("acceptance_ratio", &[0.5, 0.9]), (0.0, 1.0));
        assert_eq!(possible("path.up.asked_ratio", &[0.5]), (0.0, f64::INFINITY));
        let (low, high) = possible("one_way_time_ns.p50", &[1.0]);
        assert!(low.is_infinite() && high.is_infinite());
    }

    #[test]
    fn a_quantile_beyond_the_samples_has_no_interval() {
        let values: Vec<(u32, f64)> = (0..5).map(|n| (n, 10.0 + f64::from(n))).collect();
        let of = |name, samples| Metric::of(name, &values, samples);
        let refused = of("response_time_ns.p999", Some(200)).refused.unwrap();
        assert!(refused.contains("3688"), "{refused}");
        assert!(of("response_time_ns.p99", Some(368)).low.is_some());
        assert!(of("response_time_ns.p99", Some(367)).low.is_none());
        assert!(of("response_time_ns.mean", Some(5)).low.is_some());
        assert_eq!(of("wire.packets", Some(1)).refused, None);
    }

    #[test]
    fn a_repetition_that_stands_apart_is_named_and_stays_in() {
        let values = [(0, 10.0), (2, 10.2), (3, 9.9), (4, 10.1), (7, 14.0), (8, 9.8)];
        let metric = Metric::of("throughput_out_per_s", &values, None);
        assert_eq!(metric.outliers, [7]);
        assert!(metric.value.unwrap() > 10.6, "it is part of the mean");
    }
}
