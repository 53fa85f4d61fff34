//! Subject of a sampler: a process with its descendants, or a control group.

use crate::ObserveError;
use crate::cpu::{Accounting, CpuReading, CpuTree};
use crate::group::Group;
use crate::memory::{Memory, proportional, resident};

/// A process tree or a control group.
#[derive(Debug)]
pub enum Subject {
    /// A process and its descendants.
    Tree(CpuTree),
    /// A control group.
    Group(GroupTime),
}

/// A control group whose time counts from the first sample.
#[derive(Debug)]
pub struct GroupTime {
    group: Group,
    base_ns: u64,
    highest_ns: u64,
}

/// One sample of a subject.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Processor time since the first sample, and its source.
    pub reading: CpuReading,
    /// Memory; zeros if unknown.
    pub memory: Memory,
    /// True if the subject has ended: the figures are the last known ones.
    pub is_gone: bool,
}

impl Subject {
    /// This process and its descendants.
    ///
    /// # Errors
    /// [`ObserveError::NoProcess`] if it is not there.
    pub fn tree(root: u32) -> Result<Subject, ObserveError> {
        Subject::trees(&[root])
    }

    /// These processes and their descendants.
    ///
    /// # Errors
    /// [`ObserveError::NoProcess`] if one of them is not there.
    pub fn trees(roots: &[u32]) -> Result<Subject, ObserveError> {
        CpuTree::of(roots).map(Subject::Tree)
    }

    /// This group.
    ///
    /// # Errors
    /// If it is gone.
    pub fn group(group: Group) -> Result<Subject, ObserveError> {
        let base_ns = group.cpu_ns()?;
        Ok(Subject::Group(GroupTime { group, base_ns, highest_ns: 0 }))
    }

    /// Cores it may use: those of its affinity, and within its quota.
    pub fn cores(&self) -> u32 {
        let here = crate::host::facts().cores.max(1);
        match self {
            Subject::Tree(tree) => {
                let pid = i32::try_from(tree.root()).ok().and_then(rustix::process::Pid::from_raw);
                let allowed = pid.and_then(|pid| rustix::thread::sched_getaffinity(Some(pid)).ok());
                allowed.map_or(here, |set| set.count().max(1))
            }
            Subject::Group(own) => own.group.cores(online()),
        }
    }

    /// Takes a sample; `with_proportional` memory costs more.
    pub fn look(&mut self, with_proportional: bool) -> Look {
        match self {
            Subject::Tree(tree) => {
                let (reading, members) = tree.read_with_members();
                let pids = members.iter().map(|stat| stat.pid);
                let memory = if with_proportional { proportional(pids) } else { resident(pids) };
                Look { reading, memory, is_gone: members.is_empty() }
            }
            Subject::Group(own) => own.look(),
        }
    }
}

impl GroupTime {
    fn look(&mut self) -> Look {
        let now = self.group.cpu_ns();
        let used = now.as_ref().map_or(0, |now| now.saturating_sub(self.base_ns));
        self.highest_ns = self.highest_ns.max(used);
        let reading = CpuReading {
            cpu_ns: self.highest_ns,
            processes: self.group.processes(),
            threads: 0,
            accounting: Accounting::Group,
        };
        let memory = self.group.memory().unwrap_or_default();
        Look { reading, memory, is_gone: now.is_err() }
    }
}

/// Cores of this machine, regardless of which processes may use them.
fn online() -> u32 {
    let all = crate::host::facts_below(&crate::host::Roots::from_environment()).cores;
    all.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ends_is_gone_and_its_time_stays() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut subject = Subject::tree(child.id()).unwrap();
        let before = subject.look(false);
        assert!(!before.is_gone && before.memory.rss_bytes > 0 && subject.cores() >= 1);
        child.kill().unwrap();
        child.wait().unwrap();
        let after = subject.look(false);
        assert!(after.is_gone && after.reading.cpu_ns >= before.reading.cpu_ns);
        assert!(Subject::tree(u32::MAX).is_err());
    }
}
