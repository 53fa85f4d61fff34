//! Whether a trial was steady: the course of its rate, interval by interval, in the measured
//! window.

use std::collections::BTreeMap;

use weigh_model::event::{Event, Interval, TrialFinished};
use weigh_model::plan::Plan;
use weigh_model::{Arrival, Pattern, Warning};
use weigh_stats::steady_state::{Better, Change, State, SteadyState};

use super::lint::asked::Asked;

/// The intervals of all trials.
pub(crate) struct Courses<'a> {
    by_trial: BTreeMap<&'a str, Vec<&'a Interval>>,
}

/// What the repetitions of a cell did.
#[derive(Default)]
pub(crate) struct Found {
    /// Number of repetitions by course.
    pub(crate) counts: BTreeMap<String, u32>,
    /// By course, how far the rate went in every repetition that was not flat, in messages/s.
    changes: BTreeMap<&'static str, Vec<Change>>,
}

impl<'a> Courses<'a> {
    /// Collects the measured intervals of every trial; those of a trial that was repeated after a
    /// crash start over.
    pub(crate) fn of(events: &'a [Event]) -> Courses<'a> {
        let mut by_trial: BTreeMap<&str, Vec<&Interval>> = BTreeMap::new();
        for event in events {
            if let Event::Interval(interval) = event {
                let known = by_trial.entry(interval.trial.as_str()).or_default();
                if known.last().is_some_and(|last| interval.at_ns <= last.at_ns) {
                    known.clear();
                }
                known.push(interval);
            }
        }
        Courses { by_trial }
    }

    /// The courses of a cell's trials; empty if a load is not meant to be steady, or nothing was
    /// counted interval by interval.
    pub(crate) fn found(&self, trials: &[&TrialFinished], plan: &Plan) -> Found {
        let mut found = Found::default();
        let Some(first) = trials.first() else { return found };
        let asked = Asked::of(&first.point, plan);
        let is_even = matches!(
            asked.arrival,
            Arrival::Closed | Arrival::Constant | Arrival::Poisson | Arrival::Periodic
        );
        if !is_even || matches!(asked.pattern, Pattern::Hold | Pattern::Session) {
            return found;
        }
        for trial in trials {
            let Some(intervals) = self.by_trial.get(trial.trial.as_str()) else { continue };
            let window_s = trial.metrics.get("window_s").copied();
            let Some(rates) = rates(intervals, window_s) else { continue };
            found.add(&rates);
        }
        found
    }
}

impl Found {
    fn add(&mut self, rates: &[f64]) {
        let course = match rates.len() {
            0..WINDOWS_MIN => None,
            _ => SteadyState::of(rates, Better::Higher).ok(),
        };
        let name = course.as_ref().map_or(TOO_SHORT, |course| course.state.name());
        *self.counts.entry(name.to_owned()).or_default() += 1;
        if let Some(change) = course.and_then(|course| course.change(rates)) {
            self.changes.entry(name).or_default().push(change);
        }
    }

