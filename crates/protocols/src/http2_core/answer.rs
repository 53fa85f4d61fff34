//! Answers of a server, and their blocks of header fields on one connection: made once, and copied
//! for every further answer of the same kind.

use std::borrow::Cow;

use super::encoder::{Encoder, Indexing};

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its head.
    pub(crate) head: Fields,
    /// Its content.
    pub(crate) body: Cow<'static, [u8]>,
    /// What follows the content.
    pub(crate) trailers: Option<Fields>,
}

/// Header fields of an answer.
#[derive(Debug)]
pub(crate) enum Fields {
    /// One of those that are sent again and again, by its place among them.
    Known(usize),
    /// Others.
    Other(Vec<(&'static str, String)>),
}

impl Fields {
    /// The fields of an answer that is only a head, behind a head that was sent already (RFC 9113,
    /// section 8.1).
    pub(crate) fn into_trailers(self) -> Fields {
        let Fields::Other(mut fields) = self else { return self };
        fields.retain(|(name, _)| !name.starts_with(':') && *name != "content-type");
        Fields::Other(fields)
    }
}

/// Fields that are sent again and again.
pub(crate) type KnownFields = &'static [&'static [(&'static str, &'static str)]];

impl Answer {
    /// An answer that is only a head.
    pub(crate) fn bare(head: Fields) -> Answer {
        Answer { head, body: Cow::Borrowed(b""), trailers: None }
    }
}

/// The encoder of answers of one connection.
#[derive(Debug)]
pub(crate) struct AnswerEncoder {
    encoder: Encoder,
    known: KnownFields,
    blocks: Vec<Block>,
}

#[derive(Clone, Debug, Default)]
struct Block {
    /// Generation of the encoder at which the bytes may be sent, counted from 1; 0 is none.
    generation: u64,
    bytes: Vec<u8>,
}

impl AnswerEncoder {
    /// The encoder of a connection that has just opened.
    pub(crate) const fn new(known: KnownFields) -> AnswerEncoder {
        AnswerEncoder { encoder: Encoder::new(), known, blocks: Vec::new() }
    }

    /// Takes the peer's limit of the dynamic table.
    pub(crate) fn limit(&mut self, size_max: u32) {
        self.encoder.limit(size_max);
    }

    /// Appends the block of these fields.
    #[inline]
    pub(crate) fn put(&mut self, fields: &Fields, out: &mut Vec<u8>) {
        if let Fields::Known(place) = fields
            && let Some(block) = self.blocks.get(*place)
            && block.generation == self.encoder.generation() + 1
        {
            return out.extend_from_slice(&block.bytes);
        }
        self.make(fields, out);
    }

    #[cold]
    fn make(&mut self, fields: &Fields, out: &mut Vec<u8>) {
        self.encoder.begin(out);
        let place = match fields {
            Fields::Known(place) => *place,
            Fields::Other(fields) => {
                for (name, value) in fields {
                    let (name, value) = (name.as_bytes(), value.as_bytes());
                    self.encoder.put(name, value, Indexing::Plain, out);
                }
                return;
            }
        };
        let Some(fields) = self.known.get(place) else { return };
        let (generation, start) = (self.encoder.generation(), out.len());
        for (name, value) in *fields {
            self.encoder.put(name.as_bytes(), value.as_bytes(), Indexing::Indexed, out);
        }
        if generation != self.encoder.generation() {
            return;
        }
        self.blocks.resize(self.known.len(), Block::default());
        let block = &mut self.blocks[place];
        block.generation = generation + 1;
        block.bytes.clear();
        block.bytes.extend_from_slice(&out[start..]);
    }
}
