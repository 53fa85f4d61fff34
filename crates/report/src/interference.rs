//! What a second workload beneath a case did to it: loaded trials against those of the baseline
//! that they took turns with, and the proof that the background was there.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_model::background::BackgroundRan;
use weigh_model::event::{Event, TrialFinished};
use weigh_model::ledger::Ledger;
use weigh_stats::paired::Paired;

use crate::comparisons::{BACKGROUND, Comparison, Difference, Ratio, Verdict};
use crate::figures::{between, count, three_digits};
use crate::lateness::lag_name;
use crate::pictures::spoken;
use crate::shape::LedgerShape;
use crate::summary::{Cell, Summary, unit_of};

/// What lay beneath one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interference {
    /// Name of the cell.
    pub cell: String,
    /// Name of the cell that differs in nothing but having no background; null where it was not
    /// weighed. The differences stand in `comparisons`, with the factor `background`.
    pub baseline: Option<String>,
    /// What the background was, in words.
    pub background: String,
    /// What its target said of itself.
    pub target: String,
    /// The share of the measured window in which it sent at least half of what it offers: the
    /// least over the repetitions.
    pub overlap_ratio: f64,
    /// What it offers, messages per second; null for closed loops.
    pub offered_per_s: Option<f64>,
    /// What it sent in the measured window, messages per second: the mean over the repetitions.
    pub sent_per_s: f64,
    /// True if its generator shared a core with the measured one.
    pub shares_core: bool,
    /// Where its own messages went, from its first to its last: the sum over the repetitions.
    #[schemars(with = "LedgerShape")]
    pub ledger: Ledger,
}

/// What lay beneath these cells, by the trials that count.
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
    let baselines: BTreeMap<usize, usize> =
        crate::pairs::baselines(cells).into_iter().map(|pair| (pair.left, pair.right)).collect();
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

/// Weighs loaded against baseline by pairs of repetitions: both are of one round, so that what
/// drifts from round to round is in both.
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
            "without the generator's lateness in the higher one the two are not told apart";
        (comparison.verdict, comparison.reason) = (Verdict::TooClose, Some(reason.to_owned()));
    }
}

/// What lay beneath every cell, and what it did: for the terminal and the page.
pub(crate) fn blocks(summary: &Summary, is_ascii: bool) -> Vec<(String, Vec<String>)> {
    let block = |own: &Interference| {
        let of_cell = |comparison: &&Comparison| {
            comparison.factor == BACKGROUND && comparison.left == own.cell
        };
        let lines = summary.comparisons.iter().filter(of_cell);
        (heading(own), lines.filter_map(|one| sentence(one, is_ascii)).collect())
    };
    summary.interference.iter().map(block).collect()
}

/// What the first of them did, in one sentence: `with mqtt … beneath it http1 on reference has a
/// median response time +1.20 ± 0.30 ms, 2.10 ± 0.20 times the baseline`.
pub(crate) fn answer(summary: &Summary) -> Option<String> {
    let own = summary.interference.first()?;
    let of_cell =
        |comparison: &&Comparison| comparison.factor == BACKGROUND && comparison.left == own.cell;
    let mut said = summary.comparisons.iter().filter(of_cell);
    let said = said.find_map(|one| sentence(one, false))?;
    let more = match summary.interference.len() {
        1 => String::new(),
        all => format!(" (the first of {all} such cases)"),
    };
    Some(format!("{}, with {} beneath it: {said}{more}", own.cell, own.background))
}

/// `http1 on reference, beneath it mqtt …: 9,998/s sent, 100.0 % of the window covered, 0 lost`.
fn heading(own: &Interference) -> String {
    let lost = own.ledger.lost.map_or_else(|| "unknown".to_owned(), count);
    let baseline = if own.baseline.is_none() { "; no baseline was weighed" } else { "" };
    format!(
        "{}, beneath it {} ({}): {}/s sent, {:.1} % of the window covered, {lost} lost{baseline}",
        own.cell,
        own.background,
        own.target,
        three_digits(own.sent_per_s),
        100.0 * own.overlap_ratio,
    )
}

