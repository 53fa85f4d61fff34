//! Numbers that look random and are the same on every machine: a bootstrap or a simulation with
//! the same seed gives the same digits for ever.

/// The generator xoshiro256++ (D. Blackman and S. Vigna, 2019), seeded through splitmix64 as its
/// authors advise.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// Starts from `seed`; every seed is as good as any other, 0 too.
    pub fn new(seed: u64) -> Random {
        let mut mixed = seed;
        Random { state: std::array::from_fn(|_| splitmix(&mut mixed)) }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform from 0 up to but not including 1.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number from 0 up to but not including `below`, which is at least 1: the upper half
    /// of a product (D. Lemire, 2019), whose bias of below / 2^64 nobody can see.
    pub fn below(&mut self, below: usize) -> usize {
        ((u128::from(self.bits()) * below as u128) >> 64) as usize
    }

    /// A standard normal deviate (G. E. P. Box and M. E. Muller, 1958; one of the pair is used).
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of splitmix64 from the seed 1234567, as its published code gives them.
    #[test]
    fn the_seed_is_mixed_as_published() {
        let mut state = 1_234_567;
        let first: Vec<u64> = (0..3).map(|_| splitmix(&mut state)).collect();
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!(first[..2], expected);
    }

    #[test]
    fn deviates_have_the_moments_that_they_should() {
        let mut random = Random::new(7);
        let n = 100_000;
        let normal: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        let mean = normal.iter().sum::<f64>() / f64::from(n);
        let variance = normal.iter().map(|z| z * z).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 0.015 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
        let mut counts = [0u32; 5];
        (0..n).for_each(|_| counts[random.below(5)] += 1);
        assert!(counts.iter().all(|count| count.abs_diff(20_000) < 700), "{counts:?}");
    }
}
