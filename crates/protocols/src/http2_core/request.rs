//! The head of the requests of a trial, and its block of header fields on one connection: made
//! once, and copied for every request.

use super::encoder::{Encoder, Indexing};
use crate::name_pattern::NamePattern;

/// The head of every request of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestTemplate {
    /// Pseudo-headers except the path.
    pub(crate) pseudo: Vec<(String, String)>,
    /// The path.
    pub(crate) path: RequestPath,
    /// Further fields, with names in lower case.
    pub(crate) fields: Vec<(String, String)>,
    /// True if requests have a `content-length`.
    pub(crate) has_length: bool,
}

/// The path of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestPath {
    /// The same in all of them.
    Same(String),
    /// Filled in for each message.
    Filled(NamePattern),
}

/// The block of a template on one connection.
#[derive(Debug, Default)]
pub(crate) struct RequestBlock {
    /// Generation of the encoder at which the bytes below may be sent; 0 is none.
    generation: u64,
    /// The block up to a path that differs, or up to the further fields.
    before: Vec<u8>,
    /// The further fields, and the length of `length` bytes.
    after: Vec<u8>,
    /// Place of the length in `after`.
    length_at: usize,
    length: usize,
    /// True if a length has entered the table: others would not be expected again.
    has_length_entry: bool,
}

impl RequestBlock {
    /// Appends the block of the request that carries `body`, `length` bytes of data.
    #[inline]
    pub(crate) fn put(
        &mut self,
        template: &RequestTemplate,
        encoder: &mut Encoder,
        body: &[u8],
        length: usize,
        out: &mut Vec<u8>,
    ) {
        // A generation is counted from 0; the stored one is higher by 1.
        if self.generation != encoder.generation() + 1 {
            self.make(template, encoder, length, out);
        }
        out.extend_from_slice(&self.before);
        if let RequestPath::Filled(pattern) = &template.path {
            let mut path = Vec::new();
            pattern.fill(body, &mut path);
            encoder.put(b":path", &path, Indexing::Plain, out);
        }
        if !template.has_length || self.length == length {
            out.extend_from_slice(&self.after);
        } else {
            out.extend_from_slice(&self.after[..self.length_at]);
            put_length(encoder, length, Indexing::Plain, out);
        }
    }

    /// Makes the parts of the block. They may be sent again if nothing in them entered the table.
    #[cold]
    fn make(
        &mut self,
        template: &RequestTemplate,
        encoder: &mut Encoder,
        length: usize,
        out: &mut Vec<u8>,
    ) {
        encoder.begin(out);
        let generation = encoder.generation();
        self.before.clear();
        self.after.clear();
        let put = |encoder: &mut Encoder, name: &str, value: &str, out: &mut Vec<u8>| {
            encoder.put(name.as_bytes(), value.as_bytes(), Indexing::Indexed, out);
        };
        for (name, value) in &template.pseudo {
            put(encoder, name, value, &mut self.before);
        }
        if let RequestPath::Same(path) = &template.path {
            put(encoder, ":path", path, &mut self.before);
        }
        for (name, value) in &template.fields {
            put(encoder, name, value, &mut self.after);
        }
        (self.length_at, self.length) = (self.after.len(), length);
        if template.has_length {
            let is_entered = std::mem::replace(&mut self.has_length_entry, true);
            let indexing = if is_entered { Indexing::Plain } else { Indexing::Indexed };
            put_length(encoder, length, indexing, &mut self.after);
        }
        let is_repeatable = generation == encoder.generation();
        self.generation = if is_repeatable { generation + 1 } else { 0 };
    }
}

fn put_length(encoder: &mut Encoder, length: usize, indexing: Indexing, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut at, mut left) = (digits.len(), length);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    encoder.put(b"content-length", &digits[at..], indexing, out);
}

#[cfg(test)]
mod tests {
    use super::super::decoder::Decoder;
    use super::*;

    fn template() -> RequestTemplate {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        RequestTemplate {
            pseudo: vec![pair(":method", "POST"), pair(":authority", "h:1")],
            path: RequestPath::Same("/messages".to_owned()),
            fields: vec![pair("content-type", "application/json")],
            has_length: true,
        }
    }

    fn decoded(decoder: &mut Decoder, block: &[u8]) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let mut fields = Vec::new();
        decoder.decode(block, |name, value| fields.push((text(name), text(value)))).unwrap();
        fields
    }

    /// After the first request every field is one byte, whatever happens to the length or to the
    /// peer's table in between.
    #[test]
    fn blocks_become_short_and_stay_right() {
        let template = template();
        let (mut encoder, mut block) = (Encoder::new(), RequestBlock::default());
        let mut decoder = Decoder::new();
        let mut sizes = Vec::new();
        for (length, limit) in [
            (64, None),
            (64, None),
            (64, None),
            (7, None),
            (64, Some(100)),
            (64, None),
            (64, Some(0)),
        ] {
            if let Some(limit) = limit {
                encoder.limit(limit);
            }
            let mut out = Vec::new();
            block.put(&template, &mut encoder, b"", length, &mut out);
            sizes.push(out.len());
            let fields = decoded(&mut decoder, &out);
            let names: Vec<&str> = fields.iter().map(|(name, _)| &**name).collect();
            let due = [":method", ":authority", ":path", "content-type", "content-length"];
            assert_eq!(names, due);
            assert_eq!(fields[4].1, length.to_string());
        }
        assert_eq!(sizes[1..3], [5, 5], "one byte for each field");
        assert!(sizes[3] < 10 && sizes[4] > 10 && sizes[6] > sizes[5], "{sizes:?}");
    }
}
