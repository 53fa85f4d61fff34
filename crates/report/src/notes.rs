//! What stands below the table: where messages were lost, what makes the figures doubtful and
//! what to do about it, which trials failed, and what the signs mean.

use std::fmt::Write as _;

use serde::Serialize;
use weigh_model::doubt::{DoubtRecord, Severity};

use crate::cells::{is_reference, point_name};
use crate::figures::{count, share, three_digits};
use crate::summary::{Cell, Comparison, Failure, Ratio, Summary, Verdict};
use crate::table::{INVALID_MARK, Style, shows_delivery_time};

/// All notes, each block after an empty line; empty blocks are left out.
pub(crate) fn below(summary: &Summary, style: Style) -> String {
    let blocks = [
        legend(summary),
        losses(summary),
        differences(summary),
        doubts(summary),
        failures(summary),
        outcome(summary),
    ];
    let mut text = String::new();
    for block in blocks.iter().filter(|block| !block.is_empty()) {
        text.push('\n');
        for line in block {
            text.push_str(&wrap(line, style));
        }
    }
    text
}

fn legend(summary: &Summary) -> Vec<String> {
    let cells = &summary.cells;
    let mut lines = Vec::new();
    if !cells.is_empty() && !cells.iter().all(is_reference) {
        lines.push(
            "reference: a server that Weighbridge carries; real: a server as others run it"
                .to_owned(),
        );
    }
    if cells.iter().any(|cell| !cell.valid) {
        lines.push(format!("{INVALID_MARK}  invalid, not to be used: see the doubts"));
    }
    if cells.iter().any(shows_delivery_time) {
        lines.push(
            "d  delivery time (due to delivered): nothing confirms, so there is no response time"
                .to_owned(),
        );
    }
    let is_infinite =
        |cell: &Cell| cell.metrics.values().any(|m| m.values.iter().any(Option::is_none));
    if cells.iter().any(is_infinite) {
        lines.push("∞  falls into the lost share: a lost message waits for ever".to_owned());
    }
    if cells.iter().any(|cell| cell.ledger.lost == Some(0) && cell.ledger.sent > 0) {
        lines.push(
            "0 (≤ x)  0 of n lost (≤ 3/n at 95 %): x is the largest share that agrees with it"
                .to_owned(),
        );
    }
    if cells.iter().any(|cell| cell.repetitions > 1) {
        lines.push("times and rates are means over repetitions, messages are sums".to_owned());
    }
    lines
}

/// One line for every cell that lost or did not send anything.
fn losses(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    for cell in &summary.cells {
        let ledger = &cell.ledger;
        if let (Some(delivered), Some(lost @ 1..)) = (ledger.delivered, ledger.lost) {
            lines.push(format!(
                "{}: {} missing of {} sent ({} delivered): {}",
                cell.name,
                count(lost),
                count(ledger.sent),
                share(delivered, ledger.sent),
                by_cause(&ledger.causes)
            ));
        }
        if ledger.not_sent > 0 {
            lines.push(format!(
                "{}: {} of {} scheduled were never sent: {}",
                cell.name,
                count(ledger.not_sent),
                count(ledger.scheduled),
                by_cause(&ledger.not_sent_causes)
            ));
        }
        for (number, what) in [
            (ledger.late, "late (after the timeout)"),
            (ledger.reordered, "reordered"),
            (ledger.corrupt, "corrupt"),
            (ledger.foreign, "foreign (without our mark)"),
            (ledger.acked_not_delivered, "confirmed by the server and never delivered"),
            (ledger.no_subscriber, "without a subscriber, says the server"),
        ] {
            if number > 0 {
                lines.push(format!("{}: {} {what}", cell.name, count(number)));
            }
        }
    }
    titled("messages", lines)
}

