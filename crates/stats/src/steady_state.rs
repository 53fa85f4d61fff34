//! Classifies a run as steady or not: the means of its windows, cut where their level changes, are
//! Flat, WarmUp, SlowDown or NotSteady. After E. Barrett, C. F. Bolz-Tereick, R. Killick, S. Mount
//! and L. Tratt, "Virtual Machine Warmup Blows Hot and Cold" (OOPSLA 2017). "Not steady" is a
//! result, not an error to hide.
//!
//! Neighbours may be slightly correlated: with an autocorrelation of 0.3, 95 in 100 flat runs of 20
//! to 60 windows are called flat, with 0.5 some 80, the others mostly not steady. Longer windows
//! help.

use crate::Refusal;
use crate::average::median;
use crate::estimate::Sample;
use crate::segments::borders;
use crate::within_run::autocorrelation;

/// Whether lower or higher values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Times, costs, losses.
    Lower,
    /// Rates.
    Higher,
}

/// State of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// One level from the first window on.
    Flat,
    /// It became better and stayed so.
    WarmUp,
    /// It became worse and stayed so.
    SlowDown,
    /// It was not steady during the last [`REST_SHARE`] of the run.
    NotSteady,
}

impl State {
    /// The words in reports.
    pub fn name(self) -> &'static str {
        match self {
            State::Flat => "flat",
            State::WarmUp => "warm-up",
            State::SlowDown => "slow-down",
            State::NotSteady => "not steady",
        }
    }
}

/// Windows from `start` up to `end` that share a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// The first window.
    pub start: usize,
    /// The window after the last.
    pub end: usize,
    /// The mean of the windows.
    pub mean: f64,
}

/// A change of the mean of windows, in their unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The level before, or the lowest one.
    pub from: f64,
    /// The level after, or the highest one.
    pub to: f64,
}

/// The state and its segments.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyState {
    /// State of the run.
    pub state: State,
    /// The levels in their order; the level changes at their ends.
    pub segments: Vec<Segment>,
    /// The first window of the steady level; `None` if there is none.
    pub steady_from: Option<usize>,
}

impl SteadyState {
    /// Classifies the means of at least [`WINDOWS_MIN`] successive windows of equal length. Levels
    /// that differ by less than [`CHANGE_MIN`] of the median count as one. Windows are first joined
    /// in pairs if there are too many, or if neighbours are too strongly correlated.
    ///
    /// # Errors
    /// Below [`WINDOWS_MIN`] windows, or if one is not finite.
    pub fn of(windows: &[f64], better: Better) -> Result<SteadyState, Refusal> {
        if windows.iter().any(|value| !value.is_finite()) {
            return Err(Refusal::NoValues);
        }
        if windows.len() < WINDOWS_MIN {
            return Err(Refusal::TooFew { have: windows.len(), needed: WINDOWS_MIN });
        }
        let (joined, length) = in_pairs(windows);
        let mut found = SteadyState::of_few(&joined, better);
        for segment in &mut found.segments {
            (segment.start, segment.end) = (segment.start * length, segment.end * length);
        }
        if let Some(last) = found.segments.last_mut() {
            last.end = windows.len();
        }
        found.steady_from = found.steady_from.map(|start| start * length);
        Ok(found)
    }

    /// By how much the run changed: in a warm-up or slow-down from its first level to its last one,
    /// in one that was not steady from the lowest to the highest mean of a tenth of `windows`.
    /// These are the windows that were classified. `None` if it is flat.
    pub fn change(&self, windows: &[f64]) -> Option<Change> {
        let (from, to) = match self.state {
            State::Flat => return None,
            State::WarmUp | State::SlowDown => {
                (self.segments.first()?.mean, self.segments.last()?.mean)
            }
            State::NotSteady => {
                let tenths = windows.chunks_exact((windows.len() / 10).max(1));
                let mean = |tenth: &[f64]| tenth.iter().sum::<f64>() / tenth.len() as f64;
                let extremes = (f64::INFINITY, f64::NEG_INFINITY);
                tenths.map(mean).fold(extremes, |(low, high), v| (low.min(v), high.max(v)))
            }
        };
        Some(Change { from, to })
    }

