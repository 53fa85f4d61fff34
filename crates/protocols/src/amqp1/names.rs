//! Names of frames, for diagrams.

use weigh_model::protocol::PacketName;

use super::codec::{self, AMQP_HEADER, EMPTY_FRAME_BYTES, Frame, FrameKind, SASL_HEADER};

/// The frame that begins with `head`, or a protocol header.
pub(super) fn name(from_client: bool, head: &[u8]) -> Option<PacketName> {
    for (header, name) in [(AMQP_HEADER, "header AMQP 1.0"), (SASL_HEADER, "header SASL")] {
        if head.starts_with(&header) {
            let (name, length) = (name.to_owned(), Some(header.len() as u64));
            return Some(PacketName { name, length, subscribes: false });
        }
    }
    let [a, b, c, d, offset, kind, channel @ ..] = *head.first_chunk::<8>()?;
    let size = u32::from_be_bytes([a, b, c, d]);
    if offset != 2 || size > LARGEST || size < EMPTY_FRAME_BYTES as u32 {
        return None;
    }
    let kind = match kind {
        0 => FrameKind::Amqp,
        1 if channel == [0, 0] => FrameKind::Sasl,
        _ => return None,
    };
    let body = &head[EMPTY_FRAME_BYTES..];
    let frame = Frame { kind, channel: u16::from_be_bytes(channel), body };
    let name = match size == EMPTY_FRAME_BYTES as u32 && kind == FrameKind::Amqp {
        true => "empty frame",
        false => codec::name(&frame)?,
    };
    let of_server = ["sasl-mechanisms", "sasl-challenge", "sasl-outcome"];
    let of_client = ["sasl-init", "sasl-response"];
    if (from_client && of_server.contains(&name)) || (!from_client && of_client.contains(&name)) {
        return None;
    }
    // The role of an attach is behind its name, which may be long.
    let subscribes = name == "attach" && from_client && is_receiver(body);
    Some(PacketName { name: name.to_owned(), length: Some(size.into()), subscribes })
}

fn is_receiver(body: &[u8]) -> bool {
    matches!(
        codec::Performative::read(body),
        Ok((codec::Performative::Attach(attach), _)) if attach.role == codec::Role::Receiver
    )
}

/// No frame is larger: the default of servers is 128 KiB.
const LARGEST: u32 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::super::codec::{Attach, Performative, Role, Sasl, put_empty};
    use super::*;

    #[test]
    fn frames_are_called_by_their_performative() {
        let attach = |role| {
            let mut out = Vec::new();
            let attach = Attach {
                name: "l",
                handle: 0,
                role,
                snd_settle_mode: 0,
                rcv_settle_mode: 0,
                source: None,
                target: None,
                initial_delivery_count: None,
                max_message_size: None,
            };
            Performative::Attach(attach).put(0, &mut out);
            out
        };
        let bytes = attach(Role::Receiver);
        let found = name(true, &bytes).unwrap();
        assert_eq!((&*found.name, found.length), ("attach", Some(bytes.len() as u64)));
        assert!(found.subscribes && !name(true, &attach(Role::Sender)).unwrap().subscribes);
        assert_eq!(name(true, &bytes[..12]).unwrap().name, "attach", "cut short");
        let mut init = Vec::new();
        Sasl::Init { mechanism: "ANONYMOUS", response: None, hostname: None }.put(&mut init);
        assert_eq!(name(true, &init).unwrap().name, "sasl-init");
        assert_eq!(name(false, &init), None, "clients begin");
        let mut empty = Vec::new();
        put_empty(&mut empty);
        assert_eq!(name(false, &empty).unwrap().name, "empty frame");
        assert_eq!(name(false, &SASL_HEADER).unwrap().length, Some(8));
        for head in [&b"{\"t\":21}"[..], b"\0\0\0\x20\x02\0\0\0\0\x53\x75\xa0", b"\0\0\0\x20\x02"] {
            assert_eq!(name(true, head), None, "{head:?}");
        }
    }
}
