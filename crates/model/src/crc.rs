//! CRC-32 (IEEE 802.3, reflected, polynomial 0xEDB88320) of the few bytes that marks and small
//! bodies have. Crates that take many bytes at a step go byte by byte through what is left over;
//! these tables take eight bytes at a step (slicing by eight, Kounavis and Berry, "A Systematic Approach to Building High Performance Software-based CRC
//! Generators", ISCC 2005).

/// The check value of `bytes` behind others whose check value is `before` (0 if there are none).
pub(crate) fn append(before: u32, bytes: &[u8]) -> u32 {
    let (long, rest) = bytes.split_at(bytes.len() & !(FOLDED - 1));
    let mut state = !before;
    if !long.is_empty() {
        let mut hasher = crc32fast::Hasher::new_with_initial(before);
        hasher.update(long);
        state = !hasher.finalize();
    }
    let (eights, rest) = rest.as_chunks::<8>();
    for eight in eights {
        let low = state ^ u32::from_le_bytes([eight[0], eight[1], eight[2], eight[3]]);
        let high = u32::from_le_bytes([eight[4], eight[5], eight[6], eight[7]]);
        state = step(low, 4) ^ step(high, 0);
    }
    let (fours, rest) = rest.as_chunks::<4>();
    for four in fours {
        state = step(state ^ u32::from_le_bytes(*four), 0);
    }
    for byte in rest {
        state = TABLES[0][usize::from(state as u8 ^ byte)] ^ state >> 8;
    }
    !state
}

/// The check value of 22 bytes: eight, eight and six, big-endian each.
pub(crate) fn of_22(first: u64, second: u64, third: u64) -> u32 {
    let eight = |state: u32, word: u64| {
        let word = word.swap_bytes();
        step(state ^ word as u32, 4) ^ step((word >> 32) as u32, 0)
    };
    let state = eight(eight(!0, first), second);
    let last = third << 16;
    let [.., fifth, sixth, _, _] = last.to_be_bytes().map(usize::from);
    let four = step(state ^ last.swap_bytes() as u32, 2);
    !(four ^ TABLES[1][fifth] ^ TABLES[0][sixth])
}

/// The check value of `first` and `second` one behind the other, from the values of both, where
/// the second is `22` bytes long.
pub(crate) fn join_22(first: u32, second: u32) -> u32 {
    let [a, b, c, d] = first.to_le_bytes().map(usize::from);
    BEHIND_22[0][a] ^ BEHIND_22[1][b] ^ BEHIND_22[2][c] ^ BEHIND_22[3][d] ^ second
}

/// The state after `word`, with `zeros` further bytes of 0 behind it.
fn step(word: u32, zeros: usize) -> u32 {
    let [a, b, c, d] = word.to_le_bytes().map(usize::from);
    TABLES[3 + zeros][a] ^ TABLES[2 + zeros][b] ^ TABLES[1 + zeros][c] ^ TABLES[zeros][d]
}

/// What comes in multiples of this is left to the crate that folds.
const FOLDED: usize = 64;

/// `TABLES[n][byte]` is the state that `byte` leaves behind after `n` bytes of 0.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut state = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            state = if state & 1 == 1 { state >> 1 ^ 0xEDB8_8320 } else { state >> 1 };
            bit += 1;
        }
        tables[0][byte] = state;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before: u32 = tables[zeros - 1][byte];
            tables[zeros][byte] = tables[0][(before & 0xFF) as usize] ^ before >> 8;
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

/// `BEHIND_22[place][byte]` is what the byte in this place of a state becomes behind 22 bytes of
/// 0; a state becomes the sum of what its bytes do.
static BEHIND_22: [[u32; 256]; 4] = {
    let tables = tables();
    let mut behind = [[0; 256]; 4];
    let mut entry = 0;
    while entry < 4 * 256 {
        let (place, byte) = (entry / 256, entry % 256);
        let mut state = (byte as u32) << (8 * place);
        let mut zeros = 0;
        while zeros < 22 {
            state = tables[0][(state & 0xFF) as usize] ^ state >> 8;
            zeros += 1;
        }
        behind[place][byte] = state;
        entry += 1;
    }
    behind
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the catalogue of parametrised CRC algorithms for CRC-32/ISO-HDLC.
    #[test]
    fn it_is_the_crc_of_ethernet() {
        assert_eq!(append(0, b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn every_length_and_every_cut_agree_with_another_implementation() {
        let bytes: Vec<u8> = (0..300u32).map(|i| (i * 7919 / 8) as u8).collect();
        for length in 0..bytes.len() {
            let whole = crc32fast::hash(&bytes[..length]);
            assert_eq!(append(0, &bytes[..length]), whole);
            let cut = length / 3;
            assert_eq!(append(append(0, &bytes[..cut]), &bytes[cut..length]), whole);
            if length == 22 {
                let word = |from: usize, to: usize| {
                    bytes[from..to].iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
                };
                assert_eq!(of_22(word(0, 8), word(8, 16), word(16, 22)), whole);
            }
            if length >= 22 {
                let (first, second) = bytes[..length].split_at(length - 22);
                assert_eq!(join_22(append(0, first), append(0, second)), whole);
            }
        }
    }
}
