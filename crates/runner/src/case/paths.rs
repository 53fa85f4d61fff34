//! Resolves the path of a case from the words of a plan or a flag.

use weigh_model::path::{Path, PathError};
use weigh_model::protocol::Invalid;
use weigh_model::trial::Point;
use weigh_plan::case::{setting_text, word};
use weigh_plan::kind::Wrong;
use weigh_protocols as registry;

use crate::input_file::{self, TEXT_BYTES_MAX};

/// Plan keys and values for the word of `--path`, each in its canonical form.
///
/// # Errors
/// A word that is not a path, with what to type.
pub fn path_keys(typed: &str) -> Result<Point, Invalid> {
    let language = weigh_plan::keys::Keys::new(registry::PROTOCOLS);
    let words = Path::keys_of(typed);
    let words = words.map_err(|error| in_path(Wrong::split(&error.error), ""))?;
    let mut keys = Point::new();
    for (key, text) in words {
        let kind = language.find(&key).map_err(|wrong| in_path(wrong, ""))?.kind;
        let named =
            if key == "path" { String::new() } else { format!("{}: ", &key["path.".len()..]) };
        let value = kind.read_word(&text).map_err(|wrong| in_path(wrong, &named))?;
        keys.insert(key, word(&value));
    }
    Ok(keys)
}

/// Places an error of one number of a path.
fn in_path(wrong: Wrong, named: &str) -> Invalid {
    Invalid::new("path", format!("{named}{}", wrong.text), wrong.fix)
}

/// Resolves the path that a case names or gives in numbers.
///
/// # Errors
/// An unknown path; numbers that contradict each other.
pub fn path_of(words: &Point) -> Result<Option<Path>, Invalid> {
    let wrong = |error: PathError| Invalid::new("path", error.to_string(), "");
    let read = |file: &str| input_file::text(std::path::Path::new(file), TEXT_BYTES_MAX);
    let named = words.get("path").and_then(|value| value.as_str());
    let base = named.map(|word| Path::named(word, read)).transpose().map_err(wrong)?;
    let texts: Vec<(&str, String)> = words
        .iter()
        .filter_map(|(key, value)| Some((key.as_str(), setting_text(value)?)))
        .collect();
    let words = texts.iter().map(|(key, text)| (*key, text.as_str()));
    Path::of_words(base, words).map_err(|error| Invalid::new("path", error.error, ""))
}
