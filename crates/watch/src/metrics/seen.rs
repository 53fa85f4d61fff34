//! What the text is made of.

use weigh_report::exports::openmetrics_text::{head, put};

use crate::process::Resources;
use crate::state::RunState;

/// What is known of a run at a moment.
pub(super) struct Seen<'s> {
    /// Its state.
    pub(super) state: &'s RunState,
    /// True while a process records it.
    pub(super) is_recorded: bool,
    /// What the generator uses.
    pub(super) resources: Resources,
    /// The moment, milliseconds since 1970.
    pub(super) unix_ms: u64,
}

/// A gauge with one sample; none without a value.
pub(super) fn gauge(text: &mut String, name: &str, unit: &str, about: &str, value: Option<f64>) {
    if let Some(value) = value {
        head(text, name, "gauge", unit, about);
        put(text, name, value);
    }
}
