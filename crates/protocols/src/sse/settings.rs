//! The keys of the table `sse` in a plan.

use weigh_model::protocol::{Setting, SettingKind};
use weigh_model::tls;

use crate::push_core::slow;
use crate::{fields, statuses};

const OWN: &[Setting] = &[
    Setting::text(
        "path",
        PATH,
        "Path of subscribers and producers, unless the URL has one. In pairs /INDEX is added.",
    ),
    Setting::text("publish_path", "", "Path to which producers POST; empty: that of subscribers."),
    statuses::STATUS,
    Setting::text(
        "content_type",
        "application/json",
        "Content-Type of every POST; empty for none.",
    ),
    fields::HEADERS,
    fields::SECRET_HEADERS,
    Setting::flag("resume", "true", "Send Last-Event-ID when a subscriber connects again."),
    Setting::integer(
        "event_bytes_max",
        (64, 1 << 30),
        "268435456",
        "Largest event that either end accepts.",
    ),
    Setting {
        key: "server_framing",
        kind: SettingKind::Choice(&["chunked", "close"]),
        default: "chunked",
        doc: "Reference server: the answer has chunks, or is delimited by the connection's end.",
    },
    Setting::text("server_event", "", "Reference server: type of every event; empty: message."),
    Setting::integer(
        "server_history",
        (0, 10_000_000),
        "1000",
        "Reference server: newest events it keeps for Last-Event-ID, in 64 MiB; 0 sends no ids.",
    ),
    Setting::duration(
        "server_retry",
        "0s",
        "Reference server: reconnection time that it asks for with retry; 0s asks for none.",
    ),
    Setting::duration(
        "server_keep_alive",
        "15s",
        "Reference server: time between comments to an idle subscriber; 0s sends none.",
    ),
    slow::QUEUE,
    slow::SLOW,
];

/// Default path.
pub(super) const PATH: &str = "/events";

/// The keys of server-sent events, and those of TLS.
pub(super) static SETTINGS: &[Setting] = &tls::with::<{ OWN.len() + tls::KEYS }>(OWN, "http/1.1");
