//! Random signals to `weigh` and its targets, at random moments of a run, and other harms: nothing
//! measured may be lost, no trial be counted twice, nothing be left behind. A second call
//! continues.

mod chance;
mod company;
mod episode;
mod group;
mod harm;
mod harms;
mod journals;
mod kind;
mod left;
mod place;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::kept::Kept;
use episode::{Episode, SIGNALS};
use kind::Kind;

/// Options of `cargo xtask chaos`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Signals in all, those of earlier calls included.
    #[arg(long, value_name = "N", default_value_t = 100)]
    kills: u64,
    /// Harms in all, those of earlier calls included: full disks, a read-only folder, no
    /// descriptors, no memory, a slow disk, a clock that is set back.
    #[arg(long, value_name = "N", default_value_t = 0)]
    harms: u64,
    /// The program; by default the debug build, which must be there.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Begin anew with this seed, which decides every signal and moment.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// Carries out one episode after the other; what each did is in target/chaos/episodes.jsonl.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let place = root.join("target/chaos");
    if options.seed.is_some() && place.exists() {
        std::fs::remove_dir_all(&place)?;
    }
    std::fs::create_dir_all(&place)?;
    let seed = options.seed.unwrap_or(1);
    let binary = options.binary.clone().unwrap_or_else(|| root.join("target/debug/weigh"));
    let binary = binary.canonicalize().with_context(|| format!("{}", binary.display()))?;
    let mut kept = Kept::open(&place.join("episodes.jsonl"), seed)?;
    while (kept.done.len() as u64) < options.kills {
        let number = kept.done.len() as u64;
        let episode = Episode::chosen(kept.seed, number);
        let folder = place.join(format!("episode-{number}"));
        let outcome = episode.carry_out(&binary, &folder)?;
        if outcome.faults.is_empty() {
            std::fs::remove_dir_all(&folder)?;
        }
        kept.note(json!({
            "seed": kept.seed, "number": number, "kind": episode.kind.name(),
            "victim": episode.victim(), "signal": episode.signal_name(),
            "after_ms": episode.after.as_millis() as u64, "finished_before": outcome.kept,
            "hit": outcome.was_hit, "faults": outcome.faults,
        }))?;
    }
    report(&kept.done)?;
    if options.harms > 0 {
        harms::run(root, &binary, options.harms, seed)?;
    }
    Ok(())
}

/// Prints the table for docs/benchmarks/endurance.md; fails if an episode had a fault.
fn report(done: &[Value]) -> anyhow::Result<()> {
    println!(
        "\n| kind | signal | episodes | hit | trials kept | faults |\n|---|---|---|---|---|---|"
    );
    let mut faults = 0;
    for kind in Kind::ALL {
        for (name, _) in SIGNALS {
            let is_own = |own: &&Value| own["kind"] == kind.name() && own["signal"] == name;
            let own: Vec<&Value> = done.iter().filter(is_own).collect();
            let sum = |key: &str| own.iter().filter_map(|one| one[key].as_u64()).sum::<u64>();
            let hits = own.iter().filter(|one| one["hit"] == true).count();
            let bad = own.iter().filter(|one| one["faults"] != json!([])).count();
            faults += bad;
            let (count, kept) = (own.len(), sum("finished_before"));
            println!("| {} | {name} | {count} | {hits} | {kept} | {bad} |", kind.name());
        }
    }
    ensure!(faults == 0, "{faults} episodes had faults; their folders are in target/chaos");
    Ok(())
}
