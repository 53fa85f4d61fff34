//! A body that comes in block by block (RFC 7959, section 2.5): in order, one at a time from each
//! peer.

use super::codec::{Block, Code, code};
use super::intake::Target;

/// The part that has arrived.
#[derive(Debug)]
pub(super) struct Incoming {
    target: Target,
    body: Vec<u8>,
}

/// Result of a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// More blocks are expected.
    More,
    /// The whole body.
    Whole(Vec<u8>),
    /// The block cannot be used.
    Refused(Code),
}

impl Incoming {
    /// Takes a block; the first one begins a body anew.
    pub(super) fn take(
        place: &mut Option<Box<Incoming>>,
        target: Target,
        block: Block,
        payload: &[u8],
        body_bytes_max: usize,
    ) -> Taken {
        if block.index == 0 {
            *place = Some(Box::new(Incoming { target, body: Vec::new() }));
        }
        let begun = place.as_mut().filter(|own| own.target == target);
        let Some(own) = begun else { return Taken::Refused(code::REQUEST_INCOMPLETE) };
        let from = block.index as usize * block.bytes();
        let is_cut = block.has_more && payload.len() != block.bytes();
        if own.body.len() != from || is_cut || payload.len() > block.bytes() {
            return Taken::Refused(code::REQUEST_INCOMPLETE);
        }
        if from + payload.len() > body_bytes_max {
            *place = None;
            return Taken::Refused(code::TOO_LARGE);
        }
        own.body.extend_from_slice(payload);
        match block.has_more {
            true => Taken::More,
            false => Taken::Whole(place.take().map_or_else(Vec::new, |own| own.body)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Target = Target::State(7);

    #[test]
    fn blocks_come_in_order_or_not_at_all() {
        let block = |index, has_more| Block { index, has_more, szx: 0 };
        let mut place = None;
        let mut take =
            |block, payload: &[u8]| Incoming::take(&mut place, TARGET, block, payload, 40);
        assert_eq!(take(block(1, false), b"x"), Taken::Refused(code::REQUEST_INCOMPLETE));
        assert_eq!(take(block(0, true), &[1; 16]), Taken::More);
        assert_eq!(take(block(2, true), &[3; 16]), Taken::Refused(code::REQUEST_INCOMPLETE));
        assert_eq!(take(block(1, true), &[2; 15]), Taken::Refused(code::REQUEST_INCOMPLETE));
        assert_eq!(take(block(1, true), &[2; 16]), Taken::More);
        let whole = [&[1; 16][..], &[2; 16], &[3; 4]].concat();
        assert_eq!(take(block(2, false), &[3; 4]), Taken::Whole(whole));
        assert_eq!(take(block(0, true), &[1; 16]), Taken::More);
        assert_eq!(take(block(1, true), &[1; 16]), Taken::More);
        assert_eq!(take(block(2, false), &[1; 9]), Taken::Refused(code::TOO_LARGE));
    }
}
