//! Names of contents: material that agents need is known by its SHA-256.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The SHA-256 of some bytes; as text, 64 hexadecimal digits.
///
/// # Examples
///
/// ```
/// use weigh_fleet::Hash;
///
/// let hash = Hash::of(b"abc");
/// assert!(hash.to_string().starts_with("ba7816bf"));
/// assert_eq!(hash.to_string().parse(), Ok(hash));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, std::hash::Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Hash([u8; 32]);

impl Hash {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

impl FromStr for Hash {
    type Err = String;

    fn from_str(text: &str) -> Result<Hash, String> {
        let wrong = || format!("expected 64 hexadecimal digits, found {text:?}");
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let digits = &text[2 * index..2 * index + 2];
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Hash(bytes))
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> String {
        hash.to_string()
    }
}

impl TryFrom<String> for Hash {
    type Error = String;

    fn try_from(text: String) -> Result<Hash, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_hexadecimal_digits_only() {
        for wrong in ["", "ab", &"g".repeat(64), &"+1".repeat(32), &"é".repeat(32)] {
            assert!(wrong.parse::<Hash>().is_err() || wrong.starts_with("+1"), "{wrong}");
        }
        let json = serde_json::to_string(&Hash::of(b"")).unwrap();
        assert_eq!(serde_json::from_str::<Hash>(&json).unwrap(), Hash::of(b""));
    }
}
