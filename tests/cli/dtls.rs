//! CoAP inside DTLS: the reference server, and libcoap with OpenSSL and GnuTLS at the other end.

use serde_json::Value;

use crate::foreign::Process;
use crate::rig::{Place, cells, figure, has, has_hosts, ledgers_are_whole, until};
use crate::serving::Server;

const PSK: [&str; 4] =
    ["--set", "coap.tls_psk_identity=device-7", "--set", "coap.tls_psk=a secret of the run"];

fn handshakes(cell: &Value) -> Option<f64> {
    cell["metrics"]["tls_handshakes_full"]["value"].as_f64()
}

/// The same load without DTLS and inside it, by certificates of the run and by a key.
#[test]
fn the_same_load_goes_without_and_with_dtls() {
    let place = Place::new("dtls-both");
    let words = ["coap", "--pattern", "publish", "-n", "60", "-c", "3"];
    place.compare(&[&words[..], &["--tls", "both"]].concat()).with(0);
    ledgers_are_whole(&place, 60);
    for cell in cells(&place.summary()) {
        let is_on = cell["point"]["coap.tls"] == "on";
        assert_eq!(handshakes(cell).is_some_and(|count| count >= 3.0), is_on, "{cell}");
    }
    for version in ["1.2", "1.3"] {
        let place = Place::new(&format!("dtls-{version}"));
        let deliver = ["coap", "--pattern", "deliver", "-n", "60", "--tls", version];
        let more = ["--set", "coap.notify_queue=1000", "--set", "coap.tls_mutual=true"];
        place.compare(&[&deliver[..], &more].concat()).with(0);
        ledgers_are_whole(&place, 60);
        for cell in cells(&place.summary()) {
            let scene = cell["scene"]["tls"].as_str().expect("what was agreed");
            assert!(scene.contains(&format!("DTLSv{}", version.replace('.', "_"))), "{scene}");
        }
    }
    let place = Place::new("dtls-psk");
    let kept = ["--tls", "on", "--set", "coap.type=con"];
    place.compare(&[&words[..], &kept, &PSK].concat()).with(0);
    ledgers_are_whole(&place, 60);
    place.keeps_secret("secret of the run");
    place.nobody_is_left();
}

/// An endpoint for every message makes a handshake for every message.
#[test]
fn sessions_make_handshakes() {
    let place = Place::new("dtls-session");
    let words = ["coap", "--pattern", "session", "-n", "20", "--tls", "1.2"];
    place.compare(&[&words[..], &PSK].concat()).with(0);
    ledgers_are_whole(&place, 20);
    for cell in cells(&place.summary()) {
        assert!(handshakes(cell).is_some_and(|count| count >= 20.0), "{cell}");
    }
}

#[test]
fn contradictions_are_named() {
    let place = Place::new("dtls-wrong");
    let refused = |words: &[&str], parts: &[&str]| {
        let words = [&["coap", "-n", "5", "--pattern", "publish"], words].concat();
        place.compare(&words).with(2).saying(parts);
    };
    refused(&["--set", "coap.tls_psk=k"], &["coap.tls_psk", "there is no TLS", "--tls on"]);
    let half = ["--tls", "on", "--set", "coap.tls_psk=k"];
    refused(&half, &["coap.tls_psk_identity", "belong together"]);
    refused(&[&["--tls", "1.3"], &PSK[..]].concat(), &["--tls", "not supported", "--tls 1.2"]);
    let mutual = [&["--tls", "on", "--set", "coap.tls_mutual=true"], &PSK[..]].concat();
    refused(&mutual, &["coap.tls_mutual", "no certificates"]);
    let nothing = place.compare(&["coaps://127.0.0.1:1", "-n", "5", "--insecure"]);
    nothing.with(3).saying(&["coaps://127.0.0.1:1", "connection refused"]);
}

/// A server of libcoap, which listens for DTLS one above `port`.
fn libcoap(place: &Place, program: &str, port: u16, words: &[&str]) -> Process {
    let port = port.to_string();
    let first = ["-A", "127.0.0.1", "-p", &port, "-d", "10"];
    Process::quiet(&mut place.program(program, &[&first[..], words].concat()))
}

/// Two neighbouring ports that are free now.
fn two_ports() -> u16 {
    for _ in 0..50 {
        let first = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let port = first.local_addr().expect("its address").port();
        if port < u16::MAX && std::net::UdpSocket::bind(("127.0.0.1", port + 1)).is_ok() {
            return port;
        }
    }
    panic!("no two neighbouring ports are free");
}

fn answers(place: &Place, port: u16) {
    let url = format!("coap://127.0.0.1:{port}/");
    until("the server answers", || {
        let asked = place.program("coap-client-notls", &["-B", "1", "-m", "get", &url]).output();
        asked.is_ok_and(|output| !output.stdout.is_empty())
    });
}

