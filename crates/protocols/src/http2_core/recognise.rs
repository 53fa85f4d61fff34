//! Recognises a server of HTTP/2 by its first bytes.

use super::frame::{ACK, FRAME_HEAD_BYTES, SETTINGS};

/// The server's preface is a SETTINGS frame on stream 0 (RFC 9113, sections 3.4 and 4.1): a length
/// of three bytes, its type, flags without ACK, and the stream. False if more bytes are needed.
///
/// # Errors
/// What the server sends instead, in words.
pub(crate) fn recognise(head: &[u8]) -> Result<bool, String> {
    let start = head[..head.len().min(SHOWN_BYTES_MAX)].escape_ascii();
    if head.starts_with(b"HTTP/1") {
        return Err(format!(
            "it answers in HTTP/1: \"{start}\"; HTTP/2 without TLS needs a server that expects it"
        ));
    }
    let could_be_http1 = head.iter().zip(b"HTTP/1").all(|(byte, due)| byte == due);
    match head {
        [_, _, _, SETTINGS, flags, 0, 0, 0, 0, ..] if flags & ACK == 0 => Ok(true),
        _ if head.len() < FRAME_HEAD_BYTES && could_be_http1 => Ok(false),
        [_, _, _, kind, ..] if *kind != SETTINGS => Err(format!("it starts with \"{start}\"")),
        _ if head.len() < FRAME_HEAD_BYTES => Ok(false),
        _ => Err(format!("it starts with \"{start}\"")),
    }
}

/// Most bytes of an unknown protocol that are shown.
const SHOWN_BYTES_MAX: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_recognised_by_its_settings() {
        let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 200];
        for length in 0..9 {
            assert_eq!(recognise(&settings[..length]), Ok(false), "{length}");
        }
        assert_eq!(recognise(&settings), Ok(true));
        for (other, says) in [
            (&b"HTTP/1.1 400 Bad Request\r\n"[..], "answers in HTTP/1"),
            (b"220 mail.example ESMTP", "starts with"),
            (&[0, 0, 0, 4, 1, 0, 0, 0, 0], "starts with"),
            (&[0, 0, 0, 4, 0, 0, 0, 0, 1], "starts with"),
        ] {
            let saw = recognise(other).unwrap_err();
            assert!(saw.contains(says), "{saw}");
        }
        assert_eq!(recognise(b"HTT"), Ok(false));
        assert_eq!(recognise(b"HTTP/"), Ok(false));
    }
}
