//! Cells for an answer: those of files and runs that the user names, else those of the cache and
//! the shipped ones.

use std::path::Path;

use weigh_advice::cells::{Cells, Machine};
use weigh_report::RunFolder;
use weigh_report::summary::Summary;
use weigh_runner::advice::calibration;
use weigh_runner::advice::observed;
use weigh_runner::advice::shipped;
use weigh_runner::exit::Stop;
use weigh_runner::input_file::{self, CONTENT_BYTES_MAX};

use crate::help;

/// Cells of these files and runs: `weigh/cells/1`, `summary.json`, the folder or id of a run below
/// `runs`. Without any: cells of the cache, and the shipped ones for loads beyond them.
///
/// # Errors
/// What cannot be read, or has no cells.
pub fn gather(named: &[String], runs: &Path, here: &Machine) -> Result<Vec<Cells>, Stop> {
    if !named.is_empty() {
        return named.iter().map(|name| one(name, runs)).collect();
    }
    let cached = calibration::cached(here, help::VERSION)?;
    let shipped = shipped::cells().map_err(Stop::usage)?;
    Ok(cached.into_iter().chain(shipped).collect())
}

fn one(name: &str, runs: &Path) -> Result<Cells, Stop> {
    let path = Path::new(name);
    let file = match path.is_file() {
        true => path.to_owned(),
        false => {
            let folder = RunFolder::find(runs, name).map_err(Stop::usage)?;
            folder.path().join("summary.json")
        }
    };
    let shown = file.display().to_string();
    let text = input_file::text(&file, CONTENT_BYTES_MAX).map_err(|error| {
        Stop::usage(format!("--cells {shown}: cannot be read: {error}\nhelp: check the path"))
    })?;
    let is_summary = text.contains("\"weigh/summary/1\"");
    if !is_summary {
        return Cells::read(&shown, &text).map_err(Stop::usage);
    }
    let summary: Summary = serde_json::from_str(&text)
        .map_err(|error| Stop::usage(format!("--cells {shown}: not a summary: {error}")))?;
    let (cells, left_out) = observed::cells(&summary, &format!("run {}", summary.run.id));
    for why in left_out {
        eprintln!("weigh: {shown}: left out: {why}");
    }
    match cells.cells.is_empty() {
        true => Err(Stop::usage(format!("--cells {shown}: no cell of it can stand for a cost"))),
        false => Ok(cells),
    }
}