/// `median response time +1.20 ± 0.30 ms, 2.10 ± 0.20 times the baseline`; `None` for what was
/// refused.
fn sentence(comparison: &Comparison, is_ascii: bool) -> Option<String> {
    let difference = comparison.difference.as_ref()?;
    let mut text = format!(
        "{} {}",
        spoken(&comparison.metric),
        signed(difference, unit_of(&comparison.metric), is_ascii)
    );
    if let Some(ratio) = comparison.ratio {
        let times = between(ratio.value, ratio.low.zip(ratio.high));
        text += &format!(", {times} times the baseline");
    }
    match comparison.verdict {
        Verdict::TooClose | Verdict::PracticallyEqual => {
            text += &format!(": {}", comparison.verdict.name());
        }
        Verdict::Refused => text += &format!(": {}", comparison.reason.as_deref().unwrap_or("?")),
        Verdict::Lower | Verdict::Higher if !comparison.stands => text += " ?",
        Verdict::Lower | Verdict::Higher => {}
    }
    Some(text)
}

/// A difference with its sign and its interval, in one unit: `+1.20 ± 0.30 ms`, `-12 ± 30/s`.
fn signed(difference: &Difference, unit: &str, is_ascii: bool) -> String {
    let half = difference.high.map(|high| high - difference.value);
    let largest = difference.value.abs().max(half.unwrap_or(0.0));
    let (divisor, unit) = match (unit, largest) {
        ("ns", large) if large >= 1e9 => (1e9, " s"),
        ("ns", large) if large >= 1e6 => (1e6, " ms"),
        ("ns", large) if large >= 1e3 => (1e3, if is_ascii { " us" } else { " µs" }),
        ("ns", _) => (1.0, " ns"),
        ("1/s", _) => (1.0, "/s"),
        ("us/message", _) => (1.0, if is_ascii { " us" } else { " µs" }),
        ("1", _) => (1.0, ""),
        (other, _) => return format!("{} {other}", signed(difference, "1", is_ascii)),
    };
    let digits = |number: f64| match number.abs() {
        0.0 => 0,
        number => (1 - number.log10().floor() as i32).clamp(0, DECIMALS_MAX) as usize,
    };
    let value = difference.value / divisor;
    // What rounds to nothing has no sign.
    let shown = |decimals: usize| {
        let is_nothing = value.abs() < 0.5 * 0.1_f64.powi(decimals as i32);
        if is_nothing { 0.0 } else { value }
    };
    match half.map(|half| half / divisor) {
        Some(half) => {
            let decimals = digits(if half > 0.0 { half } else { value });
            format!("{:+.decimals$} ± {half:.decimals$}{unit}", shown(decimals))
        }
        None => {
            let decimals = digits(value);
            format!("{:+.decimals$}{unit}", shown(decimals))
        }
    }
}

const DECIMALS_MAX: i32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_its_sign_its_interval_and_one_unit() {
        let of = |value: f64, half: Option<f64>, unit: &str| {
            let ends = half.map(|half| (value - half, value + half));
            let (low, high) = (ends.map(|own| own.0), ends.map(|own| own.1));
            signed(&Difference { value, low, high, pairs: 5 }, unit, false)
        };
        assert_eq!(of(1.234e6, Some(0.31e6), "ns"), "+1.23 ± 0.31 ms");
        assert_eq!(of(-20.0, Some(41_000.0), "ns"), "+0 ± 41 µs");
        assert_eq!(of(-812.0, None, "ns"), "-812 ns");
        assert_eq!(of(-120.4, Some(33.0), "1/s"), "-120 ± 33/s");
        assert_eq!(of(0.25, Some(0.5), "J/message"), "+0.25 ± 0.50 J/message");
        assert_eq!(of(3.0, Some(0.0), "ns"), "+3.0 ± 0.0 ns");
    }
}
