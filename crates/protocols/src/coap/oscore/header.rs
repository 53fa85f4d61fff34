//! The value of the option OSCORE (RFC 8613, section 6.1): partial IV, kid context and kid of the
//! COSE object, compressed.

use super::id::Id;

/// A number of a message under one key, at most five bytes long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartialIv {
    bytes: [u8; PARTIAL_IV_BYTES_MAX],
    length: u8,
}

impl PartialIv {
    /// The partial IV of a sequence number, without leading zeros (section 5); `None` if the number
    /// is too large for one.
    pub fn of(number: u64) -> Option<PartialIv> {
        let bytes = number.to_be_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        PartialIv::read(&bytes[zeros.min(bytes.len() - 1)..])
    }

    /// The partial IV of these bytes; `None` if they are none or too many.
    pub fn read(value: &[u8]) -> Option<PartialIv> {
        let mut own = PartialIv { length: value.len() as u8, ..PartialIv::default() };
        own.bytes.get_mut(..value.len())?.copy_from_slice(value);
        (!value.is_empty()).then_some(own)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// The sequence number.
    pub fn number(&self) -> u64 {
        self.bytes().iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }
}

/// What a compressed COSE object says besides the ciphertext.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header<'m> {
    /// In every request, and in responses with a nonce of their own.
    pub partial_iv: Option<PartialIv>,
    /// The ID context of the security context; only in requests.
    pub kid_context: Option<&'m [u8]>,
    /// The ID of the sender; in every request.
    pub kid: Option<Id>,
}

impl<'m> Header<'m> {
    /// Reads a value; `None` if it is malformed.
    pub fn read(value: &'m [u8]) -> Option<Header<'m>> {
        let Some((&flags, rest)) = value.split_first() else { return Some(Header::default()) };
        // A value without any flag is empty (section 2).
        if flags & RESERVED != 0 || flags == 0 {
            return None;
        }
        let (partial_iv, rest) = rest.split_at_checked(usize::from(flags & PARTIAL_IV_LENGTH))?;
        let partial_iv = match partial_iv {
            [] => None,
            bytes => Some(PartialIv::read(bytes)?),
        };
        let (kid_context, rest) = match flags & HAS_KID_CONTEXT {
            0 => (None, rest),
            _ => {
                let (&length, rest) = rest.split_first()?;
                let (context, rest) = rest.split_at_checked(usize::from(length))?;
                (Some(context), rest)
            }
        };
        let kid = match (flags & HAS_KID, rest) {
            (0, []) => None,
            (0, _) => return None,
            (_, kid) => Some(Id::of(kid)?),
        };
        Some(Header { partial_iv, kid_context, kid })
    }

    /// The value; its length is at most [`VALUE_BYTES_MAX`].
    pub fn value(&self) -> Value {
        let mut value = Value { bytes: [0; VALUE_BYTES_MAX], length: 0 };
        if *self == Header::default() {
            return value;
        }
        let mut flags = self.partial_iv.map_or(0, |own| own.length);
        let kid_context = self.kid_context.map(|own| &own[..own.len().min(KID_CONTEXT_BYTES_MAX)]);
        flags |= if kid_context.is_some() { HAS_KID_CONTEXT } else { 0 };
        flags |= if self.kid.is_some() { HAS_KID } else { 0 };
        value.put(&[flags]);
        value.put(self.partial_iv.as_ref().map_or(&[], PartialIv::bytes));
        if let Some(context) = kid_context {
            value.put(&[context.len() as u8]);
            value.put(context);
        }
        value.put(self.kid.as_ref().map_or(&[], Id::bytes));
        value
    }
}

/// The value of an option, as bytes.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    bytes: [u8; VALUE_BYTES_MAX],
    length: usize,
}

impl Value {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }
}

/// Flags in the first byte.
const RESERVED: u8 = 0b1110_0000;
const HAS_KID_CONTEXT: u8 = 0b1_0000;
const HAS_KID: u8 = 0b1000;
const PARTIAL_IV_LENGTH: u8 = 0b111;

/// The longest partial IV.
const PARTIAL_IV_BYTES_MAX: usize = 5;

/// The longest ID context that this program uses; a received one may have up to 255 bytes.
pub(super) const KID_CONTEXT_BYTES_MAX: usize = 32;

/// The longest value that this program writes.
const VALUE_BYTES_MAX: usize = 1 + PARTIAL_IV_BYTES_MAX + 1 + KID_CONTEXT_BYTES_MAX + 7;
