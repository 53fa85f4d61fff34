//! Bodies of messages: content from a source, padding to a size, and the mark.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::mark::{Before, JSON_END, MARK_BYTES, Mark};
use crate::pieces::BodyMaker;
use crate::seal::{SEALED, Seal, Sealer};
use crate::units::{Bytes, Nanos};

/// Source of the content of bodies.
///
/// # Examples
///
/// ```
/// use weigh_model::body::BodySource;
///
/// let body: BodySource = "template:{\"seq\":{seq}}".parse()?;
/// assert_eq!(body.unknown_placeholder(), None);
/// assert!("no-such-source".parse::<BodySource>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum BodySource {
    /// The built-in hydroponic readings: generated, one JSON object per message.
    Readings,
    /// Only filler; needs a size.
    Filler,
    /// This text.
    Text(String),
    /// This text with `{seq}`, `{client}` and `{time}` (Unix time of the due moment in ns).
    Template(String),
    /// The lines of this CSV or JSON-lines file, one per message, repeated.
    Lines(String),
    /// The bytes of this file.
    File(String),
    /// Any of the others, sealed message by message.
    Sealed(Seal, Box<BodySource>),
}

impl BodySource {
    /// The file that must be read before bodies can be composed.
    pub fn path(&self) -> Option<&str> {
        match self.content() {
            BodySource::Lines(path) | BodySource::File(path) => Some(path),
            _ => None,
        }
    }

    /// Returns the first `{word}` of a template that is not a placeholder.
    pub fn unknown_placeholder(&self) -> Option<&str> {
        let BodySource::Template(text) = self.content() else { return None };
        let places = text.match_indices('{').filter_map(|(at, _)| {
            let inside = &text[at + 1..at + 1 + text[at + 1..].find('}')?];
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            (!inside.is_empty() && inside.bytes().all(is_word)).then_some(inside)
        });
        let is_unknown = |word: &&str| !PLACEHOLDERS.contains(word);
        let mut unknown = places.filter(is_unknown);
        unknown.next()
    }

    /// Returns what is sealed; the source itself if it is not sealed.
    pub fn content(&self) -> &BodySource {
        match self {
            BodySource::Sealed(_, content) => content,
            plain => plain,
        }
    }

    /// Returns the kind of sealing, if bodies are sealed.
    pub fn seal(&self) -> Option<Seal> {
        match self {
            BodySource::Sealed(seal, _) => Some(*seal),
            _ => None,
        }
    }
}

impl FromStr for BodySource {
    type Err = String;
    fn from_str(text: &str) -> Result<BodySource, String> {
        let (name, argument) = text.split_once(':').unwrap_or((text, ""));
        match name {
            "readings" if argument.is_empty() => Ok(BodySource::Readings),
            "filler" if argument.is_empty() => Ok(BodySource::Filler),
            "text" => Ok(BodySource::Text(argument.to_owned())),
            "template" => Ok(BodySource::Template(argument.to_owned())),
            "lines" if !argument.is_empty() => Ok(BodySource::Lines(argument.to_owned())),
            "file" if !argument.is_empty() => Ok(BodySource::File(argument.to_owned())),
            _ if name.split(',').next() == Some(SEALED) => {
                let content = if argument.is_empty() { "readings" } else { argument };
                match content.parse()? {
                    BodySource::Sealed(..) => Err(format!(
                        "{text:?} is sealed twice: type sealed once, with its recipients"
                    )),
                    content => Ok(BodySource::Sealed(name.parse()?, Box::new(content))),
                }
            }
            _ => Err(format!(
                "unknown body {text:?}: type readings, filler, text:TEXT, template:TEXT, \
                 lines:FILE, file:FILE, or sealed:BODY"
            )),
        }
    }
}

impl fmt::Display for BodySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodySource::Readings => f.write_str("readings"),
            BodySource::Filler => f.write_str("filler"),
            BodySource::Text(text) => write!(f, "text:{text}"),
            BodySource::Template(text) => write!(f, "template:{text}"),
            BodySource::Lines(path) => write!(f, "lines:{path}"),
            BodySource::File(path) => write!(f, "file:{path}"),
            BodySource::Sealed(seal, content) => write!(f, "{seal}:{content}"),
        }
    }
}

