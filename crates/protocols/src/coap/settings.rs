//! The keys of the table `coap` in a plan.

use weigh_model::protocol::{Setting, SettingKind};
use weigh_model::trial::Settings;
use weigh_model::{oscore, tls};

/// All keys.
pub(super) static SETTINGS: &[Setting] =
    &tls::over_datagrams::<{ OWN.len() + tls::DATAGRAM_KEYS }>(OWN);

/// The first key of OSCORE that is set, of those that do nothing without it.
pub(super) fn oscore_given(settings: &Settings) -> Option<&'static str> {
    let mut of_oscore = OWN.iter().filter(|own| own.key.starts_with("oscore_"));
    let is_given = |own: &&Setting| {
        let text = settings.text(own.key);
        !text.is_empty() && text != own.default
    };
    of_oscore.find(is_given).map(|own| own.key)
}

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
    Setting {
        key: oscore::ON,
        kind: SettingKind::Choice(&["off", "on"]),
        default: "off",
        doc: "OSCORE (RFC 8613): requests and responses are protected end to end.",
    },
    Setting::text(
        oscore::SECRET,
        "",
        "Master secret: text, or hex: and digits; empty: the public one of RFC 8613, C.1.",
    ),
    Setting::text(
        "oscore_salt",
        "hex:9e7ca92223786340",
        "Master salt: text, or hex: and digits; empty for none.",
    ),
    Setting::text(
        "oscore_id_context",
        "",
        "ID context: text, or hex: and digits. Every request carries it; empty for none.",
    ),
    Setting::text(
        "oscore_sender_id",
        "",
        "ID of the first connection: text, or hex: and digits; the others count up.",
    ),
    Setting::integer(
        oscore::FIRST_ID,
        (0, 0xff_ffff),
        "0",
        "Without oscore_sender_id: number of the first ID of 3 bytes; each trial draws its own.",
    ),
    Setting::text(
        "oscore_recipient_id",
        "",
        "ID of the server towards the first connection; the others count up.",
    ),
    Setting::integer(
        "oscore_sequence",
        (0, 1 << 39),
        "0",
        "First sequence number of every connection, above all that the server has seen.",
    ),
    Setting::integer(
        "oscore_window",
        (1, 65_536),
        "32",
        "Numbers that the replay windows of server and observers remember.",
    ),
];
