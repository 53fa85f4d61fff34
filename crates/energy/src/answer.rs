//! Modelled figures of the repetitions of a case, each with an interval that includes the
//! uncertainty of the coefficients and the variation from run to run, and the most important
//! coefficient.

use weigh_model::modelled::EnergyBasis;
use weigh_stats::quantile::interpolated;
use weigh_stats::random::Random;

use crate::draws::{self, Error};
use crate::keys::Values;
use crate::quantity::{Frame, Quantity};
use crate::work::{Parts, Work};

/// A model with its coefficients drawn: the same draws for every case, so that cases can be
/// compared although the coefficients are uncertain.
#[derive(Clone, Debug)]
pub struct Model {
    frame: Frame,
    published: Values,
    draws: Vec<Values>,
    errors: Vec<Error>,
}

/// Modelled figures of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The figures that are defined, in their order.
    pub figures: Vec<(Quantity, Figure)>,
    /// Joules of a message as measured, by use: means over the repetitions.
    pub weighed: Parts,
    /// Joules of a message in the duty cycle; `None` if a message takes longer than the interval.
    pub duty: Option<Parts>,
    /// Sources of uncertainty of the energy as measured, the largest first.
    pub weighed_budget: Vec<Share>,
    /// Sources of uncertainty of the energy of a message in the duty cycle.
    pub duty_budget: Vec<Share>,
}

/// A figure with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The mean over the repetitions, with the coefficients as published.
    pub value: f64,
    /// The interval at 95 %; `None` with fewer than [`REPETITIONS_MIN`] repetitions.
    pub interval: Option<(f64, f64)>,
    /// The value of every repetition.
    pub values: Vec<f64>,
}

/// A source's share of the variance.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The coefficient, such as `3g tail_power`, or [`RUNS`].
    pub name: String,
    /// Its share, 0 to 1.
    pub share: f64,
}

impl Model {
    /// A model of this device with this radio and battery.
    pub fn new(basis: &EnergyBasis) -> Model {
        Model::with_draws(basis, DRAWS, SEED)
    }

    /// A model with another number of draws, or other draws.
    pub fn with_draws(basis: &EnergyBasis, number: usize, seed: u64) -> Model {
        let battery = basis.battery;
        let rated_v = battery.map_or(basis.device.volts, |battery| battery.rated_v);
        let frame = Frame {
            cores: f64::from(basis.device.cores.max(1)),
            every_s: basis.every.as_secs_f64(),
            charge_j: battery.map(|battery| battery.energy_j()),
            rated_v,
            has_converter: has_converter(basis),
        };
        Model {
            frame,
            published: draws::published(basis),
            draws: draws::draws(basis, number, seed),
            errors: draws::errors(basis),
        }
    }

    /// Number of draws of the coefficients.
    pub fn number(&self) -> usize {
        self.draws.len()
    }

    /// The value of a figure for one trial, with the coefficients as published.
    pub fn value(&self, quantity: Quantity, work: &Work) -> Option<f64> {
        quantity.of(&self.frame, &self.published, work)
    }

    /// The value of a figure for this work with each of the drawn coefficients, in the order in
    /// which they were drawn; `None` if it is not defined for one of them.
    pub fn values(&self, quantity: Quantity, work: &Work) -> Option<Vec<f64>> {
        self.draws.iter().map(|values| quantity.of(&self.frame, values, work)).collect()
    }

    /// Returns the figures of the repetitions of a case. `case` separates the random numbers of
    /// this case from those of others.
    pub fn answer(&self, works: &[Work], case: u64) -> Answer {
        let runs = self.runs(works.len(), case);
        let figure = |quantity: Quantity| Some((quantity, self.figure(quantity, works, &runs)?));
        let parts: Vec<(Parts, Option<Parts>)> =
            works.iter().map(|work| self.frame.parts(&self.published, work)).collect();
        let weighed: Vec<Parts> = parts.iter().map(|(weighed, _)| *weighed).collect();
        let duty: Option<Vec<Parts>> = parts.iter().map(|(_, duty)| *duty).collect();
        Answer {
            figures: Quantity::ALL.into_iter().filter_map(figure).collect(),
            weighed: average(&weighed),
            duty: duty.map(|all| average(&all)),
            weighed_budget: self.budget(Quantity::JoulesPerMessage, works),
            duty_budget: self.budget(Quantity::WakePerMessage, works),
        }
    }

