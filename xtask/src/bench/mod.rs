//! The side-by-side benchmark: the same work by `weigh`, by the tools people know and by a loop
//! of C that does the least a generator can do, round by round, measured alike from outside.

mod counters;
mod jobs;
mod measure;
mod own;
mod process;
mod table;
mod targets;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;

use jobs::{JOBS, Job, Places, Work};
use measure::{Cores, Tool};
use table::Row;
use targets::Target;

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
#[command(after_help = "Jobs whose tools are not installed leave them out; apt-get install wrk \
                        nghttp2-client nginx mosquitto mosquitto-clients brings most. \
                        rumqttc-bench and mqtt-stresser are used if they are on PATH.")]
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
            println!("{:<10} {}", job.name, job.about);
        }
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
    let places = Places {
        floor: build_floor(&root)?,
        weigh: match &options.weigh {
            Some(path) => path.canonicalize().with_context(|| path.display().to_string())?,
            None => build_weigh(&root)?,
        },
        root: root.clone(),
        scratch,
    };
    let mut results = Results::create(&root)?;
    let mut failed = Vec::new();
    for job in chosen {
        println!("## {}: {}", job.name, job.about);
        if let Err(error) = run_job(job, &places, options, &mut results) {
            println!("failed: {error:#}\n");
            failed.push(job.name);
        }
    }
    println!("every run: {}", results.path.display());
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
        None => compare(job, places, options, results),
    }
}

/// Gives every tool its turn, round after round, so that a slow drift of the machine touches all
/// alike. Every turn has a fresh target.
fn compare(
    job: &Job,
    places: &Places,
    options: &Options,
    results: &mut Results,
) -> anyhow::Result<()> {
    let Some(kind) = job.work.target() else { return Ok(()) };
    let cores = Cores { generator: options.generator_core, target: options.target_core };
    let folder = places.scratch.join(job.name);
    let tools_at = |port: u16| -> anyhow::Result<Vec<Tool>> {
        let mut tools = places.tools(job.work, port, options.seconds)?;
        tools.retain(|tool| options.only.is_empty() || options.only.contains(&tool.name));
        Ok(tools)
    };
    let names: Vec<String> = tools_at(0)?.into_iter().map(|tool| tool.name).collect();
    ensure!(!names.is_empty(), "none of the tools of this job is installed");
    let mut rows: Vec<Row> = names.into_iter().map(|tool| Row { tool, runs: Vec::new() }).collect();
    for round in 1..=options.rounds {
        for row in &mut rows {
            let target = Target::start(kind, &folder, &places.floor, cores.target)?;
            let tools = tools_at(target.port)?;
            let tool = tools.iter().find(|tool| tool.name == row.tool);
            let tool = tool.context("a tool went away during the run")?;
            let measured = measure::measure(tool, &target, cores, &folder)?;
            if let Some(why) = measured.unusable() {
                let output = folder.join(format!("{}.err", tool.name));
                let (name, output) = (&tool.name, output.display());
                eprintln!("round {round}: {name} not used: {why} (its words: {output})");
            }
            results.append(&measured.json(job.name, tool, round))?;
            row.runs.push(measured);
        }
    }
    table::print(&rows);
    Ok(())
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
    for name in ["floor_http", "floor_mqtt", "floor_tcp", "floor_sink"] {
        let status = Command::new("cc")
            .args(["-O2", "-Wall", "-Wextra", "-o"])
            .arg(folder.join(name))
            .arg(root.join("benches/floor").join(format!("{name}.c")))
            .status()?;
        ensure!(status.success(), "benches/floor/{name}.c does not compile");
    }
    Ok(folder)
}

fn build_weigh(root: &Path) -> anyhow::Result<PathBuf> {
    let status = Command::new("cargo")
        .args(["build", "--release", "--package", "weigh"])
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
