//! `cargo xtask fleet-cost`: what a fleet costs its coordinator and its bus, by agents that send
//! one message a second each, all on this machine.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

/// Options of `cargo xtask fleet-cost`.
#[derive(clap::Args)]
pub struct Options {
    /// Numbers of agents, one after the other
    #[arg(long, value_delimiter = ',', default_value = "2,8,32,128")]
    agents: Vec<u32>,
    /// Seconds that are measured for each number
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// A program that was built already, with `--features fleet`
    #[arg(long)]
    weigh: Option<PathBuf>,
}

/// Starts fleets of these sizes, and prints a row of Markdown for each.
///
/// # Errors
/// A program that is missing, an agent or a run that fails.
pub fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let weigh = match &options.weigh {
        Some(path) => fs::canonicalize(path)?,
        None => build(root)?,
    };
    println!("{HEAD}");
    for agents in &options.agents {
        let place = std::env::temp_dir().join(format!("weigh-fleet-cost-{}", std::process::id()));
        fs::create_dir_all(&place)?;
        let row = measure(&weigh, &place, *agents, options.seconds);
        fs::remove_dir_all(&place)?;
        println!("{}", row.with_context(|| format!("{agents} agents"))?);
    }
    Ok(())
}

const HEAD: &str = "\
| agents | coordinator, ms/s | for each agent | bus, ms/s | for each agent | an agent, ms/s | bus, \
messages/s for each agent | bus, bytes/s for each agent |
|---|---|---|---|---|---|---|---|";

/// A child that is killed and waited for when it is dropped.
struct Own(Child);

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Counters at one moment.
struct Look {
    at: Instant,
    coordinator_ns: u64,
    bus_ns: u64,
    agents_ns: u64,
    messages: u64,
    bytes: u64,
}

fn measure(weigh: &Path, place: &Path, agents: u32, seconds: u64) -> anyhow::Result<String> {
    let (bus, ports) = bus(place)?;
    let url = ports["nats"][0].as_str().context("the bus has no port")?;
    let monitor = ports["monitoring"][0].as_str().context("the bus has no monitor")?;
    let mut server = child(weigh, place, &["serve", "mqtt", "--listen", "127.0.0.1:0"])?;
    let mut lines = BufReader::new(server.0.stdout.take().context("its stdout")?).lines();
    let line = lines.next().context("the server printed no address")??;
    let target = line.strip_prefix("listening on ").context("no address")?;
    let fleet: Vec<Own> = (0..agents)
        .map(|rank| {
            let rank = rank.to_string();
            let words = ["agent", "--bus", url, "--may-load", "127.0.0.1:*", "--rank", &rank];
            child(weigh, place, &words)
        })
        .collect::<anyhow::Result<_>>()?;
    let (count, rate) = (agents.to_string(), format!("{agents}/s"));
    let lasts = format!("{}s", seconds + 2 * SETTLE.as_secs());
    let load = ["compare", target, "-q", "1", "--pattern", "publish", "-c", &count, "-R", &rate];
    let run = ["-d", &lasts, "--reps", "1", "--warmup", "0s", "--quiet", "--runs", "runs"];
    let of_fleet = ["--fleet", url, "--agents", &count];
    let mut coordinator = child(weigh, place, &[&load[..], &run, &of_fleet].concat())?;
    until_load(place, &mut coordinator)?;
    std::thread::sleep(SETTLE);
    let look = || look(&coordinator, &bus, &fleet, monitor);
    let first = look()?;
    std::thread::sleep(Duration::from_secs(seconds));
    let row = row(agents, &first, &look()?);
    let status = coordinator.0.wait()?;
    ensure!(status.success(), "weigh compare ended with {status}");
    Ok(row)
}

