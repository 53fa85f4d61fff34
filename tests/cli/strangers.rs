//! Targets by URL that are not what they should be.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::rig::Place;
use crate::serving::Server;

/// A server that treats every connection in its own way until the test ends; its port.
fn stranger(treat: fn(TcpStream)) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || treat(stream));
        }
    });
    port
}

fn silent(mut stream: TcpStream) {
    let _ = stream.read_to_end(&mut Vec::new());
}

fn closing(stream: TcpStream) {
    drop(stream);
}

fn garbage(mut stream: TcpStream) {
    let noise: Vec<u8> = (0..=255).rev().cycle().take(4096).collect();
    let _ = stream.write_all(&noise);
    silent(stream);
}

#[test]
fn nobody_there() {
    let place = Place::new("nobody");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
    for scheme in ["http", "mqtt", "tcp"] {
        let url = format!("{scheme}://{free}");
        let ended = place.compare(&[&url, "-n", "5"]).with(3);
        ended.saying(&[&free.to_string(), "refused", "check host and port"]);
    }
    let ended = place.compare(&["mqtt://no-such-host.invalid", "-n", "5", "--i-may-load-this"]);
    ended.with(3).saying(&["no-such-host.invalid", "unknown", "check its name"]);
}

#[test]
fn whoever_never_answers_was_never_ready() {
    let place = Place::new("strangers");
    for (treat, said) in [
        (silent as fn(TcpStream), "never answered"),
        (closing, "never answered"),
        (garbage, "never answered"),
    ] {
        let port = stranger(treat);
        for scheme in ["http", "tcp"] {
            let url = format!("{scheme}://127.0.0.1:{port}");
            let words = [&*url, "-n", "6", "-c", "2", "--timeout", "200ms"];
            place.compare(&words).with(3).saying(&[said, "check protocol, port"]);
        }
    }
    for (treat, said) in [(closing as fn(TcpStream), "closed"), (garbage, "another protocol")] {
        let url = format!("mqtt://127.0.0.1:{}", stranger(treat));
        let ended = place.compare(&[&url, "-q", "1", "-n", "6", "-c", "2"]);
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        assert!(ended.stderr.contains(said) || ended.stderr.contains("reset"), "{}", ended.stderr);
    }
    place.nobody_is_left();
}

/// A load of a minute is not measured to its end against a server that never sends a byte.
#[test]
fn a_server_that_sends_no_byte_ends_the_trial() {
    let place = Place::new("mute");
    let url = format!("http://127.0.0.1:{}", stranger(silent));
    let words = [&*url, "-d", "60s", "--warmup", "0s", "-c", "2"];
    let ended = place.compare(&words).with(3);
    let said = "accepted http1 connections and sent no byte for 10 s; awaited: the first answer";
    ended.saying(&[said, "may not speak http1", "check protocol, port"]);
    place.nobody_is_left();
}

#[test]
fn the_right_server_under_the_wrong_scheme() {
    let place = Place::new("schemes");
    for protocol in ["mqtt", "http", "tcp"] {
        let server = Server::start(&place, &[protocol]);
        let (_, address) = server.url.split_once("://").expect("a URL");
        for scheme in ["mqtt", "http", "tcp"].into_iter().filter(|scheme| *scheme != protocol) {
            let url = format!("{scheme}://{address}");
            let mut words = vec![&*url, "-n", "6", "-c", "2", "--timeout", "300ms"];
            if scheme == "mqtt" {
                words.extend(["-q", "1"]);
            }
            place.compare(&words).with(3).saying(&["check "]);
        }
        server.end("TERM");
    }
    place.nobody_is_left();
}

#[test]
fn error_answers_are_in_the_ledger_and_no_pass() {
    fn refusing(mut stream: TcpStream) {
        let mut buffer = [0; 4096];
        while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
            let answer = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
            if stream.write_all(answer).is_err() {
                return;
            }
        }
    }
    let place = Place::new("errors");
    let url = format!("http://127.0.0.1:{}/", stranger(refusing));
    let summary = place.compare(&[&url, "-n", "10", "--json"]).with(98).json();
    let ledger = &summary["cells"][0]["ledger"];
    assert_eq!(ledger["causes"]["error_answer"], 10, "{ledger}");
}
