//! A side file with what the figures themselves do not say: how a test was made, from the text
//! or the code of its authors.
//!
//! ```toml
//! [[about]]
//! table = "Table 16"      # all tables without it
//! subject = "HTTP"        # all subjects without it
//! in_flight = 1           # any words of the vocabulary
//! said = false            # the text does not say it: it was found elsewhere (the default)
//! ```

use toml::{Table, Value};

use crate::audit::figure::Fact;
use crate::audit::source::Unreadable;
use crate::audit::vocabulary::{is_known, key, known_keys};

/// Reads a side file; `name` is for the messages.
///
/// # Errors
/// If it is not TOML, or has an unknown key.
pub fn read(name: &str, text: &str) -> Result<Vec<Fact>, Unreadable> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        Unreadable::at(name, line as u64, error.message(), "write it as TOML: key = value")
    })?;
    let mut facts = Vec::new();
    for (key, value) in &table {
        let entries = value.as_array().filter(|_| key == "about").ok_or_else(|| {
            let problem = format!("unknown key {key}");
            Unreadable::new(name, problem, "begin every entry with [[about]]")
        })?;
        for (index, entry) in entries.iter().enumerate() {
            let place = || format!("{name}, entry {} of [[about]]", index + 1);
            let entry = entry.as_table().ok_or_else(|| {
                Unreadable::new(&place(), "this is not a table", "begin every entry with [[about]]")
            })?;
            read_entry(&place(), entry, &mut facts)?;
        }
    }
    Ok(facts)
}

fn read_entry(place: &str, entry: &Table, facts: &mut Vec<Fact>) -> Result<(), Unreadable> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let is_said = entry.get("said").and_then(Value::as_bool).unwrap_or(false);
    for (word, value) in entry {
        if ["table", "subject", "said"].contains(&word.as_str()) {
            continue;
        }
        let key = key(word);
        if !is_known(key) {
            let problem = format!("unknown key {word}");
            let fix = format!("use one of table, subject, said, {}", known_keys().join(", "));
            return Err(Unreadable::new(place, problem, fix));
        }
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let (table, subject) = (text("table"), text("subject"));
        facts.push(Fact { table, subject, key: key.to_owned(), value, is_said });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_become_facts_and_mistakes_are_named() {
        let facts = read("f.toml", "[[about]]\nsubject = \"HTTP\"\nthreads = 10\n").unwrap();
        assert_eq!((facts[0].key.as_str(), facts[0].value.as_str()), ("clients", "10"));
        assert!(!facts[0].is_said && facts[0].table.is_none());
        let error = read("f.toml", "[[about]]\ncolour = 1\n").unwrap_err().to_string();
        assert!(error.contains("colour") && error.contains("in_flight"), "{error}");
        let error = read("f.toml", "a = 1\nb = \n").unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        assert!(read("f.toml", "[[abuot]]\nrate = 1\n").is_err());
    }
}
