//! How far two runs of a study are apart, in the half widths of their own intervals: what
//! `weigh_study::occasions::BETWEEN_RUNS` was measured with.
//!
//! `cargo run -p weigh-study --example between_runs -- RUN RUN [RUN RUN ...]`
//!
//! Each pair is of one study; each RUN is the folder of a study's run, or a recording of one
//! (`*.json.gz`, as this repository's history has them: `git show ef69c04:crates/study/tests/...`).

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;
use weigh_stats::estimate::{Sample, t_quantile};
use weigh_study::StudyTexts;
use weigh_study::occasions::BETWEEN_RUNS;

fn main() -> io::Result<()> {
    let metrics = metrics_of_claims();
    let runs: Vec<String> = env::args().skip(1).collect();
    if runs.is_empty() || !runs.len().is_multiple_of(2) {
        return Err(io::Error::other("name pairs of runs of one study"));
    }
    let (mut of_claims, mut all) = (Vec::new(), Vec::new());
    for pair in runs.chunks(2) {
        let (left, right) = (cells(Path::new(&pair[0]))?, cells(Path::new(&pair[1]))?);
        for cell in &left {
            let is_same = |other: &&Cell| other.place == cell.place;
            let Some(other) = right.iter().find(is_same) else { continue };
            for (metric, values) in &cell.metrics {
                let same = other.metrics.iter().find(|(name, _)| name == metric);
                let Some(ratio) = same.and_then(|(_, others)| ratio(values, others)) else {
                    continue;
                };
                all.push(ratio);
                if metrics.contains(metric) {
                    of_claims.push(ratio);
                }
            }
        }
    }
    show("figures of metrics that claims rest on", of_claims);
    show("all figures", all);
    Ok(())
}

/// A valid cell with the values of its repetitions.
struct Cell {
    /// Its run and its point.
    place: String,
    metrics: Vec<(String, Vec<f64>)>,
}

fn cells(run: &Path) -> io::Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for (name, summary) in summaries(run)? {
        for cell in summary["cells"].as_array().into_iter().flatten() {
            if cell["valid"] != true {
                continue;
            }
            let metrics = cell["metrics"].as_object().into_iter().flatten();
            let metrics = metrics.filter_map(|(metric, of)| {
                let values = of["values"].as_array()?.iter().map(Value::as_f64);
                Some((metric.clone(), values.collect::<Option<Vec<f64>>>()?))
            });
            let place = format!("{name} {}", cell["point"]);
            cells.push(Cell { place, metrics: metrics.collect() });
        }
    }
    Ok(cells)
}

/// The results of a study's runs, each with its name.
fn summaries(run: &Path) -> io::Result<Vec<(String, Value)>> {
    let read = |text: &str| serde_json::from_str::<Value>(text).map_err(io::Error::other);
    if run.is_file() {
        let mut text = String::new();
        GzDecoder::new(File::open(run)?).read_to_string(&mut text)?;
        let runs = read(&text)?["runs"].take();
        let runs = runs.as_object().cloned().unwrap_or_default();
        return Ok(runs.into_iter().filter(|(_, summary)| summary.is_object()).collect());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(run)? {
        let path = entry?.path();
        if let Ok(text) = fs::read_to_string(path.join("summary.json")) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push((name, read(&text)?));
        }
    }
    Ok(found)
}

/// The distance of two means over the root sum of squares of their half widths; `None` where
/// nothing spreads, or for one repetition.
fn ratio(left: &[f64], right: &[f64]) -> Option<f64> {
    let (left, right) = (Sample::of(left)?, Sample::of(right)?);
    let half = |of: &Sample| t_quantile(of.n as f64 - 1.0) * of.variance_of_mean().sqrt();
    let together = half(&left).hypot(half(&right));
    let is_known = left.n > 1 && right.n > 1 && together > 0.0;
    is_known.then(|| (left.mean - right.mean).abs() / together)
}

/// The metrics that stand in the files of the studies built in.
fn metrics_of_claims() -> BTreeSet<String> {
    let mut metrics = BTreeSet::new();
    for texts in StudyTexts::built_in() {
        for key in ["metric = \"", "interference = \""] {
            let named = texts.study.split(key).skip(1).filter_map(|rest| rest.split('"').next());
            metrics.extend(named.map(str::to_owned));
        }
    }
    metrics
}

fn show(what: &str, mut ratios: Vec<f64>) {
    ratios.sort_by(f64::total_cmp);
    let quantile = |share: f64| {
        let at = (share * ratios.len() as f64) as usize;
        ratios.get(at.min(ratios.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    };
    let within = ratios.iter().filter(|ratio| **ratio <= BETWEEN_RUNS).count();
    println!(
        "{what}: {} in both; half of them within {:.2} half widths, 90 % {:.2}, 95 % {:.2}, 99 % \
         {:.2}; {:.1} % within {BETWEEN_RUNS}",
        ratios.len(),
        quantile(0.5),
        quantile(0.9),
        quantile(0.95),
        quantile(0.99),
        100.0 * within as f64 / ratios.len().max(1) as f64,
    );
}
