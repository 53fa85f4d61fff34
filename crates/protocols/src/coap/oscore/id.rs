//! Sender and recipient IDs (RFC 8613, section 3.1): each end of a security context has one.

/// An ID, of at most [`ID_BYTES_MAX`] bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Id {
    bytes: [u8; ID_BYTES_MAX],
    length: u8,
}

impl Id {
    /// The ID of these bytes; `None` if they are too many.
    pub fn of(bytes: &[u8]) -> Option<Id> {
        let mut id = Id { length: bytes.len() as u8, ..Id::default() };
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(id)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// The ID of the same length that is `number` further, its bytes read as one number; `None` if
    /// there is none.
    pub(super) fn plus(self, number: u64) -> Option<Id> {
        let sum = self.value().checked_add(number)?;
        let bits = 8 * u32::from(self.length);
        let id = Id::of(&sum.to_be_bytes()[8 - usize::from(self.length)..])?;
        (sum.checked_shr(bits).unwrap_or(0) == 0).then_some(id)
    }

    /// How much further than `first` it is; `None` if it is not, or has another length.
    pub(super) fn since(self, first: Id) -> Option<u64> {
        let distance = self.value().checked_sub(first.value())?;
        (self.length == first.length).then_some(distance)
    }

    fn value(self) -> u64 {
        self.bytes().iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }
}

/// The longest ID: six bytes less than the nonce of the AEAD algorithm (section 3.3).
pub const ID_BYTES_MAX: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_count_up_within_their_length() {
        let id = |bytes: &[u8]| Id::of(bytes).unwrap();
        assert_eq!(id(&[1, 0xfe]).plus(3), Some(id(&[2, 1])));
        assert_eq!(id(&[0xff]).plus(1), None);
        assert_eq!((id(&[]).plus(0), id(&[]).plus(1)), (Some(id(&[])), None));
        assert_eq!(id(&[0xff; 7]).plus(1), None);
        assert_eq!(id(&[0, 9]).since(id(&[0, 2])), Some(7));
        assert_eq!(id(&[9]).since(id(&[0, 2])), None);
        assert_eq!(id(&[0, 1]).since(id(&[0, 2])), None);
        assert_eq!(Id::of(&[0; 8]), None);
    }
}
