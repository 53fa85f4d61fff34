//! Names of frames, for diagrams.

use weigh_model::protocol::PacketName;

use super::codec::{FRAME_END, FRAME_OVERHEAD, PROTOCOL_HEADER, method_name};

/// The frame that begins with `head`, or the protocol header.
pub(super) fn name(from_client: bool, head: &[u8]) -> Option<PacketName> {
    if head.starts_with(&PROTOCOL_HEADER) {
        let name = "protocol header 0-9-1".to_owned();
        let length = Some(PROTOCOL_HEADER.len() as u64);
        return Some(PacketName { name, length, subscribes: false });
    }
    let [kind, _, _, length @ ..] = *head.first_chunk::<7>()?;
    let payload_bytes = u32::from_be_bytes(length);
    let length = u64::from(payload_bytes) + FRAME_OVERHEAD as u64;
    let payload = &head[7..];
    // Where the end of the frame is here, it has to be one.
    let end = usize::try_from(length).ok()?.checked_sub(1)?;
    if payload_bytes > LARGEST || head.get(end).is_some_and(|end| *end != FRAME_END) {
        return None;
    }
    let class = |at: usize| Some(u16::from_be_bytes(*payload.get(at..)?.first_chunk::<2>()?));
    let (name, subscribes) = match kind {
        1 => {
            let name = method_name(class(0)?, class(2)?)?;
            (is_sent(from_client, name).then(|| name.to_owned())?, name == "basic.consume")
        }
        2 if class(0)? == BASIC && class(2)? == 0 && payload_bytes >= 14 => {
            ("content header".to_owned(), false)
        }
        // A body looks like any bytes, so its end has to be here.
        3 if head.get(end).is_some() => (format!("content body {payload_bytes}"), false),
        8 if payload_bytes == 0 && head[1..3] == [0, 0] => ("heartbeat".to_owned(), false),
        _ => return None,
    };
    Some(PacketName { name, length: Some(length), subscribes })
}

/// True if this side sends the method.
fn is_sent(from_client: bool, name: &str) -> bool {
    let of_server = [
        "connection.start",
        "connection.secure",
        "connection.tune",
        "connection.blocked",
        "connection.unblocked",
        "basic.return",
        "basic.deliver",
        "basic.get-ok",
        "basic.get-empty",
    ];
    let of_either = [
        "connection.close",
        "channel.close",
        "channel.flow",
        "basic.ack",
        "basic.nack",
        "basic.cancel",
    ];
    let answers_server = ["connection.start-ok", "connection.secure-ok", "connection.tune-ok"];
    let is_answer = name.ends_with("-ok") && !answers_server.contains(&name);
    let by_either =
        of_either.contains(&name) || name.ends_with("close-ok") || name.ends_with("flow-ok");
    by_either || from_client != (of_server.contains(&name) || is_answer)
}

/// No frame is larger: the default of servers is 128 KiB.
const LARGEST: u32 = 1 << 24;
const BASIC: u16 = 60;

#[cfg(test)]
mod tests {
    use super::super::codec::{Header, Method, Short, put_body, put_heartbeat};
    use super::*;

    fn framed(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out);
        out
    }

    #[test]
    fn frames_are_called_by_their_method() {
        let consume = framed(|out| {
            let (queue, consumer_tag) = (Short("q"), Short("t"));
            let arguments = super::super::codec::Table::EMPTY;
            Method::Consume { reserved_1: 0, queue, consumer_tag, bits: 0, arguments }.put(1, out);
        });
        let found = name(true, &consume).unwrap();
        assert_eq!((&*found.name, found.length), ("basic.consume", Some(consume.len() as u64)));
        assert!(found.subscribes);
        assert_eq!(name(false, &consume), None, "clients consume");
        assert_eq!(name(true, &consume[..12]).unwrap().name, "basic.consume", "cut short");
        let ack = framed(|out| Method::Ack { delivery_tag: 1, bits: 0 }.put(1, out));
        assert!(name(true, &ack).is_some() && name(false, &ack).is_some());
        let header = framed(|out| Header { body_bytes: 3, raw: &[0, 0] }.put(1, out));
        assert_eq!(name(false, &header).unwrap().name, "content header");
        let body = framed(|out| put_body(b"abc", 1, 4096, out));
        assert_eq!(name(true, &body).unwrap().name, "content body 3");
        assert_eq!(name(true, &body[..9]), None, "it could be anything");
        assert_eq!(name(true, &framed(put_heartbeat)).unwrap().length, Some(8));
        assert_eq!(name(true, &PROTOCOL_HEADER).unwrap().length, Some(8));
        for head in
            [&b"{\"t\":21}"[..], b"\x01\0\x01\0\0\0\x04\0\x3c\0\x28x", b"\x08\0\x01\0\0\0\0"]
        {
            assert_eq!(name(true, head), None, "{head:?}");
        }
    }
}
