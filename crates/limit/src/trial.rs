//! Requests of a search, and results of trials.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use weigh_model::units::Nanos;

/// A trial that the search requests. The draft's Trial Input (section 4.5.3) is load and duration;
/// the other fields are for the caller and for reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialRequest {
    /// In the unit of the axis, on its grid, within its ends.
    pub load: f64,
    /// How long that load is offered.
    pub duration: Nanos,
    /// The goal, by its index.
    pub goal: usize,
    /// What the trial is for.
    pub purpose: Purpose,
    /// The target died in the trial before: restart it first.
    pub restart: bool,
}

/// What a trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// To classify a load.
    Search,
    /// To check whether the bound holds for long (RFC 9411, section 4.3.4: at least 300 s).
    Sustain,
}

/// The result of a trial.
///
/// # Examples
///
/// ```
/// use weigh_limit::{TrialEnd, TrialResult};
/// use weigh_model::Nanos;
///
/// let result = TrialResult {
///     load: 1000.0,
///     duration: Nanos::from_secs(1),
///     elapsed: Nanos::from_secs(1),
///     forwarded: 990,
///     lost: 10,
///     figures: Default::default(),
///     end: TrialEnd::Completed,
/// };
/// assert_eq!(result.loss_ratio(), 0.01);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialResult {
    /// The requested load.
    pub load: f64,
    /// The requested duration.
    pub duration: Nanos,
    /// The total time of the trial, set-up and settling included, on the clock of the time budget.
    pub elapsed: Nanos,
    /// Messages that arrived in time, each copy separately if there are several receivers.
    pub forwarded: u64,
    /// Messages that were due and did not arrive in time: lost, late, or refused by the target.
    /// Messages that the generator failed to send make the trial [`TrialEnd::Invalid`] instead.
    pub lost: u64,
    /// Other figures under the names of the summary, such as `response_time_ns.p99`, `errors_ratio`
    /// or `backlog_ratio`: those in the goals' conditions. An infinite one (a quantile in the lost
    /// share) is null in JSON.
    #[serde(deserialize_with = "null_is_infinite")]
    pub figures: BTreeMap<String, f64>,
    /// How it ended.
    pub end: TrialEnd,
}

impl TrialResult {
    /// The share of messages that did not arrive; 1 if there were none.
    pub fn loss_ratio(&self) -> f64 {
        match self.forwarded + self.lost {
            0 => 1.0,
            due => self.lost as f64 / due as f64,
        }
    }
}

fn null_is_infinite<'de, D>(deserializer: D) -> Result<BTreeMap<String, f64>, D::Error>
where
    D: Deserializer<'de>,
{
    let figures = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
    let finite = |figure: Option<f64>| figure.unwrap_or(f64::INFINITY);
    Ok(figures.into_iter().map(|(name, figure)| (name, finite(figure))).collect())
}

/// The share of due messages that had piled up at the end of a trial, beyond those always in
/// flight.
pub const BACKLOG_RATIO: &str = "backlog_ratio";

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialEnd {
    /// As planned.
    Completed,
    /// The target died, and how. Its load fails every goal: dying is worse than losing, so it is
    /// not repeated.
    TargetDied(String),
    /// It had too few messages for a quantile of a goal. It is repeated, longer.
    TooFew {
        /// The figure that is missing: `response_time_ns.p99`.
        metric: String,
        /// The messages that it had.
        had: u64,
        /// The messages that the figure needs.
        needed: u64,
    },
    /// The trial does not measure the target, and why: the generator or the path to it was the
    /// limit, or a ledger contradicts itself. The search stops.
    Invalid(String),
}
