//! Requests of a client: an array of bulk strings, or a line.

use std::ops::Range;

use super::flaw::Flaw;
use super::token::{Token, read_token};
use super::{ELEMENTS_MAX, LINE_BYTES_MAX};

/// Limits of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestMax {
    /// Bytes of one bulk string: `proto-max-bulk-len` of Redis.
    pub bulk_bytes: usize,
    /// Bytes of the whole request: `client-query-buffer-limit` of Redis.
    pub bytes: usize,
}

/// Reads the request that `input` begins with: fills `words` with the places of its words and
/// returns its number of bytes; `None` if it is incomplete. An empty request has no words.
///
/// # Errors
/// Bytes that are not a request, or one above the limits.
pub fn read_request(
    input: &[u8],
    most: RequestMax,
    words: &mut Vec<Range<usize>>,
) -> Result<Option<usize>, Flaw> {
    words.clear();
    match input.first() {
        None => Ok(None),
        Some(b'*') => read_array(input, most, words),
        Some(_) => read_inline(input, words),
    }
}

fn read_array(
    input: &[u8],
    most: RequestMax,
    words: &mut Vec<Range<usize>>,
) -> Result<Option<usize>, Flaw> {
    let Some((head, mut at)) = read_token(input, most.bulk_bytes)? else { return Ok(None) };
    let count = match head {
        Token::Array(count) if u64::from(count) <= ELEMENTS_MAX => count,
        Token::Null => 0,
        _ => return Err(Flaw::Elements),
    };
    for _ in 0..count {
        let rest = &input[at..];
        let Some(kind) = rest.first() else { return Ok(None) };
        if *kind != b'$' {
            return Err(Flaw::NotBulk(*kind));
        }
        let Some((token, bytes)) = read_token(rest, most.bulk_bytes)? else {
            return too_large(rest, at, most);
        };
        let Token::Bulk(word) = token else { return Err(Flaw::BulkLength) };
        let end = at + bytes - 2;
        words.push(end - word.len()..end);
        at += bytes;
        if at > most.bytes {
            return Err(Flaw::Bytes);
        }
    }
    Ok(Some(at))
}

/// What is incomplete may grow to the limit.
fn too_large(rest: &[u8], before: usize, most: RequestMax) -> Result<Option<usize>, Flaw> {
    match before + rest.len() > most.bytes {
        true => Err(Flaw::Bytes),
        false => Ok(None),
    }
}

/// A line of words with spaces between them, for people with a terminal. Quotes are part of words.
fn read_inline(input: &[u8], words: &mut Vec<Range<usize>>) -> Result<Option<usize>, Flaw> {
    let window = &input[..input.len().min(LINE_BYTES_MAX)];
    let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
        return if window.len() < LINE_BYTES_MAX { Ok(None) } else { Err(Flaw::Line) };
    };
    let mut start = None;
    for (at, byte) in input[..=end].iter().enumerate() {
        match (byte.is_ascii_whitespace(), start) {
            (false, None) => start = Some(at),
            (true, Some(from)) => {
                words.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    Ok(Some(end + 1))
}
