//! The verdicts as sentences for the terminal: which lane was how many times faster than which
//! other, one line for two lanes, whatever the number of places.

use super::meeting::{Lanes, Meeting};
use crate::figures::{count, spoken};
use crate::summary::headlines::headline_metric;
use crate::summary::{Matrix, Multiplicity, Summary};
use weigh_model::numbers::exact;

/// All lines; empty where nothing was compared.
pub(crate) fn lines(summary: &Summary) -> Vec<String> {
    let matrix = Matrix::new(&summary.cells);
    let lanes = Lanes::of(summary, &matrix);
    let mut lines = Vec::new();
    let mut metrics: Vec<&str> = Vec::new();
    for comparison in &summary.comparisons {
        if !metrics.contains(&comparison.metric.as_str()) {
            metrics.push(&comparison.metric);
        }
    }
    for metric in metrics {
        let said = lanes.meetings(summary, metric, true);
        let said = said.iter().filter(|one| one.is_compared());
        lines.extend(titled(spoken(metric), folded(said.collect(), metric)));
    }
    if let Some(metric) = headline_metric(summary) {
        let said = lanes.meetings(summary, metric, false);
        let said = said.iter().filter(|one| one.is_compared());
        let title = format!("{}, along the axis", spoken(metric));
        lines.extend(titled(title, counted(said.map(Meeting::steps).collect())));
    }
    let together = together(summary, lines.iter().any(|line| line.contains(" ?")));
    if !lines.is_empty() && !together.is_empty() {
        lines.push(together);
    }
    lines
}

/// One sentence for each pair; of many pairs, those too close to call everywhere are only counted,
/// and at most [`LINES_MAX`] others, those that differ or are practically equal, are listed.
fn folded(pairs: Vec<&Meeting>, metric: &str) -> Vec<String> {
    if pairs.len() <= LINES_MAX {
        return pairs.iter().map(|pair| pair.words(metric)).collect();
    }
    let (close, decided): (Vec<&Meeting>, Vec<&Meeting>) =
        pairs.iter().partition(|pair| pair.is_close());
    let mut lines: Vec<String> =
        decided.iter().take(LINES_MAX).map(|pair| pair.words(metric)).collect();
    let more = decided.len().saturating_sub(LINES_MAX);
    let counted = match (decided.len(), close.len(), more) {
        (0, all, _) => format!("all {all} pairs are too close to call"),
        (_, 0, more) => format!("{} decided", pairs_are(more)),
        (_, close, 0) => format!("{} too close to call", pairs_are(close)),
        (_, 1, more) => format!("{} decided, and 1 is too close to call", pairs_are(more)),
        (_, close, more) => {
            format!("{} decided, and {close} are too close to call", pairs_are(more))
        }
    };
    lines.push(format!("{counted}: report.html has each"));
    lines
}

/// `1 more pair is`, `2 more pairs are`.
fn pairs_are(number: usize) -> String {
    match number {
        1 => "1 more pair is".to_owned(),
        many => format!("{many} more pairs are"),
    }
}

/// At most [`LINES_MAX`] lines, the others counted.
fn counted(mut lines: Vec<String>) -> Vec<String> {
    let rest = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    if rest > 0 {
        lines.push(format!("{rest} more: report.html and summary.json have them"));
    }
    lines
}

/// Lines below a title; none if there are no lines.
fn titled(title: String, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return lines;
    }
    let mut all = vec![format!("  {title}:")];
    all.extend(lines.into_iter().map(|line| format!("    {line}")));
    all
}

/// The effect of many verdicts on each; empty for a single one.
fn together(summary: &Summary, has_sign: bool) -> String {
    let of = &summary.multiplicity;
    if of.compared < 2 {
        return String::new();
    }
    let mut text = format!("  {}", by_chance(of));
    if of.standing < of.called {
        let standing = count(of.standing.into());
        let sign = if has_sign { "; ? marks a verdict that does not" } else { "" };
        text += &format!(" {standing} stay significant when corrected for all comparisons{sign}");
    }
    text
}

/// How many comparisons are significant, and how many would look so by chance alone.
pub(crate) fn by_chance(of: &Multiplicity) -> String {
    let [compared, called] = [of.compared, of.called].map(|number| count(number.into()));
    format!(
        "{compared} comparisons in all, {called} significant; chance alone would make {} \
         significant.",
        exact((of.expected_by_chance * 100.0).round() / 100.0),
    )
}

/// Pairs of one metric that are listed.
const LINES_MAX: usize = 8;
