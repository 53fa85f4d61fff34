//! Checks whether the figures of a case are as precise as the plan asks: the longer side of the
//! interval over the mean, which is the ± of the table.

use weigh_model::plan::Precision;
use weigh_stats::runs::mean_interval;

/// True if `results`, each with the figures of one trial in the order of `until`, reach every
/// precision. The interval is that of the report, over trials; without one (fewer than three
/// values), nothing is reached. A figure that no trial measured is ignored, because repetition
/// would not produce it.
pub fn is_reached(until: &[Precision], results: &[&[Option<f64>]]) -> bool {
    until.iter().enumerate().all(|(place, precision)| {
        let values: Vec<f64> = results.iter().filter_map(|figures| figures[place]).collect();
        if values.is_empty() {
            return true;
        }
        let Ok(interval) = mean_interval(&values) else { return false };
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let longer = (interval.high - mean).max(mean - interval.low);
        longer <= precision.within * mean.abs()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_stats::random::Random;

    fn is_within(within: &str, values: &[f64]) -> bool {
        let until = [within.parse().unwrap()];
        let figures: Vec<Vec<Option<f64>>> =
            values.iter().map(|value| vec![Some(*value)]).collect();
        let results: Vec<&[Option<f64>]> = figures.iter().map(Vec::as_slice).collect();
        is_reached(&until, &results)
    }

    /// 9, 10 and 11 have the mean 10 and the interval 10 ± t(0.975; 2) / sqrt(3), and that t is
    /// 4.302653: either side is 24.84 % of the mean. Of skewed values the longer side counts.
    #[test]
    fn the_longer_side_over_the_mean_decides() {
        let values = [9.0, 10.0, 11.0];
        assert!(is_within("p99 within 24.85 %", &values));
        assert!(!is_within("p99 within 24.83 %", &values));
        let lopsided = [10.0, 10.0, 10.0, 10.1, 16.0];
        let (mean, interval) = (11.22, mean_interval(&lopsided).unwrap());
        let half = (interval.high - interval.low) / 2.0;
        assert!((interval.high - mean).max(mean - interval.low) > 1.05 * half, "{interval:?}");
        let half_percent = format!("p99 within {} %", 102.0 * half / mean);
        assert!(!is_within(&half_percent, &lopsided), "half the width would do");
        assert!(!is_within("p99 within 90 %", &values[..2]), "two values have no interval");
        assert!(!is_within("p99 within 90 %", &[9.0, 10.0, f64::INFINITY]));
        assert!(is_within("errors_ratio within 5 %", &[0.0; 3]), "nothing varies");
    }

    #[test]
    fn what_nobody_measured_asks_nothing() {
        let until = ["p99 within 5 %".parse().unwrap()];
        assert!(is_reached(&until, &[&[None], &[None]]));
        assert!(!is_reached(&until, &[&[None], &[Some(1.0)]]));
    }

    /// Cost of optional stopping: of 4,000 runs of normal values with a deviation of 10 % that
    /// are repeated from 5 up to 40 times until 5 % is reached, this many intervals hold the mean
    /// at the end; of intervals of a fixed number 95 % do. `docs/decisions/0010` has the figure.
    #[test]
    fn stopping_when_it_is_precise_costs_a_little_coverage() {
        let until = ["p99 within 5 %".parse().unwrap()];
        let mut random = Random::new(11);
        let (mut held, mut looks) = (0, 0);
        for _ in 0..4000 {
            let mut draw = || vec![Some(100.0 + 10.0 * random.normal())];
            let mut figures: Vec<Vec<Option<f64>>> = (0..5).map(|_| draw()).collect();
            loop {
                looks += 1;
                let results: Vec<&[Option<f64>]> = figures.iter().map(Vec::as_slice).collect();
                if is_reached(&until, &results) || figures.len() == 40 {
                    break;
                }
                figures.push(draw());
            }
            let values: Vec<f64> = figures.iter().filter_map(|figures| figures[0]).collect();
            held +=
                i32::from(mean_interval(&values).is_ok_and(|interval| interval.contains(100.0)));
        }
        let share = f64::from(held) / 4000.0;
        println!("coverage {share}, looks {}", f64::from(looks) / 4000.0);
        assert!((0.90..0.949).contains(&share), "{share}");
    }
}
