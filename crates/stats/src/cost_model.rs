//! Fits a cost model: `cost = sum of coefficient × driver`, with coefficients that are not
//! negative, from runs in which the drivers were varied separately by design.
//!
//! The fit is weighted least squares under `coefficient >= 0` ([`non_negative`]): the scatter of a
//! cost is taken to be proportional to it, so the weight is one over the square of the *fitted*
//! cost, found in a few passes. Weights from the measured cost would favour values that happened to
//! be low.
//!
//! Its uncertainty is a wild bootstrap over groups of runs, such as the repetitions of a cell (C.
//! F. J. Wu, 1986; R. Y. Liu, 1988; by groups A. C. Cameron, J. B. Gelbach and D. L. Miller, 2008):
//! the design stays, every run keeps the size of its own residual and only the signs are drawn, one
//! for each group. So groups may scatter differently, and an error common to all runs of a group,
//! which more repetitions do not remove, is not taken for chance. Residuals are those that a group
//! would have left if it had not been fitted (`(I - H)^-1 e`, CR3 of R. M. Bell and D. F.
//! McCaffrey, 2002; with one run to a group HC3 of J. G. MacKinnon and H. White, 1985), and
//! stretched from the normal to Student's t: with a dozen groups both matter (`tests/cost_model.rs`
//! prints the coverage).
//!
//! A group that is the only one with a driver has no residual as a whole, since the driver's
//! coefficient absorbs its error. Its runs then have a sign each: only their scatter is known, and
//! an interval of that coefficient does not include an error common to all of them.

mod held_out;
mod non_negative;

use std::collections::{BTreeMap, BTreeSet};

use nalgebra::{DMatrix, DVector, Dyn, SymmetricEigen};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::bootstrap::Bootstrap;
use crate::estimate::t_quantile;
use crate::interval::{Interval, Method};
use crate::quantile::interpolated;
use crate::random::Random;
use crate::{CONFIDENCE, Refusal};

pub use held_out::{Prediction, predict};
pub use non_negative::non_negative;

/// One run: its drivers and its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Amount of each driver; as many in every row, in the same order.
    pub drivers: Vec<f64>,
    /// The cost.
    pub cost: f64,
}

/// Coefficients of the drivers: the fitted ones, or those of a resample.
#[derive(Clone, Debug, PartialEq)]
pub struct Coefficients {
    /// Cost of one unit of each driver, never below 0.
    pub each: Vec<f64>,
    /// The shape of the drivers for which it holds, one of those that were tried.
    pub shape: f64,
}

impl Coefficients {
    /// Cost of these drivers, which have this [`Coefficients::shape`].
    pub fn cost(&self, drivers: &[f64]) -> f64 {
        self.each.iter().zip(drivers).map(|(each, amount)| each * amount).sum()
    }
}

/// A fitted cost.
#[derive(Clone, Debug, PartialEq)]
pub struct CostModel {
    /// The best fit.
    pub best: Coefficients,
    /// The fit to every resample, for quantities computed from several coefficients.
    pub draws: Vec<Coefficients>,
    /// Cost minus fitted cost, row by row.
    pub residuals: Vec<f64>,
    /// The condition number of the weighted drivers, each scaled to length 1 (D. A. Belsley, E. Kuh
    /// and R. E. Welsch, 1980): from about 30 on the coefficients compensate for each other.
    pub condition: f64,
}

/// Above this the drivers rose and fell together: the design did not separate them.
pub const CONDITION_MAX: f64 = 1e4;

/// Passes in which the weights follow the fit; after three they hardly change.
const PASSES: usize = 3;

impl CostModel {
    /// Fits the cost to the runs. `groups` has the group of each run; errors of one group may be
    /// correlated. If every run is its own group, errors are taken to be independent. Below
    /// `floor`, which is above 0 and the resolution of the measured cost, the scatter is constant.
    ///
    /// # Errors
    /// [`Refusal::TooFew`] with no more rows than drivers, [`Refusal::NoValues`] if a number is not
    /// finite, the floor not above 0 or a row without a group, [`Refusal::DriversTogether`] if the
    /// drivers cannot be separated.
    pub fn fit(
        rows: &[Row],
        groups: &[usize],
        floor: f64,
        bootstrap: Bootstrap,
    ) -> Result<CostModel, Refusal> {
        CostModel::fit_shaped(&[0.0], |_| rows.to_vec(), groups, floor, bootstrap)
    }

