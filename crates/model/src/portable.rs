//! A compact form of values as bytes, for results that one process hands to another: numbers as
//! LEB128, times in nanoseconds, fields in their order without names. Both ends must be of one
//! form, so an envelope carries its number, and a check value over everything.
//!
//! Serde has another task here: plans and journals write times as text for people.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;

use crate::units::Nanos;

/// A value with a form as bytes.
pub trait Portable: Sized {
    /// Appends the value to `out`.
    fn put(&self, out: &mut Vec<u8>);

    /// Takes a value from the front of `from`.
    ///
    /// # Errors
    /// If the bytes end too early or are not such a value.
    fn take(from: &mut Reader<'_>) -> Result<Self, Unreadable>;
}

/// Cause for which bytes are not a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// They do not begin as an envelope does.
    #[error("not a result of a Weighbridge generator")]
    Foreign,
    /// They have a form that this version does not read.
    #[error(
        "a result in form {found}, this version reads form {expected}: use the same version of \
         weigh on every host"
    )]
    Form {
        /// Number of the form.
        found: u16,
        /// Number of the form that is read.
        expected: u16,
    },
    /// The check value is that of other bytes.
    #[error("a result was cut or damaged in transit: its check value does not match")]
    Damaged,
    /// They end before the value does.
    #[error("a result is cut: it ends too early")]
    Cut,
    /// They continue after the end of the value.
    #[error("a result is damaged: {0} bytes follow its end")]
    TooLong(usize),
    /// A part of the value is out of its range.
    #[error("a result is damaged: {0} cannot be")]
    Wrong(&'static str),
}

/// Bytes of which the front is taken value by value.
#[derive(Debug)]
pub struct Reader<'b> {
    left: &'b [u8],
}

impl<'b> Reader<'b> {
    /// Reads `bytes` from their front.
    pub fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader { left: bytes }
    }

    /// Takes `count` bytes.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn bytes(&mut self, count: usize) -> Result<&'b [u8], Unreadable> {
        let (taken, left) = self.left.split_at_checked(count).ok_or(Unreadable::Cut)?;
        self.left = left;
        Ok(taken)
    }

    /// Takes `N` bytes.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let (taken, left) = self.left.split_first_chunk().ok_or(Unreadable::Cut)?;
        self.left = left;
        Ok(*taken)
    }

    /// Takes the number of values that follow, each of which takes a byte or more.
    ///
    /// # Errors
    /// If there are fewer bytes than that.
    pub fn count(&mut self) -> Result<usize, Unreadable> {
        let count = usize::try_from(u64::take(self)?).map_err(|_| Unreadable::Cut)?;
        if count > self.left.len() { Err(Unreadable::Cut) } else { Ok(count) }
    }

    /// True if nothing is left.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// If bytes are left.
    pub fn end(self) -> Result<(), Unreadable> {
        match self.left.len() {
            0 => Ok(()),
            left => Err(Unreadable::TooLong(left)),
        }
    }
}

/// Puts a value into an envelope: magic bytes, the number of its form, the value, and a check value
/// (CRC-32) over all of them.
pub fn enclose<T: Portable>(value: &T, form: u16) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&form.to_le_bytes());
    value.put(&mut out);
    let check = crc32fast::hash(&out);
    out.extend_from_slice(&check.to_le_bytes());
    out
}

/// Takes a value of this `form` out of its envelope.
///
/// # Errors
/// If it is not an envelope, has another form, or is not whole.
pub fn disclose<T: Portable>(envelope: &[u8], form: u16) -> Result<T, Unreadable> {
    let mut head = Reader::new(envelope);
    if head.array()? != MAGIC {
        return Err(Unreadable::Foreign);
    }
    let found = u16::from_le_bytes(head.array()?);
    if found != form {
        return Err(Unreadable::Form { found, expected: form });
    }
    let (value, check) = head.left.split_last_chunk().ok_or(Unreadable::Cut)?;
    let checked = &envelope[..envelope.len() - check.len()];
    if crc32fast::hash(checked) != u32::from_le_bytes(*check) {
        return Err(Unreadable::Damaged);
    }
    let mut reader = Reader::new(value);
    let value = T::take(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Gives a struct the form of its fields, one after another. Fields after a semicolon are left out:
/// they come back with their default. A field that is not listed does not compile.
#[macro_export]
macro_rules! portable_fields {
    ($type:ident { $($field:ident),* $(,)? $(; $($left_out:ident),*)? }) => {
        impl $crate::portable::Portable for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let $type { $($field,)* $($($left_out: _,)*)? } = self;
                $($crate::portable::Portable::put($field, out);)*
            }

            fn take(
                from: &mut $crate::portable::Reader<'_>,
            ) -> Result<$type, $crate::portable::Unreadable> {
                Ok($type {
                    $($field: $crate::portable::Portable::take(from)?,)*
                    $($($left_out: Default::default(),)*)?
                })
            }
        }
    };
}

/// Gives an enum without fields the form of one byte for each variant.
#[macro_export]
macro_rules! portable_choice {
    ($type:ident { $($variant:ident = $number:literal),* $(,)? }) => {
        impl $crate::portable::Portable for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.push(match self { $($type::$variant => $number,)* });
            }

            fn take(
                from: &mut $crate::portable::Reader<'_>,
            ) -> Result<$type, $crate::portable::Unreadable> {
                match from.array()? {
                    $([$number] => Ok($type::$variant),)*
                    _ => Err($crate::portable::Unreadable::Wrong(stringify!($type))),
                }
            }
        }
    };
}

