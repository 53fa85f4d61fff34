//! Field sections of QPACK (RFC 9204) without a dynamic table: this end announces that it has none,
//! and uses none of the peer's, so that every section is understood alone.

use super::static_table::{self, STATIC};
pub(super) use crate::http2_core::decoder::Flaw;
use crate::http2_core::decoder::{integer, string};
use crate::http2_core::encoder::{put_integer, put_string};

/// Appends the prefix of a section (section 4.5.1): neither a required insert count nor a base.
pub(super) fn put_prefix(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0]);
}

/// Appends a field.
pub(super) fn put(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    match static_table::find(name, value) {
        // Section 4.5.2: an indexed field line of the static table.
        Some((index, true)) => put_integer(out, 0xc0, 6, index),
        // Section 4.5.4: a literal with a name of the static table.
        Some((index, false)) => {
            put_integer(out, 0x50, 4, index);
            put_string(out, 0, 7, value);
        }
        // Section 4.5.6: a literal with a literal name.
        None => {
            put_string(out, 0x20, 3, name);
            put_string(out, 0, 7, value);
        }
    }
}

/// Passes the fields of a whole section to `each`. Fields beyond [`LIST_BYTES_MAX`] are left out;
/// then the result is false.
///
/// # Errors
/// If the section is not valid, or needs a dynamic table.
pub(super) fn decode(section: &[u8], mut each: impl FnMut(&[u8], &[u8])) -> Result<bool, Flaw> {
    let mut rest = section;
    if integer(&mut rest, 8, CUT_OFF)? != 0 {
        return Err(Flaw("a section needs a dynamic table, which this end does not have"));
    }
    // The base means nothing without that table.
    integer(&mut rest, 7, CUT_OFF)?;
    let (mut name, mut value, mut list_bytes) = (Vec::new(), Vec::new(), 0);
    while let Some(first) = rest.first().copied() {
        value.clear();
        name.clear();
        if first & 0x80 != 0 {
            let index = if first & 0x40 != 0 {
                integer(&mut rest, 6, CUT_OFF)?
            } else {
                return Err(DYNAMIC);
            };
            let (known, content) = STATIC.get(index).ok_or(NO_ENTRY)?;
            name.extend_from_slice(known.as_bytes());
            value.extend_from_slice(content.as_bytes());
        } else if first & 0x40 != 0 {
            if first & 0x10 == 0 {
                return Err(DYNAMIC);
            }
            let (known, _) = STATIC.get(integer(&mut rest, 4, CUT_OFF)?).ok_or(NO_ENTRY)?;
            name.extend_from_slice(known.as_bytes());
            string(&mut rest, 7, CUT_OFF, &mut value)?;
        } else if first & 0x20 != 0 {
            string(&mut rest, 3, CUT_OFF, &mut name)?;
            string(&mut rest, 7, CUT_OFF, &mut value)?;
        } else {
            return Err(DYNAMIC);
        }
        list_bytes += name.len() + value.len() + ENTRY_BYTES;
        if list_bytes <= LIST_BYTES_MAX {
            each(&name, &value);
        }
    }
    Ok(list_bytes <= LIST_BYTES_MAX)
}

const CUT_OFF: Flaw = Flaw("a section of fields is cut off");
const NO_ENTRY: Flaw = Flaw("an index has no entry in the static table");
const DYNAMIC: Flaw = Flaw("a field refers to a dynamic table, which this end does not have");

/// Bytes of an entry besides name and value (section 3.2.1).
const ENTRY_BYTES: usize = 32;

/// Bytes of the fields of one message that are taken, as SETTINGS_MAX_FIELD_SECTION_SIZE counts
/// them (RFC 9114, section 4.2.2).
pub(super) const LIST_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields(section: &[u8]) -> Result<Vec<(String, String)>, Flaw> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut fields = Vec::new();
        decode(section, |name, value| fields.push((text(name), text(value))))?;
        Ok(fields)
    }

    /// RFC 9204, appendix B.1: `:path` as a literal with a name of the static table.
    #[test]
    fn the_example_of_the_standard_is_read() {
        let section = b"\x00\x00\x51\x0b/index.html";
        let due = vec![(":path".to_owned(), "/index.html".to_owned())];
        assert_eq!(fields(section), Ok(due));
        let mut own = Vec::new();
        put_prefix(&mut own);
        put(b":path", b"/index.html", &mut own);
        // The same, in Huffman's code.
        assert_eq!(own[..4], [0, 0, 0x51, 0x88]);
    }

    /// RFC 9204, appendix B.2 and later need a dynamic table.
    #[test]
    fn what_needs_a_dynamic_table_is_refused() {
        for section in [
            &b"\x03\x81\x10\x11"[..],
            b"\x00\x00\x80",
            b"\x00\x00\x40\x00",
            b"\x00\x00\x10",
            b"\x00\x00\x00\x00",
            b"\x00\x00\xff\x30",
            b"\x00\x00\x51\x0b/index",
            b"\x00\x00\xff\xff\xff\xff\xff\xff\xff",
            b"\x00",
            b"",
        ] {
            assert!(fields(section).is_err(), "{section:02x?}");
        }
        assert_eq!(fields(b"\x00\x00"), Ok(Vec::new()));
    }

    #[test]
    fn long_lists_are_cut() {
        let mut section = vec![0, 0];
        for _ in 0..20 {
            put(b"x-long", &[b'~'; 1_000], &mut section);
        }
        let mut count = 0;
        assert_eq!(decode(&section, |_, _| count += 1), Ok(false));
        assert!(count < 20);
    }

    proptest! {
        #[test]
        fn fields_come_back(
            list in prop::collection::vec(("[:a-z-]{1,20}", "[ -~]{0,200}"), 0..12),
        ) {
            let mut section = Vec::new();
            put_prefix(&mut section);
            for (name, value) in &list {
                put(name.as_bytes(), value.as_bytes(), &mut section);
            }
            prop_assert_eq!(fields(&section), Ok(list));
        }

        #[test]
        fn no_section_panics(section in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = fields(&section);
        }
    }
}
