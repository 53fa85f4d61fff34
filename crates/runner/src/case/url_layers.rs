//! Layers of a lane: those that the URL of its server names become settings, and settings that
//! contradict it, or each other, are refused.

use std::collections::BTreeMap;

use weigh_model::protocol::Invalid;
use weigh_model::{Endpoint, Protocol, quic, websocket};
use weigh_protocols::urls;

/// Completes the settings that differ from the defaults; `url` is that of a server that another
/// process started.
///
/// # Errors
/// The setting that contradicts the URL, or that the layers do not have.
pub fn settle(
    protocol: &dyn Protocol,
    url: Option<&Endpoint>,
    given: &mut BTreeMap<String, String>,
) -> Result<(), Invalid> {
    if let Some(url) = url {
        settle_url(protocol, url, given)?;
    }
    quic::settle(protocol, given)
}

fn settle_url(
    protocol: &dyn Protocol,
    url: &Endpoint,
    given: &mut BTreeMap<String, String>,
) -> Result<(), Invalid> {
    if urls::is_quic(url) && protocol.has_setting(quic::ON.key) {
        say(quic::ON.key, "QUIC", url, given)?;
    }
    if urls::is_secure(url) {
        let asked = given.entry("tls".to_owned()).or_insert_with(|| "on".to_owned());
        if asked == "off" {
            let problem = format!("{url} uses TLS");
            return Err(Invalid::new("tls", problem, "leave --tls out, or type another URL"));
        }
    }
    if urls::is_websocket(url) {
        say(websocket::ON.key, "WebSocket", url, given)?;
        if !url.path.is_empty() {
            let path = url.path.clone();
            given.entry(websocket::PATH.key.to_owned()).or_insert(path);
        }
    }
    Ok(())
}

/// Switches a layer on that the URL names.
fn say(
    key: &str,
    layer: &str,
    url: &Endpoint,
    given: &mut BTreeMap<String, String>,
) -> Result<(), Invalid> {
    let asked = given.entry(key.to_owned()).or_insert_with(|| "true".to_owned());
    if asked == "true" {
        return Ok(());
    }
    let fix = format!("leave {key} out, or type another URL");
    Err(Invalid::new(key, format!("{url} uses {layer}"), fix))
}
