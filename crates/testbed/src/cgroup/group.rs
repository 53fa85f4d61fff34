//! One control group made by Weighbridge: a folder whose name holds the process that made it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::mounts::{Mount, Mounts, Version, lists};
use crate::pinning::CoreSet;

/// Resources requested for a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The cores. Their number also limits the processor time.
    pub cores: Option<CoreSet>,
    /// Processor time in percent of one core, in place of all the time of its cores.
    pub cpu_percent: Option<u32>,
    /// Memory of all processes together, bytes.
    pub memory_bytes: Option<u64>,
}

/// One resource requested of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The cores that may be used.
    Set(CoreSet),
    /// Processor time in percent of one core.
    Time(u32),
    /// Memory in bytes.
    Memory(u64),
}

/// A folder below the existing groups. Dropping it kills every process left in it and removes the
/// folder.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
    /// Controllers that were enabled for child groups by this program, with the folder of each.
    handed_down: Vec<(PathBuf, &'static str)>,
}

impl Wanted {
    /// All requested resources.
    pub(super) fn of(share: &Share) -> Vec<Wanted> {
        let cores = share.cores.as_ref();
        let time = share.cpu_percent.or(cores.map(|cores| cores.count() * 100));
        let set = cores.cloned().map(Wanted::Set);
        let memory = share.memory_bytes.map(Wanted::Memory);
        set.into_iter().chain(time.map(Wanted::Time)).chain(memory).collect()
    }

    /// Key under which it is reported.
    pub(super) fn key(&self) -> &'static str {
        match self {
            Wanted::Set(_) => SET,
            Wanted::Time(_) => "target.cores.quota",
            Wanted::Memory(_) => "target.memory",
        }
    }

    /// The resource in words.
    pub(super) fn words(&self) -> String {
        match self {
            Wanted::Set(cores) => format!("{cores}"),
            Wanted::Time(percent) => format!("{percent}%"),
            Wanted::Memory(bytes) => format!("{bytes}B"),
        }
    }

    fn controller(&self) -> &'static str {
        match self {
            Wanted::Set(_) => "cpuset",
            Wanted::Time(_) => "cpu",
            Wanted::Memory(_) => "memory",
        }
    }

    fn write(&self, version: Version, folder: &Path) -> io::Result<()> {
        let put = |file: &str, text: String| fs::write(folder.join(file), text);
        match (self, version) {
            (Wanted::Set(cores), Version::One) => {
                // A set without memory nodes accepts no process: take those of the group above.
                let above = folder.parent().unwrap_or(folder).join("cpuset.mems");
                put("cpuset.mems", fs::read_to_string(above)?)?;
                put("cpuset.cpus", cores.to_string())
            }
            (Wanted::Set(cores), Version::Two) => put("cpuset.cpus", cores.to_string()),
            (Wanted::Time(percent), Version::One) => {
                put("cpu.cfs_period_us", PERIOD_US.to_string())?;
                put("cpu.cfs_quota_us", (percent * PERIOD_US / 100).to_string())
            }
            (Wanted::Time(percent), Version::Two) => {
                put("cpu.max", format!("{} {PERIOD_US}", percent * PERIOD_US / 100))
            }
            (Wanted::Memory(bytes), Version::One) => {
                put("memory.limit_in_bytes", bytes.to_string())
            }
            (Wanted::Memory(bytes), Version::Two) => {
                put("memory.max", bytes.to_string())?;
                // What is swapped out is not gone. Kernels without swap accounting have no file.
                match put("memory.swap.max", "0".to_owned()) {
                    Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
                    _ => Ok(()),
                }
            }
        }
    }
}

impl Group {
    /// Ensures that a group of `groups`, or a new one, gives what is wanted. Returns the reason
    /// otherwise.
    pub(super) fn make(
        wanted: &Wanted,
        mounts: &Mounts,
        groups: &mut Vec<Group>,
    ) -> Result<Version, String> {
        let controller = wanted.controller();
        let mount = mounts
            .with(controller)
            .ok_or_else(|| format!("no control group has the controller {controller}"))?;
        for folder in mount.upwards() {
            sweep(folder);
        }
        let in_place = |group: &&mut Group| group.folder.starts_with(&mount.top);
        if let Some(group) = groups.iter_mut().find(in_place) {
            return group.give(wanted, mount);
        }
        let mut group = Group::below(mount, controller)?;
        let given = group.give(wanted, mount)?;
        groups.push(group);
        Ok(given)
    }

