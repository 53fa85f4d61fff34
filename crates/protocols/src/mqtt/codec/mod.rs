//! MQTT 3.1.1 and 5 packets as bytes: decoding borrows from the input, encoding appends to a
//! vector, and neither knows of sockets or time. Section numbers are those of the OASIS
//! standard MQTT 5.0 (7 March 2019); where 3.1.1 (29 October 2014) differs it is named.

mod acknowledge;
mod connect;
mod cursor;
mod property;
mod publish;
mod reason;
mod session;
mod subscribe;
mod terms;

pub use acknowledge::{Ack, AckKind};
pub use connect::{Connack, Connect, Will};
pub use cursor::varint_size;
pub use property::{Id, Properties, Section, Value};
pub use publish::Publish;
pub use reason::{connack_words, words};
pub use session::{Auth, Disconnect, encode_pingreq, encode_pingresp};
pub use subscribe::{Filter, Options, Suback, Subscribe, Unsuback, Unsubscribe};
pub use terms::{Fault, Qos, Version};

use cursor::Cursor;
use terms::{
    AUTH, CONNACK, CONNECT, DISCONNECT, PINGREQ, PINGRESP, PUBACK, PUBCOMP, PUBLISH, PUBREC,
    PUBREL, SUBACK, SUBSCRIBE, UNSUBACK, UNSUBSCRIBE,
};

/// Limits of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest whole packet, fixed header included, in bytes.
    pub packet_bytes_max: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { packet_bytes_max: PACKET_BYTES_MAX }
    }
}

