//! Fuzzes every target for as long as was asked for, and continues where it ended before. Each
//! slice is a line in fuzz/corpus/slices.jsonl.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::kept::Kept;

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Hours of fuzzing in all, those of earlier runs included; split evenly over the targets.
    #[arg(long, value_name = "H", default_value_t = 4.0)]
    hours: f64,
    /// Seconds for which a target runs before the next one does.
    #[arg(long, value_name = "S", default_value_t = 300)]
    slice: u64,
    /// Only targets whose name contains this; each gets the share that it has among all.
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
    /// Forget what earlier runs did; the corpus stays.
    #[arg(long)]
    again: bool,
}

/// Gives the target with the least time the next slice, until all have their share. A target that
/// finds something gets no further slice in this call; the others do.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    ensure!(options.hours > 0.0 && options.slice > 0, "--hours and --slice are above 0");
    // The folder of the corpus is made by the first run.
    std::fs::create_dir_all(root.join("fuzz/corpus"))?;
    let path = root.join("fuzz/corpus/slices.jsonl");
    if options.again && path.exists() {
        std::fs::remove_file(&path)?;
    }
    let mut kept = Kept::open(&path, 1)?;
    let all = targets(root)?;
    let share = (options.hours * 3600.0 / all.len() as f64).ceil() as u64;
    let word = options.only.as_deref().unwrap_or_default();
    let chosen: Vec<&String> = all.iter().filter(|name| name.contains(word)).collect();
    ensure!(!chosen.is_empty(), "no target has {word:?} in its name");
    build(root)?;
    let mut found = BTreeSet::new();
    loop {
        let left = chosen.iter().filter(|name| !found.contains(**name));
        let Some(target) = left.min_by_key(|name| seconds(&kept.done, name)) else { break };
        let before = seconds(&kept.done, target);
        if before >= share {
            break;
        }
        let length = options.slice.min(share - before);
        println!("{target}: {before} of {share} s done, {length} more");
        let slice = fuzz(root, target, length)?;
        if !slice["finding"].is_null() {
            found.insert((*target).clone());
        }
        kept.note(slice)?;
    }
    report(&kept.done, &all);
    ensure!(found.is_empty(), "found something: {found:?}; see fuzz/artifacts");
    Ok(())
}

/// Seconds that a target has had.
fn seconds(done: &[Value], target: &str) -> u64 {
    let own = done.iter().filter(|own| own["target"] == target);
    own.filter_map(|own| own["seconds"].as_u64()).sum()
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

/// Compiles all targets, so that no compiler's time counts as that of a target.
fn build(root: &Path) -> anyhow::Result<()> {
    let built =
        Command::new("cargo").args(["+nightly", "fuzz", "build"]).current_dir(root).status();
    ensure!(built?.success(), "the targets could not be compiled");
    Ok(())
}

/// Runs one target, and says what it came to. What it finds stays in its corpus, which is made
/// small afterwards.
fn fuzz(root: &Path, target: &str, seconds: u64) -> anyhow::Result<Value> {
    let (corpus, seeds) = (format!("fuzz/corpus/{target}"), format!("fuzz/seeds/{target}"));
    std::fs::create_dir_all(root.join(&corpus))?;
    let mut command = Command::new("cargo");
    command.args(["+nightly", "fuzz", "run", target, &corpus, &seeds, "--"]).current_dir(root);
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-max_len={}", largest(&root.join(&seeds)).max(INPUT_BYTES)));
    command.args(["-rss_limit_mb=4096", "-timeout=60", "-print_final_stats=1"]);
    let codec = target.split('_').next().unwrap_or(target);
    let dictionary = format!("fuzz/dictionaries/{codec}.dict");
    if root.join(&dictionary).exists() {
        command.arg(format!("-dict={dictionary}"));
    }
    let before = children_cpu_s();
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    let said = Said::read(BufReader::new(child.stderr.take().context("its stderr")?))?;
    let is_clean = child.wait()?.success();
    let cpu_s = children_cpu_s() - before;
    ensure!(
        is_clean || said.finding.is_some() || said.executions > 0,
        "{target} did not run: see above"
    );
    if is_clean {
        let mut smaller = Command::new("cargo");
        smaller.args(["+nightly", "fuzz", "cmin", target, &corpus]).current_dir(root);
        smaller.stderr(Stdio::null());
        ensure!(smaller.status()?.success(), "the corpus of {target} could not be made small");
    }
    let finding = match is_clean {
        true => None,
        false => Some(said.finding.unwrap_or_else(|| "the fuzzer was ended".to_owned())),
    };
    Ok(json!({
        "target": target, "seconds": seconds, "cpu_s": cpu_s, "executions": said.executions,
        "features": said.features, "finding": finding,
    }))
}

/// Processor time of the children that were awaited, seconds: `cutime` and `cstime` of proc(5).
fn children_cpu_s() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    // Field 3 is the first behind the name.
    let ticks = fields.skip(16 - 3).take(2).filter_map(|field| field.parse::<u64>().ok());
    ticks.sum::<u64>() / rustix::param::clock_ticks_per_second()
}

