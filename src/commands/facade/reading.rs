//! Reads words by the table of a tool, with clap, which also makes the help from it.

use std::ffi::OsString;
use std::time::Duration;

use clap::error::ContextKind;
use clap::{Arg, ArgAction, Args, Command};
use toml::Value;
use weigh_model::Nanos;
use weigh_model::units::parse_duration;
use weigh_plan::case::{setting_text, word};
use weigh_plan::kind::Kind;
use weigh_plan::load_keys;
use weigh_runner::exit::{Exit, Stop};

use super::tool::{Asked, Given, Tool};
use crate::commands::{negative, refused};
use crate::planning::conduct::RunOptions;
use crate::show::terminal::stopped;

/// A line of a tool's table.
pub struct Flag {
    /// Names of the flag and of its value.
    pub names: &'static str,
    /// Type of the value, and the key that it sets.
    pub words: &'static str,
    text: String,
}

impl Flag {
    fn of(line: &'static str) -> Flag {
        let (names, rest) = line.split_once('|').unwrap_or((line, ""));
        let (words, text) = rest.split_once('|').unwrap_or((rest, ""));
        Flag { names: names.trim(), words: words.trim(), text: text.trim().to_owned() }
    }

    fn longs(&self) -> impl Iterator<Item = &'static str> {
        self.names.split(' ').filter_map(|name| name.strip_prefix("--"))
    }

    fn value_name(&self) -> Option<&'static str> {
        self.names.split(' ').find(|name| !name.starts_with('-'))
    }

    /// Returns the ID of the flag: its long name, or the name of its value.
    fn id(&self) -> &'static str {
        self.longs().next().or(self.value_name()).unwrap_or(self.names)
    }

    fn arg(&self) -> Arg {
        let words = self.words;
        let (mut longs, has) = (self.longs(), |word: &str| says(words, word).is_some());
        let mut shorts = self.names.split(' ').filter(|name| !name.starts_with("--"));
        let short = shorts.find_map(|name| name.strip_prefix('-')?.chars().next());
        let arg = Arg::new(self.id()).help(self.text.clone()).short(short).long(longs.next());
        let mut arg = arg.visible_aliases(longs).required(has("required")).hide(has("refused"));
        if let (None, false) = (self.value_name(), has("refused")) {
            return arg.action(ArgAction::SetTrue);
        }
        arg = arg.value_name(self.value_name().unwrap_or("VALUE"));
        arg = arg.value_parser(move |text: &str| read(words, text));
        arg = arg
            .default_value(says(words, "default"))
            .allow_hyphen_values(self.names.starts_with('-'));
        if let Some(other) = says(words, "excludes") {
            arg = arg.conflicts_with(other);
        }
        match (has("truth"), has("refused"), has("many")) {
            (true, ..) => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
            (_, true, _) => arg.num_args(0..=1).default_missing_value(""),
            (.., true) => arg.action(ArgAction::Append),
            _ => arg,
        }
    }
}

