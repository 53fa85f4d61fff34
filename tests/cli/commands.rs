//! The commands around `compare`.

use crate::rig::{Ended, Place};

#[test]
fn a_report_is_what_was_printed() {
    let place = Place::new("report");
    let ended = place.compare(&["http", "tcp", "-n", "50"]).with(0);
    let id = place.run().file_name().expect("a name").to_string_lossy().into_owned();
    let (table, _) = ended.stdout.split_once("run: ").expect("the last line");
    for word in [id.as_str(), &format!("runs/{id}")] {
        assert_eq!(place.weigh(&["report", word]).with(0).stdout, table);
    }
    let json = place.weigh(&["report", &id, "--json"]).with(0).stdout;
    let file = std::fs::read_to_string(place.run().join("summary.json")).expect("summary.json");
    assert_eq!(json, file);
    let markdown = place.weigh(&["report", &id, "--markdown"]).with(0).stdout;
    assert!(
        markdown.starts_with("**")
            && markdown.contains("\n| ")
            && markdown.contains("**at least once"),
        "{markdown}"
    );
}

#[test]
fn a_pipe_that_nobody_reads_any_more_is_no_error() {
    let place = Place::new("pipe");
    place.compare(&["tcp", "-n", "20"]).with(0);
    let id = place.run().file_name().expect("a name").to_string_lossy().into_owned();
    let mut child = place.spawn(&["report", &id]);
    drop(child.stdout.take());
    crate::rig::wait(child).with(0);
}

#[test]
fn runs_are_listed() {
    let place = Place::new("runs");
    place.weigh(&["runs"]).with(0).saying(&["no run in the folder runs yet"]);
    assert_eq!(place.weigh(&["runs", "--json"]).with(0).json(), serde_json::json!([]));
    place.compare(&["tcp", "-n", "5", "--name", "first"]).with(0);
    let text = place.weigh(&["runs"]).with(0).stdout;
    assert!(text.contains("-first") && text.contains("done"), "{text}");
    let list = place.weigh(&["runs", "--json"]).with(0).json();
    assert_eq!((&list[0]["name"], &list[0]["cells"]), (&"first".into(), &1.into()));
}

