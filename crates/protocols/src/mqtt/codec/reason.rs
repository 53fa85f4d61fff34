//! Reason codes (section 2.4): which packet may carry which, and what they mean.

/// A reason code of MQTT 5 in words.
pub fn words(code: u8) -> &'static str {
    TABLE.iter().find(|(known, _)| *known == code).map_or("unknown reason", |(_, words)| words)
}

/// The code of a CONNACK in words, in the version that sent it.
pub fn connack_words(code: u8, version: super::Version) -> &'static str {
    match (version, code) {
        (super::Version::V5, code) => words(code),
        (_, 0) => "accepted",
        (_, 1) => "unacceptable protocol version",
        (_, 2) => "client identifier rejected",
        (_, 3) => "server unavailable",
        (_, 4) => "bad user name or password",
        (_, 5) => "not authorized",
        _ => "unknown return code",
    }
}

pub(super) const CONNACK: [u8; 22] = [
    0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95, 0x97,
    0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F,
];
pub(super) const PUBACK: [u8; 9] = [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99];
pub(super) const PUBREL: [u8; 2] = [0x00, 0x92];
pub(super) const SUBACK: [u8; 12] =
    [0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2];
pub(super) const UNSUBACK: [u8; 7] = [0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91];
pub(super) const DISCONNECT: [u8; 29] = [
    0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x90, 0x93, 0x94, 0x95,
    0x96, 0x97, 0x98, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1, 0xA2,
];
pub(super) const AUTH: [u8; 3] = [0x00, 0x18, 0x19];

const TABLE: [(u8, &str); 43] = [
    (0x00, "success"),
    (0x01, "granted QoS 1"),
    (0x02, "granted QoS 2"),
    (0x04, "disconnect with will message"),
    (0x10, "no matching subscribers"),
    (0x11, "no subscription existed"),
    (0x18, "continue authentication"),
    (0x19, "re-authenticate"),
    (0x80, "unspecified error"),
    (0x81, "malformed packet"),
    (0x82, "protocol error"),
    (0x83, "implementation specific error"),
    (0x84, "unsupported protocol version"),
    (0x85, "client identifier not valid"),
    (0x86, "bad user name or password"),
    (0x87, "not authorized"),
    (0x88, "server unavailable"),
    (0x89, "server busy"),
    (0x8A, "banned"),
    (0x8B, "server shutting down"),
    (0x8C, "bad authentication method"),
    (0x8D, "keep alive timeout"),
    (0x8E, "session taken over"),
    (0x8F, "topic filter invalid"),
    (0x90, "topic name invalid"),
    (0x91, "packet identifier in use"),
    (0x92, "packet identifier not found"),
    (0x93, "receive maximum exceeded"),
    (0x94, "topic alias invalid"),
    (0x95, "packet too large"),
    (0x96, "message rate too high"),
    (0x97, "quota exceeded"),
    (0x98, "administrative action"),
    (0x99, "payload format invalid"),
    (0x9A, "retain not supported"),
    (0x9B, "QoS not supported"),
    (0x9C, "use another server"),
    (0x9D, "server moved"),
    (0x9E, "shared subscriptions not supported"),
    (0x9F, "connection rate exceeded"),
    (0xA0, "maximum connect time"),
    (0xA1, "subscription identifiers not supported"),
    (0xA2, "wildcard subscriptions not supported"),
];
