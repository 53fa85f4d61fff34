//! Errors of the command line in the form of all errors: what is wrong, where, what to type.

use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use weigh_model::nearest::nearest;
use weigh_model::refusal;

use crate::help;
use weigh_runner::exit::Stop;

/// Returns the error of a command line, or `None` if `error` is a text that the user asked for, or
/// the help of a command without its arguments.
pub fn stop(error: &clap::Error, words: &[OsString], program: &Command) -> Option<Stop> {
    let wrong = Wrong { error, called: called(program, words), program, words };
    let (place, problem, fix) = match error.kind() {
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => wrong.value(),
        ErrorKind::UnknownArgument => wrong.unknown_argument(),
        ErrorKind::InvalidSubcommand => wrong.unknown_command(),
        ErrorKind::ArgumentConflict => wrong.conflict(),
        ErrorKind::MissingRequiredArgument => wrong.missing_argument(),
        ErrorKind::MissingSubcommand => wrong.missing_command(),
        ErrorKind::TooManyValues | ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            (wrong.flag(), "the number of values is wrong".to_owned(), wrong.see_help())
        }
        ErrorKind::NoEquals => {
            (wrong.flag(), "the value is missing".to_owned(), format!("type {}=", wrong.flag()))
        }
        ErrorKind::InvalidUtf8 => {
            (wrong.called.clone(), "an argument is not UTF-8".to_owned(), wrong.see_help())
        }
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
        _ => (wrong.called.clone(), wrong.words_of_parser(), wrong.see_help()),
    };
    // The name of the program is printed before every error.
    let place = place.strip_prefix("weigh ").unwrap_or(&place);
    Some(Stop::usage(format!("{place}: {problem}\nhelp: {fix}")))
}

/// Name of the command that `words` call, such as `weigh seal make`.
fn called(program: &Command, words: &[OsString]) -> String {
    let (mut command, mut name) = (program, program.get_name().to_owned());
    for word in words.iter().skip(1) {
        let Some(own) = command.find_subcommand(word) else { break };
        name = format!("{name} {}", own.get_name());
        command = own;
    }
    name
}

struct Wrong<'e> {
    error: &'e clap::Error,
    called: String,
    program: &'e Command,
    words: &'e [OsString],
}

