//! Where this program's control groups are: `/proc/self/mountinfo` (proc(5)) says where hierarchies
//! are mounted, `/proc/self/cgroup` (cgroups(7)) the group of this program in each.

use std::fs;
use std::path::{Path, PathBuf};

/// Version of the kernel's control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// A hierarchy for each controller (Documentation/admin-guide/cgroup-v1).
    One,
    /// One hierarchy for all controllers (Documentation/admin-guide/cgroup-v2.rst).
    Two,
}

/// All mounted hierarchies.
#[derive(Clone, Debug, Default)]
pub(super) struct Mounts(Vec<Mount>);

/// One mounted hierarchy.
#[derive(Clone, Debug)]
pub(super) struct Mount {
    /// Its version.
    pub(super) version: Version,
    /// Its mount point.
    pub(super) top: PathBuf,
    /// Folder of this program's group.
    pub(super) own: PathBuf,
    /// Its controllers, for version 1.
    controllers: Vec<String>,
}

impl Mounts {
    /// Reads those of this program, below `WEIGH_SYSFS` where that is set.
    pub(super) fn of_this_program() -> Mounts {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let sys = std::env::var_os("WEIGH_SYSFS").filter(|path| !path.is_empty());
        let sys = sys.map(PathBuf::from);
        Mounts::parse(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"), sys.as_deref())
    }

    /// Parses the two texts; `sys` replaces `/sys`.
    pub(super) fn parse(mounts: &str, own: &str, sys: Option<&Path>) -> Mounts {
        Mounts(mounts.lines().filter_map(|line| Mount::parse(line, own, sys)).collect())
    }

    /// Returns the hierarchy that has this controller.
    pub(super) fn with(&self, controller: &str) -> Option<&Mount> {
        self.0.iter().find(|mount| mount.has(controller))
    }
}

impl Mount {
    fn parse(line: &str, own: &str, sys: Option<&Path>) -> Option<Mount> {
        let (left, right) = line.split_once(" - ")?;
        let (root, top) = {
            let mut fields = left.split(' ').skip(3);
            (fields.next()?, fields.next()?)
        };
        let mut fields = right.split(' ');
        let (kind, options) = (fields.next()?, fields.nth(1)?);
        let controllers: Vec<String> = options.split(',').map(str::to_owned).collect();
        let (version, path) = match kind {
            "cgroup2" => (Version::Two, own_path(own, "")?),
            "cgroup" => {
                let known = controllers.iter().find_map(|one| own_path(own, one))?;
                (Version::One, known)
            }
            _ => return None,
        };
        let top = match (sys, Path::new(top).strip_prefix("/sys")) {
            (Some(sys), Ok(below)) => sys.join(below),
            _ => PathBuf::from(top),
        };
        let below = path.strip_prefix(root).unwrap_or(path).trim_start_matches('/');
        let own = if below.is_empty() { top.clone() } else { top.join(below) };
        Some(Mount { version, own, top, controllers })
    }

    fn has(&self, controller: &str) -> bool {
        match self.version {
            Version::One => self.controllers.iter().any(|own| own == controller),
            Version::Two => lists(&self.top.join("cgroup.controllers"), controller),
        }
    }

    /// The folder of this program's group, then those above it, up to the root.
    pub(super) fn upwards(&self) -> impl Iterator<Item = &Path> {
        self.own.ancestors().take_while(|folder| folder.starts_with(&self.top))
    }
}

/// Whether a file has this word.
pub(super) fn lists(file: &Path, word: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.split_whitespace().any(|one| one == word))
}

/// The path of this program's group: lines are `4:memory:/path`, and `0::/path` for version 2.
fn own_path<'o>(own: &'o str, controller: &str) -> Option<&'o str> {
    own.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|one| one == controller).then_some(path)
    })
}
