//! Chores of the project: the data set, the benchmark against other tools, the checks.

mod aa;
mod backtest;
mod bench;
mod chaos;
mod ci;
mod cross;
mod dataset;
mod dist;
mod fleet_cost;
mod fuzz;
mod guarded;
mod journal;
mod kept;
mod outputs;
mod recording;
mod soak;
mod watchers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of Weighbridge. Run from anywhere in the repository: `cargo xtask COMMAND`.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Generate data/hydroponics.jsonl, the readings that messages are made of by default.
    Dataset,
    /// Weigh the generator against wrk, h2load, mosquitto_pub and the floor, side by side.
    Bench(bench::Options),
    /// Compare runs of the same lane with each other and count false verdicts.
    Aa(aa::Options),
    /// Back-test `weigh advise`: draw, freeze, measure and score thirty situations.
    Backtest(backtest::Options),
    /// What the journal of a run cost, against the generator's processor time.
    Journal(journal::Options),
    /// What a fleet costs its coordinator and its bus, at several numbers of agents.
    FleetCost(fleet_cost::Options),
    /// Build one static binary for Raspberry Pi boards, and try it in an emulator.
    Cross(cross::Options),
    /// Send random signals to weigh and its targets, and check what is kept and left behind.
    Chaos(chaos::Options),
    /// Load three protocols for hours: flat memory, exact ledgers, bounded journals.
    Soak(soak::Options),
    /// Fuzz every target for some hours in all; a second call continues.
    Fuzz(fuzz::Options),
    /// Build and package what a release consists of: archive, Debian package, container image.
    Dist(dist::Options),
    /// Write the outputs that README.md and the guide show: run it on a quiet machine.
    Outputs(outputs::Options),
    /// Record the live view in a terminal as the picture of the README.
    Recording(recording::Options),
    /// Run what .ci/run runs, without installing anything.
    Ci(ci::Options),
}

fn main() -> ExitCode {
    let root = root();
    let done = match Arguments::parse().chore {
        Chore::Dataset => dataset::write(&root),
        Chore::Bench(options) => bench::run(&root, &options),
        Chore::Aa(options) => aa::run(&root, &options),
        Chore::Backtest(options) => backtest::run(&root, &options),
        Chore::Journal(options) => journal::run(&options),
        Chore::FleetCost(options) => fleet_cost::run(&root, &options),
        Chore::Cross(options) => cross::run(&root, &options),
        Chore::Dist(options) => dist::run(&root, &options),
        Chore::Chaos(options) => chaos::run(&root, &options),
        Chore::Soak(options) => soak::run(&root, &options),
        Chore::Fuzz(options) => fuzz::run(&root, &options),
        Chore::Outputs(options) => outputs::run(&root, &options),
        Chore::Recording(options) => recording::run(&root, &options),
        Chore::Ci(options) => ci::run(&root, &options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The repository: the parent of this package's folder, as cargo tells it when it runs us.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| ".".into(), PathBuf::from);
    package.parent().map_or_else(|| ".".into(), Path::to_path_buf)
}
