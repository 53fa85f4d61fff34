//! Names of MQTT packets, for diagrams.

use weigh_model::protocol::PacketName;

use super::codec::{Kind, kind_of};

/// The packet that begins with `head`.
pub(super) fn name(from_client: bool, head: &[u8]) -> Option<PacketName> {
    let (kind, remaining, at) = kind_of(head)?;
    let body = head.get(at..)?;
    let body = &body[..body.len().min(remaining)];
    let is_plausible = match kind {
        Kind::Connect => from_client && body.starts_with(b"\0\x04MQTT"),
        Kind::Connack => !from_client && (2..).contains(&remaining),
        Kind::Publish => number(body, 0).is_some_and(|topic| usize::from(topic) + 2 <= remaining),
        Kind::Puback | Kind::Pubrec | Kind::Pubrel | Kind::Pubcomp => remaining >= 2,
        Kind::Subscribe | Kind::Unsubscribe => from_client && remaining >= 5,
        Kind::Suback | Kind::Unsuback => !from_client && remaining >= 2,
        Kind::Pingreq => from_client && remaining == 0,
        Kind::Pingresp => !from_client && remaining == 0,
        Kind::Disconnect | Kind::Auth => true,
    };
    let text = match kind {
        Kind::Publish => publish(head[0], body)?,
        Kind::Connect => format!("CONNECT{}", version(body)),
        _ => kind.word() + &id(kind, body),
    };
    is_plausible.then(|| PacketName {
        name: text,
        length: Some((at + remaining) as u64),
        subscribes: kind == Kind::Subscribe,
    })
}

/// Flags, and the packet identifier behind the topic (MQTT 5.0, sections 3.3.1 and 3.3.2).
fn publish(first: u8, body: &[u8]) -> Option<String> {
    let qos = (first >> 1) & 3;
    let again = if first & 8 == 0 { "" } else { " DUP" };
    let topic = usize::from(number(body, 0)?);
    match (qos, number(body, 2 + topic)) {
        (0, _) => Some("PUBLISH QoS 0".to_owned()),
        (1 | 2, Some(id)) => Some(format!("PUBLISH QoS {qos} #{id}{again}")),
        (1 | 2, None) => Some(format!("PUBLISH QoS {qos}{again}")),
        _ => None,
    }
}

/// The level behind the protocol's name (section 3.1.2.2).
fn version(body: &[u8]) -> &'static str {
    match body.get(6) {
        Some(4) => " 3.1.1",
        Some(5) => " 5",
        _ => "",
    }
}

/// The packet identifier where one leads the variable header (section 2.2.1).
fn id(kind: Kind, body: &[u8]) -> String {
    let has_id = !matches!(
        kind,
        Kind::Connack | Kind::Pingreq | Kind::Pingresp | Kind::Disconnect | Kind::Auth
    );
    let id = number(body, 0).filter(|_| has_id);
    id.map_or_else(String::new, |id| format!(" #{id}"))
}

fn number(body: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*body.get(at)?, *body.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_called_as_the_standard_calls_them() {
        let of = |from_client, head: &[u8]| {
            name(from_client, head).map(|found| (found.name, found.length.unwrap()))
        };
        let named = |text: &str, length| Some((text.to_owned(), length));
        assert_eq!(of(true, b"\x10\x10\0\x04MQTT\x05\x02\0\x3c"), named("CONNECT 5", 18));
        assert_eq!(of(false, &[0x20, 2, 0, 0]), named("CONNACK", 4));
        assert_eq!(of(true, b"\x30\x07\0\x01thello"), named("PUBLISH QoS 0", 9));
        assert_eq!(of(false, b"\x3a\xac\x02\0\x01t\0\x07"), named("PUBLISH QoS 1 #7 DUP", 303));
        assert_eq!(of(true, b"\x34\x20\0\x09tele"), named("PUBLISH QoS 2", 34));
        assert_eq!(of(false, &[0x40, 2, 1, 0]), named("PUBACK #256", 4));
        assert_eq!(of(true, &[0x62, 2, 0, 9]), named("PUBREL #9", 4));
        assert!(name(true, b"\x82\x06\0\x01\0\x01#\0").unwrap().subscribes);
        assert_eq!(of(true, &[0xC0, 0]), named("PINGREQ", 2));
        assert_eq!(of(true, &[0xE0, 0]), named("DISCONNECT", 2));
    }

    /// In the middle of a body a name would be a guess.
    #[test]
    fn what_is_no_packet_has_no_name() {
        for (from_client, head) in [
            (true, &b"{\"sensor\":"[..]),
            (true, b"4.25,0.5"),
            (true, b"\x20\x02\0\0"),
            (false, b"\x10\x10\0\x04MQTT\x05"),
            (true, b"\x10\x10\0\x04HTTP\x05"),
            (true, b"\x36\x07\0\x01thello"),
            (true, b"\x41\x02\0\x01"),
            (true, b"\x30\x04\0\x09abcd"),
            (true, b""),
            (true, b"\x30"),
        ] {
            assert_eq!(name(from_client, head), None, "{head:?}");
        }
    }
}
