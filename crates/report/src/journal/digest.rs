//! SHA-256 of files and texts, in hexadecimal digits.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// SHA-256 of these bytes: 64 lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// Returns SHA-256 of everything that can be read.
///
/// # Errors
/// If reading fails.
pub fn sha256_of(mut source: impl Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut block = vec![0; 1 << 16];
    loop {
        match source.read(&mut block)? {
            0 => return Ok(hexadecimal(&digest.finalize())),
            length => digest.update(&block[..length]),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, B.1 and the empty text.
    #[test]
    fn the_digests_are_those_of_the_standard() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), abc);
        assert_eq!(sha256_of(&b"abc"[..]).unwrap(), abc);
        assert!(sha256(b"").starts_with("e3b0c44298fc1c14"));
    }
}
