//! How long a battery lasts by the model, where the run models a device with a battery.

use crate::figures::three_digits;
use crate::summary::modelled::ModelledRatio;
use crate::summary::{Cell, Matrix, Summary, Verdict};
use crate::view::modelled::span;

/// The cases with the most days, the most first, and whether the model can tell the first two
/// apart; `None` if no battery is modelled.
pub(super) fn line(summary: &Summary, matrix: &Matrix) -> Option<String> {
    let modelled = summary.modelled.as_ref()?;
    let days = |cell: &Cell| cell.metrics.get(DAYS)?.value.filter(|days| days.is_finite());
    let mut lasting: Vec<(&Cell, &str, f64)> = summary
        .cells
        .iter()
        .zip(&matrix.labels)
        .filter_map(|(cell, label)| Some((cell, label.as_str(), days(cell)?)))
        .collect();
    lasting.sort_by(|left, right| right.2.total_cmp(&left.2));
    let each =
        |(_, label, days): &(&Cell, &str, f64)| format!("{label} {} days", three_digits(*days));
    let mut shown: Vec<String> = lasting.iter().take(NAMES_MAX).map(each).collect();
    let more = match lasting.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        more => format!(", {more} more below"),
    };
    if let [first, second, ..] = &lasting[..] {
        shown[1] += &difference([first.0, second.0], &modelled.comparisons);
    }
    (!shown.is_empty()).then(|| {
        format!(
            "Battery life by the model, a message every {}: {}{more}",
            span(modelled.every_s),
            shown.join(", ")
        )
    })
}

/// The ratio of the two with the longest life; empty if it was not computed.
fn difference(first: [&Cell; 2], ratios: &[ModelledRatio]) -> String {
    let [longest, next] = first.map(|cell| cell.name.as_str());
    let is_pair = |own: &&ModelledRatio| {
        own.metric == DAYS && [[longest, next], [next, longest]].contains(&[&own.left, &own.right])
    };
    let Some(own) = ratios.iter().find(is_pair) else { return String::new() };
    let (Some(low), Some(high)) = (own.ratio.low, own.ratio.high) else { return String::new() };
    if !matches!(own.verdict, Verdict::Lower | Verdict::Higher) {
        return " (these two are too close to call)".to_owned();
    }
    let [value, low, high] = match own.left == longest {
        true => [own.ratio.value, low, high],
        false => [1.0 / own.ratio.value, 1.0 / high, 1.0 / low],
    };
    format!(" (ratio {value:.2}, 95 % CI {low:.2} to {high:.2})")
}

/// Days from one charge, asleep between messages.
const DAYS: &str = "modelled_days_per_charge";

/// Cases that the line names.
const NAMES_MAX: usize = 4;
