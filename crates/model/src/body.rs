//! What messages are made of: content from a source, padding to a size, and the mark.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::mark::{JSON_END, MARK_BYTES, Mark};
use crate::units::{Bytes, Nanos};

/// Where the content of bodies comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum BodySource {
    /// The hydroponic readings that Weighbridge carries: generated, one JSON object per message.
    Readings,
    /// Nothing but filler; needs a size.
    Filler,
    /// This text.
    Text(String),
    /// This text with `{seq}`, `{client}` and `{time}` (Unix time of the due moment in ns).
    Template(String),
    /// The lines of this CSV or JSON-lines file, one per message, over and over.
    Lines(String),
    /// The bytes of this file.
    File(String),
}

impl BodySource {
    /// The file that must be read before bodies can be composed.
    pub fn path(&self) -> Option<&str> {
        match self {
            BodySource::Lines(path) | BodySource::File(path) => Some(path),
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
            _ => Err(format!(
                "{text:?} is no body: type readings, filler, text:TEXT, template:TEXT, \
                 lines:FILE or file:FILE"
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

/// Makes bodies. One per shard; it allocates nothing per message.
#[derive(Clone, Debug)]
pub struct Composer {
    contents: Vec<Content>,
    template: bool,
    size: Option<usize>,
    marked: bool,
    unix_start: u64,
}

/// One of the contents that messages take in turn.
#[derive(Clone, Debug)]
struct Content {
    bytes: Vec<u8>,
    is_json: bool,
    /// The check value of everything before the mark, so that it is not reckoned again for every
    /// message; `None` where it differs between messages.
    before: Option<u32>,
}

impl Content {
    fn new(bytes: Vec<u8>) -> Content {
        Content { is_json: is_json_object(&bytes), bytes, before: None }
    }
}

impl Composer {
    /// A composer for `source`, whose file (if it names one) or data set holds `content`.
    /// `largest` is the mark with the widest numbers that will be asked for, so that a template
    /// that outgrows `size` is found before anything starts. `unix_start_ns` is the Unix time
    /// at which the trial's clock stood at 0.
    pub fn new(
        source: &BodySource,
        content: &[u8],
        size: Option<Bytes>,
        largest: &Mark,
        unix_start_ns: u64,
    ) -> Result<Composer, String> {
        let contents: Vec<Vec<u8>> = match source {
            BodySource::Filler => vec![Vec::new()],
            BodySource::Text(text) | BodySource::Template(text) => vec![text.clone().into_bytes()],
            BodySource::File(_) => vec![content.to_vec()],
            BodySource::Readings | BodySource::Lines(_) => lines(content)?,
        };
        if *source == BodySource::Filler && size.is_none() {
            return Err("a filler body needs a size: type -s 64B".to_owned());
        }
        let mut composer = Composer {
            contents: contents.into_iter().map(Content::new).collect(),
            template: matches!(source, BodySource::Template(_)),
            size: size.map(|Bytes(size)| size as usize),
            marked: true,
            unix_start: unix_start_ns,
        };
        composer.check_sizes(source, largest)?;
        composer.foresee();
        Ok(composer)
    }

    /// False where bodies are too small for a mark and messages must be told apart by
    /// connection and order.
    pub fn is_marked(&self) -> bool {
        self.marked
    }

    /// Bytes of the largest body.
    pub fn bytes_max(&self) -> usize {
        let widest = |content: &Content| content.bytes.len() + mark_overhead(content);
        self.size.unwrap_or_else(|| self.contents.iter().map(widest).max().unwrap_or(0))
    }

    /// Appends the body of the message `mark` to `out`.
    pub fn compose(&self, mark: &Mark, out: &mut Vec<u8>) {
        let content = match self.contents.len() {
            1 => &self.contents[0],
            several => &self.contents[(mark.sequence % several as u64) as usize],
        };
        let start = out.len();
        self.lead(content, mark, out);
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

    /// Reckons beforehand what is the same in all messages of a content.
    fn foresee(&mut self) {
        if self.template {
            return;
        }
        let mut lead = Vec::new();
        for place in 0..self.contents.len() {
            lead.clear();
            self.lead(&self.contents[place], &widest_mark(1, 0), &mut lead);
            self.contents[place].before = Some(crc32fast::hash(&lead));
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
            widest = widest.max(rendered.len());
            widest_marked = widest_marked.max(rendered.len() + mark_overhead(content));
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

/// A mark for every message of a trial with `producers` producers, as wide as they come.
pub fn widest_mark(producers: u32, messages: u64) -> Mark {
    Mark {
        tag: 0,
        warmup: false,
        producer: producers.saturating_sub(1),
        sequence: messages,
        due: Nanos(0),
        lag: Nanos(0),
    }
}

/// True for what opens and closes like a JSON object; placeholders alone are none.
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

const JSON_MARK: &[u8] = b",\"mark\":\"";
const JSON_MARK_FIRST: &[u8] = b" \"mark\":\"";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::Reading;

    const MARK: Mark =
        Mark { tag: 7, warmup: false, producer: 3, sequence: 12, due: Nanos(5), lag: Nanos(1) };

    fn body(source: &str, content: &[u8], size: Option<u64>) -> Vec<u8> {
        let source = source.parse().unwrap();
        let composer = Composer::new(&source, content, size.map(Bytes), &MARK, 1_000).unwrap();
        let mut out = b"before".to_vec();
        composer.compose(&MARK, &mut out);
        out.split_off(6)
    }

    #[test]
    fn a_sized_body_has_exactly_its_size_and_its_mark() {
        for size in [44, 64, 1000] {
            let body = body("filler", b"", Some(size));
            assert_eq!(body.len() as u64, size);
            assert_eq!(Mark::read(&body, 7), Reading::Whole(MARK));
        }
    }

    #[test]
    fn a_body_too_small_for_the_mark_goes_without() {
        let source = BodySource::Filler;
        let composer = Composer::new(&source, b"", Some(Bytes(43)), &MARK, 0).unwrap();
        assert!(!composer.is_marked());
        assert_eq!(body("filler", b"", Some(43)), vec![b'.'; 43]);
        assert_eq!(body("text:hello", b"", Some(5)), b"hello");
    }

    #[test]
    fn json_stays_json() {
        for (source, content, size) in [
            ("readings", &b"{\"ph\":6.1}\n{\"ph\":6.2}\n"[..], None),
            ("lines:x", b"{}", None),
            ("template:{\"n\":{seq},\"c\":{client},\"t\":{time}}", b"", Some(120)),
        ] {
            let body = body(source, content, size);
            assert_eq!(Mark::read(&body, 7), Reading::Whole(MARK), "{source}");
            let text = String::from_utf8(body).unwrap();
            assert!(size.is_none_or(|size| text.len() as u64 == size), "{text}");
            let value: serde_json::Value = serde_json::from_str(&text).expect(&text);
            assert!(value["mark"].is_string());
        }
    }

    #[test]
    fn templates_are_filled_in() {
        let body = body("template:{seq}/{client}/{time}/{other}", b"", None);
        assert!(body.starts_with(b"12/3/1005/{other}WB1."));
    }

    #[test]
    fn a_size_below_the_template_is_refused_with_the_size_to_type() {
        let source = BodySource::Template("0123456789{seq}".to_owned());
        let error = Composer::new(&source, b"", Some(Bytes(11)), &MARK, 0).unwrap_err();
        assert!(error.contains("12 bytes") && error.contains("-s 56B"), "{error}");
    }
}
