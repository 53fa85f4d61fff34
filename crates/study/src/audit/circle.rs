//! Rayleigh's test: do directions on a circle lie together? What is left of a time after whole
//! periods is such a direction (K. V. Mardia, P. E. Jupp, "Directional Statistics", Wiley 2000,
//! section 6.3.1; the p value in the form of J. H. Zar, "Biostatistical Analysis", section 27.1).

use std::f64::consts::TAU;

/// Result of Rayleigh's test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rayleigh {
    /// p value: the chance of directions this close together, or closer, if they are random.
    pub(crate) p: f64,
    /// The mean direction, in turns from 0 to 1.
    pub(crate) mean: f64,
    /// The circular standard deviation, in turns.
    pub(crate) deviation: f64,
}

/// Tests directions given in turns; their whole parts do not matter.
pub(crate) fn rayleigh(turns: impl Iterator<Item = f64>) -> Rayleigh {
    let (mut n, mut cosines, mut sines) = (0.0f64, 0.0, 0.0);
    for turn in turns {
        let angle = TAU * turn.rem_euclid(1.0);
        (n, cosines, sines) = (n + 1.0, cosines + angle.cos(), sines + angle.sin());
    }
    let length = (cosines * cosines + sines * sines).sqrt();
    let inside = 1.0 + 4.0 * n + 4.0 * (n * n - length * length);
    let p = (inside.max(0.0).sqrt() - (1.0 + 2.0 * n)).exp().min(1.0);
    let mean = (sines.atan2(cosines) / TAU).rem_euclid(1.0);
    let mean_length = (length / n).min(1.0);
    let deviation = (-2.0 * mean_length.ln()).max(0.0).sqrt() / TAU;
    Rayleigh { p, mean, deviation }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zar's example 27.1: eight directions with mean 99 degrees and length 0.82522; z = 5.448,
    /// p between 0.001 and 0.002.
    #[test]
    fn the_textbook_example_comes_out() {
        let degrees = [45.0, 55.0, 81.0, 96.0, 110.0, 117.0, 132.0, 154.0];
        let test = rayleigh(degrees.iter().map(|degree| degree / 360.0));
        assert!((test.mean * 360.0 - 98.8).abs() < 0.5, "{test:?}");
        assert!((0.001..0.002).contains(&test.p), "{test:?}");
    }

    #[test]
    fn even_directions_have_no_togetherness() {
        let test = rayleigh((0..12).map(|hour| f64::from(hour) / 12.0));
        assert!(test.p > 0.99, "{test:?}");
    }
}
