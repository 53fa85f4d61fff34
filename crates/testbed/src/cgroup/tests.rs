//! Shares written into folders that stand in for the kernel's, and, where this machine lets us,
//! into those of the kernel.

use std::fs;
use std::path::PathBuf;

use std::path::Path;

use super::*;
use crate::pinning::CoreSet;
use crate::process::{Ended, ManagedProcess, Start};

/// A folder that stands in for `/sys/fs/cgroup`.
struct Stand(PathBuf);

impl Stand {
    fn new(name: &str, files: &[(&str, &str)]) -> Stand {
        let folder = std::env::temp_dir().join(format!("weigh-{name}-{}", std::process::id()));
        for (file, text) in files {
            let file = folder.join("fs/cgroup").join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Stand(folder)
    }

    fn mounts(&self, mounts: &str, own: &str) -> Mounts {
        Mounts::parse(mounts, own, Some(&self.0))
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn share() -> Share {
    let cores = Some(CoreSet::of([2, 3]));
    Share { cores, memory_bytes: Some(4 << 30), ..Share::default() }
}

fn read(enclosure: &ControlGroup, file: &str) -> String {
    let groups = enclosure.groups.iter();
    let texts = groups.filter_map(|group| fs::read_to_string(group.folder().join(file)).ok());
    texts.collect()
}

#[test]
fn version_two_has_one_group_next_to_the_own_one() {
    let stand = Stand::new(
        "two",
        &[
            ("cgroup.controllers", "cpuset cpu memory pids"),
            ("user/cgroup.controllers", "cpuset cpu memory"),
            ("user/cgroup.subtree_control", "cpu memory"),
            ("user/session/cgroup.controllers", ""),
        ],
    );
    let mounts = stand.mounts(
        "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate",
        "0::/user/session",
    );
    let made = ControlGroup::make_below(&share(), &mounts);
    assert_eq!((made.groups.len(), made.missing()), (1, &[][..]));
    assert!(made.groups[0].folder().parent().unwrap().ends_with("fs/cgroup/user"));
    assert_eq!(read(&made, "cpuset.cpus"), "2,3");
    assert_eq!(read(&made, "cpu.max"), "200000 100000");
    assert_eq!(read(&made, "memory.max"), "4294967296");
    assert_eq!(read(&made, "memory.swap.max"), "0");
    let capped = Share { cpu_percent: Some(25), ..share() };
    let quarter = ControlGroup::make_below(&capped, &mounts);
    assert_eq!(read(&quarter, "cpu.max"), "25000 100000");
    let told: Vec<&str> = made.told().iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(told, ["2,3 (cgroup v2)", "200% (cgroup v2)", "4294967296B (cgroup v2)"]);
}

#[test]
fn version_one_has_a_group_in_each_hierarchy() {
    let stand = Stand::new(
        "one",
        &[("cpuset/cpuset.mems", "0"), ("cpu,cpuacct/x", ""), ("memory/box/x", "")],
    );
    let mounts = stand.mounts(
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
         34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
         35 31 0:32 /outer /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
         41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
        "4:memory:/outer/box\n3:cpuset:/\n1:cpu,cpuacct:/\n0::/",
    );
    let made = ControlGroup::make_below(&share(), &mounts);
    assert_eq!((made.groups.len(), made.missing()), (3, &[][..]));
    assert_eq!(
        (read(&made, "cpuset.cpus"), read(&made, "cpuset.mems")),
        ("2,3".into(), "0".into())
    );
    assert_eq!(read(&made, "cpu.cfs_quota_us"), "200000");
    assert_eq!(read(&made, "memory.limit_in_bytes"), "4294967296");
    let of_memory = made.groups.last().unwrap().folder().parent().unwrap();
    assert!(of_memory.ends_with("memory/box"), "below our own group: {of_memory:?}");
}

#[test]
fn what_cannot_be_enforced_is_said_and_done_as_well_as_may_be() {
    let stand = Stand::new("none", &[("x", "")]);
    let made = ControlGroup::make_below(&share(), &stand.mounts("", ""));
    let missing = made.missing().join("; ");
    assert!(missing.contains("affinity alone") && missing.contains("RLIMIT_DATA"), "{missing}");
    assert_eq!(made.data_bytes, Some(4 << 30));
    let capped = Share { cpu_percent: Some(25), ..share() };
    let made = ControlGroup::make_below(&capped, &stand.mounts("", ""));
    assert!(made.missing()[0].contains("not 25 % of a core"), "{:?}", made.missing());
    let share = Share { memory_bytes: Some(64 << 20), ..Share::default() };
    let made = ControlGroup::make_below(&share, &stand.mounts("", ""));
    let log = stand.0.join("log");
    let mut process = start("ulimit -d", &log, made);
    assert_eq!(process.wait_ended(WITHIN), Some(Ended::Status(0)));
    assert_eq!(process.log_tail(1), "65536", "KiB");
}

#[test]
fn what_a_killed_program_left_is_swept_and_what_lives_stays() {
    let stand = Stand::new("sweep", &[("x", "")]);
    let folder = stand.0.join("fs/cgroup");
    let (own, gone) = (std::process::id(), "weigh-1-7-0");
    let name = Group::make(
        &Wanted::Time(100),
        &stand.mounts("1 1 0:1 / /sys/fs/cgroup rw - cgroup cgroup rw,cpu", "1:cpu:/"),
        &mut Vec::new(),
    );
    assert_eq!(name, Ok(Version::One));
    fs::create_dir(folder.join(gone)).unwrap();
    group::sweep(&folder);
    let left = group::made_in(&folder);
    assert!(left.iter().all(|(_, pid, _)| *pid == own), "{left:?}");
    assert!(!folder.join(gone).exists());
}

/// The kernel's own groups of processor time, where we may make some. Those of memory are left
/// alone: whoever runs the tests in a group of its own counts in it.
#[test]
fn a_target_runs_in_the_groups_of_the_kernel_and_they_go_with_it() {
    let cores = CoreSet::allowed().unwrap().first();
    let made = ControlGroup::make(&Share { cores: Some(CoreSet::of([cores])), ..Share::default() });
    let test = "a_target_runs_in_the_groups_of_the_kernel_and_they_go_with_it";
    if made.groups.is_empty() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "no control groups: {:?}",
            made.missing()
        );
        eprintln!("SKIPPED {test}: {:?}", made.missing());
        return;
    }
    let folders: Vec<PathBuf> = made.groups.iter().map(|one| one.folder().to_owned()).collect();
    let log = std::env::temp_dir().join(format!("weigh-enclosed-{}", std::process::id()));
    let _ = fs::remove_file(&log);
    let script = "cat /proc/self/cgroup; (setsid sleep 1000 &) ; echo done";
    let mut process = start(script, &log, made);
    assert_eq!(process.wait_ended(WITHIN), Some(Ended::Status(0)));
    let own = format!("/weigh-{}-", std::process::id());
    assert_eq!(process.log_tail(100).matches(&own).count(), folders.len());
    // One that left the process group is in the control group still, and goes with it.
    drop(process);
    assert!(folders.iter().all(|folder| !folder.exists()), "{folders:?}");
    fs::remove_file(log).unwrap();
}

fn start(script: &str, log: &Path, enclosure: ControlGroup) -> ManagedProcess {
    ManagedProcess::start(&Start {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        environment: Vec::new(),
        folder: std::env::temp_dir(),
        log: Some(log.to_owned()),
        cores: None,
        enclosure: Some(Arc::new(enclosure)),
        piped: false,
        door: None,
    })
    .unwrap()
}

const WITHIN: std::time::Duration = std::time::Duration::from_secs(20);
