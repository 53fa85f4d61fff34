//! Names of CoAP messages, for diagrams.

use weigh_model::protocol::PacketName;

use super::codec::{self, number};

/// The message that begins with `head`; it ends with its datagram.
pub(super) fn name(from_client: bool, head: &[u8]) -> Option<PacketName> {
    let message = codec::parse(head).ok()?;
    let (kind, code, id) = (message.kind.name(), message.code, message.id);
    let is_plausible = code.class() == 0 && !code.is_request()
        || (code.is_request() && from_client)
        || (code.is_response() && !from_client);
    let observe = message.options.first(number::OBSERVE);
    let result = match code.name() {
        Some("Empty") => String::new(),
        Some(word) if code.is_request() => format!(" {word}"),
        Some(word) => format!(" {code} {word}"),
        None => format!(" {code}"),
    };
    let can_subscribe = matches!(code, codec::code::GET | codec::code::FETCH);
    let subscribes = can_subscribe && observe.is_some_and(<[u8]>::is_empty);
    let observe = if observe.is_some() { " Observe" } else { "" };
    // What is asked is inside, and not to be seen.
    let oscore = message.options.first(number::OSCORE).map_or("", |_| " OSCORE");
    is_plausible.then(|| PacketName {
        name: format!("{kind}{result}{observe}{oscore} #{id}"),
        length: None,
        subscribes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_called_by_type_and_code() {
        let of = |from_client, head: &[u8]| name(from_client, head).map(|found| found.name);
        let named = |text: &str| Some(text.to_owned());
        assert_eq!(of(true, b"\x40\x02\x7d\x34\xffhi"), named("CON POST #32052"));
        assert_eq!(of(false, b"\x60\x44\x7d\x34"), named("ACK 2.04 Changed #32052"));
        assert_eq!(of(false, b"\x60\x00\x7d\x34"), named("ACK #32052"));
        assert_eq!(of(false, b"\x70\x00\x7d\x34"), named("RST #32052"));
        assert_eq!(of(true, b"\x40\x01\x7d\x34\x60"), named("CON GET Observe #32052"));
        assert!(name(true, b"\x40\x01\x7d\x34\x60").unwrap().subscribes);
        assert_eq!(of(true, b"\x40\x02\x7d\x34\x90\xffhi"), named("CON POST OSCORE #32052"));
        let registration = b"\x40\x05\x7d\x34\x60\x30\xffhi";
        assert_eq!(of(true, registration), named("CON FETCH Observe OSCORE #32052"));
        assert!(name(true, registration).unwrap().subscribes);
        assert_eq!(of(false, b"\x40\x01\x7d\x34"), None);
        assert_eq!(of(true, b"hello, world"), None);
    }
}
