//! A message of any type with places that are filled in for each message. It is made of a
//! definition and a text elsewhere, since protocols read no files; here it becomes bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::codec::{put_varint, varint_bytes};
use crate::name_pattern;

/// Parts of a message in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageTemplate(pub Vec<Part>);

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The same bytes in all messages.
    Bytes(#[serde(serialize_with = "write_bytes", deserialize_with = "read_bytes")] Vec<u8>),
    /// The body that the load composes, with its mark.
    Body,
    /// A number in decimal digits.
    Digits(Number),
    /// A number in a form of Protocol Buffers.
    Number(Number, Form),
    /// A length as a varint, and the parts that have it.
    Sized(Vec<Part>),
}

/// A number that belongs to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Number {
    /// Index of its producer.
    Client,
    /// Its number at its producer.
    Sequence,
}

/// A number on the wire (Protocol Buffers, "Encoding"). A number of more bits than its field has is
/// cut to its lowest bits, so that it is never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A varint of that many bits.
    Varint(u32),
    /// A varint in ZigZag form, of a value of that many bits.
    ZigZag(u32),
    /// Four bytes, of a value of that many bits.
    Fixed32(u32),
    /// Eight bytes.
    Fixed64,
    /// A float.
    Float,
    /// A double.
    Double,
}

/// What fills the places of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filling<'b> {
    body: &'b [u8],
    client: u32,
    sequence: u64,
}

impl MessageTemplate {
    /// Number of places for the body.
    pub(super) fn bodies(&self) -> usize {
        count(&self.0, &|part| matches!(part, Part::Body))
    }

    /// True if numbers of the message are in it.
    pub(super) fn has_numbers(&self) -> bool {
        count(&self.0, &|part| matches!(part, Part::Digits(_) | Part::Number(..))) > 0
    }
}

impl<'b> Filling<'b> {
    /// That of the message with this body. Its numbers are read from its mark.
    #[inline]
    pub(super) fn of(body: &'b [u8], has_numbers: bool) -> Filling<'b> {
        let (client, sequence) = if has_numbers { name_pattern::number(body) } else { (0, 0) };
        Filling { body, client, sequence }
    }

    /// That of the message with this body and these numbers.
    #[inline]
    pub(super) fn with(body: &'b [u8], (client, sequence): (u32, u64)) -> Filling<'b> {
        Filling { body, client, sequence }
    }

    /// Its producer, and its number there.
    #[inline]
    pub(super) fn numbers(&self) -> (u32, u64) {
        (self.client, self.sequence)
    }

    fn number(&self, number: Number) -> u64 {
        match number {
            Number::Client => self.client.into(),
            Number::Sequence => self.sequence,
        }
    }

    /// Bytes of `parts`.
    pub(super) fn bytes(&self, parts: &[Part]) -> usize {
        let part = |part: &Part| match part {
            Part::Bytes(bytes) => bytes.len(),
            Part::Body => self.body.len(),
            Part::Digits(number) => digits(self.number(*number)),
            Part::Number(number, form) => form.bytes(self.number(*number)),
            Part::Sized(inner) => {
                let bytes = self.bytes(inner);
                varint_bytes(bytes as u64) + bytes
            }
        };
        parts.iter().map(part).sum()
    }

    /// Appends `parts`.
    pub(super) fn put(&self, parts: &[Part], out: &mut Vec<u8>) {
        for part in parts {
            match part {
                Part::Bytes(bytes) => out.extend_from_slice(bytes),
                Part::Body => out.extend_from_slice(self.body),
                Part::Digits(number) => put_digits(self.number(*number), out),
                Part::Number(number, form) => form.put(self.number(*number), out),
                Part::Sized(inner) => {
                    put_varint(out, self.bytes(inner) as u64);
                    self.put(inner, out);
                }
            }
        }
    }
}

impl Form {
    fn varint(self, value: u64) -> u64 {
        match self {
            Form::Varint(bits) => low(value, bits),
            Form::ZigZag(bits) => low(value, bits) << 1,
            _ => value,
        }
    }

    fn bytes(self, value: u64) -> usize {
        match self {
            Form::Varint(_) | Form::ZigZag(_) => varint_bytes(self.varint(value)),
            Form::Fixed32(_) | Form::Float => 4,
            Form::Fixed64 | Form::Double => 8,
        }
    }

    fn put(self, value: u64, out: &mut Vec<u8>) {
        match self {
            Form::Varint(_) | Form::ZigZag(_) => put_varint(out, self.varint(value)),
            Form::Fixed32(bits) => out.extend_from_slice(&(low(value, bits) as u32).to_le_bytes()),
            Form::Fixed64 => out.extend_from_slice(&value.to_le_bytes()),
            Form::Float => out.extend_from_slice(&(value as f32).to_le_bytes()),
            Form::Double => out.extend_from_slice(&(value as f64).to_le_bytes()),
        }
    }
}

/// The lowest bits of a number.
fn low(value: u64, bits: u32) -> u64 {
    value & 1_u64.checked_shl(bits).map_or(u64::MAX, |above| above - 1)
}

fn digits(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
}

fn put_digits(value: u64, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + digits(value), b'0');
    let mut left = value;
    for place in out[start..].iter_mut().rev() {
        *place = b'0' + (left % 10) as u8;
        left /= 10;
    }
}

fn count(parts: &[Part], is_it: &dyn Fn(&Part) -> bool) -> usize {
    let each = |part: &Part| match part {
        Part::Sized(inner) => count(inner, is_it),
        other => usize::from(is_it(other)),
    };
    parts.iter().map(each).sum()
}

fn write_bytes<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

fn read_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    STANDARD.decode(text).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weigh_model::Nanos;
    use weigh_model::mark::{MARK_BYTES, Mark};

