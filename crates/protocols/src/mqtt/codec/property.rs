//! The properties of MQTT 5 (section 2.2.2). A section of properties is checked once while its
//! packet is decoded, and then stays what it is on the wire: reading a property walks the bytes,
//! forwarding one copies them.

use super::cursor::{Cursor, put_binary, put_two, put_varint, varint_size};
use super::{Fault, Version};
use crate::mqtt::topic;

/// Which property (table 2-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are those of the standard's table 2-4")]
pub enum Id {
    PayloadFormatIndicator = 0x01,
    MessageExpiryInterval = 0x02,
    ContentType = 0x03,
    ResponseTopic = 0x08,
    CorrelationData = 0x09,
    SubscriptionIdentifier = 0x0B,
    SessionExpiryInterval = 0x11,
    AssignedClientIdentifier = 0x12,
    ServerKeepAlive = 0x13,
    AuthenticationMethod = 0x15,
    AuthenticationData = 0x16,
    RequestProblemInformation = 0x17,
    WillDelayInterval = 0x18,
    RequestResponseInformation = 0x19,
    ResponseInformation = 0x1A,
    ServerReference = 0x1C,
    ReasonString = 0x1F,
    ReceiveMaximum = 0x21,
    TopicAliasMaximum = 0x22,
    TopicAlias = 0x23,
    MaximumQos = 0x24,
    RetainAvailable = 0x25,
    UserProperty = 0x26,
    MaximumPacketSize = 0x27,
    WildcardSubscriptionAvailable = 0x28,
    SubscriptionIdentifierAvailable = 0x29,
    SharedSubscriptionAvailable = 0x2A,
}

/// The value of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number of any width.
    Number(u32),
    /// A text.
    Text(&'a str),
    /// Binary data.
    Binary(&'a [u8]),
    /// A name and a value.
    Pair(&'a str, &'a str),
}

/// The properties of a packet, checked, without the length before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties<'a> {
    raw: &'a [u8],
}

impl<'a> Properties<'a> {
    /// No properties.
    pub const NONE: Properties<'static> = Properties { raw: &[] };

    /// Reads and checks the section of packet type `packet` (0 for a will).
    pub(super) fn read(cursor: &mut Cursor<'a>, packet: u8) -> Result<Properties<'a>, Fault> {
        let length = cursor.varint()?;
        let raw = cursor.take(length as usize)?;
        check(raw, packet)?;
        Ok(Properties { raw })
    }

    /// Reads properties where a packet may end before the section (MQTT 5 leaves it out if empty).
    pub(super) fn read_if_any(
        cursor: &mut Cursor<'a>,
        packet: u8,
    ) -> Result<Properties<'a>, Fault> {
        if cursor.is_empty() { Ok(Properties::NONE) } else { Properties::read(cursor, packet) }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// The section as it stands on the wire, without its length.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// The number that `id` carries, whatever its width.
    pub fn number(&self, id: Id) -> Option<u32> {
        self.iter().find_map(|(found, value)| match value {
            Value::Number(number) if found == id => Some(number),
            _ => None,
        })
    }

    /// The text that `id` carries.
    pub fn text(&self, id: Id) -> Option<&'a str> {
        self.iter().find_map(|(found, value)| match value {
            Value::Text(text) if found == id => Some(text),
            _ => None,
        })
    }

    /// True if `id` is among them.
    pub fn has(&self, id: Id) -> bool {
        self.iter().any(|(found, _)| found == id)
    }

    /// All of them in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Id, Value<'a>)> + use<'a> {
        self.raw_items().map(|(id, value, _)| (id, value))
    }

    /// All of them with their bytes, identifier included.
    pub fn raw_items(&self) -> impl Iterator<Item = (Id, Value<'a>, &'a [u8])> + use<'a> {
        let mut cursor = Cursor::new(self.raw);
        let mut rest = self.raw;
        std::iter::from_fn(move || {
            let (rule, value) = read_one(&mut cursor).ok()?;
            let mut left = cursor;
            let (item, after) = rest.split_at(rest.len() - left.remainder().len());
            rest = after;
            Some((rule.id, value, item))
        })
    }

    /// Bytes the section takes with its length; none at all in 3.1.1.
    pub(super) fn size(&self, version: Version) -> usize {
        match version {
            Version::V311 => 0,
            Version::V5 => varint_size(self.raw.len()) + self.raw.len(),
        }
    }

    pub(super) fn put(&self, version: Version, out: &mut Vec<u8>) {
        if version == Version::V5 {
            put_varint(out, self.raw.len());
            out.extend_from_slice(self.raw);
        }
    }
}

/// Properties being written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    bytes: Vec<u8>,
}

