//! The keys by which a protocol is put inside WebSocket. They stand in the table of the protocol,
//! as those of [`crate::tls`] do.

use crate::protocol::{Setting, SettingKind};
use crate::settings::Settings;

/// Whether there is WebSocket between the protocol and TLS or TCP.
pub const ON: Setting = Setting {
    key: "websocket",
    kind: SettingKind::Flag,
    default: "false",
    doc: "WebSocket below the protocol, and above TLS if that is on.",
};

/// Which path is asked for.
pub const PATH: Setting = Setting {
    key: "websocket_path",
    kind: SettingKind::Text,
    default: "/mqtt",
    doc: "Path of the WebSocket upgrade; that of a URL where it has one.",
};

/// True if these settings ask for WebSocket.
pub fn is_on(settings: &Settings) -> bool {
    settings.flag(ON.key)
}
