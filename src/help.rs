//! Help of every command: the options that `-h` lists, their headings and order, and the examples.

use clap::{Arg, ArgAction, Command};

/// Version that `weigh -V` prints.
pub const VERSION: &str = env!("WEIGH_VERSION");

/// Version and features that `weigh --version` prints.
pub const LONG_VERSION: &str =
    concat!(env!("WEIGH_VERSION"), "\nfeatures: ", env!("WEIGH_FEATURES"));

/// The commit from which this program was built; `None` if the build did not know it.
pub fn commit() -> Option<String> {
    let commit = env!("WEIGH_BUILT_FROM");
    (!commit.is_empty()).then(|| commit.to_owned())
}

/// Commands that few users need every day.
pub const MORE: &str = "\
More commands:
  export   Export a run as CSV, LaTeX, OpenMetrics or JMeter results
  audit    Check published figures, output of other tools, or a run
  like     Run a load with the options of wrk, k6, oha and other tools
  energy   List energy meters and device models, or run a battery down
  stats    Compute mean, interval and verdict for a file of numbers
  observe  Serve CPU and memory figures of a local process to a remote weigh
  agent    Generate a part of the load of a fleet on this host
  clock    Measure the clock offset between two hosts, and one-way delays
  fleet    Make one load from several hosts: start and connect the agents
  seal     Encrypt, sign, open or inspect messages (COSE, RFC 9052)
  completions SHELL, man [COMMAND]   Print completions, manual pages

Examples:
  weigh compare mqtt http --pattern publish    Compare MQTT with HTTP
  weigh compare mqtt://HOST:1883     Measure a broker
  weigh limit mosquitto              Find the highest rate without loss
  weigh advise                       Ask which protocol fits a situation
  weigh help compare                 Show all options of a command";

/// Returns the program with the options of its commands under headings, the options of `-h`
/// selected, and its examples added.
pub fn arranged(program: Command) -> Command {
    with_subcommands(program, "")
}

/// Returns the program with all commands that users type, none of them hidden, for completions and
/// manual pages.
pub fn with_every_command(program: &Command) -> Command {
    let typed = program.get_subcommands().filter(|own| !INTERNAL.contains(&own.get_name()));
    let about = program.get_about().cloned().unwrap_or_default();
    Command::new("weigh")
        .about(about)
        .version(VERSION)
        .args(program.get_arguments())
        .subcommands(typed.map(|own| own.clone().hide(false)))
}

/// Returns the command with its subcommands arranged; `above` has the names before them.
fn with_subcommands(command: Command, above: &str) -> Command {
    let mut place = 0;
    command.mut_subcommands(|own| {
        place += 1;
        arranged_below(own, above).display_order(place)
    })
}

/// Returns a subcommand arranged; `above` has the names before its own, such as `study `.
fn arranged_below(command: Command, above: &str) -> Command {
    let name = format!("{above}{}", command.get_name());
    let command = with_subcommands(command, &format!("{name} "));
    let examples = EXAMPLES.iter().find(|(own, _)| *own == name).map(|(_, text)| *text);
    let own = command.get_after_help().map(ToString::to_string);
    let command = match (examples, own) {
        (Some(text), Some(own)) => command.after_help(format!("{own}\n\n{text}")),
        (Some(text), None) => command.after_help(text),
        (None, _) => command,
    };
    let Some((name, essential)) = ESSENTIAL.iter().find(|(own, _)| *own == name) else {
        return command;
    };
    let options = command.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set());
    let count = options.count() + 1;
    let mut all: Vec<Arg> = command.get_arguments().cloned().chain([help_option()]).collect();
    // Headings are in the order of their first option.
    all.sort_by_cached_key(|arg| arg.get_long().and_then(place_of));
    let all = all.into_iter().map(|arg| {
        let is_essential = arg.get_long().is_some_and(|long| essential.contains(&long));
        let is_option = !arg.is_positional();
        placed(arg).hide_short_help(is_option && !is_essential)
    });
    let text = examples.unwrap_or_default();
    let about = command.get_about().cloned().unwrap_or_default();
    Command::new(*name)
        .about(about)
        .disable_help_flag(true)
        .args(all)
        .after_help(format!("weigh {name} --help shows all {count} options and examples."))
        .after_long_help(text)
}

