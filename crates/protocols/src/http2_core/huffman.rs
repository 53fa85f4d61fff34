//! The Huffman code of HPACK (RFC 7541, section 5.2 and appendix B).

/// Appends `text` in the code, padded with the first bits of its end mark.
pub(crate) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0);
    for byte in text {
        let length = u32::from(LENGTHS[usize::from(*byte)]);
        bits = bits << length | u64::from(CODES[usize::from(*byte)]);
        count += length;
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        out.push((bits << (8 - count)) as u8 | (0xff >> count));
    }
}

/// Number of bytes that [`encode`] appends for `text`.
pub(crate) fn encoded_bytes(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|byte| usize::from(LENGTHS[usize::from(*byte)])).sum();
    bits.div_ceil(8)
}

/// Appends the text of which `coded` is the code; false if `coded` is not valid: it has the end
/// mark, more than 7 bits of padding, or other padding than ones.
#[must_use]
pub(crate) fn decode(coded: &[u8], out: &mut Vec<u8>) -> bool {
    let mut node = ROOT;
    for byte in coded {
        for half in [byte >> 4, byte & 15] {
            let step = STEPS[usize::from(node)][usize::from(half)];
            match step.kind {
                StepKind::Inside => {}
                StepKind::Symbol => out.push(step.symbol),
                StepKind::Invalid => return false,
            }
            node = step.next;
        }
    }
    MAY_END[usize::from(node)]
}

/// Result of four further bits.
#[derive(Clone, Copy)]
struct Step {
    next: u8,
    kind: StepKind,
    symbol: u8,
}

#[derive(Clone, Copy)]
enum StepKind {
    /// No code ended.
    Inside,
    /// The code of a symbol ended. No code is shorter than five bits, so it is the only one.
    Symbol,
    /// The code of the end mark, which must not occur.
    Invalid,
}

/// Code of each symbol. Codes are canonical: in the order of their lengths, and of the symbols.
const fn codes() -> [u32; SYMBOLS] {
    let mut codes = [0; SYMBOLS];
    let (mut code, mut length) = (0, 1);
    while length <= LENGTH_MAX {
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] == length {
                codes[symbol] = code;
                code += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        length += 1;
    }
    codes
}

/// The code as a tree: each inner node has two children, an inner node or [`LEAF`] with a symbol.
const fn tree() -> [[u16; 2]; NODES] {
    let mut tree = [[0; 2]; NODES];
    let mut used = 1;
    let mut symbol = 0;
    while symbol < SYMBOLS {
        let (mut node, mut bit) = (0_usize, LENGTHS[symbol]);
        while bit > 1 {
            bit -= 1;
            let side = (CODES[symbol] >> bit & 1) as usize;
            if tree[node][side] == 0 {
                tree[node][side] = used;
                used += 1;
            }
            node = tree[node][side] as usize;
        }
        tree[node][(CODES[symbol] & 1) as usize] = LEAF | symbol as u16;
        symbol += 1;
    }
    tree
}

const fn steps() -> [[Step; 16]; NODES] {
    let start = Step { next: ROOT, kind: StepKind::Inside, symbol: 0 };
    let mut steps = [[start; 16]; NODES];
    let mut node = 0;
    while node < NODES {
        let mut half = 0;
        while half < 16 {
            let (mut step, mut at, mut bit) = (start, node, 4);
            while bit > 0 {
                bit -= 1;
                let child = TREE[at][half >> bit & 1];
                at = child as usize;
                if child >= LEAF {
                    at = 0;
                    step.symbol = (child & 0xff) as u8;
                    let is_end = child == LEAF | END;
                    step.kind = if is_end { StepKind::Invalid } else { StepKind::Symbol };
                }
            }
            step.next = at as u8;
            steps[node][half] = step;
            half += 1;
        }
        node += 1;
    }
    steps
}

/// Nodes at which a text may end: up to seven ones after the last symbol.
const fn may_end() -> [bool; NODES] {
    let mut may_end = [false; NODES];
    let (mut node, mut ones) = (0_usize, 0);
    while ones <= 7 {
        may_end[node] = true;
        node = TREE[node][1] as usize;
        ones += 1;
    }
    may_end
}

/// Bytes, and the end mark.
const SYMBOLS: usize = 257;
const END: u16 = 256;
/// Inner nodes of a binary tree with [`SYMBOLS`] leaves.
const NODES: usize = SYMBOLS - 1;
const ROOT: u8 = 0;
const LEAF: u16 = 0x8000;
const LENGTH_MAX: u8 = 30;

/// Bits of the code of each symbol (appendix B).
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28,
    30, 28, 28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11,
    8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20,
    22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21,
    22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23,
    22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26,
    28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27,
    26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const CODES: [u32; SYMBOLS] = codes();
const TREE: [[u16; 2]; NODES] = tree();
static STEPS: [[Step; 16]; NODES] = steps();
static MAY_END: [bool; NODES] = may_end();

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        decode(coded, &mut text).then_some(text)
    }

    /// Codes that appendix B prints.
    #[test]
    fn codes_are_those_of_the_appendix() {
        for (symbol, code) in [
            (0, 0x1ff8),
            (usize::from(b'0'), 0),
            (usize::from(b'a'), 3),
            (usize::from(b'z'), 0x7b),
            (usize::from(b'~'), 0x1ffd),
            (255, 0x3ff_ffee),
            (256, 0x3fff_ffff),
        ] {
            assert_eq!(CODES[symbol], code, "{symbol}");
        }
    }

    #[test]
    fn every_byte_is_decoded_as_it_was_encoded() {
        let all: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
        let mut coded = Vec::new();
        encode(&all, &mut coded);
        assert_eq!(coded.len(), encoded_bytes(&all));
        assert_eq!(decoded(&coded), Some(all));
    }

    /// Section 5.2: padding is shorter than eight bits and made of ones, and the end mark is an
    /// error.
    #[test]
    fn wrong_endings_are_refused() {
        assert_eq!(decoded(&[0x1f]), Some(b"a".to_vec()), "00011 and three ones");
        assert_eq!(decoded(&[0x1f, 0xff]), None, "eleven bits of padding");
        assert_eq!(decoded(&[0x18]), None, "padding with zeros");
        assert_eq!(decoded(&[0xff; 4]), None, "the end mark");
        assert_eq!(decoded(&[0xff]), None, "eight bits of padding");
        assert_eq!(decoded(&[]), Some(Vec::new()));
    }
}
