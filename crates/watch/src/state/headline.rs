//! The main figures of a finished trial.

use weigh_model::event::TrialFinished;
use weigh_model::severity::Severity;
use weigh_model::{Condition, Ledger};

/// The main figures of a finished trial.
#[derive(Clone, Debug)]
pub struct Headline {
    /// Its ledger.
    pub ledger: Ledger,
    /// Messages confirmed or delivered per second.
    pub throughput_per_s: Option<f64>,
    /// Quantiles of the response time (of the delivery time, if nothing is confirmed), nanoseconds:
    /// median and 99 %.
    pub times_ns: [Option<f64>; 2],
    /// The 99 % quantile of the send lag, nanoseconds.
    pub send_lag_ns_p99: Option<f64>,
    /// CPU time of the target per message, microseconds.
    pub target_cpu_us_per_message: Option<f64>,
    /// Largest memory of the target, bytes.
    pub target_memory_bytes_max: Option<f64>,
    /// Its warnings: code, whether it invalidates the trial, and the finding in words.
    pub warnings: Vec<(String, bool, String)>,
    /// For each threshold: whether it holds in this trial; `None` without a figure.
    pub thresholds: Vec<Option<bool>>,
}

impl Headline {
    /// The figures of a result.
    pub fn of(finished: &TrialFinished, thresholds: &[Condition]) -> Headline {
        let figure = |name: &str| finished.metrics.get(name).copied();
        let time = |quantile: &str| {
            let of = |time: &str| figure(&format!("{time}_time_ns.{quantile}"));
            of("response").or_else(|| of("delivery"))
        };
        let warnings = finished.warnings.iter().map(|own| {
            let is_invalid = own.severity == Severity::Invalid;
            (own.code.clone(), is_invalid, own.text.clone())
        });
        let held = thresholds.iter().map(|own| own.holds(finished.figure(&own.metric)?));
        Headline {
            ledger: finished.ledger.clone(),
            throughput_per_s: figure("throughput_out_per_s"),
            times_ns: [time("p50"), time("p99")],
            send_lag_ns_p99: figure("send_lag_ns.p99"),
            target_cpu_us_per_message: figure("target_cpu_us_per_message"),
            target_memory_bytes_max: figure("target_memory_bytes.max"),
            warnings: warnings.collect(),
            thresholds: held.collect(),
        }
    }
}
