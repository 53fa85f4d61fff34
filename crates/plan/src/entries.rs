//! Reads a document as entries: a name with dots, a value, and their places. Nested tables, dotted
//! keys and quoted keys with dots are equivalent.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A key as it is written, with its value.
#[derive(Clone, Debug)]
pub struct Entry<'d> {
    /// Its name with dots.
    pub name: String,
    /// The bytes of the last part of the name.
    pub key: Range<usize>,
    /// The value.
    pub value: &'d DeValue<'d>,
    /// The bytes of the value.
    pub place: Range<usize>,
}

/// The entries of a table in the order of the file, their names below `prefix`.
pub fn entries<'d>(prefix: &str, table: &'d DeTable<'d>) -> Vec<Entry<'d>> {
    let mut found = Vec::new();
    collect(prefix, table, &mut found);
    found.sort_by_key(|entry| entry.place.start);
    found
}

fn collect<'d>(prefix: &str, table: &'d DeTable<'d>, found: &mut Vec<Entry<'d>>) {
    for (key, value) in table {
        let name = match prefix {
            "" => key.get_ref().to_string(),
            _ => format!("{prefix}.{}", key.get_ref()),
        };
        match value.get_ref() {
            DeValue::Table(inner) => collect(&name, inner, found),
            plain => found.push(Entry { name, key: key.span(), value: plain, place: value.span() }),
        }
    }
}

/// The elements of a list.
pub fn elements<'d>(value: &'d DeValue<'d>) -> Option<&'d [Spanned<DeValue<'d>>]> {
    match value {
        DeValue::Array(elements) => Some(elements),
        _ => None,
    }
}

/// A key and its value, with their places.
pub(crate) type Pair<'d> = (&'d Spanned<Cow<'d, str>>, &'d Spanned<DeValue<'d>>);

/// The entries of a table in the order of the file.
pub(crate) fn in_order<'d>(table: &'d DeTable<'d>) -> Vec<Pair<'d>> {
    let mut pairs: Vec<Pair<'d>> = table.iter().collect();
    pairs.sort_by_key(|(key, _)| key.span().start);
    pairs
}