    /// The warning if most repetitions, two at least, were not steady in the same or in different
    /// ways. One in twenty flat series is classified as something else, so a single one is not
    /// significant. How far the rate went is the mean over the repetitions of the most frequent
    /// course.
    pub(crate) fn warning(&self) -> Option<Warning> {
        let all: u32 = self.counts.values().sum();
        let restless = [State::WarmUp, State::SlowDown, State::NotSteady];
        let restless = restless.map(|state| (state.name(), self.changes.get(state.name())));
        let number = |changes: Option<&Vec<Change>>| changes.map_or(0, Vec::len) as u32;
        let unsteady: u32 = restless.iter().map(|(_, changes)| number(*changes)).sum();
        let (name, changes) = restless.into_iter().max_by_key(|(_, changes)| number(*changes))?;
        if unsteady < 2 || 2 * unsteady <= all {
            return None;
        }
        let mean = |of: fn(&Change) -> f64| {
            changes.map(|all| all.iter().map(of).sum::<f64>() / all.len() as f64)
        };
        let (from, to) = (mean(|change| change.from)?, mean(|change| change.to)?);
        Some(Warning::NotSteady(name, unsteady, all, from, to))
    }
}

/// Messages per second of successive windows of equal length after the warm-up: delivered ones, or
/// confirmed or sent ones if deliveries were not counted. `None` if there were none. Windows
/// are joined until one holds [`MESSAGES_MIN`] messages on average, so that the course is that of
/// the rate and not of single messages.
fn rates(intervals: &[&Interval], window_s: Option<f64>) -> Option<Vec<f64>> {
    let measured: Vec<(&Interval, f64)> = measured(intervals, window_s);
    let total = |count: fn(&Interval) -> u64| measured.iter().map(|(i, _)| count(i)).sum::<u64>();
    let counts: [fn(&Interval) -> u64; 3] = [|i| i.delivered, |i| i.acknowledged, |i| i.sent];
    let count = counts.into_iter().find(|count| total(*count) > 0)?;
    let counted = measured.iter().map(|(interval, seconds)| (count(interval), *seconds));
    let windows = even(counted.collect());
    let messages = |windows: &[(u64, f64)]| windows.iter().map(|(count, _)| count).sum::<u64>();
    let mean = messages(&windows) as f64 / windows.len() as f64;
    let joined = ((MESSAGES_MIN / mean).ceil() as usize).max(1);
    let rate = |chunk: &[(u64, f64)]| {
        let seconds: f64 = chunk.iter().map(|(_, seconds)| seconds).sum();
        messages(chunk) as f64 / seconds
    };
    Some(windows.chunks_exact(joined).map(rate).collect())
}

/// Windows of one length. If the length of a trial was not known in advance, its later intervals
/// are longer: then earlier ones are joined until they are as long as those of the last quarter.
fn even(windows: Vec<(u64, f64)>) -> Vec<(u64, f64)> {
    let usual = |part: &[(u64, f64)]| {
        let mut lengths: Vec<f64> = part.iter().map(|(_, seconds)| *seconds).collect();
        lengths.sort_by(f64::total_cmp);
        lengths.get(part.len() / 2).copied().unwrap_or(0.0)
    };
    let quarter = windows.len() / 4;
    let length = usual(&windows[windows.len() - quarter..]);
    if length < GROWN * usual(&windows[..quarter]) || quarter == 0 {
        return windows;
    }
    let (mut evened, mut window) = (Vec::new(), (0, 0.0));
    for (count, seconds) in windows {
        window = (window.0 + count, window.1 + seconds);
        if window.1 >= WHOLE * length {
            evened.push(std::mem::take(&mut window));
        }
    }
    evened
}

/// The whole intervals of the measured window and their lengths in seconds: without warm-up,
/// draining, and a last one that is shorter than the others.
fn measured<'a>(intervals: &[&'a Interval], window_s: Option<f64>) -> Vec<(&'a Interval, f64)> {
    let mut before_ns = 0;
    let mut start_ns = None;
    let mut measured: Vec<(&Interval, f64)> = Vec::new();
    for interval in intervals {
        let length_ns = interval.length_ns.unwrap_or(interval.at_ns.saturating_sub(before_ns));
        before_ns = interval.at_ns;
        if interval.warmup || interval.draining || length_ns == 0 {
            continue;
        }
        let start_ns = *start_ns.get_or_insert(interval.at_ns - length_ns.min(interval.at_ns));
        let end_s = (interval.at_ns - start_ns) as f64 / 1e9;
        let seconds = length_ns as f64 / 1e9;
        if window_s.is_none_or(|window_s| end_s <= window_s + 0.5 * seconds) {
            measured.push((interval, seconds));
        }
    }
    let longest = measured.iter().map(|(_, seconds)| *seconds).fold(0.0, f64::max);
    if measured.last().is_some_and(|(_, seconds)| *seconds < WHOLE * longest) {
        measured.pop();
    }
    measured
}

/// An interval of less than this share of the others' length is not whole.
const WHOLE: f64 = 0.9;

/// Intervals that grow with the trial double in length; a single one that a pause lengthened does
/// not count.
const GROWN: f64 = 1.5;

/// Fewer windows are too short to classify: the classes are known to be right from 20 on.
const WINDOWS_MIN: usize = 20;

/// Messages per window on average, so that their count is accurate to a fifth.
const MESSAGES_MIN: f64 = 25.0;

