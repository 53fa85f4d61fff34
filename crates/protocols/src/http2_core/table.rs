//! The tables of HPACK: the static one (RFC 7541, appendix A), and the dynamic one of a direction
//! of a connection (section 2.3.2).

use std::collections::VecDeque;

/// A dynamic table: the newest entry has the lowest index.
#[derive(Debug)]
pub(crate) struct Table {
    /// Names and values, the oldest first.
    bytes: Vec<u8>,
    /// The newest first.
    entries: VecDeque<Entry>,
    size: usize,
    size_max: usize,
    generation: u64,
}

/// Place of an entry in the bytes of its table.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    name_bytes: usize,
    value_bytes: usize,
}

/// Result of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Name and value stand there.
    Field(usize),
    /// Only the name stands there.
    Name(usize),
    /// Neither.
    Nothing,
}

impl Table {
    /// An empty table of the size that every connection begins with.
    pub(crate) const fn new() -> Table {
        Table {
            bytes: Vec::new(),
            entries: VecDeque::new(),
            size: 0,
            size_max: SIZE_DEFAULT,
            generation: 0,
        }
    }

    /// Number that changes whenever an index may mean something else.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Largest size, in bytes of section 4.1.
    pub(crate) fn size_max(&self) -> usize {
        self.size_max
    }

    /// Changes the largest size, and evicts what exceeds it (section 4.3).
    pub(crate) fn resize(&mut self, size_max: usize) {
        self.size_max = size_max;
        self.generation += 1;
        self.evict(size_max);
    }

    /// True if an entry fits without evicting another.
    pub(crate) fn has_room(&self, name: &[u8], value: &[u8]) -> bool {
        self.size + name.len() + value.len() + ENTRY_BYTES <= self.size_max
    }

    /// Adds an entry; one that is larger than the table only empties it (section 4.4).
    pub(crate) fn insert(&mut self, name: &[u8], value: &[u8]) {
        self.generation += 1;
        let size = name.len() + value.len() + ENTRY_BYTES;
        if size > self.size_max {
            return self.evict(0);
        }
        self.evict(self.size_max - size);
        self.compact();
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.size += size;
        let (name_bytes, value_bytes) = (name.len(), value.len());
        self.entries.push_front(Entry { start, name_bytes, value_bytes });
    }

    /// Name and value at an index of both tables (section 2.3.3); `None` if there is none.
    pub(crate) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        if let Some((name, value)) = STATIC.get(index.checked_sub(1)?) {
            return Some((name.as_bytes(), value.as_bytes()));
        }
        self.entries.get(index - 1 - STATIC.len()).map(|entry| self.field(*entry))
    }

    /// Looks a field up in both tables.
    pub(crate) fn find(&self, name: &[u8], value: &[u8]) -> Found {
        let fixed = STATIC.iter().map(|(own, value)| (own.as_bytes(), value.as_bytes()));
        let own = self.entries.iter().map(|entry| self.field(*entry));
        let mut found = Found::Nothing;
        for (place, (known, content)) in fixed.chain(own).enumerate() {
            if known != name {
                continue;
            }
            if content == value {
                return Found::Field(place + 1);
            }
            if found == Found::Nothing {
                found = Found::Name(place + 1);
            }
        }
        found
    }

    fn field(&self, entry: Entry) -> (&[u8], &[u8]) {
        let Entry { start, name_bytes, value_bytes } = entry;
        self.bytes[start..start + name_bytes + value_bytes].split_at(name_bytes)
    }

    fn evict(&mut self, size_max: usize) {
        while self.size > size_max {
            let Some(oldest) = self.entries.pop_back() else { break };
            self.size -= oldest.name_bytes + oldest.value_bytes + ENTRY_BYTES;
        }
    }

    /// Moves the entries to the start of the memory once evicted ones take more of it than a table.
    fn compact(&mut self) {
        let start = self.entries.back().map_or(self.bytes.len(), |oldest| oldest.start);
        if start > self.size_max.max(256) {
            self.bytes.drain(..start);
            self.entries.iter_mut().for_each(|entry| entry.start -= start);
        }
    }
}

/// Size of a table at the start of a connection (RFC 9113, section 6.5.2).
pub(crate) const SIZE_DEFAULT: usize = 4096;

/// Bytes that an entry counts besides name and value (RFC 7541, section 4.1).
pub(crate) const ENTRY_BYTES: usize = 32;

/// Appendix A.
#[rustfmt::skip]
const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"),
    (":path", "/index.html"), (":scheme", "http"), (":scheme", "https"), (":status", "200"),
    (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""),
    ("accept", ""), ("access-control-allow-origin", ""), ("age", ""), ("allow", ""),
    ("authorization", ""), ("cache-control", ""), ("content-disposition", ""),
    ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""),
    ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""),
    ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""),
    ("via", ""), ("www-authenticate", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_move_up_and_the_oldest_leave() {
        let mut table = Table::new();
        table.resize(2 * (ENTRY_BYTES + 3));
        for number in 0..1000 {
            let value = [b'0' + (number % 10) as u8, b'x'];
            table.insert(b"a", &value);
            assert_eq!(table.get(62), Some((&b"a"[..], &value[..])));
            assert!(table.bytes.len() < 400, "{}", table.bytes.len());
        }
        assert_eq!(table.get(63), Some((&b"a"[..], &b"8x"[..])));
        assert_eq!(table.get(64), None);
        assert_eq!(table.find(b"a", b"8x"), Found::Field(63));
        assert_eq!(table.find(b"a", b"7x"), Found::Name(62));
        let generation = table.generation();
        table.insert(b"too", &[0; 100]);
        assert_eq!(table.get(62), None);
        assert!(table.generation() > generation);
    }

    #[test]
    fn the_static_table_is_the_one_of_the_appendix() {
        let table = Table::new();
        let text = |index| table.get(index).map(|(name, value)| (name.to_vec(), value.to_vec()));
        let pair = |name: &str, value: &str| Some((name.into(), value.into()));
        assert_eq!(text(0), None);
        assert_eq!(text(1), pair(":authority", ""));
        assert_eq!(text(16), pair("accept-encoding", "gzip, deflate"));
        assert_eq!(text(28), pair("content-length", ""));
        assert_eq!(text(61), pair("www-authenticate", ""));
        assert_eq!(text(62), None);
    }
}
