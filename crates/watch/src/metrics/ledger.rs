//! The ledger of all finished trials as counters.

use serde::Serialize;
use serde_json::Value;
use weigh_report::exports::openmetrics_text::{head, pair, put};

use crate::state::RunState;

/// Appends the terms of the ledger and the causes of loss. A trial that is done again makes them
/// smaller, which Prometheus takes for a restart.
pub(super) fn add(text: &mut String, state: &RunState) {
    let Some(ledger) = &state.ledger else { return };
    let about = "Messages, or pairs of message and subscriber, of finished trials by term.";
    counters(text, "weigh_ledger_messages", "term", ledger, about);
    let about = "Pairs that were lost in finished trials, by cause.";
    counters(text, "weigh_lost_messages", "cause", &ledger.causes, about);
}

/// A counter for each number of `terms`.
fn counters(text: &mut String, name: &str, label: &str, terms: &impl Serialize, about: &str) {
    let terms = serde_json::to_value(terms).unwrap_or_default();
    let numbers = terms.as_object().into_iter().flatten();
    let numbers: Vec<(&String, f64)> =
        numbers.filter_map(|(term, value)| Some((term, Value::as_f64(value)?))).collect();
    if numbers.is_empty() {
        return;
    }
    head(text, name, "counter", "messages", about);
    for (term, value) in numbers {
        put(text, &format!("{name}_total{{{}}}", pair(label, term)), value);
    }
}