#[test]
fn targets_are_listed_with_how_to_get_them() {
    let place = Place::new("targets");
    let text = place.weigh(&["targets"]).with(0).stdout;
    for part in ["mqtt", "http1", "tcp", "mosquitto@no-limits", "nginx"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert_eq!(place.weigh(&["targets", "list"]).with(0).stdout, text);
    let settings = place.weigh(&["targets", "list", "--settings"]).with(0).stdout;
    assert!(settings.contains("mqtt.qos") && settings.contains("http1.keep_alive"), "{settings}");
    let text = place.weigh(&["targets", "install", "mosquitto"]).with(0).stdout;
    assert!(text.contains("is installed") || text.contains("apt-get install mosquitto"), "{text}");
}

#[test]
fn a_folder_of_targets_comes_before_those_built_in() {
    let place = Place::new("data");
    std::fs::create_dir_all(place.folder().join("mine/targets")).expect("a folder");
    let own = include_str!("../../targets/mosquitto.toml")
        .replace("title = \"Mosquitto\"", "title = \"Mine\"")
        .replace("binaries = [\"mosquitto\"]", "binaries = [\"/nowhere/mine\"]")
        .replace("abilities = \"abilities/mosquitto.toml\"\n", "");
    place.write("mine/targets/mine.toml", &own);
    let text = place.weigh(&["targets", "--data", "mine"]).with(0).stdout;
    assert!(text.contains("Mine, not installed: apt-get install mosquitto"), "{text}");
    let text = place.weigh(&["targets", "install", "mosquitto", "--data", "mine"]).with(0).stdout;
    for part in
        ["Mine takes about", "needs root", "apt-get install --yes", "--yes to run these commands"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let ended = place.compare(&["mosquitto", "--data", "mine", "-n", "5"]).with(2);
    ended.saying(&["not installed", "apt-get install mosquitto"]);
    place.write("mine/targets/bad.toml", "name = 5");
    place.weigh(&["targets", "--data", "mine"]).with(2).saying(&["bad.toml", "line 1"]);
}

#[test]
fn the_doctor_says_what_cannot_work() {
    let place = Place::new("doctor");
    let well = place.weigh(&["doctor"]).with(0);
    assert!(well.stdout.contains("descriptors") && well.stdout.contains("ports"));
    let sick = place.weigh(&["doctor", "-c", "2000000"]).with(2);
    assert!(sick.stdout.contains("FATAL"), "{}", sick.stdout);
    let findings = place.weigh(&["doctor", "--json"]).with(0).json();
    let findings = findings.as_array().expect("a list");
    assert!(findings.iter().all(|finding| finding["check"].is_string()), "{findings:?}");
}

#[test]
fn help_and_version_are_no_errors() {
    let place = Place::new("help");
    let commands = ["compare", "serve", "targets", "doctor", "report", "runs"];
    let help = place.weigh(&["--help"]).with(0).stdout;
    for command in commands {
        assert!(help.contains(command), "{help}");
        let help = place.weigh(&[command, "--help"]).with(0).stdout;
        assert!(help.contains("Usage: weigh"), "{help}");
    }
    let version = place.weigh(&["--version"]).with(0).stdout;
    assert!(version.starts_with(&format!("weigh {}", env!("CARGO_PKG_VERSION"))), "{version}");
    assert!(version.lines().nth(1).is_some_and(|line| line.starts_with("features: ")), "{version}");
    assert_eq!(place.weigh(&["-V"]).with(0).stdout.lines().count(), 1);
}

/// Every command has help that begins with what it does, and the short help of those with many
/// options is one screen.
#[test]
fn short_help_is_a_screen_and_long_help_has_all() {
    let place = Place::new("short-help");
    for command in ["compare", "run", "limit"] {
        let short = place.weigh(&[command, "-h"]).with(0).stdout;
        let lines = short.lines().count();
        assert!((24..=40).contains(&lines), "{lines} lines\n{short}");
        let long = place.weigh(&[command, "--help"]).with(0).stdout;
        for heading in ["Load:", "Target:", "Output:", "Examples:"] {
            let is_there = command != "run" || !["Load:"].contains(&heading);
            assert_eq!(long.contains(&format!("\n{heading}\n")), is_there, "{heading}\n{long}");
        }
        assert!(long.contains("--i-may-load-this"), "{long}");
    }
}

/// What has another name now is told, with the rest of the line as it was typed.
#[test]
fn old_names_of_commands_say_the_new_ones() {
    let place = Place::new("moved");
    for (line, new) in [
        ("wrk -t2 http://h/", "type weigh like wrk -t2 http://h/"),
        ("autocannon -c 5", "type weigh like autocannon -c 5"),
        ("mqtt-stresser -broker x", "type weigh like mqtt-stresser -broker x"),
        ("meters --json", "type weigh energy meters --json"),
        ("devices 3g", "type weigh energy devices 3g"),
        ("rundown p.toml", "type weigh energy rundown p.toml"),
        ("open a.sealed", "type weigh seal open a.sealed"),
        ("inspect a.sealed", "type weigh seal inspect a.sealed"),
        ("seal a.json --to b.pub", "type weigh seal make a.json --to b.pub"),
        ("targets probe mqtt", "type weigh probe mqtt"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        place.weigh(&words).with(2).saying(&["new name", "\nhelp: ", new]);
    }
}

/// Numbers are written as people write them, on flags and in plans alike.
#[test]
fn short_numbers_work_everywhere() {
    let place = Place::new("numbers");
    for line in [
        "compare tcp -c 1e1 -n 10k --reps 3 --dry",
        "compare tcp -R 1.5k/s -d 0.5s -s 1.5KiB --warmup 1e2ms --dry",
        "limit tcp --from 1e3/s --to 10k/s --budget 5m --dry",
        "doctor -c 1k",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        place.weigh(&words).with(0);
    }
    place.write(
        "plan.toml",
        "protocol = \"tcp\"\nload.connections = 1e1\nload.messages = \"10k\"\n\
         load.warmup = \"0.5s\"\nload.rate = \"1.5k/s\"\nload.size = \"1e2B\"\n",
    );
    let dry = place.weigh(&["run", "plan.toml", "--save-plan", "whole.toml", "--dry"]).with(0);
    let whole = std::fs::read_to_string(place.folder().join("whole.toml")).expect("the plan");
    for part in ["messages = 10000", "connections = 10", "500ms", "1500/s", "100B"] {
        assert!(whole.contains(part), "{part}: {whole}{}", dry.stdout);
    }
    place.write("quoted.toml", "protocol = \"tcp\"\nload.connections = \"5\"\n");
    let refused = place.weigh(&["run", "quoted.toml"]).with(2);
    refused.saying(&["expected a number, found the string \"5\"", "type 5"]);
}

/// COLUMNS holds in a pipe too; without it a pipe has 100.
#[test]
fn tables_and_lists_fit_the_width() {
    let place = Place::new("width");
    place.compare(&["tcp", "http", "-n", "20"]).with(0);
    for (line, most) in [("report latest", 80), ("runs", 80), ("targets", 80), ("doctor", 80)] {
        let words: Vec<&str> = line.split(' ').collect();
        let shown = |columns: Option<&str>| {
            let mut command = place.command(&words);
            match columns {
                Some(columns) => command.env("COLUMNS", columns),
                None => command.env_remove("COLUMNS"),
            };
            Ended::from(command.output().expect("the program starts")).with(0).stdout
        };
        // A URL is one word.
        let widest = |text: &str| {
            let lines = text.lines().filter(|line| !line.contains("://"));
            lines.map(|line| line.chars().count()).max().unwrap_or_default()
        };
        let narrow = shown(Some("80"));
        assert!(widest(&narrow) <= most, "{line}: {}\n{narrow}", widest(&narrow));
        let piped = shown(None);
        assert!(widest(&piped) <= 100, "{line}: {}\n{piped}", widest(&piped));
    }
}

/// A word about what is to come stands there before the machine is looked at.
#[test]
fn the_first_line_comes_before_the_first_trial() {
    let place = Place::new("first-line");
    let ended = place.compare(&["tcp", "-n", "20"]).with(0);
    let first = ended.stderr.lines().next().unwrap_or_default();
    assert!(first.starts_with("weigh: 1 case, 1 trial, at least "), "{}", ended.stderr);
    let quiet = place.compare(&["tcp", "-n", "20", "-Q"]).with(0);
    assert!(!quiet.stderr.contains("1 trial"), "{}", quiet.stderr);
}

/// Measured once for the machine and the build; the next run takes it from the cache, says it and
/// keeps it in its journal. Only what other programs disturbed is measured again.
#[test]
fn the_baseline_is_measured_once_and_recorded_by_every_run() {
    let place = Place::new("null-path");
    let run = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env("XDG_CACHE_HOME", place.folder().join("cache"));
        Ended::from(command.output().expect("the program starts")).with(0)
    };
    let told = run(&["doctor", "--calibrate"]).stdout;
    for load in ["http1 request", "tcp request", "mqtt qos 1 deliver"] {
        assert!(told.contains(&format!("built-in server ({load}, ")), "{load}: {told}");
    }
    let kept = || -> serde_json::Value {
        let path = place.folder().join("cache/weigh/null-path.json");
        let all: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        all[0]["kinds"]["tcp request"].clone()
    };
    let before = kept();
    let arguments = ["compare", "tcp", "--reps", "1", "-d", "100ms", "--warmup", "0s", "-c", "2"];
    let ended = run(&arguments);
    assert!(ended.stderr.contains("built-in server (tcp request, "), "{}", ended.stderr);
    assert_eq!(place.journal()[0]["null_path"][0], kept());
    let is_disturbed = ended.stderr.contains("other programs used");
    if before["foreign_cpu_percent"].as_f64().unwrap() < 20.0 {
        assert_eq!(kept(), before);
        assert!(!is_disturbed, "{}", ended.stderr);
    }
    place.nobody_is_left();
}
