//! 5,000 messages a second over three protocols, for hours: the memory of both ends must stay flat,
//! every ledger must be exact, and journals must not grow with time. A second call continues.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::guarded::Guarded;
use crate::kept::Kept;

/// Options of `cargo xtask soak`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Hours of load in all, those of earlier calls included.
    #[arg(long, value_name = "H", default_value_t = 10.0)]
    hours: f64,
    /// Seconds of one run; servers stay for the whole call.
    #[arg(long, value_name = "S", default_value_t = 3600)]
    slice: u64,
    /// The program; by default the release build, which must be there.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Forget what earlier calls did.
    #[arg(long)]
    again: bool,
}

/// Loads all protocols at once, slice by slice; each is a line in target/soak/slices.jsonl.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    ensure!(options.hours > 0.0 && options.slice >= 10, "--hours is above 0, --slice at least 10");
    let place = root.join("target/soak");
    if options.again && place.exists() {
        std::fs::remove_dir_all(&place)?;
    }
    std::fs::create_dir_all(&place)?;
    let binary = options.binary.clone().unwrap_or_else(|| root.join("target/release/weigh"));
    let binary = binary.canonicalize().with_context(|| format!("{}", binary.display()))?;
    let mut kept = Kept::open(&place.join("slices.jsonl"), 1)?;
    let all = (options.hours * 3600.0).ceil() as u64;
    let mut servers = Vec::new();
    while seconds(&kept.done) < all {
        if servers.is_empty() {
            let started = LANES.iter().map(|lane| Server::start(&binary, lane));
            servers = started.collect::<anyhow::Result<Vec<Server>>>()?;
        }
        let length = options.slice.min(all - seconds(&kept.done)).max(SLICE_MIN);
        let number = kept.done.len();
        let folder = place.join(format!("slice-{number}"));
        let lanes = slice(&binary, &folder, &mut servers, length)?;
        let has_faults = lanes.iter().any(|lane| lane["faults"] != json!([]));
        if !has_faults {
            std::fs::remove_dir_all(&folder)?;
        }
        kept.note(json!({ "seed": 1, "number": number, "seconds": length, "lanes": lanes }))?;
    }
    for server in servers {
        server.end()?;
    }
    report(&kept.done)
}

fn seconds(done: &[Value]) -> u64 {
    done.iter().filter_map(|own| own["seconds"].as_u64()).sum()
}

/// A protocol with its share of the 5,000 messages a second.
struct Lane {
    protocol: &'static str,
    rate: u64,
    words: &'static [&'static str],
}

static LANES: [Lane; 3] = [
    Lane { protocol: "mqtt", rate: 1_667, words: &["-q", "1", "--pattern", "deliver"] },
    Lane { protocol: "http", rate: 1_667, words: &[] },
    Lane { protocol: "tcp", rate: 1_666, words: &[] },
];

/// A reference server that stays.
struct Server {
    child: Guarded,
    url: String,
}

impl Server {
    fn start(binary: &Path, lane: &Lane) -> anyhow::Result<Server> {
        let mut command = Command::new(binary);
        command.args(["serve", lane.protocol]).stdin(Stdio::null()).stderr(Stdio::null());
        let mut child = Guarded(command.stdout(Stdio::piped()).spawn()?);
        let mut lines = BufReader::new(child.stdout.take().context("its stdout")?).lines();
        let line = lines.next().context("the server printed no address")??;
        let url = line.strip_prefix("listening on ").with_context(|| line.clone())?.to_owned();
        // What it prints at its end must find a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Server { child, url })
    }

    fn end(mut self) -> anyhow::Result<()> {
        if let Some(pid) = Pid::from_raw(i32::try_from(self.child.id())?) {
            let _ = kill_process(pid, Signal::TERM);
        }
        self.child.wait()?;
        Ok(())
    }
}

/// One run of each lane, at the same time.
struct Running<'s> {
    lane: &'static Lane,
    server: &'s mut Server,
    child: Guarded,
    folder: PathBuf,
    /// Memory of generator and server over time, bytes.
    memory: Vec<[u64; 2]>,
}

/// Runs all lanes for this many seconds, and says what each came to.
fn slice(
    binary: &Path,
    folder: &Path,
    servers: &mut [Server],
    length: u64,
) -> anyhow::Result<Vec<Value>> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    let mut running = Vec::new();
    for (lane, server) in LANES.iter().zip(servers) {
        let own = folder.join(lane.protocol);
        std::fs::create_dir_all(&own)?;
        let (rate, duration) = (format!("{}/s", lane.rate), format!("{length}s"));
        let mut command = Command::new(binary);
        command.args(["compare", &server.url, "-R", &rate, "-d", &duration]).args(lane.words);
        command.args(["-c", "10", "--reps", "1", "--warmup", "1s", "--json"]);
        command.stdin(Stdio::null()).stdout(std::fs::File::create(own.join("summary.json"))?);
        command.stderr(std::fs::File::create(own.join("stderr"))?).current_dir(&own);
        let child = Guarded(command.spawn()?);
        running.push(Running { lane, server, child, folder: own, memory: Vec::new() });
    }
    let every = Duration::from_secs_f64((length as f64 / SAMPLES).max(0.5));
    let until = Instant::now() + Duration::from_secs(length) + GRACE;
    let mut is_over = false;
    while !is_over {
        std::thread::sleep(every);
        is_over = true;
        for own in &mut running {
            if own.child.try_wait()?.is_none() {
                is_over = false;
                own.memory.push([resident(own.child.id()), resident(own.server.child.id())]);
            }
        }
        ensure!(Instant::now() < until, "a run did not end: {}", folder.display());
    }
    running.into_iter().map(Running::judged).collect()
}

