//! The Universal Scalability Law (N. J. Gunther, "Guerrilla Capacity Planning", Springer 2007,
//! chapters 4 to 6): throughput X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)) at N
//! clients, with contention sigma and coherency kappa. A description of measured values, with
//! intervals; it is not used beyond 1.5 times the largest N measured, and is never a capacity.
//!
//! Fitted by least squares with MPFIT's Levenberg-Marquardt (C. B. Markwardt, 2009; after J. J.
//! Moré, 1978), by the crate `rmpfit`: one file, no dependencies.

use rmpfit::{MPFitter, MPResult};
use weigh_model::numbers::exact;
use weigh_stats::bootstrap::Bootstrap;
use weigh_stats::quantile::interpolated;
use weigh_stats::random::Random;
use weigh_stats::{CONFIDENCE, Interval, Method};

/// The scatter of the measured throughputs about the law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Constant: plain least squares, as in the published fits.
    Constant,
    /// Proportional to the throughput, as is usual for measured throughputs.
    Proportional,
}

/// The law with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// Throughput of one client.
    pub lambda: f64,
    /// Contention: the share of the work that is serial.
    pub sigma: f64,
    /// Coherency: the cost of every pair of clients.
    pub kappa: f64,
}

impl Law {
    fn at(&self, clients: f64) -> f64 {
        let pairs = clients * (clients - 1.0);
        self.lambda * clients / (1.0 + self.sigma * (clients - 1.0) + self.kappa * pairs)
    }

    fn of(parameters: [f64; 3]) -> Law {
        Law { lambda: parameters[0], sigma: parameters[1], kappa: parameters[2] }
    }

    fn parameters(&self) -> [f64; 3] {
        [self.lambda, self.sigma, self.kappa]
    }
}

/// A fitted law.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The best parameters.
    pub law: Law,
    /// The interval of lambda at 95 %.
    pub lambda: Interval,
    /// The interval of sigma at 95 %.
    pub sigma: Interval,
    /// The interval of kappa at 95 %.
    pub kappa: Interval,
    /// Standard errors of lambda, sigma and kappa, from the curvature at the minimum.
    pub standard_errors: [f64; 3],
    /// The standard deviation of the points about the law, in throughput, or as a share of it if
    /// noise is proportional.
    pub scatter: f64,
    /// The largest number of clients that was measured.
    pub largest: f64,
}

/// Why the law, or a value of it, is not given.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoFit {
    /// Too few different loads.
    #[error("{have} different loads; three parameters with intervals need at least {LOADS_MIN}")]
    TooFew {
        /// Number of loads.
        have: usize,
    },
    /// A load below 1 or a throughput that is not positive.
    #[error(
        "the point ({clients}, {throughput}) needs 1 or more clients and a positive \
             throughput"
    )]
    BadPoint {
        /// The load.
        clients: f64,
        /// The throughput.
        throughput: f64,
    },
    /// The fit did not converge.
    #[error("no parameters fit: check whether the curve is of another kind")]
    NotSettled,
    /// A parameter that must be 0 or more is below 0.
    #[error(
        "{parameter} would be {value:.3e}, below 0: throughput grows faster than the law allows, \
         so it does not describe this curve"
    )]
    Negative {
        /// Its name.
        parameter: &'static str,
        /// Its best value.
        value: f64,
    },
    /// The requested value is too far beyond what was measured.
    #[error(
        "{} is more than {EXTRAPOLATION_MAX} times the largest load measured, {}: measure there",
        exact(.asked.round()),
        exact(*.largest)
    )]
    TooFar {
        /// The requested load.
        asked: f64,
        /// The largest load measured.
        largest: f64,
    },
    /// Without coherency throughput has no maximum.
    #[error("coherency is not significantly different from 0: the law has no peak in this range")]
    NoPeak,
}

