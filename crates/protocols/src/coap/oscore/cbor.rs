//! The few kinds of CBOR (RFC 8949) that keys and authenticated data are made of, in a buffer of
//! fixed size: nothing is allocated for a message.

/// What has been written.
#[derive(Debug)]
pub(super) struct Cbor<const SIZE: usize> {
    bytes: [u8; SIZE],
    length: usize,
}

impl<const SIZE: usize> Cbor<SIZE> {
    /// Nothing yet.
    pub(super) fn new() -> Cbor<SIZE> {
        Cbor { bytes: [0; SIZE], length: 0 }
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The head of an array of `count` items, below 24.
    pub(super) fn array(self, count: u8) -> Self {
        self.put(&[ARRAY | count])
    }

    /// A whole number from 0 to 23.
    pub(super) fn small(self, number: u8) -> Self {
        self.put(&[number])
    }

    /// The value null.
    pub(super) fn null(self) -> Self {
        self.put(&[NULL])
    }

    /// A text of at most 23 bytes.
    pub(super) fn text(self, text: &str) -> Self {
        self.put(&[TEXT | text.len() as u8]).put(text.as_bytes())
    }

    /// A string of at most 255 bytes.
    pub(super) fn string(self, bytes: &[u8]) -> Self {
        let length = bytes.len() as u8;
        match length {
            0..24 => self.put(&[STRING | length]),
            _ => self.put(&[STRING | ONE_BYTE_MORE, length]),
        }
        .put(bytes)
    }

    /// Appends what fits; callers have buffers that fit their longest values.
    fn put(mut self, bytes: &[u8]) -> Self {
        let Some(room) = self.bytes.get_mut(self.length..self.length + bytes.len()) else {
            debug_assert!(false, "{} bytes do not fit", bytes.len());
            return self;
        };
        room.copy_from_slice(bytes);
        self.length += bytes.len();
        self
    }
}

/// Major types (section 3.1), in the three highest bits.
const STRING: u8 = 2 << 5;
const TEXT: u8 = 3 << 5;
const ARRAY: u8 = 4 << 5;

/// The length follows in one byte.
const ONE_BYTE_MORE: u8 = 24;

/// A simple value (section 3.3).
const NULL: u8 = 0xf6;