/// Returns what follows `name` in the words of a flag; empty if it is alone.
fn says(words: &'static str, name: &str) -> Option<&'static str> {
    words.split(", ").find_map(|word| word.strip_prefix(name)).map(str::trim)
}

/// Reads a value by the words of its flag.
fn read(words: &'static str, text: &str) -> Result<Value, String> {
    let has = |word| says(words, word).is_some();
    if has("seconds") {
        return seconds(text).map(|time| Value::String(time.to_string()));
    }
    let number = says(words, "number").and_then(|range| range.split_once(".."));
    let kind = match (says(words, "load").and_then(load_keys::find), number) {
        _ if has("refused") => return Err("not taken over".to_owned()),
        (Some(key), _) => key.kind,
        (_, Some((low, high))) => {
            Kind::Count(low.parse().unwrap_or(0), high.parse().unwrap_or(u32::MAX.into()))
        }
        _ if has("time") => Kind::Duration,
        _ if has("truth") => Kind::Flag,
        _ => Kind::Text,
    };
    kind.read_word(text).map_err(|wrong| format!("{}: {}", wrong.text, wrong.fix))
}

impl Given {
    /// Returns the number of a flag; 0 if it is not given.
    pub fn number(&self, flag: &str) -> u64 {
        self.value(flag).and_then(Value::as_integer).unwrap_or_default() as u64
    }

    /// Returns the number of a flag with at most 32 bits; 0 if it is not given.
    pub fn count(&self, flag: &str) -> u32 {
        self.number(flag) as u32
    }

    /// Returns the time of a flag; 0 if it is not given.
    pub fn time(&self, flag: &str) -> Nanos {
        parse_duration(self.text(flag)).unwrap_or_default()
    }

    /// Returns the text of a flag; empty if it is not given.
    pub fn text(&self, flag: &str) -> &str {
        self.value(flag).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the texts of a flag that may be given several times.
    pub fn texts(&self, flag: &str) -> impl Iterator<Item = &str> {
        self.0.get_many(flag).into_iter().flatten().filter_map(Value::as_str)
    }

    fn value(&self, flag: &str) -> Option<&Value> {
        self.0.get_one(flag)
    }
}

impl Tool {
    /// Returns the name of the tool.
    pub fn name(&self) -> &'static str {
        self.command.rsplit(' ').next().unwrap_or(self.command)
    }

    /// Returns the table of the tool, line by line.
    pub fn table(&self) -> Vec<Flag> {
        let mut flags: Vec<Flag> = Vec::new();
        for line in self.flags.lines().filter(|line| !line.is_empty()) {
            match flags.last_mut().filter(|_| line.starts_with(' ')) {
                Some(flag) => flag.text = format!("{} {}", flag.text, line.trim()),
                None => flags.push(Flag::of(line)),
            }
        }
        flags
    }

    /// Returns the command line of the tool with the common flags of Weighbridge.
    pub fn command(&self) -> Command {
        let command = Command::new(self.command).about(self.about).max_term_width(100);
        let command = command.args(self.table().iter().map(Flag::arg));
        RunOptions::augment_args(command.next_help_heading("Options of weigh"))
    }

    /// Reads the words after the command.
    ///
    /// # Errors
    /// The exit code, after the error or the help was printed.
    pub fn read(&self, words: &[String]) -> Result<Given, Exit> {
        let command = self.command();
        let is_skipped = words.first().is_some_and(|word| word == self.skips);
        let words = &words[usize::from(is_skipped)..];
        let words =
            if self.has_one_dash { with_two_dashes(words, &command) } else { words.to_vec() };
        let all = std::iter::once(self.command.to_owned()).chain(words);
        let all: Vec<OsString> = all.map(OsString::from).collect();
        command.clone().try_get_matches_from(&all).map(Given).map_err(|error| {
            let stop = self.refusal(&error).or_else(|| negative::value(&error, &all));
            if let Some(stop) = stop.or_else(|| refused::stop(&error, &all, &command)) {
                return stopped(stop);
            }
            // Help is not an error: clap prints it to stdout.
            let _ = error.print();
            if error.use_stderr() { Exit::Usage } else { Exit::Done }
        })
    }

    /// Returns what to type instead of a flag that is not supported, if `error` is about one.
    fn refusal(&self, error: &clap::Error) -> Option<Stop> {
        let wrong = error.get(ContextKind::InvalidArg)?.to_string();
        let wrong = wrong.split(' ').next()?;
        let of_it = |flag: &Flag| flag.names.split(' ').any(|name| name == wrong);
        let flag = self.table().into_iter().find(|flag| flag.words == "refused" && of_it(flag))?;
        let Flag { names, text, .. } = flag;
        Some(Stop::usage(format!("{}: {names} is not supported\nhelp: {text}", self.command)))
    }

    /// Returns the load of the command line.
    ///
    /// # Errors
    /// If the load is not valid, with what to type.
    pub fn ask(&self, given: &Given) -> Result<Asked, Stop> {
        let fixed = |(key, text): &(&str, &str)| {
            Some(((*key).to_owned(), load_keys::find(key)?.kind.read_word(text).ok()?))
        };
        let mut load: toml::Table = self.load.iter().filter_map(fixed).collect();
        let mut asked = Asked { name: self.name(), ..Asked::default() };
        for flag in self.table() {
            let (key, setting) = (says(flag.words, "load"), says(flag.words, "set"));
            let Some(value) = key.or(setting).and_then(|_| given.value(flag.id())) else {
                continue;
            };
            if let Some(key) = key {
                load.insert(key.to_owned(), value.clone());
            }
            if let (Some(key), Some(text)) = (setting, setting_text(&word(value))) {
                asked.sets.push(format!("{key}={text}"));
            }
        }
        let wrong = |error: toml::de::Error| Stop::new(Exit::Internal, error.to_string());
        asked.words = load.try_into().map_err(wrong)?;
        (self.decide)(given, &mut asked)?;
        Ok(asked)
    }
}

/// Adds the second dash to flags with one, as Go accepts them; their values stay as they are.
fn with_two_dashes(words: &[String], command: &Command) -> Vec<String> {
    let wants = |arg: &Arg| arg.get_action().takes_values() && !arg.is_require_equals_set();
    let mut is_value = false;
    let each = words.iter().map(|word| {
        // A single letter is a flag of weigh itself.
        let is_go = |name: &str| !name.starts_with('-') && name.chars().count() > 1;
        let one = word.strip_prefix('-').filter(|name| !is_value && is_go(name));
        let word = one.map_or(word.clone(), |name| format!("--{name}"));
        let long = word.strip_prefix("--").filter(|_| !is_value);
        is_value = long.is_some()
            && command.get_arguments().any(|arg| arg.get_long() == long && wants(arg));
        word
    });
    each.collect()
}

/// Reads a time as these tools do: seconds, or a number with a unit.
///
/// # Errors
/// If it is not a time.
fn seconds(text: &str) -> Result<Nanos, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => {
            Ok(Nanos(Duration::from_secs_f64(seconds.min(LONGEST_S)).as_nanos() as u64))
        }
        Ok(_) => Err(format!("{text:?} is not a time: type 10, 10s or 2m")),
        Err(_) => parse_duration(text),
    }
}

