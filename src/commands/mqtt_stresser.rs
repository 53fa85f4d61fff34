//! `weigh mqtt-stresser`: that tool's flags, its load, and what it would have printed beside what
//! is so. A client is a subscriber and a publisher on a topic of their own.

use clap::{Args, CommandFactory, Parser};
use weigh_emulate::mqtt_stresser;
use weigh_model::body::BodySource;
use weigh_model::endpoint::Credentials;
use weigh_model::units::{Bytes, parse_duration};
use weigh_model::{Arrival, Emulation, Join, Nanos, Pattern, Rate, Topology, Writes};
use weigh_plan::LoadWords;

use crate::commands::facade::{self, Asked, Refused};
use crate::planning::conduct::RunOptions;
use weigh_runner::exit::{Exit, Stop};

/// The words behind the command, which are that tool's.
#[derive(Args)]
pub struct MqttStresser {
    /// As mqtt-stresser takes them, behind one dash or two: weigh mqtt-stresser --help
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// The load of mqtt-stresser, with its flags and defaults: what it would have printed, beside the
/// exact figures. Its flags may stand behind one dash: -num-clients 10.
#[derive(Parser)]
#[command(name = "weigh mqtt-stresser", max_term_width = 100)]
struct Flags {
    /// The broker: tcp://HOST:PORT, ssl://..., ws://..., or reference for one that weigh starts
    #[arg(long, value_name = "URL")]
    broker: String,
    /// Clients, each with a publisher and a subscriber
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..))]
    num_clients: u32,
    /// Messages of each client
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u64).range(1..))]
    num_messages: u64,
    /// The body of every message, or @FILE with it [default: this is msg #NUMBER!]
    #[arg(long, value_name = "TEXT", default_value = "")]
    constant_payload: String,
    /// QoS of publishing
    #[arg(long, value_name = "QOS", default_value_t = 0,
        value_parser = clap::value_parser!(u8).range(0..=2))]
    publisher_qos: u8,
    /// QoS of subscribing: the same
    #[arg(long, value_name = "QOS", default_value_t = 0,
        value_parser = clap::value_parser!(u8).range(0..=2))]
    subscriber_qos: u8,
    /// Publishes retained messages
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true")]
    retain: bool,
    /// After each message of a client, such as 100ms
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_duration)]
    pause_between_messages: Nanos,
    /// Above QoS 0, how long a client waits for a confirmation before it sends the next message,
    /// instead of -global-timeout; at QoS 0 the tool only connects by it, which here has 10s
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Nanos>,
    /// How long messages are waited for that do not come back
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    global_timeout: Nanos,
    /// Clients that start together
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..))]
    rampup_size: u32,
    /// How long it takes until the next ones start; 0s starts all together
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_duration)]
    rampup_delay: Nanos,
    /// User name, which is never recorded
    #[arg(long, value_name = "NAME", default_value = "")]
    username: String,
    /// Password, which is never recorded
    #[arg(long, value_name = "WORD", default_value = "")]
    password: String,
    /// What topics begin with [default: weigh/TRIAL]
    #[arg(long, value_name = "PATH", default_value = "")]
    topic_base_path: String,
    /// Accepts every certificate
    #[arg(long)]
    skip_tls_verification: bool,
    /// Says nothing on the way
    #[arg(long)]
    no_progress: bool,
    #[command(flatten)]
    run_options: RunOptions,
}

impl MqttStresser {
    /// Makes the load, and tells both accounts of it.
    pub fn run(self) -> Result<Exit, Stop> {
        let words = with_two_dashes(&self.words);
        let flags: Flags = match facade::read("weigh mqtt-stresser", &words, REFUSED) {
            Ok(flags) => flags,
            Err(exit) => return Ok(exit),
        };
        let asked = flags.asked()?;
        let run_options = flags.run_options.quieter(flags.no_progress);
        facade::weigh(&asked, &run_options, mqtt_stresser::beside)
    }
}

impl Flags {
    fn asked(&self) -> Result<Asked, Stop> {
        self.check()?;
        let word = broker(&self.broker);
        let mut sets = vec![
            format!("mqtt.qos={}", self.publisher_qos),
            format!("mqtt.retain={}", self.retain),
        ];
        if !self.topic_base_path.is_empty() {
            sets.push(format!("mqtt.topic={}/{{client}}", self.topic_base_path));
        }
        if self.skip_tls_verification {
            sets.push("mqtt.tls_verify=false".to_owned());
        }
        let (user, password) = (self.username.clone(), self.password.clone());
        let is_known = !user.is_empty() || !password.is_empty();
        Ok(Asked {
            name: "mqtt-stresser",
            word,
            sets,
            headers: Vec::new(),
            words: self.words()?,
            emulate: vec![Emulation::MqttStresser],
            user: is_known.then_some(Credentials { user, password }),
        })
    }

