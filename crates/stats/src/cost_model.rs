//! What a cost is made of: `cost = sum of coefficient × driver`, with coefficients that are not
//! negative, fitted to runs in which the drivers were set apart by design.
//!
//! The fit is weighted least squares under `coefficient >= 0` ([`non_negative`]). Its uncertainty
//! is a wild bootstrap over runs (C. F. J. Wu, 1986; R. Y. Liu, 1988): the design stays, every
//! run keeps the size of its own residual and only the sign is drawn, so that runs need not
//! scatter alike. Residuals are divided by `sqrt(1 - leverage)` (J. G. MacKinnon and H. White,
//! 1985) and stretched from the normal to Student's t, because with a dozen runs both matter
//! (`tests/cost_model.rs` prints the coverage).

mod held_out;
mod non_negative;

use nalgebra::{DMatrix, DVector};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::bootstrap::Bootstrap;
use crate::estimate::t_quantile;
use crate::interval::{Interval, Method};
use crate::quantile::interpolated;
use crate::random::Random;
use crate::{CONFIDENCE, Refusal};

pub use held_out::{Foretold, foretell};
pub use non_negative::non_negative;

/// One run: what drove the cost, and what it came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// How much there was of each driver; as many in every row, in the same order.
    pub drivers: Vec<f64>,
    /// What it cost.
    pub cost: f64,
    /// One over the variance of the cost, up to a factor common to all rows; above 0.
    pub weight: f64,
}

/// A fitted cost.
#[derive(Clone, Debug, PartialEq)]
pub struct CostModel {
    /// What one unit of each driver costs, never below 0.
    pub coefficients: Vec<f64>,
    /// The coefficients of every resample, for whatever is computed from several of them.
    pub draws: Vec<Vec<f64>>,
    /// Cost less fitted cost, row by row.
    pub residuals: Vec<f64>,
    /// The condition number of the weighted drivers, each scaled to length 1 (D. A. Belsley, E.
    /// Kuh and R. E. Welsch, 1980): from about 30 on the coefficients trade against each other.
    pub condition: f64,
}

/// Above this the drivers rose and fell together: the design did not set them apart.
pub const CONDITION_MAX: f64 = 1e4;

impl CostModel {
    /// Fits the cost to the runs.
    ///
    /// # Errors
    /// [`Refusal::TooFew`] with no more rows than drivers, [`Refusal::NoValues`] where a number is
    /// not finite or a weight not above 0, [`Refusal::DriversTogether`] where the drivers cannot
    /// be told apart.
    pub fn fit(rows: &[Row], bootstrap: Bootstrap) -> Result<CostModel, Refusal> {
        let design = Design::of(rows)?;
        let costs = DVector::from_iterator(rows.len(), design.weighted_costs(rows));
        let scaled = design.solve(&costs);
        let fitted = &design.matrix * &scaled;
        let draws = design.draws(&fitted, &(&costs - &fitted), bootstrap);
        let coefficients = design.unscaled(&scaled);
        let cost_of = |row: &Row| row.cost - total(&coefficients, &row.drivers);
        Ok(CostModel {
            residuals: rows.iter().map(cost_of).collect(),
            coefficients,
            draws,
            condition: design.condition,
        })
    }

    /// What these drivers cost together.
    pub fn cost(&self, drivers: &[f64]) -> f64 {
        total(&self.coefficients, drivers)
    }

    /// The interval of the coefficient of this driver.
    pub fn interval(&self, driver: usize) -> Interval {
        self.interval_of(|coefficients| coefficients[driver])
    }

    /// The interval of anything that follows from the coefficients; infinite where it is for too
    /// many of the draws.
    pub fn interval_of(&self, statistic: impl Fn(&[f64]) -> f64) -> Interval {
        let mut found: Vec<f64> = self.draws.iter().map(|draw| statistic(draw)).collect();
        found.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - CONFIDENCE) / 2.0;
        let [low, high] = [tail, 1.0 - tail].map(|share| end(&found, share));
        Interval { low, high, method: Method::WildBootstrap }
    }
}

/// The sum of what the drivers cost.
fn total(coefficients: &[f64], drivers: &[f64]) -> f64 {
    coefficients.iter().zip(drivers).map(|(each, amount)| each * amount).sum()
}

