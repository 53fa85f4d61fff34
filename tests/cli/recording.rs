//! What a run leaves behind, and what happens where it cannot.

use std::process::Command;

use crate::rig::{Ended, Place, skip};

#[test]
fn the_folder_is_complete() {
    let place = Place::new("folder");
    let ended = place.compare(&["mqtt", "-q", "1", "-n", "50", "--name", "my first"]).with(0);
    let run = place.run();
    let name = run.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(name.ends_with("-my-first"), "{name}");
    assert!(ended.stdout.trim_end().ends_with(&format!("run: runs/{name}")), "{}", ended.stdout);
    let mut names: Vec<String> = std::fs::read_dir(&run)
        .expect("the folder")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    // A good run keeps no logs of targets.
    let wanted =
        ["cells.csv", "histograms", "journal.jsonl", "plan.toml", "report.html", "summary.json"];
    assert_eq!(names, wanted);
    for end in [".response_time_ns.hgrm", ".response_time_ns.hlog"] {
        let mut files = std::fs::read_dir(run.join("histograms")).expect("histograms").flatten();
        let found = files.any(|file| file.file_name().to_string_lossy().ends_with(end));
        assert!(found, "{end} is not in histograms");
    }
    let kinds: Vec<String> =
        place.journal().iter().map(|line| line["event"].as_str().unwrap_or("").into()).collect();
    assert_eq!(kinds.first().map(String::as_str), Some("run_started"));
    assert_eq!(kinds.last().map(String::as_str), Some("run_finished"));
    let plan = std::fs::read_to_string(run.join("plan.toml")).expect("plan.toml");
    for part in ["seed = 1", "messages = 50", "\"mqtt.qos\" = 1", "[[case]]"] {
        assert!(plan.contains(part), "{part} is not in\n{plan}");
    }
    let page = std::fs::read_to_string(run.join("report.html")).expect("report.html");
    assert!(page.contains("</html>") && page.contains("default-src 'none'"));
    let digest = page.split("journal, SHA-256</th><td>").nth(1).unwrap_or_default();
    assert!(digest.chars().take(64).all(|c| c.is_ascii_hexdigit()), "the journal's digest");
}

/// The figures stand beside the histograms, so that nothing else would show it.
#[test]
fn recorded_times_that_cannot_be_read_are_told() {
    let place = Place::new("times");
    place.compare(&["tcp", "-n", "50"]).with(0);
    let run = place.run();
    let id = run.file_name().expect("a name").to_string_lossy().into_owned();
    let whole = place.weigh(&["report", &id, "--html"]).with(0);
    assert!(!whole.stderr.contains("cannot be read"), "{}", whole.stderr);
    let mut lines = String::new();
    for mut line in place.journal() {
        if let Some(times) = line["histograms"].as_object_mut() {
            times.values_mut().for_each(|time| *time = "AAAA".into());
        }
        lines += &format!("{line}\n");
    }
    std::fs::write(run.join("journal.jsonl"), lines).expect("a journal");
    place
        .weigh(&["report", &id, "--html"])
        .with(0)
        .saying(&["the recorded response_time_ns of trial ", "cannot be read"]);
}

#[cfg(feature = "plots")]
#[test]
fn every_picture_is_written_as_svg_and_png() {
    let place = Place::new("plots");
    place.compare(&["tcp", "-n", "50"]).with(0);
    let run = place.run().to_string_lossy().into_owned();
    let plots = place.folder().join("plots");
    let folder = plots.to_string_lossy();
    let arguments = ["report", &run, "--html", "--plots", &folder, "--plot", "all"];
    place.weigh(&arguments).with(0).saying(&["pictures", "report.html"]);
    let mut names: Vec<String> = std::fs::read_dir(&plots)
        .expect("plots")
        .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    for pair in names.chunks(2) {
        let stem = pair[0].strip_suffix(".png").expect("a PNG before each SVG");
        assert_eq!(pair.get(1).map(String::as_str), Some(&*format!("{stem}.svg")));
    }
    for stem in [
        "messages-request-tcp",
        "response-time-p50-request-by-case",
        "response-time-request-percentiles",
    ] {
        let png = std::fs::read(plots.join(format!("{stem}.png"))).expect(stem);
        let svg = std::fs::read_to_string(plots.join(format!("{stem}.svg"))).expect(stem);
        assert!(png.starts_with(b"\x89PNG") && svg.starts_with("<svg"), "{stem}");
        assert!(svg.contains("tcp"), "{stem} names the case");
    }
    place.weigh(&["report", &run, "--plots", "/proc/plots"]).with(4).saying(&["--plots DIR"]);
}