    use super::*;

    fn body(producer: u32, sequence: u64) -> Vec<u8> {
        let mut body = vec![b'x'; 200];
        let (tag, warmup, due, lag) = (1, false, Nanos(0), Nanos(0));
        let mark = Mark { tag, warmup, producer, sequence, due, lag, own_lag: lag };
        mark.seal(&mut body, 200 - MARK_BYTES);
        body
    }

    fn filled(parts: Vec<Part>, body: &[u8]) -> Vec<u8> {
        let template = MessageTemplate(parts);
        let filling = Filling::of(body, template.has_numbers());
        let mut out = Vec::new();
        filling.put(&template.0, &mut out);
        assert_eq!(filling.bytes(&template.0), out.len());
        out
    }

    /// Protocol Buffers, "Encoding": 150 is 0x96 0x01, and 200 bytes have a length of two.
    #[test]
    fn places_are_filled_and_lengths_follow() {
        let body = body(7, 150);
        let number = |form| Part::Number(Number::Sequence, form);
        assert_eq!(filled(vec![number(Form::Varint(63))], &body), [0x96, 1]);
        assert_eq!(filled(vec![number(Form::ZigZag(31))], &body), [0xac, 2]);
        assert_eq!(filled(vec![number(Form::Varint(4))], &body), [6]);
        assert_eq!(filled(vec![number(Form::Fixed32(32))], &body), [150, 0, 0, 0]);
        assert_eq!(filled(vec![number(Form::Double)], &body), 150_f64.to_le_bytes());
        assert_eq!(filled(vec![Part::Digits(Number::Client)], &body), b"7");
        let inner = vec![Part::Bytes(vec![0x0a]), Part::Sized(vec![Part::Body])];
        let whole = filled(vec![Part::Bytes(vec![0x12]), Part::Sized(inner)], &body);
        assert_eq!(whole[..6], [0x12, 203, 1, 0x0a, 200, 1]);
        assert_eq!(whole[6..], body);
    }

    proptest! {
        #[test]
        fn digits_are_those_of_the_number(value: u64) {
            let mut out = Vec::new();
            put_digits(value, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }

    #[test]
    fn a_template_is_written_and_read_back() {
        let parts = vec![
            Part::Bytes(vec![0, 255]),
            Part::Sized(vec![Part::Body, Part::Digits(Number::Client)]),
            Part::Number(Number::Sequence, Form::Varint(32)),
        ];
        let template = MessageTemplate(parts);
        let text = serde_json::to_string(&template).unwrap();
        assert_eq!(serde_json::from_str::<MessageTemplate>(&text).unwrap(), template);
        assert_eq!((template.bodies(), template.has_numbers()), (1, true));
    }
}
