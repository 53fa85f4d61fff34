//! Finished runs are cited, exported as tables, and removed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::exports::rows;
use crate::rig::{Place, signal, until, wait};

fn id(run: &Path) -> String {
    run.file_name().expect("a name").to_string_lossy().into_owned()
}

/// Three runs, the oldest first.
fn three(name: &str) -> Place {
    let place = Place::new(name);
    for number in ["one", "two", "three"] {
        place.compare(&["tcp", "-n", "20", "--name", number]).with(0);
    }
    place
}

#[test]
fn a_run_is_removed_with_a_yes_and_kept_without() {
    let place = three("remove");
    let runs = place.runs();
    let name = id(&runs[0]);
    place
        .weigh(&["runs", "rm", &name])
        .with(2)
        .saying(&["nothing was removed", "\nhelp: type --yes"]);
    assert_eq!(place.runs().len(), 3);
    let ended = place.weigh(&["runs", "rm", &name, &runs[0].to_string_lossy(), "--yes"]).with(0);
    ended.saying(&["removed 1 run, ", "KiB freed"]);
    assert_eq!(place.runs(), runs[1..]);
    place.weigh(&["runs", "rm", "latest", "--yes"]).with(0);
    assert_eq!(place.runs(), runs[1..2]);
    assert_eq!(place.weigh(&["runs", "--json"]).with(0).json().as_array().unwrap().len(), 1);
}

#[test]
fn what_is_not_a_run_stays_and_keeps_the_others() {
    let place = three("not-a-run");
    let runs = place.runs();
    let name = id(&runs[0]);
    fs::create_dir(place.folder().join("notes")).unwrap();
    place.write("notes/a.txt", "a note");
    place.weigh(&["runs", "rm", &name, "notes", "--yes"]).with(2).saying(&["it is not a run"]);
    place.weigh(&["runs", "rm", &name, "nothing", "--yes"]).with(2).saying(&["no such run"]);
    let elsewhere = place.folder().join("elsewhere");
    fs::rename(&runs[1], &elsewhere).unwrap();
    symlink(&elsewhere, &runs[1]).unwrap();
    place.weigh(&["runs", "rm", &id(&runs[1]), "--yes"]).with(2).saying(&["it is a link to"]);
    place
        .weigh(&["runs", "prune", "--keep", "0", "--yes"])
        .with(0)
        .saying(&["is a link: it is not changed", "removed 2 runs, "]);
    assert!(elsewhere.join("journal.jsonl").is_file() && runs[1].is_symlink());
    assert!(place.folder().join("notes/a.txt").is_file() && !runs[0].exists());
}

#[test]
fn prune_lists_what_would_go_and_keeps_the_newest() {
    let place = three("prune");
    let runs = place.runs();
    let dry = place.weigh(&["runs", "prune", "--keep", "1", "--dry-run"]).with(0);
    assert!(dry.stdout.contains(&id(&runs[0])) && dry.stdout.contains(&id(&runs[1])));
    assert!(!dry.stdout.contains(&id(&runs[2])) && dry.stdout.contains("KiB"), "{}", dry.stdout);
    dry.saying(&["would remove 2 runs, "]);
    assert_eq!(place.runs(), runs);
    place.weigh(&["runs", "prune", "--keep", "1"]).with(2).saying(&["nothing was removed"]);
    place.weigh(&["runs", "prune", "--older-than", "1h", "--yes"]).with(0).saying(&["none of 3"]);
    place.weigh(&["runs", "prune", "--failed", "--yes"]).with(0).saying(&["none of 3 runs"]);
    place.weigh(&["runs", "prune"]).with(2).saying(&["needs a condition", "--keep N"]);
    place.weigh(&["runs", "prune", "--keep", "1", "--yes"]).with(0).saying(&["removed 2 runs"]);
    assert_eq!(place.runs(), runs[2..]);
    place.weigh(&["runs", "--json", "prune"]).with(2);
}

#[test]
fn a_run_in_progress_is_never_removed() {
    let place = Place::new("remove-progress");
    let child = place.spawn(&["compare", "tcp", "-d", "60s", "--warmup", "0s", "-c", "1", "-Q"]);
    until("the run is listed", || place.weigh(&["runs"]).stdout.contains("in progress"));
    let run = place.run();
    let refused = place.weigh(&["runs", "rm", "latest", "--yes"]).with(2);
    refused.saying(&["another process records into this run"]);
    place.weigh(&["runs", "prune", "--keep", "0", "--yes"]).with(0).saying(&["none of 1 runs"]);
    place.weigh(&["runs", "prune", "--failed", "--yes"]).with(0);
    assert!(run.join("journal.jsonl").is_file());
    signal("KILL", child.id());
    wait(child);
    until("the run has crashed", || place.weigh(&["runs"]).stdout.contains("crashed"));
    place.weigh(&["runs", "prune", "--failed", "--yes"]).with(0).saying(&["removed 1 run, "]);
    assert!(!run.exists());
    place.nobody_is_left();
}

