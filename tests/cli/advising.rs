//! `weigh advise` and `weigh size`: from a situation to an answer, without a run, with a
//! calibration and with a check; and what is refused.

use serde_json::Value;

use crate::rig::{Ended, Place, cells, has_hosts};
use crate::serving::Server;

const FLAGS: [&str; 6] = ["--devices", "2000", "--every", "1m", "-s", "125B"];

/// The program with a cache of its own.
fn run(place: &Place, words: &[&str]) -> Ended {
    let mut command = place.command(words);
    command.env("XDG_CACHE_HOME", place.folder().join("cache"));
    Ended::from(command.output().expect("the program starts"))
}

fn option<'d>(document: &'d Value, name: &str) -> &'d Value {
    let all = document["options"].as_array().expect("options");
    all.iter().find(|own| own["name"] == name).unwrap_or_else(|| panic!("{name}: {document:#}"))
}

#[test]
fn a_situation_has_an_answer_without_a_run() {
    let place = Place::new("advise");
    let words = ["advise", "mqtt", "http", "--tls", "on", "--save", "s.toml", "--page", "a.html"];
    let ended = run(&place, &[&words[..], &FLAGS[..]].concat()).with(0);
    assert!(ended.stdout.starts_with("Use "), "{}", ended.stdout);
    for part in [
        "mqtt qos 1, kept, TLS",
        "data/device/day     in 30 days",
        "Out:",
        "mqtt qos 0, kept, TLS: it guarantees",
        "Assumed:",
    ] {
        assert!(ended.stdout.contains(part), "{part} is not in\n{}", ended.stdout);
    }
    let page = std::fs::read_to_string(place.folder().join("a.html")).expect("the page");
    assert!(page.contains("<svg") && page.contains("Where the answer turns"), "{page}");
    assert!(!page.contains("<script"), "the page needs no script");
    let headings = "<th>data/device/day</th><th>in 30 days</th>";
    assert!(page.contains(headings), "{page}");
    // The file that was saved gives the same answer, and so does its document.
    let again = run(&place, &["advise", "s.toml"]).with(0);
    // Signatures of ECDSA have one or two bytes more or less.
    let without_numbers = |text: &str| text.replace(|c: char| c.is_ascii_digit() || c == '.', "");
    assert_eq!(without_numbers(&again.stdout), without_numbers(&ended.stdout));
    let json = run(&place, &["advise", "s.toml", "--json"]).with(0).json();
    assert_eq!(json["schema"], "weigh/advice/1");
    assert_eq!(option(&json, "mqtt qos 0, kept, TLS")["standing"], "out");
    assert!(!place.folder().join("runs").exists(), "nothing was run");
    place.nobody_is_left();
}

/// A path in numbers is as good as a preset, also in the plan that would settle what is open.
#[test]
fn a_path_may_be_numbers() {
    let place = Place::new("advise-numbers");
    let path = ["--path", "lte,delay=30ms,loss=2%", "--matters", "latency", "--json"];
    let ended = run(&place, &[&["advise", "mqtt", "http"][..], &path, &FLAGS].concat()).with(0);
    let plan = ended.json()["plan"].as_str().expect("a plan").to_owned();
    for line in ["path = \"lte\"", "\"path.delay\" = \"30ms\"", "\"path.loss\" = \"2%\""] {
        assert!(plan.contains(line), "{line} is not in\n{plan}");
    }
    place.write("plan.toml", &plan);
    place.weigh(&["run", "plan.toml", "--dry"]).with(0);
}

#[test]
fn the_answer_fits_80_columns() {
    let place = Place::new("advise-narrow");
    for words in [&["advise", "mqtt", "http"][..], &["size", "mqtt", "http", "--tls", "on"]] {
        let mut command = place.command(&[words, &FLAGS[..]].concat());
        command.env("COLUMNS", "80").env("XDG_CACHE_HOME", place.folder());
        let ended = Ended::from(command.output().expect("the program starts")).with(0);
        let widest = ended.stdout.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{widest:?}\n{}", ended.stdout);
        let data = ["data/device/day", "in 30 days"];
        assert!(data.iter().all(|own| ended.stdout.contains(own)), "{}", ended.stdout);
    }
}

