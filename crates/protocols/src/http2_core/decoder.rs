//! Reads blocks of header fields (RFC 7541), and knows a block again that it has read before.

use super::huffman;
use super::table::{ENTRY_BYTES, SIZE_DEFAULT, Table};

/// The decoder of one direction of a connection.
#[derive(Debug)]
pub(crate) struct Decoder {
    table: Table,
    /// Name and value of a field that does not stand in a table.
    name: Vec<u8>,
    value: Vec<u8>,
}

/// A block that is not valid (RFC 9113, section 4.3): COMPRESSION_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flaw(pub(crate) &'static str);

/// The last blocks and their meanings. Peers repeat their blocks byte for byte, and the same bytes
/// mean the same fields as long as the dynamic table is the same.
#[derive(Debug)]
pub(crate) struct BlockReader<M> {
    decoder: Decoder,
    known: Vec<Known<M>>,
    /// Place of the next block that is remembered.
    next: usize,
}

#[derive(Debug)]
struct Known<M> {
    /// Generation of the table at which the bytes have this meaning.
    generation: u64,
    bytes: Vec<u8>,
    meaning: M,
}

impl Decoder {
    /// The decoder of a connection that has just opened.
    pub(crate) const fn new() -> Decoder {
        Decoder { table: Table::new(), name: Vec::new(), value: Vec::new() }
    }

    /// Passes the fields of a whole block to `each`. Fields beyond [`LIST_BYTES_MAX`] are left out;
    /// then the result is false.
    ///
    /// # Errors
    /// If the block is not valid.
    pub(crate) fn decode(
        &mut self,
        block: &[u8],
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<bool, Flaw> {
        let mut rest = block;
        let (mut has_field, mut list_bytes) = (false, 0);
        while let Some(first) = rest.first() {
            if first & 0xe0 == 0x20 {
                // Section 4.2: changes of the size stand before the first field.
                let size_max = integer(&mut rest, 5, CUT_OFF)?;
                if has_field || size_max > SIZE_DEFAULT {
                    return Err(Flaw("a table size that is not allowed here"));
                }
                self.table.resize(size_max);
                continue;
            }
            has_field = true;
            let (name, value) = if first & 0x80 != 0 {
                let index = integer(&mut rest, 7, CUT_OFF)?;
                self.table.get(index).ok_or(NO_ENTRY)?
            } else {
                let (is_kept, prefix) = if first & 0x40 != 0 { (true, 6) } else { (false, 4) };
                self.literal(&mut rest, prefix)?;
                if is_kept {
                    self.table.insert(&self.name, &self.value);
                }
                (&self.name[..], &self.value[..])
            };
            list_bytes += name.len() + value.len() + ENTRY_BYTES;
            if list_bytes <= LIST_BYTES_MAX {
                each(name, value);
            }
        }
        Ok(list_bytes <= LIST_BYTES_MAX)
    }

    /// Reads a literal (section 6.2) into `name` and `value`.
    fn literal(&mut self, rest: &mut &[u8], prefix: u32) -> Result<(), Flaw> {
        match integer(rest, prefix, CUT_OFF)? {
            0 => string(rest, 7, CUT_OFF, &mut self.name)?,
            index => {
                let (name, _) = self.table.get(index).ok_or(NO_ENTRY)?;
                self.name.clear();
                self.name.extend_from_slice(name);
            }
        }
        string(rest, 7, CUT_OFF, &mut self.value)
    }
}

impl<M> BlockReader<M> {
    /// The reader of a connection that has just opened.
    pub(crate) const fn new() -> BlockReader<M> {
        BlockReader { decoder: Decoder::new(), known: Vec::new(), next: 0 }
    }

