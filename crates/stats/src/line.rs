//! The least-squares line through points.

use crate::estimate::Sample;

/// A straight line through points, and its fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Rise of y per x.
    pub slope: f64,
    /// y where x is 0.
    pub intercept: f64,
    /// Pearson's coefficient of correlation; not a number if all y are the same.
    pub correlation: f64,
}

impl Line {
    /// The line through these points of x and y; `None` for fewer than two different x, or a value
    /// that is not finite.
    pub fn through(points: &[(f64, f64)]) -> Option<Line> {
        let of = |pick: fn(&(f64, f64)) -> f64| {
            Sample::of(&points.iter().map(pick).collect::<Vec<f64>>())
        };
        let (x, y) = (of(|point| point.0)?, of(|point| point.1)?);
        if x.variance <= 0.0 {
            return None;
        }
        let together: f64 =
            points.iter().map(|point| (point.0 - x.mean) * (point.1 - y.mean)).sum();
        let together = together / (x.n as f64 - 1.0);
        let slope = together / x.variance;
        let correlation = together / (x.variance * y.variance).sqrt();
        Some(Line { slope, intercept: y.mean - slope * x.mean, correlation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F. J. Anscombe, "Graphs in Statistical Analysis", 1973, the first of four sets: the line is
    /// 3.0001 + 0.50009 x, the correlation 0.81642.
    #[test]
    fn anscombes_line_is_found() {
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let points: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
        let line = Line::through(&points).unwrap();
        assert!((line.slope - 0.500_090_9).abs() < 1e-7, "{line:?}");
        assert!((line.intercept - 3.000_090_9).abs() < 1e-7, "{line:?}");
        assert!((line.correlation - 0.816_420_5).abs() < 1e-7, "{line:?}");
    }

    #[test]
    fn what_has_no_line_has_none() {
        assert_eq!(Line::through(&[]), None);
        assert_eq!(Line::through(&[(1.0, 2.0)]), None);
        assert_eq!(Line::through(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(Line::through(&[(1.0, 2.0), (2.0, f64::INFINITY)]), None);
        let flat = Line::through(&[(1.0, 2.0), (3.0, 2.0)]).unwrap();
        assert!(flat.slope == 0.0 && flat.intercept == 2.0 && flat.correlation.is_nan());
    }
}