/// Ten messages over a wire, on one connection and on ten: bodies, protocol and TLS are exact but
/// for the lengths of names, ports and signatures, and all bytes from IP up are within the bounds
/// of the acknowledgements.
#[test]
fn bytes_are_those_of_a_capture() {
    if !has_hosts("bytes_are_those_of_a_capture") {
        return;
    }
    let place = Place::new("advise-wire");
    for (tls, suffix) in [("off", ""), ("on", ", TLS")] {
        let flags = ["--devices", "1", "--every", "250ms", "-s", "125B", "--tls", tls, "--json"];
        let json = run(&place, &[&["advise", "mqtt", "http"], &flags[..]].concat()).json();
        for (pattern, way, connections) in [("publish", "kept", 1.0), ("session", "one each", 10.0)]
        {
            let load = ["-n", "10", "-R", "4/s", "-c", "1", "-s", "125B", "--pattern", pattern];
            let words = ["mqtt", "http", "--wire", "-Q", "--tls", tls, "--set", "mqtt.qos=1"];
            let full = ["--set", "mqtt.tls_resume=false", "--set", "http1.tls_resume=false"];
            // A message that is sent late must not share a record with the next one.
            let one: &[&str] = if pattern == "publish" { &["--window", "1"] } else { &[] };
            let command = [&words[..], &full[..], &load[..], one].concat();
            let summary = without_repetition(&place, &command);
            for (cell, lane) in [(0, "mqtt qos 1"), (1, "http1")] {
                let own = option(&json, &format!("{lane}, {way}{suffix}"));
                compare(&summary["cells"][cell]["metrics"], own, (pattern, connections));
            }
            std::fs::remove_dir_all(place.run()).expect("the run is removed");
        }
    }
}

/// The same of CoAP without DTLS and inside it, where a device keeps its session: the handshake,
/// its records and every header.
#[test]
fn bytes_of_datagrams_are_those_of_a_capture() {
    if !has_hosts("bytes_of_datagrams_are_those_of_a_capture") {
        return;
    }
    let place = Place::new("advise-datagrams");
    for (tls, suffix) in [("off", ""), ("on", ", TLS")] {
        let flags = ["--devices", "1", "--every", "250ms", "-s", "125B", "--tls", tls, "--json"];
        let json = run(&place, &[&["advise", "coap"], &flags[..]].concat()).json();
        let load = ["-n", "10", "-R", "4/s", "-c", "1", "-s", "125B", "--pattern", "publish"];
        let words = ["coap", "--wire", "-Q", "--tls", tls, "--set", "coap.type=con"];
        let summary = without_repetition(&place, &[&words[..], &load[..]].concat());
        let metrics = &summary["cells"][0]["metrics"];
        let has_handshake = metrics["wire.phases.set_up.layers.tls_handshake_bytes"]["value"]
            .as_f64()
            .is_some_and(|bytes| bytes > 500.0);
        assert_eq!(has_handshake, tls == "on", "{metrics:#}");
        let own = option(&json, &format!("coap type con, datagrams{suffix}"));
        compare(metrics, own, ("publish", 1.0));
        std::fs::remove_dir_all(place.run()).expect("the run is removed");
    }
}

/// The summary of a run in which TCP sent nothing again. On a busy machine a timer may come before
/// the answer, and those packets are bytes too: then the run is repeated, twice at most.
fn without_repetition(place: &Place, command: &[&str]) -> Value {
    for _ in 0..2 {
        place.compare(command).with(0);
        let summary = place.summary();
        let again = |cell: &Value| {
            cell["metrics"]["wire.retransmitted_packets"]["value"].as_f64().unwrap_or_default()
        };
        if cells(&summary).iter().all(|cell| again(cell) == 0.0) {
            return summary;
        }
        std::fs::remove_dir_all(place.run()).expect("the run is removed");
    }
    place.compare(command).with(0);
    place.summary()
}