    /// Fits the cost if a driver is not linear and its shape is not known: uses the one of the
    /// `shapes` that fits best, for the runs and again for every resample. `rows` are the runs with
    /// the drivers of a shape.
    ///
    /// # Errors
    /// As [`CostModel::fit`], if no shape can be fitted.
    pub fn fit_shaped(
        shapes: &[f64],
        rows: impl Fn(f64) -> Vec<Row>,
        groups: &[usize],
        floor: f64,
        bootstrap: Bootstrap,
    ) -> Result<CostModel, Refusal> {
        let mut refusal = Refusal::NoValues;
        let mut best: Option<(f64, Design)> = None;
        for shape in shapes {
            match Design::of(*shape, &rows(*shape), floor) {
                Ok(design) => {
                    let left = design.solve(&design.costs).1;
                    if best.as_ref().is_none_or(|(least, _)| left < *least) {
                        best = Some((left, design));
                    }
                }
                Err(why) => refusal = why,
            }
        }
        let Some((_, design)) = best else { return Err(refusal) };
        if groups.len() != design.costs.len() {
            return Err(Refusal::NoValues);
        }
        // All shapes are fitted to the same resample, with the weights of the best one.
        let weights = &design.root_weights;
        let others = shapes.iter().filter(|shape| **shape != design.shape);
        let tried: Vec<Design> = others
            .filter_map(|shape| Design::weighted(*shape, &rows(*shape), weights.clone()).ok())
            .collect();
        let (scaled, _) = design.solve(&design.costs);
        let draws = design.draws(&scaled, groups, &tried, bootstrap);
        let best = design.coefficients(&scaled);
        let own = rows(best.shape);
        let residuals = own.iter().map(|row| row.cost - best.cost(&row.drivers)).collect();
        Ok(CostModel { best, draws, residuals, condition: design.condition })
    }

    /// The interval of the coefficient of this driver.
    pub fn interval(&self, driver: usize) -> Interval {
        self.interval_of(|coefficients| coefficients.each[driver])
    }

    /// The interval of a quantity computed from the coefficients; infinite if it is infinite for
    /// too many of the draws.
    pub fn interval_of(&self, statistic: impl Fn(&Coefficients) -> f64) -> Interval {
        let found: Vec<f64> = self.draws.iter().map(statistic).collect();
        let [low, high] = ends(found);
        Interval { low, high, method: Method::WildBootstrap }
    }
}

/// The interval of these draws at the confidence of all intervals; there must be at least one draw.
/// An end is infinite if too many draws are.
pub fn ends(mut draws: Vec<f64>) -> [f64; 2] {
    draws.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    [tail, 1.0 - tail].map(|share| end(&draws, share))
}

/// A quantile of sorted values that may be infinite at their end, without interpolation there.
fn end(sorted: &[f64], share: f64) -> f64 {
    let at = ((sorted.len() - 1) as f64 * share).ceil() as usize;
    if sorted[at].is_finite() { interpolated(sorted, share) } else { sorted[at] }
}

/// The weighted drivers, each column of length 1, factorised for solving: with the thin factors `Q
/// R` every resample is a problem of as many rows as there are drivers.
struct Design {
    shape: f64,
    matrix: DMatrix<f64>,
    costs: DVector<f64>,
    lengths: Vec<f64>,
    root_weights: Vec<f64>,
    q: DMatrix<f64>,
    r: DMatrix<f64>,
    condition: f64,
}

impl Design {
    /// Weights follow the fit.
    fn of(shape: f64, rows: &[Row], floor: f64) -> Result<Design, Refusal> {
        if floor.is_nan() || floor <= 0.0 {
            return Err(Refusal::NoValues);
        }
        let weight = |cost: f64| cost.max(floor).recip();
        let measured = rows.iter().map(|row| weight(row.cost)).collect();
        let mut design = Design::weighted(shape, rows, measured)?;
        for _ in 0..PASSES {
            let coefficients = design.coefficients(&design.solve(&design.costs).0);
            let fitted = rows.iter().map(|row| weight(coefficients.cost(&row.drivers)));
            design = Design::weighted(shape, rows, fitted.collect())?;
        }
        Ok(design)
    }

