//! Values of a server: one token after the other, and whole replies.

use super::flaw::Flaw;
use super::{ELEMENTS_MAX, LINE_BYTES_MAX};

/// A value without elements, or the head of one with elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// `+OK`.
    Simple(&'a [u8]),
    /// `-ERR text`, also as `!` of RESP 3.
    Error(&'a [u8]),
    /// `:7`.
    Integer(i64),
    /// `$5`, also as `=` of RESP 3, without its format.
    Bulk(&'a [u8]),
    /// `$-1`, `*-1`, and `_` of RESP 3.
    Null,
    /// `#t`.
    Boolean(bool),
    /// `,1.5`, as written.
    Double(&'a [u8]),
    /// `(3492890328409238509324850943850943825024385`, as written.
    BigNumber(&'a [u8]),
    /// `*2`: that many values follow.
    Array(u32),
    /// `%2`: that many pairs follow.
    Map(u32),
    /// `~2`: that many values follow.
    Set(u32),
    /// `>2`: that many values follow, without a request for them.
    Push(u32),
    /// `|1`: that many pairs follow, and then the value that they are about.
    Attribute(u32),
}

impl Token<'_> {
    /// Returns its type in words, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Token::Simple(_) => "a simple string",
            Token::Error(_) => "an error",
            Token::Integer(_) => "an integer",
            Token::Bulk(_) => "a bulk string",
            Token::Null => "a null",
            Token::Boolean(_) => "a boolean",
            Token::Double(_) => "a double",
            Token::BigNumber(_) => "a big number",
            Token::Array(_) => "an array",
            Token::Map(_) => "a map",
            Token::Set(_) => "a set",
            Token::Push(_) => "a push",
            Token::Attribute(_) => "an attribute",
        }
    }

    /// Number of values that follow and belong to it.
    fn elements(self) -> u64 {
        match self {
            Token::Array(count) | Token::Set(count) | Token::Push(count) => count.into(),
            Token::Map(pairs) => 2 * u64::from(pairs),
            Token::Attribute(pairs) => 2 * u64::from(pairs) + 1,
            _ => 0,
        }
    }
}

/// A whole reply: its first token, and the values that belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// First token; attributes before it are left out.
    pub head: Token<'a>,
    /// Its elements.
    pub values: Values<'a>,
}

/// Values one after the other, all of them whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values<'a> {
    rest: &'a [u8],
}

impl<'a> Values<'a> {
    /// Returns the next token and leaves out attributes.
    pub fn token(&mut self) -> Option<Token<'a>> {
        loop {
            let (token, bytes) = read_token(self.rest, usize::MAX).ok()??;
            self.rest = self.rest.get(bytes..)?;
            match token {
                Token::Attribute(pairs) => (0..2 * pairs).try_for_each(|_| self.skip())?,
                token => return Some(token),
            }
        }
    }

    /// Leaves out the next value with all its elements.
    pub fn skip(&mut self) -> Option<()> {
        let mut left = 1u64;
        while left > 0 {
            let (token, bytes) = read_token(self.rest, usize::MAX).ok()??;
            self.rest = self.rest.get(bytes..)?;
            left = left - 1 + token.elements();
        }
        Some(())
    }

    /// Returns the next value if it is a string.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        match self.token()? {
            Token::Bulk(text) | Token::Simple(text) => Some(text),
            _ => None,
        }
    }
}

/// Reads the reply that `input` begins with, and its number of bytes; `None` if it is incomplete.
///
/// # Errors
/// Bytes that are not RESP, or a value of more than `bytes_max`.
pub fn read_reply(input: &[u8], bytes_max: usize) -> Result<Option<(Reply<'_>, usize)>, Flaw> {
    let (mut at, mut left, mut tokens) = (0usize, 1u64, 0u64);
    while left > 0 {
        let rest = input.get(at..).unwrap_or_default();
        let Some((token, bytes)) = read_token(rest, bytes_max)? else { return Ok(None) };
        at += bytes;
        tokens += 1;
        left = left - 1 + token.elements();
        if left + tokens > ELEMENTS_MAX {
            return Err(Flaw::Elements);
        }
        if at > bytes_max.saturating_add(LINE_BYTES_MAX) {
            return Err(Flaw::Bytes);
        }
    }
    let mut values = Values { rest: &input[..at] };
    let head = values.token().ok_or(Flaw::Number)?;
    Ok(Some((Reply { head, values }, at)))
}

