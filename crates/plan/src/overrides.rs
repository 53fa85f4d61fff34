//! Keys of a plan that flags set (`--set load.rate=500/s`): they replace the plan's values, with
//! the same checks.

use std::ops::Range;

use crate::document::Document;
use crate::keys::Keys;
use crate::problem::{Problem, Problems};
use crate::row::{Given, Row};

/// Keys and their new values.
pub type Sets = [(String, String)];

/// Formats the sets as text of a plan, a line each. It starts after `text`, so that its places are
/// after the end of the plan.
///
/// # Errors
/// Unknown keys, with the nearest known one, and invalid values.
pub(crate) fn layer(text: &str, sets: &Sets, keys: &Keys) -> Result<String, Problems> {
    let mut problems = Problems::default();
    let mut layer = " ".repeat(text.len());
    for (written, word) in sets {
        let read = keys.find(written).and_then(|key| key.kind.read_word(word));
        match read {
            Ok(value) => layer.push_str(&format!("\n{written:?} = {value}")),
            Err(wrong) => {
                let text = format!("--set {written}={word}: {}", wrong.text);
                problems.add(Problem::missing(text, wrong.fix));
            }
        }
    }
    problems.or(layer)
}

/// Start of each set in the places of a plan, and its words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin(Vec<(usize, String, String)>);

impl Origin {
    /// Finds the sets in this layer.
    pub(crate) fn of(layer: &str, sets: &Sets) -> Origin {
        let lines = layer.match_indices('\n').map(|(at, _)| at);
        Origin(lines.zip(sets).map(|(at, (key, word))| (at, key.clone(), word.clone())).collect())
    }

    /// Reports errors of a set by its flag, because no line of the plan has it.
    pub(crate) fn told(&self, problems: Problems) -> Problems {
        let mut told = Problems::default();
        for problem in problems.iter() {
            let place = problem.place.as_ref().map(|place: &Range<usize>| place.start);
            let set = self.0.iter().rev().find(|(at, ..)| place.is_some_and(|place| place > *at));
            told.add(match set {
                None => problem.clone(),
                Some((_, key, word)) => {
                    let said = problem.text.strip_prefix(&format!("{key}: "));
                    let said = said.unwrap_or(&problem.text);
                    Problem::missing(format!("--set {key}={word}: {said}"), problem.fix.clone())
                }
            });
        }
        told
    }
}

/// Applies the sets. A key that is set is not an axis any more, even if explicit cases have it;
/// cases that differed only in it are merged.
pub(crate) fn apply(document: &mut Document, sets: &Sets, keys: &Keys) {
    let names: Vec<&str> =
        sets.iter().filter_map(|(written, _)| keys.find(written).ok()).map(|k| &*k.name).collect();
    for axis in &mut document.axes {
        let mut rows: Vec<Row> = Vec::new();
        for mut row in std::mem::take(&mut axis.rows) {
            row.retain(|name, _| !names.contains(&name.as_str()));
            if !rows.iter().any(|known| is_same(known, &row)) {
                rows.push(row);
            }
        }
        axis.rows = rows;
    }
}

fn is_same(left: &Row, right: &Row) -> bool {
    let values = |row: &Row| {
        row.iter()
            .map(|(key, Given { value, .. })| (key.clone(), value.clone()))
            .collect::<Vec<_>>()
    };
    values(left) == values(right)
}
