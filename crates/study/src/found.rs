//! A cell of a run: its figures, and warnings that forbid to use them.

use weigh_model::trial::Point;
use weigh_model::warnings::WarningRecord;
use weigh_report::summary::Cell;

use crate::openings;
use crate::outcome::Link;
use crate::runs::RunMade;

/// A cell, all that is known of where it stands, and its run.
pub(crate) struct Found<'r> {
    pub(crate) run: &'r str,
    pub(crate) made: &'r RunMade,
    pub(crate) cell: &'r Cell,
    pub(crate) point: Point,
    /// Whether its figures are taken even where the generator was the limit.
    pub(crate) even_limited: bool,
}

impl Found<'_> {
    /// Why its figures must not decide anything.
    pub(crate) fn openings(&self, repetitions: usize) -> Vec<String> {
        let place = format!("{}, {}", self.run, self.cell.name);
        openings::of_cell(&place, self.cell, repetitions, self.even_limited)
    }

    pub(crate) fn link(&self) -> Link {
        Link {
            run: self.run.to_owned(),
            folder: self.made.folder.clone(),
            cell: self.cell.name.clone(),
            trials: self.made.trials.get(&self.cell.name).cloned().unwrap_or_default(),
        }
    }

    /// The warning because of which this figure must not be used.
    fn invalidated_by(&self, figure: &str) -> Option<&WarningRecord> {
        let is_allowed = |warning: &WarningRecord| self.even_limited && warning.code == LIMITED;
        let invalidates = |warning: &&WarningRecord| self.cell.is_invalidated_by(warning, figure);
        self.cell.warnings.iter().filter(invalidates).find(|warning| !is_allowed(warning))
    }

    /// That the generator was its limit, where it is taken nevertheless.
    pub(crate) fn limited(&self) -> Option<String> {
        let warning = self.cell.warnings.iter().find(|warning| warning.code == LIMITED);
        warning.filter(|_| self.even_limited).map(|warning| warning.text.clone())
    }

    /// The values of its repetitions.
    pub(crate) fn values(&self, metric: &str) -> Result<Vec<f64>, String> {
        let place = format!("{}, {}", self.run, self.cell.name);
        if let Some(warning) = self.invalidated_by(metric) {
            return Err(format!("{place} is not valid: {}", warning.text));
        }
        let Some(found) = self.cell.metrics.get(metric) else {
            return Err(format!("{place}: {metric} was not measured"));
        };
        let values: Option<Vec<f64>> = found.values.iter().copied().collect();
        values.ok_or_else(|| format!("{place}: {metric} falls into the lost share"))
    }

    /// A count of its ledger.
    pub(crate) fn counted(&self, name: &str) -> Result<f64, String> {
        let place = format!("{}, {}", self.run, self.cell.name);
        if let Some(warning) = self.invalidated_by(name) {
            return Err(format!("{place} is not valid: {}", warning.text));
        }
        let ledger = serde_json::to_value(&self.cell.ledger).unwrap_or_default();
        match name.split_once('.') {
            // A cause that is not there had no message.
            Some((kind, cause)) => Ok(ledger[kind][cause].as_f64().unwrap_or(0.0)),
            None => ledger[name].as_f64().ok_or_else(|| format!("{place}: {name} is unknown")),
        }
    }

    pub(crate) fn too_few(&self, metric: &str) -> String {
        let place = format!("{}, {}", self.run, self.cell.name);
        format!("{place}: one repetition of {metric} has no interval: repeat it, --scale full")
    }
}

/// The warning about a result that the generator limited.
const LIMITED: &str = "generator-limited";
