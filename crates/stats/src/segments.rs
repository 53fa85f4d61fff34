//! Finds where the mean of a series changes: the segmentation with the smallest squared error plus
//! a penalty for every border, found exactly by PELT (R. Killick, P. Fearnhead and I. A. Eckley,
//! "Optimal Detection of Changepoints With a Linear Computational Cost", 2012). Written here: the
//! crate `pelt` 0.3 has another licence (MPL 2.0), and this is forty lines.

/// The first indices of all segments after the first, in order. A segment has at least
/// `length_min` values; a border must lower the sum of squared distances from the segments' means
/// by more than `penalty`.
pub fn borders(values: &[f64], penalty: f64, length_min: usize) -> Vec<usize> {
    let n = values.len();
    let length_min = length_min.max(1);
    if n < 2 * length_min {
        return Vec::new();
    }
    let sums = Sums::of(values);
    // best[end] is the cost of the best segmentation of the first `end` values.
    let mut best = vec![f64::INFINITY; n + 1];
    let mut last = vec![0usize; n + 1];
    best[0] = -penalty;
    let mut useless_from = vec![usize::MAX; n + 1];
    let mut starts = vec![0usize];
    for end in length_min..=n {
        let cost = |start: usize| best[start] + sums.squares(start, end) + penalty;
        let chosen = starts.iter().copied().min_by(|a, b| cost(*a).total_cmp(&cost(*b)));
        let Some(chosen) = chosen else { continue };
        let lowest = cost(chosen);
        // A start that loses even without a further penalty can never win again once its rival,
        // which needs a whole segment, is allowed too.
        for start in &starts {
            if best[*start] + sums.squares(*start, end) > lowest {
                useless_from[*start] = useless_from[*start].min(end + length_min);
            }
        }
        (best[end], last[end]) = (lowest, chosen);
        starts.retain(|start| useless_from[*start] > end + 1);
        if end + 1 >= 2 * length_min {
            starts.push(end + 1 - length_min);
        }
    }
    let mut found = Vec::new();
    let mut end = n;
    while last[end] > 0 {
        end = last[end];
        found.push(end);
    }
    found.reverse();
    found
}

/// Cumulative sums, relative to the overall mean so that squares lose no digits.
struct Sums {
    values: Vec<f64>,
    squares: Vec<f64>,
}

impl Sums {
    fn of(values: &[f64]) -> Sums {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let running = |power: i32| {
            let mut sum = 0.0;
            let add = |value: &f64| {
                sum += (value - mean).powi(power);
                sum
            };
            std::iter::once(0.0).chain(values.iter().map(add)).collect()
        };
        Sums { values: running(1), squares: running(2) }
    }

    /// The sum of squared distances from their mean of the values from `start` up to `end`.
    fn squares(&self, start: usize, end: usize) -> f64 {
        let sum = self.values[end] - self.values[start];
        (self.squares[end] - self.squares[start] - sum * sum / (end - start) as f64).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The cost of the best segmentation by trying all of them, without pruning.
    fn exhaustive(values: &[f64], penalty: f64, length_min: usize) -> f64 {
        let sums = Sums::of(values);
        let mut best = vec![f64::INFINITY; values.len() + 1];
        best[0] = -penalty;
        for end in length_min..=values.len() {
            for start in 0..=end - length_min {
                best[end] = best[end].min(best[start] + sums.squares(start, end) + penalty);
            }
        }
        best[values.len()]
    }

    fn cost(values: &[f64], borders: &[usize], penalty: f64) -> f64 {
        let sums = Sums::of(values);
        let starts = std::iter::once(0).chain(borders.iter().copied());
        let ends = borders.iter().copied().chain([values.len()]);
        let segments = starts.zip(ends).map(|(start, end)| sums.squares(start, end));
        segments.sum::<f64>() + penalty * borders.len() as f64
    }

    #[test]
    fn pruning_loses_nothing() {
        let mut random = Random::new(9);
        for round in 0..300 {
            let n = 4 + random.index(60);
            let mut level = 0.0;
            let step = |_| {
                if random.index(10) == 0 {
                    level = 3.0 * random.normal();
                }
                level + random.normal()
            };
            let values: Vec<f64> = (0..n).map(step).collect();
            for length_min in [1, 2, 3, 5] {
                let found = borders(&values, 6.0, length_min);
                if n >= length_min {
                    let lowest = exhaustive(&values, 6.0, length_min);
                    let reached = cost(&values, &found, 6.0);
                    assert!((reached - lowest).abs() < 1e-9, "{round}: {reached} {lowest}");
                }
            }
        }
    }

    #[test]
    fn steps_are_found_where_they_are() {
        let values: Vec<f64> = (0..60).map(|i| f64::from(i / 20) * 10.0).collect();
        assert_eq!(borders(&values, 1.0, 3), [20, 40]);
        assert!(borders(&[1.0; 50], 1.0, 3).is_empty());
        assert!(borders(&[1.0, 9.0], 1.0, 3).is_empty());
    }
}
