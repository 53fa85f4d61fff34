//! Draws of uncertain coefficients for Monte Carlo intervals (JCGM 101:2008, section 7). Each is
//! log-normal around its value, because none can be negative; the published half width at 95 % is
//! 1.96 standard deviations of its logarithm.

use std::collections::BTreeMap;

use weigh_model::modelled::{EnergyBasis, EnergyPart, Processor};
use weigh_stats::random::Random;

use crate::keys::Values;
use crate::keys::{KEYS, Key, Kind, at};

/// The values of all coefficients, as published; missing ones are 0, ratios 1.
pub fn published(basis: &EnergyBasis) -> Values {
    let mut values = [0.0; KEYS.len()];
    for (place, key) in KEYS.iter().enumerate() {
        let absent = if key.dimension.unit() == "ratio" { 1.0 } else { 0.0 };
        let found = part(basis, key).and_then(|part| part.coefficients.get(key.name));
        values[place] = found.map_or(absent, |coefficient| coefficient.value);
    }
    if basis.cpu == Processor::Here {
        values[at::CPU_SCALE] = 1.0;
    }
    values
}

/// Draws all coefficients, each with its own error, one that it shares with the others of its file,
/// and the same error as others of its row.
pub fn draws(basis: &EnergyBasis, number: usize, seed: u64) -> Vec<Values> {
    let (nominal, errors) = (published(basis), errors(basis));
    let mut random = Random::new(seed);
    let mut draw = || {
        let shared = [random.normal(), random.normal()];
        let own: Vec<f64> = errors.iter().map(|_| random.normal()).collect();
        let mut values = nominal;
        for (error, own) in errors.iter().zip(&own) {
            let common = error.correlation.sqrt() * shared[error.kind as usize];
            let z = common + (1.0 - error.correlation).sqrt() * own;
            for (place, sigma) in &error.places {
                values[*place] *= (sigma * z).exp();
            }
        }
        values
    };
    (0..number).map(|_| draw()).collect()
}

/// One error: of a coefficient, or of several that are one published number.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// Name: `3g tail_power`.
    pub name: String,
    /// Kind of its file.
    pub kind: Kind,
    /// Correlation with the others of the file.
    pub correlation: f64,
    /// The indices of the coefficients in [`KEYS`], and the deviation of each one's logarithm.
    pub places: Vec<(usize, f64)>,
}

/// The errors of all coefficients that are uncertain.
pub fn errors(basis: &EnergyBasis) -> Vec<Error> {
    let mut found: BTreeMap<String, Error> = BTreeMap::new();
    for (place, key) in KEYS.iter().enumerate() {
        let Some(part) = part(basis, key) else { continue };
        let Some(coefficient) = part.coefficients.get(key.name) else { continue };
        let is_certain = coefficient.factor <= 1.0 || coefficient.value == 0.0;
        if is_certain || (place == at::CPU_SCALE && basis.cpu == Processor::Here) {
            continue;
        }
        let name = format!("{} {}", part.name, key.name);
        let row = coefficient.row.clone().unwrap_or_else(|| name.clone());
        let error = found.entry(row).or_insert_with(|| Error {
            name,
            kind: key.kind,
            correlation: part.correlation,
            places: Vec::new(),
        });
        error.places.push((place, coefficient.factor.ln() / DEVIATIONS));
    }
    found.into_values().collect()
}

fn part<'b>(basis: &'b EnergyBasis, key: &Key) -> Option<&'b EnergyPart> {
    match key.kind {
        Kind::Device => Some(&basis.device),
        Kind::Radio => basis.radio.as_ref(),
    }
}

/// Standard deviations of a normal distribution to either end of its 95 %.
const DEVIATIONS: f64 = 1.959_963_984_540_054;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use weigh_model::modelled::EnergyAsked;

    fn basis() -> EnergyBasis {
        let asked: EnergyAsked = EnergyAsked {
            device: "pi-2b".to_owned(),
            radio: Some("3g".to_owned()),
            battery: None,
            every: None,
            cpu: Processor::Scaled,
        };
        Catalogue::load(&[]).unwrap().basis(&asked).unwrap()
    }

    fn logarithms(draws: &[Values], place: usize) -> Vec<f64> {
        draws.iter().map(|values| values[place].ln()).collect()
    }

    fn moments(left: &[f64], right: &[f64]) -> (f64, f64) {
        let n = left.len() as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / n;
        let (of_left, of_right) = (mean(left), mean(right));
        let product = left.iter().zip(right).map(|(l, r)| (l - of_left) * (r - of_right));
        (of_left, product.sum::<f64>() / n)
    }

    #[test]
    fn draws_have_the_spread_that_was_published() {
        let draws = draws(&basis(), 20_000, 1);
        let idle = logarithms(&draws, at::IDLE);
        let (mean, variance) = moments(&idle, &idle);
        assert!((mean - 1.1f64.ln()).abs() < 0.002, "{mean}");
        let within = idle.iter().filter(|z| (*z - 1.1f64.ln()).abs() < 1.1f64.ln()).count();
        assert!((18_900..19_100).contains(&within), "{within} of 20000 within 10 %");
        // Half of the variance is common to the file, nothing to the two files.
        let load = logarithms(&draws, at::LOAD);
        let correlation = moments(&idle, &load).1 / (variance * moments(&load, &load).1).sqrt();
        assert!((correlation - 0.5).abs() < 0.03, "{correlation}");
        let ramp = logarithms(&draws, at::RAMP);
        let apart = moments(&idle, &ramp).1 / (variance * moments(&ramp, &ramp).1).sqrt();
        assert!(apart.abs() < 0.03, "{apart}");
    }

    #[test]
    fn one_row_is_one_error() {
        let draws = draws(&basis(), 100, 1);
        for values in &draws {
            assert!((values[at::TAIL_POWER] / values[at::CONNECTED] - 1.0).abs() < 1e-12);
            assert!((values[at::UP] / values[at::DOWN] - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_generator_on_the_device_needs_no_scale() {
        let here = EnergyBasis { cpu: Processor::Here, ..basis() };
        assert!(draws(&here, 100, 1).iter().all(|values| values[at::CPU_SCALE] == 1.0));
        assert!(!errors(&here).iter().any(|error| error.name.contains("cpu_scale")));
        assert!(errors(&basis()).iter().any(|error| error.name == "pi-2b cpu_scale"));
    }
}
