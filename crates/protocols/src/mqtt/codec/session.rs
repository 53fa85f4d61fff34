//! PINGREQ, PINGRESP, DISCONNECT and AUTH (sections 3.12 to 3.15).

use super::cursor::{Cursor, put_header};
use super::{Fault, Properties, Version, reason};

/// Appends a PINGREQ.
pub fn encode_pingreq(out: &mut Vec<u8>) {
    out.extend_from_slice(&[super::PINGREQ << 4, 0]);
}

/// Appends a PINGRESP.
pub fn encode_pingresp(out: &mut Vec<u8>) {
    out.extend_from_slice(&[super::PINGRESP << 4, 0]);
}

/// The last packet of a connection (section 3.14).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disconnect<'a> {
    /// Reason code, always 0 in 3.1.1.
    pub reason: u8,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
}

impl<'a> Disconnect<'a> {
    /// A DISCONNECT without properties.
    pub fn new(reason: u8) -> Disconnect<'static> {
        Disconnect { reason, properties: Properties::NONE }
    }

    pub(super) fn read(cursor: &mut Cursor<'a>, version: Version) -> Result<Disconnect<'a>, Fault> {
        if version == Version::V311 || cursor.is_empty() {
            return Ok(Disconnect { reason: 0, properties: Properties::NONE });
        }
        let reason = cursor.byte()?;
        if !reason::DISCONNECT.contains(&reason) {
            return Err(Fault::malformed("unknown disconnect reason", "3.14.2.1"));
        }
        let properties = Properties::read_if_any(cursor, super::DISCONNECT)?;
        Ok(Disconnect { reason, properties })
    }

    /// Appends the packet in its shortest form.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        let reason = if version == Version::V311 { 0 } else { self.reason };
        encode_short(super::DISCONNECT << 4, reason, self.properties, version, out);
    }
}

/// Extended authentication (section 3.15).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Auth<'a> {
    /// 0 success, 0x18 continue, 0x19 authenticate again.
    pub reason: u8,
    /// Method and data.
    pub properties: Properties<'a>,
}

impl<'a> Auth<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Auth<'a>, Fault> {
        if cursor.is_empty() {
            return Ok(Auth { reason: 0, properties: Properties::NONE });
        }
        let reason = cursor.byte()?;
        if !reason::AUTH.contains(&reason) {
            return Err(Fault::malformed("unknown reason code in AUTH", "3.15.2.1"));
        }
        Ok(Auth { reason, properties: Properties::read_if_any(cursor, super::AUTH)? })
    }

    /// Appends the packet in its shortest form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode_short(super::AUTH << 4, self.reason, self.properties, Version::V5, out);
    }
}

/// Reason and properties, each left out if it is the default (sections 3.14.2 and 3.15.2).
fn encode_short(
    first: u8,
    reason: u8,
    properties: Properties<'_>,
    version: Version,
    out: &mut Vec<u8>,
) {
    let has_properties = version == Version::V5 && !properties.is_empty();
    match (reason, has_properties) {
        (0, false) => out.extend_from_slice(&[first, 0]),
        (reason, false) => out.extend_from_slice(&[first, 1, reason]),
        (reason, true) => {
            put_header(out, first, 1 + properties.size(version));
            out.push(reason);
            properties.put(version, out);
        }
    }
}