    /// A figure of one case over that of another, with its interval: both with the same draws of
    /// the coefficients. `None` if one of them is not defined, or 0.
    pub fn ratio(
        &self,
        quantity: Quantity,
        [left, right]: [(&[Work], u64); 2],
    ) -> Option<(f64, Option<(f64, f64)>)> {
        let of = |(works, case): (&[Work], u64)| {
            let runs = self.runs(works.len(), case);
            let figure = self.figure(quantity, works, &runs)?;
            Some((figure.value, self.drawn(quantity, works, &runs)))
        };
        let ((left, left_drawn), (right, right_drawn)) = (of(left)?, of(right)?);
        let ratios = left_drawn.zip(right_drawn).map(|(left, right)| {
            left.iter().zip(&right).map(|(left, right)| left / right).collect::<Vec<f64>>()
        });
        (right > 0.0).then(|| (left / right, ratios.and_then(interval)))
    }

    fn figure(&self, quantity: Quantity, works: &[Work], runs: &[f64]) -> Option<Figure> {
        let values: Option<Vec<f64>> =
            works.iter().map(|work| self.value(quantity, work)).collect();
        let values = values.filter(|values| !values.is_empty())?;
        let interval = self.drawn(quantity, works, runs).and_then(interval);
        Some(Figure { value: mean(&values), interval, values })
    }

    /// The figure's mean over the repetitions for every draw, with the variation from run to run as
    /// far as it is known from this number of repetitions (JCGM 101:2008, section 6.4.9). `None`
    /// with too few repetitions.
    fn drawn(&self, quantity: Quantity, works: &[Work], runs: &[f64]) -> Option<Vec<f64>> {
        if works.len() < REPETITIONS_MIN {
            return None;
        }
        let at = |values: &Values| -> Option<f64> {
            let all: Option<Vec<f64>> =
                works.iter().map(|work| quantity.of(&self.frame, values, work)).collect();
            Some(mean(&all?))
        };
        let deviation = self.run_deviation(quantity, works)?;
        // On a logarithmic scale, so that chance cannot make energy negative; for the small
        // deviations of runs it is the same.
        let factor = |t: f64| (deviation * t).clamp(-FACTOR_LN_MAX, FACTOR_LN_MAX).exp();
        let draw = |(values, t): (&Values, &f64)| Some(at(values)? * factor(*t));
        self.draws.iter().zip(runs).map(draw).collect()
    }

    /// The standard deviation of the mean from run to run, as a share of it.
    fn run_deviation(&self, quantity: Quantity, works: &[Work]) -> Option<f64> {
        let values: Option<Vec<f64>> =
            works.iter().map(|work| self.value(quantity, work)).collect();
        let values = values?;
        let centre = mean(&values);
        let n = values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
        if n < 2.0 || centre <= 0.0 {
            return Some(0.0);
        }
        Some((squares / (n - 1.0) / n).sqrt() / centre)
    }

    /// A deviate of Student's t for every draw, with one degree of freedom less than repetitions.
    fn runs(&self, repetitions: usize, case: u64) -> Vec<f64> {
        let freedom = repetitions.saturating_sub(1);
        let mut random = Random::new(SEED_OF_RUNS ^ case);
        let mut deviate = || {
            let z = random.normal();
            let squares: f64 = (0..freedom).map(|_| random.normal().powi(2)).sum();
            if freedom == 0 { 0.0 } else { z / (squares / freedom as f64).sqrt() }
        };
        (0..self.draws.len()).map(|_| deviate()).collect()
    }