impl Wrong<'_> {
    fn text(&self, kind: ContextKind) -> &str {
        match self.error.get(kind) {
            Some(ContextValue::String(text)) => text,
            _ => "",
        }
    }

    /// All texts of a context that has one or several.
    fn texts(&self, kind: ContextKind) -> Vec<&str> {
        match self.error.get(kind) {
            Some(ContextValue::Strings(texts)) => texts.iter().map(String::as_str).collect(),
            Some(ContextValue::String(text)) => vec![text],
            _ => Vec::new(),
        }
    }

    /// The option without its value: `--rate` of `--rate <RATE>`. A letter is named with it, if it
    /// was typed: `-z (--duration)`.
    fn flag(&self) -> String {
        let flag = self.text(ContextKind::InvalidArg).split(' ').next().unwrap_or_default();
        match flag.strip_prefix("--").and_then(|long| self.letter(long)) {
            Some(letter) => format!("-{letter} ({flag})"),
            None => flag.to_owned(),
        }
    }

    /// The letter by which the option `--long` was typed, if it was not typed by its name.
    fn letter(&self, long: &str) -> Option<char> {
        let command = self.command()?;
        let option = command.get_arguments().find(|own| own.get_long() == Some(long))?;
        let is_typed = |letter: char| {
            self.words.iter().any(|word| word.to_string_lossy().starts_with(&format!("-{letter}")))
        };
        let is_long_typed =
            self.words.iter().any(|word| word.to_string_lossy().starts_with(&format!("--{long}")));
        if is_long_typed {
            return None;
        }
        let aliases = option.get_all_short_aliases().unwrap_or_default();
        option.get_short().into_iter().chain(aliases).find(|letter| is_typed(*letter))
    }

    /// The command that was called.
    fn command(&self) -> Option<&Command> {
        let mut names = self.called.split(' ').skip(1);
        names.try_fold(self.program, |command, name| command.find_subcommand(name))
    }

    /// The other command that has the option `--long`, such as `weigh report`.
    fn owner(&self, long: &str) -> Option<String> {
        let has = |command: &&Command| {
            let is_for_users = !command.is_hide_set()
                || help::MORE.contains(&format!("\n  {} ", command.get_name()));
            let mut options = command.get_arguments().filter(|own| !own.is_hide_set());
            is_for_users && options.any(|own| own.get_long() == Some(long))
        };
        let own = self.program.get_subcommands().find(has)?;
        Some(format!("weigh {}", own.get_name()))
    }

    fn see_help(&self) -> String {
        format!("type {} --help", self.called)
    }

    /// Usage of the command with the arguments that are missing.
    fn usage(&self) -> String {
        let usage = match self.error.get(ContextKind::Usage) {
            Some(ContextValue::StyledStr(usage)) => usage.to_string(),
            _ => String::new(),
        };
        let line = usage.lines().next().unwrap_or_default();
        match line.strip_prefix("Usage: ") {
            Some(line) => format!("type {line}"),
            None => self.see_help(),
        }
    }

    fn words_of_parser(&self) -> String {
        let text = self.error.to_string();
        let line = text.lines().next().unwrap_or_default();
        line.strip_prefix("error: ").unwrap_or(line).to_owned()
    }

    fn value(&self) -> (String, String, String) {
        let (flag, value) = (self.flag(), self.text(ContextKind::InvalidValue));
        let valid = self.texts(ContextKind::ValidValue);
        let accepted = match valid.as_slice() {
            [] => self.see_help(),
            [one] => format!("type {one}"),
            [first @ .., last] => format!("type {} or {last}", first.join(", ")),
        };
        if flag.is_empty() {
            return (self.called.clone(), self.words_of_parser(), self.see_help());
        }
        if value.is_empty() && self.error.kind() == ErrorKind::InvalidValue {
            let due = self.text(ContextKind::InvalidArg);
            let fix = if valid.is_empty() { format!("type {due}") } else { accepted };
            return (flag, "the value is missing".to_owned(), fix);
        }
        let said = std::error::Error::source(self.error).map(ToString::to_string);
        let Some(said) = said else {
            return (flag, format!("unknown value {value:?}"), accepted);
        };
        let (problem, fix) = match said.split_once("\nhelp: ") {
            Some((problem, fix)) => (problem, Some(fix)),
            None => refusal::split(&said),
        };
        let place = if problem.contains(value) { flag } else { format!("{flag} {value}") };
        (place, problem.to_owned(), fix.map_or(accepted, str::to_owned))
    }

    fn unknown_argument(&self) -> (String, String, String) {
        let unknown = self.text(ContextKind::InvalidArg).to_owned();
        let near = self.texts(ContextKind::SuggestedArg);
        if !unknown.starts_with('-') {
            let problem = format!("{} has no place for this argument", self.called);
            return (unknown, problem, self.see_help());
        }
        let problem = format!("{} has no such option", self.called);
        let owner = unknown.strip_prefix("--").and_then(|long| self.owner(long));
        if let Some(owner) = owner {
            let fix = format!("{}, which lists its options", self.see_help());
            return (unknown, format!("{problem}; {owner} has it"), fix);
        }
        let elsewhere = OTHER_TOOLS.iter().find(|(word, _)| *word == unknown);
        if let Some((_, fix)) = elsewhere.filter(|_| self.called.ends_with("compare")) {
            return (unknown, problem, (*fix).to_owned());
        }
        match nearest(&unknown, near.into_iter()) {
            Some(near) => (unknown, problem, format!("type {near}")),
            None => (unknown, problem, format!("{}, which lists all options", self.see_help())),
        }
    }

    fn unknown_command(&self) -> (String, String, String) {
        let unknown = self.text(ContextKind::InvalidSubcommand);
        let near = self.texts(ContextKind::SuggestedSubcommand);
        let fix = match nearest(unknown, near.into_iter()) {
            Some(near) => format!("type {} {near}", self.called),
            None => format!("{}, which lists the commands", self.see_help()),
        };
        (format!("{} {unknown}", self.called), "unknown command".to_owned(), fix)
    }

    fn conflict(&self) -> (String, String, String) {
        let flag = match self.flag() {
            flag if flag.is_empty() => self.text(ContextKind::InvalidSubcommand).to_owned(),
            flag => flag,
        };
        let others = self.texts(ContextKind::PriorArg);
        if others == [self.text(ContextKind::InvalidArg)] {
            return (flag, "is given multiple times".to_owned(), "give it once".to_owned());
        }
        let others = match others.is_empty() {
            true => "other arguments".to_owned(),
            false => others.join(", "),
        };
        let problem = format!("cannot be used with {others}");
        (flag, problem, "leave one of them out".to_owned())
    }

    fn missing_argument(&self) -> (String, String, String) {
        let missing = self.texts(ContextKind::InvalidArg);
        // One of several options.
        if let [one] = missing[..]
            && let Some(group) = one.strip_prefix('<').filter(|group| group.starts_with("--"))
        {
            let names = group.strip_suffix('>').unwrap_or(group).replace('|', ", ");
            return (
                self.called.clone(),
                "an option is missing".to_owned(),
                format!("name one of {names}"),
            );
        }
        let names = missing.join(", ");
        let verb = if missing.len() == 1 { "is" } else { "are" };
        let fix = match missing.iter().all(|name| name.starts_with('-')) {
            true => format!("add {names}"),
            false => self.usage(),
        };
        (self.called.clone(), format!("{names} {verb} missing"), fix)
    }

    fn missing_command(&self) -> (String, String, String) {
        let valid: Vec<String> = self
            .texts(ContextKind::ValidSubcommand)
            .iter()
            .filter(|name| **name != "help")
            .map(|name| format!("{} {name}", self.called))
            .collect();
        let fix = match valid.is_empty() {
            true => self.see_help(),
            false => format!("type {}", valid.join(" or ")),
        };
        (self.called.clone(), "the command is missing".to_owned(), fix)
    }
}