#[test]
fn two_runs_of_one_second_have_two_folders() {
    let place = Place::new("twins");
    for _ in 0..2 {
        place.compare(&["tcp", "-n", "5"]).with(0);
    }
    assert_eq!(place.runs().len(), 2);
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_anything_starts() {
    let place = Place::new("unwritable");
    place.write("file", "");
    for runs in ["file", "/proc/weigh-runs", "file/below"] {
        let ended = place.compare(&["tcp", "-n", "5", "--runs", runs]).with(4);
        assert_eq!(ended.stdout, "");
        ended.saying(&[runs]);
    }
    place.nobody_is_left();
}

#[test]
fn a_full_standard_output_is_said() {
    let place = Place::new("full-stdout");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let mut command =
        place.command(&["compare", "tcp", "-n", "5", "--reps", "1", "--warmup", "0s"]);
    let status = command.stdout(full).status().expect("the program starts");
    assert_eq!(status.code(), Some(4));
    assert_eq!(place.summary()["run"]["outcome"], "done");
}

#[test]
fn a_small_disk_is_refused_and_a_read_only_one_too() {
    let place = Place::new("small-disk");
    let weigh = "\"$WEIGH\" compare tcp -n 5 --reps 1";
    let script = format!("mount -t tmpfs -o size=1m t runs && {weigh}");
    let Some(ended) = in_namespace(&place, &script) else { return };
    ended.with(4).saying(&["are free", "--runs DIR"]);
    let script = format!("mount -t tmpfs -o ro t runs && {weigh}");
    let Some(ended) = in_namespace(&place, &script) else { return };
    ended.with(4).saying(&["ead-only", "--runs"]);
}

#[test]
fn a_disk_that_fills_up_takes_nothing_from_the_result() {
    let place = Place::new("full-disk");
    let script = "mount -t tmpfs -o size=40m t runs || exit 77
        \"$WEIGH\" compare tcp -n 2000 -c 2 --warmup 0s --reps 400 &
        weigh=$!
        until grep -q trial_finished runs/*/journal.jsonl 2>/dev/null; do sleep 0.05; done
        dd if=/dev/zero of=runs/filling bs=64k 2>/dev/null
        dd if=/dev/zero of=runs/filling2 bs=1 2>/dev/null
        wait $weigh";
    let Some(ended) = in_namespace(&place, script) else { return };
    let ended = ended.with(4).saying(&["No space left", "--runs DIR", "the measured results"]);
    assert!(ended.stdout.contains("at least once, reference"), "{}", ended.stdout);
    place.nobody_is_left();
}

/// Runs a script as root of a namespace of its own, where it may mount; `None` where the system
/// allows no such namespace.
fn in_namespace(place: &Place, script: &str) -> Option<Ended> {
    std::fs::create_dir_all(place.folder().join("runs")).expect("a folder");
    let is_allowed = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "true"])
        .status()
        .is_ok_and(|status| status.success());
    if !is_allowed {
        skip("this system allows no user namespaces");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    command.current_dir(place.folder()).env("WEIGH", env!("CARGO_BIN_EXE_weigh"));
    command.env("WEIGH_CLI_TEST", place.mark());
    Some(Ended::from(command.output().expect("unshare starts")))
}

/// The thresholds are part of the journal's plan: whoever shows the run again is told again.
#[test]
fn a_threshold_that_fails_ends_with_99_and_one_that_holds_with_0() {
    let place = Place::new("thresholds");
    place.compare(&["tcp", "-n", "100"]).with(0);
    let run = place.run();
    let path = run.join("journal.jsonl");
    let journal = std::fs::read_to_string(&path).expect("the journal");
    let (first, rest) = journal.split_once('\n').expect("a first line");
    let show = |conditions: &[&str]| {
        let mut started: serde_json::Value = serde_json::from_str(first).expect("JSON");
        started["plan"]["thresholds"] = conditions.to_vec().into();
        std::fs::write(&path, format!("{started}\n{rest}")).expect("the journal is written");
        place.weigh(&["report", &run.to_string_lossy()])
    };
    let held = show(&["loss == 0", "response_time p(95) < 1h"]).with(0);
    assert!(held.stdout.contains("thresholds:"), "{}", held.stdout);
    let failed = show(&["loss == 0", "response_time p(95) < 1ns"]).with(99);
    assert!(failed.stdout.contains("fails in 1 of 1: tcp "), "{}", failed.stdout);
    let unmeasured = show(&["delivery_time p(95) < 1h"]).with(98);
    assert!(unmeasured.stdout.contains("tcp (not measured)"), "{}", unmeasured.stdout);
}
