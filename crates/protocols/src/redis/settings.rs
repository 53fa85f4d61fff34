//! The keys of the table `redis` in a plan.

use weigh_model::protocol::{Setting, SettingKind};
use weigh_model::tls;

const OWN: &[Setting] = &[
    Setting {
        key: "command",
        kind: SettingKind::Choice(&["xadd", "publish", "set"]),
        default: "xadd",
        doc: "Command of every message: xadd to a stream, publish to a channel, set of a key.",
    },
    Setting::text(
        "key",
        "",
        "Key or channel; empty: weigh:stream, weigh:channel or weigh:string. In pairs :INDEX is \
         added.",
    ),
    Setting::text("field", "data", "Field of a stream's entry that holds the body."),
    Setting::integer(
        "maxlen",
        (0, 1_000_000_000),
        "100000",
        "Entries that XADD leaves in a stream; 0 means no limit.",
    ),
    Setting::flag(
        "maxlen_exact",
        "false",
        "Trim to exactly maxlen, and not by whole nodes of about 100 entries (~).",
    ),
    Setting {
        key: "read",
        kind: SettingKind::Choice(&["group", "plain"]),
        default: "group",
        doc: "Consumers of a stream: group is XREADGROUP with XACK, plain is XREAD.",
    },
    Setting::integer("count", (1, 1_000_000), "100", "Most entries in one answer to a consumer."),
    Setting::flag("ack", "true", "Acknowledge entries with XACK; false reads with NOACK."),
    Setting {
        key: "resp",
        kind: SettingKind::Choice(&["2", "3"]),
        default: "2",
        doc: "Version of RESP: 3 starts every connection with HELLO 3.",
    },
    Setting::integer("db", (0, 65_535), "0", "Database; SELECT is sent if it is not 0."),
    Setting::integer(
        "bulk_bytes_max",
        (64, 1 << 32),
        "536870912",
        "Largest string and reply that either end accepts.",
    ),
    Setting::text("server_user", "default", "Reference server: user of server_password."),
    Setting::text(
        "server_password",
        "",
        "Reference server: required password; empty accepts all clients.",
    ),
    Setting::integer(
        "server_maxmemory",
        (1 << 16, 1 << 40),
        "1073741824",
        "Reference server: bytes of keys and entries before it answers OOM.",
    ),
    Setting::integer(
        "server_output_buffer",
        (1 << 10, 1 << 40),
        "33554432",
        "Reference server: bytes that wait for a subscriber before it is disconnected.",
    ),
];

/// The keys of Redis, and those of TLS. Redis has no name in ALPN.
pub(super) static SETTINGS: &[Setting] = &tls::with::<{ OWN.len() + tls::KEYS }>(OWN, "");