/// Returns an option with its heading and its position there.
fn placed(arg: Arg) -> Arg {
    match arg.get_long().and_then(place_of) {
        Some((heading, place)) => arg.help_heading(HEADINGS[heading].0).display_order(place),
        None => arg,
    }
}

/// Returns the number of an option's heading, and the position of the option there.
fn place_of(long: &str) -> Option<(usize, usize)> {
    HEADINGS.iter().enumerate().find_map(|(heading, (_, names))| {
        let place = names.split_whitespace().position(|name| name == long)?;
        Some((heading, place))
    })
}

/// Returns `-h` and `--help`, which have a heading like all other options.
fn help_option() -> Arg {
    let help = "Print help; --help for all options and examples";
    Arg::new("help").short('h').long("help").action(ArgAction::Help).help(help)
}

/// Commands that only `weigh` itself starts.
const INTERNAL: [&str; 2] = ["background", "programs"];

/// Headings, and the options of each in their order.
const HEADINGS: [(&str, &str); 9] = [
    (
        "Load",
        "connections rate duration messages size body warmup timeout subscribers arrival window \
         think split seal-to",
    ),
    (
        "Pattern",
        "pattern topology batch period wait poll-limit single-writes stalled-subscriber background",
    ),
    (
        "Target",
        "qos method proto import-path message deadline header secret-header status topic \
         durability set overload user password-file target-cores target-cpu-percent \
         target-memory keep-target abilities sys data",
    ),
    ("Network", "path relay wire offload pcap"),
    ("Security", "tls cacert cert key insecure i-may-load-this"),
    (
        "Measurement",
        "reps goal axis from to budget preset width trial sum second-generator observe \
         keep-messages seed shards resume",
    ),
    (
        "Fleet",
        "fleet agents fleet-name fleet-wait fleet-retries fleet-nkey fleet-creds fleet-ca \
         fleet-cert fleet-key",
    ),
    ("Energy", "device radio battery every cpu meter idle"),
    (
        "Output",
        "live open fail-if undecided dry yes json wide quiet name runs save-plan force junit \
         github help",
    ),
];

/// Commands with more options than a screen has lines, and the options that `-h` shows.
const ESSENTIAL: [(&str, &[&str]); 3] = [
    (
        "compare",
        &[
            "connections",
            "rate",
            "duration",
            "messages",
            "size",
            "pattern",
            "qos",
            "path",
            "tls",
            "reps",
            "observe",
            "live",
            "fail-if",
            "dry",
            "json",
            "help",
        ],
    ),
    (
        "run",
        &[
            "set",
            "i-may-load-this",
            "resume",
            "shards",
            "fail-if",
            "undecided",
            "dry",
            "yes",
            "json",
            "quiet",
            "runs",
            "junit",
            "help",
        ],
    ),
    (
        "limit",
        &[
            "connections",
            "size",
            "pattern",
            "qos",
            "path",
            "tls",
            "goal",
            "axis",
            "from",
            "to",
            "budget",
            "observe",
            "fail-if",
            "dry",
            "json",
            "help",
        ],
    ),
];

