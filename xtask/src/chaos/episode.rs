//! One signal: the command that it hits, the moment, and what must hold afterwards.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::left::{self, Traces};

/// What is started, whom the signal hits, which one and when.
pub(super) struct Episode {
    pub(super) kind: Kind,
    signal: (&'static str, Option<Signal>),
    hits_target: bool,
    /// Time from the start of the program to the signal.
    pub(super) after: Duration,
    mark: String,
}

/// Commands that are hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Compare,
    Run,
    Limit,
}

/// Findings of an episode.
pub(super) struct Outcome {
    /// Trials that were finished when the program ended.
    pub(super) kept: u64,
    /// False if the program had ended before.
    pub(super) was_hit: bool,
    pub(super) faults: Vec<String>,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::Compare, Kind::Run, Kind::Limit];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Compare => "compare",
            Kind::Run => "run",
            Kind::Limit => "limit",
        }
    }

    fn words(self) -> &'static [&'static str] {
        match self {
            Kind::Compare => &COMPARE,
            Kind::Run => &["run", "plan.toml"],
            Kind::Limit => &["limit", "tcp", "--preset", "quick", "--budget", "8s"],
        }
    }
}

impl Episode {
    /// The episode of this number: the same for a seed on every machine.
    pub(super) fn chosen(seed: u64, number: u64) -> Episode {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number;
        let mut next = |below: u64| {
            // SplitMix64 (Steele, Lea and Flood 2014).
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)) % below
        };
        let kind = Kind::ALL[next(5).min(2) as usize];
        let signal = SIGNALS[next(SIGNALS.len() as u64) as usize];
        let hits_target = next(4) == 0;
        let after = Duration::from_millis(next(LENGTH_MS));
        let mark = format!("{seed}-{number}-{}", std::process::id());
        Episode { kind, signal, hits_target, after, mark }
    }

    pub(super) fn victim(&self) -> &'static str {
        if self.hits_target { "target" } else { "weigh" }
    }

    pub(super) fn signal_name(&self) -> &'static str {
        self.signal.0
    }

    /// Runs the command, sends the signal, resumes the run and checks what is there.
    pub(super) fn carry_out(&self, binary: &Path, folder: &Path) -> anyhow::Result<Outcome> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        std::fs::create_dir_all(folder.join("tmp"))?;
        let mut faults = Vec::new();
        if self.kind == Kind::Run {
            let words = [&COMPARE[..], &["--dry", "--save-plan", "plan.toml"]].concat();
            self.command(binary, folder, &words).status()?;
        }
        let before = Traces::seen()?;
        let mut program = self.command(binary, folder, self.kind.words()).spawn()?;
        std::thread::sleep(self.after);
        let was_hit = self.hit(&mut program)?;
        if !ends_within(&mut program, PATIENCE)? {
            faults.push(format!("weigh did not end within {PATIENCE:?}"));
            program.kill()?;
            program.wait()?;
        }
        faults.extend(left::processes(&self.mark));
        let journal = left::journal(folder)?;
        let kept = finished(&journal);
        // A search is not resumed, and a run that has no journal yet has nothing to resume.
        if self.kind != Kind::Limit && !journal.is_empty() {
            let words = ["run", "--resume", "latest"];
            let resumed = self.command(binary, folder, &words).status()?;
            let after = left::journal(folder)?;
            faults.extend(compared(&kept, &after, resumed.code()));
            faults.extend(left::processes(&self.mark));
        }
        faults.extend(before.and_now(&Traces::seen()?));
        // Nothing can remove the live file of a process that was killed, until the run is resumed.
        let may_keep_live =
            self.kind == Kind::Limit && self.signal.0 == "KILL" && !self.hits_target;
        faults.extend(left::files(folder, may_keep_live)?);
        Ok(Outcome { kept: kept.len() as u64, was_hit, faults })
    }

    fn command(&self, binary: &Path, folder: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(binary);
        command
            .args(words)
            .current_dir(folder)
            .env(left::MARK, &self.mark)
            .env("TMPDIR", folder.join("tmp"))
            .env("XDG_CACHE_HOME", folder.join("../cache"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("stderr")).map_or(Stdio::null(), Into::into));
        command
    }

    /// Sends the signal; false if there was no process to send it to.
    fn hit(&self, program: &mut Child) -> anyhow::Result<bool> {
        if program.try_wait()?.is_some() {
            return Ok(false);
        }
        let own = program.id();
        let victim = match self.hits_target {
            false => Some(own),
            true => left::marked(&self.mark)
                .into_iter()
                .find(|(pid, words)| *pid != own && words.contains(" serve "))
                .map(|(pid, _)| pid),
        };
        let Some(pid) = victim.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) else {
            return Ok(false);
        };
        match self.signal.1 {
            Some(signal) => Ok(kill_process(pid, signal).is_ok()),
            None => {
                let was_stopped = kill_process(pid, Signal::STOP).is_ok();
                std::thread::sleep(STOPPED_FOR);
                Ok(kill_process(pid, Signal::CONT).is_ok() && was_stopped)
            }
        }
    }
}

