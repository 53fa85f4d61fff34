//! What the commands that are called like other tools have in common: their flags are read as those
//! tools read them, the load is made as a run of its own, and the figures that the tool would have
//! printed stand beside the exact ones.

use std::time::Duration;

use clap::{Arg, Command, Parser};
use weigh_emulate::Beside;
use weigh_emulate::beside::Left;
use weigh_model::doubt::Severity;
use weigh_model::endpoint::Credentials;
use weigh_model::event::{Event, Interval, TrialFinished};
use weigh_model::plan::{Observe, Plan, Repeat};
use weigh_model::units::parse_duration;
use weigh_model::{Emulation, Load, Nanos};
use weigh_plan::LoadWords;
use weigh_report::RunFolder;
use weigh_stage::catalogue::Catalogue;

use crate::planning::conduct::RunOptions;
use crate::planning::lane_options::{plan_of, secrets};
use crate::planning::request_options::RequestOptions;
use crate::show::output;
use crate::show::terminal::{Lines, stopped};
use weigh_runner::case::lanes::{self, Given};
use weigh_runner::case::secrets::Secrets;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::run::chronicle::not_recorded;
use weigh_runner::run::experiment::Finished;

/// A flag of a tool that is not taken over, and what to do instead.
pub struct Refused {
    /// Its name behind one dash; empty where it has none.
    pub short: &'static str,
    /// Its name behind two.
    pub long: &'static str,
    /// What to do instead.
    pub mend: &'static str,
}

/// The load of a tool's command line.
pub struct Asked {
    /// What the run is called.
    pub name: &'static str,
    /// Where it goes: a URL, or a word of `weigh compare`.
    pub word: String,
    /// Keys of the protocol, `http1.method=GET`.
    pub sets: Vec<String>,
    /// Header fields, as `NAME: VALUE`.
    pub headers: Vec<String>,
    /// The load.
    pub words: LoadWords,
    /// The figures that the tool would have printed.
    pub emulate: Vec<Emulation>,
    /// Who we are, where the tool's flags say so.
    pub user: Option<Credentials>,
}

/// Reads the words behind the command with the tool's own flags.
///
/// # Errors
/// With the code to end with, once it is said what is wrong, or once help was printed.
pub fn read<F: Parser>(name: &str, words: &[String], refused: &[Refused]) -> Result<F, Exit> {
    let words = attached(words, &F::command());
    if let Some((word, own)) = words.iter().find_map(|word| Some((word, refusal(word, refused)?))) {
        let why = format!("{name}: {word} is not taken over: {}", own.mend);
        return Err(stopped(Stop::usage(why)));
    }
    let all = std::iter::once(name).chain(words.iter().map(String::as_str));
    F::try_parse_from(all).map_err(|error| {
        // Help is no error: clap knows, and prints it to stdout.
        let _ = error.print();
        if error.use_stderr() { Exit::Usage } else { Exit::Done }
    })
}

/// The words with every value that begins with a dash itself written onto its flag, so that it is
/// taken for a value by all who read them: getopt and Go give a flag that wants one whatever comes
/// next.
fn attached(words: &[String], command: &Command) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        found.push(word.clone());
        if word == "--" {
            break;
        }
        if !wants_next(word, command) {
            continue;
        }
        match words.next() {
            Some(value) if value.starts_with('-') => {
                let between = if word.starts_with("--") { "=" } else { "" };
                let flag = found.pop().unwrap_or_default();
                found.push(format!("{flag}{between}{value}"));
            }
            value => found.extend(value.cloned()),
        }
    }
    found.extend(words.cloned());
    found
}

/// True if this word is a flag of the command whose value is the next word.
pub fn wants_next(word: &str, command: &Command) -> bool {
    let wants = |arg: &Arg| arg.get_action().takes_values() && !arg.is_require_equals_set();
    let is_long = |arg: &Arg, long: &str| {
        arg.get_long_and_visible_aliases().is_some_and(|all| all.contains(&long))
    };
    let is_short = |arg: &Arg, short: char| {
        arg.get_short_and_visible_aliases().is_some_and(|all| all.contains(&short))
    };
    if let Some(long) = word.strip_prefix("--") {
        return command.get_arguments().any(|arg| is_long(arg, long) && wants(arg));
    }
    // Several may stand behind one dash; what is left behind one that wants a value is its value.
    let shorts = word.strip_prefix('-').unwrap_or_default();
    for (at, short) in shorts.char_indices() {
        match command.get_arguments().find(|arg| is_short(arg, short)) {
            Some(arg) if wants(arg) => return at + short.len_utf8() == shorts.len(),
            Some(_) => {}
            None => return false,
        }
    }
    false
}

