//! Errors for negative values, such as `-c -1`, which clap reports as unknown flags.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use weigh_runner::exit::Stop;

/// Returns the error of a negative value, if `error` is about one.
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
    let flag = if flag.starts_with('-') { format!("{flag} ") } else { String::new() };
    let positive = value.trim_start_matches('-');
    Some(Stop::usage(format!(
        "{flag}{value}: the value is negative\nhelp: type {flag}{positive}, or leave it out"
    )))
}
