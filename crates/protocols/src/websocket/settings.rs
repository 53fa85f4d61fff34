//! The keys of the table `websocket` in a plan.

use weigh_model::protocol::{Setting, SettingKind};
use weigh_model::tls;
use weigh_model::trial::Settings;

use crate::fields;
use crate::push_core::slow;

const OWN: &[Setting] = &[
    Setting {
        key: "confirm",
        kind: SettingKind::Choice(&["reply", "none", "echo", "pong"]),
        default: "reply",
        doc: "What confirms a message: a message in answer, nothing, its echo, or a pong after it.",
    },
    Setting {
        key: "kind",
        kind: SettingKind::Choice(&["binary", "text"]),
        default: "binary",
        doc: "Kind of messages; text must be UTF-8.",
    },
    Setting::text(
        "path",
        PATH,
        "Path of producers, unless the URL has one; {confirm} is that setting. In pairs /INDEX is \
         added.",
    ),
    Setting::text(
        "subscribe_path",
        "",
        "Path of subscribers; empty: that of the URL, else /subscribe. In pairs /INDEX is added.",
    ),
    Setting::text("subprotocol", "", "Subprotocol that the server must take; empty offers none."),
    fields::HEADERS,
    fields::SECRET_HEADERS,
    Setting::integer(
        "fragment_bytes",
        (0, 1 << 30),
        "0",
        "Largest payload of one frame that clients send; 0 sends each message in one frame.",
    ),
    Setting::integer(
        "message_bytes_max",
        (64, 1 << 30),
        "268435456",
        "Largest message that either end accepts; beyond it closes with 1009.",
    ),
    Setting::duration("keep_alive", "20s", "Longest silence before a ping; 0s switches it off."),
    slow::QUEUE,
    slow::SLOW,
];

/// Default path of producers.
pub(super) const PATH: &str = "/messages/{confirm}";

/// Path of subscribers where neither setting nor URL has one.
pub(super) const SUBSCRIBE_PATH: &str = "/subscribe";

/// The keys of WebSocket, and those of TLS.
pub(super) static SETTINGS: &[Setting] = &tls::with::<{ OWN.len() + tls::KEYS }>(OWN, "http/1.1");

/// What confirms a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirm {
    /// The next message of the server.
    Reply,
    Nothing,
    /// The message itself.
    Echo,
    /// The pong of a ping behind it.
    Pong,
}

impl Confirm {
    pub(super) const ALL: [Confirm; 4] =
        [Confirm::Reply, Confirm::Nothing, Confirm::Echo, Confirm::Pong];

    /// The word in a plan, and in a path.
    pub(super) fn word(self) -> &'static str {
        match self {
            Confirm::Reply => "reply",
            Confirm::Nothing => "none",
            Confirm::Echo => "echo",
            Confirm::Pong => "pong",
        }
    }
}

/// The choice of these settings.
pub(super) fn confirm(settings: &Settings) -> Confirm {
    let word = settings.text("confirm");
    Confirm::ALL.into_iter().find(|own| own.word() == word).unwrap_or(Confirm::Reply)
}
