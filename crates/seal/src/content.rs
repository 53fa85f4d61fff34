//! The content of a part: encrypted once, with a key made only for it.
//!
//! A nonce that is used twice under one key breaks both ciphers. Here it cannot happen: a
//! [`ContentKey`] is random, encrypts one part, and is used up by doing so.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use chacha20poly1305::ChaCha20Poly1305;
use coset::iana::Algorithm;
use weigh_model::seal::Cipher;
use zeroize::Zeroizing;

use crate::error::SealError;

/// The algorithm's number in COSE (RFC 9053, sections 4.1 and 4.3): 1, 3 and 24.
pub(crate) fn algorithm(cipher: Cipher) -> Algorithm {
    match cipher {
        Cipher::Aes128Gcm => Algorithm::A128GCM,
        Cipher::Aes256Gcm => Algorithm::A256GCM,
        Cipher::ChaCha20Poly1305 => Algorithm::ChaCha20Poly1305,
    }
}

pub(crate) fn from_algorithm(found: Algorithm) -> Option<Cipher> {
    Cipher::ALL.into_iter().find(|cipher| algorithm(*cipher) == found)
}

/// Bytes of a key.
pub(crate) fn key_bytes(cipher: Cipher) -> usize {
    match cipher {
        Cipher::Aes128Gcm => 16,
        Cipher::Aes256Gcm | Cipher::ChaCha20Poly1305 => 32,
    }
}

/// The key of one part.
pub(crate) struct ContentKey {
    cipher: Cipher,
    bytes: Zeroizing<Vec<u8>>,
}

impl ContentKey {
    /// Makes a key for a part that is about to be sealed.
    pub(crate) fn random(cipher: Cipher) -> Result<ContentKey, SealError> {
        let mut bytes = Zeroizing::new(vec![0; key_bytes(cipher)]);
        fill_random(&mut bytes)?;
        Ok(ContentKey { cipher, bytes })
    }

    /// Makes it from the bytes that a recipient unwrapped.
    pub(crate) fn unwrapped(cipher: Cipher, bytes: Zeroizing<Vec<u8>>) -> ContentKey {
        ContentKey { cipher, bytes }
    }

    /// The bytes that are wrapped for recipients.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Encrypts, and consumes the key.
    pub(crate) fn encrypt(self, nonce: &[u8; NONCE_BYTES], content: &[u8], aad: &[u8]) -> Vec<u8> {
        let message = Payload { msg: content, aad };
        let encrypted = match self.cipher {
            Cipher::Aes128Gcm => self.aead::<Aes128Gcm>().encrypt(&(*nonce).into(), message),
            Cipher::Aes256Gcm => self.aead::<Aes256Gcm>().encrypt(&(*nonce).into(), message),
            Cipher::ChaCha20Poly1305 => {
                self.aead::<ChaCha20Poly1305>().encrypt(&(*nonce).into(), message)
            }
        };
        encrypted.expect("contents are far below the ciphers' 64 GiB")
    }

    /// Decrypts, if the content was not changed.
    pub(crate) fn decrypt(
        &self,
        nonce: &[u8; NONCE_BYTES],
        encrypted: &[u8],
        aad: &[u8],
    ) -> Option<Vec<u8>> {
        let message = Payload { msg: encrypted, aad };
        match self.cipher {
            Cipher::Aes128Gcm => self.aead::<Aes128Gcm>().decrypt(&(*nonce).into(), message),
            Cipher::Aes256Gcm => self.aead::<Aes256Gcm>().decrypt(&(*nonce).into(), message),
            Cipher::ChaCha20Poly1305 => {
                self.aead::<ChaCha20Poly1305>().decrypt(&(*nonce).into(), message)
            }
        }
        .ok()
    }

    fn aead<A: KeyInit>(&self) -> A {
        A::new_from_slice(&self.bytes).expect("the key has the cipher's length")
    }
}

/// Fills the bytes with random bytes of the operating system.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<(), SealError> {
    getrandom::fill(bytes).map_err(|error| SealError::Random(error.to_string()))
}

/// Bytes of a nonce of all three ciphers (RFC 9053, sections 4.1 and 4.3).
pub(crate) const NONCE_BYTES: usize = 12;

/// Bytes of the tag that all three ciphers add (RFC 9053, sections 4.1 and 4.3).
pub(crate) const TAG_BYTES: usize = 16;
