//! Adds a finished background to the record of the trial, with its warnings.

use weigh_model::Warning;
use weigh_model::background::{BackgroundRan, OVERLAP_MIN};
use weigh_model::event::TrialFinished;
use weigh_model::numbers::{percent, rate};
use weigh_model::warnings::WarningRecord;

/// A finished background.
pub struct BackgroundEnd {
    /// Its results.
    pub ran: BackgroundRan,
    /// Its warnings.
    pub warnings: Vec<Warning>,
    /// CPU of its generator in percent of one core, and of its own target in percent of its cores.
    pub percent: [Option<f64>; 2],
    /// CPU time of its generator and its own target in the window, nanoseconds.
    pub cpu_ns: u64,
    /// True if it loads the measured target.
    pub is_at_same: bool,
}

impl BackgroundEnd {
    /// Adds its figures to the record of the trial, separate from the measured ones, and removes
    /// figures that cannot be separated from its own.
    pub fn tell(mut self, finished: &mut TrialFinished) -> BackgroundRan {
        let ran = &self.ran;
        let mut add = |name: &str, value: Option<f64>| {
            let value = value.filter(|value| value.is_finite());
            finished.metrics.extend(value.map(|value| (format!("background.{name}"), value)));
        };
        add("overlap_ratio", Some(ran.overlap_ratio));
        add("sent_per_s", Some(ran.sent_per_s));
        add("send_lag_ns.p99", ran.metrics.get("send_lag_ns.p99").copied());
        add("lost_messages", ran.ledger.lost.map(|lost| lost as f64));
        add("generator_cpu_percent.mean", self.percent[0]);
        add("target_cpu_percent.mean", self.percent[1]);
        if self.is_at_same {
            // The target worked for both loads.
            finished.metrics.retain(|name, _| !is_of_both(name));
        }
        let own = finished.metrics.get("generator_cpu_percent.max");
        self.warnings.extend(crowded(ran.shares_core, own.copied(), self.percent[0]));
        finished.warnings.extend(self.warnings.iter().map(Warning::record));
        self.ran
    }
}

/// Warnings for a background that did not run as planned.
pub fn absence(ran: &BackgroundRan, error: Option<String>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if ran.overlap_ratio < OVERLAP_MIN {
        let why = error.map_or(String::new(), |error| format!(": {error}"));
        warnings.push(Warning::Background(
            "background-overlap",
            format!(
                "the background covered {} of the measured window{why}",
                percent(100.0 * ran.overlap_ratio)
            ),
            "do not take a difference for its effect: find what ended or delayed it, or kept it \
             below half its rate",
        ));
    }
    if let Some(offered) = ran.offered_per_s.filter(|own| ran.sent_per_s < RATE_MIN * own) {
        warnings.push(Warning::Background(
            "background-rate",
            format!(
                "the background offered {} and sent {} in the measured window",
                rate(offered),
                rate(ran.sent_per_s)
            ),
            "lower its rate, or set a larger window, more connections or more cores",
        ));
    }
    warnings
}

/// Warnings of its own record.
pub fn troubles(finished: &TrialFinished) -> Vec<Warning> {
    let told = finished.warnings.iter().filter(|warning| TROUBLES.contains(&warning.code.as_str()));
    let warning = |own: &WarningRecord| {
        Warning::Background(
            "background-troubled",
            format!("of the background: {}", own.text),
            "note that the background itself had this problem when you read the difference",
        )
    };
    told.map(warning).collect()
}

/// Two generators on one core delay each other, which would look like an effect on the target.
fn crowded(shares_core: bool, own: Option<f64>, other: Option<f64>) -> Option<Warning> {
    let together = own? + other?;
    (shares_core && together >= CROWDED_PERCENT).then(|| {
        Warning::Background(
            "background-shares-core",
            format!(
                "both generators shared a core and used {} of it: their effect on each other \
                 looks like the target's",
                percent(together)
            ),
            "lower one of the rates, or use a machine with one more core",
        )
    })
}

/// The share of its rate below which a background has not done what was asked.
const RATE_MIN: f64 = 0.95;

/// Percent of a core that two generators share, from which on they are crowded.
const CROWDED_PERCENT: f64 = 80.0;

/// True for a figure of a target or a stage that cannot be attributed to one of two loads.
fn is_of_both(metric: &str) -> bool {
    let is_of_stage = metric.starts_with("stage.");
    metric == "target_cpu_us_per_message" || is_of_stage && metric.ends_with(".cpu_us_per_message")
}

/// Warnings of a background that also apply to the measured load.
const TROUBLES: [&str; 3] = ["connections-lost", "error-answers", "generator-limited"];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use weigh_model::Ledger;

    fn ran(overlap_ratio: f64, sent_per_s: f64) -> BackgroundRan {
        BackgroundRan {
            trial: String::new(),
            point: BTreeMap::new(),
            words: String::new(),
            target: String::new(),
            overlap_ratio,
            window_ns: 1,
            offered_per_s: Some(1_000.0),
            sent_per_s,
            shares_core: false,
            ledger: Ledger::zero(),
            metrics: BTreeMap::new(),
            intervals: Vec::new(),
        }
    }

    fn codes(warnings: &[Warning]) -> Vec<String> {
        warnings.iter().map(|warning| warning.record().code).collect()
    }

    #[test]
    fn a_background_that_was_absent_or_slower_has_a_warning() {
        assert!(absence(&ran(0.995, 990.0), None).is_empty());
        assert_eq!(codes(&absence(&ran(0.98, 990.0), None)), ["background-overlap"]);
        assert_eq!(codes(&absence(&ran(1.0, 940.0), None)), ["background-rate"]);
        let gone = absence(&ran(0.0, 0.0), Some("signal 9".to_owned()));
        assert_eq!(codes(&gone), ["background-overlap", "background-rate"]);
        assert!(gone[0].record().text.ends_with("0.0 % of the measured window: signal 9"));
    }

    #[test]
    fn two_generators_are_crowded_on_one_full_core_only() {
        assert!(crowded(true, Some(50.0), Some(31.0)).is_some());
        assert!(crowded(true, Some(50.0), Some(29.0)).is_none());
        assert!(crowded(false, Some(99.0), Some(99.0)).is_none());
        assert!(crowded(true, None, Some(99.0)).is_none());
    }
}
