//! Whether a target is installed, where, and which version.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::nursery;
use crate::target::Target;

/// A target that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The program.
    pub path: PathBuf,
    /// Its version as it tells it, or `unknown`.
    pub version: String,
}

/// Looks for a target's program in `PATH` and the folders its file names.
pub fn find(target: &Target) -> Option<Found> {
    let path = search(target)?;
    let version = ask_version(&path, target).unwrap_or_else(|| "unknown".to_owned());
    Some(Found { path, version })
}

fn search(target: &Target) -> Option<PathBuf> {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        std::env::split_paths(&search_path).chain(target.find.folders.iter().cloned()).collect();
    target.find.binaries.iter().find_map(|binary| {
        if binary.contains('/') {
            return Some(PathBuf::from(binary)).filter(|path| runs(path));
        }
        let absolute = folders.iter().filter(|folder| folder.is_absolute());
        absolute.map(|folder| folder.join(binary)).find(|path| runs(path))
    })
}

fn runs(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

fn ask_version(program: &Path, target: &Target) -> Option<String> {
    let mut command = Command::new(program);
    command
        .args(&target.find.version.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = nursery::spawn(command).ok()?;
    let deadline = Instant::now() + VERSION_WITHIN;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut said = Vec::new();
    child.stdout.take()?.take(SAID_BYTES).read_to_end(&mut said).ok()?;
    said.push(b'\n');
    child.stderr.take()?.take(SAID_BYTES).read_to_end(&mut said).ok()?;
    word_after(&String::from_utf8_lossy(&said), &target.find.version.after)
}

/// For a program to tell its version.
const VERSION_WITHIN: Duration = Duration::from_secs(10);
/// What a pipe holds, so the program never waits for us to read.
const SAID_BYTES: u64 = 64 << 10;

fn word_after(text: &str, before: &str) -> Option<String> {
    let word = text.split_once(before)?.1.split_ascii_whitespace().next()?;
    Some(word.trim_end_matches([',', ';', ':', ')']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;

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
        target.find.version.arguments = vec!["-c".into(), "echo v 3.1, >&2".into()];
        target.find.version.after = "v ".into();
        let found = find(&target).unwrap();
        assert_eq!(
            (found.path.file_name().unwrap().to_str(), found.version.as_str()),
            (Some("sh"), "3.1")
        );
        target.find.binaries = vec!["/nowhere/sh".into()];
        assert_eq!(find(&target), None);
    }
}