    /// The variance of a figure's logarithm by source, each as if the others were certain: a
    /// standard deviation to either side (JCGM 101:2008, annex B).
    fn budget(&self, quantity: Quantity, works: &[Work]) -> Vec<Share> {
        let logarithm = |values: &Values| -> Option<f64> {
            let all: Option<Vec<f64>> =
                works.iter().map(|work| quantity.of(&self.frame, values, work)).collect();
            let value = mean(&all?);
            (value > 0.0).then(|| value.ln())
        };
        let moved = |error: &Error, by: f64| {
            let mut values = self.published;
            error.places.iter().for_each(|(at, sigma)| values[*at] *= (by * sigma).exp());
            logarithm(&values)
        };
        let of_error = |error: &Error| {
            let half = (moved(error, 1.0)? - moved(error, -1.0)?) / 2.0;
            Some((error.name.clone(), half * half))
        };
        let mut found: Vec<(String, f64)> = self.errors.iter().filter_map(of_error).collect();
        let runs = self.run_deviation(quantity, works).filter(|_| works.len() > 1);
        found.extend(runs.map(|deviation| (RUNS.to_owned(), deviation * deviation)));
        let all: f64 = found.iter().map(|(_, variance)| variance).sum();
        let mut shares: Vec<Share> = found
            .into_iter()
            .filter(|(_, variance)| *variance > 0.0)
            .map(|(name, variance)| Share { name, share: variance / all })
            .collect();
        shares.sort_by(|left, right| right.share.total_cmp(&left.share));
        shares
    }
}

/// Whether a battery's voltage differs from that of the device, which then has a converter.
pub fn has_converter(basis: &EnergyBasis) -> bool {
    let differs = basis.battery.is_some_and(|battery| {
        let ratio = battery.rated_v / basis.device.volts;
        !(1.0 / SAME_VOLTAGE..=SAME_VOLTAGE).contains(&ratio)
    });
    differs && basis.device.coefficients.contains_key("converter")
}

fn interval(drawn: Vec<f64>) -> Option<(f64, f64)> {
    let mut drawn = drawn;
    if drawn.is_empty() || drawn.iter().any(|value| !value.is_finite()) {
        return None;
    }
    drawn.sort_by(f64::total_cmp);
    Some((interpolated(&drawn, OUTSIDE / 2.0), interpolated(&drawn, 1.0 - OUTSIDE / 2.0)))
}

fn average(parts: &[Parts]) -> Parts {
    let of =
        |get: fn(&Parts) -> f64| parts.iter().map(get).sum::<f64>() / parts.len().max(1) as f64;
    Parts {
        attach: of(|parts| parts.attach),
        connect: of(|parts| parts.connect),
        message: of(|parts| parts.message),
        bytes: of(|parts| parts.bytes),
        tail: of(|parts| parts.tail),
        idle: of(|parts| parts.idle),
        cpu: of(|parts| parts.cpu),
        keep_alive: of(|parts| parts.keep_alive),
        paging: of(|parts| parts.paging),
        self_discharge: of(|parts| parts.self_discharge),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Name of the variation from run to run in a budget.
pub const RUNS: &str = "run to run";

/// Repetitions that an interval needs, as in other crates.
pub const REPETITIONS_MIN: usize = 3;

/// Draws of the coefficients: the ends of the interval are then good to about 1 % of its width.
pub const DRAWS: usize = 10_000;

/// The same on every machine, so that a repeated report has the same digits.
pub const SEED: u64 = 101;

/// Larger factors do not affect an interval at 95 %.
const FACTOR_LN_MAX: f64 = 50.0;

const SEED_OF_RUNS: u64 = 0x5EED_0000;
const OUTSIDE: f64 = 1.0 - weigh_stats::CONFIDENCE;

/// A battery within this factor of the device's voltage needs no converter.
const SAME_VOLTAGE: f64 = 1.1;
