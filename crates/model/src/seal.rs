//! Sealed bodies: the number of participants, the options, and the interface of what seals them.
//! Implementations of [`Sealer`] define the format of a sealed object.

use std::fmt;
use std::str::FromStr;

/// Encryption of contents. All three add 16 bytes and take a nonce of 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Cipher {
    /// AES-GCM with 128 bits.
    #[default]
    Aes128Gcm,
    /// AES-GCM with 256 bits.
    Aes256Gcm,
    /// ChaCha20 and Poly1305.
    ChaCha20Poly1305,
}

impl Cipher {
    /// All of them, in the order they are listed to a user.
    pub const ALL: [Cipher; 3] = [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];

    /// Their names in plan and command line, in the same order.
    pub const NAMES: [&'static str; 3] = ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"];

    /// Name in plan and command line.
    pub fn name(self) -> &'static str {
        Cipher::NAMES[self as usize]
    }
}

impl fmt::Display for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Cipher {
    type Err = String;
    fn from_str(text: &str) -> Result<Cipher, String> {
        Cipher::ALL.into_iter().find(|cipher| cipher.name() == text).ok_or_else(|| {
            let names = Cipher::NAMES.join(", ");
            format!("unknown cipher {text:?}: type one of {names}")
        })
    }
}

/// Sealing of every body of a load. As text it is what is between `sealed` and the colon:
/// `sealed,recipients=3,unsigned:readings`; defaults are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Number of participants, from 1 to [`RECIPIENTS_MAX`].
    pub recipients: u32,
    /// Cipher of the content.
    pub cipher: Cipher,
    /// True if the sender signs it.
    pub is_signed: bool,
    /// True if a policy that names every participant is bound to it.
    pub has_policy: bool,
}

impl Default for Seal {
    fn default() -> Seal {
        Seal { recipients: 1, cipher: Cipher::default(), is_signed: true, has_policy: false }
    }
}

impl fmt::Display for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = Seal::default();
        f.write_str(SEALED)?;
        if self.recipients != plain.recipients {
            write!(f, ",recipients={}", self.recipients)?;
        }
        if self.cipher != plain.cipher {
            write!(f, ",cipher={}", self.cipher)?;
        }
        if !self.is_signed {
            f.write_str(",unsigned")?;
        }
        if self.has_policy {
            f.write_str(",policy")?;
        }
        Ok(())
    }
}

impl FromStr for Seal {
    type Err = String;
    fn from_str(text: &str) -> Result<Seal, String> {
        let mut words = text.split(',');
        let mut seal = Seal::default();
        if words.next() != Some(SEALED) {
            return Err(unknown(text));
        }
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("recipients", count) => seal.recipients = parse_recipients(count)?,
                ("cipher", name) => seal.cipher = name.parse()?,
                ("unsigned", "") => seal.is_signed = false,
                ("policy", "") => seal.has_policy = true,
                _ => return Err(unknown(word)),
            }
        }
        Ok(seal)
    }
}

fn parse_recipients(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| (1..=RECIPIENTS_MAX).contains(count));
    count.ok_or_else(|| {
        format!("recipients={text} is not a number of them: type one from 1 to {RECIPIENTS_MAX}")
    })
}

fn unknown(word: &str) -> String {
    format!(
        "unknown option {word:?} of a seal: type sealed:CONTENT, or between sealed and the colon \
         ,recipients=N ,cipher=NAME ,unsigned ,policy"
    )
}

/// Seals contents and opens them again, for one trial, with keys that are made for it and exist
/// only in memory.
pub trait Sealer: fmt::Debug + Send + Sync {
    /// Appends the sealed object of `content`. The cost of a warm-up is not measured.
    fn seal(&self, content: &[u8], is_measured: bool, out: &mut Vec<u8>);

    /// Bytes of the sealed object of a content of `content_bytes`; it depends only on that length.
    fn object_bytes(&self, content_bytes: usize) -> usize;

    /// Opens an object with the key of the consumer of this index; false if it does not open.
    fn opens(&self, object: &[u8], consumer: u32, is_measured: bool) -> bool;
}

/// The word that a sealed body begins with.
pub const SEALED: &str = "sealed";

/// With more participants their entries exceed most messages: 84 bytes each.
pub const RECIPIENTS_MAX: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_back_to_the_seal() {
        for text in [
            "sealed",
            "sealed,recipients=5",
            "sealed,recipients=2,cipher=chacha20-poly1305,unsigned,policy",
            "sealed,cipher=aes-256-gcm",
        ] {
            assert_eq!(text.parse::<Seal>().unwrap().to_string(), text);
        }
        assert_eq!("sealed,recipients=1".parse(), Ok(Seal::default()));
        for wrong in [
            "sealed,",
            "sealed,recipients=0",
            "sealed,recipients=1001",
            "sealed,cipher=des",
            "seal",
        ] {
            let error = wrong.parse::<Seal>().unwrap_err();
            assert!(error.contains(": type "), "{wrong}: {error}");
        }
    }
}
