//! Packet identifiers in flight: each belongs to an entry until it is acknowledged. Nothing
//! is allocated until the first message, and identifiers are reused as late as possible.

/// Entries in flight by packet identifier, 1 to 65,535.
#[derive(Clone, Debug)]
pub struct Slots<T> {
    slots: Vec<Slot<T>>,
    first_free: u16,
    last_free: u16,
    used: u16,
}

#[derive(Clone, Debug)]
enum Slot<T> {
    /// Free; the next free index follows, or [`NONE`].
    Free(u16),
    Used(T),
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { slots: Vec::new(), first_free: NONE, last_free: NONE, used: 0 }
    }
}

impl<T> Slots<T> {
    /// Number of entries in flight.
    pub fn len(&self) -> usize {
        usize::from(self.used)
    }

    /// True if nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Stores `entry`, and names it; `None` if all 65,535 identifiers are in use.
    pub fn insert(&mut self, entry: T) -> Option<u16> {
        let index = match self.first_free {
            NONE if self.slots.len() == usize::from(NONE) => return None,
            index if index == NONE || self.slots.len() < REUSED_FROM => {
                self.slots.push(Slot::Used(entry));
                self.slots.len() as u16 - 1
            }
            index => {
                let slot = &mut self.slots[usize::from(index)];
                if let Slot::Free(next) = *slot {
                    self.first_free = next;
                }
                if self.first_free == NONE {
                    self.last_free = NONE;
                }
                *slot = Slot::Used(entry);
                index
            }
        };
        self.used += 1;
        Some(index + 1)
    }

    /// The entry of `id`.
    pub fn get_mut(&mut self, id: u16) -> Option<&mut T> {
        match self.slots.get_mut(usize::from(id.checked_sub(1)?))? {
            Slot::Used(entry) => Some(entry),
            Slot::Free(_) => None,
        }
    }

    /// Takes the entry of `id` out; the identifier is free again, last in line.
    pub fn remove(&mut self, id: u16) -> Option<T> {
        let index = id.checked_sub(1)?;
        let slot = self.slots.get_mut(usize::from(index))?;
        if matches!(slot, Slot::Free(_)) {
            return None;
        }
        let Slot::Used(entry) = std::mem::replace(slot, Slot::Free(NONE)) else { return None };
        match self.last_free {
            NONE => self.first_free = index,
            last => self.slots[usize::from(last)] = Slot::Free(index),
        }
        self.last_free = index;
        self.used -= 1;
        Some(entry)
    }

    /// All entries with their identifiers, by identifier.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| match slot {
            Slot::Used(entry) => Some((index as u16 + 1, entry)),
            Slot::Free(_) => None,
        })
    }
}

/// A set of packet identifiers, one bit each: what QoS 2 has received and not yet released.
#[derive(Clone, Debug, Default)]
pub struct IdSet {
    words: Vec<u64>,
    count: u16,
}

impl IdSet {
    /// Number of identifiers in the set.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// True if none is in.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// True if `id` is in.
    pub fn contains(&self, id: u16) -> bool {
        self.words.get(usize::from(id / 64)).is_some_and(|word| word & (1 << (id % 64)) != 0)
    }

    /// Puts `id` in; false if it was in.
    pub fn insert(&mut self, id: u16) -> bool {
        if self.contains(id) {
            return false;
        }
        let word = usize::from(id / 64);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (id % 64);
        self.count += 1;
        true
    }

    /// Takes `id` out; false if it was not in.
    pub fn remove(&mut self, id: u16) -> bool {
        if !self.contains(id) {
            return false;
        }
        self.words[usize::from(id / 64)] &= !(1 << (id % 64));
        self.count -= 1;
        true
    }
}

/// Number of identifiers used before one is reused, so that an acknowledgement that comes
/// twice is not taken for that of the next message.
const REUSED_FROM: usize = 8;

/// No index: 65,535 identifiers need the indices 0 to 65,534.
const NONE: u16 = u16::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_identifier_can_be_in_flight_and_none_is_used_twice() {
        let mut slots = Slots::default();
        for expected in 1..=u16::MAX {
            assert_eq!(slots.insert(expected), Some(expected));
        }
        assert_eq!(slots.insert(0), None);
        assert_eq!((slots.remove(9), slots.remove(9)), (Some(9), None));
        assert_eq!((slots.remove(3), slots.remove(0)), (Some(3), None));
        assert_eq!((slots.insert(1), slots.insert(2), slots.insert(3)), (Some(9), Some(3), None));
        assert_eq!(slots.len(), 65_535);
    }

    #[test]
    fn identifiers_come_back_as_late_as_possible() {
        let mut slots = Slots::default();
        for turn in 0..20u16 {
            let id = slots.insert(turn).unwrap();
            assert_eq!((id, slots.remove(id)), (turn % 8 + 1, Some(turn)));
        }
        assert!(slots.is_empty());
        assert_eq!((slots.insert(7), slots.insert(8)), (Some(5), Some(6)));
        assert_eq!(slots.iter().collect::<Vec<_>>(), [(5, &7), (6, &8)]);
    }

    #[test]
    fn a_set_of_identifiers_holds_the_borders() {
        let mut set = IdSet::default();
        assert!(set.insert(65_535) && set.insert(1) && !set.insert(1));
        assert!(set.contains(65_535) && !set.contains(2) && set.len() == 2);
        assert!(set.remove(65_535) && !set.remove(65_535) && !set.is_empty());
    }
}
