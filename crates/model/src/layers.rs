//! Layers under a protocol, as its settings choose them.

use crate::protocol::{Protocol, Scheme};
use crate::settings::Settings;
use crate::{quic, tls, websocket};

/// The scheme of URLs with these layers: `wss`.
pub fn scheme(protocol: &dyn Protocol, settings: &Settings) -> &'static str {
    let like = Scheme {
        is_secure: tls::is_on(settings),
        is_websocket: websocket::is_on(settings),
        is_quic: quic::is_on(protocol, settings),
        ..Scheme::plain("", 0)
    };
    protocol.scheme_in(&like)
}
