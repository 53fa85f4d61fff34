//! PUBACK, PUBREC, PUBREL and PUBCOMP (sections 3.4 to 3.7), which share one form.

use super::cursor::{Cursor, put_header, put_two};
use super::{Fault, Properties, Version, reason};

/// Which of the four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckKind {
    /// The answer at QoS 1.
    Puback,
    /// The first answer at QoS 2.
    Pubrec,
    /// The sender's answer to that.
    Pubrel,
    /// The last word at QoS 2.
    Pubcomp,
}

/// An acknowledgement of some kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ack<'a> {
    /// Which of the four.
    pub kind: AckKind,
    /// The message it is about.
    pub packet_id: u16,
    /// Reason code, always 0 in 3.1.1.
    pub reason: u8,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
}

impl<'a> Ack<'a> {
    /// An acknowledgement without properties.
    pub fn new(kind: AckKind, packet_id: u16, reason: u8) -> Ack<'static> {
        Ack { kind, packet_id, reason, properties: Properties::NONE }
    }

    pub(super) fn read(
        kind: AckKind,
        cursor: &mut Cursor<'a>,
        version: Version,
    ) -> Result<Ack<'a>, Fault> {
        let packet_id = cursor.packet_id()?;
        if version == Version::V311 || cursor.is_empty() {
            return Ok(Ack { kind, packet_id, reason: 0, properties: Properties::NONE });
        }
        let reason = cursor.byte()?;
        let known: &[u8] = match kind {
            AckKind::Puback | AckKind::Pubrec => &reason::PUBACK,
            AckKind::Pubrel | AckKind::Pubcomp => &reason::PUBREL,
        };
        if !known.contains(&reason) {
            return Err(Fault::malformed("unknown reason code for this packet", "2.4"));
        }
        let properties = Properties::read_if_any(cursor, kind.packet_type())?;
        Ok(Ack { kind, packet_id, reason, properties })
    }

    /// Appends the packet in its shortest form.
    #[inline]
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        let flags = if self.kind == AckKind::Pubrel { 0x02 } else { 0 };
        let first = self.kind.packet_type() << 4 | flags;
        if version == Version::V311 || (self.reason == 0 && self.properties.is_empty()) {
            let [high, low] = self.packet_id.to_be_bytes();
            out.extend_from_slice(&[first, 2, high, low]);
            return;
        }
        let properties = match self.properties.is_empty() {
            true => 0,
            false => self.properties.size(version),
        };
        put_header(out, first, 3 + properties);
        put_two(out, self.packet_id);
        out.push(self.reason);
        if !self.properties.is_empty() {
            self.properties.put(version, out);
        }
    }
}

impl AckKind {
    fn packet_type(self) -> u8 {
        match self {
            AckKind::Puback => super::PUBACK,
            AckKind::Pubrec => super::PUBREC,
            AckKind::Pubrel => super::PUBREL,
            AckKind::Pubcomp => super::PUBCOMP,
        }
    }
}