impl Serialize for BodySource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BodySource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BodySource, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Makes bodies. One per shard; it allocates nothing per message, except for sealing.
#[derive(Clone, Debug)]
pub struct Composer {
    contents: Vec<Content>,
    template: bool,
    /// Seals what precedes the mark, and opens it at consumers.
    sealer: Option<Arc<dyn Sealer>>,
    size: Option<usize>,
    marked: bool,
    unix_start: u64,
    /// Bytes of the file that bodies are read from piece by piece, if they are.
    file_bytes: u64,
    /// True if bodies are made piece by piece.
    in_pieces: bool,
}

/// One of the contents that messages take in turn.
#[derive(Clone, Debug)]
struct Content {
    bytes: Vec<u8>,
    is_json: bool,
    /// The check value of everything before the mark, computed once for all messages; `None` if it
    /// differs between messages.
    before: Option<Before>,
}

impl Content {
    /// In a JSON object the mark is one more value, unless the whole is sealed.
    fn new(bytes: Vec<u8>, is_sealed: bool) -> Content {
        Content { is_json: !is_sealed && is_json_object(&bytes), bytes, before: None }
    }
}

impl Composer {
    /// Creates a composer for `source`, whose file (if it names one) or data set holds `content`.
    /// `largest` is the mark with the widest numbers of the trial, so that a template that outgrows
    /// `size` is found before anything starts. `unix_start_ns` is the Unix time at which the
    /// trial's clock stood at 0.
    ///
    /// # Errors
    /// If the content does not fit into the size or cannot be used, with what to type.
    pub fn new(
        source: &BodySource,
        content: &[u8],
        size: Option<Bytes>,
        largest: &Mark,
        unix_start_ns: u64,
    ) -> Result<Composer, String> {
        if source.seal().is_some() {
            return Err(format!("the body {source} needs a sealer"));
        }
        Composer::made(source, content, size, (largest, unix_start_ns), None)
    }

    /// Creates a composer whose bodies `sealer` seals, one by one as they are made. `size` is that
    /// of the body before it is sealed. The content is sealed; the mark, if there is room for one,
    /// follows the sealed object unencrypted.
    ///
    /// # Errors
    /// As [`Composer::new`].
    pub fn sealed(
        source: &BodySource,
        content: &[u8],
        size: Option<Bytes>,
        largest: &Mark,
        unix_start_ns: u64,
        sealer: Arc<dyn Sealer>,
    ) -> Result<Composer, String> {
        Composer::made(source.content(), content, size, (largest, unix_start_ns), Some(sealer))
    }

    fn made(
        source: &BodySource,
        content: &[u8],
        size: Option<Bytes>,
        (largest, unix_start_ns): (&Mark, u64),
        sealer: Option<Arc<dyn Sealer>>,
    ) -> Result<Composer, String> {
        let contents: Vec<Vec<u8>> = match source {
            BodySource::Filler | BodySource::Sealed(..) => vec![Vec::new()],
            BodySource::Text(text) | BodySource::Template(text) => vec![text.clone().into_bytes()],
            BodySource::File(_) => vec![content.to_vec()],
            BodySource::Readings | BodySource::Lines(_) => lines(content)?,
        };
        if *source == BodySource::Filler && size.is_none() {
            return Err("a filler body needs a size: type -s 64B".to_owned());
        }
        let is_sealed = sealer.is_some();
        let mut composer = Composer {
            contents: contents.into_iter().map(|one| Content::new(one, is_sealed)).collect(),
            template: matches!(source, BodySource::Template(_)),
            sealer,
            size: size.map(|Bytes(size)| size as usize),
            marked: true,
            unix_start: unix_start_ns,
            file_bytes: 0,
            in_pieces: false,
        };
        composer.check_sizes(source, largest)?;
        composer.precompute();
        Ok(composer)
    }

    /// Creates a composer for bodies of any size, which [`Composer::begin`] makes piece by piece. A
    /// file ([`BodySource::File`]) of `file_bytes` bytes is not in memory: the caller that makes
    /// the pieces reads it. Its mark follows it, whatever it holds.
    ///
    /// # Errors
    /// As [`Composer::new`].
    pub fn in_pieces(
        source: &BodySource,
        (content, file_bytes): (&[u8], u64),
        size: Option<Bytes>,
        largest: &Mark,
        unix_start_ns: u64,
    ) -> Result<Composer, String> {
        let mut composer = Composer::new(source, content, None, largest, unix_start_ns).or_else(
            |error| match (source, size) {
                (BodySource::Filler, Some(_)) => {
                    let none = BodySource::Text(String::new());
                    Composer::new(&none, content, None, largest, unix_start_ns)
                }
                _ => Err(error),
            },
        )?;
        composer.size = size.map(|Bytes(size)| size as usize);
        composer.file_bytes = file_bytes;
        composer.in_pieces = true;
        composer.check_sizes(source, largest)?;
        Ok(composer)
    }

