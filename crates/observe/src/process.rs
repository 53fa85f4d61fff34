//! Processes of the machine: `/proc/PID/stat`, and which descends from which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::ObserveError;

/// A process as `/proc/PID/stat` shows it (proc(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// Its number.
    pub pid: u32,
    /// Its parent's number; 0 where the parent is outside this namespace.
    pub parent: u32,
    /// Processor time of all its threads, ended ones too, in clock ticks: `utime + stime`.
    pub own_ticks: u64,
    /// Processor time of children it has waited for, and of their children, in ticks:
    /// `cutime + cstime`.
    pub waited_ticks: u64,
    /// Threads it has now.
    pub threads: u32,
    /// When it started, in ticks since the host started. With the number it is an identity,
    /// as numbers are used again.
    pub started_ticks: u64,
}

impl ProcessStat {
    /// Reads the stat of one process.
    ///
    /// # Errors
    /// [`ObserveError::NoProcess`] if it is not there.
    pub fn read(pid: u32) -> Result<ProcessStat, ObserveError> {
        let path = format!("/proc/{pid}/stat");
        let text = fs::read_to_string(&path).map_err(|_| ObserveError::NoProcess(pid))?;
        ProcessStat::parse(&text).ok_or(ObserveError::Unexpected(path))
    }

    /// Parses a line of `/proc/PID/stat`. The name in parentheses may itself hold blanks
    /// and parentheses, so the fields are counted from the last closing one.
    pub fn parse(line: &str) -> Option<ProcessStat> {
        let pid = line.split_once(' ')?.0.parse().ok()?;
        let fields: Vec<&str> = line.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        // proc(5) counts from 1 and `state` is its field 3, which here has index 0.
        let number = |field: usize| fields.get(field - 3)?.parse::<i64>().ok();
        let ticks = |field: usize| number(field).map(|ticks| ticks.max(0).unsigned_abs());
        Some(ProcessStat {
            pid,
            parent: u32::try_from(number(4)?).ok()?,
            own_ticks: ticks(14)? + ticks(15)?,
            waited_ticks: ticks(16)? + ticks(17)?,
            threads: u32::try_from(number(20)?).ok()?,
            started_ticks: ticks(22)?,
        })
    }
}

/// Name of a process (`/proc/PID/comm`, at most 15 characters); `None` if it does not exist.
pub fn name(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(text.trim_end().to_owned()).filter(|name| !name.is_empty())
}

/// A process, or several, and everything that descends from them. A descendant stays in the tree
/// when its parent ends and it is handed to another one.
#[derive(Debug)]
pub struct Tree {
    root: u32,
    /// Number and start of every member alive at the last reading.
    members: BTreeMap<u32, u64>,
    /// The newest process ID when all processes were last read.
    newest: Option<u32>,
    looks_since_all: u32,
}

/// Number of readings after which all processes are read again, whatever the kernel reports.
const LOOKS_AT_MEMBERS: u32 = 16;

impl Tree {
    /// A tree with this process at its root.
    ///
    /// # Errors
    /// [`ObserveError::NoProcess`] if it is not there.
    pub fn new(root: u32) -> Result<Tree, ObserveError> {
        Tree::of(&[root])
    }

    /// A tree with these processes at its roots.
    ///
    /// # Errors
    /// [`ObserveError::NoProcess`] if one of them is not there.
    pub fn of(roots: &[u32]) -> Result<Tree, ObserveError> {
        let started = |root: &u32| Ok((*root, ProcessStat::read(*root)?.started_ticks));
        let members = roots.iter().map(started).collect::<Result<_, ObserveError>>()?;
        let root = roots.first().copied().unwrap_or_default();
        Ok(Tree { root, members, newest: None, looks_since_all: 0 })
    }

    /// The process ID of the first root.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// The existing members, zombies included, in the order of their numbers. If no process was
    /// started since the last reading, only the members are read, which is much cheaper on a
    /// machine
    /// with many processes.
    pub fn look(&mut self) -> Vec<ProcessStat> {
        let newest = newest_number();
        self.looks_since_all += 1;
        let known = newest.is_some() && newest == self.newest;
        let found = if known && self.looks_since_all < LOOKS_AT_MEMBERS {
            self.known_members()
        } else {
            (self.newest, self.looks_since_all) = (newest, 0);
            self.all_members()
        };
        self.members = found.iter().map(|stat| (stat.pid, stat.started_ticks)).collect();
        found
    }

    fn known_members(&self) -> Vec<ProcessStat> {
        let alive = |(pid, started): (&u32, &u64)| {
            ProcessStat::read(*pid).ok().filter(|stat| stat.started_ticks == *started)
        };
        self.members.iter().filter_map(alive).collect()
    }

    fn all_members(&self) -> Vec<ProcessStat> {
        let all = all_processes();
        let mut inside: BTreeSet<u32> = all
            .values()
            .filter(|stat| self.members.get(&stat.pid) == Some(&stat.started_ticks))
            .map(|stat| stat.pid)
            .collect();
        loop {
            let before = inside.len();
            for stat in all.values() {
                if inside.contains(&stat.parent) {
                    inside.insert(stat.pid);
                }
            }
            if inside.len() == before {
                break;
            }
        }
        inside.iter().map(|pid| all[pid]).collect()
    }
}

/// The last ID that the kernel gave to a process or thread: the last word of `/proc/loadavg`.
fn newest_number() -> Option<u32> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_ascii_whitespace().last()?.parse().ok()
}

fn all_processes() -> BTreeMap<u32, ProcessStat> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|pid| Some((pid, ProcessStat::read(pid).ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_parentheses_is_no_obstacle() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194304 100 0 0 0 11 22 33 44 20 0 5 0 9999 1 2";
        let stat = ProcessStat::parse(line).unwrap();
        assert_eq!((stat.pid, stat.parent, stat.threads), (42, 7, 5));
        assert_eq!((stat.own_ticks, stat.waited_ticks, stat.started_ticks), (33, 77, 9999));
    }

    #[test]
    fn a_cut_line_is_refused() {
        assert_eq!(ProcessStat::parse("42 (x) S 7 42"), None);
        assert_eq!(ProcessStat::parse(""), None);
    }

    #[test]
    fn the_tree_holds_ourselves() {
        let own = std::process::id();
        let members = Tree::new(own).unwrap().look();
        assert!(members.iter().any(|stat| stat.pid == own));
    }

    #[test]
    fn a_missing_root_is_named() {
        let error = Tree::new(u32::MAX).unwrap_err();
        assert!(error.to_string().contains("no process"), "{error}");
    }
}
