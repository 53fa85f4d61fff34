//! Writes blocks of header fields (RFC 7541). A field that is sent again and again is an index of
//! one byte after its first time.

use super::huffman;
use super::table::{Found, SIZE_DEFAULT, Table};

/// The encoder of one direction of a connection. Entries of its table are never evicted: fields for
/// which there is no room are written out each time, so that blocks stay the same.
#[derive(Debug)]
pub(crate) struct Encoder {
    table: Table,
    /// The peer's limit became smaller: the next block begins with it.
    is_resized: bool,
}

/// Whether a field may enter the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Indexing {
    /// It is expected again.
    Indexed,
    /// It differs from message to message.
    Plain,
}

impl Encoder {
    /// The encoder of a connection that has just opened.
    pub(crate) const fn new() -> Encoder {
        Encoder { table: Table::new(), is_resized: false }
    }

    /// Number that changes whenever earlier bytes of a block must not be sent again.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.table.generation()
    }

    /// Takes the peer's limit (`SETTINGS_HEADER_TABLE_SIZE`). The table never grows beyond the
    /// default.
    pub(crate) fn limit(&mut self, size_max: u32) {
        let size_max = usize::try_from(size_max).unwrap_or(usize::MAX).min(SIZE_DEFAULT);
        if size_max < self.table.size_max() {
            self.table.resize(0);
            self.table.resize(size_max);
            self.is_resized = true;
        }
    }

    /// Begins a block: reports a smaller table (section 4.2), which is empty then.
    #[inline]
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_resized) {
            put_integer(out, 0x20, 5, 0);
            put_integer(out, 0x20, 5, self.table.size_max());
        }
    }

    /// Appends a field.
    pub(crate) fn put(&mut self, name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        let index = match self.table.find(name, value) {
            Found::Field(index) => return put_integer(out, 0x80, 7, index),
            Found::Name(index) => index,
            Found::Nothing => 0,
        };
        match indexing == Indexing::Indexed && self.table.has_room(name, value) {
            true => {
                put_integer(out, 0x40, 6, index);
                self.table.insert(name, value);
            }
            false => put_integer(out, 0, 4, index),
        }
        if index == 0 {
            put_string(out, 0, 7, name);
        }
        put_string(out, 0, 7, value);
    }
}

/// Appends an integer behind a prefix of some bits (section 5.1); `first` holds the bits before it.
pub(crate) fn put_integer(out: &mut Vec<u8>, first: u8, prefix: u32, value: usize) {
    let limit = (1_usize << prefix) - 1;
    if value < limit {
        return out.push(first | value as u8);
    }
    out.push(first | limit as u8);
    let mut left = value - limit;
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

/// Appends a string in the shorter of its two forms (section 5.2), behind the bits of `first`.
pub(crate) fn put_string(out: &mut Vec<u8>, first: u8, prefix: u32, text: &[u8]) {
    let coded_bytes = huffman::encoded_bytes(text);
    if coded_bytes < text.len() {
        put_integer(out, first | 1 << prefix, prefix, coded_bytes);
        huffman::encode(text, out);
    } else {
        put_integer(out, first, prefix, text.len());
        out.extend_from_slice(text);
    }
}
