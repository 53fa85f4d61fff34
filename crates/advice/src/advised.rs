//! The advised set: every option that cannot be distinguished from the best. Inside it options are
//! ordered by what matters next.
//!
//! This is the subset selection of S. S. Gupta (1965) with the indifference zone of R. E. Bechhofer
//! (1954): an option leaves the set only if another one is better by more than the zone, at the
//! stated confidence. So the set holds the best option with at least that probability, as far as
//! the draws are right.

use crate::criterion::Criterion;
use crate::drawn::Drawn;
use crate::figures::Figures;

/// Options whose costs differ by less than this share count as equally good.
pub const ZONE: f64 = 0.05;

/// An option leaves the set if another is better with this probability.
pub const CONFIDENCE: f64 = 0.95;

/// The advised set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advised {
    /// Options in the set, the first one first: indices of the figures.
    pub set: Vec<usize>,
    /// For every option the probability that it costs least.
    pub best: Vec<f64>,
    /// For every option its cost over that of the best one, with the interval.
    pub ratios: Vec<Option<Drawn>>,
}

impl Advised {
    /// Chooses among these options by `matters`, the most important first. Options without the
    /// first figure cannot be chosen.
    pub fn of(figures: &[Option<&Figures>], matters: &[Criterion]) -> Advised {
        let Some(first) = matters.first() else { return Advised::default() };
        let costs: Vec<Option<&Drawn>> =
            figures.iter().map(|own| own.and_then(|own| own.get(*first))).collect();
        let known: Vec<usize> = (0..costs.len()).filter(|at| costs[*at].is_some()).collect();
        let cost = |at: usize| costs[at].map_or(f64::INFINITY, |own| own.value);
        let mut advised = Advised { best: best(&costs), ..Advised::default() };
        let lowest = known.iter().copied().min_by(|a, b| cost(*a).total_cmp(&cost(*b)));
        let lowest = lowest.and_then(|at| costs[at]);
        let over = |own: &Option<&Drawn>| Some(own.as_ref()?.with(lowest?, ratio));
        advised.ratios = costs.iter().map(over).collect();
        let is_beaten = |at: usize| {
            known.iter().any(|other| {
                let (Some(own), Some(other_cost)) = (costs[at], costs[*other]) else {
                    return false;
                };
                *other != at && own.exceeds(1.0 + ZONE, other_cost) >= CONFIDENCE
            })
        };
        advised.set = known.iter().copied().filter(|at| !is_beaten(*at)).collect();
        advised.order(figures, matters);
        advised
    }

    /// Orders the set by the criteria behind the first; values within the zone of each other are
    /// equal, and the next one decides. The first criterion decides at the end.
    fn order(&mut self, figures: &[Option<&Figures>], matters: &[Criterion]) {
        let value = |at: usize, criterion: Criterion| {
            figures[at].and_then(|own| own.get(criterion)).map_or(f64::INFINITY, |own| own.value)
        };
        let ranks = |at: usize| -> Vec<i64> {
            let others = matters.iter().skip(1);
            others.map(|own| step(value(at, *own))).collect()
        };
        let first = |at: usize| value(at, matters[0]);
        self.set.sort_by(|a, b| ranks(*a).cmp(&ranks(*b)).then(first(*a).total_cmp(&first(*b))));
    }
}

/// A value on a scale of steps as wide as the zone.
fn step(value: f64) -> i64 {
    if value <= 0.0 {
        return i64::MIN;
    }
    if value.is_finite() { (value.ln() / (1.0 + ZONE).ln()).round() as i64 } else { i64::MAX }
}

fn ratio(own: f64, best: f64) -> f64 {
    if best > 0.0 {
        own / best
    } else if own > 0.0 {
        f64::INFINITY
    } else {
        1.0
    }
}

/// For every option the share of the draws in which it is the cheapest; ties are shared.
fn best(costs: &[Option<&Drawn>]) -> Vec<f64> {
    let draws = costs.iter().flatten().map(|own| own.draws.len()).min().unwrap_or(0);
    let mut shares = vec![0.0; costs.len()];
    for draw in 0..draws {
        let of = |own: &Option<&Drawn>| own.map_or(f64::INFINITY, |own| own.draws[draw]);
        let least = costs.iter().map(of).fold(f64::INFINITY, f64::min);
        let ties: Vec<usize> = (0..costs.len()).filter(|at| of(&costs[*at]) == least).collect();
        for at in &ties {
            shares[*at] += 1.0 / ties.len() as f64;
        }
    }
    shares.iter().map(|own| own / draws.max(1) as f64).collect()
}