/// Ten years.
const LONGEST_S: f64 = 315_360_000.0;

#[cfg(test)]
pub(super) mod tests {
    use super::super::tool::Account;
    use super::*;

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Returns what a tool asks for with these words.
    pub fn asked(tool: &Tool, words: &[&str]) -> Result<Asked, Stop> {
        tool.ask(&tool.read(&owned(words)).expect("words that the tool takes"))
    }

    const OWN: Tool = Tool {
        command: "weigh own",
        about: "",
        serves: "http",
        has_one_dash: false,
        skips: "",
        flags: "
-b --body BODY | |
-n --silent    | |
--retain TRUTH | truth, set r |
URL            | |
-S --socketPath | refused | name an
    address
--har          | refused | write a plan
",
        load: &[],
        emulate: &[],
        decide: |given, asked| {
            asked.word = given.text("URL").to_owned();
            asked.headers = vec![given.text("body").to_owned()];
            asked.is_quiet = given.0.get_flag("silent");
            Ok(())
        },
        account: Account::Measured("no run"),
    };

    #[test]
    fn a_flag_is_refused_by_either_name_and_with_its_value() {
        let said = |word: &str| {
            let command = Command::new("x").args(OWN.table().iter().map(Flag::arg));
            let error = command.try_get_matches_from(["x", word]).err()?;
            OWN.refusal(&error).map(|stop| stop.to_string())
        };
        for word in ["-S", "--socketPath", "--socketPath=/x", "-S=/x", "-nS"] {
            let said = said(word).expect(word);
            assert!(
                said.ends_with("-S --socketPath is not supported\nhelp: name an address"),
                "{said}"
            );
        }
        assert!(said("--har").expect("refused").contains("write a plan"));
        for word in ["-s", "S", "--harpoon", "-", "--", "-b", "http://a/?S"] {
            assert_eq!(said(word), None, "{word}");
        }
    }

    #[test]
    fn what_stands_behind_a_flag_that_wants_a_value_is_one() {
        for words in [
            &["-b", "--har", "u"][..],
            &["--body", "--har", "u"],
            &["--body=--har", "u"],
            &["-nb", "--har", "u"],
        ] {
            let read = asked(&OWN, words).unwrap();
            assert_eq!((&*read.headers[0], &*read.word), ("--har", "u"));
            assert_eq!(read.is_quiet, words[0] == "-nb");
        }
        let is_wrong = |words: &[&str]| OWN.read(&owned(words)).is_err();
        assert!(is_wrong(&["-n", "--har"]), "-n wants no value");
        assert!(is_wrong(&["--retain", "--har"]), "its value stands behind a sign only");
        assert!(is_wrong(&["-b"]), "the value is missing");
        let flagged = asked(&OWN, &["--retain", "u"]).unwrap();
        assert_eq!((flagged.sets.join(""), &*flagged.word), ("r=true".to_owned(), "u"));
        assert_eq!(asked(&OWN, &["-b", "ü", "u"]).unwrap().headers, ["ü"]);
    }

    #[test]
    fn words_keep_the_dashes_that_are_none_of_gos() {
        let words = owned(&["ü", "-ü", "-", "-Q", "-silent", "-body", "-silent"]);
        let command = Command::new("x").args(OWN.table().iter().map(Flag::arg));
        let spoken = with_two_dashes(&words, &command);
        assert_eq!(spoken, ["ü", "-ü", "-", "-Q", "--silent", "--body", "-silent"]);
    }

    #[test]
    fn times_are_seconds_unless_they_say_otherwise() {
        for (text, seconds_in) in [("10", 10.0), ("0.5", 0.5), ("2m", 120.0), ("10s", 10.0)] {
            assert_eq!(seconds(text), Ok(Nanos::from_secs_f64(seconds_in)), "{text}");
        }
        assert!(seconds("-1").is_err() && seconds("ten").is_err());
    }
}
