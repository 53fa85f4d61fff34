//! What agents of a fleet get from the coordinator, and what they give back besides figures: files,
//! secrets, the record of single messages.

use std::io::{Read, Write};
use std::process::Command;

#[cfg(feature = "parquet")]
use crate::exports::{export, rows};
use crate::fleet::fleet;
#[cfg(feature = "parquet")]
use crate::fleet::is_exact;
use crate::rig::{Place, cells, figure};

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

/// Agents get it by request and reply, and it is not recorded.
#[test]
fn a_secret_header_reaches_the_agents_and_nothing_else() {
    let place = Place::new("fleet-secret");
    let Some((bus, _agents)) = fleet(&place, 2) else { return };
    let url = format!("http://{}/", demanding("x-token: hush-4711\r\n"));
    let words = [&*url, "--fleet", &bus.url, "--agents", "2", "-c", "4"];
    let load = ["-R", "100/s", "-n", "100", "--secret-header", "X-Token: hush-4711"];
    place.compare(&[&words[..], &load].concat()).with(0);
    let summary = place.summary();
    let ledger = &cells(&summary)[0]["ledger"];
    assert_eq!((&ledger["sent"], &ledger["acknowledged"]), (&100.into(), &100.into()), "{ledger}");
    let kept = Command::new("grep").args(["-rl", "hush-4711"]).arg(place.folder()).output();
    let kept = String::from_utf8_lossy(&kept.expect("grep runs").stdout).into_owned();
    assert_eq!(kept, "", "neither the record nor the bus keeps it");
    drop(bus);
}
