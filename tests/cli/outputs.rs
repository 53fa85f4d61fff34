//! Files that are written where a flag says: devices, pipes and links stay what they are, files are
//! replaced as a whole, and what was edited is not lost.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::process::Stdio;

use crate::rig::Place;

fn weighed(name: &str) -> Place {
    let place = Place::new(name);
    place.compare(&["tcp", "-n", "40"]).with(0);
    place
}

#[test]
fn an_export_goes_into_devices_pipes_and_links() {
    let place = weighed("outputs");
    let at = |name: &str| place.folder().join(name);
    let export = |to: &str| place.weigh(&["export", "latest", "--format", "csv", "-o", to]);
    let csv = place.weigh(&["export", "latest", "--format", "csv"]).with(0).stdout;
    symlink("/proc/self/fd/1", at("out")).unwrap();
    assert_eq!(export("out").with(0).stdout, csv, "a link to standard output");
    assert_eq!(export("/dev/stdout").with(0).stdout, csv);
    symlink("/dev/null", at("null")).unwrap();
    export("null").with(0);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    symlink("/dev/full", at("full")).unwrap();
    export("full").with(4).saying(&["full"]);
    symlink("real.csv", at("later.csv")).unwrap();
    export("later.csv").with(0);
    export("later.csv").with(0);
    for link in ["out", "null", "full", "later.csv"] {
        assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink(), "{link} was replaced");
    }
    assert_eq!(fs::read_to_string(at("real.csv")).unwrap(), csv);
    assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = at("pipe");
        move || fs::read_to_string(pipe).unwrap()
    });
    export("pipe").with(0);
    assert_eq!(reader.join().unwrap(), csv);
    assert!(fs::symlink_metadata(at("pipe")).unwrap().file_type().is_fifo());
    export("runs").with(4).saying(&["it is a folder"]);
    let left: Vec<_> = fs::read_dir(place.folder()).unwrap().flatten().collect();
    assert!(left.iter().all(|entry| !entry.file_name().to_string_lossy().contains("partial")));
}

#[test]
fn a_file_keeps_its_permissions() {
    let place = weighed("modes");
    let path = place.folder().join("kept.csv");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    place.weigh(&["export", "latest", "--format", "csv", "-o", "kept.csv"]).with(0);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
    assert_ne!(fs::read(&path).unwrap(), b"old");
}

/// Every flag that names a file to write leaves a link where it is.
#[test]
fn every_output_follows_links() {
    let place = Place::new("links");
    let at = |name: &str| place.folder().join(name);
    place.write("wrk.txt", "Running 10s test @ http://h/\n  Requests/sec: 1.0\n");
    for link in ["plan", "page", "found"] {
        symlink(format!("{link}.real"), at(link)).unwrap();
    }
    place.weigh(&["compare", "tcp", "-n", "5", "--dry", "--save-plan", "plan"]).with(0);
    let words = ["compare", "tcp", "-n", "5", "--dry", "--save-plan", "plan"];
    place.weigh(&words).with(0);
    assert!(fs::symlink_metadata(at("plan")).unwrap().is_symlink());
    assert!(fs::read_to_string(at("plan.real")).unwrap().contains("tcp"));
    place.weigh(&["audit", "--study", "hydroponics", "--page", "page"]);
    assert!(fs::symlink_metadata(at("page")).unwrap().is_symlink());
    assert!(fs::read_to_string(at("page.real")).unwrap().contains("<html"));
}

#[test]
fn a_plan_that_was_edited_is_not_overwritten() {
    let place = Place::new("save-plan");
    let save = |more: &[&str]| {
        let words = ["compare", "tcp", "-n", "5", "--dry", "--save-plan", "mine.toml"];
        place.weigh(&[&words[..], more].concat())
    };
    save(&[]).with(0);
    save(&[]).with(0);
    let path = place.folder().join("mine.toml");
    let edited = fs::read_to_string(&path).unwrap() + "# my notes\n";
    fs::write(&path, &edited).unwrap();
    save(&[]).with(2).saying(&["mine.toml", "--force"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), edited);
    save(&["--force"]).with(0);
    assert_ne!(fs::read_to_string(&path).unwrap(), edited);
    let forced = place.weigh(&["compare", "tcp", "-n", "5", "--dry", "--force"]);
    forced.with(2).saying(&["--save-plan"]);
}

/// `weigh compare 2>&1 | head -1`: the pipe is closed while progress is printed. The run ends as it
/// would have, with all its trials.
#[test]
fn a_closed_pipe_does_not_end_a_run() {
    let place = Place::new("closed-pipe");
    let compare = ["compare", "tcp", "-R", "200/s", "-d", "1500ms", "--reps", "2"];
    let mut command = place.command(&compare);
    let mut program = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop((program.stdout.take(), program.stderr.take()));
    assert_eq!(program.wait().unwrap().code(), Some(0));
    let summary = place.summary();
    assert_eq!(
        (&summary["run"]["outcome"], summary["cells"].as_array().unwrap().len()),
        (&"done".into(), 1)
    );
    assert_eq!(summary["cells"][0]["repetitions"], 2);
    // Errors, too, have nowhere to go.
    let mut command = place.command(&["compare", "--no-such-option"]);
    let mut program = command.stderr(Stdio::piped()).spawn().unwrap();
    drop(program.stderr.take());
    assert_eq!(program.wait().unwrap().code(), Some(2));
}