impl Section {
    /// The properties written so far.
    pub fn properties(&self) -> Properties<'_> {
        Properties { raw: &self.bytes }
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Adds a number in the width that `id` has. Does nothing if `id` carries no number.
    pub fn number(&mut self, id: Id, value: u32) -> &mut Section {
        let kind = rule(id as u8).map(|rule| rule.kind);
        match kind {
            Some(Kind::Flag) => self.bytes.extend([id as u8, value as u8]),
            Some(Kind::Two | Kind::TwoNotZero) => {
                self.bytes.push(id as u8);
                put_two(&mut self.bytes, value as u16);
            }
            Some(Kind::Four | Kind::FourNotZero) => {
                self.bytes.push(id as u8);
                self.bytes.extend_from_slice(&value.to_be_bytes());
            }
            Some(Kind::Varint) => {
                self.bytes.push(id as u8);
                put_varint(&mut self.bytes, value as usize);
            }
            _ => {}
        }
        self
    }

    /// Adds a text. `id` must carry one.
    pub fn text(&mut self, id: Id, text: &str) -> &mut Section {
        self.binary(id, text.as_bytes())
    }

    /// Adds binary data. `id` must carry some.
    pub fn binary(&mut self, id: Id, bytes: &[u8]) -> &mut Section {
        self.bytes.push(id as u8);
        put_binary(&mut self.bytes, bytes);
        self
    }

    /// Adds a user property.
    pub fn pair(&mut self, name: &str, value: &str) -> &mut Section {
        self.bytes.push(Id::UserProperty as u8);
        put_binary(&mut self.bytes, name.as_bytes());
        put_binary(&mut self.bytes, value.as_bytes());
        self
    }

    /// Adds properties that already stand as bytes.
    pub fn raw(&mut self, raw: &[u8]) -> &mut Section {
        self.bytes.extend_from_slice(raw);
        self
    }
}

/// Checks a whole section: known properties only, each allowed in this packet, with a right
/// value, and once (section 2.2.2.2).
fn check(raw: &[u8], packet: u8) -> Result<(), Fault> {
    let mut cursor = Cursor::new(raw);
    let mut seen = 0u64;
    while !cursor.is_empty() {
        let (rule, _) = read_one(&mut cursor)?;
        if rule.packets & (1 << packet) == 0 {
            return Err(Fault::malformed("a property does not belong to this packet", "2.2.2.2"));
        }
        let bit = 1u64 << rule.id as u8;
        let may_repeat = match rule.id {
            Id::UserProperty => true,
            Id::SubscriptionIdentifier => packet == super::PUBLISH,
            _ => false,
        };
        if seen & bit != 0 && !may_repeat {
            return Err(Fault::protocol("a property occurs twice", "2.2.2.2"));
        }
        seen |= bit;
    }
    let has = |id: Id| seen & (1u64 << id as u8) != 0;
    if has(Id::AuthenticationData) && !has(Id::AuthenticationMethod) {
        return Err(Fault::protocol("authentication data without a method", "3.1.2.11.10"));
    }
    Ok(())
}

fn read_one<'a>(cursor: &mut Cursor<'a>) -> Result<(&'static Rule, Value<'a>), Fault> {
    // The identifier is a variable byte integer, but all that exist fit one byte.
    let rule = u8::try_from(cursor.varint()?)
        .ok()
        .and_then(rule)
        .ok_or(Fault::malformed("unknown property", "2.2.2.2"))?;
    let number = |value: u32, is_right: bool| match is_right {
        true => Ok(Value::Number(value)),
        false => Err(Fault::protocol("a property has an invalid value", rule.section)),
    };
    let value = match rule.kind {
        Kind::Flag => {
            let byte = cursor.byte()?;
            number(u32::from(byte), byte <= 1)?
        }
        Kind::Two => number(u32::from(cursor.two()?), true)?,
        Kind::TwoNotZero => {
            let two = cursor.two()?;
            number(u32::from(two), two != 0)?
        }
        Kind::Four => number(cursor.four()?, true)?,
        Kind::FourNotZero => {
            let four = cursor.four()?;
            number(four, four != 0)?
        }
        Kind::Varint => {
            let value = cursor.varint()?;
            number(value, value != 0)?
        }
        Kind::Text => Value::Text(cursor.text()?),
        Kind::Topic => {
            let text = cursor.text()?;
            if !topic::is_name(text) {
                return Err(Fault::protocol("a response topic has wildcards", rule.section));
            }
            Value::Text(text)
        }
        Kind::Binary => Value::Binary(cursor.binary()?),
        Kind::Pair => Value::Pair(cursor.text()?, cursor.text()?),
    };
    Ok((rule, value))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Flag,
    Two,
    TwoNotZero,
    Four,
    FourNotZero,
    Varint,
    Text,
    Topic,
    Binary,
    Pair,
}

