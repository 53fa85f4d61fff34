//! Measured energy of a run's trials: figures, warnings, and intervals widened by the meter's own
//! uncertainty.
//!
//! A log that was read after the run gives figures that no `trial_finished` has; so all of them are
//! taken from `energy_measured`, the last one for each trial.

use std::collections::BTreeMap;

use weigh_model::Warning;
use weigh_model::energy::{ENERGY_ABSENT, EnergyBudgetLine, EnergyMeasured, MeterChosen};
use weigh_model::event::{Event, TrialFinished};
use weigh_model::warnings::WarningRecord;

use super::metric::{BudgetLine, Metric};

/// Energy measurements of a run.
#[derive(Debug, Default)]
pub(crate) struct Energies<'e> {
    of_trials: BTreeMap<&'e str, &'e EnergyMeasured>,
    is_asked: bool,
    /// Why the log of an external meter could not be used.
    refused: Option<&'e str>,
}

impl<'e> Energies<'e> {
    /// Collects them from the events of a run.
    pub fn of(events: &'e [Event]) -> Energies<'e> {
        let mut energies = Energies::default();
        for event in events {
            match event {
                Event::EnergyMeasured(own) => {
                    energies.of_trials.insert(&own.trial, own);
                }
                Event::MeterChosen(own) => energies.is_asked = own.is_asked,
                Event::LogAligned(own) => energies.refused = own.refused.as_deref(),
                _ => {}
            }
        }
        energies
    }

    /// Figures of a trial that its own result does not have.
    pub fn figures<'s>(
        &'s self,
        trial: &'s TrialFinished,
    ) -> impl Iterator<Item = (&'s String, &'s f64)> {
        let own = self.of_trials.get(trial.trial.as_str());
        let figures = own.into_iter().flat_map(|own| own.metrics.iter());
        figures.filter(|(name, _)| !trial.metrics.contains_key(*name))
    }

    /// Warnings on the energy of a trial. A missing meter gives one only if energy was requested.
    pub fn warnings(&self, trial: &TrialFinished) -> Vec<WarningRecord> {
        let Some(own) = self.of_trials.get(trial.trial.as_str()) else { return Vec::new() };
        let mut warnings = own.warnings.clone();
        if let (Some(reason), true) = (&own.absent, warnings.is_empty()) {
            let reason = self.refused.unwrap_or(reason);
            let advice = "fix the meter, and repeat the run with it in place all the time";
            let warning = Warning::Energy(ENERGY_ABSENT, format!("no energy: {reason}"), advice);
            warnings.push(warning.record());
        }
        warnings.retain(|warning| self.is_asked || warning.code != ENERGY_ABSENT);
        warnings
    }

    /// Widens the intervals of a cell's energies by the meter's uncertainty in addition to the
    /// spread of its repetitions: standard uncertainties are added as squares, and two of them on
    /// either side are taken as 95 % (JCGM 100, 6.3.3).
    pub fn widen(&self, metrics: &mut BTreeMap<String, Metric>, trials: &[&TrialFinished]) {
        for (name, metric) in metrics.iter_mut().filter(|(name, _)| is_measured(name)) {
            let lines = self.lines(name, metric, trials);
            let meter: f64 = lines.iter().map(|line| line.standard_uncertainty.powi(2)).sum();
            let reach = COVERAGE * meter.sqrt();
            let floor = if metric.low.is_some_and(|low| low >= 0.0) { 0.0 } else { f64::MIN };
            if let (Some(value), Some(low), Some(high)) = (metric.value, metric.low, metric.high)
                && reach > 0.0
            {
                metric.low = Some((value - (value - low).hypot(reach)).max(floor));
                metric.high = Some(value + (high - value).hypot(reach));
                metric.method = metric.method.take().map(|method| method + WIDENED);
                metric.bootstrap = None;
            }
            metric.budget.extend(spread(metric));
            metric.budget.extend(lines);
            metric.budget.sort_by(|left, right| {
                right.standard_uncertainty.total_cmp(&left.standard_uncertainty)
            });
        }
    }

    /// The meter's lines: errors common to every repetition as their mean, others as that of the
    /// mean of independent ones.
    fn lines(&self, name: &str, metric: &Metric, trials: &[&TrialFinished]) -> Vec<BudgetLine> {
        let mut lines: Vec<(BudgetLine, Vec<f64>)> = Vec::new();
        let mut values = metric.values.iter();
        for trial in trials {
            let Some(own) = self.of_trials.get(trial.trial.as_str()) else { continue };
            if !own.metrics.contains_key(name) {
                continue;
            }
            let Some(Some(value)) = values.next() else { continue };
            for line in &own.budget {
                let Some(share) = share(name, line, own) else { continue };
                let size = value.abs() * share;
                match lines.iter_mut().find(|(known, _)| known.source == line.source) {
                    Some((_, sizes)) => sizes.push(size),
                    None => lines.push((of(line), vec![size])),
                }
            }
        }
        let number = f64::from(metric.n.max(1));
        for (line, sizes) in &mut lines {
            line.standard_uncertainty = match line.is_systematic {
                true => sizes.iter().sum::<f64>() / number,
                false => sizes.iter().map(|size| size * size).sum::<f64>().sqrt() / number,
            };
        }
        let lines = lines.into_iter().map(|(line, _)| line);
        lines.filter(|line| line.standard_uncertainty > 0.0).collect()
    }
}

/// A line's size as a share of the metric's value; `None` if it does not apply to it.
fn share(name: &str, line: &EnergyBudgetLine, own: &EnergyMeasured) -> Option<f64> {
    let (size, whole) = match name.contains("above_idle") {
        true => (line.above_idle_j, own.above_idle_j?),
        false => (line.energy_j, own.energy_j?),
    };
    (whole != 0.0).then(|| (size / whole).abs())
}

pub(crate) fn of(line: &EnergyBudgetLine) -> BudgetLine {
    BudgetLine {
        source: line.source.clone(),
        standard_uncertainty: 0.0,
        is_systematic: line.is_systematic,
        basis: line.basis.clone(),
    }
}

/// The line of the repetitions' own spread.
fn spread(metric: &Metric) -> Option<BudgetLine> {
    let deviation = metric.deviation.filter(|deviation| *deviation > 0.0)?;
    Some(BudgetLine {
        source: "repetitions".to_owned(),
        standard_uncertainty: deviation / f64::from(metric.n).sqrt(),
        is_systematic: false,
        basis: format!("standard deviation of {} repetitions", metric.n),
    })
}

/// True for joules and milliampere hours that a meter measured.
fn is_measured(name: &str) -> bool {
    name.starts_with("energy_") && !name.contains("voltage") && !name.contains("idle_power")
}

/// The meter of a run, from its journal.
pub(crate) fn meter(events: &[Event]) -> Option<MeterChosen> {
    events.iter().rev().find_map(|event| match event {
        Event::MeterChosen(own) => Some((**own).clone()),
        _ => None,
    })
}

/// Text for an interval that the meter has widened.
const WIDENED: &str = ", widened by the meter's budget";

/// Two standard uncertainties cover 95 % (JCGM 100, 6.3.3).
const COVERAGE: f64 = 2.0;
