//! The devhub: one line for every run of the benchmark, so that a slow-down is seen over the
//! months by `weigh stats`, which knows whether two samples differ.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};
use weigh_report::journal::rfc3339;

use super::process;
use super::table::Row;

/// What a run of the benchmark adds to the history.
pub(crate) struct Entry {
    at: String,
    load_average: f64,
    jobs: Map<String, Value>,
}

impl Entry {
    /// An entry of a run that begins now.
    pub(crate) fn begin() -> Entry {
        let at = rfc3339(SystemTime::now());
        Entry { at, load_average: process::load_average(), jobs: Map::new() }
    }

    /// Adds the rows of a job: for every tool what it did per CPU-second, and how many times what
    /// the floor did, round by round; null for rounds that may not be used.
    pub(crate) fn add(&mut self, job: &str, rows: &[Row]) {
        let floor = rows.iter().find(|row| row.tool == FLOOR).map(Row::costs);
        let mut tools = Map::new();
        for row in rows {
            let costs = row.costs();
            let ratios = floor.as_ref().map(|floor| over(&costs, floor));
            tools.insert(row.tool.clone(), json!({ "per_cpu_s": costs, "over_floor": ratios }));
        }
        self.jobs.insert(job.to_owned(), Value::Object(tools));
    }

    /// Appends it as one line, unless nothing was weighed. Returns the file.
    pub(crate) fn append(self, root: &Path) -> anyhow::Result<PathBuf> {
        let path = path(root);
        if self.jobs.is_empty() {
            return Ok(path);
        }
        let git = |arguments: &[&str]| {
            let output = Command::new("git").args(arguments).current_dir(root).output();
            let text = output.map(|output| output.stdout).unwrap_or_default();
            String::from_utf8_lossy(&text).trim().to_owned()
        };
        let host = weigh_observe::host::facts();
        let line = json!({
            "schema": SCHEMA,
            "at": self.at,
            "commit": git(&["rev-parse", "--short=12", "HEAD"]),
            "changed": !git(&["status", "--porcelain", "--untracked-files=no"]).is_empty(),
            "cpu": host.cpu,
            "kernel": host.kernel,
            "load_average": [self.load_average, process::load_average()],
            "jobs": self.jobs,
        });
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        writeln!(file, "{line}").with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }
}

fn over(costs: &[Option<f64>], floor: &[Option<f64>]) -> Vec<Option<f64>> {
    let pairs = costs.iter().zip(floor);
    pairs.map(|(cost, floor)| Some((*cost)? / (*floor)?)).collect()
}

/// The figures of `weigh` in a job over all runs that weighed it, as `weigh stats` reads them: a
/// group for each run, and its rounds.
pub(crate) fn told(root: &Path, job: &str, last: usize) -> anyhow::Result<String> {
    let path = path(root);
    let text = fs::read_to_string(&path)
        .with_context(|| format!("{}: run cargo xtask bench first", path.display()))?;
    groups(&text, job, last)
}

fn groups(text: &str, job: &str, last: usize) -> anyhow::Result<String> {
    let mut runs: Vec<Value> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let run: Value = serde_json::from_str(line)
            .with_context(|| format!("line {} of the history is no JSON", number + 1))?;
        if run["jobs"][job]["weigh"].is_object() {
            runs.push(run);
        }
    }
    ensure!(!runs.is_empty(), "no run of the history has figures of the job {job}");
    let runs = &runs[runs.len().saturating_sub(last)..];
    // The ratio to the floor bears a change of the machine; but all groups must have it.
    let has_floor = |run: &Value| run["jobs"][job]["weigh"]["over_floor"].is_array();
    let figure = if runs.iter().all(has_floor) { "over_floor" } else { "per_cpu_s" };
    let mut out = format!("group,{job} {figure}\n");
    for run in runs {
        let at = run["at"].as_str().unwrap_or_default();
        let commit = run["commit"].as_str().unwrap_or_default();
        let figures = run["jobs"][job]["weigh"][figure].as_array();
        for figure in figures.into_iter().flatten().filter_map(Value::as_f64) {
            let _ = writeln!(out, "{at} {commit},{figure}");
        }
    }
    Ok(out)
}

fn path(root: &Path) -> PathBuf {
    root.join("bench-results/history.jsonl")
}

const SCHEMA: &str = "weigh/bench/1";
const FLOOR: &str = "floor";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_to_the_floor_keep_their_rounds() {
        let costs = [Some(3.0), None, Some(5.0)];
        assert_eq!(over(&costs, &[Some(2.0), Some(2.0), None]), [Some(1.5), None, None]);
    }

    #[test]
    fn runs_become_groups_of_a_file_of_numbers() {
        let line = |commit: &str, figures: &str| {
            format!(
                "{{\"at\":\"2026-01-02T03:04:05Z\",\"commit\":\"{commit}\",\"jobs\":{{\"http-64\":\
                 {{\"weigh\":{{\"per_cpu_s\":[9.0],\"over_floor\":{figures}}}}}}}}}"
            )
        };
        let text = [line("a", "[1.0]"), line("b", "[1.5,null,1.25]"), line("c", "null")].join("\n");
        assert_eq!(
            groups(&text, "http-64", 2).unwrap(),
            "group,http-64 per_cpu_s\n2026-01-02T03:04:05Z b,9\n2026-01-02T03:04:05Z c,9\n"
        );
        let with_floor = text.lines().take(2).collect::<Vec<_>>().join("\n");
        assert_eq!(
            groups(&with_floor, "http-64", 1).unwrap(),
            "group,http-64 over_floor\n2026-01-02T03:04:05Z b,1.5\n2026-01-02T03:04:05Z b,1.25\n"
        );
        assert!(groups(&text, "mqtt-1", 2).is_err());
    }
}