    fn check(&self) -> Result<(), Stop> {
        if self.publisher_qos != self.subscriber_qos {
            return Err(Stop::usage(format!(
                "-publisher-qos {} -subscriber-qos {}: a lane has one QoS here: type the same for \
                 both; -publisher-qos {} -subscriber-qos {} delivers as the lower of the two",
                self.publisher_qos,
                self.subscriber_qos,
                self.publisher_qos.min(self.subscriber_qos),
                self.publisher_qos.min(self.subscriber_qos),
            )));
        }
        Ok(())
    }

    fn words(&self) -> Result<LoadWords, Stop> {
        let pause = self.pause_between_messages;
        // Unconfirmed messages leave one after the other; what is confirmed is waited for.
        let (arrival, rate, think) = match (self.publisher_qos, pause.0) {
            (0, 0) => (Arrival::Burst, None, None),
            (0, _) => {
                let rate = Rate { per_second: 1.0 / pause.as_secs_f64(), per_client: true };
                (Arrival::Constant, Some(rate), None)
            }
            (_, 0) => (Arrival::Closed, None, None),
            _ => (Arrival::Closed, None, Some(pause)),
        };
        let (body, size) = self.body()?;
        Ok(LoadWords {
            pattern: Some(Pattern::Deliver),
            connections: Some(self.num_clients),
            subscribers: Some(self.num_clients),
            topology: Some(Topology::Pairs),
            messages: Some(self.num_messages.saturating_mul(self.num_clients.into())),
            warmup: Some(Nanos(0)),
            arrival: Some(arrival),
            rate,
            think,
            join: Some(self.join()),
            writes: Some(Writes::Single),
            body: Some(body),
            size: Some(Bytes(size)),
            timeout: Some(match self.publisher_qos {
                0 => self.global_timeout,
                _ => self.timeout.unwrap_or(self.global_timeout),
            }),
            ..LoadWords::default()
        })
    }

    /// Every client connects and begins by itself when its group is started.
    fn join(&self) -> Join {
        match self.rampup_delay.0 {
            0 => Join { clients: self.num_clients, every: Nanos::from_secs(1) },
            _ => Join { clients: self.rampup_size, every: self.rampup_delay },
        }
    }

    /// As large as the tool's, whose bodies count their messages: here all are as long as the last.
    fn body(&self) -> Result<(BodySource, u64), Stop> {
        if let Some(file) = self.constant_payload.strip_prefix('@') {
            let found = std::fs::metadata(file).map_err(|error| {
                Stop::usage(format!("-constant-payload @{file}: cannot be read: {error}"))
            })?;
            return Ok((BodySource::File(file.to_owned()), found.len()));
        }
        if !self.constant_payload.is_empty() {
            let size = self.constant_payload.len() as u64;
            return Ok((BodySource::Text(self.constant_payload.clone()), size));
        }
        // A number must have room that counts the messages of all clients.
        let all = self.num_messages.saturating_mul(self.num_clients.into());
        let longest = format!("this is msg #{all}!").len() as u64;
        Ok((BodySource::Template("this is msg #{seq}!".to_owned()), longest))
    }
}

/// Go's flags may stand behind one dash; their values are left as they are, dash or not.
fn with_two_dashes(words: &[String]) -> Vec<String> {
    let command = Flags::command();
    let mut is_value = false;
    let each = words.iter().map(|word| {
        let is_flag = !std::mem::take(&mut is_value);
        let one = word.strip_prefix('-').filter(|_| is_flag);
        // A single letter is a flag of weigh itself.
        let is_go = one.is_some_and(|name| !name.starts_with('-') && name.chars().count() > 1);
        let word = if is_go { format!("-{word}") } else { word.clone() };
        is_value = is_flag && facade::wants_next(&word, &command);
        word
    });
    each.collect()
}

/// The broker's URL with a scheme of ours.
fn broker(text: &str) -> String {
    let schemes = [("tcp://", "mqtt://"), ("ssl://", "mqtts://"), ("tls://", "mqtts://")];
    let known = schemes.iter().find_map(|(theirs, ours)| Some((text.strip_prefix(theirs)?, ours)));
    match known {
        Some((rest, ours)) => format!("{ours}{rest}"),
        None if text == "reference" => "mqtt".to_owned(),
        None => text.to_owned(),
    }
}

