//! SUBSCRIBE, SUBACK, UNSUBSCRIBE and UNSUBACK (sections 3.8 to 3.11). Lists stay bytes, checked
//! once, and are walked when they are needed.

use super::cursor::{Cursor, put_binary, put_header, put_two};
use super::{Fault, Properties, Qos, Version, reason};

/// A client asks for messages (section 3.8).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subscribe<'a> {
    /// Answered by a SUBACK with the same.
    pub packet_id: u16,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
    /// Filters with options, as they stand on the wire; see [`Filter::put`].
    pub raw_filters: &'a [u8],
}

/// One filter of a SUBSCRIBE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter<'a> {
    /// The filter, perhaps with wildcards or `$share/GROUP/`.
    pub filter: &'a str,
    /// How it wants its messages.
    pub options: Options,
}

/// Subscription options (section 3.8.3.1); all but the QoS are MQTT 5 only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Highest QoS wanted.
    pub qos: Qos,
    /// Not what this client itself publishes.
    pub no_local: bool,
    /// Keep the retain flag as it was published.
    pub retain_as_published: bool,
    /// Retained messages: 0 send, 1 send if the subscription is new, 2 do not send.
    pub retain_handling: u8,
}

impl Options {
    /// Plain options, as 3.1.1 has them.
    pub fn plain(qos: Qos) -> Options {
        Options { qos, no_local: false, retain_as_published: false, retain_handling: 0 }
    }

    fn from_bits(bits: u8, version: Version) -> Result<Options, Fault> {
        let reserved = match version {
            Version::V311 => 0xFC,
            Version::V5 => 0xC0,
        };
        if bits & reserved != 0 {
            return Err(Fault::malformed("a reserved subscription option is set", "3.8.3.1"));
        }
        let qos = Qos::from_bits(bits & 3)
            .ok_or(Fault::malformed("a subscription asks for QoS 3", "3.8.3.1"))?;
        let retain_handling = bits >> 4 & 3;
        if retain_handling == 3 {
            return Err(Fault::protocol("retain handling is 3", "3.8.3.1"));
        }
        let (no_local, retain_as_published) = (bits & 4 != 0, bits & 8 != 0);
        Ok(Options { qos, no_local, retain_as_published, retain_handling })
    }

    fn bits(self) -> u8 {
        self.qos as u8
            | u8::from(self.no_local) << 2
            | u8::from(self.retain_as_published) << 3
            | self.retain_handling << 4
    }
}

impl<'a> Filter<'a> {
    /// Appends the filter to a list that becomes [`Subscribe::raw_filters`].
    pub fn put(&self, list: &mut Vec<u8>) {
        put_binary(list, self.filter.as_bytes());
        list.push(self.options.bits());
    }

    fn read(cursor: &mut Cursor<'a>, version: Version) -> Result<Filter<'a>, Fault> {
        let filter = cursor.text()?;
        if filter.is_empty() {
            return Err(Fault::malformed("a topic filter is empty", "4.7.3"));
        }
        Ok(Filter { filter, options: Options::from_bits(cursor.byte()?, version)? })
    }
}

impl<'a> Subscribe<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>, version: Version) -> Result<Subscribe<'a>, Fault> {
        let packet_id = cursor.packet_id()?;
        let properties = read_properties(cursor, version, super::SUBSCRIBE)?;
        let raw_filters = cursor.remainder();
        let mut list = Cursor::new(raw_filters);
        if list.is_empty() {
            return Err(Fault::protocol("a SUBSCRIBE without filters", "3.8.3"));
        }
        while !list.is_empty() {
            Filter::read(&mut list, version)?;
        }
        Ok(Subscribe { packet_id, properties, raw_filters })
    }

    /// The filters in their order.
    pub fn filters(&self) -> impl Iterator<Item = Filter<'a>> + use<'a> {
        let mut list = Cursor::new(self.raw_filters);
        // The list was checked against its own version, of whose options MQTT 5's are the most.
        std::iter::from_fn(move || Filter::read(&mut list, Version::V5).ok())
    }

    /// Appends the packet.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        let remaining = 2 + self.properties.size(version) + self.raw_filters.len();
        put_header(out, super::SUBSCRIBE << 4 | 0x02, remaining);
        put_two(out, self.packet_id);
        self.properties.put(version, out);
        out.extend_from_slice(self.raw_filters);
    }
}

