//! Keeps a reader out of the way of what is measured: it runs when a core has nothing else to do,
//! and on cores that neither generator nor target use, if there are any.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Lets the calling thread, and the threads it starts from now on, run only when a core is idle
/// (`SCHED_IDLE`).
///
/// # Errors
/// If the kernel refuses: nothing changes.
#[expect(unsafe_code, reason = "no safe crate here sets a scheduling policy")]
pub fn give_way() -> io::Result<()> {
    let priority: libc::c_int = 0;
    // The call itself: musl's function only fails.
    // SAFETY: 0 is the calling thread; the kernel reads a sched_param, which is one number
    // (sched_setscheduler(2)) and lives here.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_IDLE, &raw const priority)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets the calling thread use only cores to which neither the process `generator` nor one of its
/// children is bound. Without such a core nothing changes.
///
/// # Errors
/// If the kernel does not report or take an affinity.
pub fn leave_cores_of(generator: u32) -> io::Result<()> {
    let mask = sched_getaffinity(None)?;
    let allowed: BTreeSet<usize> = (0..CpuSet::MAX_CPU).filter(|core| mask.is_set(*core)).collect();
    let bound = bound_cores(Path::new("/proc"), generator, allowed.len());
    let free: Vec<usize> = allowed.difference(&bound).copied().collect();
    if bound.is_empty() || free.is_empty() {
        return Ok(());
    }
    let mut mask = CpuSet::new();
    free.into_iter().for_each(|core| mask.set(core));
    Ok(sched_setaffinity(None, &mask)?)
}

/// CPU time of this process so far, seconds.
pub fn own_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The cores of threads that may use fewer than `all`: of a process and of its children.
fn bound_cores(proc: &Path, pid: u32, all: usize) -> BTreeSet<usize> {
    let mut bound = BTreeSet::new();
    let mut open = vec![pid];
    while let Some(pid) = open.pop() {
        let tasks = fs::read_dir(proc.join(pid.to_string()).join("task"));
        for task in tasks.into_iter().flatten().flatten() {
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            let cores = list.map(cores_in).unwrap_or_default();
            if cores.len() < all {
                bound.extend(cores);
            }
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            open.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    bound
}

/// Reads a list such as `0,2-3` (cpuset(7)).
fn cores_in(list: &str) -> BTreeSet<usize> {
    let range = |part: &str| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        Some(low.trim().parse::<usize>().ok()?..=high.trim().parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(proc: &Path, pid: u32, cores: &str, children: &str) {
        let task = proc.join(format!("{pid}/task/{pid}"));
        fs::create_dir_all(&task).unwrap();
        let status = format!("Name:\tx\nCpus_allowed_list:\t{cores}\n");
        fs::write(task.join("status"), status).unwrap();
        fs::write(task.join("children"), children).unwrap();
    }

    /// The generator on core 3, its target on core 1, a helper that is bound to nothing.
    #[test]
    fn cores_of_bound_threads_and_children_are_found() {
        let proc = tempfile::tempdir().unwrap();
        task(proc.path(), 10, "3", "11 12 ");
        task(proc.path(), 11, "1", "");
        task(proc.path(), 12, "0-3", "");
        assert_eq!(bound_cores(proc.path(), 10, 4), BTreeSet::from([1, 3]));
        assert!(bound_cores(proc.path(), 99, 4).is_empty());
    }

    #[test]
    fn lists_of_the_kernel_are_read() {
        assert_eq!(cores_in("\t0,2-3\n"), BTreeSet::from([0, 2, 3]));
        assert!(cores_in("").is_empty());
    }

    #[test]
    fn own_cpu_time_grows() {
        let before = own_cpu_s();
        let mut sum = 0u64;
        while own_cpu_s() - before < 0.01 {
            sum = sum.wrapping_add(std::hint::black_box(1));
        }
        assert!(sum > 0);
    }
}
