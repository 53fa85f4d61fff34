//! The event stream (WHATWG HTML, section 9.2.6): events are written, and a stream is parsed in
//! pieces of any size.

/// The media type of an event stream.
pub const KIND: &str = "text/event-stream";

/// A comment that keeps a connection from being idle.
pub const COMMENT: &[u8] = b":\n";

/// Appends an event. An empty type is `message`, and `id` is left out if there is none. The body
/// must hold no carriage return: it would end a line, and come out as a line feed.
pub fn put_event(out: &mut Vec<u8>, id: Option<u64>, kind: &str, body: &[u8]) {
    out.reserve(body.len() + FIELD_BYTES);
    if let Some(id) = id {
        out.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    if !kind.is_empty() {
        out.extend_from_slice(format!("event: {kind}\n").as_bytes());
    }
    for line in body.split(|byte| *byte == b'\n') {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    out.push(b'\n');
}

/// Appends the reconnection time that a client is to keep.
pub fn put_retry(out: &mut Vec<u8>, milliseconds: u64) {
    out.extend_from_slice(format!("retry: {milliseconds}\n\n").as_bytes());
}

/// True if a body comes out of an event as it went in.
pub fn can_carry(body: &[u8]) -> bool {
    !body.contains(&b'\r') && std::str::from_utf8(body).is_ok()
}

/// What a stream brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'i> {
    /// An event.
    Event {
        /// Its type; empty is `message`.
        kind: &'i [u8],
        /// Its lines of data, with line feeds between them.
        data: &'i [u8],
    },
    /// A reconnection time in milliseconds.
    Retry(u64),
}

/// An event or a line beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of more than {bytes_max} bytes")]
pub struct TooLong {
    /// The limit in bytes.
    pub bytes_max: usize,
}

/// Parser of one stream.
#[derive(Clone, Debug)]
pub struct Parser {
    bytes_max: usize,
    /// A line so far.
    line: Vec<u8>,
    /// The event so far: each line of data with a line feed.
    data: Vec<u8>,
    kind: Vec<u8>,
    /// The ID of the event that is being read, which later events without one have too.
    next_id: Vec<u8>,
    id: Vec<u8>,
    /// The last line ended with a carriage return: a line feed belongs to it.
    skips_feed: bool,
    is_first_line: bool,
}

impl Parser {
    /// A parser of a new stream, which accepts lines and events of `bytes_max`. `id` is the last
    /// event's on an earlier connection; empty if there is none.
    pub fn new(bytes_max: usize, id: Vec<u8>) -> Parser {
        Parser {
            bytes_max,
            line: Vec::new(),
            data: Vec::new(),
            kind: Vec::new(),
            next_id: id.clone(),
            id,
            skips_feed: false,
            is_first_line: true,
        }
    }

    /// The ID of the last event, for Last-Event-ID; empty if there is none.
    pub fn last_id(&self) -> &[u8] {
        &self.id
    }

    /// True between events: nothing that was read would be lost.
    pub fn is_between_events(&self) -> bool {
        self.line.is_empty() && self.data.is_empty()
    }

    /// Takes all of `input`, and hands over what it completes.
    ///
    /// # Errors
    /// A line or an event beyond the limit; nothing may be taken after that.
    pub fn take(
        &mut self,
        mut input: &[u8],
        each: &mut dyn FnMut(Item<'_>),
    ) -> Result<(), TooLong> {
        loop {
            if self.skips_feed && !input.is_empty() {
                self.skips_feed = false;
                input = input.strip_prefix(b"\n").unwrap_or(input);
            }
            let end = input.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = &input[..end.unwrap_or(input.len())];
            if self.line.len() + part.len() + self.data.len() > self.bytes_max {
                return Err(TooLong { bytes_max: self.bytes_max });
            }
            let Some(end) = end else {
                self.line.extend_from_slice(part);
                return Ok(());
            };
            self.skips_feed = input[end] == b'\r';
            input = &input[end + 1..];
            if self.line.is_empty() {
                self.end_line(part, each);
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(part);
                self.end_line(&line, each);
                line.clear();
                self.line = line;
            }
        }
    }

    fn end_line(&mut self, line: &[u8], each: &mut dyn FnMut(Item<'_>)) {
        let is_first = std::mem::replace(&mut self.is_first_line, false);
        let line = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first).unwrap_or(line);
        if line.is_empty() {
            return self.dispatch(each);
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            // A comment.
            Some(0) => return,
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.kind = value.to_vec(),
            b"id" if !value.contains(&0) => {
                self.next_id.clear();
                self.next_id.extend_from_slice(value);
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let text = std::str::from_utf8(value).unwrap_or_default();
                each(Item::Retry(text.parse().unwrap_or(u64::MAX)));
            }
            _ => {}
        }
    }

    /// An empty line ends an event; without data there is none.
    fn dispatch(&mut self, each: &mut dyn FnMut(Item<'_>)) {
        self.id.clear();
        self.id.extend_from_slice(&self.next_id);
        if !self.data.is_empty() {
            let data = &self.data[..self.data.len() - 1];
            each(Item::Event { kind: &self.kind, data });
        }
        self.data.clear();
        self.kind.clear();
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes of an event besides a body of one line.
const FIELD_BYTES: usize = 64;