    /// True if bodies are made piece by piece.
    pub fn makes_pieces(&self) -> bool {
        self.in_pieces
    }

    /// Begins the body of the message `mark`, made piece by piece.
    pub fn begin(&self, mark: &Mark) -> BodyMaker {
        let content = self.content(mark);
        let mut head = Vec::new();
        if self.template {
            self.render(&content.bytes, mark, &mut head);
        } else {
            head.extend_from_slice(&content.bytes);
        }
        let is_json = self.marked && content.is_json;
        let mut key: &'static [u8] = b"";
        if is_json {
            head.pop();
            key = if head.trim_ascii() == b"{" { JSON_MARK_FIRST } else { JSON_MARK };
        }
        let tail = match (self.marked, is_json) {
            (false, _) => 0,
            (true, false) => MARK_BYTES,
            (true, true) => key.len() + MARK_BYTES + JSON_END.len(),
        };
        let lead = head.len() as u64 + self.file_bytes;
        let whole = self.size.map_or(lead + tail as u64, |size| size as u64);
        let filler = whole.saturating_sub(lead + tail as u64);
        let end = if is_json { JSON_END } else { b"" };
        let mark = self.marked.then_some((*mark, end));
        BodyMaker::new((head, key), self.file_bytes, (filler, is_json), mark)
    }

    /// False if bodies are too small for a mark and messages must be identified by connection and
    /// order.
    pub fn is_marked(&self) -> bool {
        self.marked
    }

    /// Bytes of the largest body.
    pub fn bytes_max(&self) -> usize {
        let file_bytes = self.file_bytes as usize;
        let widest = |content: &Content| content.bytes.len() + file_bytes + mark_overhead(content);
        let plain =
            self.size.unwrap_or_else(|| self.contents.iter().map(widest).max().unwrap_or(0));
        match &self.sealer {
            Some(sealer) => {
                let mark_bytes = if self.marked { MARK_BYTES } else { 0 };
                sealer.object_bytes(plain - mark_bytes) + mark_bytes
            }
            None => plain,
        }
    }

    /// True if the body of the message `mark` opens with the key of the consumer of this index, or
    /// is not sealed.
    pub fn opens(&self, body: &[u8], consumer: u32, mark: &Mark) -> bool {
        let Some(sealer) = &self.sealer else { return true };
        let mark_bytes = if self.marked { MARK_BYTES } else { 0 };
        let object = body.len().checked_sub(mark_bytes).map(|end| &body[..end]);
        object.is_some_and(|object| sealer.opens(object, consumer, !mark.warmup))
    }

    /// Appends the body of the message `mark` to `out`.
    pub fn compose(&self, mark: &Mark, out: &mut Vec<u8>) {
        let content = self.content(mark);
        let start = out.len();
        self.lead(content, mark, out);
        if let Some(sealer) = &self.sealer {
            let plain = out.split_off(start);
            sealer.seal(&plain, !mark.warmup, out);
        }
        if !self.marked {
            return;
        }
        let at = out.len() - start;
        out.resize(out.len() + MARK_BYTES, 0);
        if content.is_json {
            out.extend_from_slice(JSON_END);
        }
        let body = &mut out[start..];
        match content.before {
            Some(before) => mark.seal_behind(before, body, at),
            None => mark.seal(body, at),
        }
    }

    /// True if every body is sealed when it is made.
    #[inline]
    pub fn seals(&self) -> bool {
        self.sealer.is_some()
    }

    /// The content of the message `mark`.
    #[inline]
    fn content(&self, mark: &Mark) -> &Content {
        match self.contents.len() {
            1 => &self.contents[0],
            several => &self.contents[(mark.sequence % several as u64) as usize],
        }
    }

