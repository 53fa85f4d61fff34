//! Runs one generator, pinned, and measures it from outside, the same way for every tool:
//! start-up included, work counted by the target where it counts, CPU of the whole process tree.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::{Value, json};

use super::kinds::Kind;
use super::process;
use super::process::{CoreTime, Cores};
use super::targets::Target;
use super::words::Own;

/// One command to measure.
pub(crate) struct Tool {
    /// What it is called in the table.
    pub(crate) name: String,
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// Finds what the tool says of itself in its output.
    pub(crate) own: fn(&str) -> Option<Own>,
    /// A file or folder without which its program cannot run.
    pub(crate) needs: Option<PathBuf>,
    /// The server it brings along, where the job's would not understand it.
    pub(crate) target: Option<Kind>,
}

impl Tool {
    /// A tool with this command line, which finds what it needs by itself.
    pub(crate) fn new(name: &str, command: &str, own: fn(&str) -> Option<Own>) -> Tool {
        let command = command.split_whitespace().map(str::to_owned).collect();
        Tool { name: name.to_owned(), command, own, needs: None, target: None }
    }
}

/// What one run of one tool gave.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Operations, by the target's count or else by the tool's own.
    pub(crate) operations: f64,
    /// What the tool itself counted, if it counted.
    pub(crate) own_count: Option<f64>,
    /// User and system seconds of the generator's process tree.
    pub(crate) cpu_s: f64,
    /// From the target's first to its last CPU tick.
    pub(crate) active_s: f64,
    /// Share of the generator's core that was busy in the active time.
    pub(crate) busy_generator: f64,
    /// Share of the target's core that was busy in the active time.
    pub(crate) busy_target: f64,
    /// Cores' worth of time on these two cores that went to neither generator nor target.
    pub(crate) foreign: f64,
    /// Share of the active time in which the target could have run and did not.
    pub(crate) kept_waiting: f64,
    /// True if generator and target went ahead of others: then what others used is no disturbance.
    pub(crate) is_ahead: bool,
    /// Exit code, or -1 for a tool that was ended from outside.
    pub(crate) exit: i32,
}

impl Measured {
    /// Operations per CPU-second of the generator.
    pub(crate) fn per_cpu_s(&self) -> f64 {
        if self.cpu_s > 0.0 { self.operations / self.cpu_s } else { 0.0 }
    }

    /// Operations per second of active time.
    pub(crate) fn rate(&self) -> f64 {
        if self.active_s > 0.0 { self.operations / self.active_s } else { 0.0 }
    }

    /// Why this run must not be used; `None` if it may.
    pub(crate) fn unusable(&self) -> Option<String> {
        if self.exit != 0 {
            return Some(format!("exit code {}", self.exit));
        }
        if self.operations <= 0.0 {
            return Some("nothing was done, or nothing counted it".to_owned());
        }
        if self.is_ahead {
            let share = self.kept_waiting * 100.0;
            return (self.kept_waiting > KEPT_WAITING_MAX)
                .then(|| format!("the target was kept waiting for {share:.0} % of the time"));
        }
        (self.foreign > FOREIGN_MAX)
            .then(|| format!("others used {:.0} % of a core", self.foreign * 100.0))
    }

    /// Which side had no more to give.
    pub(crate) fn bottleneck(&self) -> &'static str {
        match (self.busy_generator >= BUSY, self.busy_target >= BUSY) {
            (true, true) => "both",
            (true, false) => "generator",
            (false, true) => "target",
            (false, false) => "neither",
        }
    }

    /// The line of the result file.
    pub(crate) fn json(&self, job: &str, tool: &Tool, round: u32) -> Value {
        json!({
            "job": job, "tool": tool.name, "round": round, "command": tool.command,
            "operations": self.operations, "own_count": self.own_count, "cpu_s": self.cpu_s,
            "active_s": self.active_s, "per_cpu_s": self.per_cpu_s(), "rate": self.rate(),
            "busy_generator": self.busy_generator, "busy_target": self.busy_target,
            "bottleneck": self.bottleneck(), "foreign": self.foreign,
            "kept_waiting": self.kept_waiting, "exit": self.exit,
            "unusable": self.unusable(),
        })
    }
}