fn row(agents: u32, first: &Look, last: &Look) -> String {
    let seconds = last.at.duration_since(first.at).as_secs_f64();
    let each = f64::from(agents);
    let ms = |later: u64, earlier: u64| (later - earlier) as f64 / 1e6 / seconds;
    let coordinator = ms(last.coordinator_ns, first.coordinator_ns);
    let bus = ms(last.bus_ns, first.bus_ns);
    let agent = ms(last.agents_ns, first.agents_ns) / each;
    let messages = (last.messages - first.messages) as f64 / seconds / each;
    let bytes = (last.bytes - first.bytes) as f64 / seconds / each;
    format!(
        "| {agents} | {coordinator:.1} | {:.2} | {bus:.1} | {:.2} | {agent:.2} | {messages:.1} | \
         {bytes:.0} |",
        coordinator / each,
        bus / each,
    )
}

/// Waits for the first line of the run's live file: it is written while the load runs.
fn until_load(place: &Path, coordinator: &mut Own) -> anyhow::Result<()> {
    let until = Instant::now() + BEGINS_WITHIN;
    while Instant::now() < until {
        if let Some(status) = coordinator.0.try_wait()? {
            bail!("weigh compare ended with {status} before the load");
        }
        let runs = fs::read_dir(place.join("runs")).into_iter().flatten().flatten();
        let mut live = runs.into_iter().map(|run| run.path().join("live.jsonl"));
        if live.any(|file| fs::metadata(file).is_ok_and(|found| found.len() > 0)) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    bail!("no load began")
}

fn look(coordinator: &Own, bus: &Own, fleet: &[Own], monitor: &str) -> anyhow::Result<Look> {
    let counters = get(monitor, "/varz")?;
    let of = |names: [&str; 2]| names.iter().filter_map(|name| counters[name].as_u64()).sum();
    Ok(Look {
        at: Instant::now(),
        coordinator_ns: cpu_ns(coordinator),
        bus_ns: cpu_ns(bus),
        agents_ns: fleet.iter().map(cpu_ns).sum(),
        messages: of(["in_msgs", "out_msgs"]),
        bytes: of(["in_bytes", "out_bytes"]),
    })
}

/// Processor time of all threads that a process has now: the first number of schedstat.
fn cpu_ns(process: &Own) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.0.id()));
    let threads = tasks.into_iter().flatten().flatten();
    let own = threads.into_iter().filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    own.sum()
}

/// A server with JetStream and a monitor on free ports, and the file that names them.
fn bus(place: &Path) -> anyhow::Result<(Own, Value)> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin";
    let mut command = Command::new("nats-server");
    command.args([
        "-js",
        "-a",
        "127.0.0.1",
        "-p",
        "-1",
        "-m",
        "-1",
        "--ports_file_dir",
        ".",
        "-sd",
    ]);
    command.arg("store").env("PATH", path).current_dir(place);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let bus = Own(command.spawn().context("starting nats-server")?);
    let file = place.join(format!("nats-server_{}.ports", bus.0.id()));
    let until = Instant::now() + BEGINS_WITHIN;
    while Instant::now() < until {
        let text = fs::read_to_string(&file).unwrap_or_default();
        if let Ok(ports) = serde_json::from_str(&text) {
            return Ok((bus, ports));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("nats-server did not start")
}

fn child(weigh: &Path, place: &Path, words: &[&str]) -> anyhow::Result<Own> {
    let mut command = Command::new(weigh);
    command.args(words).current_dir(place).stdin(Stdio::null()).stdout(Stdio::piped());
    let log = fs::File::options().create(true).append(true).open(place.join("log"))?;
    Ok(Own(command.stderr(log).spawn().with_context(|| words.join(" "))?))
}

/// The JSON at this path of `http://HOST:PORT`.
fn get(url: &str, path: &str) -> anyhow::Result<Value> {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
    Ok(serde_json::from_str(body)?)
}

fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let words = ["build", "--release", "--package", "weigh", "--features", "fleet"];
    let status = Command::new("cargo").args(words).current_dir(root).status()?;
    ensure!(status.success(), "the release build failed");
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    Ok(folder.join("release/weigh"))
}

/// Time between the first line of the live file and the first look, and after the last.
const SETTLE: Duration = Duration::from_secs(3);

/// Time for the agents to meet and the load to begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(120);
