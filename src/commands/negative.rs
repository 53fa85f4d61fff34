//! What is said of a negative value, such as `-c -1`: the parser takes it for a flag of its own.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use weigh_runner::exit::Stop;

/// What to say instead of the parser's own words, where a flag was given a negative value.
pub fn value(error: &clap::Error, words: &[OsString]) -> Option<Stop> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_number = |text: &str| {
        text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    if !is_number(unknown) {
        return None;
    }
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    // The parser names the first letter alone: -5s is -5 to it.
    let at = words.iter().position(|word| is_number(word) && word.starts_with(unknown.as_str()))?;
    let (value, flag) = (&words[at], words.get(at.checked_sub(1)?)?);
    let whose = if flag.starts_with('-') { format!("{flag} {value}") } else { value.to_string() };
    Some(Stop::usage(format!(
        "{whose}: a negative value is not one it takes\nhelp: type {} without the sign, or leave \
         it out",
        value.trim_start_matches('-')
    )))
}
