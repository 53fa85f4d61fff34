//! Runs that ended early: what can be gone on with, which attempt counts, and what is said of it.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use weigh_model::Warning;
use weigh_model::event::{AxisEnded, Event, HostFacts, RunResumed};
use weigh_report::{RunFolder, Summary};

use crate::story::{Told, run, started};

/// An empty folder of this name for one test.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("resuming-{name}"));
    let _ = fs::remove_dir_all(&path);
    path
}

fn moment() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_222_923)
}

/// A run with these events in its journal.
fn begun(runs: &str, events: &[Event]) -> RunFolder {
    let run = RunFolder::create(&folder(runs), "compare", moment()).unwrap();
    let mut journal = run.create_journal().unwrap();
    events.iter().for_each(|event| journal.write(event).unwrap());
    run
}

/// The last event was written whole, and only the end of its line was not: it counts, and the next
/// one begins a line of its own.
#[test]
fn a_last_line_without_its_end_is_ended() {
    let events = run();
    let folder = begun("unended", &events[..5]);
    let path = folder.path().join("journal.jsonl");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let (mut journal, read) = folder.resume_journal().unwrap();
    assert_eq!(read.events, &events[..5]);
    journal.write(&events[5]).unwrap();
    drop(journal);
    assert_eq!(folder.read_journal().unwrap().events, &events[..6]);
}

#[test]
fn two_writers_of_one_journal_are_refused() {
    let folder = begun("twice", &run()[..2]);
    let first = folder.resume_journal().unwrap();
    let error = folder.resume_journal().unwrap_err().to_string();
    assert!(error.contains("another weigh process records into this run"), "{error}");
    drop(first);
    assert!(folder.resume_journal().is_ok());
}

#[test]
fn a_journal_of_a_newer_version_is_refused_and_left_as_it_is() {
    let folder = begun("newer", &run()[..2]);
    let path = folder.path().join("journal.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let newer = text.replace("weigh/journal/1", "weigh/journal/2") + "{\"event\":\"tor";
    fs::write(&path, &newer).unwrap();
    for error in [folder.read_journal().unwrap_err(), folder.resume_journal().unwrap_err()] {
        let error = error.to_string();
        assert!(error.contains("weigh/journal/2") && error.contains("or later"), "{error}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), newer);
}

#[test]
fn the_newest_run_is_found_as_latest() {
    let runs = folder("latest");
    assert!(RunFolder::find(&runs, "latest").is_err());
    let names = ["zebra", "ant"].map(|name| RunFolder::create(&runs, name, moment()).unwrap());
    names.iter().for_each(|run| drop(run.create_journal().unwrap()));
    assert_eq!(RunFolder::find(&runs, "latest").unwrap().id(), names[0].id());
}

/// The first attempt was cut short by a signal, the second died before it had a result, the third
/// is whole: only that counts, in the summary, in the series and in what readers get.
#[test]
fn of_several_attempts_the_last_whole_one_counts() {
    let told = |sent| {
        let mut events = Told::new("http1", None, "reference").events();
        if let Event::Interval(interval) = &mut events[1] {
            interval.sent = sent;
        }
        events
    };
    let mut cut_short = told(1);
    if let Event::TrialFinished(trial) = &mut cut_short[2] {
        trial.warnings.push(Warning::Interrupted.record());
    }
    let whole = told(3);
    let mut events = vec![started("constant")];
    events.extend(cut_short.clone());
    let interrupted = begun("cut-short", &events).write_results(&events).unwrap();
    assert_eq!(interrupted.cells[0].repetitions, 1, "better than nothing");
    events.extend(told(2)[..2].to_vec());
    events.extend(whole.clone());
    let folder = begun("attempts", &events);
    let summary = folder.write_results(&events).unwrap();
    assert!(summary.cells[0].warnings.iter().all(|warning| warning.code != "interrupted"));
    let read = folder.read_journal().unwrap().events;
    assert_eq!(read[1..], whole);
    // One that is cut short later makes nothing worse.
    events.extend(cut_short);
    assert_eq!(begun("worse", &events).read_journal().unwrap().events[1..], whole);
}

#[test]
fn decisions_are_listed_with_their_cells() {
    let told = Told::new("http1", None, "reference");
    let mut events = vec![started("constant")];
    events.extend(told.events());
    let mut lane = told.point();
    let at = lane.remove("target").unwrap();
    let ended = AxisEnded {
        lane,
        axis: "target".to_owned(),
        at,
        condition: "loss > 0".to_owned(),
        figure: 0.25,
        not_weighed: vec!["nginx".into()],
    };
    events.push(Event::AxisEnded(Box::new(ended)));
    let (point, looks) = (told.point(), 4);
    events.push(Event::CaseSettled { point, repetitions: 6, looks, is_precise: true });
    events.push(Event::BudgetSpent { at_ns: 1, left: 4 });
    let host = HostFacts { kernel: "7.0".to_owned(), ..HostFacts::default() };
    let (at, version) = ("2026-11-22T01:02:03Z".to_owned(), "0.1.0".to_owned());
    events.push(Event::RunResumed(Box::new(RunResumed { at, version, host, boot: None })));
    let summary = Summary::from_events(&events).unwrap();
    let warnings = &summary.cells[0].warnings;
    for (code, part) in [
        ("axis-ended", "loss > 0 (it was 25.0 %); 1 larger value was not measured"),
        ("optional-stopping", "checks: 4"),
        ("budget-spent", "1 of 5"),
        ("resumed-elsewhere", "kernel"),
    ] {
        let warning = warnings.iter().find(|warning| warning.code == code);
        let warning = warning.unwrap_or_else(|| panic!("{code}: {warnings:?}"));
        assert!(warning.text.contains(part), "{}", warning.text);
    }
}