/// The word for a trial of too few windows.
pub(crate) const TOO_SHORT: &str = "too short to tell";

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(rates: &[u64], warm: usize) -> Vec<Interval> {
        let interval = |(index, rate): (usize, &u64)| Interval {
            at_ns: (index as u64 + 1) * 100_000_000,
            length_ns: Some(100_000_000),
            warmup: index < warm,
            delivered: *rate,
            ..Interval::default()
        };
        rates.iter().enumerate().map(interval).collect()
    }

    fn rates_of(intervals: &[Interval], window_s: Option<f64>) -> Vec<f64> {
        rates(&intervals.iter().collect::<Vec<_>>(), window_s).unwrap()
    }

    #[test]
    fn warm_up_and_drain_are_left_out() {
        let told = intervals(&[5, 900, 100, 100, 100, 100, 3], 2);
        assert_eq!(rates_of(&told, Some(0.4)), [1000.0; 4]);
        assert_eq!(rates_of(&told, None).len(), 5);
    }

    #[test]
    fn a_short_last_interval_is_none() {
        let mut told = intervals(&[100, 100, 100, 10], 0);
        told[3].length_ns = Some(10_000_000);
        assert_eq!(rates_of(&told, None), [1000.0; 3]);
    }

    /// As a trial of unknown length leaves them: 240 intervals of 0.1 s, 120 of 0.2 s, and so on.
    #[test]
    fn intervals_that_grow_with_the_trial_are_windows_of_one_length() {
        let lengths = [(240, 100), (120, 200), (120, 400), (50, 800)];
        let lengths = lengths.iter().flat_map(|(count, ms)| vec![*ms; *count]);
        let mut at_ms = 0;
        let told: Vec<Interval> = lengths
            .map(|ms: u64| {
                at_ms += ms;
                let (at_ns, length_ns) = (at_ms * 1_000_000, Some(ms * 1_000_000));
                Interval { at_ns, length_ns, delivered: 2 * ms, ..Interval::default() }
            })
            .collect();
        let rates_seen = rates_of(&told, None);
        let windows = (at_ms / 400) as usize;
        assert!((windows - 50..=windows).contains(&rates_seen.len()), "{}", rates_seen.len());
        assert!(rates_seen.iter().all(|rate| (rate - 2000.0).abs() < 1e-6), "{rates_seen:?}");
        let mut paused = intervals(&[100; 80], 0);
        paused[70].length_ns = Some(300_000_000);
        assert_eq!(rates_of(&paused, None).len(), 79, "a pause makes no other window longer");
    }

    #[test]
    fn few_messages_are_counted_over_longer_windows() {
        let told = intervals(&[1; 100], 0);
        let rates_seen = rates_of(&told, None);
        assert!(rates_seen.len() == 4 && rates_seen.iter().all(|rate| (rate - 10.0).abs() < 1e-9));
        assert_eq!(rates(&intervals(&[0; 9], 0).iter().collect::<Vec<_>>(), None), None);
    }

    #[test]
    fn one_restless_repetition_is_no_warning_and_most_of_them_are() {
        let flat: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i % 2)).collect();
        let step = |from: f64, to: f64| -> Vec<f64> {
            (0..40).map(|i| if i < 10 { from } else { to }).collect()
        };
        let line: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i)).collect();
        let warning = |all: &[&[f64]]| {
            let mut found = Found::default();
            all.iter().for_each(|rates| found.add(rates));
            found.warning()
        };
        assert_eq!(warning(&[]), None);
        assert_eq!(warning(&[&step(80.0, 100.0)]), None);
        assert_eq!(warning(&[&flat, &flat, &flat, &step(80.0, 100.0), &line]), None);
        assert_eq!(warning(&[&flat[..19]; 5]), None, "too short to tell");
        let found = warning(&[&flat, &step(80.0, 100.0), &step(100.0, 140.0), &line]).unwrap();
        assert_eq!(found, Warning::NotSteady("warm-up", 3, 4, 90.0, 120.0));
        let text = "the rate of arriving messages changed during the measurement, in 3 of 4 \
                    repetitions (most often it rose from about 90.0/s to 120/s, 33 %, and stayed)";
        assert_eq!(found.record().text, text);
        let text = warning(&[&step(100.0, 50.0)[..]; 2]).unwrap().record().text;
        let words = "(most often it fell from about 100/s to 50.0/s, 50 %, and stayed)";
        assert!(text.ends_with(words), "{text}");
        let text = warning(&[&line[..]; 2]).unwrap().record().text;
        let words = "(most often its tenths were between about 102/s and 138/s, 35 %)";
        assert!(text.ends_with(words), "{text}");
    }
}
