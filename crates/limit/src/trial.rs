//! What a search asks for, and what it must be told of each trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use weigh_model::units::Nanos;

/// A trial that the search asks for. The draft's Trial Input (section 4.5.3) is load and duration;
/// the rest is for who runs it and who reads of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialRequest {
    /// In the unit of the axis, on its grid, within its ends.
    pub load: f64,
    /// How long that load is to be offered.
    pub duration: Nanos,
    /// For which goal, by its place in the list.
    pub goal: usize,
    /// What the trial is for.
    pub purpose: Purpose,
    /// The target died in the trial before: start it anew first.
    pub restart: bool,
}

/// What a trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// To classify a load.
    Search,
    /// To see whether the bound found holds for long (RFC 9411, section 4.3.4: at least 300 s).
    Sustain,
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialResult {
    /// The load that was asked for.
    pub load: f64,
    /// The duration that was asked for.
    pub duration: Nanos,
    /// What the trial took altogether, set-up and settling included, on the clock that a budget of
    /// time is meant for.
    pub elapsed: Nanos,
    /// Messages that arrived in time, each copy by itself where there are several receivers.
    pub forwarded: u64,
    /// Messages that were due and did not: lost, late, or refused by the target. What the
    /// generator could not send by its own fault makes the trial [`TrialEnd::Invalid`] instead.
    pub lost: u64,
    /// Other figures under the names of the summary, such as `response_time_ns.p99`,
    /// `errors_ratio` or `backlog_ratio`: whatever the goals' conditions speak of. An infinite one
    /// (a quantile in the lost share) is null in JSON.
    #[serde(deserialize_with = "null_is_infinite")]
    pub figures: BTreeMap<String, f64>,
    /// How it ended.
    pub end: TrialEnd,
}

impl TrialResult {
    /// The share of messages that did not arrive; 1 if there were none at all.
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

/// The figure that says how much of what was due in a trial had piled up at its end, beyond what is
/// always under way, as a share.
pub const BACKLOG_RATIO: &str = "backlog_ratio";

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialEnd {
    /// As planned.
    Completed,
    /// The target died, and how. Its load fails every goal: dying is worse than losing, so it is
    /// not repeated in the hope of better luck.
    TargetDied(String),
    /// It had too few messages for a quantile that a goal speaks of. It is done again, longer.
    TooFew {
        /// The figure that is missing: `response_time_ns.p99`.
        metric: String,
        /// The messages that it had.
        had: u64,
        /// The messages that the figure needs.
        needed: u64,
    },
    /// The trial says nothing about the target, and why: the generator or the path to it was the
    /// limit, or a ledger contradicts itself. The search stops.
    Invalid(String),
}