/// The server's answer to a SUBSCRIBE (section 3.9).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Suback<'a> {
    /// That of the SUBSCRIBE.
    pub packet_id: u16,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
    /// One per filter: the QoS granted, or 0x80 and above.
    pub codes: &'a [u8],
}

impl<'a> Suback<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>, version: Version) -> Result<Suback<'a>, Fault> {
        let packet_id = cursor.packet_id()?;
        let properties = read_properties(cursor, version, super::SUBACK)?;
        let codes = cursor.remainder();
        let known: &[u8] = match version {
            Version::V311 => &[0, 1, 2, 0x80],
            Version::V5 => &reason::SUBACK,
        };
        if codes.is_empty() || !codes.iter().all(|code| known.contains(code)) {
            return Err(Fault::malformed("a SUBACK without a known code per filter", "3.9.3"));
        }
        Ok(Suback { packet_id, properties, codes })
    }

    /// Appends the packet.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        put_header(out, super::SUBACK << 4, 2 + self.properties.size(version) + self.codes.len());
        put_two(out, self.packet_id);
        self.properties.put(version, out);
        out.extend_from_slice(self.codes);
    }
}

/// A client asks for no more messages (section 3.10).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unsubscribe<'a> {
    /// Answered by an UNSUBACK with the same.
    pub packet_id: u16,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
    /// Filters as they stand on the wire; see [`Unsubscribe::put`].
    pub raw_filters: &'a [u8],
}

impl<'a> Unsubscribe<'a> {
    pub(super) fn read(
        cursor: &mut Cursor<'a>,
        version: Version,
    ) -> Result<Unsubscribe<'a>, Fault> {
        let packet_id = cursor.packet_id()?;
        let properties = read_properties(cursor, version, super::UNSUBSCRIBE)?;
        let raw_filters = cursor.remainder();
        let mut list = Cursor::new(raw_filters);
        if list.is_empty() {
            return Err(Fault::protocol("an UNSUBSCRIBE without filters", "3.10.3"));
        }
        while !list.is_empty() {
            if list.text()?.is_empty() {
                return Err(Fault::malformed("a topic filter is empty", "4.7.3"));
            }
        }
        Ok(Unsubscribe { packet_id, properties, raw_filters })
    }

    /// Appends `filter` to a list that becomes [`Unsubscribe::raw_filters`].
    pub fn put(filter: &str, list: &mut Vec<u8>) {
        put_binary(list, filter.as_bytes());
    }

    /// The filters in their order.
    pub fn filters(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut list = Cursor::new(self.raw_filters);
        std::iter::from_fn(move || list.text().ok())
    }

    /// Appends the packet.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        let remaining = 2 + self.properties.size(version) + self.raw_filters.len();
        put_header(out, super::UNSUBSCRIBE << 4 | 0x02, remaining);
        put_two(out, self.packet_id);
        self.properties.put(version, out);
        out.extend_from_slice(self.raw_filters);
    }
}

/// The server's answer to an UNSUBSCRIBE (section 3.11).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unsuback<'a> {
    /// That of the UNSUBSCRIBE.
    pub packet_id: u16,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
    /// One per filter in MQTT 5, none in 3.1.1.
    pub codes: &'a [u8],
}

impl<'a> Unsuback<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>, version: Version) -> Result<Unsuback<'a>, Fault> {
        let packet_id = cursor.packet_id()?;
        if version == Version::V311 {
            return Ok(Unsuback { packet_id, properties: Properties::NONE, codes: &[] });
        }
        let properties = Properties::read(cursor, super::UNSUBACK)?;
        let codes = cursor.remainder();
        if codes.is_empty() || !codes.iter().all(|code| reason::UNSUBACK.contains(code)) {
            return Err(Fault::malformed("an UNSUBACK without a known code per filter", "3.11.3"));
        }
        Ok(Unsuback { packet_id, properties, codes })
    }

    /// Appends the packet; the codes are left out in 3.1.1.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        let codes = if version == Version::V311 { &[] } else { self.codes };
        let remaining = 2 + self.properties.size(version) + codes.len();
        put_header(out, super::UNSUBACK << 4, remaining);
        put_two(out, self.packet_id);
        self.properties.put(version, out);
        out.extend_from_slice(codes);
    }
}

fn read_properties<'a>(
    cursor: &mut Cursor<'a>,
    version: Version,
    packet: u8,
) -> Result<Properties<'a>, Fault> {
    match version {
        Version::V311 => Ok(Properties::NONE),
        Version::V5 => Properties::read(cursor, packet),
    }
}
