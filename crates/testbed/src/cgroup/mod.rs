//! Limits of a target: cores and memory, by control groups where
//! they are permitted, else by affinity and a limit of its data.
//!
//! Control groups have names, so unlike namespaces they outlive a program that is killed: those of
//! programs that are gone are swept away when the next one is made.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, setrlimit};

mod group;
mod mounts;

pub use group::Share;
use group::{Group, PROCESSES, SET, Wanted};
use mounts::Mounts;
use mounts::Version;

/// A target's share of the machine while it runs. Dropping it kills what is left in it and
/// removes it.
#[derive(Debug)]
pub struct ControlGroup {
    groups: Vec<Group>,
    data_bytes: Option<u64>,
    told: Vec<(&'static str, String)>,
    missing: Vec<String>,
}

/// Entry to the group for a child between fork and exec.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    doors: Arc<[OwnedFd]>,
    data_bytes: Option<u64>,
}

impl ControlGroup {
    /// Makes one below the control groups of this program. [`ControlGroup::missing`] returns what
    /// could not be enforced.
    pub fn make(share: &Share) -> ControlGroup {
        ControlGroup::make_below(share, &Mounts::of_this_program())
    }

    fn make_below(share: &Share, mounts: &Mounts) -> ControlGroup {
        let mut made = ControlGroup {
            groups: Vec::new(),
            data_bytes: None,
            told: Vec::new(),
            missing: Vec::new(),
        };
        let mut reasons = Vec::new();
        for wanted in Wanted::of(share) {
            match Group::make(&wanted, mounts, &mut made.groups) {
                Ok(version) => made.tell(&wanted, version),
                Err(reason) => reasons.push((wanted, reason)),
            }
        }
        for (wanted, reason) in reasons {
            made.do_without(&wanted, &reason, share);
        }
        made
    }

    /// What the target was given, and by which means, for the journal: `target.cores` and so on.
    pub fn told(&self) -> &[(&'static str, String)] {
        &self.told
    }

    /// What could not be enforced, and why.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Returns an entry to the group, which a child uses before it executes the target.
    ///
    /// # Errors
    /// If a group cannot be opened.
    pub(crate) fn entry(&self) -> io::Result<Entry> {
        let open = |group: &Group| {
            File::options().write(true).open(group.folder().join(PROCESSES)).map(OwnedFd::from)
        };
        let doors = self.groups.iter().map(open).collect::<io::Result<Vec<_>>>()?;
        Ok(Entry { doors: doors.into(), data_bytes: self.data_bytes })
    }

    fn tell(&mut self, wanted: &Wanted, version: Version) {
        let by = match version {
            Version::One => "cgroup v1",
            Version::Two => "cgroup v2",
        };
        self.told.push((wanted.key(), format!("{} ({by})", wanted.words())));
    }

    /// Limits that replace a group that could not be made.
    fn do_without(&mut self, wanted: &Wanted, reason: &str, share: &Share) {
        match wanted {
            // The process that starts the target sets its affinity in every case.
            Wanted::Set(_) => {
                self.told.push((wanted.key(), format!("{} (affinity)", wanted.words())));
            }
            Wanted::Time(percent) if share.cpu_percent.is_some() => self.missing.push(format!(
                "the target has all the time of its cores, not {percent} % of a core ({reason})"
            )),
            // Without other limits the target has all the time of its cores.
            Wanted::Time(_)
                if self.told.iter().any(|(key, by)| *key == SET && by.contains("cgroup")) => {}
            Wanted::Time(_) => self.missing.push(format!(
                "the target is limited to its cores by affinity alone, which it may change \
                 ({reason})"
            )),
            Wanted::Memory(_) => {
                self.data_bytes = share.memory_bytes;
                self.told.push((wanted.key(), format!("{} (RLIMIT_DATA)", wanted.words())));
                self.missing.push(format!(
                    "memory is limited by RLIMIT_DATA, which counts what each process requests, \
                    not what all of them use ({reason})"
                ));
            }
        }
    }
}

impl Entry {
    /// Moves the calling process into the group. Makes only system calls on owned values, so it may
    /// be used between
    /// fork and exec.
    pub(crate) fn enter(&self) -> io::Result<()> {
        for door in self.doors.iter() {
            // 0 stands for the process that writes it (cgroups(7)).
            rustix::io::write(door, b"0")?;
        }
        if let Some(bytes) = self.data_bytes {
            setrlimit(Resource::Data, Rlimit { current: Some(bytes), maximum: Some(bytes) })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
