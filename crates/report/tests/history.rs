//! The history of many runs: the index saves reading, and nothing else depends on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use weigh_report::history::{History, INDEX, Listing};

/// A folder with runs, removed at the end.
struct Runs(PathBuf);

impl Runs {
    fn new(count: usize) -> Runs {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("weigh-history-{}-{number}", std::process::id());
        let runs = Runs(std::env::temp_dir().join(name));
        fs::create_dir_all(&runs.0).unwrap();
        (0..count).for_each(|number| runs.write(number, 1000.0 + number as f64));
        runs
    }

    fn folder(&self, number: usize) -> PathBuf {
        self.0.join(format!("2026-11-21T{:02}-{:02}-00-nightly", number / 60, number % 60))
    }

    /// A run of two repetitions with this p99.
    fn write(&self, number: usize, p99: f64) {
        let folder = self.folder(number);
        fs::create_dir_all(&folder).unwrap();
        let lines: Vec<String> = events(number, p99).iter().map(Value::to_string).collect();
        fs::write(folder.join("journal.jsonl"), lines.join("\n") + "\n").unwrap();
    }

    fn list(&self) -> Listing {
        History::below(&self.0).list(None).unwrap()
    }

    fn p99(&self) -> Vec<f64> {
        let listing = History::below(&self.0).list(Some("response_time_ns.p99")).unwrap();
        listing.figures.iter().map(|figure| figure.value.unwrap()).collect()
    }