/// Compares what was captured of ten messages with what is computed for them.
fn compare(metrics: &Value, own: &Value, (pattern, connections): (&str, f64)) {
    let name = own["name"].as_str().expect("a name");
    let captured = |layer: &str| -> f64 {
        let phases = ["set_up", "messages", "tear_down"];
        let of =
            |phase: &&str| metrics[format!("wire.phases.{phase}.layers.{layer}_bytes")].clone();
        phases.iter().map(|phase| of(phase)["value"].as_f64().unwrap_or_default()).sum()
    };
    let layer = |bound: &str, layer: &str| {
        let of = |part: &str| own[part][bound][layer].as_f64().expect("a number");
        let around = if pattern == "publish" { of("around") } else { 0.0 };
        10.0 * of("message") + around
    };
    assert_eq!(captured("payload"), layer("low", "payload"), "{name}");
    // A name, a topic and a port have up to a dozen bytes more or less.
    let slack = 12.0 * connections.max(1.0) + 10.0 * 2.0;
    let near = |what: &str, found: f64, expected: f64, slack: f64| {
        assert!((found - expected).abs() <= slack, "{name}: {what} {found}, computed {expected}");
    };
    near("protocol", captured("protocol"), layer("low", "protocol"), slack);
    let tls = captured("tls_handshake") + captured("tls_record");
    if pattern == "session" && tls > 0.0 {
        // Both ends say close_notify, whichever is the first: a record of 24 bytes each.
        let closing = &metrics["wire.phases.tear_down.layers.tls_record_bytes"]["value"];
        assert_eq!(closing.as_f64(), Some(48.0 * connections), "{name}");
    }
    // Signatures of ECDSA differ in length: that of the handshake, and that in the certificate.
    near("TLS", tls, layer("low", "tls"), 8.0 * connections);
    let found = captured("ip") + captured("transport");
    let [low, high] =
        ["low", "high"].map(|bound| layer(bound, "network") + layer(bound, "transport"));
    assert!(
        (low..=high).contains(&found),
        "{name}: {found} B of headers, {low} to {high} computed"
    );
}

