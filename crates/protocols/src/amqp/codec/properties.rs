//! Content headers of the class basic: the size of a body, and its properties (AMQP 0-9-1, sections
//! 2.3.5.2 and 4.2.6.1).

use super::field::{Cursor, Field, Short};
use super::flaw::Flaw;
use super::frame::{FrameKind, end_frame, put_frame_head};
use super::table::Table;

/// A content header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header<'a> {
    /// Bytes of the whole body.
    pub body_bytes: u64,
    /// Flags and values of the properties as they are on the wire: a broker passes them on.
    pub raw: &'a [u8],
}

/// Properties of a message. What is `None` is not on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Properties<'a> {
    /// MIME type.
    pub content_type: Option<Short<'a>>,
    /// MIME encoding.
    pub content_encoding: Option<Short<'a>>,
    /// Header fields of the application.
    pub headers: Option<Table<'a>>,
    /// 1 for transient, 2 for persistent.
    pub delivery_mode: Option<u8>,
    /// 0 to 9.
    pub priority: Option<u8>,
    /// Identifies the request of an answer.
    pub correlation_id: Option<Short<'a>>,
    /// Queue for the answer.
    pub reply_to: Option<Short<'a>>,
    /// Life in milliseconds, as text.
    pub expiration: Option<Short<'a>>,
    /// Identifier of the application.
    pub message_id: Option<Short<'a>>,
    /// Seconds since 1970.
    pub timestamp: Option<u64>,
    /// Type of the application.
    pub kind: Option<Short<'a>>,
    /// User that publishes.
    pub user_id: Option<Short<'a>>,
    /// Application that publishes.
    pub app_id: Option<Short<'a>>,
    /// Not in use.
    pub cluster_id: Option<Short<'a>>,
}

impl<'a> Header<'a> {
    /// Reads the payload of a header frame.
    ///
    /// # Errors
    /// A payload that is not a header of the class basic.
    pub fn read(payload: &'a [u8]) -> Result<Header<'a>, Flaw> {
        let mut from = Cursor::new(payload);
        let (class, weight) = (u16::read(&mut from)?, u16::read(&mut from)?);
        if class != BASIC || weight != 0 {
            return Err(Flaw::frame("a content header of another class than basic"));
        }
        let body_bytes = u64::read(&mut from)?;
        let raw = from.rest();
        Properties::read(raw)?;
        Ok(Header { body_bytes, raw })
    }

    /// Appends the header as a frame.
    pub fn put(&self, channel: u16, out: &mut Vec<u8>) {
        let at = put_frame_head(FrameKind::Header, channel, out);
        BASIC.put(out);
        0u16.put(out);
        self.body_bytes.put(out);
        out.extend_from_slice(self.raw);
        end_frame(at, out);
    }
}

/// Reads a property if its flag is set; flags are taken from the highest bit down.
fn optional<'a, T: Field<'a>>(flags: &mut u16, from: &mut Cursor<'a>) -> Result<Option<T>, Flaw> {
    let is_set = *flags & FIRST_FLAG != 0;
    *flags <<= 1;
    is_set.then(|| T::read(from)).transpose()
}

fn put<'a, T: Field<'a>>(value: &Option<T>, flags: &mut u16, bit: &mut u16, out: &mut Vec<u8>) {
    if let Some(value) = value {
        *flags |= *bit;
        value.put(out);
    }
    *bit >>= 1;
}

impl<'a> Properties<'a> {
    /// Reads flags and values.
    ///
    /// # Errors
    /// Bytes that are not these properties.
    pub fn read(raw: &'a [u8]) -> Result<Properties<'a>, Flaw> {
        let from = &mut Cursor::new(raw);
        let flags = &mut u16::read(from)?;
        if *flags & UNUSED_FLAGS != 0 {
            return Err(Flaw::syntax("a content header with unknown property flags"));
        }
        let properties = Properties {
            content_type: optional(flags, from)?,
            content_encoding: optional(flags, from)?,
            headers: optional(flags, from)?,
            delivery_mode: optional(flags, from)?,
            priority: optional(flags, from)?,
            correlation_id: optional(flags, from)?,
            reply_to: optional(flags, from)?,
            expiration: optional(flags, from)?,
            message_id: optional(flags, from)?,
            timestamp: optional(flags, from)?,
            kind: optional(flags, from)?,
            user_id: optional(flags, from)?,
            app_id: optional(flags, from)?,
            cluster_id: optional(flags, from)?,
        };
        from.finish()?;
        Ok(properties)
    }

    /// Appends flags and values.
    pub fn put(&self, out: &mut Vec<u8>) {
        let at = out.len();
        0u16.put(out);
        let (mut flags, mut bit) = (0, FIRST_FLAG);
        let (flags_of, bit_of) = (&mut flags, &mut bit);
        put(&self.content_type, flags_of, bit_of, out);
        put(&self.content_encoding, flags_of, bit_of, out);
        put(&self.headers, flags_of, bit_of, out);
        put(&self.delivery_mode, flags_of, bit_of, out);
        put(&self.priority, flags_of, bit_of, out);
        put(&self.correlation_id, flags_of, bit_of, out);
        put(&self.reply_to, flags_of, bit_of, out);
        put(&self.expiration, flags_of, bit_of, out);
        put(&self.message_id, flags_of, bit_of, out);
        put(&self.timestamp, flags_of, bit_of, out);
        put(&self.kind, flags_of, bit_of, out);
        put(&self.user_id, flags_of, bit_of, out);
        put(&self.app_id, flags_of, bit_of, out);
        put(&self.cluster_id, flags_of, bit_of, out);
        out[at..at + 2].copy_from_slice(&flags.to_be_bytes());
    }

    /// True for a message that is to survive the end of the server.
    pub fn is_persistent(&self) -> bool {
        self.delivery_mode == Some(PERSISTENT)
    }
}

/// Delivery mode of a message that is to survive the end of the server.
pub const PERSISTENT: u8 = 2;

/// Delivery mode of a message that need not.
pub const TRANSIENT: u8 = 1;

const BASIC: u16 = 60;
const FIRST_FLAG: u16 = 1 << 15;

/// Bit 1 belongs to no property; bit 0 says that more flags follow, and basic has none.
const UNUSED_FLAGS: u16 = 3;
