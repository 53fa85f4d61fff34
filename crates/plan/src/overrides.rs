//! Keys of a plan that are set from outside (`--set load.rate=500/s`): they take the place of what
//! the plan says of them, under the same checks.

use std::ops::Range;

use crate::document::Document;
use crate::keys::Keys;
use crate::problem::{Problem, Problems};
use crate::row::{Given, Row};

/// Keys and the words that they are set to.
pub type Sets = [(String, String)];

/// The sets as text of a plan that begins behind `text`, so that every place in it is beyond the
/// end of the plan: one line each.
///
/// # Errors
/// Keys that there are not, with the nearest, and words that they do not take.
pub(crate) fn layer(text: &str, sets: &Sets, keys: &Keys) -> Result<String, Problems> {
    let mut problems = Problems::default();
    let mut layer = " ".repeat(text.len());
    for (written, word) in sets {
        let read = keys.find(written).and_then(|key| key.kind.read_word(word));
        match read {
            Ok(value) => layer.push_str(&format!("\n{written:?} = {value}")),
            Err(wrong) => {
                let text = format!("--set {written}={word}: {}", wrong.text);
                problems.add(Problem::missing(text, wrong.mend));
            }
        }
    }
    problems.or(layer)
}

/// Where the sets of a plan begin in its places, and what each of them says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin(Vec<(usize, String, String)>);

impl Origin {
    /// Of this layer.
    pub(crate) fn of(layer: &str, sets: &Sets) -> Origin {
        let lines = layer.match_indices('\n').map(|(at, _)| at);
        Origin(lines.zip(sets).map(|(at, (key, word))| (at, key.clone(), word.clone())).collect())
    }

    /// What is wrong with a set is told by the set: it stands in no line of the plan.
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
                    Problem::missing(format!("--set {key}={word}: {said}"), problem.mend.clone())
                }
            });
        }
        told
    }
}

/// A key that is set is no axis any more, also where explicit cases give it; cases that differed in
/// nothing else are one.
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