/// Reads one token and its number of bytes; `None` if it is incomplete.
///
/// # Errors
/// Bytes that are not RESP, or a string of more than `bytes_max`.
pub fn read_token(input: &[u8], bytes_max: usize) -> Result<Option<(Token<'_>, usize)>, Flaw> {
    let Some(kind) = input.first() else { return Ok(None) };
    if !b"+-:$*_#,(!=%~>|".contains(kind) {
        return Err(Flaw::Type(*kind));
    }
    let Some(line) = read_line(&input[1..])? else { return Ok(None) };
    let used = 1 + line.len() + 2;
    let token = match kind {
        b'+' => Token::Simple(line),
        b'-' => Token::Error(line),
        b':' => Token::Integer(integer(line)?),
        b',' => Token::Double(line),
        b'(' => Token::BigNumber(line),
        b'_' if line.is_empty() => Token::Null,
        b'#' if line == b"t" || line == b"f" => Token::Boolean(line == b"t"),
        b'_' | b'#' => return Err(Flaw::Number),
        b'$' | b'!' | b'=' => return bulk(*kind, &input[used..], line, bytes_max, used),
        _ => aggregate(*kind, line)?,
    };
    Ok(Some((token, used)))
}

fn aggregate(kind: u8, line: &[u8]) -> Result<Token<'static>, Flaw> {
    let Some(count) = length(line, Flaw::Elements)? else { return Ok(Token::Null) };
    let count = u32::try_from(count).ok().filter(|count| u64::from(*count) <= ELEMENTS_MAX);
    let count = count.ok_or(Flaw::Elements)?;
    Ok(match kind {
        b'*' => Token::Array(count),
        b'%' => Token::Map(count),
        b'~' => Token::Set(count),
        b'>' => Token::Push(count),
        _ => Token::Attribute(count),
    })
}

fn bulk<'a>(
    kind: u8,
    rest: &'a [u8],
    line: &[u8],
    bytes_max: usize,
    used: usize,
) -> Result<Option<(Token<'a>, usize)>, Flaw> {
    let Some(length) = length(line, Flaw::BulkLength)? else {
        return Ok(Some((Token::Null, used)));
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= bytes_max);
    let length = length.ok_or(Flaw::BulkLength)?;
    let Some((text, after)) = rest.split_at_checked(length) else { return Ok(None) };
    let Some(end) = after.first_chunk::<2>() else { return Ok(None) };
    if end != b"\r\n" {
        return Err(Flaw::BulkEnd);
    }
    let token = match kind {
        b'!' => Token::Error(text),
        // Three letters of format and a colon come first.
        b'=' => Token::Bulk(text.get(4..).ok_or(Flaw::BulkLength)?),
        _ => Token::Bulk(text),
    };
    Ok(Some((token, used + length + 2)))
}

/// The line at the start of `input` without its end; `None` if it is incomplete.
fn read_line(input: &[u8]) -> Result<Option<&[u8]>, Flaw> {
    let window = &input[..input.len().min(LINE_BYTES_MAX)];
    match window.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        Some(at) => match (window[at], input.get(at + 1)) {
            (b'\r', Some(b'\n')) => Ok(Some(&input[..at])),
            (b'\r', None) => Ok(None),
            _ => Err(Flaw::LineEnd),
        },
        None if input.len() >= LINE_BYTES_MAX => Err(Flaw::Line),
        None => Ok(None),
    }
}

/// A length; `None` for -1.
fn length(line: &[u8], flaw: Flaw) -> Result<Option<u64>, Flaw> {
    match line {
        b"-1" => Ok(None),
        b"?" => Err(Flaw::Streamed),
        _ if line.is_empty() || line.len() > 19 || !line.iter().all(u8::is_ascii_digit) => {
            Err(flaw)
        }
        _ => Ok(Some(line.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))),
    }
}

fn integer(line: &[u8]) -> Result<i64, Flaw> {
    let text = std::str::from_utf8(line).map_err(|_| Flaw::Number)?;
    text.parse().map_err(|_| Flaw::Number)
}
