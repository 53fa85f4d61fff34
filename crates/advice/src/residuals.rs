//! By how much cells that were held out differ from their prediction, and draws of it.
//!
//! The draws of two options are paired: each takes the residual at the same place of its cells,
//! which are in the order of their loads. A calibration measures all options at the same loads, so
//! what the model misses at one of them for all options cancels in their ratio (a block bootstrap
//! with a load as the block; A. C. Davison and D. V. Hinkley, 1997, section 3.8).

use weigh_stats::estimate::t_quantile;
use weigh_stats::quantile::interpolated;

use crate::cells::Cell;
use crate::choice::Choice;
use crate::drawn::{DRAWS, NORMAL, uniform};

/// What options and cells have in common if their errors are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    variant: String,
    is_per_connection: bool,
    is_tls: bool,
}

/// A cell that was held out.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    kind: Kind,
    /// Messages a second, connections and size of the cell: its place among the others.
    load: [f64; 3],
    /// Measured over predicted cores.
    ratio: f64,
}

/// The residuals of a family.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Residuals {
    all: Vec<Residual>,
}

impl Kind {
    /// The kind of an option.
    pub fn of_choice(choice: &Choice) -> Kind {
        Kind {
            variant: choice.variant(),
            is_per_connection: !choice.is_kept,
            is_tls: choice.is_tls,
        }
    }
}

impl Residual {
    /// The residual of a cell: its measured over its predicted cores.
    pub fn of(cell: &Cell, ratio: f64) -> Residual {
        let kind = Kind {
            variant: cell.variant.clone(),
            is_per_connection: cell.is_per_connection,
            is_tls: cell.is_tls,
        };
        let rate = cell.rate_per_s().round();
        Residual { kind, load: [rate, cell.connections, cell.size_bytes], ratio }
    }
}

impl Residuals {
    /// Puts them in the order of their loads.
    pub fn new(mut all: Vec<Residual>) -> Residuals {
        all.sort_by(|a, b| {
            let pairs = a.load.iter().zip(&b.load).map(|(a, b)| a.total_cmp(b));
            pairs.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
        Residuals { all }
    }

    /// Ratios of cells of this kind, in the order of their loads; of more distant kinds if there
    /// are too few of it.
    fn like(&self, kind: &Kind) -> Vec<f64> {
        let nearest: [&dyn Fn(&Kind) -> bool; 4] = [
            &|own| own == kind,
            &|own| own.is_per_connection == kind.is_per_connection && own.is_tls == kind.is_tls,
            &|own| own.is_per_connection == kind.is_per_connection,
            &|_| true,
        ];
        let of = |is_near: &&dyn Fn(&Kind) -> bool| -> Vec<f64> {
            let near = self.all.iter().filter(|own| is_near(&own.kind));
            near.map(|own| own.ratio).collect()
        };
        nearest.iter().map(of).find(|own| own.len() >= LIKE_MIN).unwrap_or_else(|| of(&nearest[3]))
    }

    /// Half of the cells of this kind cost more than predicted times this.
    pub fn median(&self, kind: &Kind) -> f64 {
        let mut ratios = self.like(kind);
        ratios.sort_unstable_by(f64::total_cmp);
        if ratios.is_empty() { 1.0 } else { interpolated(&ratios, 0.5) }
    }

    /// For every draw the residual of a cell of this kind. The spread of few cells is too small for
    /// the next one: it is widened as Student's t of a prediction is.
    pub fn drawn(&self, kind: &Kind) -> Vec<f64> {
        let logarithms: Vec<f64> = self.like(kind).iter().map(|own| own.ln()).collect();
        let n = logarithms.len();
        if n == 0 {
            return vec![1.0; DRAWS];
        }
        let mean = logarithms.iter().sum::<f64>() / n as f64;
        let wider = match n {
            1 => 1.0,
            n => {
                let freedom = n as f64 - 1.0;
                t_quantile(freedom) / NORMAL * ((n as f64 + 1.0) / freedom).sqrt()
            }
        };
        let at = |place: f64| logarithms[((place * n as f64) as usize).min(n - 1)];
        let of = |place: f64| (mean + wider * (at(place) - mean)).exp();
        uniform("load of the residual").into_iter().map(of).collect()
    }
}

/// With fewer cells of a kind, those of the next nearest count too.
const LIKE_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(variant: &str) -> Kind {
        Kind { variant: variant.to_owned(), is_per_connection: false, is_tls: false }
    }

    fn residuals(of: impl Fn(f64, &str) -> f64) -> Residuals {
        let rates = [100.0, 400.0, 2_000.0, 4_000.0, 10_000.0];
        let one = |variant: &'static str, rate: f64| Residual {
            kind: kind(variant),
            load: [rate, 20.0, 64.0],
            ratio: of(rate, variant),
        };
        Residuals::new(rates.iter().flat_map(|rate| [one("a", *rate), one("b", *rate)]).collect())
    }

    /// What the model misses at a load for both options cancels in their ratio.
    #[test]
    fn errors_that_options_share_cancel() {
        let found = residuals(|rate, _| 1.0 + 100.0 / rate);
        let (a, b) = (found.drawn(&kind("a")), found.drawn(&kind("b")));
        assert!(a.iter().zip(&b).all(|(a, b)| (a / b - 1.0).abs() < 1e-12));
        assert!(a.iter().copied().fold(0.0, f64::max) > 1.5, "and each alone is uncertain");
        let apart = residuals(|rate, variant| if variant == "a" { rate / 1e3 } else { 1e3 / rate });
        let (a, b) = (apart.drawn(&kind("a")), apart.drawn(&kind("b")));
        assert!(a.iter().zip(&b).any(|(a, b)| a / b > 1.5), "errors of their own do not");
    }

    /// The standard deviation of five values 0.8 to 1.25 is widened by 2.78/1.96 and by the root of
    /// 6/4.
    #[test]
    fn few_cells_make_a_wider_prediction() {
        let ratios = [0.8, 0.9, 1.0, 1.0 / 0.9, 1.25];
        let rates = [100.0, 400.0, 2_000.0, 4_000.0, 10_000.0];
        let at = |rate: f64| ratios[rates.iter().position(|own| *own == rate).unwrap()];
        let found = residuals(|rate, _| at(rate));
        let deviation = |all: &[f64]| {
            let n = all.len() as f64;
            let mean = all.iter().map(|own| own.ln()).sum::<f64>() / n;
            (all.iter().map(|own| (own.ln() - mean).powi(2)).sum::<f64>() / n).sqrt()
        };
        let widened = deviation(&found.drawn(&kind("a"))) / deviation(&ratios);
        assert!((1.6..1.9).contains(&widened), "{widened}");
        assert!((found.median(&kind("a")) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn without_cells_nothing_is_known_of_the_error() {
        let none = Residuals::default();
        assert_eq!((none.median(&kind("a")), none.drawn(&kind("a"))[0]), (1.0, 1.0));
        // Of a lane that was not held out, those of the others count.
        let found = residuals(|_, _| 1.2);
        assert!((found.median(&kind("c")) - 1.2).abs() < 1e-12);
    }
}