impl Running<'_> {
    /// What it came to, and what is wrong with it.
    fn judged(mut self) -> anyhow::Result<Value> {
        let status = self.child.wait()?;
        let text = std::fs::read_to_string(self.folder.join("summary.json"))?;
        let summary: Value = serde_json::from_str(&text)
            .with_context(|| format!("{}: ended with {status}", self.folder.display()))?;
        let ledger = &summary["cells"][0]["ledger"];
        let term = |name: &str| ledger[name].as_u64();
        let mut faults = Vec::new();
        let (sent, delivered) = (term("sent"), term("delivered"));
        let is_exact = sent > Some(0)
            && sent == delivered
            && term("scheduled") == sent
            && (term("lost"), term("late"), term("not_sent")) == (Some(0), Some(0), Some(0));
        if !is_exact {
            faults.push(format!("the ledger is {ledger}"));
        }
        let ends = [0, 1].map(|side| quarters(&self.memory, side));
        for (name, (first, last)) in ["generator", "server"].into_iter().zip(ends) {
            if last > first + first / 20 + GROWTH_MAX {
                faults.push(format!("memory of the {name}: {first} bytes, then {last}"));
            }
        }
        let journal = std::fs::read_dir(self.folder.join("runs"))?;
        let journals = journal.flatten().map(|run| run.path().join("journal.jsonl"));
        let bytes: u64 = journals.filter_map(|path| Some(path.metadata().ok()?.len())).sum();
        if bytes == 0 || bytes > JOURNAL_MAX {
            faults.push(format!("the journal has {bytes} bytes"));
        }
        Ok(json!({
            "protocol": self.lane.protocol, "sent": sent, "delivered": delivered,
            "generator_bytes": [ends[0].0, ends[0].1], "server_bytes": [ends[1].0, ends[1].1],
            "journal_bytes": bytes, "faults": faults,
        }))
    }
}

/// Means of the second and of the last quarter: in the first one, buffers grow to their sizes.
fn quarters(memory: &[[u64; 2]], side: usize) -> (u64, u64) {
    let quarter = (memory.len() / 4).max(1);
    let mean =
        |of: &[[u64; 2]]| of.iter().map(|own| own[side]).sum::<u64>() / (of.len() as u64).max(1);
    let second = memory.iter().skip(quarter).take(quarter).copied().collect::<Vec<_>>();
    (mean(&second), mean(&memory[memory.len().saturating_sub(quarter)..]))
}

/// Resident memory of a process, bytes; 0 if it is gone.
fn resident(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// Prints the table for docs/benchmarks/endurance.md; fails if a slice had a fault.
fn report(done: &[Value]) -> anyhow::Result<()> {
    println!("\n{} s of load in {} slices\n", seconds(done), done.len());
    println!("| protocol | sent | delivered | generator | server | largest journal | faults |");
    println!("|---|---|---|---|---|---|---|");
    let mut faults = 0;
    for lane in &LANES {
        let lanes = done.iter().filter_map(|own| own["lanes"].as_array()).flatten();
        let own: Vec<&Value> = lanes.filter(|own| own["protocol"] == lane.protocol).collect();
        let sum = |key: &str| own.iter().filter_map(|one| one[key].as_u64()).sum::<u64>();
        let megabytes = |key: &str| {
            let at = |one: Option<&&Value>, place: usize| {
                one.and_then(|one| one[key][place].as_u64()).unwrap_or(0) as f64 / 1e6
            };
            format!("{:.1} to {:.1} MB", at(own.first(), 0), at(own.last(), 1))
        };
        let journal = own.iter().filter_map(|one| one["journal_bytes"].as_u64()).max();
        let bad = own.iter().filter(|one| one["faults"] != json!([])).count();
        faults += bad;
        println!(
            "| {} | {} | {} | {} | {} | {} kB | {bad} |",
            lane.protocol,
            sum("sent"),
            sum("delivered"),
            megabytes("generator_bytes"),
            megabytes("server_bytes"),
            journal.unwrap_or(0) / 1000
        );
    }
    ensure!(faults == 0, "{faults} runs had faults; their folders are in target/soak");
    Ok(())
}

/// Samples of memory in a slice.
const SAMPLES: f64 = 120.0;

/// Shortest slice, seconds.
const SLICE_MIN: u64 = 10;

/// Time for the baseline before a slice and the report after it.
const GRACE: Duration = Duration::from_secs(120);

/// Growth beyond a twentieth that does not count as a leak: that of the allocator.
const GROWTH_MAX: u64 = 2 << 20;

/// A journal has at most 120 intervals a trial, however long that is.
const JOURNAL_MAX: u64 = 1 << 20;