fn refusal<'r>(word: &str, refused: &'r [Refused]) -> Option<&'r Refused> {
    let word = word.split('=').next().unwrap_or_default();
    refused.iter().find(|own| match word.strip_prefix("--") {
        Some(long) => !own.long.is_empty() && long == own.long,
        None => {
            let short = word.strip_prefix('-').unwrap_or_default();
            !own.short.is_empty() && short == own.short
        }
    })
}

/// Makes the load, and tells both accounts of it; `beside` makes the tool's.
///
/// # Errors
/// What is wrong with the load, and what can happen to a run.
pub fn weigh(
    asked: &Asked,
    run_options: &RunOptions,
    beside: impl FnOnce(&Left<'_>) -> Beside,
) -> Result<Exit, Stop> {
    let catalogue = run_options.catalogue()?;
    let (plan, secrets) = planned(asked, run_options, &catalogue)?;
    let Some(finished) = run_options.weigh(&catalogue, plan, &secrets)? else {
        return Ok(Exit::Done);
    };
    if run_options.is_json() || finished.summary.cells.is_empty() {
        return hinted(asked, run_options.show(finished));
    }
    let text = account(&finished, asked, beside)?;
    output::put(&text)?;
    run_options.ended(finished)
}

/// Whoever has no server yet is told how to get one.
fn hinted(asked: &Asked, ended: Result<Exit, Stop>) -> Result<Exit, Stop> {
    if let Ok(Exit::Target) = ended {
        let protocol = if asked.name == "mqtt-stresser" { "mqtt" } else { "http" };
        eprintln!("weigh: no server yet? weigh serve {protocol} starts one, and tells its address");
    }
    ended
}

/// The plan of one case and one repetition, and what it may not hold.
fn planned(
    asked: &Asked,
    run_options: &RunOptions,
    catalogue: &Catalogue,
) -> Result<(Plan, Secrets), Stop> {
    let given = Given::parse(&asked.sets)?;
    let lanes = lanes::lanes(std::slice::from_ref(&asked.word), catalogue, &given, &Lines)?;
    let lanes = RequestOptions::of_headers(asked.headers.clone()).apply(lanes)?;
    if let Some(key) = given.unused(lanes.iter()) {
        let spoken = key.split('.').next().unwrap_or_default();
        return Err(Stop::usage(format!("{}: is no server of {spoken}: give its URL", asked.word)));
    }
    let [lane] = lanes.as_slice() else {
        return Err(Stop::usage(format!("{}: name one server, not several", asked.word)));
    };
    let load: Load =
        asked.words.decide(lane.protocol.name(), lane.patterns()).map_err(|wrong| {
            let wrong = wrong[0].in_plan();
            Stop::usage(format!("{}: {}; {}", asked.name, wrong.text, wrong.mend))
        })?;
    let observe =
        Observe { emulate: asked.emulate.clone(), every: Some(EVERY), ..Observe::default() };
    let drafts = [lane.with(load)];
    let plan = plan_of((asked.name, 1), &drafts, Repeat::exactly(1), observe, catalogue)?;
    let (by_url, settings) = secrets(lanes.iter());
    let mut secrets = run_options.secrets(by_url, settings)?;
    secrets.user = asked.user.clone().or(secrets.user);
    Ok((plan, secrets))
}

/// Both accounts, from the run's journal.
fn account(
    finished: &Finished,
    asked: &Asked,
    beside: impl FnOnce(&Left<'_>) -> Beside,
) -> Result<String, Stop> {
    let cell = &finished.summary.cells[0];
    let (trial, intervals) = left(&finished.folder)?;
    let load = &finished.summary.run.plan.load;
    let beside = beside(&Left { load, finished: &trial, intervals: &intervals });
    let mut text = format!("{} on {}\n\n{}", asked.name, cell.target, beside.text());
    for doubt in cell.doubts.iter().filter(|doubt| doubt.severity != Severity::Doubt) {
        text += &format!("\ninvalid: {}; {}\n", doubt.text, doubt.advice);
    }
    text += &format!("\nrun: {}\n", finished.folder.path().display());
    Ok(text)
}

/// What the run left of its one trial.
fn left(folder: &RunFolder) -> Result<(TrialFinished, Vec<Interval>), Stop> {
    let journal = folder.read_journal().map_err(not_recorded)?;
    let mut intervals = Vec::new();
    let mut trial = None;
    for event in journal.events {
        match event {
            Event::Interval(interval) => intervals.push(interval),
            Event::TrialFinished(finished) => trial = Some(*finished),
            _ => {}
        }
    }
    let trial = trial.ok_or_else(|| Stop::new(Exit::Internal, "the journal has no result"))?;
    Ok((trial, intervals))
}

/// A time as these tools take it: seconds, or with a unit.
///
/// # Errors
/// If it is none.
pub fn seconds(text: &str) -> Result<Nanos, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => {
            Ok(Nanos(Duration::from_secs_f64(seconds.min(LONGEST_S)).as_nanos() as u64))
        }
        Ok(_) => Err(format!("{text:?} is no time: type 10, 10s or 2m")),
        Err(_) => parse_duration(text),
    }
}

