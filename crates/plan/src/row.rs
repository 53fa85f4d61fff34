//! Keys and values of one case, each with its place.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::{Table, Value};

use crate::case::{setting_text, word};
use crate::contradiction::Contradiction;
use crate::problem::Problem;

/// A value, and its bytes in the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Given {
    pub(crate) value: Value,
    pub(crate) place: Range<usize>,
}

impl Given {
    /// The value as typed on a command line; empty unless it is a single value.
    pub(crate) fn text(&self) -> String {
        setting_text(&word(&self.value)).unwrap_or_default()
    }
}

/// Values by key.
pub(crate) type Row = BTreeMap<String, Given>;

/// The row as text: equal for rows with equal values.
pub(crate) fn spelt(row: &Row) -> String {
    row.iter().map(|(key, given)| format!("{key}={};", given.value)).collect()
}

/// Reports a contradiction at the first of its given keys; the keys are those of a load after
/// `prefix`.
pub(crate) fn told(contradiction: &Contradiction, row: &Row, prefix: &str) -> Problem {
    let wrong = contradiction.in_plan();
    let keys = contradiction.keys();
    let given = keys.iter().find_map(|key| Some((key, row.get(&format!("{prefix}{key}"))?)));
    let name = given.map_or(keys[0], |(key, _)| key);
    let place = given.map(|(_, given)| given.place.clone()).or_else(|| anything(row));
    let fix = wrong.fix.replace("load.", &format!("{prefix}load."));
    Problem { place, text: format!("{prefix}{name}: {}", wrong.text), fix }
}

/// Some place of a case, for errors of the whole case.
pub(crate) fn anything(row: &Row) -> Option<Range<usize>> {
    row.values().next().map(|given| given.place.clone())
}

/// Values of the keys that start with `prefix`, by the rest of their names.
pub(crate) fn below(row: &Row, prefix: &str) -> Table {
    let own = |(key, given): (&String, &Given)| {
        Some((key.strip_prefix(prefix)?.to_owned(), given.value.clone()))
    };
    row.iter().filter_map(own).collect()
}