    /// The folder of the group.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn give(&mut self, wanted: &Wanted, mount: &Mount) -> Result<Version, String> {
        let controller = wanted.controller();
        if mount.version == Version::Two {
            let above = self.folder.parent().unwrap_or(&self.folder).to_owned();
            self.handed_down.extend(hand_down(&above, controller)?);
        }
        let written = wanted.write(mount.version, &self.folder);
        written.map_err(|error| format!("{}: {error}", self.folder.display()))?;
        Ok(mount.version)
    }

    /// A new folder in the group of this program; of version 2 in the nearest one above that has
    /// the
    /// controller, since a group with processes cannot hand controllers down.
    fn below(mount: &Mount, controller: &'static str) -> Result<Group, String> {
        let name = own_name();
        let mut reason = format!("no control group above enables {controller} for its children");
        for above in mount.upwards() {
            let handed_down = match mount.version {
                Version::One => Vec::new(),
                Version::Two => match hand_down(above, controller) {
                    Ok(handed_down) => handed_down,
                    Err(why) => {
                        reason = why;
                        continue;
                    }
                },
            };
            let folder = above.join(&name);
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(Group { folder, handed_down }),
                Err(error) => reason = format!("{}: {error}", folder.display()),
            }
            if mount.version == Version::One {
                break;
            }
        }
        Err(reason)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let deadline = Instant::now() + REMOVED_WITHIN;
        while let Err(error) = fs::remove_dir(&self.folder) {
            if error.kind() != io::ErrorKind::ResourceBusy || Instant::now() >= deadline {
                break;
            }
            end_all(&self.folder);
            std::thread::sleep(REMOVAL_PAUSE);
        }
        for (above, controller) in &self.handed_down {
            // Another process of Weighbridge may use it meanwhile: the last one disables it.
            if made_in(above).is_empty() {
                let _ = fs::write(above.join(HANDED_DOWN), format!("-{controller}"));
            }
        }
    }
}

/// Ensures that a group of version 2 enables a controller for its children. Returns those that
/// were not enabled before.
fn hand_down(
    above: &Path,
    controller: &'static str,
) -> Result<Vec<(PathBuf, &'static str)>, String> {
    let file = above.join(HANDED_DOWN);
    if lists(&file, controller) {
        return Ok(Vec::new());
    }
    if !lists(&above.join("cgroup.controllers"), controller) {
        return Err(format!("{} has no controller {controller}", above.display()));
    }
    fs::write(&file, format!("+{controller}"))
        .map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(vec![(above.to_owned(), controller)])
}

/// Kills every process in a group.
fn end_all(folder: &Path) {
    let text = fs::read_to_string(folder.join(PROCESSES)).unwrap_or_default();
    let numbers = text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?));
    for pid in numbers {
        // It may have ended by itself meanwhile.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Removes the groups in a folder whose programs have ended.
pub(super) fn sweep(folder: &Path) {
    for (group, pid, started) in made_in(folder) {
        if started_at(pid) != Some(started) {
            // A process that is still in it keeps it.
            let _ = fs::remove_dir(group);
        }
    }
}

/// Weighbridge's groups in a folder, with the process that made each and the time at which that
/// process started.
pub(super) fn made_in(folder: &Path) -> Vec<(PathBuf, u32, u64)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let ours = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let mut parts = name.to_str()?.strip_prefix(PREFIX)?.split('-');
        let (pid, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some((entry.path(), pid, started))
    };
    entries.filter_map(|entry| ours(entry.ok()?)).collect()
}

/// Returns a name that no other program and no other group of this one has.
fn own_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let pid = std::process::id();
    let started = started_at(pid).unwrap_or_default();
    format!("{PREFIX}{pid}-{started}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Start time of a process, in clock ticks since boot (proc(5), field 22 of `stat`).
fn started_at(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, which may hold anything, come the fields from 3 on.
    text.rsplit_once(')')?.1.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// Prefix of the names of Weighbridge's groups.
const PREFIX: &str = "weigh-";

/// File of version 2 that lists the controllers enabled for the children of a group.
const HANDED_DOWN: &str = "cgroup.subtree_control";

/// The kernel's own default of `cpu.cfs_period_us` and `cpu.max`.
const PERIOD_US: u32 = 100_000;

/// A process that was killed leaves its group when it has ended.
const REMOVED_WITHIN: Duration = Duration::from_secs(2);
const REMOVAL_PAUSE: Duration = Duration::from_millis(2);

/// Key of the set of cores.
pub(crate) const SET: &str = "target.cores";

/// File that lists the processes of a group and accepts new ones.
pub(crate) const PROCESSES: &str = "cgroup.procs";
