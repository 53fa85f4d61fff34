//! Least squares under `x >= 0` by the active set of C. L. Lawson and R. J. Hanson, "Solving Least
//! Squares Problems", 1974, chapter 23. The problems here have few columns, so every step solves
//! its subproblem anew.

use nalgebra::{DMatrix, DVector};

/// The `x >= 0` for which `|matrix x - right|` is least. A column that depends on those in use
/// stays at 0.
pub fn non_negative(matrix: &DMatrix<f64>, right: &DVector<f64>) -> DVector<f64> {
    let columns = matrix.ncols();
    let mut found = DVector::zeros(columns);
    let mut used: Vec<usize> = Vec::new();
    let small = tolerance(matrix, right);
    // Each pass frees one column; only rounding could free one more often than this.
    for _ in 0..PASSES_PER_COLUMN * columns {
        let slopes = matrix.tr_mul(&(right - matrix * &found));
        let mut candidates: Vec<usize> =
            (0..columns).filter(|at| !used.contains(at) && slopes[*at] > small).collect();
        candidates.sort_by(|a, b| slopes[*b].total_cmp(&slopes[*a]));
        let freed = candidates.into_iter().find_map(|column| {
            let tried: Vec<usize> = used.iter().copied().chain([column]).collect();
            let best = unconstrained(matrix, right, &tried)?;
            // Only by rounding does the slope promise what the solution does not hold.
            (best[tried.len() - 1] > 0.0).then_some((tried, best))
        });
        let Some((tried, best)) = freed else { break };
        used = tried;
        settle(matrix, right, &mut used, best, &mut found);
    }
    found
}

/// Moves from `found` towards the solution of the columns in use; one that would fall below 0 stops
/// there and leaves the set.
fn settle(
    matrix: &DMatrix<f64>,
    right: &DVector<f64>,
    used: &mut Vec<usize>,
    mut best: DVector<f64>,
    found: &mut DVector<f64>,
) {
    while best.iter().any(|value| *value <= 0.0) {
        let reach = |(at, best): (&usize, &f64)| found[*at] / (found[*at] - best);
        let falling = used.iter().zip(best.iter()).filter(|(_, best)| **best <= 0.0);
        let step = falling.map(reach).fold(1.0, f64::min);
        for (at, best) in used.iter().zip(best.iter()) {
            let from = found[*at];
            let is_at_end = *best <= 0.0 && from / (from - best) <= step;
            found[*at] = if is_at_end { 0.0 } else { from + step * (best - from) };
        }
        used.retain(|at| found[*at] > 0.0);
        match unconstrained(matrix, right, used) {
            Some(next) => best = next,
            None => return,
        }
    }
    for (at, best) in used.iter().zip(best.iter()) {
        found[*at] = *best;
    }
}

/// Least squares over these columns only; `None` if one depends on the others.
fn unconstrained(
    matrix: &DMatrix<f64>,
    right: &DVector<f64>,
    used: &[usize],
) -> Option<DVector<f64>> {
    let part = matrix.select_columns(used);
    if part.nrows() < part.ncols() {
        return None;
    }
    let lengths: Vec<f64> = part.column_iter().map(|column| column.norm()).collect();
    let (q, r) = part.qr().unpack();
    let is_dependent =
        r.diagonal().iter().zip(&lengths).any(|(left, length)| left.abs() <= DEPENDENT * length);
    if is_dependent {
        return None;
    }
    r.solve_upper_triangular(&q.tr_mul(right))
}

/// The largest slope that rounding alone can cause.
fn tolerance(matrix: &DMatrix<f64>, right: &DVector<f64>) -> f64 {
    10.0 * f64::EPSILON * matrix.norm() * right.norm()
}

const PASSES_PER_COLUMN: usize = 10;

/// Remainder of a column, as a share of its length, without the other columns in use.
const DEPENDENT: f64 = 1e-12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_binds_it_is_least_squares() {
        let matrix = DMatrix::from_row_slice(3, 2, &[1.0, 0.0, 1.0, 1.0, 1.0, 2.0]);
        let found = non_negative(&matrix, &DVector::from_vec(vec![1.0, 3.0, 5.0]));
        assert!((found[0] - 1.0).abs() < 1e-12 && (found[1] - 2.0).abs() < 1e-12, "{found}");
    }

    #[test]
    fn what_all_pushes_below_zero_is_zero() {
        let matrix = DMatrix::identity(3, 3);
        let found = non_negative(&matrix, &DVector::from_vec(vec![-1.0, 2.0, -3.0]));
        assert_eq!(found.as_slice(), [0.0, 2.0, 0.0]);
        let none = non_negative(&matrix, &DVector::from_vec(vec![-1.0, -2.0, 0.0]));
        assert_eq!(none.as_slice(), [0.0, 0.0, 0.0]);
    }

    #[test]
    fn a_column_that_depends_on_another_stays_at_zero() {
        let matrix = DMatrix::from_row_slice(2, 2, &[1.0, 2.0, 1.0, 2.0]);
        let found = non_negative(&matrix, &DVector::from_vec(vec![4.0, 4.0]));
        let sum = found[0] + 2.0 * found[1];
        assert!((sum - 4.0).abs() < 1e-12 && found.iter().all(|x| *x >= 0.0), "{found}");
        assert!(found.iter().any(|x| *x == 0.0), "{found}");
    }
}
