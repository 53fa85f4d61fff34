//! The side-by-side benchmark: the same work by `weigh`, by the tools people know and by a loop
//! of C that does the least a generator can do, round by round, measured alike from outside.

mod brokers;
mod counters;
mod history;
mod jobs;
mod kinds;
mod measure;
mod own;
mod places;
mod process;
mod ratio;
mod table;
mod targets;
mod tools;
mod words;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;

use jobs::{Field, JOBS, Job, Work};
use measure::Tool;
use places::Places;
use process::Cores;
use table::Row;
use targets::Target;

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
#[command(
    after_help = "Without --compare only the floor is measured besides weigh. Peers that are not \
                  on PATH are named and left out; apt-get install wrk nghttp2-client nginx \
                  mosquitto mosquitto-clients brings most, docs/benchmarks.md has the rest."
)]
pub(crate) struct Options {
    /// Jobs to run; all of them without any. See --list.
    jobs: Vec<String>,
    /// List the jobs and end.
    #[arg(long)]
    list: bool,
    /// How often every tool has its turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// About how many seconds a turn takes.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// Only these tools, by the names of the table (for example: weigh wrk).
    #[arg(long, num_args = 1.., value_name = "TOOL")]
    only: Vec<String>,
    /// Beside the floor every peer that is installed here.
    #[arg(long)]
    compare: bool,
    /// Generators and targets go ahead of all other work on their cores (needs root): for a machine
    /// that is never quiet. Read ratios only.
    #[arg(long)]
    ahead: bool,
    /// Prints what the last runs found in this job, for `weigh stats -`, and ends.
    #[arg(long, value_name = "JOB")]
    history: Option<String>,
    /// So many runs of the history.
    #[arg(long, value_name = "N", default_value_t = 2, requires = "history")]
    last: usize,
    /// An earlier binary, to be weighed in turn with the present one.
    #[arg(long, value_name = "FILE")]
    before: Option<PathBuf>,
    /// A binary without times, for the jobs that need one; without it, one is built.
    #[arg(long, value_name = "FILE")]
    unrecorded: Option<PathBuf>,
    /// The core that generators run on.
    #[arg(long, default_value_t = 1)]
    generator_core: usize,
    /// The core that targets run on.
    #[arg(long, default_value_t = 0)]
    target_core: usize,
    /// The binary to weigh; without it, the release build of this repository.
    #[arg(long, value_name = "FILE")]
    weigh: Option<PathBuf>,
}

/// Runs the chosen jobs, prints their tables and appends every run to a file in `bench-results`.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    if options.list {
        for job in JOBS {
            println!("{:<17} {}", job.name, job.about);
        }
        return Ok(());
    }
    if let Some(job) = &options.history {
        print!("{}", history::told(root, job, options.last)?);
        return Ok(());
    }
    let chosen = chosen(&options.jobs)?;
    let cores = std::thread::available_parallelism()?.get();
    let highest = options.generator_core.max(options.target_core);
    ensure!(highest < cores, "core {highest} is not there: this machine offers {cores}");
    raise_descriptor_limit()?;
    let root = root.canonicalize().context("finding the repository")?;
    let scratch = root.join("target/bench");
    fs::create_dir_all(&scratch)?;
    fs::write(scratch.join("body64"), "x".repeat(64))?;
    let found = |path: &PathBuf| path.canonicalize().with_context(|| path.display().to_string());
    let records = chosen.iter().any(|job| job.field == Field::Recording);
    let places = Places {
        floor: build_floor(&root)?,
        unrecorded: match &options.unrecorded {
            Some(path) => Some(found(path)?),
            None => records.then(|| build_unrecorded(&root, &scratch)).transpose()?,
        },
        weigh: match &options.weigh {
            Some(path) => found(path)?,
            None => build_weigh(&root, "full")?,
        },
        before: options.before.as_ref().map(found).transpose()?,
        root: root.clone(),
        scratch,
    };
    let mut results = Results::create(&root)?;
    let mut entry = history::Entry::begin();
    println!("load average at the start: {:.2}\n", process::load_average());
    let mut failed = Vec::new();
    for job in chosen {
        println!("## {}: {}", job.name, job.about);
        if let Err(error) = run_job(job, &places, options, &mut results, &mut entry) {
            println!("failed: {error:#}\n");
            failed.push(job.name);
        }
    }
    println!("every run: {}", results.path.display());
    println!("history: {}", entry.append(&root)?.display());
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Job>> {
    if names.is_empty() {
        return Ok(JOBS.iter().collect());
    }
    let known: Vec<&str> = JOBS.iter().map(|job| job.name).collect();
    names
        .iter()
        .map(|name| match JOBS.iter().find(|job| job.name == name) {
            Some(job) => Ok(job),
            None => bail!("there is no job {name:?}: type one of {}", known.join(", ")),
        })
        .collect()
}

fn run_job(
    job: &Job,
    places: &Places,
    options: &Options,
    results: &mut Results,
    entry: &mut history::Entry,
) -> anyhow::Result<()> {
    let own = match job.work {
        Work::Idle(connections) => Some(own::idle(places, connections, options.seconds.max(10))),
        Work::Pacing(rate) => Some(own::pacing(places, rate, options.seconds.max(10))),
        _ => None,
    };
    match own {
        Some(value) => {
            let mut value = value?;
            value["job"] = job.name.into();
            results.append(&value)
        }
        None => {
            let rows = compare(job, places, options, results)?;
            table::print(job, &rows);
            entry.add(job.name, &rows);
            Ok(())
        }
    }
}

