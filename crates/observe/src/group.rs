//! A control group as a target: what the kernel accounts to all processes in it, also to those
//! that have ended.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::ObserveError;
use crate::host::Roots;
use crate::memory::Memory;

/// Accounts of a group, of either version of control groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    processor: Processor,
    memory: Option<Resident>,
    /// Folders with quotas and sets of cores.
    limits: Vec<PathBuf>,
    processes: PathBuf,
}

/// File with the processor time.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Processor {
    /// `cpuacct.usage`, nanoseconds (Documentation/admin-guide/cgroup-v1/cpuacct.rst).
    Usage(PathBuf),
    /// `usage_usec` of `cpu.stat` (Documentation/admin-guide/cgroup-v2.rst, "CPU Interface Files").
    Stat(PathBuf),
}

/// Files with the memory: the charge of the group, and its parts. Pages of files that were not
/// used for a while are subtracted, as `docker stats` does: the kernel reclaims them first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Resident {
    charged: PathBuf,
    parts: PathBuf,
    /// Name of those pages in the second file.
    inactive: &'static str,
}

impl Group {
    /// Opens the group at `path`: a folder, or its name below the groups of this machine.
    ///
    /// # Errors
    /// [`ObserveError::NoGroup`] if there is none, [`ObserveError::Unreadable`] without the right
    /// to read it.
    pub fn open(path: &str, roots: &Roots) -> Result<Group, ObserveError> {
        let top = roots.sys.join("fs/cgroup");
        let given = Path::new(path);
        // An existing folder is used as it is; otherwise it is a name below each mounted hierarchy.
        let inside = given.strip_prefix(&top).ok();
        let name: PathBuf = match inside {
            Some(rest) => rest.to_owned(),
            None => path.trim_start_matches('/').into(),
        };
        let mut folders = Vec::new();
        if given.is_absolute() && given.is_dir() {
            folders.push(given.to_owned());
        }
        folders.push(top.join(&name));
        let mounts: Vec<PathBuf> = hierarchies(&top);
        // `/sys/fs/cgroup/memory/a` and `/sys/fs/cgroup/cpuacct/a` are one group of version 1.
        let below = mounts.iter().find_map(|mount| given.strip_prefix(mount).ok());
        folders.extend(mounts.iter().map(|mount| mount.join(below.unwrap_or(&name))));
        folders.retain(|folder| folder.is_dir());
        Group::of_folders(path, folders)
    }

    fn of_folders(path: &str, folders: Vec<PathBuf>) -> Result<Group, ObserveError> {
        let with = |file: &str| folders.iter().map(|at| at.join(file)).find(|at| at.is_file());
        let usage = with("cpuacct.usage").map(Processor::Usage);
        let processor = usage.or_else(|| with("cpu.stat").map(Processor::Stat));
        let Some(processor) = processor else {
            return Err(ObserveError::NoGroup(path.to_owned()));
        };
        let parts = |charged: &Path| charged.with_file_name("memory.stat");
        let memory = match (with("memory.current"), with("memory.usage_in_bytes")) {
            (Some(charged), _) => {
                Some(Resident { parts: parts(&charged), charged, inactive: "inactive_file" })
            }
            (None, Some(charged)) => {
                Some(Resident { parts: parts(&charged), charged, inactive: "total_inactive_file" })
            }
            (None, None) => None,
        };
        let home = match &processor {
            Processor::Usage(file) | Processor::Stat(file) => file.with_file_name("cgroup.procs"),
        };
        let group = Group { processor, memory, limits: folders, processes: home };
        // A missing right is reported now, and not later as a missing figure.
        group.cpu_ns()?;
        Ok(group)
    }

    /// Processor time of the group since it was made, nanoseconds.
    ///
    /// # Errors
    /// If the group is gone.
    pub fn cpu_ns(&self) -> Result<u64, ObserveError> {
        let (path, text) = match &self.processor {
            Processor::Usage(path) | Processor::Stat(path) => (path, read(path)?),
        };
        let number = match &self.processor {
            Processor::Usage(_) => text.trim().parse().ok(),
            Processor::Stat(_) => value_of(&text, "usage_usec").map(|usec| usec * 1_000),
        };
        number.ok_or_else(|| ObserveError::Unexpected(path.display().to_string()))
    }

    /// Memory charged to the group, without pages of files that were not used for a while; `None`
    /// if the kernel does not account memory to it.
    pub fn memory(&self) -> Option<Memory> {
        let files = self.memory.as_ref()?;
        let charged: u64 = read(&files.charged).ok()?.trim().parse().ok()?;
        let parts = fs::read_to_string(&files.parts).unwrap_or_default();
        let inactive = value_of(&parts, files.inactive).unwrap_or(0);
        Some(Memory { rss_bytes: charged.saturating_sub(inactive), pss_bytes: None })
    }

    /// Processes in it now, without those of groups below it.
    pub fn processes(&self) -> u32 {
        let text = fs::read_to_string(&self.processes).unwrap_or_default();
        u32::try_from(text.lines().count()).unwrap_or(u32::MAX)
    }

