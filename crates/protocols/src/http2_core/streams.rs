//! The open streams of a connection by their numbers: a table with open addresses, since numbers
//! follow each other and few streams are open at once. It allocates only when it grows.

/// A table of `V` by stream.
#[derive(Debug)]
pub(crate) struct Streams<V> {
    /// A power of two of places, at least twice as many as streams; empty at first.
    places: Vec<Place<V>>,
    count: usize,
}

#[derive(Debug, Default)]
struct Place<V> {
    /// The stream; 0 for an empty place.
    stream: u32,
    value: V,
}

impl<V: Default> Streams<V> {
    /// A table without streams.
    pub(crate) const fn new() -> Streams<V> {
        Streams { places: Vec::new(), count: 0 }
    }

    /// Number of open streams.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// True if no stream is open.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a stream that is not in the table. Streams are not 0.
    #[inline]
    pub(crate) fn insert(&mut self, stream: u32, value: V) {
        if self.places.len() < 2 * (self.count + 1) {
            self.grow();
        }
        let mask = self.places.len() - 1;
        let mut at = home(stream, mask);
        while self.places[at].stream != 0 {
            at = (at + 1) & mask;
        }
        self.places[at] = Place { stream, value };
        self.count += 1;
    }

    /// The value of a stream, if it is open.
    #[inline]
    pub(crate) fn get_mut(&mut self, stream: u32) -> Option<&mut V> {
        let at = self.find(stream)?;
        Some(&mut self.places[at].value)
    }

    /// The value of a stream, if it is open.
    #[inline]
    pub(crate) fn get(&self, stream: u32) -> Option<&V> {
        Some(&self.places[self.find(stream)?].value)
    }

    /// Removes a stream, if it is open.
    #[inline]
    pub(crate) fn remove(&mut self, stream: u32) -> Option<V> {
        let mut hole = self.find(stream)?;
        let mask = self.places.len() - 1;
        let value = std::mem::take(&mut self.places[hole].value);
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let other = self.places[at].stream;
            if other == 0 {
                break;
            }
            // What stands behind its home may move up to the hole, if that is not before its home.
            let from_home = at.wrapping_sub(home(other, mask)) & mask;
            if from_home >= at.wrapping_sub(hole) & mask {
                self.places.swap(hole, at);
                hole = at;
            }
        }
        self.places[hole].stream = 0;
        self.count -= 1;
        Some(value)
    }

    /// Calls `each` for every open stream.
    pub(crate) fn for_each(&mut self, mut each: impl FnMut(u32, &mut V)) {
        let open = self.places.iter_mut().filter(|place| place.stream != 0);
        open.for_each(|place| each(place.stream, &mut place.value));
    }

    #[inline]
    fn find(&self, stream: u32) -> Option<usize> {
        let mask = self.places.len().checked_sub(1)?;
        let mut at = home(stream, mask);
        loop {
            match self.places[at].stream {
                0 => return None,
                own if own == stream => return Some(at),
                _ => at = (at + 1) & mask,
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let size = (2 * self.places.len()).max(PLACES_MIN);
        let old = std::mem::take(&mut self.places);
        self.places.resize_with(size, Place::default);
        self.count = 0;
        for place in old.into_iter().filter(|place| place.stream != 0) {
            self.insert(place.stream, place.value);
        }
    }
}

/// Streams of one side are every second number.
#[inline]
fn home(stream: u32, mask: usize) -> usize {
    (stream >> 1) as usize & mask
}

const PLACES_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a map of the standard library.
        #[test]
        fn a_table_is_a_map(steps in vec((any::<bool>(), 0_u32..60), 0..300)) {
            let (mut streams, mut map) = (Streams::new(), BTreeMap::new());
            for (is_added, number) in steps {
                let stream = 2 * number + 1;
                if is_added && !map.contains_key(&stream) {
                    map.insert(stream, number);
                    streams.insert(stream, number);
                } else {
                    prop_assert_eq!(streams.remove(stream), map.remove(&stream));
                }
                prop_assert_eq!(streams.len(), map.len());
                let mut all = BTreeMap::new();
                streams.for_each(|stream, value| {
                    all.insert(stream, *value);
                });
                prop_assert_eq!(&all, &map);
                for stream in (1..120).step_by(2) {
                    prop_assert_eq!(streams.get_mut(stream).copied(), map.get(&stream).copied());
                }
            }
        }
    }
}