impl Fit {
    /// Fits the law to points of clients (1 or more) and throughput (above 0), with intervals by
    /// the studentised bootstrap over residuals (B. Efron, 1981): each resample is fitted anew,
    /// with the distance of every parameter in its own standard errors. The parameters are not held
    /// at 0; one whose whole interval is below 0 is refused.
    ///
    /// # Errors
    /// If there are too few loads, a point is not usable, or the law does not fit.
    pub fn new(points: &[(f64, f64)], noise: Noise, bootstrap: Bootstrap) -> Result<Fit, NoFit> {
        let largest = check(points)?;
        let mut model = Model { points: points.to_vec(), noise };
        let (law, standard_errors) = model.fit(start(points))?;
        let residuals = model.residuals(&law);
        let freedom = (points.len() - 3) as f64;
        let scatter = (residuals.iter().map(|r| r * r).sum::<f64>() / freedom).sqrt();
        let distances = resampled(&mut model, &law, &residuals, bootstrap);
        let interval = |index: usize| {
            let (value, error) = (law.parameters()[index], standard_errors[index]);
            let mut sorted: Vec<f64> = distances.iter().map(|three| three[index]).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            let tail = (1.0 - CONFIDENCE) / 2.0;
            let low = value - error * interpolated(&sorted, 1.0 - tail);
            let high = value - error * interpolated(&sorted, tail);
            Interval { low, high, method: Method::StudentisedBootstrap }
        };
        if (distances.len() as f64) < CONFIDENCE * bootstrap.resamples as f64 {
            return Err(NoFit::NotSettled);
        }
        let (lambda, sigma, kappa) = (interval(0), interval(1), interval(2));
        for (parameter, value, interval) in
            [("contention", law.sigma, sigma), ("coherency", law.kappa, kappa)]
        {
            if interval.high < 0.0 {
                return Err(NoFit::Negative { parameter, value });
            }
        }
        Ok(Fit { law, lambda, sigma, kappa, standard_errors, scatter, largest })
    }

    /// The throughput at this number of clients, refused beyond 1.5 times the largest load
    /// measured.
    ///
    /// # Errors
    /// Beyond 1.5 times the largest load measured.
    pub fn throughput(&self, clients: f64) -> Result<f64, NoFit> {
        if clients > EXTRAPOLATION_MAX * self.largest {
            return Err(NoFit::TooFar { asked: clients, largest: self.largest });
        }
        Ok(self.law.at(clients))
    }

    /// The load with the largest throughput, sqrt((1 - sigma) / kappa), and that throughput;
    /// refused beyond 1.5 times the largest load measured, and if kappa is not significantly
    /// different from 0.
    ///
    /// # Errors
    /// Beyond 1.5 times the largest load measured, and if kappa is not significantly different from
    /// 0.
    pub fn peak(&self) -> Result<(f64, f64), NoFit> {
        if self.kappa.low <= 0.0 || self.law.sigma >= 1.0 {
            return Err(NoFit::NoPeak);
        }
        let clients = ((1.0 - self.law.sigma) / self.law.kappa).sqrt();
        Ok((clients, self.throughput(clients)?))
    }
}

/// The largest load, if the points can be fitted.
fn check(points: &[(f64, f64)]) -> Result<f64, NoFit> {
    for &(clients, throughput) in points {
        let is_sound = clients.is_finite() && throughput.is_finite();
        if !is_sound || clients < 1.0 || throughput <= 0.0 {
            return Err(NoFit::BadPoint { clients, throughput });
        }
    }
    let mut loads: Vec<f64> = points.iter().map(|(clients, _)| *clients).collect();
    loads.sort_unstable_by(f64::total_cmp);
    loads.dedup();
    match loads.last() {
        Some(largest) if loads.len() >= LOADS_MIN => Ok(*largest),
        _ => Err(NoFit::TooFew { have: loads.len() }),
    }
}

