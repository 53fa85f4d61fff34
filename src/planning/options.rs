//! Flags of a load, and the load that they describe.

use std::ffi::OsString;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use toml::{Table, Value};
use weigh_model::protocol::Invalid;
use weigh_model::units::Bytes;
use weigh_model::{Arrival, Load, Nanos, Pattern};
use weigh_plan::case::{setting_text, word};
use weigh_plan::load_keys::{self, Flag, LOAD_KEYS, LoadKey};
use weigh_plan::{Contradiction, LoadWords};
use weigh_report::terminal::fold::shortened;
use weigh_runner::case::lanes::Lane;
use weigh_runner::exit::Stop;

/// Flags of a load: those of [`LOAD_KEYS`]. Their letters are those of autocannon, wrk, oha and
/// emqtt-bench.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Values of the flags.
    pub words: LoadWords,
}

impl Args for LoadOptions {
    fn augment_args(command: Command) -> Command {
        of_all().fold(command, |command, (key, flag)| command.arg(arg(key, flag)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        LoadOptions::augment_args(command)
    }
}

impl FromArgMatches for LoadOptions {
    fn from_arg_matches(given: &ArgMatches) -> Result<LoadOptions, clap::Error> {
        let said = |(key, flag): (&LoadKey, &Flag)| {
            let value = match flag.switch {
                Some((word, _)) => given.get_flag(flag.long).then(|| word.into()),
                None => given.get_one::<Value>(flag.long).cloned(),
            };
            Some((key.name.to_owned(), value?))
        };
        let words: Result<LoadWords, _> = of_all().filter_map(said).collect::<Table>().try_into();
        let wrong = |error| clap::Error::raw(clap::error::ErrorKind::InvalidValue, error);
        words.map(|words| LoadOptions { words }).map_err(wrong)
    }

    fn update_from_arg_matches(&mut self, given: &ArgMatches) -> Result<(), clap::Error> {
        *self = LoadOptions::from_arg_matches(given)?;
        Ok(())
    }
}

/// Returns the keys of a load for which every command with a load has a flag.
fn of_all() -> impl Iterator<Item = (&'static LoadKey, &'static Flag)> {
    let with_flag = |key: &'static LoadKey| Some((key, key.flag.as_ref()?));
    LOAD_KEYS.iter().filter_map(with_flag).filter(|(_, flag)| flag.is_of_all)
}

/// Returns the flag of a key for clap; it takes the values that the key takes in a plan.
fn arg(key: &'static LoadKey, flag: &'static Flag) -> Arg {
    let mut arg = Arg::new(flag.long).long(flag.long).help(key.short_help());
    arg = arg.long_help(key.help());
    arg = arg.short(flag.short).short_aliases(flag.silent);
    if let Some((long, short)) = flag.other {
        arg = arg.alias(long).short_alias(short);
    }
    if flag.switch.is_some() {
        return arg.action(ArgAction::SetTrue);
    }
    let read = |word: &str| key.kind.read_word(word).map_err(|wrong| wrong.to_string());
    arg.value_name(key.kind.value_name()).value_parser(read)
}

impl LoadOptions {
    /// Returns the load for a lane of a protocol with these `patterns`, the first its default.
    ///
    /// # Errors
    /// If flags contradict each other, in the words of the command line.
    pub fn load(&self, protocol: &str, patterns: &[Pattern]) -> Result<Load, Stop> {
        let pattern = self.words.pattern.unwrap_or(patterns[0]);
        let may_deliver = patterns.contains(&Pattern::Deliver);
        if self.words.stall.is_some() && !may_deliver {
            return Err(Stop::usage(format!(
                "--stalled-subscriber: {protocol} does not deliver to subscribers\nhelp: leave it \
                 out, or name a protocol that does, such as mqtt"
            )));
        }
        let delivers = match pattern {
            Pattern::Transfer => may_deliver,
            pattern => pattern.delivers_to(1),
        };
        let mut words = self.words.clone();
        // Other lanes of the command line may deliver; these flags are for them.
        words.subscribers.take_if(|_| !delivers && pattern == Pattern::Transfer);
        words.topology.take_if(|_| !delivers);
        words.decide(protocol, patterns).map_err(|wrong| Stop::usage(self.in_flags(&wrong[0])))
    }

    /// Returns a contradiction in the words of the command line.
    fn in_flags(&self, contradiction: &Contradiction) -> String {
        let keys = contradiction.keys().iter().filter_map(|key| key.strip_prefix("load."));
        let flags = keys.filter_map(|name| Some((name, load_keys::find(name)?.flag?.typed())));
        let flags: Vec<(&str, String)> = flags.collect();
        let said = Table::try_from(&self.words).unwrap_or_default();
        let given = flags.iter().find(|(name, _)| said.contains_key(*name));
        let place = match given.or(flags.first()) {
            Some((name, flag)) => {
                match said.get(*name).and_then(|value| setting_text(&word(value))) {
                    Some(value) => format!("{flag} {}", shortened(&value, VALUE_MAX)),
                    None => flag.clone(),
                }
            }
            None => contradiction.keys()[0].to_owned(),
        };
        let wrong = contradiction.in_plan();
        format!("{place}: {}\nhelp: {}", told(&wrong.text), told(&wrong.fix))
    }

    /// Returns the load with subscribers that read nothing for `lasts`, by default as long as
    /// messages are sent. The defaults make a limited queue overflow: one publisher with many
    /// messages of 1 kB in flight.
    pub fn stalled(&self, lasts: Option<Nanos>) -> LoadOptions {
        let mut words = self.words.clone();
        words.pattern.get_or_insert(Pattern::Deliver);
        words.connections.get_or_insert(1);
        if words.body.source.is_none() {
            words.size.get_or_insert(STALLED_SIZE);
        }
        if words.rate.is_none() && words.arrival.is_none() {
            words.window.get_or_insert(STALLED_WINDOW);
        }
        if words.messages.is_none() && words.arrival.as_ref().is_none_or(has_no_end) {
            words.duration.get_or_insert(STALLED);
        }
        words.stall = lasts.or(words.duration).or(Some(STALLED));
        LoadOptions { words }
    }

    /// True if the timeout is given, so that it does not depend on the path.
    pub fn has_timeout(&self) -> bool {
        self.words.timeout.is_some()
    }

    /// True if the body is given.
    pub fn says_body(&self) -> bool {
        let LoadWords { body, size, .. } = &self.words;
        body.source.is_some() || size.is_some() || body.recipients.is_some()
    }

    /// Refuses a topology and subscribers that none of these loads uses.
    ///
    /// # Errors
    /// The flag that applies to no load.
    pub fn check_topology<'l>(
        &self,
        loads: impl Iterator<Item = &'l Load>,
        lanes: impl Iterator<Item = &'l Lane>,
    ) -> Result<(), Stop> {
        let mut loads = loads;
        let unheard = match (self.words.topology, self.words.subscribers) {
            (Some(_), _) => Contradiction::TopologyUnheard,
            (None, Some(1..)) => Contradiction::SubscribersUnheard,
            _ => return Ok(()),
        };
        if loads.any(Load::delivers) {
            return Ok(());
        }
        let said = self.in_flags(&unheard);
        let mut lanes = lanes;
        let can_deliver = lanes.any(|lane| lane.patterns().contains(&Pattern::Deliver));
        Err(Stop::usage(match can_deliver {
            true => said,
            false => said.replace("--pattern deliver or --pattern poll", "--pattern poll"),
        }))
    }
}

/// Most characters of a value in an error: `1e300/s` is a number of 301 digits.
const VALUE_MAX: usize = 80;

/// False for arrivals that define their own end.
pub fn has_no_end(arrival: &Arrival) -> bool {
    !matches!(arrival, Arrival::Steps(_) | Arrival::Trace(_) | Arrival::Burst)
}

/// Default duration of a load with stalled subscribers. In less time, a broker in Java that has
/// just been started accepts too few messages to fill a queue.
const STALLED: Nanos = Nanos::from_secs(10);

/// Default size of its bodies, as in the comparison of brokers in docs/guide/targets.md.
const STALLED_SIZE: Bytes = Bytes(1000);

/// Default number of its messages in flight: the default of Mosquitto (mosquitto.conf(5),
/// `max_inflight_messages`).
const STALLED_WINDOW: u32 = 20;

/// Returns an error about a plan key with the flag that sets the key.
pub fn with_flag(invalid: Invalid) -> Invalid {
    let Some(flag) = flag_of(&invalid.place) else { return invalid };
    let fix = match invalid.fix.strip_prefix("give ") {
        Some(rest) => format!("type {flag} {rest}"),
        None => told(&invalid.fix),
    };
    let fix = fix.replace(
        "NAME: VALUE, and separate several by |",
        "-H \"NAME: VALUE\"; repeat -H for more",
    );
    Invalid { place: flag, problem: invalid.problem, fix }
}

/// Replaces keys of a load in a text by their flags: `load.rate = "5/s"` becomes `-R 5/s`.
fn told(text: &str) -> String {
    let mut told = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("load.") {
        told += &rest[..at];
        let is_of_key = |c: char| c.is_ascii_lowercase() || matches!(c, '.' | '_');
        let end = rest[at..].find(|c| !is_of_key(c)).map_or(rest.len(), |length| at + length);
        let key = rest[at..end].trim_end_matches('.');
        rest = &rest[at + key.len()..];
        let Some(flag) = flag_of(key) else {
            told += key;
            continue;
        };
        told += &flag;
        let Some(value) = rest.strip_prefix(" = ") else { continue };
        let quoted = value.strip_prefix('"').and_then(|text| text.split_once('"'));
        (told, rest) = match quoted {
            Some((value, rest)) => (format!("{told} {value}"), rest),
            None => (told + " ", value),
        };
    }
    told + rest
}

/// Returns the flag of a plan key, if it has one.
fn flag_of(key: &str) -> Option<String> {
    let other = || OTHERS.iter().find(|(own, _)| *own == key).map(|(_, flag)| (*flag).to_owned());
    let of_load = key.strip_prefix("load.").and_then(load_keys::find);
    let of_protocol = || {
        let (_, setting) = key.split_once('.')?;
        let (_, flag) = OF_PROTOCOLS.iter().find(|(own, _)| *own == setting)?;
        // The key may have been typed itself, with --set.
        let is_typed = |word: OsString| word.to_string_lossy().starts_with(flag);
        std::env::args_os().any(is_typed).then(|| (*flag).to_owned())
    };
    of_load.and_then(|own| own.flag).map(|flag| flag.typed()).or_else(other).or_else(of_protocol)
}

/// Settings of several protocols, and the flags that set them.
const OF_PROTOCOLS: &[(&str, &str)] = &[
    ("tls", "--tls"),
    ("tls_ca", "--cacert"),
    ("tls_cert", "--cert"),
    ("tls_key", "--key"),
    ("headers", "-H"),
    ("secret_headers", "--secret-header"),
    ("method", "--method"),
    ("status", "--status"),
    ("topic", "--topic"),
    ("proto", "--proto"),
    ("import_paths", "--import-path"),
    ("message", "--message"),
    ("deadline", "--deadline"),
];

/// Plan keys besides those of a load, and the flags that set them.
const OTHERS: &[(&str, &str)] = &[
    ("target.relay", "--relay"),
    ("target.cores", "--target-cores"),
    ("target.cpu_percent", "--target-cpu-percent"),
    ("target.memory", "--target-memory"),
    ("target.abilities", "--abilities"),
    ("path", "--path"),
    ("mqtt.overload", "--overload"),
    ("energy.device", "--device"),
    ("energy.radio", "--radio"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        LoadOptions::augment_args(Command::new("any"))
    }

    /// Reads a line of flags.
    fn read(line: &[&str]) -> Result<LoadWords, clap::Error> {
        let given = command().try_get_matches_from([&["any"], line].concat())?;
        LoadOptions::from_arg_matches(&given).map(|options| options.words)
    }

    /// Returns a value that a key takes.
    fn example(key: &LoadKey) -> &'static str {
        match key.kind.value_name() {
            "N" => "7",
            "TIME" => "7s",
            "RATE" => "7/s",
            "SIZE" => "7B",
            "PATTERN" => "poll",
            "TOPOLOGY" => "pairs",
            "ARRIVAL" => "burst",
            "SPLIT" => "ceil",
            "BODY" => "text:seven",
            other => panic!("{other}"),
        }
    }

