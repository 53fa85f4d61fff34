//! Cross-validates a cost model: every group of runs is left out once, together with others, and
//! predicted by a fit to the remaining ones.

use super::{CostModel, Row};
use crate::bootstrap::Bootstrap;

/// A group that was left out: its measured cost, and the prediction of a fit without it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The group's number.
    pub group: usize,
    /// The mean cost of its runs.
    pub measured: f64,
    /// The prediction for their mean drivers; `None` if it cannot be made: only this group has a
    /// driver, or without it two drivers cannot be separated.
    pub predicted: Option<f64>,
}

impl Prediction {
    /// Predicted minus measured, as a share of measured.
    pub fn relative_error(&self) -> Option<f64> {
        self.predicted.map(|predicted| predicted / self.measured - 1.0)
    }
}

/// Leaves the groups out in `parts` parts: group `g` with part `g % parts`. `groups` has the group
/// of each row, such as its cell; a group is always left out whole, since its runs predict each
/// other too well. The other arguments are those of [`CostModel::fit_shaped`].
pub fn predict(
    shapes: &[f64],
    rows: impl Fn(f64) -> Vec<Row>,
    groups: &[usize],
    parts: usize,
    floor: f64,
) -> Vec<Prediction> {
    let parts = parts.max(1);
    let mut numbers = groups.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let is_kept = |part: usize| move |(_, group): &(Row, &usize)| **group % parts != part;
    let fits: Vec<Option<Part>> = (0..parts)
        .map(|part| {
            let kept = |shape: f64| {
                let all = rows(shape).into_iter().zip(groups);
                all.filter(is_kept(part)).map(|(row, _)| row).collect()
            };
            Part::fit(shapes, kept, floor)
        })
        .collect();
    let of_group = |group: usize| {
        let fit = fits[group % parts].as_ref();
        let shape = fit.map_or(shapes.first().copied().unwrap_or(0.0), |fit| fit.model.best.shape);
        let all = rows(shape).into_iter().zip(groups);
        let own: Vec<Row> = all.filter(|(_, other)| **other == group).map(|(row, _)| row).collect();
        let n = own.len() as f64;
        let measured = own.iter().map(|row| row.cost).sum::<f64>() / n;
        let mean = |at: usize| own.iter().map(|row| row.drivers[at]).sum::<f64>() / n;
        let drivers: Vec<f64> = (0..own[0].drivers.len()).map(mean).collect();
        Prediction { group, measured, predicted: fit.and_then(|fit| fit.cost(&drivers)) }
    };
    numbers.into_iter().map(of_group).collect()
}

/// A fit to the rows that were kept, with the drivers that occur in them.
struct Part {
    present: Vec<usize>,
    model: CostModel,
}

impl Part {
    fn fit(shapes: &[f64], rows: impl Fn(f64) -> Vec<Row>, floor: f64) -> Option<Part> {
        let some = rows(*shapes.first()?);
        let all = 0..some.first()?.drivers.len();
        let present: Vec<usize> =
            all.filter(|at| some.iter().any(|row| row.drivers[*at] != 0.0)).collect();
        let reduced = |shape: f64| {
            let reduced = |row: Row| Row {
                drivers: present.iter().map(|at| row.drivers[*at]).collect(),
                ..row
            };
            rows(shape).into_iter().map(reduced).collect()
        };
        let once = Bootstrap { resamples: 1, seed: 0 };
        // No interval is computed, so the groups do not matter.
        let alone: Vec<usize> = (0..some.len()).collect();
        let model = CostModel::fit_shaped(shapes, reduced, &alone, floor, once).ok()?;
        Some(Part { present, model })
    }

    fn cost(&self, drivers: &[f64]) -> Option<f64> {
        let is_known = |at: usize| drivers[at] == 0.0 || self.present.contains(&at);
        let kept: Vec<f64> = self.present.iter().map(|at| drivers[*at]).collect();
        (0..drivers.len()).all(is_known).then(|| self.model.best.cost(&kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nine cells of two runs each: so much of a, so much of b.
    fn cells(cost: impl Fn(f64, f64) -> f64) -> (Vec<Row>, Vec<usize>) {
        let mut rows = Vec::new();
        let mut groups = Vec::new();
        for group in 0..9 {
            let (a, b) = ([10.0, 40.0, 160.0][group % 3], [1.0, 5.0, 30.0][group / 3]);
            for _ in 0..2 {
                rows.push(Row { drivers: vec![1.0, a, b], cost: cost(a, b) });
                groups.push(group);
            }
        }
        (rows, groups)
    }

    #[test]
    fn a_true_model_predicts_and_one_without_a_term_does_not() {
        let (rows, groups) = cells(|a, b| 2.0 + 0.1 * a + 4.0 * b);
        let worst = |rows: &[Row]| {
            let found = predict(&[0.0], |_| rows.to_vec(), &groups, 3, 1e-3);
            assert_eq!(found.len(), 9);
            found.iter().map(|f| f.relative_error().unwrap().abs()).fold(0.0, f64::max)
        };
        assert!(worst(&rows) < 1e-9);
        let missing = |row: &Row| Row { drivers: row.drivers[..2].to_vec(), ..row.clone() };
        let missing: Vec<Row> = rows.iter().map(missing).collect();
        assert!(worst(&missing) > 0.5, "the cost of b must not go unnoticed");
    }

    #[test]
    fn what_no_other_group_shows_is_not_predicted() {
        let (mut rows, groups) = cells(|a, _| a);
        rows.iter_mut()
            .zip(&groups)
            .filter(|(_, g)| **g != 4)
            .for_each(|(r, _)| r.drivers[2] = 0.0);
        let found = predict(&[0.0], |_| rows.clone(), &groups, 3, 1e-3);
        assert_eq!(found[4].predicted, None);
        assert!(found.iter().filter(|f| f.predicted.is_none()).count() == 1, "{found:?}");
    }
}
