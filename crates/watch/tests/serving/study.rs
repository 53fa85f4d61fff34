//! A study, whose runs are sent one after another in one stream.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::client::{Answer, Sent, request, served, stored};

/// Adds a run with a journal that was written at this second.
fn add_run(study: &Path, name: &str, written_s: u64) {
    let folder = study.join(name);
    fs::create_dir(&folder).unwrap();
    let path = folder.join("journal.new");
    fs::copy(stored().join("journal.jsonl"), &path).unwrap();
    let written = SystemTime::UNIX_EPOCH + Duration::from_secs(written_s);
    File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
    fs::rename(path, folder.join("journal.jsonl")).unwrap();
}

/// The events of a run, after the one that names it.
fn run_of(stream: &mut Answer, name: &str) -> Vec<Sent> {
    let shown = stream.event().expect("a run");
    assert!(
        shown.name == "shown" && shown.data.contains(&format!("\"run\":\"{name}\"")),
        "{shown:?}"
    );
    let events = stream.until("ended");
    let with_id = events.iter().filter(|event| event.id.is_some());
    assert!(with_id.clone().count() > 0);
    assert!(with_id.clone().all(|event| event.run.as_deref() == Some(name)));
    events
}

#[test]
fn the_next_run_follows_in_the_same_stream() {
    let study = tempfile::tempdir().unwrap();
    fs::write(study.path().join("study.json"), "{}").unwrap();
    add_run(study.path(), "published", 1);
    let (server, _) = served(study.path(), "127.0.0.1:0");
    let mut stream = request(server, "/events", &[]);
    let first = run_of(&mut stream, "published");
    add_run(study.path(), "right", 2);
    let second = run_of(&mut stream, "right");
    assert_eq!(first.len(), second.len());
    // A browser that was away continues in its run, or begins with the newest one.
    let id = second[3].id.unwrap();
    let header = format!("Last-Event-ID: right:{id}");
    let rest = run_of(&mut request(server, "/events", &[&header]), "right");
    assert_eq!(rest, second[4..]);
    let header = format!("Last-Event-ID: published:{}", first[3].id.unwrap());
    assert_eq!(run_of(&mut request(server, "/events", &[&header]), "right"), second);
    let metrics = request(server, "/metrics", &[]).text();
    assert!(metrics.contains("weigh_watch_up 1"), "{metrics}");
    assert_eq!(request(server, "/report.html", &[]).status, 200);
}
