//! Names of frames, for diagrams.

use weigh_model::protocol::PacketName;

use super::codec::{self, HEAD_BYTES};

/// The frame that begins with `head`.
pub(super) fn name(from_client: bool, head: &[u8]) -> Option<PacketName> {
    let [a, b, c, d, kind, number @ ..] = *head.first_chunk::<HEAD_BYTES>()?;
    let length = u64::from(u32::from_be_bytes([a, b, c, d]));
    let number = u32::from_be_bytes(number);
    let is_answer = kind >= codec::ACKNOWLEDGED;
    let is_whole = length + 4 >= HEAD_BYTES as u64 && length <= FRAME_BYTES_MAX;
    let (_, word) = NAMES.iter().find(|(known, _)| *known == kind)?;
    let number = match number {
        codec::EVERYONE => String::new(),
        number => format!(" {number}"),
    };
    (is_whole && is_answer != from_client).then(|| PacketName {
        name: format!("{word}{number}"),
        length: Some(4 + length),
        subscribes: kind == codec::SUBSCRIBE,
    })
}

const NAMES: [(u8, &str); 10] = [
    (codec::MESSAGE, "MESSAGE"),
    (codec::ASK, "ASK"),
    (codec::ECHO, "ECHO"),
    (codec::HELLO, "HELLO"),
    (codec::SUBSCRIBE, "SUBSCRIBE"),
    (codec::ACKNOWLEDGED, "ACKNOWLEDGED"),
    (codec::ECHOED, "ECHOED"),
    (codec::SUBSCRIBED, "SUBSCRIBED"),
    (codec::DELIVERED, "DELIVERED"),
    (codec::NO_SUBSCRIBER, "NO SUBSCRIBER"),
];

/// The largest that `tcp.frame_bytes_max` allows.
const FRAME_BYTES_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_called_by_their_kind() {
        let mut frame = Vec::new();
        codec::write(&mut frame, codec::ASK, 7, b"hello");
        let found = name(true, &frame).unwrap();
        assert_eq!((found.name.as_str(), found.length), ("ASK 7", Some(14)));
        assert_eq!(name(false, &frame), None, "clients ask");
        codec::write(&mut frame, codec::SUBSCRIBE, codec::EVERYONE, b"");
        let found = name(true, &frame[14..]).unwrap();
        assert_eq!((found.name.as_str(), found.subscribes), ("SUBSCRIBE", true));
        assert_eq!(name(true, b"{\"sensor\": 4}"), None);
        assert_eq!(name(true, &frame[..8]), None);
    }
}
