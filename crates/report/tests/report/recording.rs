//! What a run leaves on the disk, and that it can be read back.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use weigh_model::event::Event;
use weigh_model::ledger::Ledger;
use weigh_report::{RunFolder, Summary, Writer};

use crate::story::{Told, run, started, whole};

/// An empty folder of this name for one test.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}"));
    let _ = fs::remove_dir_all(&path);
    path
}

fn moment() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_222_923)
}

/// Writes `events` into the journal of a new run and reads them back.
fn replayed(runs: &str, events: &[Event]) -> (RunFolder, Vec<Event>) {
    let run = RunFolder::create(&folder(runs), "compare", moment()).unwrap();
    let mut journal = run.create_journal().unwrap();
    events.iter().for_each(|event| journal.write(event).unwrap());
    let journal = run.read_journal().unwrap();
    assert_eq!((journal.bad_lines, journal.torn_line), (vec![], None));
    (run, journal.events)
}

#[test]
fn a_run_is_read_back_as_it_was_and_its_folder_is_complete() {
    let events = run();
    let (folder, read) = replayed("complete", &events);
    assert_eq!(read, events);
    let Event::RunStarted(started) = &events[0] else { panic!("a run starts with its start") };
    folder.write_plan(&started.plan).unwrap();
    let summary = folder.write_results(&read).unwrap();
    assert_eq!(summary, Summary::from_events(&events).unwrap());
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(
        toml::from_str::<weigh_model::plan::Plan>(&text("plan.toml")).unwrap(),
        started.plan
    );
    assert_eq!(text("summary.json"), summary.to_json());
    insta::assert_snapshot!("cells_csv", text("cells.csv"));
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    insta::assert_snapshot!("folder", names.join("\n"));
    let names = || fs::read_dir(folder.path().join("histograms")).unwrap();
    let mut names: Vec<String> =
        names().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    insta::assert_snapshot!("histograms", names.join("\n"));
    let table = text("histograms/01-http1-on-reference.response_time_ns.hgrm");
    assert!(table.contains("Total count    =          500]"), "{table}");
    let log = text("histograms/01-http1-on-reference.response_time_ns.hlog");
    let lines = log.lines().filter(|line| line.starts_with("Tag=response_time_ns,"));
    assert_eq!(lines.count(), 5);
    assert!(log.contains("Tag=response_time_ns,1.000,1.000,1.000,HISTFAAA"), "{log}");
}

/// An earlier version wrote recorded times next to the journal: they are not kept twice.
#[test]
fn results_that_are_written_again_leave_the_old_place() {
    let events = run();
    let (folder, read) = replayed("moved", &events);
    let name = "01-http1-on-reference.response_time_ns.hgrm";
    for own in [name, "mine.hgrm"] {
        fs::write(folder.path().join(own), "old").unwrap();
    }
    folder.write_results(&read).unwrap();
    assert!(!folder.path().join(name).exists() && folder.path().join("mine.hgrm").is_file());
    assert_ne!(fs::read_to_string(folder.path().join("histograms").join(name)).unwrap(), "old");
}

#[test]
fn a_folder_is_named_by_time_and_never_taken_twice() {
    let runs = folder("names");
    let first = RunFolder::create(&runs, "compare", moment()).unwrap();
    let second = RunFolder::create(&runs, "compare", moment()).unwrap();
    let odd = RunFolder::create(&runs, "../a b/ü", moment()).unwrap();
    assert_eq!(first.id(), "2026-11-21T01-02-03-compare");
    assert_eq!(second.id(), "2026-11-21T01-02-03-compare-2");
    assert_eq!(odd.id(), "2026-11-21T01-02-03-a-b");
    assert_eq!(odd.path().parent(), Some(runs.as_path()));
    first.create_journal().unwrap();
    assert!(first.create_journal().unwrap_err().to_string().contains("journal.jsonl"));
}

