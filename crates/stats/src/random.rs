//! The generator of all random numbers: due times and bodies of a trial, bootstraps, simulations.
//! It is not from a library, so that a seed gives the same numbers on every machine and in every
//! version.

/// xoshiro256++ (Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", ACM
/// TOMS 47:4, 2021), seeded by SplitMix64 as its authors advise.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Random {
        let mut splitmix = seed;
        let mut next = || {
            splitmix = splitmix.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = splitmix;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        };
        Random { state: [next(), next(), next(), next()] }
    }

    /// The stream number `stream` of `seed`, in practice independent of the others.
    pub fn stream(seed: u64, stream: u64) -> Random {
        Random::new(seed ^ stream.wrapping_mul(0xD134_2543_DE82_EF95).rotate_left(32))
    }

    /// 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = self.state;
        let result = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        let mut next = [s0, s1, s2 ^ s0, s3 ^ s1];
        next[1] ^= next[2];
        next[0] ^= next[3];
        next[2] ^= s1 << 17;
        next[3] = next[3].rotate_left(45);
        self.state = next;
        result
    }

    /// Uniform in [0, 1), with 53 random bits.
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0..`bound`, without bias (Lemire, "Fast Random Integer Generation in an
    /// Interval", ACM TOMACS 29:1, 2019). `bound` must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            // The division is needed for few draws only: its result is less than `bound`.
            if product as u64 >= bound || product as u64 >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Uniform index into a list of `length` elements, at least one.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// Exponential with the given mean, by inversion.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.next_f64()).ln()
    }

    /// A standard normal deviate (G. E. P. Box and M. E. Muller, 1958; one of the pair is used).
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.next_f64(), self.next_f64());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state 1, 2, 3, 4 must give the first values of the authors' reference program.
    #[test]
    fn matches_the_reference_program() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| random.next_u64()).collect();
        assert_eq!(first, [41943041, 58720359, 3588806011781223, 3591011842654386]);
    }

    #[test]
    fn exponential_has_its_mean_and_variance() {
        let mut random = Random::new(7);
        let values: Vec<f64> = (0..200_000).map(|_| random.exponential(2.0)).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
        assert!((mean - 2.0).abs() < 0.03, "mean {mean}");
        assert!((square - 4.0).abs() < 0.15, "variance {square}");
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
        (0..n).for_each(|_| counts[random.index(5)] += 1);
        assert!(counts.iter().all(|count| count.abs_diff(20_000) < 700), "{counts:?}");
    }
}
