//! The keys of the table `coap` in a plan.

use weigh_model::protocol::{Setting, SettingKind};
use weigh_model::tls;

/// All keys.
pub(super) static SETTINGS: &[Setting] =
    &tls::over_datagrams::<{ OWN.len() + tls::DATAGRAM_KEYS }>(OWN);

/// Parameters of RFC 7252, section 4.8, apply to both ends.
const OWN: &[Setting] = &[
    Setting {
        key: "type",
        kind: SettingKind::Choice(&["con", "non"]),
        default: "con",
        doc: "Message type: con is acknowledged and repeated, non is sent once.",
    },
    Setting {
        key: "method",
        kind: SettingKind::Choice(&["POST", "PUT", "GET"]),
        default: "POST",
        doc: "Method of every request; GET carries no body.",
    },
    Setting::text(
        "path",
        "/messages",
        "Path of every request, unless the target's URL has one; the server stores there.",
    ),
    Setting::text(
        "poll_path",
        "/readings",
        "Path for poll: producers send there, consumers GET; in pairs /INDEX is added.",
    ),
    Setting::text(
        "content_format",
        "50",
        "Number of the Content-Format of every body; empty for none.",
    ),
    Setting::integer("token_bytes", (2, 8), "4", "Bytes of the token of every request."),
    Setting {
        key: "no_response",
        kind: SettingKind::Flag,
        default: "false",
        doc: "Whether non asks for no response (RFC 7967); then nothing confirms a message.",
    },
    Setting::integer(
        "block_bytes",
        (16, 1_024),
        "1024",
        "Bytes of a block, a power of two; larger bodies are sent block-wise (RFC 7959).",
    ),
    Setting::integer(
        "nstart",
        (1, 65_535),
        "1",
        "Requests in progress on one connection; the load's window raises it.",
    ),
    Setting::duration(
        "ack_timeout",
        "2s",
        "Shortest wait for an acknowledgement before a repetition.",
    ),
    Setting::text(
        "ack_random_factor",
        "1.5",
        "Factor of the longest first wait, drawn from the seed.",
    ),
    Setting::integer("max_retransmit", (0, 20), "4", "Repetitions of a confirmable message."),
    Setting::duration(
        "max_latency",
        "100s",
        "Longest time in transit; bounds the reuse of message IDs.",
    ),
    Setting {
        key: "response",
        kind: SettingKind::Choice(&["piggybacked", "separate"]),
        default: "piggybacked",
        doc: "Reference server: the response to con comes in the acknowledgement or after it.",
    },
    Setting::integer(
        "notify_queue",
        (1, 1_000_000),
        "1",
        "Reference server: newest states that wait while an observer acknowledges.",
    ),
    Setting::integer(
        "readings",
        (1, 10_000_000),
        "100000",
        "Newest readings the reference server keeps in each list for poll, in 256 MiB.",
    ),
    Setting::integer(
        "body_bytes_max",
        (1, 1 << 30),
        "33554432",
        "Reference server: largest body it takes; beyond it answers 4.13.",
    ),
];
