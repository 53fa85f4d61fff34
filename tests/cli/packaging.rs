//! What strangers install and run: the shell part of the GitHub Action, and what packages hold.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::rig::{Ended, Place, has};

#[test]
fn the_action_installs_a_release_and_runs_a_gate() {
    if !has("curl") {
        return;
    }
    let place = Place::new("action");
    let releases = place.folder().join("releases");
    let archive = release(&releases.join("v9.9.9"));
    let command = "compare http -n 100 -c 2 --reps 1 --warmup 0s --name 'one gate'";

    // A condition that holds fails the step; the outputs are written all the same.
    let ended = gate(&place, &releases, command, "loss > 0\np50 > 0ms\n");
    ended.with(99).saying(&["::error"]);
    let outputs = std::fs::read_to_string(place.folder().join("outputs")).expect("outputs");
    let run = outputs.lines().find_map(|line| line.strip_prefix("run=")).expect("a run");
    assert!(place.folder().join(run).join("summary.json").is_file(), "{outputs}");
    let paths = std::fs::read_to_string(place.folder().join("paths")).expect("paths");
    assert!(Path::new(paths.trim()).join("weigh").is_file(), "{paths}");
    let table = std::fs::read_to_string(place.folder().join("table.md")).expect("a table");
    assert!(table.contains("|  http1  "), "{table}");

    gate(&place, &releases, command, "loss > 0\n").with(0);

    // An archive that is not the released one is not started.
    std::fs::write(&archive, "something else").expect("another archive");
    let ended = gate(&place, &releases, command, "");
    assert_eq!(ended.code, Some(1));
    ended.saying(&["does not have the SHA-256 of its release"]);
    let missing = gate(&place, Path::new("/nowhere"), command, "");
    assert_eq!(missing.code, Some(1));
    missing.saying(&["cannot be downloaded"]);
    place.nobody_is_left();
}

/// Runs the script as a runner does, with these inputs.
fn gate(place: &Place, releases: &Path, command: &str, fail_if: &str) -> Ended {
    let script = root().join("packaging/action/gate.sh");
    let at = |name: &str| place.folder().join(name);
    let mut bash = place.program("bash", &[script.to_str().expect("a path")]);
    bash.env("WEIGH_COMMAND", command)
        .env("WEIGH_FAIL_IF", fail_if)
        .env("WEIGH_VERSION", "9.9.9")
        .env("WEIGH_RELEASES", format!("file://{}", releases.display()))
        .env("RUNNER_TEMP", at("temporary"))
        .env("GITHUB_PATH", at("paths"))
        .env("GITHUB_OUTPUT", at("outputs"))
        .env("GITHUB_STEP_SUMMARY", at("table.md"));
    Ended::from(bash.output().expect("bash starts"))
}

/// Puts a script that starts this program into a folder as a release of it, because packing the
/// program takes seconds; returns the archive.
fn release(folder: &Path) -> PathBuf {
    let name = format!("weigh-9.9.9-{}-linux", std::env::consts::ARCH.replace("arm", "armv7"));
    let inside = folder.join(&name);
    std::fs::create_dir_all(&inside).expect("a folder of the release");
    let script = format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_weigh"));
    std::fs::write(inside.join("weigh"), script).expect("a script");
    let script = format!(
        "chmod +x {name}/weigh && tar --create --gzip --file {name}.tar.gz {name} \
         && sha256sum {name}.tar.gz > {name}.tar.gz.sha256"
    );
    let status = Command::new("sh").args(["-c", &script]).current_dir(folder).status();
    assert!(status.expect("sh starts").success());
    folder.join(format!("{name}.tar.gz"))
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
