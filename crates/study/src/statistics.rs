//! Statistics of repetitions, and what is taken of points along an axis.

use weigh_stats::line::Line;
use weigh_stats::propagation::Known;

use crate::quantity::{Along, Statistic};

/// A statistic of repetitions, with its uncertainty.
pub(crate) fn known(values: &[f64], statistic: Statistic) -> Option<Known> {
    let extreme = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick);
    Some(match (statistic, Known::mean_of(values)) {
        (Statistic::Least, _) => Known::Exactly(extreme(f64::min)?),
        (Statistic::Most, _) => Known::Exactly(extreme(f64::max)?),
        (Statistic::Mean, known) => known?,
        (Statistic::Deviation, Some(Known::MeanOf { deviation, n, .. })) => {
            Known::DeviationOf { deviation, n }
        }
        (Statistic::Variation, Some(Known::MeanOf { mean, deviation, n })) => {
            Known::VariationOf { mean, deviation, n }
        }
        _ => return None,
    })
}

/// Value computed from points along an axis.
pub(crate) fn taken(points: &[(f64, f64)], what: Along) -> Option<f64> {
    let values: Vec<f64> = points.iter().map(|point| point.1).collect();
    match what {
        Along::Slope => Line::through(points).map(|line| line.slope),
        Along::Intercept => Line::through(points).map(|line| line.intercept),
        Along::Correlation => Line::through(points).map(|line| line.correlation),
        // It lies between points: see `crossing`.
        Along::First(_) => None,
        Along::Over(statistic) => known(&values, statistic).map(Known::estimate),
    }
}

/// Between which values of an axis something comes to hold: the one before, and the first at which
/// it holds. Before the first one of all stands 0. `None` where it never holds.
pub(crate) fn crossing(points: impl Iterator<Item = (f64, bool)>) -> Option<(f64, f64)> {
    let mut before = None;
    for (x, holds) in points {
        if holds {
            return Some((before.unwrap_or(x.min(0.0)), x));
        }
        before = Some(x);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossing_lies_between_two_values_of_the_axis() {
        let of = |seen: &[(f64, bool)]| crossing(seen.iter().copied());
        assert_eq!(of(&[(500.0, false), (1750.0, true), (2000.0, false)]), Some((500.0, 1750.0)));
        assert_eq!(of(&[(500.0, true), (1750.0, true)]), Some((0.0, 500.0)));
        assert_eq!(of(&[(-3.0, true)]), Some((-3.0, -3.0)));
        assert_eq!(of(&[(500.0, false)]), None);
    }
}
