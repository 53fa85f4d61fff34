//! The jobs without a peer: what `weigh` says of its own pacing, and what its idle connections
//! cost in memory, seen from outside.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::places::Places;
use super::words::summary;
use super::{measure, process};

/// Send lag at `rate` messages per second over `seconds`, as `weigh` records it.
pub(crate) fn pacing(places: &Places, rate: u32, seconds: u32) -> anyhow::Result<Value> {
    let arguments = format!("compare http -R {rate}/s -c 64 -d {seconds}s --warmup 1s --reps 1");
    let (run, _) = run(places, "pacing", &arguments, |_| ())?;
    let cell = &run["cells"][0];
    let lag = |quantile: &str| cell["metrics"][format!("send_lag_ns.{quantile}")]["value"].as_f64();
    let result = json!({
        "rate": rate, "p50_us": lag("p50").map(micros), "p99_us": lag("p99").map(micros),
        "max_us": lag("max").map(micros), "valid": cell["valid"],
        "generator_cpu_percent": cell["metrics"]["generator_cpu_percent.max"]["value"],
    });
    ensure!(lag("p99").is_some(), "the summary has no send_lag_ns.p99");
    println!(
        "send lag at {rate}/s: p50 {:.0} us, p99 {:.0} us, max {:.0} us; \
         generator {} % of a core\n",
        result["p50_us"].as_f64().unwrap_or(f64::NAN),
        result["p99_us"].as_f64().unwrap_or(f64::NAN),
        result["max_us"].as_f64().unwrap_or(f64::NAN),
        result["generator_cpu_percent"],
    );
    Ok(result)
}

/// Anonymous memory per further idle connection: the slope between a few and `connections`.
pub(crate) fn idle(places: &Places, connections: u32, seconds: u32) -> anyhow::Result<Value> {
    let few = hold(places, IDLE_FEW, seconds)?;
    let many = hold(places, connections, seconds)?;
    // Each connection is two sockets, because both ends are on this machine.
    let opened = many.sockets.saturating_sub(few.sockets) / 2 + u64::from(IDLE_FEW);
    let further = f64::from(connections - IDLE_FEW);
    let generator = many.generator_bytes.saturating_sub(few.generator_bytes) as f64 / further;
    let broker = many.broker_bytes.saturating_sub(few.broker_bytes) as f64 / further;
    println!(
        "{connections} idle connections (about {opened} seen open): generator {generator:.0} bytes \
         each, reference broker {broker:.0} bytes each\n"
    );
    ensure!(opened * 100 >= u64::from(connections) * 99, "only {opened} connections were open");
    ensure!(many.broker_bytes > 0, "no process of `weigh serve` was seen");
    Ok(json!({
        "connections": connections, "seen_open": opened,
        "generator_bytes_per_connection": generator, "broker_bytes_per_connection": broker,
    }))
}

/// The most that was seen at once while connections were held.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    generator_bytes: u64,
    broker_bytes: u64,
    sockets: u64,
}

fn hold(places: &Places, connections: u32, seconds: u32) -> anyhow::Result<Held> {
    let arguments = format!(
        "compare mqtt --pattern hold -q 0 -c {connections} -d {seconds}s --warmup 0s --reps 1"
    );
    let mut held = Held::default();
    run(places, "idle", &arguments, |pid| {
        let mut now = Held { sockets: process::sockets_in_use(), ..Held::default() };
        for member in process::tree(pid) {
            let bytes = process::anonymous_bytes(member);
            if process::has_argument(member, "serve") {
                now.broker_bytes += bytes;
            } else {
                now.generator_bytes += bytes;
            }
        }
        held.generator_bytes = held.generator_bytes.max(now.generator_bytes);
        held.broker_bytes = held.broker_bytes.max(now.broker_bytes);
        held.sockets = held.sockets.max(now.sockets);
    })?;
    Ok(held)
}

/// Runs `weigh` unpinned (it pins itself and its server) and returns its summary.
fn run(
    places: &Places,
    name: &str,
    arguments: &str,
    mut look: impl FnMut(u32),
) -> anyhow::Result<(Value, f64)> {
    let out = places.scratch.join(format!("{name}.out"));
    let err = places.scratch.join(format!("{name}.err"));
    let mut child = Command::new(&places.weigh)
        .args(arguments.split_whitespace())
        .args([Path::new("--json"), Path::new("--runs"), &places.scratch.join("runs")])
        .current_dir(&places.scratch)
        .stdin(Stdio::null())
        .stdout(File::create(&out)?)
        .stderr(File::create(&err)?)
        .spawn()
        .with_context(|| format!("starting {}", places.weigh.display()))?;
    let pid = child.id();
    let (cpu, exit) = measure::follow(&mut child, || look(pid))?;
    let errors = fs::read_to_string(&err).unwrap_or_default();
    ensure!(exit == 0, "weigh {arguments} ended with {exit}: {}", errors.trim());
    let text = fs::read_to_string(&out)?;
    let summary = summary(&text).context("weigh --json printed no JSON")?;
    Ok((summary, cpu as f64 / process::ticks_per_second()))
}

fn micros(nanos: f64) -> f64 {
    nanos / 1_000.0
}

/// Connections of the run that the slope starts from.
const IDLE_FEW: u32 = 500;