    /// Appends everything that precedes the mark; without a mark, everything.
    fn lead(&self, content: &Content, mark: &Mark, out: &mut Vec<u8>) {
        let start = out.len();
        if self.template {
            self.render(&content.bytes, mark, out);
        } else {
            out.extend_from_slice(&content.bytes);
        }
        let is_json = self.marked && content.is_json;
        if is_json {
            out.pop();
        }
        let tail = match (self.marked, is_json) {
            (false, _) => 0,
            (true, false) => MARK_BYTES,
            (true, true) => JSON_MARK.len() + MARK_BYTES + JSON_END.len(),
        };
        if let Some(size) = self.size {
            let filler = if is_json { b' ' } else { b'.' };
            out.resize((start + size - tail).max(out.len()), filler);
        }
        if is_json {
            let is_empty = out[start..].trim_ascii() == b"{";
            out.extend_from_slice(if is_empty { JSON_MARK_FIRST } else { JSON_MARK });
        }
    }

    /// Computes in advance what is the same in all messages of a content.
    fn precompute(&mut self) {
        if self.template || self.sealer.is_some() {
            return;
        }
        let mut lead = Vec::new();
        for place in 0..self.contents.len() {
            lead.clear();
            self.lead(&self.contents[place], &widest_mark(1, 0), &mut lead);
            self.contents[place].before = Some(Before::of(&lead));
        }
    }

    fn check_sizes(&mut self, source: &BodySource, largest: &Mark) -> Result<(), String> {
        let Some(size) = self.size else { return Ok(()) };
        let mut rendered = Vec::new();
        let mut widest = 0;
        let mut widest_marked = 0;
        for content in &self.contents {
            rendered.clear();
            if self.template {
                self.render(&content.bytes, largest, &mut rendered);
            } else {
                rendered.extend_from_slice(&content.bytes);
            }
            let content_bytes = rendered.len() + self.file_bytes as usize;
            widest = widest.max(content_bytes);
            widest_marked = widest_marked.max(content_bytes + mark_overhead(content));
        }
        if widest > size {
            return Err(format!(
                "the body {source} takes {widest} bytes, more than the size of {size}: \
                 type -s {widest_marked}B or leave the size out"
            ));
        }
        self.marked = widest_marked <= size;
        Ok(())
    }

    fn render(&self, template: &[u8], mark: &Mark, out: &mut Vec<u8>) {
        let mut rest = template;
        while let Some(brace) = rest.iter().position(|byte| *byte == b'{') {
            out.extend_from_slice(&rest[..brace]);
            rest = &rest[brace..];
            let known = [
                (&b"{seq}"[..], mark.sequence),
                (b"{client}", u64::from(mark.producer)),
                (b"{time}", self.unix_start + mark.due.0),
            ];
            match known.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, value)) => {
                    out.extend_from_slice(value.to_string().as_bytes());
                    rest = &rest[name.len()..];
                }
                None => {
                    out.push(b'{');
                    rest = &rest[1..];
                }
            }
        }
        out.extend_from_slice(rest);
    }
}

/// Returns the widest mark of a trial with `producers` producers.
pub fn widest_mark(producers: u32, messages: u64) -> Mark {
    Mark {
        tag: 0,
        warmup: false,
        producer: producers.saturating_sub(1),
        sequence: messages,
        due: Nanos(0),
        lag: Nanos(0),
        own_lag: Nanos(0),
    }
}

/// True for content that opens and closes like a JSON object; placeholders alone do not count.
fn is_json_object(content: &[u8]) -> bool {
    let inside = content.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}"));
    inside.is_some_and(|inside| matches!(inside.trim_ascii_start().first(), None | Some(b'"')))
}

fn mark_overhead(content: &Content) -> usize {
    MARK_BYTES + if content.is_json { JSON_MARK.len() + JSON_END.len() - 1 } else { 0 }
}

fn lines(content: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let lines: Vec<Vec<u8>> = content
        .split(|byte| *byte == b'\n')
        .map(|line| line.trim_ascii_end().to_vec())
        .filter(|line| !line.is_empty())
        .collect();
    if lines.is_empty() { Err("the body file has no lines".to_owned()) } else { Ok(lines) }
}

/// Placeholders that a template may have in braces.
pub const PLACEHOLDERS: [&str; 3] = ["seq", "client", "time"];

const JSON_MARK: &[u8] = b",\"mark\":\"";
const JSON_MARK_FIRST: &[u8] = b" \"mark\":\"";

#[cfg(test)]
mod tests;
