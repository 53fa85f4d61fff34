//! Plans in several tables of one document, each replacing keys of the previous one: keys of all
//! plans of a file, the plan itself, shorter values for a quick run.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::entries::{entries, in_order};
use crate::keys::Keys;
use crate::problem::{Problem, Problems};

/// The length of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Length {
    /// The whole plan.
    #[default]
    Whole,
    /// First and last value of each axis, two short repetitions: to check that it runs.
    Miniature,
}

/// Parses a TOML document.
///
/// # Errors
/// Text that is not valid TOML.
pub fn parse(text: &str) -> Result<DeTable<'_>, Problems> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut problems = Problems::default();
    for error in errors {
        let place = error.span().unwrap_or(0..0);
        let fix = syntax_fix(error.message());
        problems.add(Problem::at(place, error.message(), fix));
    }
    problems.or(table.into_inner())
}

/// The fix for invalid TOML; the parser reports only what it found.
fn syntax_fix(message: &str) -> &'static str {
    if message.contains("duplicate key") {
        "leave one of them out"
    } else {
        "write key = value, texts in \"quotes\", lists in [brackets], [table] on its own line"
    }
}

/// Merges `layers`, the last one first. A key that a later layer fixes is not an axis any more, and
/// one that it varies has no fixed value any more.
///
/// # Errors
/// A key that a layer gives twice.
pub(crate) fn over_each_other<'d>(
    layers: &[&'d DeTable<'d>],
    keys: &Keys,
) -> Result<DeTable<'d>, Problems> {
    let mut said: Vec<Said<'d>> = Vec::new();
    let mut problems = Problems::default();
    for layer in layers {
        let own = told(layer, keys);
        for (at, one) in own.iter().enumerate() {
            if own[..at].iter().any(|before| before.name == one.name && before.part == one.part) {
                let text = format!("{} was given before", one.name);
                problems.add(Problem::at(one.key.clone(), text, "leave one of them out"));
            }
        }
        said.retain(|below| !own.iter().any(|one| one.name == below.name));
        said.extend(own);
    }
    let mut table = DeTable::new();
    for one in said {
        match one.part {
            Part::Top => put(&mut table, &one.written, one.key, one.value),
            Part::Below(part) => {
                let empty = || Spanned::new(one.key.clone(), DeValue::Table(DeTable::new()));
                let name = Spanned::new(one.key.clone(), Cow::Borrowed(part));
                let entry = table.entry(name).or_insert_with(empty);
                if let DeValue::Table(below) = entry.get_mut() {
                    put(below, &one.written, one.key, one.value);
                }
            }
        }
    }
    problems.or(table)
}

/// Place of a key in a table, fixed or as an axis.
pub fn place_of(table: &DeTable<'_>, name: &str, keys: &Keys) -> Option<Range<usize>> {
    let said = told(table, keys);
    let own = said.into_iter().find(|one| one.name == name && one.part != Part::Below(STOP));
    own.map(|one| one.key)
}

/// A key of a layer.
struct Said<'d> {
    part: Part,
    /// Its canonical name.
    name: String,
    written: String,
    key: Range<usize>,
    value: Spanned<DeValue<'d>>,
}

/// The table of a key: for all cases, or of its own kind.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Top,
    Below(&'static str),
}

fn told<'d>(layer: &'d DeTable<'d>, keys: &Keys) -> Vec<Said<'d>> {
    let mut said = Vec::new();
    for (key, value) in in_order(layer) {
        let word = key.get_ref().as_ref();
        let part = PARTS.into_iter().find(|part| *part == word);
        let table = match (part, value.get_ref()) {
            (Some(part), DeValue::Table(table)) => (Part::Below(part), "", table),
            (None, DeValue::Table(table)) => (Part::Top, word, table),
            _ => {
                let (name, written) = (one_name(word, keys), word.to_owned());
                said.push(Said {
                    part: Part::Top,
                    name,
                    written,
                    key: key.span(),
                    value: value.clone(),
                });
                continue;
            }
        };
        let (part, prefix, table) = table;
        for entry in entries(prefix, table) {
            // A stop rule about an axis is a separate entry.
            let name = one_name(&entry.name, keys);
            let name = if part == Part::Below(STOP) { format!("{STOP} {name}") } else { name };
            let value = Spanned::new(entry.place.clone(), entry.value.clone());
            said.push(Said { part, name, written: entry.name, key: entry.key, value });
        }
    }
    said
}

fn one_name(written: &str, keys: &Keys) -> String {
    keys.find(written).map_or_else(|_| written.to_owned(), |key| key.name.clone())
}

fn put<'d>(table: &mut DeTable<'d>, written: &str, key: Range<usize>, value: Spanned<DeValue<'d>>) {
    table.insert(Spanned::new(key, Cow::Owned(written.to_owned())), value);
}

const STOP: &str = "stop";
const PARTS: [&str; 2] = ["vary", STOP];
