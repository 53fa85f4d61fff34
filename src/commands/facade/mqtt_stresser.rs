//! `weigh like mqtt-stresser`: the flags of mqtt-stresser and its load. A client is a subscriber
//! and a publisher on a topic of their own.

use weigh_model::body::BodySource;
use weigh_model::endpoint::Credentials;
use weigh_model::{Arrival, Emulation, Join, Nanos, Rate};
use weigh_runner::emulate::mqtt_stresser;
use weigh_runner::exit::Stop;

use super::tool::{Account, Asked, Given, Tool};

/// The tool.
pub const TOOL: Tool = Tool {
    command: "weigh like mqtt-stresser",
    about: "Run a load with the options and defaults of mqtt-stresser; print its figures and the \
            exact ones. Flags may have one dash: -num-clients 10",
    serves: "mqtt",
    has_one_dash: true,
    skips: "",
    flags: "
--broker URL | required | The broker: tcp://HOST:PORT, ssl://..., ws://..., or reference for one
    that weigh starts
--num-clients N | load connections, default 10 | Clients, each with a publisher and a subscriber
--num-messages N | load messages, default 10 | Messages of each client
--constant-payload TEXT |  | The body of every message, or @FILE with it [default: this is msg
    #NUMBER!]
--publisher-qos QOS | number 0..2, set mqtt.qos, default 0 | QoS of publishing
--subscriber-qos QOS | number 0..2, default 0 | QoS of subscribing: the same
--retain RETAIN | truth, set mqtt.retain, default false | Publish retained messages
--pause-between-messages TIME | time, default 0s | After each message of a client, such as 100ms
--timeout TIME | time | Above QoS 0, longest wait for a confirmation before the next message,
    instead of -global-timeout; at QoS 0 the tool uses it only to connect, which is 10s here
--global-timeout TIME | load timeout, default 60s | Longest wait for messages that do not come
    back
--rampup-size N | number 1.., default 100 | Clients that start together
--rampup-delay TIME | time, default 500ms | Time until the next clients start; 0s starts all
    together
--username NAME |  | User name, which is never recorded
--password WORD |  | Password, which is never recorded
--topic-base-path PATH |  | Start of all topics [default: weigh/TRIAL]
--skip-tls-verification |  | Accept every certificate
--no-progress |  | Suppress progress output
--log-level | refused | leave it out; failures are printed and counted
--profile-cpu | refused | leave it out; run perf on weigh
--profile-mem | refused | leave it out; run perf on weigh
--min-msg-chars | refused | type -constant-payload with a text of this size
--max-msg-chars | refused | type -constant-payload with a text of this size
--client-id-prefix | refused | leave it out; client IDs name the trial
--cafile | refused | type weigh compare mqtts://HOST:PORT --pattern deliver --cacert FILE
--cert | refused | type weigh compare mqtts://HOST:PORT --pattern deliver --cert FILE --key FILE
--key | refused | type weigh compare mqtts://HOST:PORT --pattern deliver --cert FILE --key FILE
",
    load: &[("pattern", "deliver"), ("topology", "pairs"), ("warmup", "0s"), ("writes", "single")],
    emulate: &[Emulation::MqttStresser],
    decide,
    account: Account::Emulated(|left, _| mqtt_stresser::compare(left)),
};

fn decide(given: &Given, asked: &mut Asked) -> Result<(), Stop> {
    let (publisher, subscriber) = (given.number("publisher-qos"), given.number("subscriber-qos"));
    if publisher != subscriber {
        let lower = publisher.min(subscriber);
        return Err(Stop::usage(format!(
            "-publisher-qos {publisher} -subscriber-qos {subscriber}: publisher and subscriber \
             need the same QoS\nhelp: type the same for both; -publisher-qos {lower} \
             -subscriber-qos {lower} delivers as the lower of the two"
        )));
    }
    asked.word = broker(given.text("broker"));
    if !given.text("topic-base-path").is_empty() {
        asked.sets.push(format!("mqtt.topic={}/{{client}}", given.text("topic-base-path")));
    }
    if given.0.get_flag("skip-tls-verification") {
        asked.sets.push("mqtt.tls_verify=false".to_owned());
    }
    let [user, password] = ["username", "password"].map(|flag| given.text(flag).to_owned());
    let is_known = !user.is_empty() || !password.is_empty();
    asked.user = is_known.then_some(Credentials { user, password });
    let clients = given.count("num-clients");
    let messages = given.number("num-messages").saturating_mul(clients.into());
    let words = &mut asked.words;
    (words.subscribers, words.messages) = (Some(clients), Some(messages));
    let pause = Some(given.time("pause-between-messages")).filter(|pause| pause.0 > 0);
    // Unconfirmed messages are sent back to back; confirmed ones are awaited.
    words.arrival = Some(match (publisher, pause) {
        (0, None) => Arrival::Burst,
        (0, Some(_)) => Arrival::Constant,
        _ => Arrival::Closed,
    });
    match pause {
        Some(pause) if publisher == 0 => {
            words.rate = Some(Rate { per_second: 1.0 / pause.as_secs_f64(), per_client: true });
        }
        pause => words.think = pause,
    }
    // Every client connects and begins by itself when its group is started.
    words.join = Some(match given.time("rampup-delay") {
        Nanos(0) => Join { clients, every: Nanos::from_secs(1) },
        every => Join { clients: given.count("rampup-size"), every },
    });
    if publisher > 0 && !given.text("timeout").is_empty() {
        words.timeout = Some(given.time("timeout"));
    }
    asked.is_quiet = given.0.get_flag("no-progress");
    send(given.text("constant-payload"), messages, asked)
}

/// Sets the size of the bodies. The tool counts messages in its bodies; here all are as long as its
/// last.
fn send(payload: &str, messages: u64, asked: &mut Asked) -> Result<(), Stop> {
    if let Some(file) = payload.strip_prefix('@') {
        return asked.send_file(&format!("-constant-payload {payload}"), file);
    }
    match payload {
        "" => {
            // A number must have enough digits to count the messages of all clients.
            let longest = format!("this is msg #{messages}!").len() as u64;
            asked.send(BodySource::Template("this is msg #{seq}!".to_owned()), longest);
        }
        text => asked.send(BodySource::Text(text.to_owned()), text.len() as u64),
    }
    Ok(())
}

/// Returns the broker's URL with a scheme of Weighbridge.
fn broker(text: &str) -> String {
    let schemes = [("tcp://", "mqtt://"), ("ssl://", "mqtts://"), ("tls://", "mqtts://")];
    let known = schemes.iter().find_map(|(theirs, ours)| Some((text.strip_prefix(theirs)?, ours)));
    match known {
        Some((rest, ours)) => format!("{ours}{rest}"),
        None if text == "reference" => "mqtt".to_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::asked as read;
    use super::*;
    use weigh_model::units::Bytes;
    use weigh_model::{Topology, Writes};

    fn asked(words: &[&str]) -> Result<Asked, Stop> {
        read(&TOOL, words)
    }

    #[test]
    fn values_stay_as_they_were_typed() {
        for payload in ["ü", "-ü", "-key", "--har", "-5", "-", "a=b"] {
            let next = ["-broker", "tcp://h:1", "-constant-payload", payload, "-retain"];
            let behind = format!("-constant-payload={payload}");
            let behind = ["-broker=tcp://h:1", "--retain=false", &behind];
            for (words, retain) in [(&next[..], "mqtt.retain=true"), (&behind, "mqtt.retain=false")]
            {
                let own = asked(words).unwrap();
                assert_eq!(own.words.body.source, Some(BodySource::Text(payload.to_owned())));
                assert!(own.sets.contains(&retain.to_owned()), "{:?}", own.sets);
            }
        }
    }

    #[test]
    fn flags_stand_behind_one_dash_or_two() {
        let words = ["-broker", "tcp://h:1883", "--num-clients", "60", "-num-messages=167"];
        let asked = asked(&words).unwrap();
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
        assert_eq!(asked(&qos).unwrap().words.arrival, Some(Arrival::Closed));
        let paused = ["-broker", "tcp://h:1", "-pause-between-messages", "100ms", "-retain"];
        let asked = asked(&paused).unwrap();
        let rate = asked.words.rate.unwrap();
        assert_eq!((rate.per_second, rate.per_client), (10.0, true));
        assert!(asked.sets.contains(&"mqtt.retain=true".to_owned()));
    }

    #[test]
    fn what_is_not_done_alike_is_refused_with_what_to_type() {
        let said = |words: &[&str]| asked(words).err().unwrap().to_string();
        let qos = said(&["-broker", "tcp://h:1", "-publisher-qos", "2"]);
        assert!(qos.contains("the same"), "{qos}");
    }

    /// 1,500 clients start in groups of 100 each 500 ms, the last after seven seconds.
    #[test]
    fn clients_start_group_by_group_as_the_tool_starts_them() {
        let join = |words: &[&str]| {
            let words = [&["-broker", "tcp://h:1", "-num-clients", "1500"], words].concat();
            asked(&words).unwrap().words.join.unwrap()
        };
        assert_eq!(join(&[]).to_string(), "100 every 500ms");
        assert_eq!(join(&[]).last_turn(1_500), Nanos::from_secs(7));
        let other = join(&["-rampup-size", "10", "-rampup-delay", "1s"]);
        assert_eq!(other.to_string(), "10 every 1s");
        assert_eq!(join(&["-rampup-delay", "0s"]).last_turn(1_500), Nanos(0));
    }

    /// The two limits of the tool: one for the wait for a confirmation, one for the wait for
    /// messages.
    #[test]
    fn a_timeout_is_of_confirmations() {
        let limit = |words: &[&str]| {
            let words = [&["-broker", "tcp://h:1", "-timeout", "20s"], words].concat();
            asked(&words).unwrap().words.timeout
        };
        assert_eq!(limit(&[]), Some(Nanos::from_secs(60)));
        assert_eq!(limit(&["-global-timeout", "90s"]), Some(Nanos::from_secs(90)));
        let confirmed = ["-publisher-qos", "1", "-subscriber-qos", "1"];
        assert_eq!(limit(&confirmed), Some(Nanos::from_secs(20)));
    }

    #[test]
    fn credentials_stand_apart_from_what_is_recorded() {
        let words = ["-broker", "ssl://h:1", "-username", "u", "-password", "p-secret"];
        let asked = asked(&words).unwrap();
        assert_eq!(asked.user.unwrap().password, "p-secret");
        assert!(!asked.word.contains("secret") && asked.sets.iter().all(|s| !s.contains("secret")));
    }
}
