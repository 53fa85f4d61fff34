//! What a program could leave behind: processes, mounts, control groups, network namespaces, files.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;

/// Variable of the environment that marks all processes of an episode.
pub(super) const MARK: &str = "WEIGH_CHAOS";

/// Mounts, control groups and named network namespaces of the machine.
pub(super) struct Traces {
    mounts: BTreeSet<String>,
    groups: BTreeSet<String>,
    namespaces: BTreeSet<String>,
}

impl Traces {
    /// Reads those that are there.
    pub(super) fn seen() -> anyhow::Result<Traces> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").context("mountinfo")?;
        let mounts = mounts.lines().filter_map(|line| line.split(' ').nth(4).map(str::to_owned));
        let mut groups = BTreeSet::new();
        names_below(Path::new("/sys/fs/cgroup"), &mut groups, "weigh");
        let mut namespaces = BTreeSet::new();
        names_below(Path::new("/run/netns"), &mut namespaces, "");
        Ok(Traces { mounts: mounts.collect(), groups, namespaces })
    }

    /// What is there now and was not before.
    pub(super) fn and_now(&self, now: &Traces) -> Vec<String> {
        let pairs = [
            ("mount", &self.mounts, &now.mounts),
            ("control group", &self.groups, &now.groups),
            ("network namespace", &self.namespaces, &now.namespaces),
        ];
        let new = |(what, before, now): (&str, &BTreeSet<String>, &BTreeSet<String>)| {
            let new: Vec<String> =
                now.difference(before).map(|name| format!("left behind: {what} {name}")).collect();
            new
        };
        pairs.into_iter().flat_map(new).collect()
    }
}

/// Folders whose name contains `word`, up to three levels down.
fn names_below(folder: &Path, names: &mut BTreeSet<String>, word: &str) {
    let mut pending = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = pending.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if name.contains(word) && (path.is_dir() || word.is_empty()) {
                names.insert(path.display().to_string());
            }
            if path.is_dir() && depth < 3 {
                pending.push((path, depth + 1));
            }
        }
    }
}

/// Processes of an episode that still run some seconds after it ended.
pub(super) fn processes(mark: &str) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let found = marked(mark);
        if found.is_empty() || begun.elapsed() > PATIENCE {
            let named = found.into_iter();
            return named.map(|(pid, words)| format!("left behind: {pid} {words}")).collect();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Processes of an episode, with their command lines.
pub(super) fn marked(mark: &str) -> Vec<(u32, String)> {
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|found| found.file_name().to_string_lossy().parse().ok());
    let words = |pid: u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        (pid, String::from_utf8_lossy(&words).replace('\0', " "))
    };
    pids.filter(|pid| has_mark(*pid, mark)).map(words).collect()
}

/// True if a process belongs to an episode.
pub(super) fn has_mark(pid: u32, mark: &str) -> bool {
    let entry = format!("{MARK}={mark}");
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|own| own == entry.as_bytes())
}

/// Files that only a program in progress has, except those whose name begins as one of `may_stay`
/// does, with what is in them.
pub(super) fn files(folder: &Path, may_stay: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    let mut pending = vec![folder.join("tmp"), folder.join("runs")];
    while let Some(place) = pending.pop() {
        for entry in std::fs::read_dir(&place).into_iter().flatten() {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if may_stay.iter().any(|own| name.starts_with(own)) {
                continue;
            }
            let is_temporary = path.starts_with(folder.join("tmp"));
            if is_temporary || name == LIVE || name.ends_with(".tmp") {
                faults.push(format!("left behind: {}", path.display()));
            } else if path.is_dir() {
                pending.push(path);
            }
        }
    }
    Ok(faults)
}

/// The live file of a run.
pub(super) const LIVE: &str = "live.jsonl";

/// How the name of a server's folder begins.
pub(super) const HOME: &str = "weigh-target-";

/// Time for processes to be reaped.
const PATIENCE: Duration = Duration::from_secs(5);