    fn weighted(shape: f64, rows: &[Row], root_weights: Vec<f64>) -> Result<Design, Refusal> {
        let drivers = rows.first().map_or(0, |row| row.drivers.len());
        if rows.len() <= drivers || drivers == 0 {
            return Err(Refusal::TooFew { have: rows.len(), needed: drivers + 1 });
        }
        let is_sound =
            |row: &Row| row.cost.is_finite() && row.drivers.iter().all(|amount| amount.is_finite());
        if !rows.iter().all(is_sound) {
            return Err(Refusal::NoValues);
        }
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
        let weighted = rows.iter().zip(&root_weights).map(|(row, weight)| row.cost * weight);
        let costs = DVector::from_iterator(rows.len(), weighted);
        Ok(Design { shape, matrix, costs, lengths, root_weights, q, r, condition })
    }

    /// The coefficients of the scaled columns, and the residual sum of squares without the part
    /// that no coefficients could explain.
    fn solve(&self, costs: &DVector<f64>) -> (DVector<f64>, f64) {
        let seen = self.q.tr_mul(costs);
        let found = non_negative(&self.r, &seen);
        let left = (&self.r * &found - &seen).norm_squared();
        (found, left + costs.norm_squared() - seen.norm_squared())
    }

    fn coefficients(&self, scaled: &DVector<f64>) -> Coefficients {
        let each = scaled.iter().zip(&self.lengths).map(|(each, length)| each / length).collect();
        Coefficients { each, shape: self.shape }
    }

    /// Fits to resamples of the best fit, each with the shape that fits it best.
    fn draws(
        &self,
        scaled: &DVector<f64>,
        groups: &[usize],
        others: &[Design],
        bootstrap: Bootstrap,
    ) -> Vec<Coefficients> {
        let fitted = &self.matrix * scaled;
        let together = self.together(groups);
        let cells = groups.iter().collect::<BTreeSet<_>>().len();
        let freedom = cells.saturating_sub(self.matrix.ncols()).max(1) as f64;
        let tail = (1.0 + CONFIDENCE) / 2.0;
        let stretch = t_quantile(freedom) / Normal::standard().inverse_cdf(tail);
        let spread = self.left_out(&(&self.costs - &fitted), &together) * stretch;
        let mut random = Random::new(bootstrap.seed);
        let mut drawn = fitted.clone();
        (0..bootstrap.resamples.max(1))
            .map(|_| {
                for rows in &together {
                    let sign = if random.next_u64() >> 63 == 0 { 1.0 } else { -1.0 };
                    rows.iter().for_each(|row| drawn[*row] = fitted[*row] + sign * spread[*row]);
                }
                let answers = std::iter::once(self).chain(others);
                let answers = answers.map(|design| (design, design.solve(&drawn)));
                let best = answers.min_by(|(_, (_, a)), (_, (_, b))| a.total_cmp(b));
                let (design, (found, _)) = best.expect("this design is among them");
                design.coefficients(&found)
            })
            .collect()
    }

    /// Rows that share a sign: those of a group, or each row if the group is the only one with a
    /// driver, so that its residual as a whole is 0.
    fn together(&self, groups: &[usize]) -> Vec<Vec<usize>> {
        let mut by_group: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (row, group) in groups.iter().enumerate() {
            by_group.entry(*group).or_default().push(row);
        }
        let mut together = Vec::new();
        for rows in by_group.into_values() {
            let is_alone = self.leverage(&rows).eigenvalues.max() > LEVERAGE_MAX;
            match is_alone {
                true => together.extend(rows.into_iter().map(|row| vec![row])),
                false => together.push(rows),
            }
        }
        together
    }

    /// Influence of these rows on the fit: their part of the hat matrix.
    fn leverage(&self, rows: &[usize]) -> SymmetricEigen<f64, Dyn> {
        let own = self.q.select_rows(rows);
        SymmetricEigen::new(&own * own.transpose())
    }

