//! The repetitions of all cells as tidy CSV (RFC 4180): one row per repetition with a column for
//! every metric, or one row per repetition and metric.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde_json::Value;
use weigh_model::event::{Event, TrialFinished};
use weigh_model::metrics::unit_of;
use weigh_model::warnings::Severity;

use super::cells::{LEDGER, text};
use super::csv_error::csv_into_io;
use crate::summary::energy::Energies;
use crate::summary::trials::trials_by_cell;
use crate::summary::{Cell, Summary};

/// Writes a row for each repetition that has a result: cell, repetition (from 0, as in the
/// journal), trial, point, path, ledger and metrics. What was not measured is empty; a quantile
/// among the lost messages is `Inf`.
///
/// # Errors
/// If `out` cannot be written.
pub fn wide(out: impl io::Write, summary: &Summary, events: &[Event]) -> io::Result<()> {
    let mut rows = csv::Writer::from_writer(out);
    let all = repetitions(summary, events);
    let metrics: BTreeSet<&str> = all.iter().flat_map(|own| own.metrics.keys().copied()).collect();
    let columns = Columns::of(summary);
    let mut heading = columns.heading();
    heading.extend(LEDGER.map(|term| format!("ledger.{term}")));
    heading.extend(metrics.iter().map(|name| (*name).to_owned()));
    rows.write_record(&heading).map_err(csv_into_io)?;
    for own in &all {
        let mut row = columns.row(own);
        let ledger = serde_json::to_value(&own.trial.ledger).unwrap_or_default();
        row.extend(LEDGER.map(|term| text(&ledger[term])));
        let figure = |name: &&str| own.metrics.get(name).map_or_else(String::new, |v| number(*v));
        row.extend(metrics.iter().map(figure));
        rows.write_record(&row).map_err(csv_into_io)?;
    }
    rows.flush()
}

/// Writes a row for each repetition and metric, with the metric's name, unit and value.
///
/// # Errors
/// If `out` cannot be written.
pub fn long(out: impl io::Write, summary: &Summary, events: &[Event]) -> io::Result<()> {
    let mut rows = csv::Writer::from_writer(out);
    let columns = Columns::of(summary);
    let mut heading = columns.heading();
    heading.extend(["metric", "unit", "value"].map(str::to_owned));
    rows.write_record(&heading).map_err(csv_into_io)?;
    for own in repetitions(summary, events) {
        let shared = columns.row(&own);
        for (name, value) in &own.metrics {
            let mut row = shared.clone();
            row.extend([(*name).to_owned(), unit_of(name).to_owned(), number(*value)]);
            rows.write_record(&row).map_err(csv_into_io)?;
        }
    }
    rows.flush()
}

/// One repetition of a cell.
struct Repetition<'r> {
    cell: &'r Cell,
    trial: &'r TrialFinished,
    metrics: BTreeMap<&'r str, f64>,
}

/// All repetitions, cell by cell. The metrics are those of which the summary has the mean.
fn repetitions<'r>(summary: &'r Summary, events: &'r [Event]) -> Vec<Repetition<'r>> {
    let energies = Energies::of(events);
    let mut all = Vec::new();
    for (cell, trials) in summary.cells.iter().zip(trials_by_cell(summary, events)) {
        for trial in trials {
            let value = |(name, _): (&'r String, _)| {
                let own = trial.metrics.get(name).copied();
                let energy = || energies.figures(trial).find(|(known, _)| *known == name);
                let value = own.or_else(|| energy().map(|(_, value)| *value))?;
                Some((name.as_str(), value))
            };
            let metrics = cell.metrics.iter().filter_map(value).collect();
            all.push(Repetition { cell, trial, metrics });
        }
    }
    all
}

/// The columns that name a row.
struct Columns<'r> {
    keys: BTreeSet<&'r String>,
    scenes: BTreeSet<&'r String>,
}

impl<'r> Columns<'r> {
    fn of(summary: &'r Summary) -> Columns<'r> {
        Columns {
            keys: summary.cells.iter().flat_map(|cell| cell.point.keys()).collect(),
            scenes: summary.cells.iter().flat_map(|cell| cell.scene.keys()).collect(),
        }
    }

    fn heading(&self) -> Vec<String> {
        let mut heading = FIXED.map(str::to_owned).to_vec();
        heading.extend(self.keys.iter().map(|key| format!("point.{key}")));
        heading.extend(self.scenes.iter().map(|key| format!("scene.{key}")));
        heading
    }

    fn row(&self, own: &Repetition<'_>) -> Vec<String> {
        let Repetition { cell, trial, .. } = own;
        let warnings: BTreeSet<&str> = trial.warnings.iter().map(|own| own.code.as_str()).collect();
        let is_invalid = trial.warnings.iter().any(|own| own.severity == Severity::Invalid);
        let mut row = vec![
            cell.name.clone(),
            trial.repetition.to_string(),
            trial.trial.clone(),
            trial.guarantee.to_string(),
            trial.target.clone(),
            trial.seed.to_string(),
            (cell.valid && !is_invalid).to_string(),
            warnings.into_iter().collect::<Vec<_>>().join(" "),
            trial.durability.map_or_else(String::new, |own| own.to_string()),
        ];
        let of_point = |key: &&String| trial.point.get(*key).map_or_else(String::new, text);
        row.extend(self.keys.iter().map(of_point));
        row.extend(
            self.scenes.iter().map(|key| trial.scene.get(*key).cloned().unwrap_or_default()),
        );
        row
    }
}

/// At most twelve significant digits: more than any instrument has, and no tail such as
/// `0.30000000000000004`. Infinity as R and pandas read it.
fn number(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let rounded: f64 = format!("{value:.11e}").parse().unwrap_or(value);
    text(&Value::from(rounded)).trim_end_matches(".0").to_owned()
}

const FIXED: [&str; 9] = [
    "cell",
    "repetition",
    "trial",
    "guarantee",
    "target",
    "seed",
    "valid",
    "warnings",
    "durability",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_twelve_digits() {
        for (value, text) in [
            (0.1 + 0.2, "0.3"),
            (200_000.0, "200000"),
            (1_234_567.891_234_5, "1234567.89123"),
            (-2.5, "-2.5"),
            (0.0, "0"),
            (1e-9, "1e-9"),
            (f64::INFINITY, "Inf"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
