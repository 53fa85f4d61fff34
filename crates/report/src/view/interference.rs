//! Sentences about the effect of a background on the measured load.

use crate::figures::{between, count, percent, spoken, three_digits};
use crate::summary::pairs::BACKGROUND;
use crate::summary::{Comparison, Difference, Interference, Summary, Verdict};
use weigh_model::metrics::unit_of;

/// The background of every cell, and its effect: for the terminal and the page.
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

/// The effect of the first background, in one sentence: `http1 on reference, with background mqtt
/// …: median response time +1.20 ± 0.30 ms, 2.10 ± 0.20 times the baseline`.
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
    Some(format!("{}, with background {}: {said}{more}", own.cell, own.background))
}

/// `http1 on reference, background mqtt …: 9,998/s sent, 100 % of the window covered, 0 lost`.
fn heading(own: &Interference) -> String {
    let lost = own.ledger.lost.map_or_else(|| "unknown".to_owned(), count);
    let baseline = if own.baseline.is_none() { "; no baseline was measured" } else { "" };
    format!(
        "{}, background {} ({}): {}/s sent, {} of the window covered, {lost} lost{baseline}",
        own.cell,
        own.background,
        own.target,
        three_digits(own.sent_per_s),
        percent(100.0 * own.overlap_ratio),
    )
}

/// `median response time +1.20 ± 0.30 ms, 2.10 ± 0.20 times the baseline`; `None` if it was
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
    // A value that rounds to 0 has no sign.
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