fn by_cause<'a, C: Serialize + 'a>(causes: impl IntoIterator<Item = (&'a C, &'a u64)>) -> String {
    let mut parts: Vec<(u64, String)> = causes
        .into_iter()
        .filter(|(_, number)| **number > 0)
        .map(|(cause, number)| {
            let name = serde_json::to_value(cause).unwrap_or_default();
            (*number, name.as_str().unwrap_or("unknown").replace('_', " "))
        })
        .collect();
    parts.sort_by(|left, right| right.0.cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
    let texts = parts.iter().map(|(number, name)| format!("{} {name}", count(*number)));
    texts.collect::<Vec<_>>().join(", ")
}

/// Every pair of cells of which something can be said, metric by metric.
fn differences(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    for comparison in &summary.comparisons {
        let verdict = match comparison.verdict {
            Verdict::Lower => "lower",
            Verdict::Higher => "higher",
            Verdict::TooClose => "too close to call",
            Verdict::Refused => continue,
        };
        let Some(Ratio { value, low: Some(low), high: Some(high) }) = comparison.ratio else {
            continue;
        };
        let [value, low, high] = [value, low, high].map(three_digits);
        let Comparison { metric, left, right, .. } = comparison;
        lines.push(format!("{metric}: {left} / {right} = {value} ({low} to {high}): {verdict}"));
    }
    titled("ratios of means, with their intervals at 95 % over the repetitions", lines)
}

/// Every doubt once, with the cells it is about; those that make results invalid first.
fn doubts(summary: &Summary) -> Vec<String> {
    let mut seen: Vec<(&DoubtRecord, Vec<&str>)> = Vec::new();
    for cell in &summary.cells {
        for doubt in &cell.doubts {
            match seen.iter_mut().find(|(known, _)| *known == doubt) {
                Some((_, cells)) => cells.push(&cell.name),
                None => seen.push((doubt, vec![&cell.name])),
            }
        }
    }
    seen.sort_by_key(|(doubt, _)| doubt.severity != Severity::Invalid);
    let mut lines = Vec::new();
    for (doubt, cells) in seen {
        let kind = if doubt.severity == Severity::Invalid { "INVALID " } else { "" };
        let about =
            if cells.len() == summary.cells.len() { "all".to_owned() } else { cells.join("; ") };
        let mut line = format!("{kind}{} [{about}]: {}", doubt.code, doubt.text);
        let _ = write!(line, "; {}", doubt.advice);
        lines.push(line);
    }
    titled("doubts", lines)
}

fn failures(summary: &Summary) -> Vec<String> {
    let line = |failure: &Failure| format!("{}: {}", point_name(&failure.point), failure.error);
    titled("not done", summary.failures.iter().map(line).collect())
}

fn outcome(summary: &Summary) -> Vec<String> {
    match summary.run.outcome.as_str() {
        "done" => Vec::new(),
        outcome => vec![format!("the run is {outcome}: this is what was measured until then")],
    }
}

fn titled(title: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return lines;
    }
    let mut block = vec![format!("{title}:")];
    block.extend(lines.into_iter().map(|line| format!("  {line}")));
    block
}

/// Breaks a line at blanks; what follows is indented by four more. Markdown gets lists instead.
pub(crate) fn wrap(line: &str, style: Style) -> String {
    if style.is_markdown {
        let item = line.strip_prefix("  ").map(|item| format!("- {item}"));
        return item.unwrap_or_else(|| format!("{line}  ")) + "\n";
    }
    let indent = line.len() - line.trim_start().len();
    let width = usize::from(style.width);
    let mut text = String::new();
    let mut current = " ".repeat(indent);
    let mut is_empty = true;
    for word in line.trim_start().split(' ') {
        if !is_empty && current.chars().count() + 1 + word.chars().count() > width {
            let _ = writeln!(text, "{current}");
            current = " ".repeat(indent + 4);
            is_empty = true;
        }
        if !is_empty {
            current.push(' ');
        }
        current.push_str(word);
        is_empty = false;
    }
    text + &current + "\n"
}
