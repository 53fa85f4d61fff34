//! Fuzzes every target for as long as was asked for, and continues where it ended before.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Hours of fuzzing in all, those of earlier runs included; split evenly over the targets.
    #[arg(long, value_name = "H", default_value_t = 4.0)]
    hours: f64,
    /// Seconds for which a target runs before the next one does.
    #[arg(long, value_name = "S", default_value_t = 300)]
    slice: u64,
    /// Forget what earlier runs did; the corpus stays.
    #[arg(long)]
    again: bool,
}

/// Gives the target with the least time the next slice, until all have their share.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    ensure!(options.hours > 0.0 && options.slice > 0, "--hours and --slice are above 0");
    let kept = root.join("fuzz/corpus/seconds.json");
    let mut done: BTreeMap<String, u64> = match std::fs::read(&kept) {
        Ok(bytes) if !options.again => serde_json::from_slice(&bytes)
            .with_context(|| format!("{}: type --again", kept.display()))?,
        _ => BTreeMap::new(),
    };
    let targets = targets(root)?;
    let share = (options.hours * 3600.0 / targets.len() as f64).ceil() as u64;
    // The folder of the corpus is made by the first run.
    std::fs::create_dir_all(root.join("fuzz/corpus"))?;
    loop {
        let least = targets.iter().min_by_key(|name| done.get(*name).copied().unwrap_or(0));
        let target = least.context("fuzz has no targets")?;
        let before = done.get(target).copied().unwrap_or(0);
        if before >= share {
            break;
        }
        let seconds = options.slice.min(share - before);
        println!("{target}: {before} of {share} s done, {seconds} more");
        fuzz(root, target, seconds)?;
        done.insert(target.clone(), before + seconds);
        std::fs::write(&kept, serde_json::to_vec_pretty(&done)?)?;
    }
    let minutes: u64 = done.values().sum::<u64>() / 60;
    println!("{} targets, {minutes} minutes in all, nothing found", targets.len());
    Ok(())
}

fn targets(root: &Path) -> anyhow::Result<Vec<String>> {
    let out =
        Command::new("cargo").args(["+nightly", "fuzz", "list"]).current_dir(root).output()?;
    ensure!(
        out.status.success(),
        "cargo fuzz: rustup toolchain install nightly, and cargo install cargo-fuzz\n{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let targets: Vec<String> =
        String::from_utf8(out.stdout)?.lines().map(|line| line.trim().to_owned()).collect();
    ensure!(!targets.is_empty(), "fuzz has no targets");
    Ok(targets)
}

/// Runs one target; what it finds stays in its corpus, which is made small afterwards.
fn fuzz(root: &Path, target: &str, seconds: u64) -> anyhow::Result<()> {
    let corpus = format!("fuzz/corpus/{target}");
    std::fs::create_dir_all(root.join(&corpus))?;
    let mut command = Command::new("cargo");
    command.args(["+nightly", "fuzz", "run", target, &corpus]);
    command.arg(format!("fuzz/seeds/{target}")).arg("--").current_dir(root);
    command.arg(format!("-max_total_time={seconds}"));
    command.args(["-max_len=2048", "-rss_limit_mb=4096"]);
    let codec = target.split('_').next().unwrap_or(target);
    let dictionary = format!("fuzz/dictionaries/{codec}.dict");
    if root.join(&dictionary).exists() {
        command.arg(format!("-dict={dictionary}"));
    }
    let status = command.status()?;
    ensure!(status.success(), "{target} found something: see fuzz/artifacts/{target}");
    let mut smaller = Command::new("cargo");
    smaller.args(["+nightly", "fuzz", "cmin", target, &corpus]).current_dir(root);
    ensure!(smaller.status()?.success(), "the corpus of {target} could not be made small");
    Ok(())
}
