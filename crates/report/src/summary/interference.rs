//! The effect of a background on a case: trials with it against those of the baseline in turn, and
//! the proof that the background was there.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_model::background::BackgroundRan;
use weigh_model::event::{Event, TrialFinished};
use weigh_model::ledger::Ledger;
use weigh_stats::paired::Paired;

use super::cell::Cell;
use super::comparison::{Comparison, Difference, Ratio, Verdict};
use super::lateness::lag_name;
use super::shape::LedgerShape;

/// The background of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interference {
    /// Name of the cell.
    pub cell: String,
    /// Name of the cell that differs only in having no background; null if it was not measured. The
    /// differences are in `comparisons`, with the factor `background`.
    pub baseline: Option<String>,
    /// Description of the background.
    pub background: String,
    /// How its target identified itself.
    pub target: String,
    /// The share of the measured window in which it sent at least half of its offered load: the
    /// minimum over the repetitions.
    pub overlap_ratio: f64,
    /// Offered rate, messages per second; null for closed loops.
    pub offered_per_s: Option<f64>,
    /// Rate sent in the measured window, messages per second: the mean over the repetitions.
    pub sent_per_s: f64,
    /// True if its generator shared a core with the measured one.
    pub shares_core: bool,
    /// The ledger of its own messages, from its first to its last: the sum over the repetitions.
    #[schemars(with = "LedgerShape")]
    pub ledger: Ledger,
}

/// The backgrounds of these cells, by the trials that count.
pub(crate) fn from_events(
    cells: &[Cell],
    events: &[Event],
    trials: &[&TrialFinished],
) -> Vec<Interference> {
    let ran: Vec<&BackgroundRan> = events
        .iter()
        .filter_map(|event| match event {
            Event::BackgroundRan(ran) => Some(&**ran),
            _ => None,
        })
        .collect();
    if ran.is_empty() {
        return Vec::new();
    }
    let baselines: BTreeMap<usize, usize> = crate::summary::pairs::baselines(cells)
        .into_iter()
        .map(|pair| (pair.left, pair.right))
        .collect();
    let of_cell = |(at, cell): (usize, &Cell)| {
        let counts = |own: &&&BackgroundRan| {
            own.point == cell.point && trials.iter().any(|trial| trial.trial == own.trial)
        };
        let own: Vec<&BackgroundRan> = ran.iter().filter(counts).copied().collect();
        let first = own.first()?;
        let mut ledger = Ledger::zero();
        own.iter().for_each(|one| ledger.add(&one.ledger));
        let number = own.len() as f64;
        Some(Interference {
            cell: cell.name.clone(),
            baseline: baselines.get(&at).map(|at| cells[*at].name.clone()),
            background: first.words.clone(),
            target: first.target.clone(),
            overlap_ratio: own.iter().map(|one| one.overlap_ratio).fold(f64::INFINITY, f64::min),
            offered_per_s: first.offered_per_s,
            sent_per_s: own.iter().map(|one| one.sent_per_s).sum::<f64>() / number,
            shares_core: own.iter().any(|one| one.shares_core),
            ledger,
        })
    };
    cells.iter().enumerate().filter_map(of_cell).collect()
}

/// Compares trials with the background with the baseline by pairs of repetitions: both are of one
/// round, so that drift between rounds cancels out.
pub(crate) fn weigh(
    comparison: &mut Comparison,
    [left, right]: [&Cell; 2],
    trials: &[&TrialFinished],
) {
    let lag = lag_name(&comparison.metric);
    let of = |cell: &Cell, is_less_lag: bool| -> BTreeMap<u32, f64> {
        let own = trials.iter().filter(|trial| trial.point == cell.point);
        let value = |trial: &&TrialFinished| {
            let lag = lag.as_ref().and_then(|name| trial.metrics.get(name)).filter(|_| is_less_lag);
            let value = trial.metrics.get(&comparison.metric)?;
            Some((trial.repetition, value - lag.unwrap_or(&0.0)))
        };
        own.copied().filter_map(|trial| value(&trial)).collect()
    };
    let paired = |less_lag: [bool; 2]| {
        let baseline = of(right, less_lag[1]);
        let pair = |(at, value): (u32, f64)| Some((value, *baseline.get(&at)?));
        let pairs: Vec<(f64, f64)> = of(left, less_lag[0]).into_iter().filter_map(pair).collect();
        Paired::of(&pairs)
    };
    let Ok(weighed) = paired([false, false]) else { return };
    let higher = [Verdict::Higher, Verdict::Lower].map(|own| own == Verdict::from(weighed.verdict));
    let hangs = lag.is_some()
        && higher.contains(&true)
        && paired(higher).is_ok_and(|without| without.verdict != weighed.verdict);
    let difference = weighed.difference;
    comparison.difference = Some(Difference {
        value: difference.value,
        low: difference.low,
        high: difference.high,
        pairs: difference.n as u32,
    });
    comparison.ratio = weighed.ratio.map(|own| Ratio {
        value: own.value,
        low: own.low.filter(|low| low.is_finite()),
        high: own.high.filter(|high| high.is_finite()),
    });
    comparison.verdict = Verdict::from(weighed.verdict).or_equal(comparison.ratio);
    comparison.reason = weighed.refusal.map(|refusal| refusal.to_string());
    comparison.p = weighed.p;
    if hangs {
        let reason =
            "without the generator lag in the higher one there is no significant difference";
        (comparison.verdict, comparison.reason) = (Verdict::TooClose, Some(reason.to_owned()));
    }
}
