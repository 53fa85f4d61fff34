//! The shape of the curve around the limit: plateau, knee, scalability law. Shown only if the
//! measured loads suffice, and never as a capacity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_limit::AxisKind;
use weigh_limit::curve::{Hold, plateau};
use weigh_limit::knee::{self, Shape};
use weigh_limit::scalability::{Fit, Noise};
use weigh_stats::bootstrap::Bootstrap;

/// The shape of the curve; each part with the reason if it is not shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Described {
    /// The plateau, where the output no longer follows the load: it bends between these two loads,
    /// at this level. On an axis of rates.
    pub plateau: Option<PlateauShown>,
    /// The load at which throughput against connections is farthest from a line (Kneedle).
    pub knee: Option<KneeShown>,
    /// The Universal Scalability Law through throughput against connections.
    pub scalability: Option<ScalabilityShown>,
    /// Why parts are not shown.
    pub not_shown: Vec<String>,
}

/// A plateau.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlateauShown {
    /// It begins between these two loads.
    pub begins: (f64, f64),
    /// Messages per second of output on it.
    pub level_per_s: f64,
    /// Its interval at 95 %.
    pub level_between: Option<(f64, f64)>,
}

/// A knee.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KneeShown {
    /// The load, one of those measured.
    pub at: f64,
    /// Its interval at 95 %.
    pub between: (f64, f64),
}

/// The parameters of the law with their intervals at 95 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalabilityShown {
    /// The best lambda, sigma and kappa.
    pub best: (f64, f64, f64),
    /// Throughput of one connection, messages per second.
    pub lambda: (f64, f64),
    /// Contention.
    pub sigma: (f64, f64),
    /// Coherency.
    pub kappa: (f64, f64),
    /// The largest number of connections measured: the law is not used beyond 1.5 times this.
    pub largest: f64,
}

/// Describes throughputs by load, ascending, one value for each trial.
pub(crate) fn describe(axis: AxisKind, curve: &[(f64, Vec<f64>)]) -> Described {
    let mut described = Described::default();
    let repeated: Vec<(f64, Vec<f64>)> =
        curve.iter().filter(|(_, values)| values.len() >= 2).cloned().collect();
    match axis {
        AxisKind::Rate => {
            let holds: Vec<Hold> =
                repeated.into_iter().map(|(load, values)| Hold::of(load, values)).collect();
            match plateau(&holds) {
                Ok(found) => {
                    described.plateau = Some(PlateauShown {
                        begins: found.begins,
                        level_per_s: found.level,
                        level_between: found.level_between,
                    });
                }
                Err(why) => described.not_shown.push(format!("plateau: {why}")),
            }
        }
        AxisKind::Connections => along_connections(curve, &repeated, &mut described),
        AxisKind::Burst | AxisKind::Subscribers | AxisKind::MessageSize => {}
    }
    described
}

fn along_connections(
    curve: &[(f64, Vec<f64>)],
    repeated: &[(f64, Vec<f64>)],
    described: &mut Described,
) {
    let bootstrap = Bootstrap { resamples: RESAMPLES, ..Bootstrap::default() };
    match knee::describe(repeated, Shape::Flattening, bootstrap) {
        Ok(found) => {
            let between = (found.interval.low, found.interval.high);
            described.knee = Some(KneeShown { at: found.at, between });
        }
        Err(why) => described.not_shown.push(format!("knee: {why}")),
    }
    let points: Vec<(f64, f64)> = curve
        .iter()
        .flat_map(|(load, values)| values.iter().map(|value| (*load, *value)))
        .filter(|(_, value)| *value > 0.0)
        .collect();
    match Fit::new(&points, Noise::Proportional, bootstrap) {
        Ok(fit) if fit.sigma.low <= 0.0 && fit.kappa.low <= 0.0 => {
            let why = "scalability law: from these loads neither contention nor coherency is \
                       significantly different from 0";
            described.not_shown.push(why.to_owned());
        }
        Ok(fit) => {
            let ends = |interval: &weigh_stats::Interval| (interval.low, interval.high);
            described.scalability = Some(ScalabilityShown {
                best: (fit.law.lambda, fit.law.sigma, fit.law.kappa),
                lambda: ends(&fit.lambda),
                sigma: ends(&fit.sigma),
                kappa: ends(&fit.kappa),
                largest: fit.largest,
            });
        }
        Err(why) => described.not_shown.push(format!("scalability law: {why}")),
    }
}

/// Enough for a description: the Monte Carlo error of an end is about 3 % of the width.
const RESAMPLES: usize = 1_000;
