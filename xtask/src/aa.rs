//! Equals against equals: pairs of runs of the same lane, their trials interleaved, each compared
//! as `weigh diff` compares two runs. Whatever is called different is a false verdict.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use weigh_model::event::Event;
use weigh_report::RunFolder;
use weigh_report::diff::{Asked, Diff, Side};
use weigh_report::summary::Verdict;
use weigh_stats::comparison::aa_limit;
use weigh_stats::share::share_interval;

use crate::watchers::Watchers;

/// Options of `cargo xtask aa`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Pairs of runs.
    #[arg(long, default_value_t = 40)]
    pairs: u32,
    /// Repetitions of each run.
    #[arg(long, default_value_t = 5)]
    reps: u32,
    /// What is weighed, against itself.
    #[arg(long, default_value = "tcp")]
    lane: String,
    /// Further arguments of `weigh compare`, separated by blanks.
    #[arg(long, default_value = "-c 4 -d 200ms --warmup 100ms", allow_hyphen_values = true)]
    load: String,
    /// The program [default: target/release/weigh].
    #[arg(long)]
    weigh: Option<PathBuf>,
    /// All repetitions of A, then all of B, as two runs are that a user compares; otherwise
    /// A B B A A B ...
    #[arg(long)]
    back_to_back: bool,
    /// Watch every trial of B in a terminal, by a client of the page and by a scraper at once.
    #[arg(long)]
    watched: bool,
}

/// Runs the pairs and prints how many of them were called different.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let weigh = options.weigh.clone().unwrap_or_else(|| root.join("target/release/weigh"));
    ensure!(
        weigh.is_file(),
        "{} is not there: run `cargo build --release`, or name one with --weigh",
        weigh.display()
    );
    let folder = std::env::temp_dir().join(format!("weigh-aa-{}", std::process::id()));
    let mut counted = BTreeMap::new();
    for pair in 0..options.pairs {
        let weighed = weigh_pair(&weigh, &folder, pair, options);
        // What a trial leaves behind is of no use any more, whether or not it went well.
        let _ = std::fs::remove_dir_all(&folder);
        count(&weighed?, &mut counted);
        eprintln!("pair {} of {}", pair + 1, options.pairs);
    }
    print(&counted, options);
    Ok(())
}

/// What became of a metric over all pairs.
#[derive(Default)]
struct Counted {
    different: u64,
    refused: u64,
    pairs: u64,
    ratios: Vec<f64>,
}

fn weigh_pair(weigh: &Path, folder: &Path, pair: u32, options: &Options) -> anyhow::Result<Diff> {
    let mut sides = [Vec::new(), Vec::new()];
    for (side, repetition) in order(options) {
        let seed = pair * options.reps + repetition + 1;
        let is_watched = options.watched && side == 1;
        let runs = folder.join(format!("{side}-{repetition}"));
        let events = trial(weigh, &runs, (seed, is_watched), options)?;
        append(&mut sides[side], events, repetition);
    }
    let [a, b] = sides.map(|events| Side::from_events(&events));
    Diff::of(&a?, &b?, &Asked::default()).map_err(anyhow::Error::msg)
}

/// Which side is weighed when: 0 for A, 1 for B.
fn order(options: &Options) -> Vec<(usize, u32)> {
    if options.back_to_back {
        return (0..2).flat_map(|side| (0..options.reps).map(move |r| (side, r))).collect();
    }
    let both = |repetition: u32| {
        let first = (repetition % 2) as usize;
        [(first, repetition), (1 - first, repetition)]
    };
    (0..options.reps).flat_map(both).collect()
}

fn trial(
    weigh: &Path,
    runs: &Path,
    (seed, is_watched): (u32, bool),
    options: &Options,
) -> anyhow::Result<Vec<Event>> {
    let mut running = Command::new(weigh)
        .args(["compare", &options.lane, "--reps", "1", "--quiet"])
        .args(["--seed", &seed.to_string()])
        .args(options.load.split_whitespace())
        .arg("--runs")
        .arg(runs)
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {}", weigh.display()))?;
    let watchers = is_watched.then(|| Watchers::start(weigh, runs)).transpose();
    let status = running.wait()?;
    if let Some(watchers) = watchers? {
        ensure!(watchers.end()? > 0, "the watchers read nothing");
    }
    ensure!(status.success(), "weigh compare ended with {status}");
    let folders = RunFolder::all_below(runs)?;
    let Some(folder) = folders.first() else { bail!("no run below {}", runs.display()) };
    Ok(folder.read_journal()?.events)
}

/// Puts one run of one repetition to the others, as if all were of one run.
fn append(side: &mut Vec<Event>, events: Vec<Event>, repetition: u32) {
    for event in events {
        match event {
            Event::RunStarted(_) if side.is_empty() => side.push(event),
            Event::TrialFinished(mut trial) => {
                trial.trial = format!("{}-{repetition}", trial.trial);
                trial.repetition = repetition;
                side.push(Event::TrialFinished(trial));
            }
            _ => {}
        }
    }
}

fn count(diff: &Diff, counted: &mut BTreeMap<String, Counted>) {
    for row in &diff.rows {
        let of_metric = counted.entry(format!("{} {}", row.cell, row.metric)).or_default();
        of_metric.pairs += 1;
        of_metric.different += u64::from(matches!(row.verdict, Verdict::Higher | Verdict::Lower));
        of_metric.refused += u64::from(row.verdict == Verdict::Refused);
        of_metric.ratios.extend(row.ratio.map(|ratio| ratio.value));
    }
}

fn print(counted: &BTreeMap<String, Counted>, options: &Options) {
    let order = if options.back_to_back { "back to back" } else { "interleaved" };
    println!(
        "{} pairs of {} repetitions, {order}: {} {}",
        options.pairs, options.reps, options.lane, options.load
    );
    let mut all = Counted::default();
    for (name, of_metric) in counted {
        println!("  {}", line(name, of_metric));
        all.different += of_metric.different;
        all.refused += of_metric.refused;
        all.pairs += of_metric.pairs;
    }
    println!("  {}", line("all (metrics of a pair hang together)", &all));
}

/// How many of the pairs with a verdict were called different, with the exact interval, and the
/// distance from 1 that 95 in 100 ratios do not exceed.
fn line(name: &str, counted: &Counted) -> String {
    let judged = counted.pairs - counted.refused;
    let (low, high) = share_interval(counted.different, judged);
    let limit = aa_limit(&counted.ratios)
        .map_or(String::new(), |limit| format!("; A/A limit {:.1} %", limit * 100.0));
    format!(
        "{name}: {} of {judged} called different ({:.1} %, 95 % interval {:.1} to {:.1} %), {} \
         refused{limit}",
        counted.different,
        100.0 * counted.different as f64 / judged.max(1) as f64,
        100.0 * low,
        100.0 * high,
        counted.refused
    )
}