/// Options of other load tools, and what they are here.
const OTHER_TOOLS: [(&str, &str); 8] = [
    ("--qps", "for messages per second type -R, as in -R 500/s"),
    ("--rps", "for messages per second type -R, as in -R 500/s"),
    ("--concurrency", "for the number of connections type -c, as in -c 50"),
    ("--clients", "for the number of connections type -c, as in -c 50"),
    ("--vus", "for the number of connections type -c, as in -c 50"),
    ("--requests", "for the number of messages type -n, as in -n 10k"),
    ("--time", "for the duration type -d, as in -d 10s"),
    ("--payload", "for the size of a message type -s, as in -s 125B"),
];

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::CommandFactory;

    use crate::Arguments;
    use crate::help;

    /// Returns the error of a command line.
    fn said(line: &str) -> String {
        let words: Vec<OsString> =
            ["weigh"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect();
        let command = help::arranged(Arguments::command());
        let error = command.clone().try_get_matches_from(&words).unwrap_err();
        super::stop(&error, &words, &command).expect(line).to_string()
    }

    #[test]
    fn every_kind_of_error_has_a_place_a_problem_and_a_fix() {
        for (line, expected) in [
            (
                "compare tcp -n 1.5",
                "-n (--messages): 1.5 is not a whole number\nhelp: type a whole number, at least 1",
            ),
            (
                "compare tcp --sys never",
                "--sys: unknown value \"never\"\nhelp: type auto, on or off",
            ),
            ("compare tcp -n", "-n (--messages): the value is missing\nhelp: type --messages <N>"),
            (
                "compare tcp --ratte 5/s",
                "--ratte: weigh compare has no such option\nhelp: type --rate",
            ),
            (
                "report a b",
                "b: weigh report has no place for this argument\nhelp: type weigh report --help",
            ),
            (
                "compare --plots x",
                "--plots: weigh compare has no such option; weigh report has it\nhelp: type weigh \
                 compare --help, which lists its options",
            ),
            (
                "compare tcp --frobnicate",
                "--frobnicate: weigh compare has no such option\nhelp: type weigh compare --help, \
                 which lists all options",
            ),
            (
                "compare tcp -z 5x",
                "-z (--duration): \"5x\" is not a duration\nhelp: type for example 10s, 500ms or \
                 2m",
            ),
            ("comapre", "comapre: unknown command\nhelp: type weigh compare"),
            (
                "conjugate",
                "conjugate: unknown command\nhelp: type weigh --help, which lists the commands",
            ),
            (
                "observe",
                "observe: an option is missing\nhelp: name one of --pid <N>, --port <PORT>, \
                 --container <NAME>, --cgroup <PATH>",
            ),
            (
                "seal xyzzy",
                "seal xyzzy: unknown command\nhelp: type weigh seal --help, which lists the \
                 commands",
            ),
            (
                "compare tcp -x 2 -c 3",
                "-c (--connections): is given multiple times\nhelp: give it once",
            ),
            (
                "run plan.toml --resume latest",
                "[PLAN.toml]: cannot be used with --resume <RUN>\nhelp: leave one of them out",
            ),
            (
                "compare tcp --radio lte",
                "compare: --device <NAME> is missing\nhelp: add --device <NAME>",
            ),
        ] {
            assert_eq!(said(line), expected);
        }
        let missing = said("report");
        assert!(missing.starts_with("report: <RUN> is missing\nhelp: type weigh report"));
        assert!(missing.ends_with("<RUN>"), "{missing}");
    }
}