    /// Returns the meaning of a whole block; `read` finds it, unless the block is known.
    ///
    /// # Errors
    /// If the block is not valid.
    #[inline]
    pub(crate) fn read(
        &mut self,
        block: &[u8],
        read: impl FnOnce(&mut Decoder, &[u8]) -> Result<M, Flaw>,
    ) -> Result<&M, Flaw> {
        let generation = self.decoder.table.generation();
        let is_it = |known: &Known<M>| known.generation == generation && known.bytes == block;
        match self.known.iter().position(is_it) {
            Some(place) => Ok(&self.known[place].meaning),
            None => self.learn(block, read),
        }
    }

    #[cold]
    fn learn(
        &mut self,
        block: &[u8],
        read: impl FnOnce(&mut Decoder, &[u8]) -> Result<M, Flaw>,
    ) -> Result<&M, Flaw> {
        let before = self.decoder.table.generation();
        let meaning = read(&mut self.decoder, block)?;
        // A block that changes the table means something else the next time.
        let is_repeatable = before == self.decoder.table.generation();
        let is_kept = is_repeatable && block.len() <= KNOWN_BYTES_MAX;
        let generation = if is_kept { before } else { NEVER };
        let place = self.next;
        if place < self.known.len() {
            let known = &mut self.known[place];
            known.bytes.clear();
            known.bytes.extend_from_slice(if is_kept { block } else { &[] });
            (known.generation, known.meaning) = (generation, meaning);
        } else {
            let bytes = if is_kept { block.to_vec() } else { Vec::new() };
            self.known.push(Known { generation, bytes, meaning });
        }
        // A place that is never found again is the next one to be filled.
        self.next = if is_kept { (place + 1) % KNOWN_MAX } else { place };
        Ok(&self.known[place].meaning)
    }
}

/// Reads an integer behind a prefix of some bits (section 5.1), and moves `rest` behind it.
///
/// # Errors
/// It is too large, or `cut_off`.
#[inline]
pub(crate) fn integer(rest: &mut &[u8], prefix: u32, cut_off: Flaw) -> Result<usize, Flaw> {
    let (first, mut after) = rest.split_first().ok_or(cut_off)?;
    let limit = (1_usize << prefix) - 1;
    let mut value = usize::from(*first) & limit;
    if value == limit {
        let mut shift = 0;
        loop {
            let (byte, behind) = after.split_first().ok_or(cut_off)?;
            after = behind;
            if shift > 21 {
                return Err(Flaw("an integer is too large"));
            }
            value += usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = after;
    Ok(value)
}

/// Reads a string (section 5.2) into `text`, and moves `rest` behind it. Its length has a prefix of
/// some bits, with the bit of Huffman's code before it.
///
/// # Errors
/// A code that is not Huffman's, or `cut_off`.
#[inline]
pub(crate) fn string(
    rest: &mut &[u8],
    prefix: u32,
    cut_off: Flaw,
    text: &mut Vec<u8>,
) -> Result<(), Flaw> {
    let is_coded = rest.first().ok_or(cut_off)? & 1 << prefix != 0;
    let length = integer(rest, prefix, cut_off)?;
    let (bytes, after) = rest.split_at_checked(length).ok_or(cut_off)?;
    *rest = after;
    text.clear();
    if !is_coded {
        text.extend_from_slice(bytes);
    } else if !huffman::decode(bytes, text) {
        return Err(Flaw("a string has an invalid Huffman code"));
    }
    Ok(())
}

const CUT_OFF: Flaw = Flaw("a block of header fields is cut off");
const NO_ENTRY: Flaw = Flaw("an index has no entry in the table");

/// Bytes of the header fields of one message that are taken, as
/// `SETTINGS_MAX_HEADER_LIST_SIZE` counts them.
pub(crate) const LIST_BYTES_MAX: usize = 16 * 1024;

/// Blocks that are remembered: heads and trailers of a few kinds of answers.
const KNOWN_MAX: usize = 4;
const KNOWN_BYTES_MAX: usize = 512;
/// Generation of a block that is not to be known again.
const NEVER: u64 = u64::MAX;