#[test]
fn a_run_is_found_by_its_path_and_its_id() {
    let runs = folder("found");
    let run = RunFolder::create(&runs, "compare", moment()).unwrap();
    assert!(RunFolder::find(&runs, run.id()).is_err(), "without a journal it is no run");
    run.create_journal().unwrap();
    assert_eq!(RunFolder::find(&runs, run.id()).unwrap().id(), run.id());
    let path = run.path().to_string_lossy().into_owned();
    assert_eq!(RunFolder::find(&runs, &path).unwrap().id(), run.id());
    let error = RunFolder::find(&runs, "nothing").unwrap_err().to_string();
    assert!(error.contains("nothing") && error.contains(run.id()), "{error}");
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_the_run() {
    let file = folder("file");
    fs::write(&file, "in the way").unwrap();
    for runs in [file, PathBuf::from("/proc/weigh"), PathBuf::from("/sys/weigh")] {
        let error = RunFolder::create(&runs, "compare", moment()).unwrap_err();
        assert!(error.to_string().starts_with(&runs.display().to_string()), "{error}");
    }
}

#[test]
fn a_torn_journal_is_resumed_after_its_last_whole_line() {
    let events = run();
    let (folder, _) = replayed("resumed", &events[..5]);
    let path = folder.path().join("journal.jsonl");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [&whole[..], b"{\"event\":\"trial_fin"].concat()).unwrap();
    assert_eq!(folder.read_journal().unwrap().torn_line, Some(6));
    let (mut journal, read) = folder.resume_journal().unwrap();
    assert_eq!((&read.events[..], read.torn_line), (&events[..5], Some(6)));
    events[5..].iter().for_each(|event| journal.write(event).unwrap());
    drop(journal);
    let read = folder.read_journal().unwrap();
    assert_eq!((read.events, read.torn_line), (events, None));
    fs::write(&path, "no line has an end").unwrap();
    Writer::resume(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn a_resumed_run_counts_every_trial_once_and_drops_earlier_failures() {
    let told = Told::new("http1", None, "reference");
    let [begun, _, finished] = told.events();
    let Event::TrialFinished(trial) = &finished else { panic!("it ends with its end") };
    let failed = Event::TrialFailed {
        trial: trial.trial.clone(),
        point: told.point(),
        error: "the target did not start".to_owned(),
        is_repeated: false,
    };
    let events = [started("constant"), begun, failed, finished.clone(), finished];
    let summary = Summary::from_events(&events).unwrap();
    assert_eq!((summary.cells[0].repetitions, summary.failures.len()), (1, 0));
}

#[test]
fn the_journal_page_documents_every_event_with_lines_that_are_read() {
    let page = include_str!("../../../../docs/journal.md");
    let lines = page.lines().filter(|line| line.starts_with('{'));
    let events: Vec<Event> = lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let kinds: std::collections::BTreeSet<String> = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["event"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds.len(), 24, "{kinds:?}");
    // Every key that the model writes must be named on the page.
    for event in run().iter().chain(&events) {
        let value = serde_json::to_value(event).unwrap();
        let parts = [&value, &value["ledger"], &value["server"], &value["host"], &value["setup"]];
        for key in parts.iter().filter_map(|part| part.as_object()).flat_map(|part| part.keys()) {
            assert!(page.contains(&format!("`{key}`")), "{key} is not documented");
        }
    }
    assert!(Summary::from_events(&events).is_ok());
}

fn trials() -> impl Strategy<Value = Vec<(u8, u32, f64, u64)>> {
    let figure = prop_oneof![4 => 0.0..1e12f64, 1 => Just(f64::INFINITY)];
    prop::collection::vec((0u8..3, 0u32..6, figure, 0u64..100), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_summary_of_a_replayed_journal_is_that_of_the_live_events(trials in trials()) {
        let mut events = vec![started("constant")];
        let mut known = std::collections::BTreeSet::new();
        for (qos, repetition, figure, lost) in trials {
            // Of several attempts at a trial only one would be read back.
            if !known.insert((qos, repetition)) {
                continue;
            }
            let mut told = Told::new("mqtt", Some(qos), "reference");
            told.repetition = repetition;
            told.ledger = Ledger { lost: Some(lost), ..whole(100 + lost) };
            events.extend(told.events().map(|event| match event {
                Event::TrialFinished(mut trial) => {
                    trial.metrics.insert("response_time_ns.p99".to_owned(), figure);
                    Event::TrialFinished(trial)
                }
                other => other,
            }));
        }
        let (_, read) = replayed("replayed", &events);
        let (live, replayed) = (Summary::from_events(&events), Summary::from_events(&read));
        prop_assert_eq!(live.unwrap().to_json(), replayed.unwrap().to_json());
        prop_assert_eq!(read, events);
    }
}