/// A quantile of sorted values that may be infinite at their end, where nothing can be
/// interpolated.
fn end(sorted: &[f64], share: f64) -> f64 {
    let at = ((sorted.len() - 1) as f64 * share).ceil() as usize;
    if sorted[at].is_finite() { interpolated(sorted, share) } else { sorted[at] }
}

/// The weighted drivers, each column of length 1, and what the solving needs of them: with the
/// thin factors `Q R` every resample is a problem of as many rows as there are drivers.
struct Design {
    matrix: DMatrix<f64>,
    lengths: Vec<f64>,
    root_weights: Vec<f64>,
    q: DMatrix<f64>,
    r: DMatrix<f64>,
    condition: f64,
}

impl Design {
    fn of(rows: &[Row]) -> Result<Design, Refusal> {
        let drivers = rows.first().map_or(0, |row| row.drivers.len());
        if rows.len() <= drivers || drivers == 0 {
            return Err(Refusal::TooFew { have: rows.len(), needed: drivers + 1 });
        }
        let is_sound = |row: &Row| {
            let is_finite = row.drivers.iter().all(|amount| amount.is_finite());
            is_finite && row.cost.is_finite() && row.weight.is_finite() && row.weight > 0.0
        };
        if !rows.iter().all(is_sound) {
            return Err(Refusal::NoValues);
        }
        let root_weights: Vec<f64> = rows.iter().map(|row| row.weight.sqrt()).collect();
        let mut matrix = DMatrix::from_fn(rows.len(), drivers, |row, driver| {
            rows[row].drivers[driver] * root_weights[row]
        });
        let lengths: Vec<f64> = matrix.column_iter().map(|column| column.norm()).collect();
        for (mut column, length) in matrix.column_iter_mut().zip(&lengths) {
            if *length == 0.0 {
                return Err(Refusal::DriversTogether { condition: f64::INFINITY });
            }
            column /= *length;
        }
        let singular = matrix.singular_values();
        let condition = singular.max() / singular.min();
        if condition.is_nan() || condition > CONDITION_MAX {
            return Err(Refusal::DriversTogether { condition });
        }
        let (q, r) = matrix.clone().qr().unpack();
        Ok(Design { matrix, lengths, root_weights, q, r, condition })
    }

    fn weighted_costs<'a>(&'a self, rows: &'a [Row]) -> impl Iterator<Item = f64> + 'a {
        rows.iter().zip(&self.root_weights).map(|(row, weight)| row.cost * weight)
    }

    /// The coefficients of the scaled columns.
    fn solve(&self, costs: &DVector<f64>) -> DVector<f64> {
        non_negative(&self.r, &self.q.tr_mul(costs))
    }

    fn unscaled(&self, scaled: &DVector<f64>) -> Vec<f64> {
        scaled.iter().zip(&self.lengths).map(|(each, length)| each / length).collect()
    }

