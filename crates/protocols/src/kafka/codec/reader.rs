//! Reading of primitive types (Kafka protocol guide, "Protocol Primitive Types"): every length is
//! checked before it is used.

use super::flaw::Flaw;

/// The fields that are still to be read.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader of these bytes.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Bytes that were not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes `bytes` bytes.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8], Flaw> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(Flaw::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Flaw> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Flaw::Short)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// INT8.
    ///
    /// # Errors
    /// If there are too few bytes, as with all others.
    pub fn i8(&mut self) -> Result<i8, Flaw> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    /// INT16.
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn i16(&mut self) -> Result<i16, Flaw> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    /// INT32.
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn i32(&mut self) -> Result<i32, Flaw> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// INT64.
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn i64(&mut self) -> Result<i64, Flaw> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// NULLABLE_STRING.
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn nullable_string(&mut self) -> Result<Option<&'a [u8]>, Flaw> {
        let length = self.i16()?;
        match length {
            -1 => Ok(None),
            _ => {
                let length = usize::try_from(length).map_err(|_| Flaw::Count)?;
                self.take(length).map(Some)
            }
        }
    }

    /// STRING.
    ///
    /// # Errors
    /// If there are too few bytes, or it is null.
    pub fn string(&mut self) -> Result<&'a [u8], Flaw> {
        self.nullable_string()?.ok_or(Flaw::Count)
    }

    /// NULLABLE_BYTES, and RECORDS before version 9 of Produce and 12 of Fetch.
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn nullable_bytes(&mut self) -> Result<Option<&'a [u8]>, Flaw> {
        let length = self.i32()?;
        match length {
            -1 => Ok(None),
            _ => {
                let length = usize::try_from(length).map_err(|_| Flaw::Count)?;
                self.take(length).map(Some)
            }
        }
    }

    /// The number of elements of an ARRAY, each of at least `bytes_least` bytes; a null array has
    /// none.
    ///
    /// # Errors
    /// If there are too few bytes for them.
    pub fn count(&mut self, bytes_least: usize) -> Result<usize, Flaw> {
        let count = self.i32()?;
        if count == -1 {
            return Ok(0);
        }
        let count = usize::try_from(count).map_err(|_| Flaw::Count)?;
        match count.checked_mul(bytes_least.max(1)) {
            Some(bytes) if bytes <= self.rest.len() => Ok(count),
            _ => Err(Flaw::Count),
        }
    }

    /// UNSIGNED_VARINT, of at most 64 bits.
    ///
    /// # Errors
    /// If it is longer, or there are too few bytes.
    pub fn unsigned_varint(&mut self) -> Result<u64, Flaw> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Flaw::Varint);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Flaw::Varint)
    }

    /// VARLONG, in zigzag.
    ///
    /// # Errors
    /// If it is too long, or there are too few bytes.
    pub fn varlong(&mut self) -> Result<i64, Flaw> {
        let value = self.unsigned_varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// VARINT, in zigzag.
    ///
    /// # Errors
    /// If it does not fit into 32 bits, or there are too few bytes.
    pub fn varint(&mut self) -> Result<i32, Flaw> {
        i32::try_from(self.varlong()?).map_err(|_| Flaw::Varint)
    }

    /// Bytes with a VARINT as length, as in records; -1 is null.
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn varint_bytes(&mut self) -> Result<Option<&'a [u8]>, Flaw> {
        match self.varint()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| Flaw::Count)?;
                self.take(length).map(Some)
            }
        }
    }

    /// COMPACT_STRING.
    ///
    /// # Errors
    /// If there are too few bytes, or it is null.
    pub fn compact_string(&mut self) -> Result<&'a [u8], Flaw> {
        let length = self.unsigned_varint()?.checked_sub(1).ok_or(Flaw::Count)?;
        self.take(usize::try_from(length).map_err(|_| Flaw::Count)?)
    }

    /// Skips tagged fields (KIP-482).
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn tags(&mut self) -> Result<(), Flaw> {
        let count = self.unsigned_varint()?;
        for _ in 0..count {
            self.unsigned_varint()?;
            let length = self.unsigned_varint()?;
            self.take(usize::try_from(length).map_err(|_| Flaw::Count)?)?;
        }
        Ok(())
    }

    /// Ends a message: all fields were read.
    ///
    /// # Errors
    /// If bytes are left.
    pub fn finish(&self) -> Result<(), Flaw> {
        match self.rest {
            [] => Ok(()),
            _ => Err(Flaw::Behind),
        }
    }
}
