//! Numbers that a seed decides.

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(super) struct Chance(u64);

impl Chance {
    /// The numbers of one episode: the same for a seed on every machine.
    pub(super) fn of(seed: u64, number: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number)
    }

    /// The next number, from 0 to below `below`.
    pub(super) fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below.max(1)
    }
}
