//! What a plan says of one case, each value with its place.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::{Table, Value};

use crate::case::{setting_text, word};
use crate::contradiction::Contradiction;
use crate::problem::Problem;

/// A value, and the bytes of the file it was read from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Given {
    pub(crate) value: Value,
    pub(crate) place: Range<usize>,
}

impl Given {
    /// Its value as it is typed on a command line; empty for what is no single value.
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

/// What contradicts itself, at the first of its keys that was given; the keys are those of a load
/// behind `prefix`.
pub(crate) fn told(contradiction: &Contradiction, row: &Row, prefix: &str) -> Problem {
    let wrong = contradiction.in_plan();
    let keys = contradiction.keys();
    let given = keys.iter().find_map(|key| Some((key, row.get(&format!("{prefix}{key}"))?)));
    let name = given.map_or(keys[0], |(key, _)| key);
    let place = given.map(|(_, given)| given.place.clone()).or_else(|| anything(row));
    let mend = wrong.mend.replace("load.", &format!("{prefix}load."));
    Problem { place, text: format!("{prefix}{name}: {}", wrong.text), mend }
}

/// Some place of a case, for what is wrong with all of it.
pub(crate) fn anything(row: &Row) -> Option<Range<usize>> {
    row.values().next().map(|given| given.place.clone())
}

/// The values of the keys that begin with `prefix`, by the rest of their names.
pub(crate) fn below(row: &Row, prefix: &str) -> Table {
    let own = |(key, given): (&String, &Given)| {
        Some((key.strip_prefix(prefix)?.to_owned(), given.value.clone()))
    };
    row.iter().filter_map(own).collect()
}