/// True once the program has ended; it is reaped.
fn ends_within(program: &mut Child, patience: Duration) -> anyhow::Result<bool> {
    let begun = Instant::now();
    while begun.elapsed() < patience {
        if program.try_wait()?.is_some() {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(false)
}

/// Results that count, by the trial's ID: those without the warning `interrupted`.
fn finished(journal: &[Value]) -> BTreeMap<String, Vec<&Value>> {
    let mut found: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for event in journal.iter().filter(|event| event["event"] == "trial_finished") {
        let doubts = event["doubts"].as_array().map(Vec::as_slice).unwrap_or_default();
        if doubts.iter().all(|doubt| doubt["code"] != "interrupted") {
            found.entry(event["trial"].to_string()).or_default().push(event);
        }
    }
    found
}

/// What a resumed run must hold: all earlier results as they were, each trial once, and all trials.
fn compared(
    kept: &BTreeMap<String, Vec<&Value>>,
    journal: &[Value],
    code: Option<i32>,
) -> Vec<String> {
    let mut faults = Vec::new();
    let now = finished(journal);
    for (trial, results) in kept {
        if now.get(trial).is_none_or(|own| own.first() != results.first()) {
            faults.push(format!("the result of trial {trial} is lost or another one"));
        }
    }
    for (trial, results) in now.iter().filter(|(_, results)| results.len() > 1) {
        faults.push(format!("trial {trial} is there {} times", results.len()));
    }
    let failed = journal.iter().filter(|event| event["event"] == "trial_failed").count();
    if now.len() + failed < TRIALS {
        let (count, all) = (now.len(), TRIALS);
        faults
            .push(format!("{count} of {all} trials after the run was resumed, exit code {code:?}"));
    }
    for event in now.values().flatten() {
        let term = |name: &str| event["ledger"][name].as_u64().unwrap_or(0);
        let is_counted = event["ledger"]["delivered"].is_u64();
        let adds_up = term("scheduled") == term("not_sent") + term("sent")
            && (!is_counted || term("sent") == term("delivered") + term("late") + term("lost"));
        if !adds_up {
            faults.push(format!("the ledger of trial {} does not add up", event["trial"]));
        }
    }
    faults
}

/// Two cases with three repetitions, half a second each.
const COMPARE: [&str; 17] = [
    "compare",
    "tcp",
    "mqtt",
    "-q",
    "1",
    "--pattern",
    "publish",
    "-R",
    "500/s",
    "-d",
    "300ms",
    "-c",
    "4",
    "--reps",
    "3",
    "--warmup",
    "100ms",
];
const TRIALS: usize = 6;

/// About the length of each command, so that every phase of it is hit, milliseconds.
const LENGTH_MS: u64 = 8_000;
/// Longest time for a command to end after the signal.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between STOP and CONT.
const STOPPED_FOR: Duration = Duration::from_millis(300);

/// Signals by name; `None` stands for STOP and CONT.
pub(super) const SIGNALS: [(&str, Option<Signal>); 4] = [
    ("KILL", Some(Signal::KILL)),
    ("TERM", Some(Signal::TERM)),
    ("INT", Some(Signal::INT)),
    ("STOP, CONT", None),
];
