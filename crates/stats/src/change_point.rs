//! Where a history of results changed: E-divisive (D. S. Matteson and N. A. James, "A
//! Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data", JASA 109,
//! 2014) in windows, with a t test for significance, as M. Fleming, P. Kołaczkowski and others
//! ("Hunter: Using Change Point Detection to Hunt for Performance Regressions", ICPE 2023) made it
//! fit for results of benchmarks, and as Apache Otava does it. `tests/otava.rs` compares the two.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// How to look for changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// So many successive values are looked at together, at least 2.
    pub window: usize,
    /// A change must be less probable than this were there none, by Student's test.
    pub p_max: f64,
    /// A change must be larger than this share of the level before or after it.
    pub change_min: f64,
}

impl Default for Search {
    /// The settings of Otava: windows of 50, p of 0.001, changes of any size.
    fn default() -> Search {
        Search { window: 50, p_max: 0.001, change_min: 0.0 }
    }
}

/// A place where the level changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The first value of the new level.
    pub index: usize,
    /// The mean since the change point before.
    pub before: f64,
    /// The mean until the next change point.
    pub after: f64,
    /// The probability of so large a difference were there none.
    pub p: f64,
}

impl ChangePoint {
    /// The change as a share of the level before or after, whichever is smaller.
    pub fn size(&self) -> f64 {
        let share = |of: f64, to: f64| if of == 0.0 { 0.0 } else { (to / of - 1.0).abs() };
        share(self.before, self.after).max(share(self.after, self.before))
    }
}

impl Search {
    /// The changes in `values`, in order; none if one of them is not finite.
    ///
    /// First, windows that overlap by half are split as long as the split is significant at ten
    /// times `p_max`: weak changes, so that one beside another is not overlooked. Then the weakest
    /// is taken out, its neighbours are judged anew, and so on, until all satisfy `p_max`.
    pub fn change_points(&self, values: &[f64]) -> Vec<ChangePoint> {
        if values.iter().any(|value| !value.is_finite()) {
            return Vec::new();
        }
        let mut cuts = self.weak_cuts(values);
        loop {
            let points = judged(values, &cuts);
            let weakest = self.weakest(&points);
            let Some(weakest) = weakest else { return points };
            cuts.remove(weakest);
        }
    }

    /// The index of the point that must go first.
    fn weakest(&self, points: &[ChangePoint]) -> Option<usize> {
        let first_of = |better: fn(&ChangePoint, &ChangePoint) -> bool| {
            (0..points.len()).reduce(|a, b| if better(&points[b], &points[a]) { b } else { a })
        };
        let likely = first_of(|one, other| one.p > other.p)?;
        if points[likely].p >= self.p_max {
            return Some(likely);
        }
        let small = first_of(|one, other| one.size() < other.size())?;
        (points[small].size() <= self.change_min).then_some(small)
    }

    fn weak_cuts(&self, values: &[f64]) -> Vec<usize> {
        let window = self.window.max(2);
        let p_max = match self.p_max {
            p if p < 0.05 => 10.0 * p,
            p if p < 0.5 => 2.0 * p,
            p => p,
        };
        let mut cuts = Vec::new();
        let mut start = 0;
        while start < values.len() {
            let end = (start + window).min(values.len());
            let found = divided(&values[start..end], p_max);
            let last = found.last().map_or(0, |cut| start + cut);
            cuts.extend(found.into_iter().map(|cut| start + cut));
            start = last.max(start + window / 2);
        }
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }
}

/// Splits where the two sides differ most, as long as they do so significantly.
fn divided(values: &[f64], p_max: f64) -> Vec<usize> {
    let mut cuts: Vec<usize> = Vec::new();
    loop {
        let starts = std::iter::once(0).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([values.len()]);
        let mut best: Option<(f64, usize, usize, usize)> = None;
        for (start, end) in starts.zip(ends).filter(|(start, end)| end - start > 1) {
            let (distance, at) = best_split(&values[start..end]);
            if best.is_none_or(|(largest, ..)| distance > largest) {
                best = Some((distance, start + at, start, end));
            }
        }
        let Some((_, at, start, end)) = best else { return cuts };
        if t_test(&values[start..at], &values[at..end]) > p_max {
            return cuts;
        }
        cuts.push(at);
        cuts.sort_unstable();
    }
}

