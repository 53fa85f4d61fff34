//! Lines with a check value: eight hexadecimal digits, a space, JSON.

use crate::discharges::entry::Entry;

/// Encodes an entry as a line, with its end.
///
/// # Errors
/// An entry that is not valid JSON, such as a number that is not finite.
pub fn encode(entry: &Entry) -> serde_json::Result<Vec<u8>> {
    let json = serde_json::to_vec(entry)?;
    let mut line = format!("{:08x} ", crc32fast::hash(&json)).into_bytes();
    line.extend(json);
    line.push(b'\n');
    Ok(line)
}

/// Decodes a line without its end; `None` if it is torn, damaged, or not such a line.
pub fn decode(line: &[u8]) -> Option<Entry> {
    let (check, json) = line.split_at_checked(CHECK_BYTES)?;
    let json = json.strip_prefix(b" ")?;
    let said = u32::from_str_radix(str::from_utf8(check).ok()?, 16).ok()?;
    // CRC-32 detects all damage within 32 neighbouring bits, and other damage in all but 1 of 2^32.
    if said != crc32fast::hash(json) {
        return None;
    }
    serde_json::from_slice(json).ok()
}

/// Entries of a file, and counts of what could not be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// Entries that could be read, in order.
    pub entries: Vec<Entry>,
    /// Bytes after the last complete line, left by a power cut.
    pub torn_bytes: u64,
    /// Lines before the last complete one that could not be read.
    pub damaged: u64,
}

/// Reads all lines of a file.
pub fn read(content: &[u8]) -> Lines {
    let mut lines = Lines::default();
    let (mut at, mut whole_to, mut unread) = (0, 0, 0);
    while let Some(length) = content[at..].iter().position(|byte| *byte == b'\n') {
        match decode(&content[at..at + length]) {
            Some(entry) => {
                lines.entries.push(entry);
                lines.damaged += std::mem::take(&mut unread);
                whole_to = at + length + 1;
            }
            None => unread += 1,
        }
        at += length + 1;
    }
    lines.torn_bytes = (content.len() - whole_to) as u64;
    lines
}

/// Hexadecimal digits of a CRC-32.
const CHECK_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discharges::entry::Standing;

    fn standing(second: u64) -> Entry {
        Entry::Standing(Standing {
            at_ns: second * 1_000_000_000,
            sent: second,
            ..Default::default()
        })
    }

    fn file(seconds: u64) -> (Vec<u8>, Vec<usize>) {
        let (mut content, mut ends) = (Vec::new(), vec![0]);
        for second in 1..=seconds {
            content.extend(encode(&standing(second)).unwrap());
            ends.push(content.len());
        }
        (content, ends)
    }

    /// A power cut at any byte costs the line that was being written, and nothing else.
    #[test]
    fn a_cut_at_any_byte_leaves_all_whole_lines() {
        let (content, ends) = file(20);
        for cut in 0..=content.len() {
            let lines = read(&content[..cut]);
            let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
            assert_eq!(lines.entries.len(), whole, "cut at {cut}");
            assert_eq!(lines.torn_bytes as usize, cut - ends[whole], "cut at {cut}");
            assert_eq!(lines.damaged, 0);
        }
    }

    /// Flash that lost its power may hold zeros, or its previous content.
    #[test]
    fn what_lies_behind_the_last_line_is_torn_whatever_it_is() {
        let (content, _) = file(5);
        for rest in [&[0u8; 4096][..], b"\n\n\n", b"00000000 {}\n", &[0xff; 100], &content[1..60]] {
            let lines = read(&[&content, rest].concat());
            assert_eq!((lines.entries.len(), lines.damaged), (5, 0));
            assert_eq!(lines.torn_bytes as usize, rest.len());
        }
    }

    #[test]
    fn no_flipped_bit_is_taken_for_a_count() {
        let (content, ends) = file(3);
        for at in 0..content.len() * 8 {
            let mut flipped = content.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            let lines = read(&flipped);
            let known = (1..=3).map(standing).collect::<Vec<_>>();
            assert!(lines.entries.iter().all(|entry| known.contains(entry)), "bit {at}");
            let is_case = flipped[at / 8].eq_ignore_ascii_case(&content[at / 8]);
            assert!(lines.entries.len() < 3 || is_case, "bit {at}");
            if at / 8 < ends[2] - 1 && !is_case {
                assert!(lines.damaged > 0, "bit {at}: a line before the last one is damaged");
            }
        }
    }
}
