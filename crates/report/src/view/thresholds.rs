//! A sentence for each threshold of the plan.

use crate::summary::figure_text::figure_text;
use crate::summary::thresholds::NOT_DONE;
use crate::summary::{Answer, Judged, Summary, Threshold};

/// A sentence for each threshold, and its result.
pub(crate) fn sentences(summary: &Summary, is_ascii: bool) -> Vec<(Answer, String)> {
    let said = |threshold: &Threshold| {
        let without = threshold.undecided.iter().filter(|j| j.reason.as_deref() == Some(NOT_DONE));
        let all = summary.cells.len() + without.count();
        (threshold.answer(), sentence(threshold, all, is_ascii))
    };
    summary.thresholds.iter().map(said).collect()
}

/// The condition and its figures among `all` cells.
fn sentence(threshold: &Threshold, all: usize, is_ascii: bool) -> String {
    let mut text = threshold.condition.clone();
    if let Some(reason) = &threshold.reason {
        text += &format!(": {reason}");
    }
    let is_failed = |cell: &str| threshold.failed.iter().any(|failed| failed.cell == cell);
    let said = |judged: &Judged| {
        let figure = judged.figure.map(|figure| figure_text(&threshold.metric, figure, is_ascii));
        let name = judged.cell.strip_suffix(" on reference").unwrap_or(&judged.cell);
        let is_close = is_failed(&judged.cell) && threshold.close.contains(judged);
        match (figure, &judged.reason) {
            (Some(figure), Some(reason)) => format!("{name} {figure} ({reason})"),
            (Some(figure), None) if is_close => format!("{name} {figure} ({CLOSE})"),
            (Some(figure), None) => format!("{name} {figure}"),
            (None, Some(reason)) => format!("{name} ({reason})"),
            (None, None) => name.to_owned(),
        }
    };
    // The estimate decides; one whose interval includes the limit holds or fails all the same.
    let close = threshold.close.iter().filter(|judged| !is_failed(&judged.cell));
    let kinds: [(Vec<&Judged>, &str); 3] = [
        (threshold.failed.iter().collect(), "fails"),
        (threshold.undecided.iter().collect(), "cannot be decided"),
        (close.collect(), HOLDS_CLOSE),
    ];
    for (judged, what) in kinds.into_iter().filter(|(judged, _)| !judged.is_empty()) {
        let shown: Vec<String> = judged.iter().copied().take(NAMES_MAX).map(said).collect();
        let more = match judged.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        text += &format!("; {what} in {} of {all}: {}{more}", judged.len(), shown.join(", "));
    }
    text
}

/// Whether they hold, as in the answer, with the conditions that do not; `None` if the plan has
/// none.
pub(crate) fn verdict(summary: &Summary) -> Option<String> {
    let open: Vec<String> = OPEN.iter().filter_map(|kind| of_kind(summary, *kind, true)).collect();
    let said = || if open.is_empty() { held(summary) } else { open.join(". ") };
    (!summary.thresholds.is_empty()).then(said)
}

/// How many of them hold, in words.
pub(crate) fn held(summary: &Summary) -> String {
    let open: Vec<String> = OPEN.iter().filter_map(|kind| of_kind(summary, *kind, false)).collect();
    match open.is_empty() {
        true => of_kind(summary, (Answer::Holds, ["holds", "hold"]), false).unwrap_or_default(),
        false => open.join(", "),
    }
}

/// How many have this answer, in its singular and plural, and on request which; `None` if none has.
fn of_kind(summary: &Summary, kind: (Answer, [&str; 2]), is_named: bool) -> Option<String> {
    let (wanted, [word, plural]) = kind;
    let own = summary.thresholds.iter().filter(|threshold| threshold.answer() == wanted);
    let own: Vec<&str> = own.map(|threshold| threshold.condition.as_str()).collect();
    let said = match (own.len(), summary.thresholds.len()) {
        (0, _) => return None,
        (1, 1) => format!("The threshold {word}"),
        (2, 2) => format!("Both thresholds {plural}"),
        (number, all) if number == all => format!("All {all} thresholds {plural}"),
        (number, all) => format!("{number} of {all} thresholds {plural}"),
    };
    Some(if is_named { format!("{said}: {}", own.join("; ")) } else { said })
}

/// Answers that a reader must see, and their words.
const OPEN: [(Answer, [&str; 2]); 2] =
    [(Answer::Failed, ["failed"; 2]), (Answer::Undecided, ["could not be decided"; 2])];

/// A figure whose interval includes the limit: another run may decide differently.
const CLOSE: &str = "its 95 % interval includes the limit";

const HOLDS_CLOSE: &str = "holds, but the 95 % interval includes the limit,";

/// Cells that a sentence names.
const NAMES_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimate decides: one condition never both holds and is undecided in the words.
    #[test]
    fn an_interval_that_includes_the_limit_is_named_with_its_answer() {
        let judged = |figure: f64| Judged {
            cell: "http1 on reference".to_owned(),
            figure: Some(figure),
            low: Some(40e6),
            high: Some(60e6),
            reason: None,
        };
        let threshold = |failed: Vec<Judged>, close: f64| Threshold {
            condition: "p98 <= 50ms".to_owned(),
            metric: "response_time_ns.p98".to_owned(),
            holds: failed.is_empty(),
            reason: None,
            failed,
            undecided: Vec::new(),
            close: vec![judged(close)],
        };
        assert_eq!(
            sentence(&threshold(Vec::new(), 44.7e6), 1, false),
            "p98 <= 50ms; holds, but the 95 % interval includes the limit, in 1 of 1: http1 44.7 ms"
        );
        assert_eq!(
            sentence(&threshold(vec![judged(51e6)], 51e6), 1, false),
            "p98 <= 50ms; fails in 1 of 1: http1 51.0 ms (its 95 % interval includes the limit)"
        );
    }

    #[test]
    fn a_sentence_says_what_it_met_in_the_unit_of_the_metric() {
        for (condition, metric, figure, text) in [
            (
                "response_time p(95) < 5ms",
                "response_time_ns.p95",
                6e6,
                "response_time p(95) < 5ms; fails in 1 of 2: slow 6.00 ms",
            ),
            ("loss == 0", "loss_ratio", 0.01, "loss == 0; fails in 1 of 2: slow 1.00 %"),
        ] {
            let slow = "slow".to_owned();
            let failed =
                Judged { cell: slow, figure: Some(figure), low: None, high: None, reason: None };
            let threshold = Threshold {
                condition: condition.to_owned(),
                metric: metric.to_owned(),
                holds: false,
                reason: None,
                failed: vec![failed],
                undecided: Vec::new(),
                close: Vec::new(),
            };
            assert_eq!(sentence(&threshold, 2, false), text);
        }
    }
}
