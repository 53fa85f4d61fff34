//! A response of the reference server.

use super::codec::{self, BLOCK_SZX_MAX, Block, Code, Kind, OptionWriter, Token, code, number};
use super::intake::Store;

/// Code, options and payload of a response.
#[derive(Clone, Debug)]
pub(super) struct Reply<'p> {
    pub(super) code: Code,
    /// Number of a notification (RFC 7641, section 2).
    observe: Option<u32>,
    format: Option<u16>,
    /// Names the representation of which this is a block.
    etag: Option<u32>,
    block2: Option<Block>,
    /// Block1 of the request, as it was.
    block1: Option<&'p [u8]>,
    /// True for an answer that no proxy may keep.
    is_uncacheable: bool,
    payload: &'p [u8],
    /// A payload that was made for this response.
    made: Vec<u8>,
}

impl<'p> Reply<'p> {
    /// A response without payload.
    pub(super) fn of(code: Code) -> Reply<'p> {
        Reply {
            code,
            observe: None,
            format: None,
            etag: None,
            block2: None,
            block1: None,
            is_uncacheable: false,
            payload: b"",
            made: Vec::new(),
        }
    }

    /// A response with `body`, or with the block of it that was asked for; a body of more than one
    /// block starts with its first (RFC 7959, section 2.4).
    pub(super) fn content(body: &'p [u8], asked: Option<Block>) -> Reply<'p> {
        let largest = Block { index: 0, has_more: false, szx: BLOCK_SZX_MAX };
        let is_whole = asked.is_none() && body.len() <= largest.bytes();
        if is_whole {
            return Reply { payload: body, ..Reply::of(code::CONTENT) };
        }
        let block = asked.unwrap_or(largest);
        let from = block.index as usize * block.bytes();
        let Some(rest) = body.get(from..) else { return Reply::of(code::BAD_REQUEST) };
        let has_more = rest.len() > block.bytes();
        Reply {
            block2: Some(Block { has_more, ..block }),
            payload: &rest[..rest.len().min(block.bytes())],
            ..Reply::of(code::CONTENT)
        }
    }

    /// Returns it with the Block1 of its request, if that has one.
    pub(super) fn with_block1(self, block1: Option<&'p [u8]>) -> Reply<'p> {
        Reply { block1, ..self }
    }

    /// Returns it with the number of a notification, if it is one.
    pub(super) fn with_observe(self, observe: Option<u32>) -> Reply<'p> {
        Reply { observe, ..self }
    }

    /// A response with `words` for people (section 5.5.2).
    pub(super) fn said(code: Code, words: &'static str) -> Reply<'p> {
        Reply { made: words.as_bytes().to_vec(), ..Reply::of(code) }
    }

    /// A response with words that holds for this request only (RFC 8613, section 4.1.3.1).
    pub(super) fn uncacheable(code: Code, words: &'static str) -> Reply<'p> {
        Reply { is_uncacheable: true, ..Reply::said(code, words) }
    }

    /// A page of readings, or the block of it that was asked for; blocks have its ETag, since the
    /// list may have changed before the next one is requested (RFC 7959, section 2.4).
    pub(super) fn page(body: &'p [u8], etag: u32, asked: Option<Block>) -> Reply<'p> {
        let reply = Reply::content(body, asked);
        let etag = reply.block2.map(|_| etag);
        Reply { etag, format: Some(JSON), ..reply }
    }

    /// The list of resources (RFC 6690).
    pub(super) fn core(store: &Store) -> Reply<'p> {
        let mut made = Vec::new();
        let resources = [(&store.state, &b">;obs,"[..]), (&store.readings, b">")];
        for (path, attributes) in resources {
            made.push(b'<');
            for segment in path {
                made.push(b'/');
                made.extend_from_slice(segment);
            }
            made.extend_from_slice(attributes);
        }
        Reply { format: Some(LINK_FORMAT), made, ..Reply::of(code::CONTENT) }
    }

    /// Appends the message.
    pub(super) fn put(&self, out: &mut Vec<u8>, kind: Kind, id: u16, token: Token) {
        codec::put_head(out, kind, self.code, id, token);
        let mut writer = OptionWriter::default();
        if let Some(etag) = self.etag {
            writer.put(out, number::ETAG, &etag.to_be_bytes());
        }
        if let Some(sequence) = self.observe {
            writer.put_unsigned(out, number::OBSERVE, sequence);
        }
        if let Some(format) = self.format {
            writer.put_unsigned(out, number::CONTENT_FORMAT, format.into());
        }
        if self.is_uncacheable {
            writer.put_unsigned(out, number::MAX_AGE, 0);
        }
        if let Some(block) = self.block2 {
            writer.put_unsigned(out, number::BLOCK2, block.number());
        }
        if let Some(block) = self.block1 {
            writer.put(out, number::BLOCK1, block);
        }
        let payload = if self.made.is_empty() { self.payload } else { &self.made };
        codec::put_payload(out, payload);
    }
}

/// Content-Format of lists of resources (RFC 6690, section 7.4).
const LINK_FORMAT: u16 = 40;

/// Content-Format of pages of readings.
const JSON: u16 = 50;
