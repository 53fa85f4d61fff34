//! What the metrics of the wire are: their names are made of a direction, a phase and a layer.

use crate::summary::wire_bytes::{LAYERS, PHASES};

/// What the metric `name` is; `None` if it is not one of the wire, or of no direction, phase and
/// layer that is known.
pub(crate) fn definition(name: &str) -> Option<String> {
    let rest = name.strip_prefix("wire.")?;
    if let Some((_, what)) = PLAIN.iter().find(|(known, _)| *known == rest) {
        return Some((*what).to_owned());
    }
    let (place, quantity) = rest.rsplit_once('.').unwrap_or(("", rest));
    let place = place.strip_suffix(".layers").unwrap_or(place);
    let of = match place {
        "" | "layers" => String::new(),
        "sent" => ", from the clients to the target".to_owned(),
        "received" => ", from the target to the clients".to_owned(),
        _ if place.starts_with("hops.") => {
            let seats = place.trim_start_matches("hops.");
            format!(", of the connections of {seats} alone")
        }
        _ => {
            let key = place.strip_prefix("phases.").unwrap_or(place);
            let phase = PHASES.iter().find(|phase| phase.key == key);
            let layer = LAYERS.iter().find(|layer| layer.key == key);
            match (phase, layer) {
                (Some(phase), _) => format!(", of the phase {}", phase.title),
                (_, Some(layer)) => format!(", of the layer {}", layer.title),
                _ => return None,
            }
        }
    };
    let layer = LAYERS.iter().find(|layer| quantity.strip_suffix("_bytes") == Some(layer.key));
    let what = match (quantity, layer) {
        (_, Some(layer)) => format!("Bytes of the layer {}", layer.title),
        ("bytes", _) => "Bytes from Ethernet up".to_owned(),
        ("sent_bytes", _) => "Bytes from Ethernet up, from the clients to the target".to_owned(),
        ("received_bytes", _) => {
            "Bytes from Ethernet up, from the target to the clients".to_owned()
        }
        ("packets", _) => "Packets".to_owned(),
        ("ack_only_packets", _) => "Packets that only acknowledge".to_owned(),
        ("data_packets", _) => "Packets that carry something".to_owned(),
        ("retransmitted_packets", _) => "Packets that carry what was there before".to_owned(),
        ("keep_alive_packets", _) => "Packets that ask whether the peer is there".to_owned(),
        ("packets_per_message", _) => "Packets, divided by messages".to_owned(),
        ("packets_per_session", _) => "Packets, divided by connections".to_owned(),
        ("ack_only_packets_per_message", _) => "Mere acknowledgements of a message".to_owned(),
        ("ack_only_packets_per_session", _) => "Mere acknowledgements of a session".to_owned(),
        ("bytes_per_message", _) => "Bytes from Ethernet up, divided by messages".to_owned(),
        ("bytes_per_session", _) => "Bytes from Ethernet up, divided by connections".to_owned(),
        _ => return None,
    };
    let is_one_way =
        matches!(place, "sent" | "received") || matches!(quantity, "sent_bytes" | "received_bytes");
    let both = if is_one_way { "" } else { ", both directions" };
    Some(format!("{what}{of}{both}, at the clients' interfaces."))
}

const PLAIN: &[(&str, &str)] = &[
    (
        "bytes_per_message",
        "All bytes at the clients' interfaces from Ethernet up, both directions, set-up and \
         tear-down included, divided by messages.",
    ),
    (
        "bytes_per_session",
        "All bytes at the clients' interfaces from Ethernet up, both directions, divided by \
         connections, those of subscribers among them.",
    ),
    ("messages", "Messages handed over while the wire was listened on, warm-up included."),
    ("connections", "Connections seen on the wire."),
    ("header_bytes", "Bytes of Ethernet, IP and transport headers, both directions."),
    ("dropped_packets", "Packets that the kernel dropped before they could be counted."),
    ("retransmitted_packets", "Packets that carry something that was there before."),
    (
        "too_early_packets",
        "Packets that were sent again although the path dropped none: the sender's timer was \
         shorter than the round trip. Absent where the path dropped some.",
    ),
    (
        "radio.bytes",
        "Bytes as the radio of the path would carry them: the capture with the radio's link layer \
         in place of Ethernet headers.",
    ),
    ("radio.link_bytes", "Bytes of the radio's link layer, both directions."),
    ("radio.bytes_per_message", "Bytes as the radio would carry them, divided by messages."),
    ("radio.bytes_per_session", "Bytes as the radio would carry them, divided by connections."),
    ("radio.link.bytes_per_message", "Bytes of the radio's link layer, divided by messages."),
    ("radio.link.bytes_per_session", "Bytes of the radio's link layer, divided by connections."),
    ("keep_alive_packets", "Packets that ask only whether the peer is there."),
    ("ack_only_packets", "Packets that only acknowledge, both directions."),
    (
        "application.bytes_per_message",
        "Bytes of the streams, both directions, divided by messages: bodies and all that the \
         protocol adds.",
    ),
    ("tls.bytes_per_message", "Bytes of TLS, handshakes included, divided by messages."),
    ("tls.bytes_per_session", "Bytes of TLS, handshakes included, divided by connections."),
    ("application.bytes_per_session", "Bytes of the streams, divided by connections."),
    (
        "kernel.sent_packets",
        "Segments that the clients' sockets sent, as the kernel counted them itself (`TCP_INFO`), \
         whatever a capture sees of them.",
    ),
    (
        "kernel.received_packets",
        "Segments that the clients' sockets received, as the kernel counted them itself \
         (`TCP_INFO`), whatever a capture sees of them.",
    ),
    ("kernel.sockets_compared", "Sockets whose own counters were held against the capture."),
    ("kernel.differences", "Figures in which a socket's counters and the capture differ."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_put_into_words() {
        let of = |name: &str| definition(name).unwrap();
        assert_eq!(
            of("wire.phases.set_up.layers.link_bytes"),
            "Bytes of the layer Ethernet headers, of the phase set-up, both directions, at the \
             clients' interfaces."
        );
        assert_eq!(
            of("wire.sent.ack_only_packets"),
            "Packets that only acknowledge, from the clients to the target, at the clients' \
             interfaces."
        );
        assert!(of("wire.transport.bytes_per_message").contains("layer TCP headers"));
        assert!(of("wire.bytes_per_session").contains("divided by connections"));
        assert_eq!(
            of("wire.phases.messages.sent_bytes"),
            "Bytes from Ethernet up, from the clients to the target, of the phase messages, at the \
             clients' interfaces."
        );
        assert!(of("wire.hops.publishers.packets").contains("connections of publishers alone"));
        assert_eq!(definition("wire.phases.none.packets"), None);
        assert_eq!(definition("response_time_ns.p99"), None);
    }
}