/// Runs `tool` against `target` and measures it. Its output goes into `folder`.
pub(crate) fn measure(
    tool: &Tool,
    target: &Target,
    cores: Cores,
    folder: &Path,
) -> anyhow::Result<Measured> {
    let out_path = folder.join(format!("{}.out", tool.name));
    let err_path = folder.join(format!("{}.err", tool.name));
    let counted_before = target.counter.before(target)?;
    let waited_before = process::waited_ns(target.pid());
    let target_before = process::cpu_ticks(target.pid());
    let mut samples = vec![Sample::take(target.pid(), cores)];
    let mut child = process::on_core(cores.generator, cores.is_ahead)
        .args(&tool.command)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(File::create(&out_path)?)
        .stderr(File::create(&err_path)?)
        .spawn()
        .with_context(|| format!("starting {}", tool.name))?;
    let (cpu, exit) = follow(&mut child, || samples.push(Sample::take(target.pid(), cores)))?;
    samples.push(Sample::take(target.pid(), cores));
    let target_cpu = process::cpu_ticks(target.pid()) - target_before;
    let waited_ns = process::waited_ns(target.pid()).saturating_sub(waited_before);
    let counted_after = target.counter.after(target)?;

    let active = active_span(&samples);
    let (first, last) = (&samples[active.0], &samples[active.1]);
    let active_s = (last.at - first.at).as_secs_f64();
    let (start, end) = (&samples[0], &samples[samples.len() - 1]);
    let used = end.busy_ticks() - start.busy_ticks();
    let hertz = process::ticks_per_second();
    let wall_ticks = (end.at - start.at).as_secs_f64() * hertz;
    let text = fs::read_to_string(&out_path).unwrap_or_default()
        + &fs::read_to_string(&err_path).unwrap_or_default();
    let own = (tool.own)(&text);
    let by_target = counted_before.zip(counted_after).map(|(from, to)| to.saturating_sub(from));
    let own_operations = own.map(|own| match own {
        Own::Count(count) => count,
        Own::Rate(rate) => rate * active_s,
    });
    Ok(Measured {
        operations: by_target.map(|count| count as f64).or(own_operations).unwrap_or(0.0),
        own_count: own.and_then(|own| matches!(own, Own::Count(_)).then_some(own_operations?)),
        cpu_s: cpu as f64 / hertz,
        active_s,
        busy_generator: first.generator.busy_share(last.generator),
        busy_target: first.target.busy_share(last.target),
        foreign: (used as f64 - cpu as f64 - target_cpu as f64).max(0.0) / wall_ticks,
        kept_waiting: waited_ns as f64 / 1e9 / active_s.max(1e-3),
        is_ahead: cores.is_ahead,
        exit,
    })
}

/// Waits for `child`, calling `sample` on the way, and returns the CPU ticks of its tree and its
/// exit code. The ticks are read between its end and its burial.
pub(crate) fn follow(child: &mut Child, mut sample: impl FnMut()) -> anyhow::Result<(u64, i32)> {
    let pid = Pid::from_raw(i32::try_from(child.id())?).context("a process has the number 0")?;
    let start = Instant::now();
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let mut asked_to_end = false;
    while waitid(WaitId::Pid(pid), ended)?.is_none() {
        sample();
        std::thread::sleep(SAMPLE_EVERY);
        let too_long = start.elapsed() > LIMIT;
        let signal = if asked_to_end { Signal::KILL } else { Signal::TERM };
        if too_long && (!asked_to_end || start.elapsed() > LIMIT + GRACE) {
            for member in process::tree(child.id()) {
                let member = i32::try_from(member).ok().and_then(Pid::from_raw);
                let _ = member.map(|member| kill_process(member, signal));
            }
            asked_to_end = true;
        }
    }
    let cpu = process::cpu_ticks(child.id());
    let status = child.wait()?;
    Ok((cpu, status.code().unwrap_or(-1)))
}

/// The first and the last sample between which the target used CPU.
fn active_span(samples: &[Sample]) -> (usize, usize) {
    let works = |pair: &[Sample]| pair[1].target_ticks > pair[0].target_ticks;
    let first = samples.windows(2).position(works);
    let last = samples.windows(2).rposition(works);
    first.zip(last).map_or((0, samples.len() - 1), |(first, last)| (first, last + 1))
}

struct Sample {
    at: Instant,
    generator: CoreTime,
    target: CoreTime,
    target_ticks: u64,
}

impl Sample {
    fn take(target: u32, cores: Cores) -> Sample {
        Sample {
            at: Instant::now(),
            generator: process::core_time(cores.generator),
            target: process::core_time(cores.target),
            target_ticks: process::cpu_ticks(target),
        }
    }

    fn busy_ticks(&self) -> u64 {
        self.generator.busy + self.target.busy
    }
}

impl CoreTime {
    fn busy_share(self, later: CoreTime) -> f64 {
        let total = later.total.saturating_sub(self.total);
        if total == 0 { 0.0 } else { (later.busy - self.busy) as f64 / total as f64 }
    }
}

const SAMPLE_EVERY: Duration = Duration::from_millis(50);
/// A tool that takes longer is asked to end, and counts as failed.
const LIMIT: Duration = Duration::from_secs(90);
const GRACE: Duration = Duration::from_secs(3);
/// A core that was busy for this share of the time was the limit.
const BUSY: f64 = 0.93;
/// More foreign time than this share of one core, and a run was disturbed.
const FOREIGN_MAX: f64 = 0.10;
/// A target that stood ready for a larger share of the time without running was disturbed too much,
/// although it went ahead of others. Below that the table tells the share: all tools have it alike.
const KEPT_WAITING_MAX: f64 = 0.5;
