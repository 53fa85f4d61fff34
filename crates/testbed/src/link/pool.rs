//! Memory for packets under way: equal slots, given out and taken back, touched only when used.

/// Index of a packet's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

impl Slot {
    /// The slot of this number.
    pub(crate) fn of(index: u32) -> Slot {
        Slot(index)
    }

    /// Its number.
    pub(crate) fn index(self) -> u32 {
        self.0
    }
}

/// All slots.
#[derive(Debug)]
pub(crate) struct Pool {
    bytes: Vec<u8>,
    free: Vec<u32>,
}

impl Pool {
    /// Room for this number of packets. The kernel gives zeroed memory on the first access, so room
    /// that is never used costs nothing.
    pub(crate) fn new(packets: u32) -> Pool {
        let bytes = vec![0; packets as usize * SLOT_BYTES];
        // Taken from the end: the first slots are used again and again.
        Pool { bytes, free: (0..packets).rev().collect() }
    }

    /// Takes a free slot, if there is one.
    pub(crate) fn take(&mut self) -> Option<Slot> {
        self.free.pop().map(Slot)
    }

    /// Returns a slot.
    pub(crate) fn give_back(&mut self, slot: Slot) {
        self.free.push(slot.0);
    }

    /// Its bytes, with whatever was written before.
    pub(crate) fn bytes(&self, slot: Slot) -> &[u8] {
        let at = slot.0 as usize * SLOT_BYTES;
        &self.bytes[at..at + SLOT_BYTES]
    }

    /// Its bytes, for writing.
    pub(crate) fn bytes_mut(&mut self, slot: Slot) -> &mut [u8] {
        let at = slot.0 as usize * SLOT_BYTES;
        &mut self.bytes[at..at + SLOT_BYTES]
    }

    /// Copies the first bytes of a packet into a second slot.
    pub(crate) fn copy(&mut self, slot: Slot, length: usize) -> Option<Slot> {
        let copy = self.take()?;
        let from = slot.0 as usize * SLOT_BYTES;
        self.bytes.copy_within(from..from + length, copy.0 as usize * SLOT_BYTES);
        Some(copy)
    }
}

/// An Ethernet frame of 1,500 bytes and its header of 14, rounded to cache lines.
pub(crate) const SLOT_BYTES: usize = 1536;