/// A control packet that borrows from the bytes it was decoded from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Packet<'a> {
    /// A client asks for a session.
    Connect(Connect<'a>),
    /// The server grants or refuses it.
    Connack(Connack<'a>),
    /// A message.
    Publish(Publish<'a>),
    /// PUBACK, PUBREC, PUBREL or PUBCOMP.
    Ack(Ack<'a>),
    /// A client asks for messages.
    Subscribe(Subscribe<'a>),
    /// The server's answer, one code per filter.
    Suback(Suback<'a>),
    /// A client asks for no more messages.
    Unsubscribe(Unsubscribe<'a>),
    /// The server's answer.
    Unsuback(Unsuback<'a>),
    /// A client shows that it is there.
    Pingreq,
    /// So does the server.
    Pingresp,
    /// The last packet of a connection.
    Disconnect(Disconnect<'a>),
    /// Extended authentication, MQTT 5 only.
    Auth(Auth<'a>),
}

impl Packet<'_> {
    /// Appends the packet. Texts and binary fields must be at most 65,535 bytes long.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        match self {
            Packet::Connect(packet) => packet.encode(out),
            Packet::Connack(packet) => packet.encode(version, out),
            Packet::Publish(packet) => packet.encode(version, out),
            Packet::Ack(packet) => packet.encode(version, out),
            Packet::Subscribe(packet) => packet.encode(version, out),
            Packet::Suback(packet) => packet.encode(version, out),
            Packet::Unsubscribe(packet) => packet.encode(version, out),
            Packet::Unsuback(packet) => packet.encode(version, out),
            Packet::Pingreq => encode_pingreq(out),
            Packet::Pingresp => encode_pingresp(out),
            Packet::Disconnect(packet) => packet.encode(version, out),
            Packet::Auth(packet) => packet.encode(out),
        }
    }
}

/// Takes one packet off the front of `input`: the packet and its number of bytes, or `None`
/// if more bytes are needed. `version` is what the connection speaks; a CONNECT brings its own.
/// Errors visible in the first bytes are reported before the rest has arrived.
///
/// # Errors
/// The fault of a malformed or forbidden packet.
pub fn decode<'a>(
    input: &'a [u8],
    version: Version,
    limits: &Limits,
) -> Result<Option<(Packet<'a>, usize)>, Fault> {
    let Some(&first) = input.first() else { return Ok(None) };
    check_first(first, version)?;
    let Some((remaining, at)) = remaining_length(input, version)? else { return Ok(None) };
    let size = at + remaining;
    check_size(size, limits)?;
    let Some(body) = input.get(at..size) else { return Ok(None) };
    let mut cursor = Cursor::new(body);
    let packet = match first >> 4 {
        CONNECT => Packet::Connect(Connect::read(&mut cursor)?),
        CONNACK => Packet::Connack(Connack::read(&mut cursor, version)?),
        PUBLISH => Packet::Publish(Publish::read(first, &mut cursor, version)?),
        PUBACK => Packet::Ack(Ack::read(AckKind::Puback, &mut cursor, version)?),
        PUBREC => Packet::Ack(Ack::read(AckKind::Pubrec, &mut cursor, version)?),
        PUBREL => Packet::Ack(Ack::read(AckKind::Pubrel, &mut cursor, version)?),
        PUBCOMP => Packet::Ack(Ack::read(AckKind::Pubcomp, &mut cursor, version)?),
        SUBSCRIBE => Packet::Subscribe(Subscribe::read(&mut cursor, version)?),
        SUBACK => Packet::Suback(Suback::read(&mut cursor, version)?),
        UNSUBSCRIBE => Packet::Unsubscribe(Unsubscribe::read(&mut cursor, version)?),
        UNSUBACK => Packet::Unsuback(Unsuback::read(&mut cursor, version)?),
        PINGREQ => Packet::Pingreq,
        PINGRESP => Packet::Pingresp,
        DISCONNECT => Packet::Disconnect(Disconnect::read(&mut cursor, version)?),
        _ => Packet::Auth(Auth::read(&mut cursor)?),
    };
    if !cursor.is_empty() {
        return Err(Fault::malformed("there are bytes after the last field", "2.1.4"));
    }
    Ok(Some((packet, size)))
}

fn check_size(size: usize, limits: &Limits) -> Result<(), Fault> {
    if size <= limits.packet_bytes_max as usize {
        return Ok(());
    }
    Err(Fault {
        reason: 0x95,
        what: "the packet is larger than the announced maximum",
        section: "3.1.2.11.4",
    })
}

/// The PUBLISH at the front of `input` without its body, once all of it but the body is there: the
/// packet, the bytes before the body, and those of the body. `None` for other packets too.
///
/// # Errors
/// The fault of a malformed or forbidden packet.
pub fn decode_head<'a>(
    input: &'a [u8],
    version: Version,
    limits: &Limits,
) -> Result<Option<(Publish<'a>, usize, usize)>, Fault> {
    let Some(&first) = input.first() else { return Ok(None) };
    if first >> 4 != PUBLISH {
        return Ok(None);
    }
    let Some((remaining, at)) = remaining_length(input, version)? else { return Ok(None) };
    check_size(at + remaining, limits)?;
    let here = &input[at..input.len().min(at + remaining)];
    let Some(head) = publish::head_bytes(first, here, version) else { return Ok(None) };
    let publish = Publish::read(first, &mut Cursor::new(&here[..head]), version)?;
    Ok(Some((publish, at + head, remaining - head)))
}

/// The type of the packet that begins with `input`, how many bytes follow its fixed header, and
/// where they begin; `None` where no packet begins so, in neither version.
pub(super) fn kind_of(input: &[u8]) -> Option<(Kind, usize, usize)> {
    let first = *input.first()?;
    check_first(first, Version::V5).ok()?;
    let (remaining, at) = remaining_length(input, Version::V311).ok()??;
    let (_, kind) = KINDS.iter().find(|(known, _)| *known == first >> 4)?;
    Some((*kind, remaining, at))
}

/// The types of packets (section 2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Connect,
    Connack,
    Publish,
    Puback,
    Pubrec,
    Pubrel,
    Pubcomp,
    Subscribe,
    Suback,
    Unsubscribe,
    Unsuback,
    Pingreq,
    Pingresp,
    Disconnect,
    Auth,
}

impl Kind {
    /// The name of section 2.1.2.
    pub(super) fn word(self) -> String {
        format!("{self:?}").to_uppercase()
    }
}

/// Packet type and flags (sections 2.1.2 and 2.1.3).
fn check_first(first: u8, version: Version) -> Result<(), Fault> {
    let flags = first & 0x0F;
    let is_right = match first >> 4 {
        0 => return Err(Fault::malformed("packet type 0 is reserved", "2.1.2")),
        PUBLISH => true,
        PUBREL | SUBSCRIBE | UNSUBSCRIBE => flags == 0x02,
        AUTH if version == Version::V311 => {
            return Err(Fault::malformed("packet type 15 is reserved in 3.1.1", "2.1.2"));
        }
        _ => flags == 0,
    };
    match is_right {
        true => Ok(()),
        false => Err(Fault::malformed("the flags do not fit the packet type", "2.1.3")),
    }
}

/// The remaining length and where the variable header starts (sections 2.1.4 and 1.5.5).
fn remaining_length(input: &[u8], version: Version) -> Result<Option<(usize, usize)>, Fault> {
    let mut value = 0;
    for place in 0..4 {
        let Some(&byte) = input.get(1 + place) else { return Ok(None) };
        value |= usize::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            if byte == 0 && place > 0 && version == Version::V5 {
                return Err(Fault::malformed("a length is written with too many bytes", "1.5.5"));
            }
            return Ok(Some((value, 2 + place)));
        }
    }
    Err(Fault::malformed("the remaining length has more than four bytes", "1.5.5"))
}

/// Largest packet there can be: five bytes of fixed header and 268,435,455 behind them
/// (section 2.1.4).
pub const PACKET_BYTES_MAX: u32 = 5 + REMAINING_MAX;

/// Largest remaining length (section 1.5.5).
pub const REMAINING_MAX: u32 = 268_435_455;

const KINDS: [(u8, Kind); 15] = [
    (CONNECT, Kind::Connect),
    (CONNACK, Kind::Connack),
    (PUBLISH, Kind::Publish),
    (PUBACK, Kind::Puback),
    (PUBREC, Kind::Pubrec),
    (PUBREL, Kind::Pubrel),
    (PUBCOMP, Kind::Pubcomp),
    (SUBSCRIBE, Kind::Subscribe),
    (SUBACK, Kind::Suback),
    (UNSUBSCRIBE, Kind::Unsubscribe),
    (UNSUBACK, Kind::Unsuback),
    (PINGREQ, Kind::Pingreq),
    (PINGRESP, Kind::Pingresp),
    (DISCONNECT, Kind::Disconnect),
    (AUTH, Kind::Auth),
];
