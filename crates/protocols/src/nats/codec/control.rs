//! Control lines: the word at their beginning, in either case, and fields separated by spaces or
//! tabs.

use super::decimal::decimal;
use super::flaw::Flaw;
use super::lines::{Limits, Sizes, Subscribe};

/// A control line, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head<'a> {
    /// `INFO` of a server: JSON.
    Info(&'a [u8]),
    /// `MSG` or `HMSG` of a server.
    Message {
        /// Subject on which it was published.
        subject: &'a [u8],
        /// The subscription's identifier.
        sid: &'a [u8],
        /// Subject for an answer, or empty.
        reply: &'a [u8],
        /// Sizes of its payload.
        sizes: Sizes,
    },
    /// `+OK` of a server.
    Okay,
    /// `-ERR` of a server.
    Error(&'a [u8]),
    /// `CONNECT` of a client: JSON.
    Connect(&'a [u8]),
    /// `PUB` or `HPUB` of a client.
    Publish {
        /// Subject.
        subject: &'a [u8],
        /// Subject for an answer, or empty.
        reply: &'a [u8],
        /// Sizes of its payload.
        sizes: Sizes,
    },
    /// `SUB` of a client.
    Subscribe(Subscribe<'a>),
    /// `UNSUB` of a client: identifier, and after how many messages.
    Unsubscribe(&'a [u8], Option<u64>),
    /// `PING` of either side.
    Ping,
    /// `PONG` of either side.
    Pong,
}

/// Control line of a server at the start of `input`, and its bytes; `None` if it is not complete.
///
/// # Errors
/// What breaks the protocol.
pub fn head_of_server<'a>(
    input: &'a [u8],
    limits: &Limits,
) -> Result<Option<(Head<'a>, usize)>, Flaw> {
    let Some((line, bytes)) = line_of(input, limits, is_of_server)? else { return Ok(None) };
    let (word, rest) = split_word(line);
    let mut room = [0; WORD_BYTES_MAX];
    let head = match upper(word, &mut room)? {
        b"MSG" => message(rest, false, limits)?,
        b"HMSG" => message(rest, true, limits)?,
        b"PING" => Head::Ping,
        b"PONG" => Head::Pong,
        b"+OK" => Head::Okay,
        b"-ERR" => Head::Error(
            rest.strip_prefix(b"'").map_or(rest, |rest| rest.strip_suffix(b"'").unwrap_or(rest)),
        ),
        b"INFO" => Head::Info(rest),
        _ => return Err(Flaw::UnknownOperation),
    };
    Ok(Some((head, bytes)))
}

/// Control line of a client at the start of `input`, and its bytes; `None` if it is not complete.
///
/// # Errors
/// What breaks the protocol.
pub fn head_of_client<'a>(
    input: &'a [u8],
    limits: &Limits,
) -> Result<Option<(Head<'a>, usize)>, Flaw> {
    let Some((line, bytes)) = line_of(input, limits, is_of_client)? else { return Ok(None) };
    let (word, rest) = split_word(line);
    let mut room = [0; WORD_BYTES_MAX];
    let head = match upper(word, &mut room)? {
        b"PUB" => publish(rest, false, limits)?,
        b"HPUB" => publish(rest, true, limits)?,
        b"SUB" => subscribe(rest)?,
        b"UNSUB" => unsubscribe(rest)?,
        b"PING" => Head::Ping,
        b"PONG" => Head::Pong,
        b"CONNECT" => Head::Connect(rest),
        _ => return Err(Flaw::UnknownOperation),
    };
    Ok(Some((head, bytes)))
}

/// The first line without its end, and its bytes with it. What cannot become a line is an error at
/// once: no peer is waited for that speaks something else.
fn line_of<'a>(
    input: &'a [u8],
    limits: &Limits,
    may_begin: fn(&[u8]) -> bool,
) -> Result<Option<(&'a [u8], usize)>, Flaw> {
    let window = &input[..input.len().min(limits.line_bytes_max)];
    let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
        let (word, _) = split_word(window);
        if !may_begin(word) {
            return Err(Flaw::UnknownOperation);
        }
        return match input.len() < limits.line_bytes_max {
            true => Ok(None),
            false => Err(Flaw::LineTooLong(limits.line_bytes_max)),
        };
    };
    let line = &window[..end];
    Ok(Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1)))
}

fn is_of_server(word: &[u8]) -> bool {
    const WORDS: [&[u8]; 7] = [b"MSG", b"HMSG", b"INFO", b"PING", b"PONG", b"+OK", b"-ERR"];
    begins_one(&WORDS, word)
}

fn is_of_client(word: &[u8]) -> bool {
    const WORDS: [&[u8]; 7] = [b"PUB", b"HPUB", b"SUB", b"UNSUB", b"PING", b"PONG", b"CONNECT"];
    begins_one(&WORDS, word)
}