    /// Residuals of the rows if they had not been fitted.
    fn left_out(&self, residuals: &DVector<f64>, together: &[Vec<usize>]) -> DVector<f64> {
        let mut found = residuals.clone();
        for rows in together {
            let leverage = self.leverage(rows);
            let own = residuals.select_rows(rows);
            let mut along = leverage.eigenvectors.tr_mul(&own);
            // A run that alone determines a coefficient has leverage 1, and no residual.
            for (along, follows) in along.iter_mut().zip(&leverage.eigenvalues) {
                *along /= (1.0 - follows).max(1e-9);
            }
            let own = leverage.eigenvectors * along;
            rows.iter().zip(&own).for_each(|(row, apart)| found[*row] = *apart);
        }
        found
    }
}

/// From here on a group determines a coefficient alone: its residual is rounding.
const LEVERAGE_MAX: f64 = 1.0 - 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(costs: impl Fn(f64, f64) -> f64) -> Vec<Row> {
        let pairs = [(1.0, 0.0), (1.0, 10.0), (1.0, 20.0), (1.0, 40.0), (1.0, 80.0)];
        let row = |(one, amount)| Row { drivers: vec![one, amount], cost: costs(one, amount) };
        pairs.into_iter().map(row).collect()
    }

    /// Costs scatter alike here.
    const FLOOR: f64 = 1e3;

    fn some() -> Bootstrap {
        Bootstrap { resamples: 200, seed: 1 }
    }

    /// Every run is a group of its own.
    fn fit(rows: &[Row], floor: f64) -> Result<CostModel, Refusal> {
        let alone: Vec<usize> = (0..rows.len()).collect();
        CostModel::fit(rows, &alone, floor, some())
    }

    /// Two cells of two runs, 10 % above and 10 % below in both: as runs of their own they tell the
    /// cost by chance, as cells they are off by so much. And one of them alone tells nothing of
    /// what it is off by as a whole.
    #[test]
    fn what_is_in_all_runs_of_a_group_does_not_go_away_with_their_number() {
        let row = |driver: f64, other: f64, cost: f64| Row { drivers: vec![driver, other], cost };
        let many = |runs: usize| {
            let cells = [(10.0, 0.0, 11.0), (10.0, 0.0, 9.0), (20.0, 0.0, 22.0), (20.0, 0.0, 18.0)];
            let cells = cells.into_iter().chain([(10.0, 5.0, 15.0)]);
            let each = cells.enumerate().map(|(group, (driver, other, cost))| {
                (0..runs).map(move |run| {
                    (row(driver, other, cost * (1.0 + 1e-3 * (run as f64 - 0.5))), group)
                })
            });
            let (rows, groups): (Vec<Row>, Vec<usize>) = each.flatten().unzip();
            let alone: Vec<usize> = (0..rows.len()).collect();
            let width = |groups: &[usize]| {
                let model = CostModel::fit(&rows, groups, 1e-6, some()).unwrap();
                let interval = model.interval(0);
                interval.high - interval.low
            };
            (width(&alone), width(&groups))
        };
        let ((few, by_cell), (more, still)) = (many(2), many(32));
        assert!(more < 0.4 * few, "{few} {more}: sixteen times the runs, a quarter of the width");
        assert!(still > 0.7 * by_cell, "{by_cell} {still}: the cells are as many as before");
        assert!(still > 3.0 * more, "{more} {still}");
    }

    #[test]
    fn every_row_must_have_a_group() {
        let refusal = CostModel::fit(&rows(|one, _| one), &[0, 0], FLOOR, some()).unwrap_err();
        assert_eq!(refusal, Refusal::NoValues);
    }

    #[test]
    fn an_exact_cost_is_found_exactly() {
        let model = fit(&rows(|one, amount| 3.0 * one + 0.5 * amount), FLOOR).unwrap();
        assert!((model.best.each[0] - 3.0).abs() < 1e-12, "{model:?}");
        assert!((model.best.each[1] - 0.5).abs() < 1e-12, "{model:?}");
        assert!((model.best.cost(&[1.0, 100.0]) - 53.0).abs() < 1e-10);
        let interval = model.interval(1);
        assert!(interval.high - interval.low < 1e-9, "{interval:?}");
        assert_eq!(interval.method, Method::WildBootstrap);
    }

    #[test]
    fn a_cost_that_falls_with_a_driver_costs_nothing_there() {
        let model = fit(&rows(|_, amount| 100.0 - amount), FLOOR).unwrap();
        assert_eq!(model.best.each[1], 0.0);
        assert!((model.best.each[0] - 70.0).abs() < 1e-9, "the mean is what is left");
        assert!(model.residuals[0] > 0.0 && model.residuals[4] < 0.0);
    }

    #[test]
    fn weights_follow_the_fitted_cost_down_to_the_floor() {
        // Two costs of one driver: in proportion, the mean is the harmonic way between them.
        let row = |cost| Row { drivers: vec![1.0], cost };
        let pair = [row(1.0), row(3.0)];
        let found = fit(&pair, 1e-6).unwrap().best.each[0];
        assert!((found - 2.0).abs() < 1e-12, "both have the same fitted cost: {found}");
        let rows =
            [Row { drivers: vec![1.0], cost: 1.0 }, Row { drivers: vec![100.0], cost: 200.0 }];
        let of = |floor| fit(&rows, floor).unwrap().best.each[0];
        assert!((of(1e-6) - 1.5).abs() < 1e-9, "each counts by its share: {}", of(1e-6));
        assert!(of(1e6) > 1.99, "all scatter alike: {}", of(1e6));
    }

    #[test]
    fn drivers_that_rise_together_are_refused() {
        let twice = |row: Row| Row { drivers: vec![row.drivers[1], 2.0 * row.drivers[1]], ..row };
        let together: Vec<Row> = rows(|_, amount| amount).into_iter().map(twice).collect();
        let refusal = fit(&together, FLOOR).unwrap_err();
        assert!(matches!(refusal, Refusal::DriversTogether { .. }), "{refusal}");
        let absent = |row: Row| Row { drivers: vec![1.0, 0.0], ..row };
        let absent: Vec<Row> = rows(|_, amount| amount).into_iter().map(absent).collect();
        let refusal = fit(&absent, FLOOR).unwrap_err();
        assert!(refusal.to_string().contains("rose and fell together"), "{refusal}");
    }

    #[test]
    fn too_few_rows_and_what_is_no_number_are_refused() {
        let all = rows(|_, amount| amount);
        let refusal = fit(&all[..2], FLOOR).unwrap_err();
        assert_eq!(refusal, Refusal::TooFew { have: 2, needed: 3 });
        assert!(fit(&[], FLOOR).is_err());
        for (cost, floor) in [(f64::NAN, 1.0), (1.0, 0.0), (f64::INFINITY, 1.0), (1.0, f64::NAN)] {
            let mut bad = all.clone();
            bad[1].cost = cost;
            assert_eq!(fit(&bad, floor).unwrap_err(), Refusal::NoValues);
        }
    }

    #[test]
    fn an_interval_may_have_no_end() {
        let noisy = |one: f64, amount: f64| 5.0 * one + 0.001 * amount * (amount * 7.0).sin();
        let model = fit(&rows(noisy), FLOOR).unwrap();
        let reach = model.interval_of(|found| 1.0 / found.each[1]);
        assert!(reach.high.is_infinite(), "{reach:?}: the coefficient may be 0");
    }

    #[test]
    fn of_several_shapes_the_true_one_is_found() {
        let rates = [100.0, 300.0, 1e3, 3e3, 10e3, 30e3];
        let bent = |rate: f64, shape: f64| rate / (1.0 + rate * shape);
        let rows = |shape: f64| {
            let row = |rate: f64| Row {
                drivers: vec![rate, bent(rate, shape)],
                cost: 5.0 * rate + 60.0 * bent(rate, 2e-4),
            };
            rates.map(row).to_vec()
        };
        let alone: Vec<usize> = (0..rates.len()).collect();
        let shapes = [0.0, 1e-5, 1e-4, 2e-4, 4e-4, 1e-3];
        let model = CostModel::fit_shaped(&shapes, rows, &alone, 1e-6, some()).unwrap();
        assert_eq!(model.best.shape, 2e-4, "a shape of 0 makes both drivers one, and is left out");
        assert!((model.best.each[0] - 5.0).abs() < 1e-9, "{:?}", model.best);
        assert!((model.best.each[1] - 60.0).abs() < 1e-9, "{:?}", model.best);
        let refusal = CostModel::fit_shaped(&[0.0], rows, &alone, 1e-6, some()).unwrap_err();
        assert!(matches!(refusal, Refusal::DriversTogether { .. }), "{refusal}");
    }
}
