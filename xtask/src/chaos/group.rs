//! Control groups in which a harm limits memory or a disk.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

/// A control group with a limit, which is removed with this.
pub(super) struct Group(PathBuf);

impl Group {
    /// Makes one that may have this much memory.
    pub(super) fn of_memory(name: &str, bytes: u64) -> anyhow::Result<Group> {
        let group = Group::made(name, "memory")?;
        let limit = if is_old("memory") { "memory.limit_in_bytes" } else { "memory.max" };
        group.write(limit, &bytes.to_string())?;
        // Without swap the limit would only be slow; where swap cannot be limited, there is none.
        let _ = group.write("memory.swap.max", "0");
        Ok(group)
    }

    /// Makes one that may write this much per second to the disk of a folder.
    pub(super) fn of_disk(name: &str, folder: &Path, bytes_per_s: u64) -> anyhow::Result<Group> {
        let device = std::fs::metadata(folder)?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let group = Group::made(name, "blkio")?;
        let (limit, value) = match is_old("blkio") {
            true => ("blkio.throttle.write_bps_device", bytes_per_s.to_string()),
            false => ("io.max", format!("wbps={bytes_per_s}")),
        };
        group.write(limit, &format!("{major}:{minor} {value}"))?;
        Ok(group)
    }

    fn made(name: &str, controller: &str) -> anyhow::Result<Group> {
        let top = Path::new("/sys/fs/cgroup");
        let above = if is_old(controller) { top.join(controller) } else { top.to_owned() };
        let folder = above.join(name);
        std::fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
        Ok(Group(folder))
    }

    fn write(&self, file: &str, value: &str) -> anyhow::Result<()> {
        let written = std::fs::write(self.0.join(file), value);
        written.with_context(|| format!("{file} of {}", self.0.display()))
    }

    /// The file that takes processes.
    pub(super) fn tasks(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

/// True if the controller has a hierarchy of version 1.
fn is_old(controller: &str) -> bool {
    Path::new("/sys/fs/cgroup").join(controller).is_dir()
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes that end are in it for a moment longer.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
