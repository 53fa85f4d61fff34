//! The keys by which a protocol uses QUIC. They are in the table of the protocol, like those of
//! [`crate::tls`], which QUIC is never without.

use std::collections::BTreeMap;

use crate::protocol::{Invalid, Protocol, Setting, SettingKind};
use crate::settings::Settings;
use crate::websocket;

/// Choice of QUIC under a protocol that is also without. A protocol that is always in QUIC has no
/// such key.
pub const ON: Setting = Setting {
    key: "quic",
    kind: SettingKind::Flag,
    default: "false",
    doc: "QUIC under the protocol: one stream carries all packets, always inside TLS 1.3.",
};

/// The congestion control.
pub const CONGESTION: Setting = Setting {
    key: "congestion",
    kind: SettingKind::Choice(&["cubic", "reno", "bbr"]),
    default: "cubic",
    doc: "Congestion control of QUIC, of the client and of the reference server.",
};

/// The largest datagram, in bytes.
pub const DATAGRAM_BYTES: Setting = Setting {
    key: "datagram_bytes",
    kind: SettingKind::Integer(1_200, 65_000),
    default: "1200",
    doc: "Largest datagram of QUIC that the client and the reference server send; the path must \
          carry it.",
};

/// Who cuts what is sent into datagrams, and joins those that come in.
pub const SEGMENTATION: Setting = Setting {
    key: "segmentation",
    kind: SettingKind::Choice(&["off", KERNEL]),
    default: "off",
    doc: "Segmentation of QUIC, of the client and of the reference server: with kernel, runs of \
          datagrams leave and come in with one call, and the kernel cuts and joins them.",
};

/// The value of [`SEGMENTATION`] with which the kernel cuts and joins.
pub const KERNEL: &str = "kernel";

/// True if the kernel is to cut and join datagrams under these settings.
pub fn is_cut_by_kernel(settings: &Settings) -> bool {
    settings.text(SEGMENTATION.key) == KERNEL
}

/// True if the protocol is over streams of QUIC, and nothing else.
pub fn is_always(protocol: &dyn Protocol) -> bool {
    protocol.has_setting(CONGESTION.key) && !protocol.has_setting(ON.key)
}

/// True if the protocol is inside QUIC under these settings, and so inside TLS 1.3.
pub fn is_on(protocol: &dyn Protocol, settings: &Settings) -> bool {
    is_always(protocol) || settings.flag(ON.key)
}

/// Puts TLS among the settings that differ from the defaults, if the protocol is inside QUIC: it is
/// part of the lane's name, so that it is compared with lanes inside TLS.
///
/// # Errors
/// Settings that QUIC does not have, or that nothing but QUIC has.
pub fn settle(
    protocol: &dyn Protocol,
    given: &mut BTreeMap<String, String>,
) -> Result<(), Invalid> {
    let says = |key: &str| given.get(key).is_some_and(|value| value == "true");
    let place = |key: &str| format!("{}.{key}", protocol.name());
    if !is_always(protocol) && !says(ON.key) {
        let mut own = [CONGESTION.key, DATAGRAM_BYTES.key, SEGMENTATION.key].into_iter();
        return match own.find(|key| given.contains_key(*key)) {
            Some(key) => {
                let fix = format!("leave it out, or add --set {}=true", place(ON.key));
                Err(Invalid::new(place(key), "there is no QUIC", fix))
            }
            None => Ok(()),
        };
    }
    if says(websocket::ON.key) {
        let (problem, fix) = ("QUIC carries no WebSocket", "leave one of the two out");
        return Err(Invalid::new(place(websocket::ON.key), problem, fix));
    }
    if says("tls_resume") {
        let problem = "sessions of QUIC are not resumed";
        return Err(Invalid::new(place("tls_resume"), problem, "leave it out"));
    }
    let asked = given.entry("tls".to_owned()).or_insert_with(|| "on".to_owned());
    if matches!(&**asked, "on" | "1.3") {
        return Ok(());
    }
    let (problem, fix) = ("QUIC is never without TLS 1.3", "leave --tls out, or type --tls on");
    Err(Invalid::new(place("tls"), problem, fix))
}
