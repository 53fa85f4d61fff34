//! The right average for the thing: the arithmetic mean for times and costs, the harmonic mean
//! for rates over equal work (T. Hoefler and R. Belli, 2015, rules 3 and 4), never one of ratios.

use crate::Refusal;

/// The harmonic mean of rates that were each seen over the same work: n over the sum of the
/// reciprocals. Refused unless all are above 0.
pub fn harmonic_mean(rates: &[f64]) -> Result<f64, Refusal> {
    if rates.is_empty() || rates.iter().any(|rate| !rate.is_finite()) {
        return Err(Refusal::NoValues);
    }
    if rates.iter().any(|rate| *rate <= 0.0) {
        return Err(Refusal::NotPositive);
    }
    Ok(rates.len() as f64 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>())
}

/// The median; `None` without values or if one of them is not a number.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(crate::quantile::interpolated(&sorted, 0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_at_60_and_back_at_30_is_40_on_average() {
        assert!((harmonic_mean(&[60.0, 30.0]).unwrap() - 40.0).abs() < 1e-12);
        assert_eq!(harmonic_mean(&[1.0, 0.0]), Err(Refusal::NotPositive));
        assert_eq!(harmonic_mean(&[]), Err(Refusal::NoValues));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[f64::NAN]), None);
    }
}
