//! What a person reads off htop while a load runs: the share of the cores that was used, one figure
//! every 1.5 seconds (htop's default delay is 15 tenths of a second, htop(1), `-d`). What it shows
//! is the time between two readings of `/proc/stat` that a core did not idle or wait (htop's
//! `Platform_setCPUValues` on Linux), whoever used it.
//!
//! Nobody starts a load in step with htop, so a short run lies somewhere in a window that is mostly
//! idle: the figure tells how much of the window it filled, and not how much it needed.

use std::collections::BTreeMap;

use weigh_model::Nanos;
use weigh_stats::random::Random;

/// From one reading to the next.
pub const EVERY: Nanos = Nanos::from_millis(1_500);

/// What the kernel had counted for some cores at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// When, nanoseconds on any clock that does not jump.
    pub at_ns: u64,
    /// Time that they neither idled nor waited, nanoseconds.
    pub busy_ns: u64,
    /// All of their time.
    pub all_ns: u64,
}

/// What stood on the screen during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// The mean of all figures that were shown, percent of the cores.
    pub mean_percent: f64,
    /// The highest of them.
    pub max_percent: f64,
    /// How many there were.
    pub samples: u32,
}

/// How long before a run the reading lies that its first figure begins with: anything below
/// [`EVERY`], as likely as any other, by the seed.
pub fn phase(seed: u64) -> Nanos {
    Nanos(Random::stream(seed, PHASE_STREAM).below(EVERY.0))
}

impl Shown {
    /// The figures that were shown of a run from `from_ns` to `to_ns`: those whose windows hold
    /// some of it, the last one after its end included. A window of less than half of [`EVERY`] is
    /// none that htop would have shown, and is left out. `None` where no two readings lie around
    /// the run, or none are left.
    pub fn of(readings: &[Reading], (from_ns, to_ns): (u64, u64)) -> Option<Shown> {
        let shown: Vec<f64> = readings
            .windows(2)
            .filter(|pair| pair[1].at_ns > from_ns && pair[0].at_ns < to_ns.max(from_ns + 1))
            .filter(|pair| pair[1].at_ns.saturating_sub(pair[0].at_ns) >= EVERY.0 / 2)
            .filter_map(|pair| {
                let all_ns = pair[1].all_ns.checked_sub(pair[0].all_ns).filter(|all| *all > 0)?;
                let busy_ns = pair[1].busy_ns.saturating_sub(pair[0].busy_ns);
                Some((100.0 * busy_ns as f64 / all_ns as f64).min(100.0))
            })
            .collect();
        let last = readings.last()?;
        if shown.is_empty() || readings[0].at_ns > from_ns || last.at_ns < to_ns {
            return None;
        }
        Some(Shown {
            mean_percent: shown.iter().sum::<f64>() / shown.len() as f64,
            max_percent: shown.iter().copied().fold(0.0, f64::max),
            samples: shown.len() as u32,
        })
    }

    pub(crate) fn figures(self) -> BTreeMap<&'static str, f64> {
        let Shown { mean_percent, max_percent, .. } = self;
        [("htop_cpu_percent.mean", mean_percent), ("htop_cpu_percent.max", max_percent)].into()
    }
}

/// Which of the seed's streams the phase is drawn from.
const PHASE_STREAM: u64 = 0x6874_6f70;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// One core that is busy from `from` to `to` milliseconds and idle else, read every 1.5 s from
    /// 0 on.
    fn core(from: u64, to: u64, readings: u64) -> Vec<Reading> {
        (0..readings)
            .map(|number| {
                let at = number * 1_500;
                let busy = at.clamp(from, to) - from;
                Reading { at_ns: at * MS, busy_ns: busy * MS, all_ns: at * MS }
            })
            .collect()
    }

    /// A burst of 0.8 s fills 53 % of one window, or what two windows have of it: never 100 %.
    #[test]
    fn a_short_burst_fills_the_window_that_it_lies_in() {
        let shown = |from| Shown::of(&core(from, from + 800, 4), (from * MS, (from + 800) * MS));
        let within = shown(100).unwrap();
        assert!((within.mean_percent - 53.33).abs() < 0.01, "{within:?}");
        assert_eq!((within.max_percent, within.samples), (within.mean_percent, 1));
        let across = shown(1_200).unwrap();
        assert_eq!((across.samples, across.max_percent.round()), (2, 33.0));
        assert!((across.mean_percent - 26.67).abs() < 0.01, "{across:?}");
    }

    /// Ten seconds of a full core: all windows but the first and the last are full.
    #[test]
    fn a_long_run_shows_what_it_uses() {
        let shown = Shown::of(&core(700, 10_700, 9), (700 * MS, 10_700 * MS)).unwrap();
        assert_eq!((shown.samples, shown.max_percent), (8, 100.0));
        assert!((shown.mean_percent - 100.0 * 10.0 / 12.0).abs() < 0.01, "{shown:?}");
    }

    /// A look 10 ms after the one before says 100 % or 0 %, and nothing of the run.
    #[test]
    fn a_window_that_is_next_to_nothing_is_left_out() {
        let mut looks = core(100, 900, 3);
        let after = looks[1].at_ns + 10 * MS;
        looks.insert(2, Reading { at_ns: after, busy_ns: looks[1].busy_ns, all_ns: after });
        let run = (100 * MS, 1_505 * MS);
        let shown = Shown::of(&looks, run).unwrap();
        assert_eq!(shown.samples, 1, "{shown:?}");
        assert!((shown.mean_percent - 53.33).abs() < 0.01, "{shown:?}");
        assert_eq!(Shown::of(&looks[1..3], (1_501 * MS, 1_505 * MS)), None);
    }

    #[test]
    fn a_run_that_no_two_readings_hold_is_not_shown() {
        assert_eq!(Shown::of(&core(0, 100, 2), (100 * MS, 1_600 * MS)), None);
        assert_eq!(Shown::of(&core(0, 100, 1), (0, 0)), None);
        assert!(Shown::of(&core(0, 100, 2), (10 * MS, 10 * MS)).is_some(), "over at once");
    }

    #[test]
    fn phases_follow_from_seeds_and_fill_the_window() {
        assert_eq!(phase(7), phase(7));
        let phases: Vec<u64> = (0..1_000).map(|seed| phase(seed).0).collect();
        assert!(phases.iter().all(|phase| *phase < EVERY.0));
        let mean = phases.iter().sum::<u64>() as f64 / 1e3 / EVERY.0 as f64;
        assert!((mean - 0.5).abs() < 0.05, "{mean}");
    }
}
