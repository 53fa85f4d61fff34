//! What a fit leaves of its cells, and draws of it. With the draws of the coefficients it is the
//! distribution of a prediction (N. R. Draper and H. Smith, 1998, section 3.1): a fit with `p`
//! coefficients leaves too little of `n` cells, by the root of `(n - p) / n`.
//!
//! Only the cells nearest to a load count, because short trials at low rates scatter more. They are
//! those of all lanes: a lane alone has five, too few for a spread. Every option draws for itself.
//! What the model misses for all options alike would cancel in their ratios, but most of what is
//! left of a short trial is its own.

use weigh_stats::estimate::t_quantile;
use weigh_stats::quantile::interpolated;

use crate::cells::Cell;
use crate::cost::{FLOOR_CORES, Fitted, Measured};
use crate::drawn::{DRAWS, NORMAL, normal};

/// What a fit leaves of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// True if every message had a connection of its own.
    is_per_connection: bool,
    /// Messages a second, connections and size of the cell: its place among the others.
    load: [f64; 3],
    /// Measured over fitted cores, widened for the coefficients.
    ratio: f64,
}

/// The residuals of a family.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Residuals {
    all: Vec<Residual>,
}

impl Residual {
    /// How far a load is, on a logarithmic scale: the rate counts most, the size least.
    fn distance(&self, load: [f64; 3]) -> f64 {
        let pairs = self.load.iter().zip(load).zip([1.0, 0.5, 0.25]);
        pairs.map(|((own, load), weight)| weight * ((own + 1.0) / (load + 1.0)).ln().abs()).sum()
    }
}

impl Residuals {
    /// Of these cells with their evidence, for a fit to them. Cells that cost less than runs
    /// scatter by do not count.
    pub fn of(cells: &[Cell], evidence: &[Vec<Measured>], fitted: &Fitted) -> Residuals {
        let best = &fitted.model.best;
        let one = |(cell, each): (&Cell, &Vec<Measured>)| {
            let n = each.len() as f64;
            let measured = each.iter().map(|own| own.cores).sum::<f64>() / n;
            let fit = each.iter().map(|own| fitted.cores(&own.load, best)).sum::<f64>() / n;
            let load = [cell.rate_per_s().round(), cell.connections, cell.size_bytes];
            let ratio = measured / fit;
            let is_told = measured > FLOOR_CORES && ratio.is_finite();
            is_told.then_some(Residual { is_per_connection: cell.is_per_connection, load, ratio })
        };
        let mut all: Vec<Residual> = cells.iter().zip(evidence).filter_map(one).collect();
        let coefficients = best.each.iter().filter(|each| **each > 0.0).count() as f64;
        let n = all.len() as f64;
        let wider = (n / (n - coefficients).max(1.0)).sqrt();
        all.iter_mut().for_each(|own| own.ratio = own.ratio.powf(wider));
        Residuals { all }
    }

    /// Logarithms of the ratios of the cells that are nearest to a load, of those that keep their
    /// connections or of the others; of both if there are too few.
    fn near(&self, is_per_connection: bool, load: [f64; 3]) -> Vec<f64> {
        let is_like = |own: &&Residual| own.is_per_connection == is_per_connection;
        let mut near: Vec<&Residual> = self.all.iter().filter(is_like).collect();
        if near.len() < LIKE_MIN {
            near = self.all.iter().collect();
        }
        near.sort_by(|a, b| a.distance(load).total_cmp(&b.distance(load)));
        near.iter().take(NEAREST).map(|own| own.ratio.ln()).collect()
    }

    /// Half of the nearest cells cost more than predicted times this.
    pub fn median(&self, is_per_connection: bool, load: [f64; 3]) -> f64 {
        median(self.near(is_per_connection, load))
    }

