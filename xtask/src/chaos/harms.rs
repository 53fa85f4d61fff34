//! Harms one after the other; a second call continues.

use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::harm::{COMPARE, Harm, Harmed};
use super::journals::below;
use super::place::Place;
use crate::kept::Kept;

/// Carries out harms until there are `count`; what each did is in target/chaos/harms.jsonl.
pub(super) fn run(root: &Path, binary: &Path, count: u64, seed: u64) -> anyhow::Result<()> {
    let folder = root.join("target/chaos");
    let mut kept = Kept::open(&folder.join("harms.jsonl"), seed)?;
    let journal_bytes = match kept.done.iter().find_map(|own| own["journal_bytes"].as_u64()) {
        Some(known) => known,
        None => journal_bytes(binary, &folder.join("whole"))?,
    };
    while (kept.done.len() as u64) < count {
        let number = kept.done.len() as u64;
        let harmed = Harmed::chosen(kept.seed, number, journal_bytes);
        let place = folder.join(format!("harm-{number}"));
        let outcome = harmed.carry_out(binary, &place)?;
        if outcome.faults.is_empty() && place.exists() {
            std::fs::remove_dir_all(&place)?;
        }
        kept.note(json!({
            "seed": kept.seed, "number": number, "journal_bytes": journal_bytes,
            "harm": harmed.harm.name(), "limit": harmed.limit, "code": outcome.code,
            "finished_before": outcome.kept, "skipped": outcome.skipped,
            "faults": outcome.faults,
        }))?;
    }
    report(&kept.done)
}

/// Bytes of the journal of a comparison without a harm.
fn journal_bytes(binary: &Path, folder: &Path) -> anyhow::Result<u64> {
    let place = Place::empty(binary, folder, format!("whole-{}", std::process::id()))?;
    let status = place.weigh(&COMPARE).status()?;
    ensure!(status.success(), "a comparison without a harm ended with {status}");
    let journal = below(&folder.join("runs"), "journal.jsonl").pop().context("no journal")?;
    let bytes = std::fs::metadata(journal)?.len();
    std::fs::remove_dir_all(folder)?;
    Ok(bytes)
}

/// Prints the table for docs/benchmarks/endurance.md; fails if a harm had a fault.
fn report(done: &[Value]) -> anyhow::Result<()> {
    println!("\n| harm | tried | skipped | ended with | trials kept | faults |");
    println!("|---|---|---|---|---|---|");
    let mut faults = 0;
    for harm in Harm::ALL {
        let own: Vec<&Value> = done.iter().filter(|own| own["harm"] == harm.name()).collect();
        let skipped = own.iter().filter(|one| !one["skipped"].is_null()).count();
        let kept: u64 = own.iter().filter_map(|one| one["finished_before"].as_u64()).sum();
        let bad = own.iter().filter(|one| one["faults"] != json!([])).count();
        let mut codes: Vec<String> = own.iter().map(|one| one["code"].to_string()).collect();
        codes.sort();
        codes.dedup();
        faults += bad;
        let (tried, codes) = (own.len() - skipped, codes.join(", "));
        println!("| {} | {tried} | {skipped} | {codes} | {kept} | {bad} |", harm.name());
    }
    ensure!(faults == 0, "{faults} harms had faults; their folders are in target/chaos");
    Ok(())
}