/// One row of table 2-4: the packets are bits by packet type, bit 0 stands for a will.
struct Rule {
    id: Id,
    kind: Kind,
    packets: u16,
    section: &'static str,
}

fn rule(id: u8) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id as u8 == id)
}

const fn row(id: Id, kind: Kind, packets: u16, section: &'static str) -> Rule {
    Rule { id, kind, packets, section }
}

const WILL: u16 = 1;
const CONNECT: u16 = 1 << super::CONNECT;
const CONNACK: u16 = 1 << super::CONNACK;
const PUBLISH: u16 = 1 << super::PUBLISH;
const SUBSCRIBE: u16 = 1 << super::SUBSCRIBE;
const DISCONNECT: u16 = 1 << super::DISCONNECT;
const AUTH: u16 = 1 << super::AUTH;
const ACKS: u16 =
    1 << super::PUBACK | 1 << super::PUBREC | 1 << super::PUBREL | 1 << super::PUBCOMP;
const ANSWERS: u16 = CONNACK | ACKS | 1 << super::SUBACK | 1 << super::UNSUBACK | DISCONNECT | AUTH;
const ALL: u16 = WILL | CONNECT | PUBLISH | SUBSCRIBE | 1 << super::UNSUBSCRIBE | ANSWERS;

/// Ordered by how often each is looked for.
static RULES: [Rule; 27] = [
    row(Id::TopicAlias, Kind::TwoNotZero, PUBLISH, "3.3.2.3.4"),
    row(Id::UserProperty, Kind::Pair, ALL, "3.3.2.3.7"),
    row(Id::SubscriptionIdentifier, Kind::Varint, PUBLISH | SUBSCRIBE, "3.8.2.1.2"),
    row(Id::MessageExpiryInterval, Kind::Four, PUBLISH | WILL, "3.3.2.3.3"),
    row(Id::PayloadFormatIndicator, Kind::Flag, PUBLISH | WILL, "3.3.2.3.2"),
    row(Id::ContentType, Kind::Text, PUBLISH | WILL, "3.3.2.3.9"),
    row(Id::ResponseTopic, Kind::Topic, PUBLISH | WILL, "3.3.2.3.5"),
    row(Id::CorrelationData, Kind::Binary, PUBLISH | WILL, "3.3.2.3.6"),
    row(Id::SessionExpiryInterval, Kind::Four, CONNECT | CONNACK | DISCONNECT, "3.1.2.11.2"),
    row(Id::AssignedClientIdentifier, Kind::Text, CONNACK, "3.2.2.3.7"),
    row(Id::ServerKeepAlive, Kind::Two, CONNACK, "3.2.2.3.14"),
    row(Id::AuthenticationMethod, Kind::Text, CONNECT | CONNACK | AUTH, "3.1.2.11.9"),
    row(Id::AuthenticationData, Kind::Binary, CONNECT | CONNACK | AUTH, "3.1.2.11.10"),
    row(Id::RequestProblemInformation, Kind::Flag, CONNECT, "3.1.2.11.7"),
    row(Id::WillDelayInterval, Kind::Four, WILL, "3.1.3.2.2"),
    row(Id::RequestResponseInformation, Kind::Flag, CONNECT, "3.1.2.11.6"),
    row(Id::ResponseInformation, Kind::Text, CONNACK, "3.2.2.3.15"),
    row(Id::ServerReference, Kind::Text, CONNACK | DISCONNECT, "3.2.2.3.16"),
    row(Id::ReasonString, Kind::Text, ANSWERS, "3.2.2.3.9"),
    row(Id::ReceiveMaximum, Kind::TwoNotZero, CONNECT | CONNACK, "3.1.2.11.3"),
    row(Id::TopicAliasMaximum, Kind::Two, CONNECT | CONNACK, "3.1.2.11.5"),
    row(Id::MaximumQos, Kind::Flag, CONNACK, "3.2.2.3.4"),
    row(Id::RetainAvailable, Kind::Flag, CONNACK, "3.2.2.3.5"),
    row(Id::MaximumPacketSize, Kind::FourNotZero, CONNECT | CONNACK, "3.1.2.11.4"),
    row(Id::WildcardSubscriptionAvailable, Kind::Flag, CONNACK, "3.2.2.3.11"),
    row(Id::SubscriptionIdentifierAvailable, Kind::Flag, CONNACK, "3.2.2.3.12"),
    row(Id::SharedSubscriptionAvailable, Kind::Flag, CONNACK, "3.2.2.3.13"),
];
