//! What agents of a fleet get from the coordinator, and what they give back besides figures: files,
//! secrets, the record of single messages.

use std::io::{Read, Write};
use std::process::Command;
use std::sync::{Arc, Mutex};

#[cfg(feature = "parquet")]
use crate::exports::{export, rows};
#[cfg(feature = "parquet")]
use crate::fleet::is_exact;
use crate::fleet::{Bus, fleet};
use crate::rig::{Place, cells, figure, until, wait};

/// Half of the messages begin on another host than they end: their rows are put together from what
/// both hosts kept.
#[cfg(feature = "parquet")]
#[test]
fn single_messages_of_all_agents_add_up_to_the_ledger() {
    let place = Place::new("fleet-messages");
    let Some((bus, _agents)) = fleet(&place, 2) else { return };
    let words = ["mqtt", "--fleet", &bus.url, "--agents", "2", "--topology", "fan-in"];
    let load = ["--pattern", "deliver", "--qos", "1", "-R", "2k/s", "-n", "5000", "-c", "4"];
    let more = ["--keep-messages"];
    place.compare(&[&words[..], &load, &more].concat()).with(0);
    let summary = place.summary();
    is_exact(&cells(&summary)[0], 5_000);
    let rows = rows(&export(&place, "messages"));
    assert_eq!(rows.len(), 5_000);
    let mut names: Vec<(&str, u64)> = rows
        .iter()
        .map(|row| (&*row["producer"], row["sequence"].parse().expect("a number")))
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 5_000, "every message has one row");
    for row in &rows {
        assert_eq!(row["state"], "delivered", "{row:?}");
        for time in ["due_ns", "sent_ns", "confirmed_ns", "delivered_ns"] {
            assert!(!row[time].is_empty(), "{time}: {row:?}");
        }
    }
    assert_eq!(bus.objects(), 0, "nothing is left in the object store");
}

#[test]
fn a_file_is_streamed_by_all_agents() {
    let place = Place::new("fleet-streamed");
    let Some((bus, _agents)) = fleet(&place, 2) else { return };
    place.write("large.bin", &"a file that agents do not have\n".repeat(20_000));
    let words = ["http", "--fleet", &bus.url, "--agents", "2", "--pattern", "transfer"];
    let load = ["--body", "file:large.bin", "-n", "8", "-c", "2"];
    place.compare(&[&words[..], &load].concat()).with(0);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    assert_eq!((&cell["ledger"]["sent"], &cell["ledger"]["lost"]), (&8.into(), &0.into()));
    // The mark follows the file.
    assert!(figure(cell, "body_bytes") > 20_000.0 * 31.0, "{cell}");
    assert_eq!(bus.objects(), 0, "nothing is left in the object store");
}

/// An HTTP server that answers each request with the header, and no other.
fn demanding(header: &'static str) -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let (mut seen, mut answered) = (Vec::new(), 0);
                let mut chunk = [0; 4096];
                while let Ok(length) = stream.read(&mut chunk) {
                    if length == 0 {
                        break;
                    }
                    seen.extend_from_slice(&chunk[..length]);
                    let text = String::from_utf8_lossy(&seen).to_lowercase();
                    let asked = text.matches(header).count();
                    for _ in answered..asked {
                        let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
                    }
                    answered = asked;
                }
            });
        }
    });
    address
}

/// Agents get it by request and reply. It is not recorded, and not even for a moment stored on the
/// bus, where body and outcomes are seen.
#[test]
fn a_secret_header_reaches_the_agents_and_nothing_else() {
    let place = Place::new("fleet-secret");
    let Some((bus, _agents)) = fleet(&place, 2) else { return };
    let stored = Overheard::start(&bus, "$O.>");
    let said = Overheard::start(&bus, "weigh.>");
    place.write("body.json", BODY);
    let url = format!("http://{}/", demanding("x-token: hush-4711\r\n"));
    let words = ["compare", &url, "--fleet", &bus.url, "--agents", "2", "-c", "4", "--reps", "1"];
    let load = ["-R", "100/s", "-d", "2s", "--warmup", "0s", "--body", "file:body.json"];
    let secret = ["--secret-header", "X-Token: hush-4711"];
    let child = place.spawn(&[&words[..], &load, &secret].concat());
    // The files of the bus while the body is in them.
    let on_disk = place.folder().join("nats");
    until("the body on the bus", || !files_with(BODY_TEXT, &on_disk).is_empty());
    assert_eq!(
        files_with("hush-4711", place.folder()),
        "",
        "neither the record nor the bus has it"
    );
    wait(child).with(0);
    let summary = place.summary();
    let ledger = &cells(&summary)[0]["ledger"];
    assert!(ledger["sent"].as_u64() > Some(100), "{ledger}");
    assert_eq!(ledger["sent"], ledger["acknowledged"], "{ledger}");
    assert_eq!(
        files_with("hush-4711", place.folder()),
        "",
        "neither the record nor the bus keeps it"
    );
    for text in [BODY_TEXT, "\"name\":\"outcome/"] {
        assert!(stored.holds(text), "{text} was stored, and seen");
    }
    assert!(said.holds("hush-4711"), "the header was sent, and seen");
    assert!(!stored.holds("hush-4711"), "the header was stored");
}

/// Names of the files below a folder that hold a text.
fn files_with(text: &str, folder: &std::path::Path) -> String {
    let found = Command::new("grep").args(["-rlF", text]).arg(folder).output();
    String::from_utf8_lossy(&found.expect("grep runs").stdout).into_owned()
}

/// Everything that came by on the bus since it was started, as it was sent.
struct Overheard(Arc<Mutex<Vec<u8>>>);

impl Overheard {
    fn start(bus: &Bus, subject: &str) -> Overheard {
        let address = bus.url.trim_start_matches("nats://");
        let mut stream = std::net::TcpStream::connect(address).expect("a connection");
        let ask = format!("CONNECT {{\"verbose\":false}}\r\nSUB {subject} 1\r\nPING\r\n");
        stream.write_all(ask.as_bytes()).expect("it asks");
        let heard = Overheard(Arc::default());
        let all = Arc::clone(&heard.0);
        std::thread::spawn(move || {
            let mut chunk = [0; 1 << 16];
            while let Ok(length @ 1..) = stream.read(&mut chunk) {
                all.lock().unwrap().extend_from_slice(&chunk[..length]);
            }
        });
        until("the subscription", || heard.holds("PONG\r\n"));
        heard
    }

    fn holds(&self, text: &str) -> bool {
        let all = self.0.lock().unwrap();
        all.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

const BODY_TEXT: &str = "a body that agents do not have";
const BODY: &str = "{\"text\":\"a body that agents do not have\"}";