/// Examples by command.
const EXAMPLES: [(&str, &str); 15] = [
    (
        "watch",
        "\
Examples:
  weigh watch                                     Show the newest run
  weigh watch --web                               Show it in a browser
  weigh watch RUN --metrics 127.0.0.1:9464        Serve it to Prometheus",
    ),
    (
        "compare",
        "\
Examples:
  weigh compare                                   Six protocols, in a minute
  weigh compare mqtt http --pattern publish       Only publish, no subscriber
  weigh compare mosquitto nginx --pattern publish -R 1k/s    Real servers
  weigh compare mqtt://127.0.0.1:1883 --observe port:1883
  weigh compare mqtt://HOST:1883 --i-may-load-this    A broker on another host
  weigh compare http --path lte --tls both        Emulated link, TLS off and on
  weigh compare http -R 500/s --fail-if \"p99 > 50ms\"
  weigh compare mqtt://HOST:1883 --fleet nats://HOST:4222 --agents 4",
    ),
    (
        "run",
        "\
Examples:
  weigh run examples/mqtt-or-http.toml --dry      Print cases, trials and time
  weigh run plan.toml --set load.rate=500/s       Change one key of the plan
  weigh run plan.toml --fail-if \"loss > 0\" --junit result.xml
  weigh run --resume latest                       Continue an interrupted run",
    ),
    (
        "limit",
        "\
Examples:
  weigh limit mosquitto                           Highest rate without loss
  weigh limit mqtt http --goal \"p99 < 50ms\"       Highest rate with this p99
  weigh limit http --axis connections -R 1/s/client
  weigh limit mosquitto --preset quick --budget 10m    A narrower answer",
    ),
    (
        "advise",
        "\
Examples:
  weigh advise                                    Answer a few questions
  weigh advise --devices 2000 --every 1m -s 125B --path lte
  weigh advise situation.toml --page answer.html  As a page, with a map
  weigh advise situation.toml --calibrate         Measure this machine first
  weigh advise situation.toml --check             Measure what is advised",
    ),
    (
        "size",
        "\
Examples:
  weigh size mqtt http --devices 5000 --every 1m -s 125B --tls on
  weigh size mosquitto --devices 100k --every 10s -s 1KB --cores 4 --memory 8GiB",
    ),
    (
        "study",
        "\
Examples:
  weigh study list
  weigh study run hydroponics --dry               Print plans and time
  weigh study run hydroponics                     Replay it, some minutes",
    ),
    (
        "report",
        "\
Examples:
  weigh report latest
  weigh report latest --html                      Write report.html again
  weigh report latest --markdown > table.md
  weigh report latest --plots pictures            Write pictures (SVG, PNG)
  weigh report latest --plot list                 Print all picture names",
    ),
    (
        "runs",
        "\
Examples:
  weigh runs --name nightly --metric response_time_ns.p99
  weigh runs cite latest                          Print BibTeX and a sentence
  weigh runs prune --keep 20 --dry-run            List what would be removed",
    ),
    (
        "export",
        "\
Examples:
  weigh export latest --format csv --rows repetitions -o data.csv
  weigh export latest --format latex --metrics p50,p99,lost -o table.tex
  weigh export latest --format openmetrics",
    ),
    (
        "diff",
        "\
Examples:
  weigh diff latest~1 latest
  weigh diff A B --fail-if \"p99 > +5%\" --fail-if \"loss > 0\"",
    ),
    (
        "serve",
        "\
Examples:
  weigh serve mqtt --listen 127.0.0.1:1883
  weigh serve http --set http1.tls=on --certificates certs
  weigh serve mqtt --overload drop-newest:1000",
    ),
    (
        "targets",
        "\
Examples:
  weigh targets                                   List targets, installed or not
  weigh targets install mosquitto --yes
  weigh targets start mosquitto@no-limits",
    ),
    (
        "doctor",
        "\
Examples:
  weigh doctor -c 5000                            Check limits and memory
  weigh doctor --calibrate                        Measure the baseline",
    ),
    (
        "like",
        "\
Examples:
  weigh like wrk -t2 -c100 -d30s --latency http://127.0.0.1:8080/
  weigh like autocannon -c 10 -d 10 http://127.0.0.1:3000/
  weigh like oha -n 200 -c 50 http://127.0.0.1:8080/
  weigh like k6 --vus 10 --duration 30s http://127.0.0.1:8080/
  weigh like mqtt-stresser -broker tcp://127.0.0.1:1883 -num-clients 60",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;
    use clap::CommandFactory;
    use weigh_model::Pattern;
    use weigh_plan::load_keys;

    fn command(name: &str) -> Command {
        let mut all = arranged(Arguments::command());
        all.build();
        all.find_subcommand(name).expect(name).clone()
    }

    #[test]
    fn every_option_of_a_large_command_has_a_heading() {
        for (name, essential) in ESSENTIAL {
            let command = command(name);
            let longs: Vec<_> = command.get_arguments().filter_map(Arg::get_long).collect();
            for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
                assert!(arg.is_hide_set() || arg.get_help_heading().is_some(), "{name}: {arg}");
            }
            assert!(essential.iter().all(|long| longs.contains(long)), "{name}: {essential:?}");
        }
    }

    /// The names of protocols behind "only" or "not" of a pattern's text.
    fn named(list: &str) -> Vec<String> {
        let of = |word: &str| -> Vec<String> {
            match word {
                "HTTP" => ["http1", "http2", "http3"].map(str::to_owned).to_vec(),
                "HTTP/1.1" => vec!["http1".to_owned()],
                "HTTP/2" => vec!["http2".to_owned()],
                "HTTP/3" => vec!["http3".to_owned()],
                "AMQP" => vec!["amqp".to_owned(), "amqp1".to_owned()],
                "AMQP 0-9-1" => vec!["amqp".to_owned()],
                word => vec![word.to_lowercase()],
            }
        };
        list.split(", ").flat_map(of).collect()
    }

    #[test]
    fn the_texts_of_patterns_name_the_protocols_that_have_them() {
        let values = load_keys::find("pattern").expect("the key").values;
        for (name, text) in values {
            let pattern: Pattern = name.parse().expect("a pattern");
            let limits = text.split_once("; ").map_or("", |(_, limits)| limits);
            let without = limits.strip_prefix("not over ").or(limits.strip_prefix("not "));
            let (without, only) =
                (without.map(named).unwrap_or_default(), limits.strip_prefix("only ").map(named));
            for protocol in weigh_protocols::PROTOCOLS {
                let own = protocol.name().to_owned();
                let is_said =
                    only.as_ref().map_or(!without.contains(&own), |only| only.contains(&own));
                assert_eq!(protocol.patterns().contains(&pattern), is_said, "{name} over {own}");
            }
        }
    }

    /// `weigh study run` is not `weigh run`.
    #[test]
    fn a_subcommand_has_no_help_of_another_command() {
        let mut all = arranged(Arguments::command());
        all.build();
        let study = all.find_subcommand("study").expect("study").clone();
        let help = study.clone().find_subcommand_mut("run").expect("run").render_help().to_string();
        assert!(!help.contains("weigh run --help") && help.contains("--scale"), "{help}");
    }

    #[test]
    fn names_stand_under_one_heading() {
        let mut names: Vec<&str> =
            HEADINGS.iter().flat_map(|(_, names)| names.split_whitespace()).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
    }

    #[test]
    fn the_top_level_shows_at_most_14_commands() {
        let all = arranged(Arguments::command());
        let shown = all.get_subcommands().filter(|own| !own.is_hide_set());
        assert!(shown.count() <= 14);
        for own in all.get_subcommands().filter(|own| own.is_hide_set()) {
            let name = own.get_name();
            let is_internal = INTERNAL.contains(&name);
            let is_listed = [format!("\n  {name} "), format!(", {name} ")];
            assert_eq!(is_listed.iter().any(|own| MORE.contains(own)), !is_internal, "{name}");
        }
    }

    /// One screen: 24 to 40 lines of at most 100 columns.
    #[test]
    fn short_help_of_large_commands_is_one_screen() {
        for (name, _) in ESSENTIAL {
            let help = command(name).max_term_width(100).render_help().to_string();
            let lines = help.lines().count();
            assert!((24..=40).contains(&lines), "{name}: {lines} lines\n{help}");
            assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        }
    }

    /// A terminal of 80 columns breaks longer lines below the command.
    #[test]
    fn examples_fit_into_80_columns() {
        for (_, text) in EXAMPLES.into_iter().chain([("", MORE)]) {
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }

    #[test]
    fn every_command_that_people_begin_with_has_examples() {
        for (name, text) in EXAMPLES {
            assert!(command(name).render_long_help().to_string().contains("Examples:"), "{name}");
            let typed = text.lines().skip(1).map(str::trim);
            typed.for_each(|line| assert!(line.starts_with(&format!("weigh {name}")), "{line}"));
        }
    }
}
