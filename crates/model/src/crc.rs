//! CRC-32 (IEEE 802.3, reflected, polynomial 0xEDB88320) of the few bytes that marks and small
//! bodies have. Crates that fold by carry-less multiplication start to pay at some hundred
//! bytes and go byte by byte below; these tables take eight bytes at a step (slicing by eight,
//! Kounavis and Berry, "A Systematic Approach to Building High Performance Software-based CRC
//! Generators", ISCC 2005).

/// The check value of `bytes` behind others whose check value is `before` (0 if there are none).
pub(crate) fn append(before: u32, bytes: &[u8]) -> u32 {
    if bytes.len() >= LONG {
        let mut hasher = crc32fast::Hasher::new_with_initial(before);
        hasher.update(bytes);
        return hasher.finalize();
    }
    let mut state = !before;
    let (eights, rest) = bytes.as_chunks::<8>();
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

/// The check value of `first` and `second` one behind the other, from the values of both, where
/// the second is `22` bytes long.
pub(crate) fn join_22(first: u32, second: u32) -> u32 {
    step(step(step(first, 4), 4), 2) ^ second
}

/// The state after `word`, with `zeros` further bytes of 0 behind it.
fn step(word: u32, zeros: usize) -> u32 {
    let [a, b, c, d] = word.to_le_bytes().map(usize::from);
    TABLES[3 + zeros][a] ^ TABLES[2 + zeros][b] ^ TABLES[1 + zeros][c] ^ TABLES[zeros][d]
}

/// From this length on folding is faster.
const LONG: usize = 128;

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
        let bytes: Vec<u8> = (0..300u32).map(|i| (i * 7919 >> 3) as u8).collect();
        for length in 0..bytes.len() {
            let whole = crc32fast::hash(&bytes[..length]);
            assert_eq!(append(0, &bytes[..length]), whole);
            let cut = length / 3;
            assert_eq!(append(append(0, &bytes[..cut]), &bytes[cut..length]), whole);
            if length >= 22 {
                let (first, second) = bytes[..length].split_at(length - 22);
                assert_eq!(join_22(append(0, first), append(0, second)), whole);
            }
        }
    }
}
