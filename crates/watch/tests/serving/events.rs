//! The stream of events: complete, in order, from any line on, and as the journal grows.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use weigh_model::live::Second;

use crate::client::{Sent, copied, request, served, stored};

/// The lines of a journal with their ends.
fn lines(folder: &std::path::Path) -> Vec<(u64, String)> {
    let text = fs::read_to_string(folder.join("journal.jsonl")).unwrap();
    let mut end = 0;
    let line = |line: &str| {
        end += line.len() as u64;
        (end, line.trim_end().to_owned())
    };
    text.split_inclusive('\n').map(line).collect()
}

fn ids(events: &[Sent]) -> Vec<u64> {
    events.iter().filter_map(|event| event.id).collect()
}

#[test]
fn a_stored_run_is_sent_whole_and_each_line_once() {
    let (server, _) = served(&stored(), "127.0.0.1:0");
    let mut stream = request(server, "/events", &[]);
    assert!(stream.headers.contains("content-type: text/event-stream"), "{}", stream.headers);
    let events = stream.until("ended");
    let lines = lines(&stored());
    assert_eq!(ids(&events), lines.iter().map(|(end, _)| *end).collect::<Vec<_>>());
    for (event, (_, line)) in events.iter().zip(&lines) {
        assert!(line.starts_with(&format!("{{\"event\":\"{}\"", event.name)), "{line}");
        match event.name.as_str() {
            "run_started" | "trial_started" => assert!(event.data.len() > line.len()),
            "trial_finished" => assert!(!event.data.contains("histograms"), "{}", event.data),
            _ => assert_eq!(&event.data, line),
        }
    }
}

#[test]
fn a_reconnected_browser_misses_nothing_and_gets_nothing_twice() {
    let (server, _) = served(&stored(), "127.0.0.1:0");
    let all = request(server, "/events", &[]).until("ended");
    for at in [0, 1, 17, all.len() - 2] {
        let id = all[at].id.unwrap();
        let header = format!("Last-Event-ID: {id}");
        assert_eq!(request(server, "/events", &[&header]).until("ended"), all[at + 1..]);
        let path = format!("/events?from={id}");
        assert_eq!(request(server, &path, &[]).until("ended"), all[at + 1..]);
    }
}

#[test]
fn an_offset_that_is_not_the_end_of_a_line_is_refused() {
    let (server, _) = served(&stored(), "127.0.0.1:0");
    for (from, words) in
        [("7", "no line of the journal ends"), ("99999999", "shorter"), ("x", "number of bytes")]
    {
        let answer = request(server, &format!("/events?from={from}"), &[]);
        assert_eq!(answer.status, 400);
        let text = answer.text();
        assert!(text.contains(words), "{text}");
    }
}

/// A process that records holds the lock of the journal, as here.
#[test]
fn a_growing_journal_is_followed_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let all = lines(&stored());
    let path = folder.path().join("journal.jsonl");
    let mut journal = OpenOptions::new().create(true).append(true).open(&path).unwrap();
    journal.lock().unwrap();
    writeln!(journal, "{}", all[0].1).unwrap();
    let (server, _) = served(folder.path(), "127.0.0.1:0");
    let (mut one, mut other) = (request(server, "/events", &[]), request(server, "/events", &[]));
    assert_eq!(one.event().unwrap().id, Some(all[0].0));
    for (end, line) in &all[1..4] {
        let (head, tail) = line.split_at(line.len() / 2);
        journal.write_all(head.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        writeln!(journal, "{tail}").unwrap();
        assert_eq!(one.event().unwrap().id, Some(*end));
    }
    drop(journal);
    assert_eq!(ids(&one.until("ended")), Vec::<u64>::new());
    let seen = other.until("ended");
    assert_eq!(ids(&seen), all[..4].iter().map(|(end, _)| *end).collect::<Vec<_>>());
}

#[test]
fn a_run_that_is_removed_is_reported_and_the_stream_ends() {
    let folder = copied();
    let (server, _) = served(folder.path(), "127.0.0.1:0");
    let mut stream = request(server, "/events", &[]);
    stream.until("ended");
    fs::remove_file(folder.path().join("journal.jsonl")).unwrap();
    let lost = stream.event().unwrap();
    assert_eq!(lost.name, "lost");
    assert!(lost.data.contains("removed while it was watched"), "{}", lost.data);
    assert_eq!(stream.event(), None);
    assert_eq!(request(server, "/events", &[]).event().unwrap().name, "lost");
    assert_eq!(request(server, "/report.html", &[]).status, 409);
}

#[test]
fn lines_of_another_version_and_of_no_version_do_not_end_the_stream() {
    let folder = copied();
    let path = folder.path().join("journal.jsonl");
    let mut journal = OpenOptions::new().append(true).open(path).unwrap();
    journal.write_all(b"{\"event\":\"of_tomorrow\",\"a\":1}\nnonsense\n\xff\xfe\n").unwrap();
    let (server, _) = served(folder.path(), "127.0.0.1:0");
    let events = request(server, "/events", &[]).until("ended");
    let names: Vec<&str> = events.iter().rev().take(4).map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["ended", "unreadable", "unreadable", "of_tomorrow"]);
}

/// The report of a run in a folder that cannot be written.
#[test]
fn the_report_is_made_in_memory() {
    let (server, _) = served(&stored(), "127.0.0.1:0");
    let before = fs::read_dir(stored()).unwrap().count();
    let answer = request(server, "/report.html", &[]);
    let name = "attachment; filename=\"report-2026-11-23t03-55-39-compare.html\"";
    assert!(answer.status == 200 && answer.headers.contains(name), "{}", answer.headers);
    let text = answer.text();
    assert!(text.starts_with("<!doctype html>") && text.contains("2026-11-23T03-55-39-compare"));
    assert_eq!(fs::read_dir(stored()).unwrap().count(), before);
}

/// The live file has no bytes of the journal, so its events have no id.
#[test]
fn live_seconds_and_the_generators_resources_come_while_a_run_is_recorded() {
    let folder = copied();
    let journal = fs::File::open(folder.path().join("journal.jsonl")).unwrap();
    journal.lock().unwrap();
    let live = fs::File::create(folder.path().join("live.jsonl")).unwrap();
    let write = |number| {
        let second = Second { number, pid: std::process::id(), end: number, ..Second::default() };
        live.write_all_at(&second.to_slot().unwrap(), Second::slot_at(number)).unwrap();
    };
    (1..=3).for_each(write);
    let (server, _) = served(folder.path(), "127.0.0.1:0");
    let mut stream = request(server, "/events", &[]);
    let begun = stream.until("resources");
    let seconds = begun.iter().filter(|event| event.name == "second");
    assert!(seconds.clone().all(|second| second.id.is_none()));
    assert_eq!(seconds.count(), 3);
    let resources: serde_json::Value = serde_json::from_str(&begun.last().unwrap().data).unwrap();
    assert!(resources["open_files"].as_u64().unwrap() > 3, "{resources}");
    let looked = Instant::now();
    stream.until("resources");
    assert!(looked.elapsed() > Duration::from_millis(500), "one look a second is enough");
    write(4);
    let next = stream.until("resources");
    let last = &next[0];
    let number = |sent: &Sent| serde_json::from_str::<Second>(&sent.data).unwrap().number;
    // The stream may have looked once more before the second was written.
    match last.name.as_str() {
        "second" => assert_eq!(number(last), 4),
        _ => assert_eq!(number(&stream.until("second")[0]), 4),
    }
    drop(journal);
    stream.until("ended");
}
