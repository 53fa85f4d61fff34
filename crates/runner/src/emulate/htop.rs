//! Emulates what a user reads from htop during a load: the share of the cores in use, every 1.5
//! seconds (its default delay is 15 tenths of a second, htop(1), `-d`). It shows the time between
//! two readings of `/proc/stat` in which a core neither idled nor waited (`Platform_setCPUValues`
//! on Linux), for all processes.
//!
//! A load does not start in step with htop, so a short run covers part of a mostly idle window: the
//! figure shows how much of the window it filled, not how much CPU it needed.

use std::collections::BTreeMap;

use weigh_model::Nanos;
use weigh_stats::random::Random;

/// Time between two readings.
pub const EVERY: Nanos = Nanos::from_millis(1_500);

/// The kernel's counts for some cores at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Time, nanoseconds on any clock that does not jump.
    pub at_ns: u64,
    /// Time that the cores neither idled nor waited, nanoseconds.
    pub busy_ns: u64,
    /// Total time of the cores, nanoseconds.
    pub all_ns: u64,
}

/// Figures on the screen during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// Mean of the figures, percent of the cores.
    pub mean_percent: f64,
    /// The highest figure.
    pub max_percent: f64,
    /// Number of figures.
    pub samples: u32,
}

/// Time from the first window's start to the run: less than [`EVERY`], uniform, by the seed.
pub fn phase(seed: u64) -> Nanos {
    Nanos(Random::stream(seed, PHASE_STREAM).below(EVERY.0))
}

impl Shown {
    /// Figures of a run from `from_ns` to `to_ns`: those whose windows overlap it, including the
    /// last one after its end. Windows shorter than half of [`EVERY`] are left out, because htop
    /// would not show them. `None` without two readings around the run, or without windows.
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

/// The seed's stream for the phase.
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

    /// A sample 10 ms after the previous one shows 100 % or 0 %, whatever the run does.
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
