//! Sections of a message (part 3, section 3.2): a header that brokers may change, and behind it
//! what they pass on as it is.

use super::composite::Fields;
use super::flaw::Flaw;
use super::value::{Cursor, Value};
use super::writer::List;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message<'a> {
    /// Its header, with defaults where it has none.
    pub header: Header,
    /// Everything behind the header.
    pub bare: &'a [u8],
    /// Its body.
    pub body: Body<'a>,
}

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// It is to be stored.
    pub durable: bool,
    /// Its priority; 4 is the default.
    pub priority: u8,
    /// Time that it lives, in milliseconds.
    pub ttl_ms: Option<u32>,
    /// Attempts to deliver it that failed.
    pub delivery_count: u32,
}

/// The body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body<'a> {
    /// There is none.
    Empty,
    /// Bytes: one section `data`, or a value that is binary or a string.
    Data(&'a [u8]),
    /// Several sections `data`.
    Several,
    /// Another value, or a sequence: its bytes.
    Other(&'a [u8]),
}

impl<'a> Message<'a> {
    /// Reads a whole message.
    ///
    /// # Errors
    /// Sections that cannot be read, or that are out of order.
    pub fn read(bytes: &'a [u8]) -> Result<Message<'a>, Flaw> {
        let mut cursor = Cursor::new(bytes);
        let mut message = Message { header: Header::default(), bare: bytes, body: Body::Empty };
        let mut last = 0;
        while !cursor.is_empty() {
            let section = cursor.rest();
            let Value::Described(described) = cursor.value()? else {
                return Err(Flaw::decode("a message with something other than a section"));
            };
            let code = described.code()?;
            let is_again = code == last && matches!(code, DATA | SEQUENCE);
            if !(HEADER..=FOOTER).contains(&code) || (code <= last && !is_again) {
                return Err(Flaw::decode("sections of a message out of order"));
            }
            match code {
                HEADER => {
                    message.header = Header::read(Fields::of(described)?)?;
                    message.bare = cursor.rest();
                }
                DATA | SEQUENCE | VALUE => {
                    let size = section.len() - cursor.rest().len();
                    message.body.add(
                        code,
                        Cursor::new(described.value).value()?,
                        &section[..size],
                    )?;
                }
                _ => {}
            }
            last = code;
        }
        Ok(message)
    }

    /// The sections `data`, one after the other.
    fn data(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut cursor = Cursor::new(self.bare);
        std::iter::from_fn(move || {
            while let Ok(Value::Described(section)) = cursor.value() {
                let value = Cursor::new(section.value).value();
                if let (Ok(DATA), Ok(Value::Binary(bytes))) = (section.code(), value) {
                    return Some(bytes);
                }
            }
            None
        })
    }
}

impl<'a> Body<'a> {
    fn add(&mut self, code: u64, value: Value<'a>, section: &'a [u8]) -> Result<(), Flaw> {
        *self = match (code, value, *self) {
            (DATA, Value::Binary(bytes), Body::Empty) => Body::Data(bytes),
            (VALUE, Value::Binary(bytes), Body::Empty) => Body::Data(bytes),
            (VALUE, Value::Text(text), Body::Empty) => Body::Data(text.as_bytes()),
            (DATA, Value::Binary(_), _) => Body::Several,
            (SEQUENCE, Value::List(_), _) | (VALUE, _, Body::Empty) => Body::Other(section),
            _ => return Err(Flaw::decode("a body of two kinds")),
        };
        Ok(())
    }

    /// Its bytes: those of all sections `data` one after the other, which needs `room` if there are
    /// several.
    pub fn bytes(self, message: &Message<'a>, room: &'a mut Vec<u8>) -> &'a [u8] {
        match self {
            Body::Empty => &[],
            Body::Data(bytes) | Body::Other(bytes) => bytes,
            Body::Several => {
                room.clear();
                message.data().for_each(|part| room.extend_from_slice(part));
                room
            }
        }
    }
}

impl Default for Header {
    fn default() -> Header {
        Header { durable: false, priority: PRIORITY, ttl_ms: None, delivery_count: 0 }
    }
}

impl Header {
    fn read(mut fields: Fields<'_>) -> Result<Header, Flaw> {
        let durable = fields.boolean()?.unwrap_or(false);
        let priority = fields.ubyte()?.unwrap_or(PRIORITY);
        let ttl_ms = fields.uint()?;
        // Whether it was acquired before: nothing here depends on that.
        fields.boolean()?;
        let delivery_count = fields.uint()?.unwrap_or(0);
        fields.finish()?;
        Ok(Header { durable, priority, ttl_ms, delivery_count })
    }

    /// Writes it, unless all of it is default.
    pub fn put(&self, out: &mut Vec<u8>) {
        if *self == Header::default() {
            return;
        }
        let mut list = List::begin(HEADER as u8, out);
        list.flag(self.durable, out);
        match self.priority {
            PRIORITY => list.null(),
            priority => list.ubyte(priority, out),
        }
        list.optional_uint(self.ttl_ms, out);
        list.null();
        list.optional_uint((self.delivery_count > 0).then_some(self.delivery_count), out);
        list.end(out);
    }
}

/// Writes what comes before the `bytes` bytes of a body in a section `data`.
pub fn put_data_head(bytes: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x00, 0x53, DATA as u8]);
    match u8::try_from(bytes) {
        Ok(size) => out.extend_from_slice(&[0xA0, size]),
        Err(_) => {
            out.push(0xB0);
            out.extend_from_slice(&bytes.to_be_bytes());
        }
    }
}

const HEADER: u64 = 0x70;
const DATA: u64 = 0x75;
const SEQUENCE: u64 = 0x76;
const VALUE: u64 = 0x77;
const FOOTER: u64 = 0x78;

/// The default priority.
const PRIORITY: u8 = 4;
