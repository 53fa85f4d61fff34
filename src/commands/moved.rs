//! Old spellings of commands: each is an error that names the new line to type.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use weigh_runner::exit::Stop;

/// Returns an error with the new name, if the unknown command is an old name.
pub fn command(error: &clap::Error, words: &[OsString]) -> Option<Stop> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let words: Vec<_> = words.iter().skip(1).map(|word| word.to_string_lossy()).collect();
    let place = words.iter().position(|word| word == unknown)?;
    let old = words[..=place].join(" ");
    if let Some((_, new)) = PARTS.iter().find(|(own, _)| *own == old) {
        let rest: String = words[place + 1..].iter().map(|word| format!(" {word}")).collect();
        return Some(Stop::usage(format!(
            "{old}: unknown command: it is part of `weigh runs`\nhelp: type weigh {new}{rest}"
        )));
    }
    let (_, new) = MOVED.iter().find(|(own, _)| *own == old).copied().or_else(|| {
        // `weigh seal FILE` made an object before `weigh seal` had commands.
        (place == 1 && words[0] == "seal").then_some(("", "seal make"))
    })?;
    let rest = if new == "seal make" { &words[1..] } else { &words[place + 1..] };
    let rest: String = rest.iter().map(|word| format!(" {word}")).collect();
    Some(Stop::usage(format!(
        "{old}: unknown command: it has a new name\nhelp: type weigh {new}{rest}"
    )))
}

/// What users may expect to be a command of its own.
const PARTS: [(&str, &str); 3] =
    [("cite", "runs cite"), ("rm", "runs rm"), ("prune", "runs prune")];

/// Old names and new ones.
const MOVED: [(&str, &str); 11] = [
    ("autocannon", "like autocannon"),
    ("mqtt-stresser", "like mqtt-stresser"),
    ("wrk", "like wrk"),
    ("oha", "like oha"),
    ("k6", "like k6"),
    ("rundown", "energy rundown"),
    ("meters", "energy meters"),
    ("devices", "energy devices"),
    ("open", "seal open"),
    ("inspect", "seal inspect"),
    ("targets probe", "probe"),
];