/// What libFuzzer reports of a run.
#[derive(Debug, Default, PartialEq)]
struct Said {
    /// Inputs that were tried.
    executions: u64,
    /// Features of the code that the corpus reaches.
    features: u64,
    /// The file of an input that was found.
    finding: Option<String>,
}

impl Said {
    /// Reads it, and passes on what is not a line of progress.
    fn read(lines: impl BufRead) -> anyhow::Result<Said> {
        let mut said = Said::default();
        for line in lines.split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            let word = |before: &str| {
                let (_, after) = line.split_once(before)?;
                after.split_whitespace().next().map(str::to_owned)
            };
            let number = |before: &str| word(before).and_then(|word| word.parse().ok());
            if let Some(features) = number(" ft: ") {
                said.features = features;
                // Progress: `#1024 NEW cov: 1 ft: 2 …`.
                let count = line.strip_prefix('#').and_then(|rest| rest.split_whitespace().next());
                said.executions =
                    count.and_then(|count| count.parse().ok()).unwrap_or(said.executions);
                continue;
            }
            if let Some(executions) = number("stat::number_of_executed_units:") {
                said.executions = executions;
            }
            if let Some(file) = word("Test unit written to ") {
                said.finding = Some(file);
            }
            if !line.starts_with("stat::") {
                eprintln!("{line}");
            }
        }
        Ok(said)
    }
}

/// Bytes of the largest seed.
fn largest(seeds: &Path) -> u64 {
    let files = std::fs::read_dir(seeds).into_iter().flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).max().unwrap_or(0)
}

/// Prints the table for docs/benchmarks/endurance.md.
fn report(done: &[Value], targets: &[String]) {
    println!("\n| target | CPU minutes | executions | features | findings |");
    println!("|---|---|---|---|---|");
    let mut all = [0; 3];
    for target in targets {
        let own: Vec<&Value> = done.iter().filter(|own| own["target"] == **target).collect();
        let sum = |key: &str| own.iter().filter_map(|one| one[key].as_u64()).sum::<u64>();
        let (cpu_s, executions) = (sum("cpu_s"), sum("executions"));
        let features = own.iter().filter_map(|one| one["features"].as_u64()).max().unwrap_or(0);
        let findings = own.iter().filter(|one| !one["finding"].is_null()).count() as u64;
        let minutes = cpu_s as f64 / 60.0;
        println!("| {target} | {minutes:.1} | {executions} | {features} | {findings} |");
        all = [all[0] + cpu_s, all[1] + executions, all[2] + findings];
    }
    let [cpu_s, executions, findings] = all;
    let (minutes, count) = (cpu_s as f64 / 60.0, targets.len());
    println!("| all {count} | {minutes:.1} | {executions} | | {findings} |");
}

/// Most bytes of an input, unless a seed is larger.
const INPUT_BYTES: u64 = 2_048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_fuzzer_reports_is_read() {
        let text = "#2\tINITED cov: 3 ft: 4 corp: 1/1b exec/s: 0 rss: 30Mb\n\
                    #64\tNEW    cov: 5 ft: 6 corp: 2/9b lim: 4 exec/s: 0 rss: 30Mb\n";
        let progress = Said::read(text.as_bytes()).unwrap();
        assert_eq!(progress, Said { executions: 64, features: 6, finding: None });
        let end = "artifact_prefix='x/'; Test unit written to x/crash-da39\n\
                   stat::number_of_executed_units: 77\nstat::average_exec_per_sec: 1\n";
        let found = Said::read([text, end].concat().as_bytes()).unwrap();
        let finding = Some("x/crash-da39".to_owned());
        assert_eq!(found, Said { executions: 77, features: 6, finding });
    }

    #[test]
    fn seconds_are_those_of_the_target() {
        let slice = |target: &str, seconds: u64| json!({ "target": target, "seconds": seconds });
        let done = [slice("a", 5), slice("b", 7), slice("a", 1)];
        assert_eq!((seconds(&done, "a"), seconds(&done, "b"), seconds(&done, "c")), (6, 7, 0));
    }
}
