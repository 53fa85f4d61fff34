//! Format of a store's file: a head of eight bytes, then one record behind the other. A record is
//! its kind (1 byte), the lengths of its name (2 bytes) and body (4 bytes), the CRC-32 of all of
//! it, the name and the body; numbers are little-endian. Pure functions.

use std::collections::HashMap;

use weigh_model::server::{ConnectionId, Record};

/// First bytes of a store's file.
pub const FILE_HEAD: &[u8; 8] = b"weighst1";

/// Appends `record` to `into`. Names are cut at 65,535 bytes; a body of more than 4 GiB, which no
/// server holds as a whole, is cut there.
pub fn append(into: &mut Vec<u8>, record: Record<'_>) {
    match record {
        Record::Message { name, body } => append_as(into, MESSAGE, name, body),
        Record::Piece { of, is_first: true, body } => {
            append_as(into, FIRST_PIECE, &of.0.to_le_bytes(), body);
        }
        Record::Piece { of, is_first: false, body } => {
            append_as(into, PIECE, &of.0.to_le_bytes(), body);
        }
        Record::End { of } => append_as(into, END, &of.0.to_le_bytes(), &[]),
    }
}

fn append_as(into: &mut Vec<u8>, kind: u8, name: &[u8], body: &[u8]) {
    let name = &name[..name.len().min(usize::from(u16::MAX))];
    let body = &body[..body.len().min(u32::MAX as usize)];
    let mut head = [0; HEAD_BYTES];
    head[0] = kind;
    head[1..3].copy_from_slice(&(name.len() as u16).to_le_bytes());
    head[3..7].copy_from_slice(&(body.len() as u32).to_le_bytes());
    let check = check(&head[..7], name, body);
    head[7..].copy_from_slice(&check.to_le_bytes());
    into.extend_from_slice(&head);
    into.extend_from_slice(name);
    into.extend_from_slice(body);
}

/// A record of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'f> {
    kind: u8,
    name: &'f [u8],
    body: &'f [u8],
}

/// All whole records of a file, in the order in which they were written. It ends at the first one
/// that is cut off or damaged, as the last one is after a crash.
#[derive(Clone, Debug)]
pub struct Records<'f> {
    rest: &'f [u8],
}

impl<'f> Records<'f> {
    /// Reads the bytes of a store's file.
    ///
    /// # Errors
    /// If the file does not begin as a store's file does.
    pub fn of(file: &'f [u8]) -> Result<Records<'f>, String> {
        let rest = file.strip_prefix(FILE_HEAD);
        let rest = rest.ok_or(
            "it does not begin with \"weighst1\": this is not a file of weigh serve --store",
        )?;
        Ok(Records { rest })
    }

    /// Bytes after the last whole record; ask after the iteration.
    pub fn torn_bytes(&self) -> usize {
        self.rest.len()
    }
}

impl<'f> Iterator for Records<'f> {
    type Item = Found<'f>;

    fn next(&mut self) -> Option<Found<'f>> {
        let (head, rest) = self.rest.split_first_chunk::<HEAD_BYTES>()?;
        let name_bytes = usize::from(u16::from_le_bytes([head[1], head[2]]));
        let body_bytes = u32::from_le_bytes([head[3], head[4], head[5], head[6]]) as usize;
        let (name, rest) = rest.split_at_checked(name_bytes)?;
        let (body, rest) = rest.split_at_checked(body_bytes)?;
        let sealed = u32::from_le_bytes([head[7], head[8], head[9], head[10]]);
        if check(&head[..7], name, body) != sealed {
            return None;
        }
        self.rest = rest;
        Some(Found { kind: head[0], name, body })
    }
}