    fn of_few(windows: &[f64], better: Better) -> SteadyState {
        let n = windows.len();
        let least = CHANGE_MIN * median(windows).unwrap_or_default().abs();
        let variance = noise(windows).max((least / 4.0).powi(2)).max(f64::MIN_POSITIVE);
        let penalty = PENALTY * (n as f64).ln() * variance;
        let cuts = borders(windows, penalty, (n / 20).max(LENGTH_MIN));
        let segments = joined(segments(windows, &cuts), least);
        let is_line = !cuts.is_empty() && is_rather_a_line(windows, &segments, penalty);
        let state = match is_line {
            true => State::NotSteady,
            false => classify(windows, &segments, better, variance, least),
        };
        let rest = segments.last().map(|segment| segment.start);
        let steady_from = rest.filter(|_| state != State::NotSteady);
        SteadyState { state, segments, steady_from }
    }
}

/// The means of pairs of pairs of windows, and how many windows each one joins: as long as there
/// are too many, or enough and neighbours are correlated. A last one without a partner is left out.
fn in_pairs(windows: &[f64]) -> (Vec<f64>, usize) {
    let (mut joined, mut length) = (windows.to_vec(), 1);
    while joined.len() > WINDOWS_MAX
        || (joined.len() >= 2 * WINDOWS_ENOUGH && autocorrelation(&joined, 1) > ALIKE)
    {
        joined = joined.chunks_exact(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
        length *= 2;
    }
    (joined, length)
}

fn classify(
    windows: &[f64],
    segments: &[Segment],
    better: Better,
    variance: f64,
    least: f64,
) -> State {
    let Some((last, earlier)) = segments.split_last() else { return State::NotSteady };
    let rest = &windows[last.start..];
    let is_short = (rest.len() as f64) < REST_SHARE * windows.len() as f64;
    if is_short || drifts(rest, variance, least) {
        return State::NotSteady;
    }
    // In a warm-up every level is closer to the last one than the level before it.
    let gaps: Vec<f64> = earlier.iter().map(|segment| segment.mean - last.mean).collect();
    let is_way = gaps.windows(2).all(|pair| pair[0].abs() > pair[1].abs());
    let improves = |gap: &f64| (*gap > 0.0) == (better == Better::Lower);
    match () {
        () if gaps.is_empty() && autocorrelation(windows, 1) > WANDERING => State::NotSteady,
        () if gaps.is_empty() => State::Flat,
        () if is_way && gaps.iter().all(improves) => State::WarmUp,
        () if is_way && !gaps.iter().any(improves) => State::SlowDown,
        () => State::NotSteady,
    }
}

/// Whether one straight line, with the penalty of one border, explains the run better than its
/// steps.
fn is_rather_a_line(windows: &[f64], segments: &[Segment], penalty: f64) -> bool {
    let of_segment = |segment: &Segment| -> f64 {
        windows[segment.start..segment.end].iter().map(|v| (v - segment.mean).powi(2)).sum()
    };
    let steps: f64 = segments.iter().map(of_segment).sum();
    let line = Line::through(windows);
    line.residual + penalty < steps + penalty * (segments.len() - 1) as f64
}

/// Whether a line through the values rises or falls by more than noise and more than `least`.
fn drifts(values: &[f64], variance: f64, least: f64) -> bool {
    let line = Line::through(values);
    let change = line.slope.abs() * values.len() as f64;
    line.slope.abs() > DRIFT_Z * (variance / line.squares).sqrt() && change > least
}

/// A least-squares line.
struct Line {
    slope: f64,
    /// The sum of squared distances of the positions from their mean.
    squares: f64,
    /// The sum of squared distances of the values from the line.
    residual: f64,
}

impl Line {
    fn through(values: &[f64]) -> Line {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let apart = |i: usize| i as f64 - (n - 1.0) / 2.0;
        let squares: f64 = (0..values.len()).map(|i| apart(i).powi(2)).sum();
        let products: f64 = values.iter().enumerate().map(|(i, v)| apart(i) * (v - mean)).sum();
        let slope = products / squares;
        let distance = |(i, v): (usize, &f64)| (v - mean - slope * apart(i)).powi(2);
        Line { slope, squares, residual: values.iter().enumerate().map(distance).sum() }
    }
}

fn segments(windows: &[f64], cuts: &[usize]) -> Vec<Segment> {
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([windows.len()]);
    let segment = |(start, end): (usize, usize)| {
        let mean = Sample::of(&windows[start..end]).map_or(f64::NAN, |sample| sample.mean);
        Segment { start, end, mean }
    };
    starts.zip(ends).map(segment).collect()
}

/// Joins neighbours that differ by less than `least`, the closest ones first.
fn joined(mut segments: Vec<Segment>, least: f64) -> Vec<Segment> {
    loop {
        let gap = |i: &usize| (segments[*i].mean - segments[i + 1].mean).abs();
        let closest = (0..segments.len() - 1).min_by(|a, b| gap(a).total_cmp(&gap(b)));
        let Some(at) = closest.filter(|at| gap(at) < least) else { return segments };
        let second = segments.remove(at + 1);
        let first = &mut segments[at];
        let (a, b) = ((first.end - first.start) as f64, (second.end - second.start) as f64);
        first.mean = (first.mean * a + second.mean * b) / (a + b);
        first.end = second.end;
    }
}

/// The variance of a mean of windows times their number, from differences so that changes of level
/// do not count: the median distance of neighbours gives the spread, that of windows two apart the
/// autocorrelation (S. Chakar, E. Lebarbier, C. Lévy-Leduc and S. Robin, "A robust approach for
/// estimating change-points in the mean of an AR(1) process", Bernoulli 23, 2017).
fn noise(windows: &[f64]) -> f64 {
    let typical = |apart: usize| {
        let pairs = windows.iter().zip(&windows[apart..]);
        let distances: Vec<f64> = pairs.map(|(one, other)| (one - other).abs()).collect();
        median(&distances).unwrap_or_default() * NORMAL_PER_MEDIAN
    };
    let (near, far) = (typical(1).powi(2), typical(2).powi(2));
    if near == 0.0 {
        return 0.0;
    }
    let phi = (far / near - 1.0).clamp(0.0, PHI_MAX);
    near / 2.0 / (1.0 - phi) * (1.0 + phi) / (1.0 - phi)
}

/// Fewer windows cannot be classified.
pub const WINDOWS_MIN: usize = 10;

/// Smaller changes of level, as a share of the median, are irrelevant in practice.
pub const CHANGE_MIN: f64 = 0.01;

/// The share of the run that must be steady; Barrett et al. ask for the last 500 of 2,000
/// iterations.
pub const REST_SHARE: f64 = 0.25;

/// Times ln(n) and the noise: the penalty of a border in the modified Bayes information criterion
/// (N. R. Zhang and D. O. Siegmund, 2007).
const PENALTY: f64 = 3.0;
const LENGTH_MIN: usize = 3;
const DRIFT_Z: f64 = 4.0;
/// A normal distribution's deviation over its median distance from 0.
const NORMAL_PER_MEDIAN: f64 = 1.482_602_218_505_602;
const WINDOWS_MAX: usize = 600;
/// This many windows are enough to classify a run.
const WINDOWS_ENOUGH: usize = 60;
const ALIKE: f64 = 0.3;
const PHI_MAX: f64 = 0.7;
/// A series without steps and with this autocorrelation of neighbours changes too slowly for noise.
const WANDERING: f64 = 0.6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A series of 20 to 60 windows about a level of 100, with noise of 0.5 to 3 and neighbours
    /// correlated by 0 or 0.3; `course` gives the distance from the level in noises.
    fn series(random: &mut Random, course: impl Fn(f64) -> f64) -> Vec<f64> {
        let n = 20 + random.index(41);
        let deviation = 0.5 + 2.5 * random.next_f64();
        let phi = if random.index(2) == 0 { 0.0f64 } else { 0.3 };
        let mut noise = random.normal();
        let window = |i| {
            noise = phi * noise + (1.0 - phi * phi).sqrt() * random.normal();
            100.0 + deviation * (noise + course(i as f64 / n as f64))
        };
        (0..n).map(window).collect()
    }

    fn right(state: State, series: impl Fn(&mut Random) -> Vec<f64>) -> usize {
        let mut random = Random::new(2017);
        let found = |_: &usize| SteadyState::of(&series(&mut random), Better::Lower).unwrap().state;
        let mut found = found;
        (0..200).filter(|i| found(i) == state).count()
    }

    #[test]
    fn of_200_series_of_each_class_95_in_100_are_told_right() {
        let flat = right(State::Flat, |random| series(random, |_| 0.0));
        let moved = |sign: f64| {
            move |random: &mut Random| {
                let (size, at) = (6.0 + 20.0 * random.next_f64(), 0.2 + 0.4 * random.next_f64());
                let is_step = random.index(2) == 0;
                series(random, move |x| match is_step {
                    true if x < at => sign * size,
                    true => 0.0,
                    false => sign * 1.5 * size * (-x / (at / 4.0)).exp(),
                })
            }
        };
        let warm = right(State::WarmUp, moved(1.0));
        let slow = right(State::SlowDown, moved(-1.0));
        let restless = right(State::NotSteady, |random| {
            let size = 10.0 + 20.0 * random.next_f64();
            let (kind, turns) = (random.index(3), 1.5 + 1.5 * random.next_f64());
            series(random, move |x| match kind {
                0 => size * x,
                1 => size / 2.0 * (std::f64::consts::TAU * turns * x).sin(),
                _ if x < 0.82 => 0.0,
                _ => size,
            })
        });
        let all = [flat, warm, slow, restless];
        println!("flat, warm-up, slow-down, not steady: right of 200: {all:?}");
        assert!(all.iter().all(|right| *right >= 190), "right of 200: {all:?}");
    }

    #[test]
    fn the_border_is_where_the_level_changed_and_rates_are_judged_the_other_way() {
        let windows: Vec<f64> = (0..40).map(|i| if i < 10 { 80.0 } else { 100.0 }).collect();
        let found = SteadyState::of(&windows, Better::Higher).unwrap();
        assert_eq!((found.state, found.steady_from), (State::WarmUp, Some(10)));
        assert_eq!(found.segments[0], Segment { start: 0, end: 10, mean: 80.0 });
        assert_eq!(found.change(&windows), Some(Change { from: 80.0, to: 100.0 }));
        let found = SteadyState::of(&windows, Better::Lower).unwrap();
        assert_eq!(found.state, State::SlowDown);
        // A hundred times as many windows are joined, and the border is still where it was.
        let many: Vec<f64> = windows.iter().flat_map(|value| [*value; 100]).collect();
        let found = SteadyState::of(&many, Better::Higher).unwrap();
        assert_eq!(found.state, State::WarmUp);
        assert!(found.steady_from.unwrap().abs_diff(1000) <= 64, "{found:?}");
        assert_eq!(found.segments.last().unwrap().end, 4000);
        let few = SteadyState::of(&windows[..9], Better::Lower);
        assert_eq!(few, Err(Refusal::TooFew { have: 9, needed: 10 }));
        let flat = SteadyState::of(&[0.0; 30], Better::Lower).unwrap();
        assert_eq!((flat.state, flat.change(&[0.0; 30])), (State::Flat, None));
    }

    /// A line is not a step: its lowest and highest tenths give how far it went.
    #[test]
    fn the_change_of_a_line_is_that_of_its_tenths() {
        let line: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i)).collect();
        let found = SteadyState::of(&line, Better::Higher).unwrap();
        assert_eq!(found.state, State::NotSteady);
        assert_eq!(found.change(&line), Some(Change { from: 101.5, to: 137.5 }));
    }
}