    /// Cores whose time it may use: those of its set, at most as many as its quota allows
    /// (rounded up), at most `available`.
    pub fn cores(&self, available: u32) -> u32 {
        let text = |file: &str| {
            self.limits.iter().find_map(|folder| fs::read_to_string(folder.join(file)).ok())
        };
        let set = text("cpuset.cpus.effective").or_else(|| text("cpuset.effective_cpus"));
        let set = set.or_else(|| text("cpuset.cpus")).and_then(|list| listed(list.trim()));
        let of_two = text("cpu.max").and_then(|text| {
            let (quota, period) = text.trim().split_once(' ')?;
            Some((quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?))
        });
        let number = |file: &str| text(file)?.trim().parse::<u64>().ok();
        let of_one = number("cpu.cfs_quota_us").zip(number("cpu.cfs_period_us"));
        let quota = of_two.or(of_one).filter(|(_, period)| *period > 0);
        let quota = quota.map(|(quota, period)| quota.div_ceil(period).min(u64::from(u32::MAX)));
        let paid = quota.map_or(u32::MAX, |cores| cores as u32);
        available.min(set.unwrap_or(u32::MAX)).min(paid).max(1)
    }
}

/// The folders in which hierarchies are mounted beside each other: those of version 1, and of
/// version 2 beside them. Where version 2 is alone its files are in the top folder itself.
fn hierarchies(top: &Path) -> Vec<PathBuf> {
    if top.join("cgroup.controllers").is_file() {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(top) else { return Vec::new() };
    let mut found: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

/// The number after a word at the start of a line.
fn value_of(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Number of cores in a list such as `0-3,6` (cpuset(7), "List format").
fn listed(list: &str) -> Option<u32> {
    let count = |part: &str| -> Option<u32> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.checked_sub(first)? + 1)
    };
    list.split(',').map(count).sum()
}

fn read(path: &Path) -> Result<String, ObserveError> {
    fs::read_to_string(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ObserveError::NoGroup(path.display().to_string()),
        _ => ObserveError::Unreadable { path: path.display().to_string(), error },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose groups hold these files.
    struct Machine {
        roots: Roots,
    }

    impl Machine {
        fn new(name: &str, files: &[(&str, &str)]) -> Machine {
            let sys = std::env::temp_dir().join(format!("weigh-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = sys.join("fs/cgroup").join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Machine { roots: Roots { proc: "/proc".into(), sys } }
        }

        fn at(&self, path: &str) -> String {
            self.roots.sys.join("fs/cgroup").join(path).display().to_string()
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.roots.sys);
        }
    }

    #[test]
    fn version_2_has_one_folder() {
        let machine = Machine::new(
            "group-two",
            &[
                ("system.slice/web/cpu.stat", "usage_usec 1500\nuser_usec 1000\n"),
                ("system.slice/web/memory.current", "5000\n"),
                ("system.slice/web/memory.stat", "anon 1\ninactive_file 2000\n"),
                ("system.slice/web/cgroup.procs", "1\n2\n"),
                ("system.slice/web/cpu.max", "150000 100000\n"),
            ],
        );
        for path in ["system.slice/web".to_owned(), machine.at("system.slice/web")] {
            let group = Group::open(&path, &machine.roots).unwrap();
            assert_eq!(group.cpu_ns().unwrap(), 1_500_000);
            assert_eq!(group.memory().unwrap().rss_bytes, 3000);
            assert_eq!((group.processes(), group.cores(8), group.cores(1)), (2, 2, 1));
        }
    }

    #[test]
    fn version_1_has_a_folder_for_each_controller() {
        let machine = Machine::new(
            "group-one",
            &[
                ("cpuacct/docker/ab/cpuacct.usage", "77\n"),
                ("memory/docker/ab/memory.usage_in_bytes", "900\n"),
                ("memory/docker/ab/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n"),
                ("cpuset/docker/ab/cpuset.effective_cpus", "0-2,7\n"),
                ("cpu/docker/ab/cpu.cfs_quota_us", "-1\n"),
                ("cpu/docker/ab/cpu.cfs_period_us", "100000\n"),
            ],
        );
        let written = ["/docker/ab".to_owned(), machine.at("memory/docker/ab")];
        for path in written {
            let group = Group::open(&path, &machine.roots).unwrap();
            assert_eq!(group.cpu_ns().unwrap(), 77);
            assert_eq!(group.memory().unwrap().rss_bytes, 800);
            assert_eq!(group.cores(16), 4, "without a quota all of its set");
        }
    }

    #[test]
    fn a_group_that_is_not_there_or_accounts_no_memory_is_told() {
        let machine = Machine::new("group-none", &[("a/cpu.stat", "usage_usec 1\n")]);
        let error = Group::open("b", &machine.roots).unwrap_err();
        assert!(error.to_string().contains("no control group b"), "{error}");
        let group = Group::open("a", &machine.roots).unwrap();
        assert_eq!(group.memory(), None);
        fs::remove_file(machine.at("a/cpu.stat")).unwrap();
        assert!(group.cpu_ns().is_err(), "it is gone");
        assert_eq!((listed("0-3,6"), listed(""), listed("2")), (Some(5), None, Some(1)));
    }
}