/// Start values: N / X = (1 + sigma (N - 1) + kappa N (N - 1)) / lambda is linear in 1 / lambda,
/// sigma / lambda and kappa / lambda (Gunther, chapter 5), so three points of it give a start.
fn start(points: &[(f64, f64)]) -> Law {
    let best = points.iter().map(|(n, x)| x / n).fold(0.0, f64::max);
    let (n, x) = points.iter().copied().fold((1.0, 1.0), |a, b| if b.0 > a.0 { b } else { a });
    // The slowdown at the largest load is attributed to contention first.
    let sigma = ((best * n / x - 1.0) / (n - 1.0).max(1.0)).clamp(1e-3, 0.9);
    Law { lambda: best, sigma, kappa: 0.1 * sigma / n }
}

struct Model {
    points: Vec<(f64, f64)>,
    noise: Noise,
}

impl Model {
    /// The best parameters from a start, and their standard errors.
    fn fit(&mut self, start: Law) -> Result<(Law, [f64; 3]), NoFit> {
        let mut parameters = start.parameters();
        let status = self.mpfit(&mut parameters).map_err(|_| NoFit::NotSettled)?;
        let freedom = (self.points.len() - 3) as f64;
        // MPFIT's errors are for residuals of deviation 1.
        let scale = (status.best_norm / freedom).sqrt();
        let errors: [f64; 3] = std::array::from_fn(|i| status.xerror[i] * scale);
        let is_sound = parameters.iter().chain(&errors).all(|value| value.is_finite());
        match is_sound && errors.iter().all(|error| *error > 0.0) {
            true => Ok((Law::of(parameters), errors)),
            false => Err(NoFit::NotSettled),
        }
    }

    fn residuals(&self, law: &Law) -> Vec<f64> {
        let residual = |(clients, throughput): &(f64, f64)| match self.noise {
            Noise::Constant => throughput - law.at(*clients),
            Noise::Proportional => throughput / law.at(*clients) - 1.0,
        };
        self.points.iter().map(residual).collect()
    }
}

impl MPFitter for Model {
    fn eval(&mut self, parameters: &[f64], deviates: &mut [f64]) -> MPResult<()> {
        let law = Law::of([parameters[0], parameters[1], parameters[2]]);
        for (deviate, (clients, throughput)) in deviates.iter_mut().zip(&self.points) {
            *deviate = match self.noise {
                Noise::Constant => throughput - law.at(*clients),
                // The logarithm of a ratio is the share for small shares and symmetrical.
                Noise::Proportional => (throughput / law.at(*clients)).ln(),
            };
        }
        Ok(())
    }

    fn number_of_points(&self) -> usize {
        self.points.len()
    }
}

/// The distances of the parameters of resampled points from those of the fit, in the resample's own
/// standard errors. Fits that do not converge are left out.
fn resampled(
    model: &mut Model,
    law: &Law,
    residuals: &[f64],
    bootstrap: Bootstrap,
) -> Vec<[f64; 3]> {
    let mut random = Random::new(bootstrap.seed);
    let mean = residuals.iter().sum::<f64>() / residuals.len() as f64;
    let clients: Vec<f64> = model.points.iter().map(|(clients, _)| *clients).collect();
    let mut distances = Vec::with_capacity(bootstrap.resamples);
    for _ in 0..bootstrap.resamples {
        for (point, clients) in model.points.iter_mut().zip(&clients) {
            let residual = residuals[random.index(residuals.len())] - mean;
            let fitted = law.at(*clients);
            point.1 = match model.noise {
                Noise::Constant => fitted + residual,
                Noise::Proportional => fitted * (1.0 + residual),
            };
        }
        if let Ok((other, errors)) = model.fit(*law) {
            let apart = |i: usize| (other.parameters()[i] - law.parameters()[i]) / errors[i];
            distances.push(std::array::from_fn(apart));
        }
    }
    distances
}

/// Three parameters and at least three more loads to show their scatter.
const LOADS_MIN: usize = 6;

/// How far beyond the largest load measured the law is used.
pub const EXTRAPOLATION_MAX: f64 = 1.5;