/// The split of at least two values whose sides are the farthest apart by the energy distance with
/// exponent 1, where the right side may end early so that a later change does not blur this one:
/// 2 / (m + n) x (sum of distances across - m / (n - 1) x those within left - n / (m - 1) x those
/// within right).
fn best_split(values: &[f64]) -> (f64, usize) {
    // from[k][i] is the sum of the distances of value k from the first i values.
    let from: Vec<Vec<f64>> = values
        .iter()
        .map(|value| {
            let mut sum = 0.0;
            let add = |other: &f64| {
                sum += (value - other).abs();
                sum
            };
            std::iter::once(0.0).chain(values.iter().map(add)).collect()
        })
        .collect();
    let mut best = (f64::NEG_INFINITY, 1);
    let mut within_left = 0.0;
    for at in 1..values.len() {
        within_left += from[at - 1][at - 1];
        let (mut across, mut within_right) = (0.0, 0.0);
        for (last, from_last) in from.iter().enumerate().skip(at) {
            across += from_last[at];
            within_right += from_last[last] - from_last[at];
            let (n, m) = (at as f64, (last + 1 - at) as f64);
            let left = if at > 1 { m / (n - 1.0) * within_left } else { 0.0 };
            let right = if last > at { n / (m - 1.0) * within_right } else { 0.0 };
            let distance = 2.0 / (m + n) * (across - left - right);
            if distance > best.0 {
                best = (distance, at);
            }
        }
    }
    best
}

fn judged(values: &[f64], cuts: &[usize]) -> Vec<ChangePoint> {
    let start_of = |index: usize| if index == 0 { 0 } else { cuts[index - 1] };
    let point = |(index, at): (usize, &usize)| {
        let end = cuts.get(index + 1).copied().unwrap_or(values.len());
        let (left, right) = (&values[start_of(index)..*at], &values[*at..end]);
        ChangePoint {
            index: *at,
            before: moments(left).0,
            after: moments(right).0,
            p: t_test(left, right),
        }
    };
    cuts.iter().enumerate().map(point).collect()
}

/// Student's two-sided test for equal variances. The deviations are those with n below the line,
/// as in Otava.
fn t_test(left: &[f64], right: &[f64]) -> f64 {
    let (n, m) = (left.len() as f64, right.len() as f64);
    let freedom = n + m - 2.0;
    if freedom < 1.0 {
        return 1.0;
    }
    let ((left_mean, left_variance), (right_mean, right_variance)) =
        (moments(left), moments(right));
    let pooled = ((n - 1.0) * left_variance + (m - 1.0) * right_variance) / freedom;
    let apart = (left_mean - right_mean).abs();
    if pooled == 0.0 {
        return if apart > 0.0 { 0.0 } else { 1.0 };
    }
    let t = apart / (pooled * (1.0 / n + 1.0 / m)).sqrt();
    StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |student| 2.0 * student.sf(t))
}

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_found_and_a_spike_is_not() {
        let noise = [0.3, -0.2, 0.1, -0.4, 0.2, 0.0, -0.1, 0.4];
        let at = |i: usize, level: f64| level + noise[i % 8];
        let history: Vec<f64> =
            (0..60).map(|i| if i < 37 { at(i, 100.0) } else { at(i, 105.0) }).collect();
        let points = Search::default().change_points(&history);
        assert_eq!(points.iter().map(|point| point.index).collect::<Vec<_>>(), [37]);
        assert!((points[0].size() - 0.05).abs() < 0.002, "{points:?}");
        let picky = Search { change_min: 0.06, ..Search::default() };
        assert!(picky.change_points(&history).is_empty());
        let mut spike: Vec<f64> = (0..60).map(|i| at(i, 100.0)).collect();
        spike[30] = 150.0;
        assert!(Search::default().change_points(&spike).is_empty());
        assert!(Search::default().change_points(&[]).is_empty());
        assert!(Search::default().change_points(&[1.0, f64::NAN, 2.0]).is_empty());
    }
}
