//! Reads input files that a flag or a plan names, with a size limit: a device such as `/dev/zero`,
//! or a huge file named by mistake, must not fill the memory.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Size limit of plans, header lists, passwords and similar, bytes: the largest plan that can run
/// (10,000 cases, each written out) has 2 MB.
pub const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Size limit of bodies, due times and imported figures, bytes: the largest body that is not
/// streamed ([`weigh_plan::load::BODY_BYTES_MAX`]).
pub const CONTENT_BYTES_MAX: u64 = weigh_plan::load::BODY_BYTES_MAX;

/// Reads a file of at most `bytes_max` bytes.
///
/// # Errors
/// A file that cannot be read, or is longer.
pub fn bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read(File::open(path)?, bytes_max)
}

/// Reads a UTF-8 file of at most `bytes_max` bytes.
///
/// # Errors
/// A file that cannot be read, is longer, or is not UTF-8.
pub fn text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let wrong = |_| io::Error::new(ErrorKind::InvalidData, "it is not text in UTF-8");
    String::from_utf8(bytes(path, bytes_max)?).map_err(wrong)
}

/// Reads at most `bytes_max` bytes from `input`.
///
/// # Errors
/// An input that cannot be read, or is longer.
pub fn read(input: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= bytes_max {
        return Ok(bytes);
    }
    Err(too_long(bytes_max))
}

/// The error for input over the size limit.
pub fn too_long(bytes_max: u64) -> io::Error {
    let text = format!("it has more than {} MiB, the size limit", bytes_max >> 20);
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