/// True if `word`, perhaps with a carriage return behind it, is the beginning of one of `words`.
fn begins_one(words: &[&[u8]], word: &[u8]) -> bool {
    let word = word.strip_suffix(b"\r").unwrap_or(word);
    words
        .iter()
        .any(|known| known.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)))
}

/// The first field, and what follows it without the spaces between.
fn split_word(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(|byte| is_space(*byte)).unwrap_or(line.len());
    (&line[..end], line[end..].trim_ascii())
}

/// The word in upper case.
fn upper<'r>(word: &[u8], room: &'r mut [u8; WORD_BYTES_MAX]) -> Result<&'r [u8], Flaw> {
    let place = room.get_mut(..word.len()).ok_or(Flaw::UnknownOperation)?;
    place.copy_from_slice(word);
    place.make_ascii_uppercase();
    Ok(place)
}

/// The longest word is CONNECT.
const WORD_BYTES_MAX: usize = 7;

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// At most five fields; the last is true if there were more.
fn fields(rest: &[u8]) -> ([&[u8]; 5], usize, bool) {
    let mut all = [&b""[..]; 5];
    let mut count = 0;
    for field in rest.split(|byte| is_space(*byte)).filter(|field| !field.is_empty()) {
        let Some(place) = all.get_mut(count) else { return (all, count, true) };
        *place = field;
        count += 1;
    }
    (all, count, false)
}

/// `MSG subject sid [reply] bytes`, `HMSG subject sid [reply] header-bytes bytes`.
fn message<'a>(rest: &'a [u8], has_headers: bool, limits: &Limits) -> Result<Head<'a>, Flaw> {
    let name = if has_headers { "HMSG" } else { "MSG" };
    let wrong = Flaw::Fields(name);
    let (of, count, is_more) = fields(rest);
    let sized = 2 + usize::from(has_headers);
    let reply = match count {
        _ if is_more => return Err(wrong),
        _ if count == 1 + sized => &b""[..],
        _ if count == 2 + sized => of[2],
        _ => return Err(wrong),
    };
    let sizes = sizes(&of[..count], has_headers, limits, wrong)?;
    Ok(Head::Message { subject: of[0], sid: of[1], reply, sizes })
}

/// `PUB subject [reply] bytes`, `HPUB subject [reply] header-bytes bytes`.
fn publish<'a>(rest: &'a [u8], has_headers: bool, limits: &Limits) -> Result<Head<'a>, Flaw> {
    let name = if has_headers { "HPUB" } else { "PUB" };
    let wrong = Flaw::Fields(name);
    let (of, count, is_more) = fields(rest);
    let sized = 1 + usize::from(has_headers);
    let reply = match count {
        _ if is_more => return Err(wrong),
        _ if count == 1 + sized => &b""[..],
        _ if count == 2 + sized => of[1],
        _ => return Err(wrong),
    };
    let sizes = sizes(&of[..count], has_headers, limits, wrong)?;
    Ok(Head::Publish { subject: of[0], reply, sizes })
}

/// The sizes in the last field, or the last two.
fn sizes(fields: &[&[u8]], has_headers: bool, limits: &Limits, wrong: Flaw) -> Result<Sizes, Flaw> {
    let number = |from_end: usize| {
        let field = fields.len().checked_sub(from_end).and_then(|at| fields.get(at));
        field.and_then(|text| decimal(text)).ok_or(wrong)
    };
    let total = number(1)?;
    let headers = if has_headers { number(2)? } else { 0 };
    let max = limits.payload_bytes_max as u64;
    if total > max {
        return Err(Flaw::PayloadTooLarge(total, max));
    }
    if headers > total || (has_headers && headers == 0) {
        return Err(wrong);
    }
    Ok(Sizes { headers: headers as usize, total: total as usize })
}

/// `SUB subject [queue] sid`.
fn subscribe(rest: &[u8]) -> Result<Head<'_>, Flaw> {
    match fields(rest) {
        ([subject, sid, ..], 2, false) => {
            Ok(Head::Subscribe(Subscribe { subject, queue: b"", sid }))
        }
        ([subject, queue, sid, ..], 3, false) => {
            Ok(Head::Subscribe(Subscribe { subject, queue, sid }))
        }
        _ => Err(Flaw::Fields("SUB")),
    }
}

/// `UNSUB sid [max_msgs]`.
fn unsubscribe(rest: &[u8]) -> Result<Head<'_>, Flaw> {
    match fields(rest) {
        ([sid, ..], 1, false) => Ok(Head::Unsubscribe(sid, None)),
        ([sid, max, ..], 2, false) => {
            let max = decimal(max).ok_or(Flaw::Fields("UNSUB"))?;
            Ok(Head::Unsubscribe(sid, (max > 0).then_some(max)))
        }
        _ => Err(Flaw::Fields("UNSUB")),
    }
}