impl Portable for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        let mut left = *self;
        while left >= 0x80 {
            out.push(left as u8 | 0x80);
            left >>= 7;
        }
        out.push(left as u8);
    }

    fn take(from: &mut Reader<'_>) -> Result<u64, Unreadable> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = from.array()?;
            let part = u64::from(byte & 0x7f);
            if (part << shift) >> shift != part {
                break;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Unreadable::Wrong("a number beyond 64 bits"))
    }
}

/// Smaller numbers have the form of `u64`.
macro_rules! narrow {
    ($($type:ident),*) => {$(
        impl Portable for $type {
            fn put(&self, out: &mut Vec<u8>) {
                u64::from(*self).put(out);
            }

            fn take(from: &mut Reader<'_>) -> Result<$type, Unreadable> {
                let wrong = Unreadable::Wrong(concat!("a number beyond ", stringify!($type)));
                $type::try_from(u64::take(from)?).map_err(|_| wrong)
            }
        }
    )*};
}

narrow!(u16, u32);

impl Portable for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(from: &mut Reader<'_>) -> Result<bool, Unreadable> {
        match from.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Unreadable::Wrong("a yes or no")),
        }
    }
}

impl Portable for f64 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn take(from: &mut Reader<'_>) -> Result<f64, Unreadable> {
        from.array().map(f64::from_le_bytes)
    }
}

impl Portable for Nanos {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(from: &mut Reader<'_>) -> Result<Nanos, Unreadable> {
        u64::take(from).map(Nanos)
    }
}

impl Portable for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn take(from: &mut Reader<'_>) -> Result<String, Unreadable> {
        let count = from.count()?;
        let text = str::from_utf8(from.bytes(count)?);
        text.map(str::to_owned).map_err(|_| Unreadable::Wrong("a text that is not UTF-8"))
    }
}

impl Portable for SocketAddr {
    fn put(&self, out: &mut Vec<u8>) {
        self.to_string().put(out);
    }

    fn take(from: &mut Reader<'_>) -> Result<SocketAddr, Unreadable> {
        String::take(from)?.parse().map_err(|_| Unreadable::Wrong("an address"))
    }
}

impl<T: Portable> Portable for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|value| value.put(out));
    }

    fn take(from: &mut Reader<'_>) -> Result<Option<T>, Unreadable> {
        bool::take(from)?.then(|| T::take(from)).transpose()
    }
}

impl<A: Portable, B: Portable> Portable for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(from: &mut Reader<'_>) -> Result<(A, B), Unreadable> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

impl<T: Portable> Portable for Range<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.start.put(out);
        self.end.put(out);
    }

    fn take(from: &mut Reader<'_>) -> Result<Range<T>, Unreadable> {
        Ok(T::take(from)?..T::take(from)?)
    }
}

impl<T: Portable> Portable for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.iter().for_each(|value| value.put(out));
    }

    fn take(from: &mut Reader<'_>) -> Result<Vec<T>, Unreadable> {
        let count = from.count()?;
        (0..count).map(|_| T::take(from)).collect()
    }
}

impl<K: Portable + Ord, V: Portable> Portable for BTreeMap<K, V> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        for (key, value) in self {
            key.put(out);
            value.put(out);
        }
    }

    fn take(from: &mut Reader<'_>) -> Result<BTreeMap<K, V>, Unreadable> {
        let count = from.count()?;
        (0..count).map(|_| <(K, V)>::take(from)).collect()
    }
}

const MAGIC: [u8; 4] = *b"WGHR";

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<T: Portable + PartialEq + std::fmt::Debug>(value: T) {
        let envelope = enclose(&value, 3);
        assert_eq!(disclose(&envelope, 3), Ok(value));
    }

    #[test]
    fn values_come_back() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            there_and_back(number);
            there_and_back(Nanos(number));
            there_and_back((Some(number), None::<u64>));
            there_and_back(BTreeMap::from([(number, vec![0..number, 3..4])]));
        }
        there_and_back((u16::MAX, u32::MAX));
        there_and_back((true, "ä".to_owned()));
        there_and_back((1.5, SocketAddr::from(([127, 0, 0, 1], 80))));
    }

    #[test]
    fn what_is_not_a_value_is_refused() {
        let envelope = enclose(&7_u64, 3);
        let read = |bytes: &[u8]| disclose::<u64>(bytes, 3);
        assert_eq!(disclose::<u64>(&envelope, 4), Err(Unreadable::Form { found: 3, expected: 4 }));
        assert_eq!(read(b"{\"v\": 1}"), Err(Unreadable::Foreign));
        assert_eq!(read(b""), Err(Unreadable::Cut));
        assert_eq!(read(&envelope[..8]), Err(Unreadable::Cut));
        assert_eq!(read(&envelope[..10]), Err(Unreadable::Damaged));
        assert_eq!(read(&enclose(&(7_u64, 8_u64), 3)), Err(Unreadable::TooLong(1)));
        let take = |bytes: &[u8]| u64::take(&mut Reader::new(bytes));
        assert!(matches!(take(&[0xff; 10]), Err(Unreadable::Wrong(_))));
        assert!(matches!(u16::take(&mut Reader::new(&[0x80, 0x80, 4])), Err(Unreadable::Wrong(_))));
        // More values announced than there are bytes: no memory is taken for them.
        let many = Vec::<u64>::take(&mut Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x7f, 1]));
        assert_eq!(many, Err(Unreadable::Cut));
    }
}
