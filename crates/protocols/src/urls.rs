//! Schemes of URLs: protocol, port, and layers.

use weigh_model::nearest::nearest;
use weigh_model::protocol::Scheme;
use weigh_model::{Endpoint, Protocol};

use crate::PROTOCOLS;

/// Reads a URL of one of the protocols, with the scheme's own port where it has none.
///
/// # Errors
/// If it is not a URL, no protocol has its scheme, or it lacks a port that the scheme does not
/// have.
pub fn endpoint(url: &str) -> Result<Endpoint, String> {
    read(url).map(|(_, endpoint)| endpoint)
}

/// The same with its protocol.
///
/// # Errors
/// Those of [`endpoint`].
pub fn read(url: &str) -> Result<(&'static dyn Protocol, Endpoint), String> {
    let endpoint = Endpoint::parse(url)?;
    let (protocol, scheme) = find(&endpoint.scheme).ok_or_else(|| unknown(&endpoint))?;
    Ok((protocol, endpoint.with_port(scheme.port)?))
}

/// The protocol with this scheme, and what the scheme says.
pub fn find(name: &str) -> Option<(&'static dyn Protocol, Scheme)> {
    PROTOCOLS.iter().find_map(|protocol| {
        let scheme = protocol.schemes().iter().find(|scheme| scheme.name == name)?;
        Some((*protocol, *scheme))
    })
}

/// True if the scheme says TLS.
pub fn is_secure(endpoint: &Endpoint) -> bool {
    find(&endpoint.scheme).is_some_and(|(_, scheme)| scheme.is_secure)
}

/// True if the scheme says QUIC.
pub fn is_quic(endpoint: &Endpoint) -> bool {
    find(&endpoint.scheme).is_some_and(|(_, scheme)| scheme.is_quic)
}

/// True if the scheme says WebSocket.
pub fn is_websocket(endpoint: &Endpoint) -> bool {
    find(&endpoint.scheme).is_some_and(|(_, scheme)| scheme.is_websocket)
}

fn unknown(endpoint: &Endpoint) -> String {
    if let Some((_, why)) = NOT_SPOKEN.iter().find(|(scheme, _)| *scheme == endpoint.scheme) {
        return format!("{endpoint}: {why}");
    }
    // The name of a protocol is mostly a scheme, too, and else says which is meant.
    let named = PROTOCOLS.iter().find(|protocol| protocol.name() == endpoint.scheme);
    let of_name = named.and_then(|protocol| protocol.schemes().first()).map(|own| own.name);
    let names = PROTOCOLS.iter().flat_map(|protocol| protocol.schemes()).map(|own| own.name);
    if let Some(name) = of_name.or_else(|| nearest(&endpoint.scheme, names)) {
        return format!(
            "{endpoint}: unknown scheme {:?}: did you mean {name}://?",
            endpoint.scheme
        );
    }
    let listed = |says: fn(&Scheme) -> bool| {
        let all = PROTOCOLS.iter().flat_map(|protocol| protocol.schemes());
        let named = all.filter(|own| says(own)).map(|own| format!("{}://", own.name));
        let mut named: Vec<String> = named.collect();
        let last = named.pop().unwrap_or_default();
        if named.is_empty() { last } else { format!("{} or {last}", named.join(", ")) }
    };
    format!(
        "{endpoint}: unknown scheme {:?}: type {}; for TLS {}; for MQTT over WebSocket {}; for \
         QUIC {}",
        endpoint.scheme,
        listed(|own| !own.is_secure && !own.is_websocket),
        listed(|own| own.is_secure && !own.is_websocket && !own.is_quic),
        listed(|own| own.is_websocket),
        listed(|own| own.is_quic),
    )
}

/// Schemes that users may expect, and what to do instead.
const NOT_SPOKEN: [(&str, &str); 4] = [
    ("coaps+tcp", "CoAP over TLS (RFC 8323) is not supported: type a coaps:// URL"),
    ("coap+tcp", "CoAP over TCP (RFC 8323) is not supported: type a coap:// URL"),
    ("mqtt+quic", "MQTT over QUIC has another scheme here: type a mqtt-quic:// URL"),
    ("quic", "the protocol inside QUIC is missing: type a mqtt-quic:// or h3:// URL"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_say_port_and_layers() {
        for (url, port, layers, protocol) in [
            ("mqtt://h", 1883, (false, false), "mqtt"),
            ("mqtts://h", 8883, (true, false), "mqtt"),
            ("ws://h/mqtt", 80, (false, true), "mqtt"),
            ("wss://h", 443, (true, true), "mqtt"),
            ("mqtt-quic://h", 14_567, (true, false), "mqtt"),
            ("h3://h", 443, (true, false), "http3"),
            ("https://h", 443, (true, false), "http1"),
            ("tls+tcp://h:7", 7, (true, false), "tcp"),
            ("coap://h", 5683, (false, false), "coap"),
            ("coaps://h", 5684, (true, false), "coap"),
        ] {
            let own = endpoint(url).unwrap();
            assert_eq!((own.port, (is_secure(&own), is_websocket(&own))), (port, layers), "{url}");
            let (found, scheme) = find(&own.scheme).unwrap();
            assert_eq!(found.name(), protocol);
            assert_eq!(found.scheme_in(&scheme), scheme.name);
        }
        assert!(endpoint("tls+tcp://h").unwrap_err().contains("no port"));
        let text = endpoint("coaps+tcp://h").unwrap_err();
        assert!(text.contains("not supported: type a coaps:// URL"), "{text}");
        for (slip, meant) in [
            ("htp", "http"),
            ("mqqt", "mqtt"),
            ("htps", "https"),
            ("kafak", "kafka"),
            ("http3", "h3"),
        ] {
            let text = endpoint(&format!("{slip}://h:1")).unwrap_err();
            let expected = format!("unknown scheme {slip:?}: did you mean {meant}://?");
            assert!(text.ends_with(&expected), "{text}");
        }
        let text = endpoint("ftp://h").unwrap_err();
        assert!(text.contains("unknown scheme") && text.contains("ws:// or wss://"), "{text}");
    }
}
