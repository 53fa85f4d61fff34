//! Finds out whether a target is installed, where, and in which version.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::patience;
use crate::spawner;
use crate::target::Target;

/// An installed target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Path of the program.
    pub path: PathBuf,
    /// Folder of its package, if it has its own.
    pub package: Option<PathBuf>,
    /// The version that it reports, or `unknown`.
    pub version: String,
}

/// Looks for a target's package, where it has one in a folder of its own, and then for its program:
/// in `PATH` and the folders its file names.
pub fn find(target: &Target) -> Option<Found> {
    let package = match &target.package {
        Some(package) if !package.system => Some(folder_of(target)?),
        _ => None,
    };
    if !target.find.companions.iter().all(|path| path.exists()) {
        return None;
    }
    let path = search(target, package.as_deref())?;
    let pinned = target.package.as_ref().and_then(|package| package.version.clone());
    let version = pinned.or_else(|| ask_version(&path, target));
    Some(Found { path, package, version: version.unwrap_or_else(|| "unknown".to_owned()) })
}

/// Returns the command that installs a missing target, or what its package needs if only that is
/// missing.
pub fn fix(target: &Target) -> &str {
    let missing = target.package.as_ref().filter(|_| folder_of(target).is_some());
    let missing = missing.and_then(|package| {
        let wanted = target.find.binaries.iter().find_map(|binary| package.needs.get(binary));
        wanted.map(String::as_str)
    });
    missing.unwrap_or(&target.find.install)
}

/// The folder of a complete package.
fn folder_of(target: &Target) -> Option<PathBuf> {
    let package = target.package.as_ref()?;
    package.folder(&target.name).filter(|folder| package.is_in(folder))
}

/// Path of a program of this name in `PATH`.
pub fn on_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| runs(path));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(program)).find(|path| runs(path))
}

fn search(target: &Target, package: Option<&Path>) -> Option<PathBuf> {
    let package = package.map(|folder| folder.display().to_string()).unwrap_or_default();
    target.find.binaries.iter().find_map(|binary| {
        let binary = binary.replace("{package}", &package);
        let absolute = target.find.folders.iter().filter(|folder| folder.is_absolute());
        let elsewhere = || absolute.map(|own| own.join(&binary)).find(|path| runs(path));
        let known = on_path(&binary);
        if binary.contains('/') { known } else { known.or_else(elsewhere) }
    })
}

fn runs(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

fn ask_version(program: &Path, target: &Target) -> Option<String> {
    let asked = target.find.version.as_ref()?;
    let program = match &asked.program {
        Some(program) => on_path(program)?,
        None => program.to_owned(),
    };
    version_of(&program, &asked.arguments, &asked.after)
}

/// The version that a program reports on either output when it is started with these arguments: the
/// first word behind the text `after`. `None` where it reports none within three seconds; then it
/// is stopped with all its children, and not asked again.
pub fn version_of(program: &Path, arguments: &[String], after: &str) -> Option<String> {
    if silent_programs().contains(program) {
        return None;
    }
    // A file, because a child that outlives the program would keep a pipe open.
    let mut said = File::from(memfd_create("weigh-version", MemfdFlags::CLOEXEC).ok()?);
    let mut command = Command::new(program);
    command
        .args(arguments)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(said.try_clone().ok()?)
        .stderr(said.try_clone().ok()?);
    let mut child = spawner::spawn(command).ok()?;
    let group = Pid::from_child(&child);
    let has_ended = wait_ended(group, VERSION_WITHIN);
    // A wrapper script may have children. The group's number is kept until its leader is reaped.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    if !has_ended {
        silent_programs().insert(program.to_owned());
        return None;
    }
    said.rewind().ok()?;
    let mut text = Vec::new();
    said.take(SAID_BYTES).read_to_end(&mut text).ok()?;
    word_after(&String::from_utf8_lossy(&text), after)
}

/// True once the leader of this group has ended; it is not reaped.
fn wait_ended(group: Pid, within: Duration) -> bool {
    let deadline = Instant::now() + within;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        if !matches!(waitid(WaitId::Pid(group), options), Ok(None)) {
            return true;
        }
        if Instant::now() >= deadline || patience::is_over() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Programs that did not report a version in time.
fn silent_programs() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    static SILENT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    SILENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time for a program to report its version: `mosquitto -h` takes 10 ms.
const VERSION_WITHIN: Duration = Duration::from_secs(3);
/// Bytes of its output that are read.
const SAID_BYTES: u64 = 64 << 10;

fn word_after(text: &str, before: &str) -> Option<String> {
    let word = text.split_once(before)?.1.split_ascii_whitespace().next()?;
    Some(word.trim_end_matches([',', ';', ':', ')']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use crate::target::Version;

    #[test]
    fn versions_are_cut_out() {
        let text = "\nmosquitto version 2.0.11\n\nmosquitto is";
        assert_eq!(word_after(text, "mosquitto version ").as_deref(), Some("2.0.11"));
        assert_eq!(word_after("nginx version: nginx/1.22.1", "nginx/").as_deref(), Some("1.22.1"));
        assert_eq!(word_after("nothing", "nginx/"), None);
    }

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        let catalogue = Catalogue::load(None).unwrap();
        let mut target = catalogue.targets()[0].clone();
        target.find.binaries = vec!["weigh-no-such-server".into(), "sh".into()];
        target.package = None;
        target.find.version = Some(Version {
            program: None,
            arguments: vec!["-c".into(), "echo v 3.1, >&2".into()],
            after: "v ".into(),
        });
        let found = find(&target).unwrap();
        assert_eq!(
            (found.path.file_name().unwrap().to_str(), found.version.as_str()),
            (Some("sh"), "3.1")
        );
        target.find.binaries = vec!["/nowhere/sh".into()];
        assert_eq!(find(&target), None);
    }
}
