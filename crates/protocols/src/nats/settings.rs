//! The keys of the table `nats` in a plan.

use weigh_model::protocol::{Guarantee, Invalid, Setting, SettingKind};
use weigh_model::trial::Settings;
use weigh_model::{Durability, Nanos, tls};

use super::codec::PAYLOAD_BYTES_MAX;

const OWN: &[Setting] = &[
    Setting {
        key: "confirm",
        kind: SettingKind::Choice(&["none", "ok", "flush", "jetstream"]),
        default: "none",
        doc: "What confirms a message: nothing, +OK, a PONG after it, or JetStream's answer.",
    },
    Setting {
        key: "consume",
        kind: SettingKind::Choice(&["auto", "core", "push", "pull"]),
        default: "auto",
        doc: "Consumers: core subscription, or a consumer of JetStream; auto: by confirm.",
    },
    Setting {
        key: "ack",
        kind: SettingKind::Choice(&["explicit", "none"]),
        default: "explicit",
        doc: "Whether consumers of JetStream acknowledge each message.",
    },
    Setting::text(
        "subject",
        "weigh.{trial}.{client}",
        "Subject: {client} or %i is the producer, {trial} or %t the trial.",
    ),
    Setting::text("queue", "", "Queue group of the topology shared; empty: weigh."),
    Setting::text("stream", "weigh-{trial}", "Name of the stream; it is created if needed."),
    Setting {
        key: "storage",
        kind: SettingKind::Choice(&["file", "memory"]),
        default: "file",
        doc: "Where JetStream keeps the stream.",
    },
    Setting::integer(
        "stream_messages_max",
        (1, 1 << 40),
        "1000000",
        "Most messages in the stream; the oldest are discarded.",
    ),
    Setting::flag("message_id", "false", "Send Nats-Msg-Id, by which JetStream finds duplicates."),
    Setting::duration("duplicate_window", "2m", "How long JetStream remembers a Nats-Msg-Id."),
    Setting::integer(
        "max_ack_pending",
        (1, 1_000_000),
        "1000",
        "Most messages that a consumer of JetStream has unacknowledged.",
    ),
    Setting::duration("ack_wait", "30s", "Time after which JetStream delivers again."),
    Setting::integer(
        "pull_batch",
        (1, 100_000),
        "100",
        "Messages that a pull consumer requests in deliver; it asks again at half.",
    ),
    Setting::duration("keep_alive", "2m", "Longest silence before a PING; 0s switches it off."),
    Setting::integer(
        "server_max_payload",
        (64, PAYLOAD_BYTES_MAX),
        "1048576",
        "Reference server: largest payload in bytes.",
    ),
    Setting::integer(
        "server_max_pending",
        (1024, 1 << 32),
        "67108864",
        "Reference server: bytes that wait for a slow consumer before it is disconnected.",
    ),
    Setting::duration("server_ping_interval", "2m", "Reference server: time between its PINGs."),
    Setting::text("server_user", "", "Reference server: required user; empty accepts all clients."),
    Setting::text("server_password", "", "Reference server: password of that user."),
    Setting::text("server_token", "", "Reference server: required token, instead of a user."),
];

/// The keys of NATS, and those of TLS.
pub(super) static SETTINGS: &[Setting] = &tls::with::<{ OWN.len() + tls::KEYS }>(OWN, "");

/// What confirms a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirm {
    Nothing,
    /// `+OK` of a verbose connection.
    Okay,
    /// The PONG of a PING behind it.
    Flush,
    /// The stream's answer.
    JetStream,
}

/// How messages reach a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consume {
    Core,
    Push,
    Pull,
}

pub(super) fn confirm(settings: &Settings) -> Confirm {
    match settings.text("confirm") {
        "ok" => Confirm::Okay,
        "flush" => Confirm::Flush,
        "jetstream" => Confirm::JetStream,
        _ => Confirm::Nothing,
    }
}

/// How messages reach consumers, which `polls` or not.
pub(super) fn consume(settings: &Settings, polls: bool) -> Consume {
    match settings.text("consume") {
        "core" => Consume::Core,
        "push" => Consume::Push,
        "pull" => Consume::Pull,
        _ if polls => Consume::Pull,
        _ if confirm(settings) == Confirm::JetStream => Consume::Push,
        _ => Consume::Core,
    }
}

