//! Data in a page as text: compressed, and four bytes as five printable characters.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

/// `content`, compressed (RFC 1952), as text that can be in a script element and is a fifteenth
/// shorter than base64. `script.js` unpacks it; browsers decompress it by themselves since 2023.
pub(crate) fn packed(content: &[u8]) -> String {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    let written = packed.write_all(content);
    text(&written.and_then(|()| packed.finish()).expect("memory takes everything"))
}

/// Groups of four bytes as numbers of base 85, the most significant digit first. The last group has
/// one digit more than it has bytes.
fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() / 4 * 5 + 5);
    for group in bytes.chunks(4) {
        let mut whole = [0; 4];
        whole[..group.len()].copy_from_slice(group);
        let mut number = u32::from_be_bytes(whole);
        let mut digits = ['#'; 5];
        for digit in digits.iter_mut().rev() {
            *digit = CHARACTERS[number as usize % 85];
            number /= 85;
        }
        text.extend(&digits[..=group.len()]);
    }
    text
}

/// The characters of the digits: from `#` to `z` without those that HTML or a script reads, which
/// are `&`, `<` and `\`.
const CHARACTERS: [char; 85] = characters();

const fn characters() -> [char; 85] {
    let mut all = ['#'; 85];
    let (mut digit, mut code) = (0, b'#');
    while digit < all.len() {
        if !matches!(code, b'&' | b'<' | b'\\') {
            all[digit] = code as char;
            digit += 1;
        }
        code += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_eighty_five_characters_that_html_does_not_read() {
        let all: std::collections::BTreeSet<char> = CHARACTERS.into_iter().collect();
        assert_eq!((all.len(), CHARACTERS[0], CHARACTERS[84]), (85, '#', 'z'));
        assert!(['&', '<', '\\', '"'].iter().all(|special| !all.contains(special)));
    }

    #[test]
    fn four_bytes_are_five_characters_and_the_last_group_is_shorter() {
        // 0x01020304 is 16,909,060: the digits 0, 27, 45, 30, 10 of base 85.
        let digits: String = [0, 27, 45, 30, 10].map(|digit| CHARACTERS[digit]).iter().collect();
        assert_eq!(text(&[1, 2, 3, 4]), digits);
        for (bytes, characters) in [(0, 0), (1, 2), (2, 3), (3, 4), (5, 7), (8, 10)] {
            assert_eq!(text(&vec![255; bytes]).len(), characters, "{bytes}");
        }
    }
}
