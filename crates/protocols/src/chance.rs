//! Random numbers of one connection, from the seed of the trial: message IDs, tokens and timers of
//! CoAP (RFC 7252, sections 4.2, 4.4 and 5.3.1), keys and masks of WebSocket (RFC 6455, section
//! 5.3).

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA
/// 2014).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The numbers of stream `stream` of `seed`.
    pub(crate) fn new(seed: u64, stream: u64) -> Chance {
        let mut chance = Chance(seed);
        let start = chance.next() ^ stream.wrapping_mul(STREAM);
        Chance(start)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// An odd number that keeps neighbouring streams apart.
const STREAM: u64 = 0xD134_2543_DE82_EF95;