/// At least once where every part of the way is: the stream confirms, and consumers acknowledge.
pub(super) fn guarantee(settings: &Settings) -> Guarantee {
    let is_consumed = consume(settings, false) != Consume::Core && settings.text("ack") != "none";
    match confirm(settings) {
        Confirm::JetStream if is_consumed => Guarantee::AtLeastOnce,
        _ => Guarantee::AtMostOnce,
    }
}

/// A stream that is kept in memory is lost with the server, whatever it can do.
pub(super) fn durability_limit(settings: &Settings) -> Option<Durability> {
    (settings.text("storage") == "memory").then_some(Durability::Memory)
}

/// Settings of the reference server.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) payload_bytes_max: usize,
    pub(super) pending_bytes_max: usize,
    pub(super) ping_ns: u64,
    pub(super) login: Login,
    /// Clients are to upgrade to TLS after INFO.
    pub(super) is_secure: bool,
}

/// What a client has to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Login {
    Nothing,
    User(String, String),
    Token(String),
}

impl Rules {
    pub(super) fn read(settings: &Settings) -> Result<Rules, Invalid> {
        let text = |key: &str| settings.text(key).to_owned();
        let (user, password, token) =
            (text("server_user"), text("server_password"), text("server_token"));
        let login = match (user.is_empty(), token.is_empty()) {
            (false, false) => {
                return Err(Invalid::new(
                    "nats.server_token",
                    "a token and a user are required",
                    "leave nats.server_user or nats.server_token empty",
                ));
            }
            (true, _) if !password.is_empty() => {
                return Err(Invalid::new(
                    "nats.server_password",
                    "a password without a user",
                    "set nats.server_user too",
                ));
            }
            (false, true) => Login::User(user, password),
            (true, false) => Login::Token(token),
            (true, true) => Login::Nothing,
        };
        let whole = |key, default| settings.integer_or(key, default);
        let ping = settings.duration_or("server_ping_interval", Nanos(PING_NS)).0;
        Ok(Rules {
            payload_bytes_max: whole("server_max_payload", 1 << 20) as usize,
            pending_bytes_max: whole("server_max_pending", 64 << 20) as usize,
            ping_ns: ping,
            login,
            is_secure: tls::is_on(settings),
        })
    }
}

/// `ping_interval` of nats-server.
const PING_NS: u64 = 120_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[(&str, &str)]) -> Settings {
        Settings::new("nats", SETTINGS, given.iter().copied()).unwrap()
    }

    #[test]
    fn the_guarantee_is_that_of_the_weakest_part() {
        for (given, guarantee) in [
            (&[("confirm", "none")][..], Guarantee::AtMostOnce),
            (&[("confirm", "ok")], Guarantee::AtMostOnce),
            (&[("confirm", "flush")], Guarantee::AtMostOnce),
            (&[("confirm", "jetstream")], Guarantee::AtLeastOnce),
            (&[("confirm", "jetstream"), ("consume", "pull")], Guarantee::AtLeastOnce),
            (&[("confirm", "jetstream"), ("consume", "core")], Guarantee::AtMostOnce),
            (&[("confirm", "jetstream"), ("ack", "none")], Guarantee::AtMostOnce),
            (&[("confirm", "none"), ("consume", "push")], Guarantee::AtMostOnce),
        ] {
            assert_eq!(super::guarantee(&of(given)), guarantee, "{given:?}");
        }
    }

    #[test]
    fn what_a_server_may_ask_for_is_one_thing() {
        let error = Rules::read(&of(&[("server_password", "x")])).unwrap_err();
        assert!(error.fix.contains("nats.server_user"), "{error}");
        let error = Rules::read(&of(&[("server_user", "x"), ("server_token", "y")])).unwrap_err();
        assert!(error.fix.contains("nats.server_token"), "{error}");
        let rules = Rules::read(&of(&[("server_token", "y")])).unwrap();
        assert_eq!(rules.login, Login::Token("y".to_owned()));
        let empty = Rules::read(&Settings::default()).unwrap();
        let defaults = SETTINGS.iter().map(|setting| (setting.key, setting.default));
        let full = Settings::new("nats", SETTINGS, defaults).unwrap();
        assert_eq!(format!("{empty:?}"), format!("{:?}", Rules::read(&full).unwrap()));
    }
}
