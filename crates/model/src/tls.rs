//! The keys by which any protocol uses TLS. They are in the table of each protocol, so that one may
//! be measured with TLS and another without, and cells differ by them.

use crate::protocol::{Setting, SettingKind};
use crate::quic;
use crate::settings::Settings;

/// Number of keys.
pub const KEYS: usize = 9;

/// Returns a protocol's own keys and those of TLS; `alpn` is the protocol's name in ALPN (RFC
/// 7301), empty if it has none. `N` is `own.len() + KEYS`.
pub const fn with<const N: usize>(own: &[Setting], alpn: &'static str) -> [Setting; N] {
    let keys = keys(alpn);
    let mut all = [keys[0]; N];
    let mut index = 0;
    while index < N {
        all[index] = if index < own.len() { own[index] } else { keys[index - own.len()] };
        index += 1;
    }
    all
}

/// Number of keys over datagrams.
pub const DATAGRAM_KEYS: usize = 9;

/// Returns a protocol's own keys and those of DTLS. Neither ALPN nor resumption are used there. `N`
/// is `own.len() + DATAGRAM_KEYS`.
pub const fn over_datagrams<const N: usize>(own: &[Setting]) -> [Setting; N] {
    let keys = datagram_keys();
    let mut all = [keys[0]; N];
    let mut index = 0;
    while index < N {
        all[index] = if index < own.len() { own[index] } else { keys[index - own.len()] };
        index += 1;
    }
    all
}

/// Number of keys over streams of QUIC.
pub const STREAM_KEYS: usize = 11;

/// Returns a protocol's own keys and those of QUIC, which is never without TLS 1.3; `alpn` is the
/// protocol's name in ALPN (RFC 7301). Sessions are not resumed. `N` is `own.len() + STREAM_KEYS`.
pub const fn over_streams<const N: usize>(own: &[Setting], alpn: &'static str) -> [Setting; N] {
    let keys = stream_keys(alpn);
    let mut all = [keys[0]; N];
    let mut index = 0;
    while index < N {
        all[index] = if index < own.len() { own[index] } else { keys[index - own.len()] };
        index += 1;
    }
    all
}

/// The key that both ends know, of a protocol over datagrams.
pub const PSK: &str = "tls_psk";

/// The name by which the client calls [`PSK`].
pub const PSK_IDENTITY: &str = "tls_psk_identity";

/// True if these settings name a key that both ends know: then there are no certificates.
pub fn has_psk(settings: &Settings) -> bool {
    !settings.text(PSK).is_empty() || !settings.text(PSK_IDENTITY).is_empty()
}

/// True if these settings ask for TLS.
pub fn is_on(settings: &Settings) -> bool {
    !matches!(settings.text("tls"), "" | "off")
}

/// Keys that hold the name of a file.
pub const FILES: [&str; 3] = ["tls_ca", "tls_cert", "tls_key"];

const fn keys(alpn: &'static str) -> [Setting; KEYS] {
    [
        Setting {
            key: "tls",
            kind: SettingKind::Choice(&["off", "on", "1.2", "1.3"]),
            default: "off",
            doc: "TLS under the protocol: on offers 1.3 and 1.2, a number that version only.",
        },
        flag("tls_resume", "true", "Resume TLS sessions where the server hands out tickets."),
        flag(
            "tls_mutual",
            "false",
            "The reference or managed server requires client \
                                     certificates.",
        ),
        flag("tls_verify", "true", "Refuse certificates that are not valid; false: warn only."),
        text("tls_name", "", "Host name in the server's certificate and in SNI; empty: the URL's."),
        text("tls_alpn", alpn, "Protocols offered by ALPN, with commas; empty offers none."),
        text("tls_ca", "", "PEM file of the other side's authority; empty: made, or system's."),
        text("tls_cert", "", "PEM file of the client's certificate; empty: made, or none."),
        text("tls_key", "", "PEM file of its private key."),
    ]
}

const fn datagram_keys() -> [Setting; DATAGRAM_KEYS] {
    [
        Setting {
            key: "tls",
            kind: SettingKind::Choice(&["off", "on", "1.2", "1.3"]),
            default: "off",
            doc: "DTLS under the protocol: on offers 1.3 and 1.2, a number that version only.",
        },
        flag(
            "tls_mutual",
            "false",
            "The reference or managed server requires client certificates.",
        ),
        flag("tls_verify", "true", "Refuse certificates that are not valid; false: warn only."),
        text("tls_name", "", "Host name in the server's certificate; empty: the URL's."),
        text("tls_ca", "", "PEM file of the other side's authority; empty: made, or system's."),
        text("tls_cert", "", "PEM file of the client's certificate; empty: made, or none."),
        text("tls_key", "", "PEM file of its private key."),
        text(PSK_IDENTITY, "", "Name of the pre-shared key; then there are no certificates."),
        text(PSK, "", "Pre-shared key: text, or hex: and digits. It stays out of the record."),
    ]
}

const fn stream_keys(alpn: &'static str) -> [Setting; STREAM_KEYS] {
    [
        Setting {
            key: "tls",
            kind: SettingKind::Choice(&["on", "1.3"]),
            default: "on",
            doc: "TLS 1.3, a part of QUIC: it cannot be off.",
        },
        quic::CONGESTION,
        quic::DATAGRAM_BYTES,
        quic::SEGMENTATION,
        flag(
            "tls_mutual",
            "false",
            "The reference or managed server requires client certificates.",
        ),
        flag("tls_verify", "true", "Refuse certificates that are not valid; false: warn only."),
        text("tls_name", "", "Host name in the server's certificate and in SNI; empty: the URL's."),
        text("tls_alpn", alpn, "Protocols offered by ALPN, with commas; QUIC demands one."),
        text("tls_ca", "", "PEM file of the other side's authority; empty: made, or system's."),
        text("tls_cert", "", "PEM file of the client's certificate; empty: made, or none."),
        text("tls_key", "", "PEM file of its private key."),
    ]
}

const fn text(key: &'static str, default: &'static str, doc: &'static str) -> Setting {
    Setting { key, kind: SettingKind::Text, default, doc }
}

const fn flag(key: &'static str, default: &'static str, doc: &'static str) -> Setting {
    Setting { key, kind: SettingKind::Flag, default, doc }
}