/// Gives every tool its turn, round after round, so that a slow drift of the machine touches all
/// alike; each round begins with another tool. Every turn has a fresh target.
fn compare(
    job: &Job,
    places: &Places,
    options: &Options,
    results: &mut Results,
) -> anyhow::Result<Vec<Row>> {
    let Some(kind) = job.work.target() else { return Ok(Vec::new()) };
    let cores = Cores {
        generator: options.generator_core,
        target: options.target_core,
        is_ahead: options.ahead,
    };
    let folder = places.scratch.join(job.name);
    let turns = turns(job, places, options)?;
    let mut rows: Vec<Row> =
        turns.iter().map(|tool| Row { tool: tool.name.clone(), runs: Vec::new() }).collect();
    // What a build of ours does once, and keeps, belongs to no round.
    for tool in turns.iter().filter(|tool| tool.name.starts_with("weigh")) {
        let target = Target::start(kind, &folder, places, cores)?;
        let tools = places.tools(job, target.port, 1)?;
        let tool = tools.iter().map(|entry| &entry.tool).find(|own| own.name == tool.name);
        measure::measure(tool.context("a tool went away")?, &target, cores, &folder)?;
    }
    for round in 1..=options.rounds {
        for turn in 0..turns.len() {
            let place = (turn + round as usize - 1) % turns.len();
            let (name, own_kind) = (&turns[place].name, turns[place].target);
            let target = Target::start(own_kind.unwrap_or(kind), &folder, places, cores)?;
            let tools = places.tools(job, target.port, options.seconds)?;
            let tool = tools.iter().map(|entry| &entry.tool).find(|tool| tool.name == *name);
            let tool = tool.context("a tool went away during the run")?;
            let measured = measure::measure(tool, &target, cores, &folder)?;
            if let Some(why) = measured.unusable() {
                let output = folder.join(format!("{name}.err"));
                let output = output.display();
                eprintln!("round {round}: {name} not used: {why} (its words: {output})");
            }
            results.append(&measured.json(job.name, tool, round))?;
            rows[place].runs.push(measured);
        }
    }
    Ok(rows)
}

/// The tools that take part; of the others it is said that they do not.
fn turns(job: &Job, places: &Places, options: &Options) -> anyhow::Result<Vec<Tool>> {
    let mut turns = Vec::new();
    let mut missing = Vec::new();
    for entry in places.tools(job, 0, options.seconds)? {
        let is_wanted = match options.only.is_empty() {
            true => entry.is_own || options.compare,
            false => options.only.contains(&entry.tool.name),
        };
        match (is_wanted, places.is_there(&entry.tool)) {
            (false, _) => {}
            (true, true) => turns.push(entry.tool),
            (true, false) => missing.push(entry.tool.name),
        }
    }
    ensure!(!turns.is_empty(), "none of the tools of this job is installed");
    if !missing.is_empty() {
        println!("not installed here, and left out: {}", missing.join(", "));
    }
    Ok(turns)
}

/// Where every run is kept, one JSON object a line.
struct Results {
    path: PathBuf,
    file: fs::File,
}

impl Results {
    fn create(root: &Path) -> anyhow::Result<Results> {
        let folder = root.join("bench-results");
        fs::create_dir_all(&folder)?;
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let path = folder.join(format!("{seconds}.jsonl"));
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        Ok(Results { path, file })
    }

    fn append(&mut self, value: &Value) -> anyhow::Result<()> {
        writeln!(self.file, "{value}").with_context(|| format!("writing {}", self.path.display()))
    }
}

/// Compiles the floor programs with the system's C compiler. Without one they are left out.
fn build_floor(root: &Path) -> anyhow::Result<PathBuf> {
    let folder = root.join("target/floor");
    fs::create_dir_all(&folder)?;
    if process::program("cc").is_none() {
        println!("no C compiler (apt-get install gcc libc6-dev): the floor is left out\n");
        return Ok(folder);
    }
    for name in FLOORS {
        let status = Command::new("cc")
            .args(["-O2", "-Wall", "-Wextra", "-o"])
            .arg(folder.join(name))
            .arg(root.join("benches/floor").join(format!("{name}.c")))
            .status()?;
        ensure!(status.success(), "benches/floor/{name}.c does not compile");
    }
    Ok(folder)
}

/// The same without times, kept aside: the next build of the plain one takes its place.
fn build_unrecorded(root: &Path, scratch: &Path) -> anyhow::Result<PathBuf> {
    let kept = scratch.join("weigh-unrecorded");
    fs::copy(build_weigh(root, "full,unrecorded")?, &kept)?;
    Ok(kept)
}

fn build_weigh(root: &Path, features: &str) -> anyhow::Result<PathBuf> {
    let status = Command::new("cargo")
        .args(["build", "--release", "--package", "weigh", "--features", features])
        .current_dir(root)
        .status()?;
    ensure!(status.success(), "the release build failed");
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    Ok(folder.join("release/weigh"))
}

/// Raises our soft limit to the hard one; what we start inherits it.
fn raise_descriptor_limit() -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).context("raising the limit of open files")
}

/// The floor programs, by the names of their files in `benches/floor`.
const FLOORS: [&str; 6] =
    ["floor_coap", "floor_http", "floor_mqtt", "floor_tcp", "floor_sink", "floor_websocket"];
