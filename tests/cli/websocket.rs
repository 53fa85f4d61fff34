//! MQTT inside WebSocket, alone and inside TLS: the reference broker, Mosquitto, and servers that
//! speak something else.

use serde_json::Value;

use crate::rig::{Place, has};
use crate::serving::Server;

fn metric(cell: &Value, name: &str) -> Option<f64> {
    cell["metrics"][name]["value"].as_f64()
}

/// One message after the other over one connection, so that each packet is a frame of its own.
#[test]
fn frames_add_what_the_standard_says() {
    let place = Place::new("ws-frames");
    let words = ["mqtt", "--set", "mqtt.websocket=true", "-q", "1", "--pattern", "publish"];
    let load = ["-c", "1", "-n", "100", "-s", "64B", "--warmup", "0s", "--json"];
    let summary = place.compare(&[&words[..], &load[..]].concat()).with(0).json();
    let cell = &summary["cells"][0];
    assert_eq!(cell["ledger"]["delivered"], 100);
    // RFC 6455, section 5.2: 6 bytes for each packet of a client below 126 bytes (CONNECT, 100
    // PUBLISH, DISCONNECT), 2 for each of the server (CONNACK, 100 PUBACK), and 8 for a close
    // frame with its code and mask. What the server answers to that is read and thrown away.
    let expected = f64::from(102 * 6 + 101 * 2 + 8);
    assert_eq!(metric(cell, "websocket_frame_bytes"), Some(expected), "{cell}");
    assert_eq!(metric(cell, "websocket_upgrades"), Some(1.0));
    place.nobody_is_left();
}

#[test]
fn brokers_are_weighed_inside_websocket_alone_and_inside_tls() {
    let place = Place::new("ws-brokers");
    let mut words = vec!["mqtt"];
    if has("mosquitto") {
        words.push("mosquitto");
    } else {
        println!("SKIPPED: mosquitto is not installed");
    }
    let servers = words.len();
    words.extend(["--set", "mqtt.websocket=true", "--tls", "both", "-q", "1", "-n", "40"]);
    words.extend(["--json"]);
    let summary = place.compare(&words).with(0).json();
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2 * servers);
    for cell in cells {
        assert_eq!(cell["ledger"]["delivered"], 40, "{}", cell["point"]);
        assert!(metric(cell, "websocket_upgrades").unwrap() >= 2.0, "{}", cell["point"]);
        let is_on = cell["point"]["mqtt.tls"] == "on";
        assert_eq!(metric(cell, "tls_handshake_time_ns.p50").is_some(), is_on);
    }
    place.nobody_is_left();
}

#[test]
fn urls_say_websocket_and_what_is_none_is_named() {
    let place = Place::new("ws-urls");
    let server = Server::start(&place, &["mqtt", "--set", "mqtt.websocket=true"]);
    assert!(server.url.starts_with("ws://127.0.0.1:"), "{}", server.url);
    let load = ["-q", "1", "-n", "20", "--json"];
    let url = format!("{}/any/path", server.url);
    let summary = place.compare(&[&[&*url][..], &load[..]].concat()).with(0).json();
    let cell = &summary["cells"][0];
    assert_eq!(cell["ledger"]["delivered"], 20);
    assert_eq!(cell["point"]["mqtt.websocket_path"], "/any/path");
    let plain = server.url.replace("ws://", "mqtt://");
    place.compare(&[&[&*plain][..], &load[..]].concat()).with(3);
    let contradiction = [&*url, "--set", "mqtt.websocket=false"];
    place.compare(&contradiction).with(2).saying(&["uses WebSocket"]);
    server.end("TERM");
    for (protocol, said) in
        [("http", "answered 404 Not Found\nhelp: check the path"), ("mqtt", "WebSocket upgrade")]
    {
        let server = Server::start(&place, &[protocol]);
        let address = server.url.split("://").nth(1).unwrap();
        let url = format!("ws://{address}/mqtt");
        place.compare(&[&[&*url][..], &load[..]].concat()).with(3).saying(&[said]);
        server.end("TERM");
    }
    place.compare(&["nginx", "--set", "mqtt.websocket=true"]).with(2);
    place.nobody_is_left();
}
