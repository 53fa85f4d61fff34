//! Which messages were lost, where, and by which cause; late and unsent ones.

use std::collections::BTreeMap;

use weigh_model::ledger::Ledger;

use super::words::counted;
use crate::figures::{count, three_digits};
use crate::summary::{Cell, Matrix, Summary};

/// The losses of the run.
pub(super) fn line(summary: &Summary, matrix: &Matrix) -> String {
    let cells = &summary.cells;
    let lost = |cell: &Cell| cell.ledger.lost.unwrap_or(0);
    let share = |cell: &Cell| lost(cell) as f64 / cell.ledger.sent.max(1) as f64;
    let mut lossy: Vec<(&Cell, &str)> = cells
        .iter()
        .zip(matrix.labels.iter().map(String::as_str))
        .filter(|(cell, _)| lost(cell) > 0)
        .collect();
    lossy.sort_by(|left, right| share(right.0).total_cmp(&share(left.0)));
    let mut text = match &lossy[..] {
        [] => none(cells),
        [(cell, label), others @ ..] => {
            let own = &cell.ledger;
            let part = format!(
                "{} of {} messages ({} %{})",
                count(lost(cell)),
                count(own.sent),
                three_digits(100.0 * share(cell)),
                where_and_why(own)
            );
            match (cells.len(), others.len()) {
                (1, _) => format!("Lost: {part}"),
                (_, 0) => format!("Only {label} lost messages: {part}"),
                (all, _) => {
                    let number = lossy.len();
                    let most = format!("the largest share in {label}: {part}");
                    format!("{number} of {all} cases lost messages, {most}")
                }
            }
        }
    };
    for (number, what) in [
        (cells.iter().map(|cell| cell.ledger.late).sum::<u64>(), "arrived after the timeout"),
        (cells.iter().map(|cell| cell.ledger.not_sent).sum(), "were never sent"),
    ] {
        if number > 0 {
            text += &format!("; {} {what}", count(number));
        }
    }
    text
}

/// No loss was seen; it is unknown where arrivals are not observed.
fn none(cells: &[Cell]) -> String {
    let unknown = cells.iter().filter(|cell| cell.ledger.lost.is_none()).count();
    let sent: u64 = cells.iter().filter(|c| c.ledger.lost.is_some()).map(|c| c.ledger.sent).sum();
    match unknown {
        _ if cells.iter().all(|cell| cell.ledger.sent == 0) => "No message was sent".to_owned(),
        0 => format!("No message was lost of {} sent", count(sent)),
        all if all == cells.len() => "Arrivals were not observed, so losses are unknown".to_owned(),
        some => {
            let (of, whose) = match cells.iter().find(|cell| cell.ledger.lost.is_none()) {
                Some(cell) if some == 1 => (cell.name.clone(), "its"),
                _ => (counted(some, "case"), "their"),
            };
            let seen = counted(cells.len() - some, "case");
            format!(
                "No message was lost of {} sent in {seen}. Losses of {of} are unknown: nothing \
                 confirms {whose} messages",
                count(sent)
            )
        }
    }
}

/// The cause, or the number of each if there are several, and the stage at which most were seen
/// last.
fn where_and_why(ledger: &Ledger) -> String {
    let mut causes: Vec<_> = ledger.causes.iter().filter(|(_, number)| **number > 0).collect();
    causes.sort_by_key(|(_, number)| std::cmp::Reverse(**number));
    let cause = match &causes[..] {
        [] => String::new(),
        [(only, _)] => format!(", {}", only.words()),
        several => {
            let each =
                several.iter().map(|(own, number)| format!("{} {}", count(**number), own.words()));
            format!(": {}", each.collect::<Vec<_>>().join(", "))
        }
    };
    let stage = most(&ledger.last_seen)
        .map_or(String::new(), |own| format!(", last seen at {}", own.replace('_', " ")));
    cause + &stage
}

/// The key with the largest number.
fn most<K>(numbers: &BTreeMap<K, u64>) -> Option<&K> {
    let some = numbers.iter().filter(|(_, number)| **number > 0);
    some.max_by_key(|(_, number)| **number).map(|(key, _)| key)
}