/// Flags of mqtt-stresser that nothing here would heed.
const REFUSED: &[Refused] = &[
    Refused { short: "", long: "log-level", mend: "failures are told and counted: leave it out" },
    Refused { short: "", long: "profile-cpu", mend: "use perf on weigh: leave it out" },
    Refused { short: "", long: "profile-mem", mend: "use perf on weigh: leave it out" },
    Refused {
        short: "",
        long: "min-msg-chars",
        mend: "bodies have one size: -constant-payload with a text of it",
    },
    Refused {
        short: "",
        long: "max-msg-chars",
        mend: "bodies have one size: -constant-payload with a text of it",
    },
    Refused { short: "", long: "client-id-prefix", mend: "ids tell the trial: leave it out" },
    Refused {
        short: "",
        long: "cafile",
        mend: "type weigh compare mqtts://HOST:PORT --pattern deliver --cacert FILE",
    },
    Refused {
        short: "",
        long: "cert",
        mend: "type weigh compare mqtts://HOST:PORT --pattern deliver --cert FILE --key FILE",
    },
    Refused {
        short: "",
        long: "key",
        mend: "type weigh compare mqtts://HOST:PORT --pattern deliver --cert FILE --key FILE",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(words: &[&str]) -> Flags {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        facade::read("x", &with_two_dashes(&words), REFUSED).unwrap()
    }

    #[test]
    fn values_stay_as_they_were_typed() {
        for payload in ["ü", "-ü", "-key", "--har", "-5", "-", "a=b"] {
            let own = flags(&["-broker", "tcp://h:1", "-constant-payload", payload, "-retain"]);
            assert_eq!((own.constant_payload.as_str(), own.retain), (payload, true));
            let own = flags(&["-broker=tcp://h:1", &format!("-constant-payload={payload}")]);
            assert_eq!((own.constant_payload.as_str(), own.retain), (payload, false));
        }
        let spoken = with_two_dashes(&["ü".to_owned(), "-ü".to_owned(), "-".to_owned()]);
        assert_eq!(spoken, ["ü", "-ü", "-"], "neither is a flag");
    }

    #[test]
    fn flags_stand_behind_one_dash_or_two() {
        let own = flags(&["-broker", "tcp://h:1883", "--num-clients", "60", "-num-messages=167"]);
        let asked = own.asked().unwrap();
        assert_eq!(asked.word, "mqtt://h:1883");
        let words = asked.words;
        assert_eq!((words.connections, words.subscribers), (Some(60), Some(60)));
        assert_eq!((words.messages, words.topology), (Some(10_020), Some(Topology::Pairs)));
        assert_eq!((words.arrival, words.writes), (Some(Arrival::Burst), Some(Writes::Single)));
        assert_eq!(words.size, Some(Bytes(19)), "this is msg #10020!");
        assert_eq!(words.timeout, Some(Nanos::from_secs(60)));
    }

    #[test]
    fn what_is_confirmed_is_waited_for_and_pauses_make_a_rate() {
        let qos = ["-broker", "tcp://h:1", "-publisher-qos", "1", "-subscriber-qos", "1"];
        assert_eq!(flags(&qos).asked().unwrap().words.arrival, Some(Arrival::Closed));
        let paused = ["-broker", "tcp://h:1", "-pause-between-messages", "100ms", "-retain"];
        let asked = flags(&paused).asked().unwrap();
        let rate = asked.words.rate.unwrap();
        assert_eq!((rate.per_second, rate.per_client), (10.0, true));
        assert!(asked.sets.contains(&"mqtt.retain=true".to_owned()));
    }

    #[test]
    fn what_is_not_done_alike_is_refused_with_what_to_type() {
        let said = |words: &[&str]| flags(words).asked().err().unwrap().to_string();
        let qos = said(&["-broker", "tcp://h:1", "-publisher-qos", "2"]);
        assert!(qos.contains("the same"), "{qos}");
    }

    /// 1,500 clients start 100 by 100 each 500 ms, the last after seven seconds.
    #[test]
    fn clients_start_group_by_group_as_the_tool_starts_them() {
        let join = |words: &[&str]| {
            let words = [&["-broker", "tcp://h:1", "-num-clients", "1500"], words].concat();
            flags(&words).asked().unwrap().words.join.unwrap()
        };
        assert_eq!(join(&[]).to_string(), "100 every 500ms");
        assert_eq!(join(&[]).last_turn(1_500), Nanos::from_secs(7));
        let other = join(&["-rampup-size", "10", "-rampup-delay", "1s"]);
        assert_eq!(other.to_string(), "10 every 1s");
        assert_eq!(join(&["-rampup-delay", "0s"]).last_turn(1_500), Nanos(0));
    }

    /// What the tool does with its two limits: a confirmation is waited for by the one, messages
    /// by the other.
    #[test]
    fn a_timeout_is_of_confirmations() {
        let limit = |words: &[&str]| {
            let words = [&["-broker", "tcp://h:1", "-timeout", "20s"], words].concat();
            flags(&words).asked().unwrap().words.timeout
        };
        assert_eq!(limit(&[]), Some(Nanos::from_secs(60)));
        assert_eq!(limit(&["-global-timeout", "90s"]), Some(Nanos::from_secs(90)));
        let confirmed = ["-publisher-qos", "1", "-subscriber-qos", "1"];
        assert_eq!(limit(&confirmed), Some(Nanos::from_secs(20)));
    }

    #[test]
    fn credentials_stand_apart_from_what_is_recorded() {
        let asked = flags(&["-broker", "ssl://h:1", "-username", "u", "-password", "p-secret"]);
        let asked = asked.asked().unwrap();
        assert_eq!(asked.user.unwrap().password, "p-secret");
        assert!(!asked.word.contains("secret") && asked.sets.iter().all(|s| !s.contains("secret")));
    }
}
