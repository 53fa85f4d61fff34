//! The back-test of `weigh advise`: thirty situations, predictions that were committed before the
//! first measurement, the measurements, and the scores. A second call continues where the first one
//! ended.
//!
//! `--draw` writes the situations from the committed seed, `--freeze` the predictions and their
//! hashes. Both refuse to replace what is there, because what was predicted must not change
//! afterwards.

mod draw;
mod freeze;
mod measure;
mod score;

use std::path::{Path, PathBuf};

use anyhow::Context;

pub(crate) use freeze::check;

/// Options of `cargo xtask backtest`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write the situations.
    #[arg(long)]
    draw: bool,
    /// Write the predictions and their hashes.
    #[arg(long)]
    freeze: bool,
    /// Score what was measured so far, and measure nothing.
    #[arg(long)]
    score: bool,
    /// Folder of situations, predictions and measurements.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The program.
    #[arg(long, value_name = "FILE", default_value = "target/release/weigh")]
    weigh: PathBuf,
    /// Start no further situation after this number of minutes.
    #[arg(long, value_name = "N", default_value_t = 90)]
    minutes: u64,
}

/// Draws, freezes, or measures and scores.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let folder = options.folder.clone().unwrap_or_else(|| root.join(FOLDER));
    let weigh = std::path::absolute(&options.weigh)?;
    if options.draw {
        return draw::draw(&folder, &weigh);
    }
    if options.freeze {
        return freeze::freeze(&folder, &weigh);
    }
    let frozen = check(&folder).context("the predictions are not those that were frozen")?;
    if !options.score {
        measure::all(&folder, &weigh, &frozen, options.minutes)?;
    }
    let found = score::of(&folder, &frozen)?;
    println!("{}", score::table(&found));
    Ok(())
}

/// Where the back-test is.
pub(crate) const FOLDER: &str = "advice/backtest";