    fn index(&self) -> PathBuf {
        self.0.join(INDEX)
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn events(number: usize, p99: f64) -> Vec<Value> {
    let point = json!({"protocol": "tcp", "target": "reference"});
    let plan = json!({
        "name": "nightly", "seed": 1, "question": "does it get slower?",
        "load": {
            "pattern": "request", "connections": 1, "subscribers": 0, "topology": "fan-in",
            "messages": 10, "warmup": "0s", "arrival": "closed", "think": "0s", "split": "exact",
            "body": "readings", "timeout": "5s",
        },
        "repeat": {"at_least": 2}, "case": [point],
    });
    let host = json!({
        "kernel": "", "cpu": "", "cores": 2, "memory_bytes": 0, "governor": "",
        "clock_source": "", "congestion_control": "", "virtualisation": "",
    });
    let mut events = vec![json!({
        "event": "run_started", "schema": "weigh/journal/1", "id": format!("run-{number}"),
        "started": "2026-11-21T01:02:03Z", "version": "0.1.0", "host": host, "plan": plan,
    })];
    let ledger = json!({
        "messages": 10, "scheduled": 10, "not_sent": 0, "sent": 10, "acknowledged": 10,
        "delivered": 10, "late": 0, "lost": 0, "duplicates": 0, "reordered": 0, "corrupt": 0,
        "foreign": 0, "acked_not_delivered": 0, "no_subscriber": 0, "received": 10, "causes": {},
        "not_sent_causes": {},
    });
    events.extend((0..2).map(|repetition| {
        json!({
            "event": "trial_finished", "trial": format!("t{repetition}"), "point": point,
            "repetition": repetition, "seed": 1, "guarantee": "at least once", "target": "weigh",
            "metrics": {"response_time_ns.p99": p99, "throughput_out_per_s": 5.0},
            "samples": {}, "ledger": ledger, "doubts": [], "granted": {}, "histograms": {},
        })
    }));
    events.push(json!({"event": "run_finished", "outcome": "done"}));
    events
}

#[cfg(feature = "index")]
#[test]
fn a_thousand_runs_are_read_once() {
    let runs = Runs::new(1000);
    let first = runs.list();
    assert_eq!((first.entries.len(), first.read, first.notes.len()), (1000, 1000, 0));
    let second = runs.list();
    assert_eq!((second.read, &second.entries), (0, &first.entries));
    let entry = &second.entries[7];
    assert_eq!((entry.cells, entry.trials, entry.outcome.as_str()), (1, 2, "done"));
    assert_eq!(entry.question.as_deref(), Some("does it get slower?"));
    // The journals could be gone for all that a listing of what is known needs of them: their
    // content is not looked at, only their time and length.
    let journal = runs.folder(3).join("journal.jsonl");
    let (text, time) = (fs::read(&journal).unwrap(), fs::metadata(&journal).unwrap());
    fs::write(&journal, vec![b'x'; text.len()]).unwrap();
    fs::File::options()
        .write(true)
        .open(&journal)
        .unwrap()
        .set_modified(time.modified().unwrap())
        .unwrap();
    let third = runs.list();
    assert_eq!((third.read, &third.entries), (0, &first.entries));
    let expected: Vec<f64> = (0..1000).map(|number| 1000.0 + f64::from(number)).collect();
    assert_eq!(runs.p99(), expected);
}

#[cfg(feature = "index")]
#[test]
fn what_changed_is_read_again_and_nothing_else() {
    let runs = Runs::new(5);
    runs.list();
    runs.write(2, 77_777.0);
    runs.write(9, 1.0);
    fs::remove_dir_all(runs.folder(0)).unwrap();
    let listing = runs.list();
    assert_eq!((listing.read, listing.entries.len()), (2, 5));
    assert_eq!(runs.p99(), [1001.0, 77_777.0, 1003.0, 1004.0, 1.0]);
    // A summary that is written later counts as a change, and is what is read.
    fs::write(runs.folder(1).join("summary.json"), "nonsense").unwrap();
    assert_eq!((runs.list().read, runs.list().read), (1, 0));
}

#[cfg(feature = "index")]
#[test]
fn an_index_that_is_broken_old_or_gone_is_made_again() {
    let runs = Runs::new(4);
    let entries = runs.list().entries;
    let whole = fs::read(runs.index()).unwrap();
    let mut torn = whole.clone();
    torn.truncate(whole.len() / 2);
    let mut scribbled = whole.clone();
    scribbled[4096..].iter_mut().for_each(|byte| *byte ^= 0x5A);
    let mut other_version = whole.clone();
    // The user version stands big-endian at offset 60 (SQLite, "Database File Format", 1.3).
    other_version[63] = 99;
    for (broken, is_said) in [
        (&b"this is no database, and longer than its heading of a hundred bytes would be, so that \
            it is looked at"[..], true),
        (&torn, true),
        (&scribbled, true),
        (&other_version, true),
        (&[], false),
    ] {
        fs::write(runs.index(), broken).unwrap();
        let listing = runs.list();
        assert_eq!((listing.read, &listing.entries), (4, &entries));
        let said = listing.notes.iter().any(|note| note.contains("rebuilt"));
        assert!(said || !is_said, "{:?}", listing.notes);
        assert_eq!(runs.list().read, 0);
    }
    fs::remove_file(runs.index()).unwrap();
    assert_eq!((runs.list().read, runs.list().notes.len()), (4, 0));
}

/// A folder stands where the index should: SQLite cannot open it, as in a folder that is
/// read-only.
#[test]
fn without_an_index_every_run_is_read() {
    let runs = Runs::new(3);
    fs::create_dir(runs.index()).unwrap();
    for _ in 0..2 {
        let listing = runs.list();
        assert_eq!((listing.read, listing.entries.len(), listing.notes.len()), (3, 3, 0));
    }
    assert_eq!(runs.p99(), [1000.0, 1001.0, 1002.0]);
}

#[test]
fn a_run_that_cannot_be_read_is_named() {
    let runs = Runs::new(2);
    fs::write(runs.folder(0).join("journal.jsonl"), "nonsense\n").unwrap();
    for _ in 0..2 {
        let listing = runs.list();
        assert_eq!(listing.entries.len(), 1);
        assert!(listing.notes[0].contains("00-00-00-nightly"), "{:?}", listing.notes);
    }
}

#[test]
fn many_at_once_see_the_same() {
    let runs = Runs::new(60);
    let expected = Runs::new(0);
    assert!(expected.list().entries.is_empty());
    let listings: Vec<Listing> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| runs.list())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for listing in &listings {
        assert_eq!((listing.entries.len(), &listing.notes), (60, &Vec::new()));
        assert_eq!(listing.entries, listings[0].entries);
    }
    // The folder's lock has been given back, and the index is whole.
    assert!(runs.list().notes.is_empty());
}

#[test]
fn a_journal_that_is_written_to_is_a_run_in_progress() {
    let runs = Runs::new(1);
    let whole = fs::read_to_string(runs.folder(0).join("journal.jsonl")).unwrap();
    let torn = whole.lines().take(2).map(|line| line.to_owned() + "\n").collect::<String>();
    fs::write(runs.folder(0).join("journal.jsonl"), torn).unwrap();
    assert_eq!(state(&runs), ("unfinished".to_owned(), false));
    let writer = weigh_report::Writer::resume(&runs.folder(0).join("journal.jsonl")).unwrap();
    assert_eq!(state(&runs), ("unfinished".to_owned(), true));
    drop(writer);
    assert_eq!(state(&runs), ("unfinished".to_owned(), false));
}

fn state(runs: &Runs) -> (String, bool) {
    let entry = runs.list().entries.remove(0);
    (entry.outcome, entry.in_progress)
}

#[test]
fn no_folder_is_no_run() {
    assert_eq!(History::below(Path::new("/nonexistent/runs")).list(None).unwrap().entries, []);
}