#[test]
fn a_run_is_cited_with_what_its_journal_has() {
    let place = Place::new("cite");
    place.compare(&["tcp", "-n", "20"]).with(0);
    let started = &place.journal()[0];
    let both = place.weigh(&["runs", "cite", "latest"]).with(0).stdout;
    let text = place.weigh(&["runs", "cite", "latest", "--format", "text"]).with(0).stdout;
    let bibtex = place.weigh(&["runs", "cite", "latest", "--format", "bibtex"]).with(0).stdout;
    assert_eq!(both, format!("{text}\n{bibtex}"));
    let seed = format!("the random seed {}.", started["plan"]["seed"]);
    let version = format!("Weighbridge {}", env!("CARGO_PKG_VERSION"));
    let kernel = started["host"]["kernel"].as_str().unwrap();
    for part in [&*version, "1 repetition of 1 case", &seed, kernel] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.lines().count(), 1);
    assert!(bibtex.contains("@software{weighbridge_") && bibtex.ends_with("}\n"), "{bibtex}");
    assert_eq!(bibtex.matches('{').count(), bibtex.matches('}').count());
    let json = place.weigh(&["runs", "cite", "latest", "--format", "json"]).with(0).json();
    assert_eq!((&json["seed"], &json["cases"]), (&started["plan"]["seed"], &1.into()));
    assert_eq!(json["bibtex"], bibtex);
    assert_eq!(json["commit"], started["setup"]["commit"]);
    place.weigh(&["cite", "latest"]).with(2).saying(&["type weigh runs cite latest"]);
    place.weigh(&["runs", "cite", "none"]).with(2).saying(&["no such run"]);
}

#[test]
fn tables_have_the_columns_that_are_chosen() {
    let place = Place::new("tables");
    place.compare(&["tcp", "http", "-n", "50"]).with(0);
    let export = |words: &[&str]| place.weigh(&[&["export", "latest", "--format"], words].concat());
    let latex = export(&["latex", "--metrics", "p50,lost"]).with(0).stdout;
    assert!(latex.contains("\\begin{tabular}{lrr}") && latex.contains("\\toprule"), "{latex}");
    let markdown = export(&["markdown", "--metrics", "response_time p(50),lost"]).with(0).stdout;
    assert!(markdown.contains("\n| protocol, target | response p50 | lost |\n"), "{markdown}");
    let title = "**TCP and HTTP/1.1: request, 4 connections**\n";
    assert!(markdown.starts_with(title), "one repetition compares nothing: {markdown}");
    let whole = export(&["markdown"]).with(0).stdout;
    assert!(whole.contains("\n| protocol, target | response p50 | response p99 |"), "{whole}");
    export(&["latex", "--metrics", "nothing"])
        .with(2)
        .saying(&["no case has this metric", "help: type"]);
    export(&["csv", "--metrics", "p50"]).with(2).saying(&["--metrics has no effect here"]);
    export(&["latex", "--rows", "cells"]).with(2).saying(&["--rows has no effect here"]);
    export(&["csv", "--long"]).with(2).saying(&["--long has no effect here"]);
    let cells = export(&["csv", "--rows", "cells"]).with(0).stdout;
    assert_eq!(cells, export(&["csv"]).with(0).stdout);
    let wide = export(&["csv", "--rows", "repetitions"]).with(0).stdout;
    let names: Vec<String> = rows(&wide).iter().map(|row| row["cell"].clone()).collect();
    assert_eq!(names, ["tcp on reference", "http1 on reference"]);
    assert!(rows(&wide).iter().all(|row| row["ledger.sent"] == "50"), "{wide}");
    let long = export(&["csv", "--rows", "repetitions", "--long"]).with(0).stdout;
    assert!(rows(&long).iter().any(|row| row["metric"] == "response_time_ns.p50"), "{long}");
}

#[cfg(feature = "plots")]
#[test]
fn pictures_are_chosen_by_name() {
    let place = Place::new("plot-names");
    place.compare(&["tcp", "-n", "50"]).with(0);
    let report = |words: &[&str]| place.weigh(&[&["report", "latest"], words].concat());
    let list = report(&["--plot", "list"]).with(0).stdout;
    let (default, others) = list.split_once("by name, or all:\n").expect("two parts");
    assert!(default.starts_with("written by default:\n"), "{list}");
    assert!(default.contains("  response-time-p50-request-by-case "), "{list}");
    assert!(!default.contains("body-bytes") && others.contains("  body-bytes-"), "{list}");
    assert!(!default.contains("errors-ratio") && !default.contains("service-time"), "{list}");
    let written = |folder: &str| {
        let entries = fs::read_dir(place.folder().join(folder)).expect("pictures").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    report(&["--plots", "one", "--plot", "response_time_ns.p50"])
        .with(0)
        .saying(&["wrote 1 picture"]);
    let stem = "response-time-p50-request-by-case";
    assert_eq!(written("one"), [format!("{stem}.png"), format!("{stem}.svg")]);
    report(&["--plots", "two", "--plot", "over-time,body-bytes"]).with(0).saying(&["2 pictures"]);
    report(&["--plots", "by-default"]).with(0);
    assert_eq!(written("by-default").len(), 2 * (default.lines().count() - 1));
    report(&["--plot", "p50"]).with(2).saying(&["--plots DIR"]);
    report(&["--plots", "x", "--plot", "nothing"]).with(2).saying(&["no picture has this name"]);
}