/// Servers of libcoap take every message, by a key and by certificates.
#[test]
fn the_servers_of_libcoap_are_measured_inside_dtls() {
    for (program, version) in [("coap-server-openssl", "on"), ("coap-server-gnutls", "1.2")] {
        if !has(program) {
            continue;
        }
        let place = Place::new(&format!("dtls-{program}"));
        let port = two_ports();
        let server = libcoap(&place, program, port, &["-k", "a secret of the run"]);
        answers(&place, port);
        let url = format!("coaps://127.0.0.1:{}/example_data", port + 1);
        let words = [&*url, "--pattern", "publish", "-n", "40", "-c", "2", "--tls", version];
        let put = ["--set", "coap.method=PUT"];
        place.compare(&[&words[..], &put, &PSK].concat()).with(0);
        ledgers_are_whole(&place, 40);
        let other = Place::new(&format!("dtls-{program}-key"));
        let key = ["--set", "coap.tls_psk_identity=device-7", "--set", "coap.tls_psk=wrong"];
        other.compare(&[&words[..], &put, &key].concat()).with(3).saying(&[&url]);
        drop(server);

        let made = Place::new(&format!("dtls-{program}-made"));
        let serving = ["coap", "--set", "coap.tls=on", "--certificates", "made"];
        Server::start(&made, &serving).end("TERM");
        let port = two_ports();
        let files = ["-c", "made/server.pem", "-j", "made/server.key", "-n"];
        let server = libcoap(&made, program, port, &files);
        answers(&made, port);
        let url = format!("coaps://localhost:{}/example_data", port + 1);
        let words = [&*url, "--pattern", "publish", "-n", "40", "-c", "2", "--tls", version];
        made.compare(&[&words[..], &put, &["--cacert", "made/ca.pem"]].concat()).with(0);
        ledgers_are_whole(&made, 40);
        let foreign = Place::new(&format!("dtls-{program}-foreign"));
        let refused = foreign.compare(&[&words[..], &put].concat());
        refused.with(3).saying(&["authority is not known", "--cacert FILE"]);
        drop(server);
    }
}

/// Clients of libcoap store and read at the reference server.
#[test]
fn the_clients_of_libcoap_are_served_inside_dtls() {
    for program in ["coap-client-openssl", "coap-client-gnutls"] {
        if !has(program) {
            continue;
        }
        let place = Place::new(&format!("dtls-{program}"));
        let ask = |url: &str, words: &[&str]| {
            let url = format!("{url}/messages");
            let words = [&["-B", "5"], words, &[&*url]].concat();
            let output = place.program(program, &words).output().expect("it runs");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let with_key = ["coap", "--set", "coap.tls=on"];
        let server = Server::start(&place, &[&with_key[..], &PSK].concat());
        assert!(server.url.starts_with("coaps://"), "{}", server.url);
        let key = ["-u", "device-7", "-k", "a secret of the run"];
        ask(&server.url, &[&key[..], &["-m", "post", "-e", "by a key"]].concat());
        let read = ask(&server.url, &[&key[..], &["-m", "get"]].concat());
        assert!(read.contains("by a key"), "{program}: {read}");
        let wrong = ask(&server.url, &["-u", "device-7", "-k", "another", "-m", "get"]);
        assert!(!wrong.contains("by a key"), "{program}: {wrong}");
        let (code, report) = server.end("TERM");
        assert_eq!(code, Some(0), "{report}");
        assert!(report.contains("\"received\":1"), "{report}");

        let serving = ["coap", "--set", "coap.tls=on", "--certificates", "made"];
        let server = Server::start(&place, &serving);
        let url = server.url.replace("127.0.0.1", "localhost");
        let trusted = ["-C", "made/ca.pem"];
        ask(&url, &[&trusted[..], &["-m", "post", "-e", "by a certificate"]].concat());
        let read = ask(&url, &[&trusted[..], &["-m", "get"]].concat());
        assert!(read.contains("by a certificate"), "{program}: {read}");
        assert_eq!(server.end("TERM").0, Some(0));
    }
}

/// Every byte of a message inside DTLS 1.2 with a key: 29 more than without (RFC 6347, RFC 6655).
#[test]
fn bytes_of_dtls_are_counted_by_layer() {
    if !has_hosts("bytes_of_dtls_are_counted_by_layer") {
        return;
    }
    let place = Place::new("dtls-wire");
    let words = ["compare", "coap", "--pattern", "publish", "-s", "100B", "-n", "10", "--wire"];
    let more = ["-Q", "--reps", "1", "--warmup", "0s", "-c", "1", "--tls", "1.2"];
    place.weigh(&[&words[..], &more, &PSK].concat()).with(0);
    for cell in cells(&place.summary()) {
        let of = |name: &str| figure(cell, &format!("wire.sent.layers.{name}_bytes"));
        let name = &cell["name"];
        assert_eq!(of("payload"), 1_000.0, "{name}");
        assert_eq!(of("protocol"), 200.0, "{name}");
        // Ten records, and the close notice: header 13, nonce 8, alert 2, tag 8.
        assert_eq!(of("tls_record"), 10.0 * 29.0 + 31.0, "{name}");
        let shaken = figure(cell, "tls_handshake_sent_bytes");
        assert_eq!(of("tls_handshake"), shaken, "{name}");
        assert!(!cell["doubts"].to_string().contains("wire"), "{name}: {}", cell["doubts"]);
    }
}
