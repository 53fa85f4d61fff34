//! PUBLISH (section 3.3), which carries the messages.

use super::cursor::{Cursor, put_header, put_two, varint_size};
use super::{Fault, Id, Properties, Qos, Version};
use crate::mqtt::topic;

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Publish<'a> {
    /// True if this is not the first attempt (section 3.3.1.1).
    pub dup: bool,
    /// Its guarantee on this hop.
    pub qos: Qos,
    /// To the server: keep it. To a client: it was kept (section 3.3.1.3).
    pub retain: bool,
    /// Topic; empty only with a topic alias.
    pub topic: &'a str,
    /// Present above QoS 0; 0 otherwise.
    pub packet_id: u16,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
    /// Body.
    pub body: &'a [u8],
}

impl<'a> Publish<'a> {
    pub(super) fn read(
        first: u8,
        cursor: &mut Cursor<'a>,
        version: Version,
    ) -> Result<Publish<'a>, Fault> {
        let qos = Qos::from_bits(first >> 1 & 3)
            .ok_or(Fault::malformed("both QoS bits are set", "3.3.1.2"))?;
        let dup = first & DUP != 0;
        if dup && qos == Qos::AtMostOnce {
            return Err(Fault::malformed("QoS 0 cannot be a duplicate", "3.3.1.1"));
        }
        let topic = cursor.text()?;
        let is_right = topic::is_name(topic) || (topic.is_empty() && version == Version::V5);
        if !is_right {
            return Err(Fault {
                reason: 0x90,
                what: "the topic is empty or has wildcards",
                section: "3.3.2.1",
            });
        }
        let packet_id = match qos {
            Qos::AtMostOnce => 0,
            _ => cursor.packet_id()?,
        };
        let properties = match version {
            Version::V311 => Properties::NONE,
            Version::V5 => Properties::read(cursor, super::PUBLISH)?,
        };
        if topic.is_empty() && !properties.has(Id::TopicAlias) {
            return Err(Fault::protocol("neither topic nor topic alias", "3.3.2.1"));
        }
        let body = cursor.remainder();
        let retain = first & RETAIN != 0;
        Ok(Publish { dup, qos, retain, topic, packet_id, properties, body })
    }

    /// Bytes of the whole packet.
    pub fn size(&self, version: Version) -> usize {
        let remaining = self.remaining(version);
        1 + varint_size(remaining) + remaining
    }

    /// Bytes behind the fixed header.
    pub fn remaining(&self, version: Version) -> usize {
        let packet_id = if self.qos == Qos::AtMostOnce { 0 } else { 2 };
        2 + self.topic.len() + packet_id + self.properties.size(version) + self.body.len()
    }

    /// Appends the packet.
    #[inline]
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        self.encode_head(version, 0, out);
        out.extend_from_slice(self.body);
    }

    /// Appends everything before the body, which is `more` bytes longer than the one that is here.
    #[inline]
    pub fn encode_head(&self, version: Version, more: usize, out: &mut Vec<u8>) {
        let first = super::PUBLISH << 4
            | if self.dup { DUP } else { 0 }
            | (self.qos as u8) << 1
            | if self.retain { RETAIN } else { 0 };
        put_header(out, first, self.remaining(version) + more);
        put_two(out, self.topic.len() as u16);
        out.extend_from_slice(self.topic.as_bytes());
        if self.qos != Qos::AtMostOnce {
            put_two(out, self.packet_id);
        }
        self.properties.put(version, out);
    }
}

/// Bytes between the fixed header and the body of the PUBLISH that begins with `first`; `None`
/// while they are not all there.
pub(super) fn head_bytes(first: u8, input: &[u8], version: Version) -> Option<usize> {
    let (topic_bytes, _) = input.split_first_chunk::<2>()?;
    let mut bytes = 2 + usize::from(u16::from_be_bytes(*topic_bytes));
    if first >> 1 & 3 != 0 {
        bytes += 2;
    }
    if version == Version::V5 {
        let rest = input.get(bytes..)?;
        let last = rest.iter().take(4).position(|byte| byte & 0x80 == 0)?;
        let places = rest[..=last].iter().enumerate();
        let length: usize =
            places.map(|(place, byte)| usize::from(byte & 0x7F) << (7 * place)).sum();
        bytes += last + 1 + length;
    }
    (input.len() >= bytes).then_some(bytes)
}

const RETAIN: u8 = 0x01;
const DUP: u8 = 0x08;
