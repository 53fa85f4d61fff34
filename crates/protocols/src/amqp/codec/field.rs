//! Elementary fields of methods and content headers: numbers, short and long strings (AMQP 0-9-1,
//! section 4.2.5). Numbers are big-endian.

use super::flaw::Flaw;

/// A place in received bytes.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

/// A field that is read from bytes and written to them.
pub trait Field<'a>: Sized {
    /// Reads the field.
    ///
    /// # Errors
    /// Bytes that are too few, or not such a field.
    fn read(from: &mut Cursor<'a>) -> Result<Self, Flaw>;

    /// Appends the field.
    fn put(&self, out: &mut Vec<u8>);
}

/// A string of at most 255 bytes of UTF-8 (section 4.2.5.3); what is longer is cut when written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Short<'a>(pub &'a str);

/// A string of any bytes with a length of 32 bits (section 4.2.5.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Long<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// The beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    /// The bytes that are not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes `count` bytes.
    ///
    /// # Errors
    /// Fewer bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Flaw> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(SHORT)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Flaw> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(SHORT)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Checks that everything is read.
    ///
    /// # Errors
    /// Bytes that are left.
    pub fn finish(&self) -> Result<(), Flaw> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(Flaw::syntax("bytes follow the last field")),
        }
    }
}

macro_rules! number {
    ($($kind:ty),*) => { $(
        impl<'a> Field<'a> for $kind {
            fn read(from: &mut Cursor<'a>) -> Result<$kind, Flaw> {
                from.array().map(<$kind>::from_be_bytes)
            }

            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        }
    )* };
}

number!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

impl<'a> Field<'a> for Short<'a> {
    fn read(from: &mut Cursor<'a>) -> Result<Short<'a>, Flaw> {
        let length = u8::read(from)?;
        let text = std::str::from_utf8(from.bytes(usize::from(length))?);
        text.map(Short).map_err(|_| Flaw::syntax("a short string is not UTF-8"))
    }

    fn put(&self, out: &mut Vec<u8>) {
        let mut length = self.0.len().min(SHORT_BYTES_MAX);
        while !self.0.is_char_boundary(length) {
            length -= 1;
        }
        out.push(length as u8);
        out.extend_from_slice(&self.0.as_bytes()[..length]);
    }
}

impl<'a> Field<'a> for Long<'a> {
    fn read(from: &mut Cursor<'a>) -> Result<Long<'a>, Flaw> {
        let length = u32::read(from)?;
        from.bytes(length as usize).map(Long)
    }

    fn put(&self, out: &mut Vec<u8>) {
        (self.0.len() as u32).put(out);
        out.extend_from_slice(self.0);
    }
}

/// Longest short string.
pub const SHORT_BYTES_MAX: usize = 255;

const SHORT: Flaw = Flaw::syntax("the fields are longer than their frame");
