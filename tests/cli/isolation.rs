//! What a target is given of the machine, and that nothing of hosts, paths and control groups is
//! left behind, however a run ends.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use weigh_testbed::hosts::NamespaceRights;

use crate::rig::{Place, has_hosts, signal, until};

fn cell(summary: &Value) -> &Value {
    &summary["cells"][0]
}

fn warning<'s>(summary: &'s Value, code: &str) -> Option<&'s str> {
    let warnings = cell(summary)["doubts"].as_array().expect("doubts");
    warnings.iter().find(|warning| warning["code"] == code)?["text"].as_str()
}

/// The control groups that the program with this number made and that are still there.
fn groups_of(pid: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with(&format!("weigh-{pid}-")) {
                    found.push(entry.path());
                }
                folders.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn the_machine_is_measured_with_the_target_and_its_share_is_reported() {
    let place = Place::new("share");
    let ended = place.compare(&["tcp", "--target-cores", "1", "-d", "600ms", "-Q"]).with(0);
    let summary = place.summary();
    let scene = &cell(&summary)["scene"];
    let told = scene["target.cores"].as_str().expect("the cores");
    // Either a group keeps it there, or it is said that nothing but affinity does.
    let by_group = told.contains("cgroup");
    assert_eq!(by_group, warning(&summary, "target-share").is_none(), "{summary}");
    assert!(by_group || told.contains("affinity"), "{told}");
    assert!(ended.stdout.contains(&format!("target's cores: {told}")), "{}", ended.stdout);
    let percent = |metric: &str| cell(&summary)["metrics"][metric]["value"].as_f64();
    let whole = percent("host_cpu_percent.mean").expect("the whole machine");
    let parts = ["softirq", "steal"].map(|part| percent(&format!("host_{part}_percent.mean")));
    assert!((0.0..=100.0).contains(&whole), "{whole}");
    assert!(parts.iter().all(|part| part.is_some_and(|part| (0.0..=whole).contains(&part))));
    place.nobody_is_left();
}

/// Below a folder that has no control groups nothing can be enforced, and that is said.
#[test]
fn what_cannot_be_enforced_is_a_warning() {
    let place = Place::new("no-groups");
    std::fs::create_dir(place.folder().join("sys")).expect("a folder");
    let words = ["compare", "tcp", "--target-cores", "1", "--target-memory", "512MiB"];
    let load = ["--reps", "1", "-d", "200ms", "--warmup", "0s", "-Q"];
    let mut command = place.command(&[&words[..], &load[..]].concat());
    command.env("WEIGH_SYSFS", place.folder().join("sys"));
    assert!(command.status().expect("the program starts").success());
    let summary = place.summary();
    let text = warning(&summary, "target-share").expect("a warning");
    assert!(text.contains("affinity alone") || text.contains("RLIMIT_DATA"), "{text}");
    assert_eq!(cell(&summary)["scene"]["target.memory"], "536870912B (RLIMIT_DATA)");
}

#[test]
fn a_share_that_is_none_is_refused_before_anything_starts() {
    let place = Place::new("no-share");
    for (words, told) in [
        (&["tcp", "--target-cores", "0"][..], "from 1 to 1024"),
        (&["tcp", "--target-memory", "1KiB"][..], "at least 8MiB"),
        (&["tcp", "--target-memory", "4"][..], "4KiB"),
    ] {
        place.compare(words).with(2).saying(&[told]);
    }
    place.write("plan.toml", "target = { name = \"http://127.0.0.1:9\", cores = 1 }\n");
    place.weigh(&["run", "plan.toml"]).with(2).saying(&["add a server that weigh starts"]);
    place.write("plan.toml", "protocol = \"tcp\"\ntarget = { cores = 1, memory = \"3.75 GiB\" }\n");
    place.weigh(&["run", "plan.toml", "--dry"]).with(0);
    assert!(place.runs().is_empty());
}

/// Whoever is killed cannot take its groups away: the next run does.
#[test]
fn the_groups_of_a_killed_run_are_swept_by_the_next() {
    let place = Place::new("killed-share");
    let words = ["compare", "tcp", "--target-cores", "1", "-d", "60s", "-R", "10/s", "-Q"];
    let mut program = place.spawn(&words);
    let (pid, target) = (program.id(), place.target(&program));
    let groups = groups_of(pid);
    signal("KILL", pid);
    program.wait().expect("it ends");
    until("the target ends too", || !Path::new(&format!("/proc/{target}")).exists());
    if groups.is_empty() {
        // Whether they may be made is the machine's business, in CI too.
        eprintln!("SKIPPED the_groups_of_a_killed_run_are_swept_by_the_next: none may be made");
        return;
    }
    // They have names, and stay until any other run makes some: of this test, or of one beside it.
    place.compare(&["tcp", "--target-cores", "1", "-Q"]).with(0);
    assert_eq!(groups_of(pid), Vec::<PathBuf>::new());
}

/// Five runs, or as many as `WEIGH_RUNS` says; twenty in continuous integration.
#[test]
fn runs_in_a_row_leave_nothing() {
    let test = "runs_in_a_row_leave_nothing";
    if !has_hosts(test) {
        return;
    }
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    let asked = std::env::var("WEIGH_RUNS").ok().and_then(|number| number.parse().ok());
    let runs: u32 = asked.unwrap_or(if is_ci { 20 } else { 5 });
    let place = Place::new("many");
    let devices = || std::fs::read_to_string("/proc/net/dev").map(|text| text.lines().count());
    let before = devices().expect("/proc/net/dev");
    for _ in 0..runs {
        let path = ["--path", "delay=1ms", "--wire", "--target-cores", "1"];
        let load = ["-n", "3", "--reps", "1", "--warmup", "0s", "-c", "1", "-Q"];
        let mut program = place.spawn(&[&["compare", "tcp"][..], &path, &load].concat());
        let pid = program.id();
        assert!(program.wait().expect("it ends").success());
        assert_eq!(groups_of(pid), Vec::<PathBuf>::new());
    }
    // A namespace without a name is there as long as a process is in it.
    place.nobody_is_left();
    assert_eq!(devices().expect("/proc/net/dev"), before);
    println!("{runs} runs left no process, namespace, interface or control group");
}

/// Where there is no device for tunnels, rings carry the packets.
#[test]
fn without_the_device_rings_carry_the_packets() {
    let test = "without_the_device_rings_carry_the_packets";
    if !has_hosts(test) {
        return;
    }
    let place = Place::new("no-device");
    let words = "compare tcp --path delay=5ms -Q --reps 1 -d 300ms --warmup 0s -R 50/s -c 2";
    let namespace = ["--user", "--map-root-user", "--mount"];
    let hide = "mount -t tmpfs none /dev/net";
    let Some(ended) = place.weigh_after(test, &namespace, hide, words) else { return };
    ended.with(0);
    let summary = place.summary();
    assert_eq!(cell(&summary)["scene"]["carrier"], "packet ring", "{summary}");
    let median = cell(&summary)["metrics"]["service_time_ns.p50"]["value"].as_f64();
    assert!(median.is_some_and(|ns| ns >= 10e6), "the delay is there: {median:?}");
}

/// Somebody takes the target's interface away in the middle of a trial.
#[test]
fn an_interface_that_vanishes_is_named() {
    let test = "an_interface_that_vanishes_is_named";
    let can_enter = Command::new("nsenter").args(["-t", "1", "-n", "true"]).output();
    let is_root = can_enter.is_ok_and(|output| output.status.success());
    if !is_root || !matches!(NamespaceRights::look(), Ok(NamespaceRights::Privileged)) {
        eprintln!("SKIPPED {test}: only root can take an interface away from outside");
        return;
    }
    let place = Place::new("vanishes");
    let load = ["--reps", "1", "-d", "3s", "--timeout", "1s", "-R", "50/s", "-c", "2", "-Q"];
    let program = place.spawn(&[&["compare", "tcp", "--path", "delay=1ms"][..], &load].concat());
    let target = place.target(&program).to_string();
    // The load has begun once a connection stands.
    let stands = || {
        let table = std::fs::read_to_string(format!("/proc/{target}/net/tcp")).unwrap_or_default();
        // The fourth column is the state, 01 is established (proc_net_tcp.rst).
        table.lines().filter(|line| line.split_whitespace().nth(3) == Some("01")).count() >= 2
    };
    until("connections stand", stands);
    let delete = ["-t", &target, "-n", "ip", "link", "delete", "weigh0"];
    assert!(Command::new("nsenter").args(delete).status().expect("nsenter").success());
    crate::rig::wait(program).with(0);
    let summary = place.summary();
    let told = warning(&summary, "path-gone").expect("a warning");
    assert!(told.contains("weigh0") && told.contains("vanished"), "{told}");
    assert_eq!(cell(&summary)["valid"], false, "{summary}");
    place.nobody_is_left();
}
