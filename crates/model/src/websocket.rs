//! The keys by which a protocol uses WebSocket. They are in the table of the protocol, like those
//! of [`crate::tls`].

use crate::protocol::{Setting, SettingKind};
use crate::settings::Settings;

/// Choice of WebSocket between the protocol and TLS or TCP.
pub const ON: Setting = Setting {
    key: "websocket",
    kind: SettingKind::Flag,
    default: "false",
    doc: "WebSocket under the protocol, and above TLS if that is on.",
};

/// The path of the request.
pub const PATH: Setting = Setting {
    key: "websocket_path",
    kind: SettingKind::Text,
    default: "/mqtt",
    doc: "Path of the WebSocket upgrade; default: that of the URL.",
};

/// True if these settings ask for WebSocket.
pub fn is_on(settings: &Settings) -> bool {
    settings.flag(ON.key)
}
