//! The result of comparing two cells by one metric.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_stats::comparison;

/// Two cells in one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The metric's name.
    pub metric: String,
    /// Name of the left cell.
    pub left: String,
    /// Name of the right cell.
    pub right: String,
    /// The factor in which the two differ: `lane` for protocol, target and settings at one place of
    /// all axes, `background` for a case with a background (left) and without (right), or the key
    /// of the axis along which they are neighbours (`load.connections`).
    #[serde(default)]
    pub factor: String,
    /// Left over right; null if the two must not form a ratio. For a case with a background and
    /// without it, the interval is that of pairs of repetitions.
    pub ratio: Option<Ratio>,
    /// `lower`, `higher`, `too close to call`, `practically equal` or `refused`: left relative to
    /// right.
    pub verdict: Verdict,
    /// Why it was refused, or why it is too close to call although the interval excludes 1; else
    /// null.
    pub reason: Option<String>,
    /// The probability of at least this difference between equals, by the interval of the ratio;
    /// null if there is none.
    #[serde(default)]
    pub p: Option<f64>,
    /// The probability by ranks (Mann and Whitney); null if it was refused.
    #[serde(default)]
    pub rank_p: Option<f64>,
    /// The shift of left against right (Hodges and Lehmann); null if it was refused.
    #[serde(default)]
    pub shift: Option<Shift>,
    /// By how much left is above right, over repetitions in turn; with a background and without it
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// Whether a `lower` or `higher` is significant when all comparisons of the run are considered
    /// together (Benjamini and Hochberg at 5 %); false for other verdicts.
    #[serde(default)]
    pub stands: bool,
}

/// Left over right.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// The ratio of the means.
    pub value: f64,
    /// Lower end of the interval at 95 %; null with fewer than 3 repetitions a side.
    pub low: Option<f64>,
    /// Upper end of the interval at 95 %; null with fewer than 3 repetitions a side.
    pub high: Option<f64>,
}

/// By how much left is larger than right, in the metric's unit: the median of all differences of
/// their repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shift {
    /// The shift.
    pub value: f64,
    /// Lower end of the interval at 95 %; null with fewer than 4 repetitions a side.
    pub low: Option<f64>,
    /// Upper end of the interval at 95 %; null with fewer than 4 repetitions a side.
    pub high: Option<f64>,
}

/// By how much left is above right, in the metric's unit: the mean over pairs of repetitions in
/// turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The difference.
    pub value: f64,
    /// Lower end of the interval at 95 %; null with fewer than 3 pairs.
    pub low: Option<f64>,
    /// Upper end of the interval at 95 %; null with fewer than 3 pairs.
    pub high: Option<f64>,
    /// Number of pairs.
    pub pairs: u32,
}

/// Verdict on left, relative to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Verdict {
    /// The interval of the ratio is below 1.
    #[serde(rename = "lower")]
    Lower,
    /// The interval of the ratio is above 1.
    #[serde(rename = "higher")]
    Higher,
    /// The interval of the ratio contains 1, or excludes it only because of the generator's
    /// lateness.
    #[serde(rename = "too close to call")]
    TooClose,
    /// The whole interval of the ratio is within 1 % of 1.
    #[serde(rename = "practically equal")]
    PracticallyEqual,
    /// The two must not be, or cannot be, compared.
    #[serde(rename = "refused")]
    Refused,
}

impl From<comparison::Verdict> for Verdict {
    fn from(verdict: comparison::Verdict) -> Verdict {
        match verdict {
            comparison::Verdict::Lower => Verdict::Lower,
            comparison::Verdict::Higher => Verdict::Higher,
            comparison::Verdict::TooClose => Verdict::TooClose,
            comparison::Verdict::Refused => Verdict::Refused,
        }
    }
}

impl Verdict {
    /// This verdict, or `PracticallyEqual` if the effect is certainly below 1 %, whether the
    /// interval of `ratio` excludes 1 or not.
    pub(crate) fn or_equal(self, ratio: Option<Ratio>) -> Verdict {
        match ratio {
            Some(Ratio { low: Some(low), high: Some(high), .. })
                if self != Verdict::Refused && low >= 1.0 - EQUAL && high <= 1.0 + EQUAL =>
            {
                Verdict::PracticallyEqual
            }
            _ => self,
        }
    }

    /// The words in reports.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Lower => "lower",
            Verdict::Higher => "higher",
            Verdict::TooClose => "too close to call",
            Verdict::PracticallyEqual => "practically equal",
            Verdict::Refused => "refused",
        }
    }
}

/// The effect of many comparisons on each of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Multiplicity {
    /// Comparisons with a verdict.
    pub compared: u32,
    /// Those of them that are `lower` or `higher`.
    pub called: u32,
    /// Number expected by chance if all cells were equal: one in twenty.
    pub expected_by_chance: f64,
    /// Those that are significant when all are considered together: at most one in twenty of them
    /// is expected to be false.
    pub standing: u32,
}

/// A smaller effect, as a share of 1, is irrelevant in practice.
const EQUAL: f64 = 0.01;