    fn draws(
        &self,
        fitted: &DVector<f64>,
        residuals: &DVector<f64>,
        bootstrap: Bootstrap,
    ) -> Vec<Vec<f64>> {
        let freedom = (self.matrix.nrows() - self.matrix.ncols()) as f64;
        let tail = (1.0 + CONFIDENCE) / 2.0;
        let stretch = t_quantile(freedom) / Normal::standard().inverse_cdf(tail);
        let spread: Vec<f64> = residuals
            .iter()
            .zip(self.q.row_iter())
            .map(|(residual, row)| {
                // A run that alone tells a coefficient has leverage 1, and no residual.
                let free = (1.0 - row.norm_squared()).max(1e-9);
                residual * stretch / free.sqrt()
            })
            .collect();
        let mut random = Random::new(bootstrap.seed);
        let mut drawn = fitted.clone();
        (0..bootstrap.resamples.max(1))
            .map(|_| {
                for ((drawn, fitted), apart) in drawn.iter_mut().zip(fitted).zip(&spread) {
                    let sign = if random.bits() >> 63 == 0 { 1.0 } else { -1.0 };
                    *drawn = fitted + sign * apart;
                }
                self.unscaled(&self.solve(&drawn))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(costs: impl Fn(f64, f64) -> f64) -> Vec<Row> {
        let pairs = [(1.0, 0.0), (1.0, 10.0), (1.0, 20.0), (1.0, 40.0), (1.0, 80.0)];
        let row = |(one, amount)| Row {
            drivers: vec![one, amount],
            cost: costs(one, amount),
            weight: 1.0,
        };
        pairs.into_iter().map(row).collect()
    }

    fn some() -> Bootstrap {
        Bootstrap { resamples: 200, seed: 1 }
    }

    #[test]
    fn an_exact_cost_is_found_exactly_and_without_doubt() {
        let model = CostModel::fit(&rows(|one, amount| 3.0 * one + 0.5 * amount), some()).unwrap();
        assert!((model.coefficients[0] - 3.0).abs() < 1e-12, "{model:?}");
        assert!((model.coefficients[1] - 0.5).abs() < 1e-12, "{model:?}");
        assert!((model.cost(&[1.0, 100.0]) - 53.0).abs() < 1e-10);
        let interval = model.interval(1);
        assert!(interval.high - interval.low < 1e-9, "{interval:?}");
        assert_eq!(interval.method, Method::WildBootstrap);
    }

    #[test]
    fn a_cost_that_falls_with_a_driver_costs_nothing_there() {
        let model = CostModel::fit(&rows(|_, amount| 100.0 - amount), some()).unwrap();
        assert_eq!(model.coefficients[1], 0.0);
        assert!((model.coefficients[0] - 70.0).abs() < 1e-9, "the mean is what is left");
        assert!(model.residuals[0] > 0.0 && model.residuals[4] < 0.0);
    }

    #[test]
    fn a_weight_of_two_is_a_row_twice() {
        let noisy = |one: f64, amount: f64| one + amount * (1.0 + (amount * 7.0).sin());
        let mut weighted = rows(noisy);
        weighted[2].weight = 2.0;
        let mut doubled = rows(noisy);
        doubled.push(doubled[2].clone());
        let [left, right] =
            [weighted, doubled].map(|rows| CostModel::fit(&rows, some()).unwrap().coefficients);
        for (left, right) in left.iter().zip(&right) {
            assert!((left - right).abs() < 1e-12, "{left} {right}");
        }
    }

    #[test]
    fn drivers_that_rise_together_are_refused() {
        let twice = |row: Row| Row { drivers: vec![row.drivers[1], 2.0 * row.drivers[1]], ..row };
        let together: Vec<Row> = rows(|_, amount| amount).into_iter().map(twice).collect();
        let refusal = CostModel::fit(&together, some()).unwrap_err();
        assert!(matches!(refusal, Refusal::DriversTogether { .. }), "{refusal}");
        let absent = |row: Row| Row { drivers: vec![1.0, 0.0], ..row };
        let absent: Vec<Row> = rows(|_, amount| amount).into_iter().map(absent).collect();
        let refusal = CostModel::fit(&absent, some()).unwrap_err();
        assert!(refusal.to_string().contains("rose and fell together"), "{refusal}");
    }

    #[test]
    fn too_few_rows_and_what_is_no_number_are_refused() {
        let all = rows(|_, amount| amount);
        let refusal = CostModel::fit(&all[..2], some()).unwrap_err();
        assert_eq!(refusal, Refusal::TooFew { have: 2, needed: 3 });
        assert!(CostModel::fit(&[], some()).is_err());
        for (cost, weight) in [(f64::NAN, 1.0), (1.0, 0.0), (1.0, f64::INFINITY)] {
            let mut bad = all.clone();
            (bad[1].cost, bad[1].weight) = (cost, weight);
            assert_eq!(CostModel::fit(&bad, some()).unwrap_err(), Refusal::NoValues);
        }
    }

    #[test]
    fn an_interval_may_have_no_end() {
        let noisy = |one: f64, amount: f64| 5.0 * one + 0.001 * amount * (amount * 7.0).sin();
        let model = CostModel::fit(&rows(noisy), some()).unwrap();
        let reach = model.interval_of(|each| 1.0 / each[1]);
        assert!(reach.high.is_infinite(), "{reach:?}: the coefficient may be 0");
    }
}
