//! What brokers did while their subscribers read nothing: how many messages that they had confirmed
//! were lost, whether they report it, and the memory it took. Made only from the figures of the
//! cells.

use weigh_model::ledger::Cause;

use crate::figures::{bytes, count, share, time};
use crate::summary::COUNTERS_ASKED;
use crate::summary::{Cell, Summary};

/// A sentence for each cell with stalled subscribers; empty if there are none.
pub(crate) fn lines(summary: &Summary, is_ascii: bool) -> Vec<String> {
    let stalled = summary.cells.iter().filter(|cell| value(cell, STALL).is_some());
    stalled.map(|cell| format!("{}: {}", cell.name, sentence(cell, is_ascii))).collect()
}

/// The title above them.
pub(crate) const TITLE: &str =
    "stalled subscribers: what was confirmed to its publisher and never delivered";

fn sentence(cell: &Cell, is_ascii: bool) -> String {
    let ledger = &cell.ledger;
    let lost = ledger.acked_not_delivered;
    let mut parts = vec![format!(
        "{} of {} confirmed were lost ({})",
        count(lost),
        count(ledger.acknowledged),
        share(lost, ledger.acknowledged)
    )];
    parts.push(match said(cell) {
        said if !said.is_empty() => said.join(", "),
        _ if lost > 0 => unsaid(cell),
        _ => "nothing was to be said".to_owned(),
    });
    if unconfirmed(cell) > 0 {
        parts.push(format!("{} sent were never confirmed", count(unconfirmed(cell))));
    }
    if let Some(slowest) = value(cell, "response_time_ns.max") {
        parts.push(format!("the slowest confirmation took {}", time(slowest, is_ascii)));
    }
    if let Some((before, most)) =
        value(cell, "target_memory_bytes.before").zip(value(cell, "target_memory_bytes.max"))
    {
        parts.push(format!("memory {} before, at most {}", bytes(before), bytes(most)));
    }
    parts.join("; ")
}

/// Text if no counter or event reports the loss, as far as counters were read.
fn unsaid(cell: &Cell) -> String {
    match cell.scene.get(COUNTERS_ASKED) {
        Some(words) if !cell.metrics.contains_key("counter.dropped") => {
            format!("its own counters: {words}")
        }
        _ => "nothing says so".to_owned(),
    }
}

/// The ways in which a broker can report a loss, and those that this one used.
fn said(cell: &Cell) -> Vec<String> {
    let mut said = Vec::new();
    let dropped = cell.metrics.get("counter.dropped");
    if let Some(dropped) = dropped.and_then(|own| own.value.map(|mean| mean * f64::from(own.n)))
        && dropped > 0.0
    {
        said.push(format!("its own counter reports {} dropped", count(dropped as u64)));
    }
    if cell.ledger.causes.get(&Cause::SubscriberDisconnected).is_some_and(|lost| *lost > 0) {
        said.push("it disconnected the subscriber".to_owned());
    }
    let stall_ns = value(cell, STALL).map_or(f64::INFINITY, |seconds| seconds * 1e9);
    let slowest_ns = value(cell, "response_time_ns.max").unwrap_or(0.0);
    if slowest_ns >= stall_ns * HELD_BACK_SHARE || unconfirmed(cell) > 0 {
        said.push("it held its publisher back".to_owned());
    }
    said
}

/// Messages that were sent and never confirmed.
fn unconfirmed(cell: &Cell) -> u64 {
    cell.ledger.sent.saturating_sub(cell.ledger.acknowledged)
}

fn value(cell: &Cell, name: &str) -> Option<f64> {
    cell.metrics.get(name)?.value
}

/// How long subscribers read nothing.
const STALL: &str = "subscriber_stall_s";

/// A confirmation that took this share of the stall waited for its end and not for its turn.
const HELD_BACK_SHARE: f64 = 0.25;