    /// For every draw a factor, normal on a logarithmic scale with the spread of the nearest cells
    /// around their median. The spread of few cells is too small for the next one: it is widened as
    /// Student's t of a prediction is. `option` names what draws.
    pub fn drawn(&self, option: &str, is_per_connection: bool, load: [f64; 3]) -> Vec<f64> {
        let near = self.near(is_per_connection, load);
        let n = near.len() as f64;
        if near.is_empty() {
            return vec![1.0; DRAWS];
        }
        let median = median(near.clone());
        let centre = median.ln();
        let squares: f64 = near.iter().map(|own| (own - centre).powi(2)).sum();
        let freedom = (n - 1.0).max(1.0);
        let wider = t_quantile(freedom) / NORMAL * (1.0 + 1.0 / n).sqrt();
        let deviation = wider * (squares / freedom).sqrt();
        let draws = normal(&format!("{option}: residual"));
        draws.into_iter().map(|own| median * (deviation * own).exp()).collect()
    }
}

/// The middle ratio of these logarithms; 1 without any.
fn median(mut near: Vec<f64>) -> f64 {
    near.sort_unstable_by(f64::total_cmp);
    if near.is_empty() { 1.0 } else { interpolated(&near, 0.5).exp() }
}

/// Cells that count at a load.
const NEAREST: usize = 16;

/// With fewer cells that keep their connections, or that do not, both count.
const LIKE_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: [f64; 3] = [1_000.0, 20.0, 64.0];

    fn residual(rate: f64, ratio: f64) -> Residual {
        Residual { is_per_connection: false, load: [rate, 20.0, 64.0], ratio }
    }

    fn deviation(all: &[f64]) -> f64 {
        let n = all.len() as f64;
        let mean = all.iter().map(|own| own.ln()).sum::<f64>() / n;
        (all.iter().map(|own| (own.ln() - mean).powi(2)).sum::<f64>() / n).sqrt()
    }

    /// Of twenty cells the nearest count: a model that is wrong at low rates is right at high ones.
    #[test]
    fn only_near_loads_count() {
        let one = |step: u32| residual(1.5_f64.powi(step as i32), if step < 4 { 3.0 } else { 1.1 });
        let found = Residuals { all: (0..20).map(one).collect() };
        let high = found.drawn("a", false, [3_000.0, 20.0, 64.0]);
        assert!(high.iter().all(|own| (own - 1.1).abs() < 1e-9));
        let low = found.drawn("a", false, [1.0, 20.0, 64.0]);
        assert!(low.iter().any(|own| *own > 2.0));
    }

    /// The factors have the spread of the cells, widened as a prediction from 16 of them is: by
    /// 2.131/1.960 and by the root of 17/15 (their spread is around 16, not 15).
    #[test]
    fn a_prediction_is_as_wide_as_its_cells_and_wider() {
        let ratios: Vec<f64> =
            (0..16).map(|at| (0.1 * (f64::from(at) - 7.5) / 4.6).exp()).collect();
        let found = Residuals { all: ratios.iter().map(|ratio| residual(1e3, *ratio)).collect() };
        let drawn = found.drawn("a", false, LOAD);
        let widened = deviation(&drawn) / deviation(&ratios);
        assert!((1.08..1.24).contains(&widened), "{widened}");
        assert!((found.median(false, LOAD) - 1.0).abs() < 1e-12);
    }

    /// Two options that are predicted alike are not known to cost the same.
    #[test]
    fn every_option_draws_for_itself() {
        let ratios = [0.8, 0.9, 1.0, 1.1, 1.2];
        let found = Residuals { all: ratios.map(|ratio| residual(1e3, ratio)).into() };
        let (a, b) = (found.drawn("a", false, LOAD), found.drawn("b", false, LOAD));
        let ratio: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a / b).collect();
        assert!(deviation(&ratio) > 1.2 * deviation(&a));
        assert_eq!(a, found.drawn("a", false, LOAD), "and each the same every time");
    }

    #[test]
    fn without_cells_nothing_is_known_of_the_error() {
        let none = Residuals::default();
        assert_eq!((none.median(false, LOAD), none.drawn("a", false, LOAD)[0]), (1.0, 1.0));
        // No cell has a connection for each message: the others count.
        let found = Residuals { all: vec![residual(1e3, 1.2); 5] };
        assert!((found.median(true, LOAD) - 1.2).abs() < 1e-12);
    }
}
