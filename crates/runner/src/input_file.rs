//! Files that a flag or a plan names for input, read whole and never without end: a device such as
//! `/dev/zero`, or a file of some gigabytes that was named by mistake, must not fill the memory.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Bytes of a plan, a list of header fields, a password and the like at most: the largest plan that
/// can be carried out (10,000 cases, each spelt out) has 2 MB.
pub const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Bytes at most of what messages are made of, of due times, and of foreign figures: the largest
/// body that is made whole ([`weigh_plan::load::BODY_BYTES_MAX`]).
pub const CONTENT_BYTES_MAX: u64 = weigh_plan::load::BODY_BYTES_MAX;

/// The whole file, if it has at most `bytes_max` bytes.
///
/// # Errors
/// If it cannot be read, or is longer.
pub fn bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read(File::open(path)?, bytes_max)
}

/// The same of a text in UTF-8.
///
/// # Errors
/// If it cannot be read, is longer, or no text.
pub fn text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let wrong = |_| io::Error::new(ErrorKind::InvalidData, "it is not text in UTF-8");
    String::from_utf8(bytes(path, bytes_max)?).map_err(wrong)
}

/// All that comes from `input`, if that is at most `bytes_max` bytes.
///
/// # Errors
/// If it cannot be read, or there is more.
pub fn read(input: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= bytes_max {
        return Ok(bytes);
    }
    Err(too_long(bytes_max))
}

/// What is said of a file with more bytes than that.
pub fn too_long(bytes_max: u64) -> io::Error {
    let text = format!("it has more than {} MiB, the most that is read", bytes_max >> 20);
    io::Error::new(ErrorKind::FileTooLarge, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused() {
        let error = bytes(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert!(error.to_string().contains("more than 1 MiB"), "{error}");
        assert_eq!(read(&b"1234"[..], 4).unwrap(), b"1234");
        assert!(read(&b"12345"[..], 4).is_err());
        assert!(bytes(Path::new("/dev/null"), 4).unwrap().is_empty());
    }
}
