//! A body that a client sends block by block (RFC 7959, section 2.5). Of a body that comes in
//! pieces only one piece is held.

use super::codec::Block;

/// The body of one request, from the block in progress on.
#[derive(Debug)]
pub(super) struct Blocks {
    /// The bytes from `start` on, as far as they are known.
    bytes: Vec<u8>,
    start: u64,
    /// Bytes of the whole body.
    whole: u64,
    at: Block,
}

impl Blocks {
    /// A body that begins with `first`, of which `rest` bytes follow.
    pub(super) fn new(first: &[u8], rest: u64, szx: u8) -> Blocks {
        let whole = first.len() as u64 + rest;
        let mut at = Block { index: 0, has_more: false, szx };
        at.has_more = whole > at.bytes() as u64;
        Blocks { bytes: first.to_vec(), start: 0, whole, at }
    }

    /// The block in progress.
    pub(super) fn at(&self) -> Block {
        self.at
    }

    /// Bytes of the whole body.
    pub(super) fn whole(&self) -> u64 {
        self.whole
    }

    /// The bytes of the block in progress; `None` while some of them are missing.
    pub(super) fn block(&self) -> Option<&[u8]> {
        let from = self.offset();
        let to = self.whole.min(from + self.at.bytes() as u64);
        let place = |at: u64| usize::try_from(at.checked_sub(self.start)?).ok();
        self.bytes.get(place(from)?..place(to)?)
    }

    /// Takes the next piece of the body.
    pub(super) fn take(&mut self, piece: &[u8]) {
        let done = (self.offset() - self.start) as usize;
        self.bytes.drain(..done.min(self.bytes.len()));
        self.start += done as u64;
        self.bytes.extend_from_slice(piece);
    }

    /// Goes to the next block; the server may have asked for smaller ones (section 2.3).
    pub(super) fn advance(&mut self, wanted: Option<Block>) {
        let sent = self.offset() + self.at.bytes() as u64;
        self.at.szx = wanted.map_or(self.at.szx, |wanted| wanted.szx.min(self.at.szx));
        self.at.index = (sent / self.at.bytes() as u64) as u32;
        self.at.has_more = sent + (self.at.bytes() as u64) < self.whole;
    }

    /// Where the block in progress begins.
    fn offset(&self) -> u64 {
        u64::from(self.at.index) * self.at.bytes() as u64
    }
}

/// Number of blocks of a body.
pub(super) fn count(whole: u64, szx: u8) -> u64 {
    whole.div_ceil(16 << szx).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces need not end where blocks do, and a smaller size continues at the same byte.
    #[test]
    fn blocks_follow_each_other_whatever_the_pieces() {
        let body: Vec<u8> = (0..200u8).collect();
        let mut blocks = Blocks::new(&body[..70], 130, 2);
        let (mut seen, mut given, mut number) = (Vec::new(), 70, 0);
        loop {
            while blocks.block().is_none() {
                assert!(given < body.len(), "a block is missing at the end");
                blocks.take(&body[given..(given + 70).min(body.len())]);
                given = (given + 70).min(body.len());
            }
            assert_eq!(blocks.offset(), seen.len() as u64);
            seen.extend_from_slice(blocks.block().unwrap());
            number += 1;
            if !blocks.at().has_more {
                break;
            }
            // The server asks for blocks of 16 bytes after the second one.
            let szx = if number < 2 { 2 } else { 0 };
            let wanted = Block { szx, ..blocks.at() };
            blocks.advance(Some(wanted));
        }
        assert_eq!(seen, body);
        assert_eq!(number, 2 + (200u64 - 128).div_ceil(16));
        assert_eq!((count(0, 6), count(1024, 6), count(1025, 6)), (1, 1, 2));
    }
}