    #[test]
    fn every_flag_says_what_its_key_says_in_a_plan() {
        command().debug_assert();
        for (key, flag) in of_all() {
            let word = flag.switch.map_or_else(|| example(key), |(word, _)| word);
            let value = key.kind.read_word(word).unwrap();
            let mut plan = Table::new();
            plan.insert(key.name.to_owned(), value);
            let in_plan: LoadWords = plan.try_into().unwrap();
            let mut ways = vec![format!("--{}", flag.long), flag.typed()];
            ways.extend(flag.silent.map(|letter| format!("-{letter}")));
            ways.extend(flag.other.map(|(long, _)| format!("--{long}")));
            for way in ways {
                let line = if flag.switch.is_some() { vec![&*way] } else { vec![&*way, word] };
                assert_eq!(read(&line).unwrap(), in_plan, "{line:?}");
                assert_ne!(in_plan, LoadWords::default(), "{line:?}");
            }
            let help = command().render_long_help().to_string();
            let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat(&help).contains(&flat(&key.help())), "{}", key.name);
        }
    }

    #[test]
    fn keys_in_a_sentence_become_flags() {
        for (said, expected) in [
            ("add load.messages = 10000", "add -n 10000"),
            (
                "leave load.rate out, or make load.arrival constant",
                "leave -R out, or make --arrival constant",
            ),
            ("add load.rate = \"1000/s\", or more", "add -R 1000/s, or more"),
            ("give load.join. Or load.stall", "give load.join. Or --stalled-subscriber"),
        ] {
            assert_eq!(told(said), expected);
        }
    }
}