/// A calibration is kept and used again; then a check replaces the prediction.
#[test]
fn costs_are_measured_kept_and_checked() {
    let place = Place::new("calibrate");
    let flags = ["--devices", "40", "--every", "100ms", "-s", "64B", "--tls", "off"];
    let with = |words: &[&'static str]| [words, &flags[..]].concat();
    let dry = run(&place, &with(&["advise", "tcp", "--calibrate", "--dry"])).with(0);
    assert!(dry.stdout.contains("[[case]]") && !place.folder().join("runs").exists());
    // Nothing is known of TCP frames.
    let unknown = run(&place, &with(&["advise", "tcp", "--json"])).with(98).json();
    let why = option(&unknown, "tcp, kept")["why"].as_str().expect("a reason").to_owned();
    assert!(why.contains("never measured"), "{why}");
    let sized = run(&place, &with(&["size", "tcp", "-Q", "--json"])).with(0).json();
    let kept = &sized["options"][0];
    let cpu = &kept["option"]["figures"]["server-cpu"];
    let is_known = cpu["value"].as_f64().is_some_and(|cpu| cpu > 0.0)
        || kept["option"]["why"].as_str().is_some_and(|why| why.contains("held out"));
    assert!(is_known, "{kept:#}");
    assert_eq!(
        std::fs::read_dir(place.folder().join("cache/weigh/cells")).expect("kept").count(),
        1
    );
    let runs = || std::fs::read_dir(place.folder().join("runs")).expect("runs").count();
    assert_eq!(runs(), 1);
    run(&place, &with(&["size", "tcp", "-Q"])).with(0);
    assert_eq!(runs(), 1, "what is kept is not measured again");
    let checked = run(&place, &with(&["advise", "tcp", "--check", "-Q", "--json"]));
    assert_eq!(runs(), 2, "{}", checked.stderr);
    let text = checked.stdout.find("{\n").map(|at| checked.stdout[at..].to_owned());
    let json: Value = serde_json::from_str(&text.expect("a document")).expect("JSON");
    let own = option(&json, "tcp, kept");
    assert!(own["figures"]["server-cpu"]["value"].as_f64().is_some_and(|cpu| cpu > 0.0), "{own:#}");
    place.nobody_is_left();
}

/// A server that another process started: nothing is sent to it until the user says so, then its
/// costs are measured with a bounded load, and sized.
#[test]
fn a_running_server_is_sized_when_the_user_says_so() {
    let place = Place::new("size-url");
    let server = Server::start(&place, &["mqtt"]);
    let port = server.url.rsplit(':').next().expect("a port").trim_end_matches('/');
    let observe = format!("port:{port}");
    let flags = ["--devices", "300", "--every", "1s", "-s", "64B", "--tls", "off"];
    let size = |words: &[&str]| run(&place, &[&["size", &*server.url], words, &flags[..]].concat());
    size(&[]).with(2).saying(&["add --calibrate --observe port:PORT"]);
    let computed = size(&["--no-run"]).with(0).stdout;
    assert!(computed.contains("never measured") && computed.contains("MiB"), "{computed}");
    assert!(!place.folder().join("runs").exists(), "nothing was sent");

    let measure = ["--calibrate", "--observe", &*observe, "-Q", "--save-cells", "c.json", "--json"];
    let json = size(&measure).with(0).json();
    let name = format!("{} qos 1, kept", server.url);
    let own = json["options"].as_array().expect("options");
    let own = own.iter().find(|own| own["option"]["name"] == *name).expect("its option");
    let figures = &own["option"]["figures"];
    let is_known = figures["server-cpu"]["value"].as_f64().is_some_and(|cpu| cpu > 0.0)
        || own["option"]["missing"]["server-cpu"]["why"]
            .as_str()
            .is_some_and(|why| why.contains("held out"));
    assert!(is_known, "{own:#}");
    assert!(figures["memory"]["value"].as_f64().is_some_and(|bytes| bytes > 1e6), "{own:#}");
    let cells: Value = serde_json::from_str(
        &std::fs::read_to_string(place.folder().join("c.json")).expect("the cells"),
    )
    .expect("JSON");
    for cell in cells["cells"].as_array().expect("cells") {
        assert_eq!(cell["target"], *server.url);
        let messages = cell["repetitions"][0]["messages"].as_f64().expect("a rate");
        assert!(messages <= 2_100.0 && cell["connections"].as_f64() <= Some(500.0), "{cell}");
    }
    // The cells are in no cache, and answer again from the file.
    assert!(!place.folder().join("cache/weigh/cells").exists(), "a URL may change its server");
    let again = size(&["--cells", "c.json", "--json"]).with(0).json();
    assert_eq!(again["options"], json["options"]);
    server.end("TERM");
    place.nobody_is_left();
}

/// Bad input: one clear sentence each, and nothing is started.
#[test]
fn what_is_wrong_is_said_in_one_sentence() {
    let place = Place::new("advise-wrong");
    place.write(
        "s.toml",
        "schema = \"weigh/situation/1\"\n[traffic]\ndevices = 0\nevery = \"1m\"\nsize = \"1B\"\n",
    );
    place.write("cells.json", "{}");
    let flags = &FLAGS[..];
    let cases: [(&[&str], &str); 17] = [
        (&["advise"], "no terminal to ask in"),
        (&["advise", "s.toml"], "no device sends anything"),
        (&["advise", "none.toml"], "none.toml: cannot be read"),
        (&["advise", "mqtt", "--devices", "10", "--every", "60"], "60s"),
        (&["advise", "mqtt", "--devices", "10", "-s", "125"], "125B"),
        (&["advise", "mqt", "--devices", "10"], "did you mean mqtt"),
        (&["advise", "mqtt", "--devices", "10", "--path", "moon"], "not a known path"),
        (&["advise", "mqtt", "--devices", "10", "--device", "nrf9160", "--radio", "5g"], "radio"),
        (&["advise", "mqtt", "--devices", "10", "--device", "nrf9160"], "belong together"),
        (&["advise", "mqtt", "--devices", "10", "--matters", "speed"], "speed"),
        (&["advise", "mqtt", "--devices", "10", "--matters", "energy"], "no device is given"),
        (&["advise", "mqtt", "--devices", "10", "--cells", "cells.json"], "not a file of cells"),
        (&["size", "mqtt://127.0.0.1:1", "--devices", "10"], "add --calibrate --observe port:PORT"),
        (
            &["size", "mqtt://127.0.0.1:1", "--devices", "10", "--calibrate"],
            "cannot be seen from outside",
        ),
        (&["size", "mqtt://u:p@127.0.0.1:1", "--devices", "10"], "a password in a URL"),
        (&["advise", "ws://127.0.0.1:1", "--devices", "10"], "bytes of WebSocket"),
        (&["advise", "mqtt", "--devices", "10", "--check", "--matters", "bytes"], "computed"),
    ];
    for (words, expected) in cases {
        let ended = run(&place, words).with(2);
        assert!(
            ended.stderr.contains(expected),
            "{words:?}: {expected} is not in {}",
            ended.stderr
        );
    }
    let no_run = run(&place, &[&["size", "mosquitto", "--no-run"], flags].concat()).with(0);
    assert!(no_run.stdout.contains("never measured"), "{}", no_run.stdout);
    // More than any option can carry, and more than was measured.
    let small = ["advise", "mqtt", "http", "--memory", "4MiB", "--tls", "off"];
    let out =
        run(&place, &[&small[..], &["--devices", "90000", "--every", "1m"]].concat()).with(98);
    assert!(out.stdout.contains("of memory, and"), "{}", out.stdout);
    let beyond = run(&place, &["advise", "mqtt", "--devices", "1M", "--every", "1m"]).with(98);
    assert!(beyond.stdout.contains("weigh compare mqtt --set mqtt.qos=1"), "{}", beyond.stdout);
    assert!(!place.folder().join("runs").exists(), "nothing was run");
}
