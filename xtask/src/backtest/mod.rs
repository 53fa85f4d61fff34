//! The back-test of `weigh advise`: thirty situations, predictions that were committed before the
//! first measurement, the measurements, and the scores. A second call continues where the first one
//! ended.
//!
//! `--draw` writes the situations from the committed seed, `--freeze` the predictions and their
//! hashes. Both refuse to replace what is there, because what was predicted must not change
//! afterwards. Both use the cells of the folder, which a calibration made.

mod advisers;
mod cells;
mod draw;
mod figure;
mod freeze;
mod measure;
mod outcome;
mod score;
mod situations;
mod table;
mod tree;

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
    /// Folder of situations, cells, predictions and measurements.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The program.
    #[arg(long, value_name = "FILE", default_value = "target/release/weigh")]
    weigh: PathBuf,
    /// Start no measurement that would end later than this number of minutes from now.
    #[arg(long, value_name = "N", default_value_t = 60.0)]
    minutes: f64,
    /// Measure only these situations, such as 01,14.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    only: Vec<String>,
    /// Repetitions of each option in one round.
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=20))]
    repetitions: u32,
    /// Rounds of a situation, at most; the next round is for situations that are not precise.
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=20))]
    rounds: u64,
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
        let budget = measure::Budget {
            minutes: options.minutes,
            only: options.only.clone(),
            repetitions: options.repetitions,
            rounds: options.rounds,
        };
        measure::all(&folder, &weigh, &frozen, &budget)?;
    }
    let tree = tree::Tree::of(&cells::cells(&folder)?);
    let found = outcome::of(&folder, &frozen)?;
    println!("{}", table::table(&found, &tree));
    println!("{}", table::by_situation(&found));
    Ok(())
}

/// Where the back-test is.
pub(crate) const FOLDER: &str = "advice/backtest";