/// Calls `on_message` with name and body of every whole message in a store's file, and returns the
/// number of bytes after the last whole record.
///
/// # Errors
/// If the file does not begin as a store's file does.
///
/// # Examples
///
/// ```
/// use weigh_engine::storage::{FILE_HEAD, append, messages};
/// use weigh_model::server::Record;
///
/// let mut file = FILE_HEAD.to_vec();
/// append(&mut file, Record::Message { name: b"site/1", body: b"21.5" });
/// file.push(1); // The beginning of a record that a crash cut off.
/// let mut bodies = Vec::new();
/// let torn = messages(&file, |_, body| bodies.push(body.to_vec()))?;
/// assert_eq!((bodies, torn), (vec![b"21.5".to_vec()], 1));
/// # Ok::<(), String>(())
/// ```
pub fn messages(file: &[u8], mut on_message: impl FnMut(&[u8], &[u8])) -> Result<usize, String> {
    let mut records = Records::of(file)?;
    let mut passing: HashMap<ConnectionId, Vec<u8>> = HashMap::new();
    for Found { kind, name, body } in records.by_ref() {
        let of = || {
            name.try_into()
                .map_or(ConnectionId(u32::MAX), |of| ConnectionId(u32::from_le_bytes(of)))
        };
        match kind {
            MESSAGE => on_message(name, body),
            FIRST_PIECE => drop(passing.insert(of(), body.to_vec())),
            PIECE => passing.entry(of()).or_default().extend_from_slice(body),
            END => on_message(&[], &passing.remove(&of()).unwrap_or_default()),
            _ => {}
        }
    }
    Ok(records.torn_bytes())
}

fn check(head: &[u8], name: &[u8], body: &[u8]) -> u32 {
    let mut check = crc32fast::Hasher::new();
    [head, name, body].into_iter().for_each(|part| check.update(part));
    check.finalize()
}

/// Bytes of a record before its name.
pub const HEAD_BYTES: usize = 11;

const MESSAGE: u8 = 1;
const FIRST_PIECE: u8 = 2;
const PIECE: u8 = 3;
const END: u8 = 4;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn file(bodies: &[Vec<u8>]) -> Vec<u8> {
        let mut file = FILE_HEAD.to_vec();
        bodies.iter().for_each(|body| append(&mut file, Record::Message { name: b"t", body }));
        file
    }

    fn read(file: &[u8]) -> (Vec<Vec<u8>>, usize) {
        let mut bodies = Vec::new();
        let torn = messages(file, |_, body| bodies.push(body.to_vec())).unwrap();
        (bodies, torn)
    }

    proptest! {
        #[test]
        fn a_file_cut_anywhere_holds_every_record_before_the_cut(
            bodies in vec(vec(any::<u8>(), 0..40), 0..8),
            cut in 0_usize..400,
        ) {
            let whole = file(&bodies);
            let cut = (FILE_HEAD.len() + cut).min(whole.len());
            let (found, torn) = read(&whole[..cut]);
            prop_assert_eq!(&bodies[..found.len()], &found[..]);
            let kept = file(&found).len();
            prop_assert_eq!(kept + torn, cut);
            let next = bodies.get(found.len()).map_or(0, |body| HEAD_BYTES + 1 + body.len());
            prop_assert!(torn < next.max(1));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..200)) {
            let mut file = FILE_HEAD.to_vec();
            file.extend(bytes);
            let _ = read(&file);
        }

        #[test]
        fn a_changed_byte_ends_the_reading(at in 0_usize..HEAD_BYTES + 6, bit in 0_u8..8) {
            let mut file = file(&[b"hello".to_vec()]);
            file[FILE_HEAD.len() + at] ^= 1 << bit;
            prop_assert_eq!(read(&file).0.len(), 0);
        }
    }

    #[test]
    fn pieces_of_several_connections_become_their_messages_at_their_ends() {
        let mut file = FILE_HEAD.to_vec();
        let (one, two) = (ConnectionId(1), ConnectionId(2));
        for record in [
            Record::Piece { of: one, is_first: true, body: b"lost with its connection" },
            Record::Piece { of: one, is_first: true, body: b"a" },
            Record::Piece { of: two, is_first: true, body: b"x" },
            Record::Piece { of: one, is_first: false, body: b"b" },
            Record::End { of: one },
            Record::Piece { of: two, is_first: false, body: b"y" },
            Record::End { of: two },
            Record::Piece { of: two, is_first: true, body: b"no end" },
        ] {
            append(&mut file, record);
        }
        assert_eq!(read(&file), (vec![b"ab".to_vec(), b"xy".to_vec()], 0));
    }

    #[test]
    fn another_file_is_refused() {
        assert!(Records::of(b"PK").unwrap_err().contains("not a file of weigh serve"));
    }
}