/// A URL with its scheme, which some of these tools add themselves. A word without a dot, a colon
/// and a slash is one of ours: `reference`. A query right behind the host is one of the root
/// (RFC 3986, 6.2.3).
pub fn http_url(text: &str) -> String {
    let is_word = !text.contains(['.', ':', '/']) && text != "localhost";
    let url = match text {
        "reference" => return "http1".to_owned(),
        _ if is_word => return text.to_owned(),
        _ if text.contains("://") => text.to_owned(),
        _ => format!("http://{text}"),
    };
    let host = url.find("://").map_or(0, |at| at + 3);
    match url[host..].find(['/', '?']).map(|at| host + at) {
        Some(at) if url[at..].starts_with('?') => format!("{}/{}", &url[..at], &url[at..]),
        _ => url,
    }
}

/// What a URL asks for where it names nothing; a server of ours has a place of its own.
pub fn path_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    (!rest.trim_end_matches('/').contains(['/', '?'])).then(|| "http1.path=/".to_owned())
}

/// Intervals of the time series: ten to a second of the tools.
const EVERY: Nanos = Nanos::from_millis(100);

/// Ten years.
const LONGEST_S: f64 = 315_360_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: [Refused; 2] = [
        Refused { short: "S", long: "socketPath", mend: "name an address" },
        Refused { short: "", long: "har", mend: "write a plan" },
    ];

    #[test]
    fn a_flag_is_refused_by_either_name_and_with_its_value() {
        for word in ["-S", "--socketPath", "--socketPath=/x", "-S=/x", "--har"] {
            assert!(refusal(word, &REFUSED).is_some(), "{word}");
        }
        for word in ["-s", "S", "--harpoon", "-", "--", "http://a/?S"] {
            assert!(refusal(word, &REFUSED).is_none(), "{word}");
        }
    }

    #[derive(Debug, Parser)]
    struct Own {
        #[arg(short = 'b', long)]
        body: Option<String>,
        #[arg(short = 'n', long)]
        quiet: bool,
        #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        retain: Option<bool>,
        url: Option<String>,
    }

    fn own(words: &[&str]) -> Result<Own, Exit> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        read("x", &words, &REFUSED)
    }

    #[test]
    fn what_stands_behind_a_flag_that_wants_a_value_is_one() {
        for words in [
            &["-b", "--har", "u"][..],
            &["--body", "--har", "u"],
            &["--body=--har", "u"],
            &["-nb", "--har", "u"],
        ] {
            let read = own(words).unwrap();
            assert_eq!((read.body.as_deref(), read.url.as_deref()), (Some("--har"), Some("u")));
            assert_eq!(read.quiet, words[0] == "-nb");
        }
        assert!(own(&["-n", "--har"]).is_err(), "-n wants no value");
        assert!(own(&["--retain", "--har"]).is_err(), "its value stands behind a sign only");
        let flagged = own(&["--retain", "u"]).unwrap();
        assert_eq!((flagged.retain, flagged.url.as_deref()), (Some(true), Some("u")));
        assert_eq!(own(&["-b", "ü", "u"]).unwrap().body.as_deref(), Some("ü"));
        assert!(own(&["-b"]).is_err(), "the value is missing");
    }

    #[test]
    fn times_are_seconds_unless_they_say_otherwise() {
        for (text, seconds_in) in [("10", 10.0), ("0.5", 0.5), ("2m", 120.0), ("10s", 10.0)] {
            assert_eq!(seconds(text), Ok(Nanos::from_secs_f64(seconds_in)), "{text}");
        }
        assert!(seconds("-1").is_err() && seconds("ten").is_err());
    }

    #[test]
    fn a_url_without_a_path_asks_for_the_root() {
        let root = Some("http1.path=/".to_owned());
        assert_eq!((path_of("http://h:1"), path_of("https://h/")), (root.clone(), root));
        assert_eq!((path_of("http://h/a"), path_of("http1")), (None, None));
        assert_eq!((path_of("http://h/?x=1"), path_of("http://h?x=1")), (None, None));
    }

    #[test]
    fn urls_get_the_scheme_that_was_left_out() {
        for (text, url) in [
            ("localhost:3000", "http://localhost:3000"),
            ("127.0.0.1/a", "http://127.0.0.1/a"),
            ("https://x", "https://x"),
            ("reference", "http1"),
            ("http://h:1?x=1", "http://h:1/?x=1"),
            ("h.de?next=a/b", "http://h.de/?next=a/b"),
            ("http://h/a?x=1", "http://h/a?x=1"),
        ] {
            assert_eq!(http_url(text), url);
        }
    }
}
