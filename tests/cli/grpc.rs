//! Services of gRPC that are not Weighbridge's: servers by grpcio (Python), called by their
//! definitions in files and by reflection. What a server counts is what the ledger says.

use serde_json::Value;

use crate::foreign::{Counting, python};
use crate::rig::{Ended, Place, cells, signal};
use crate::serving::Server;

/// A server by grpcio, with what it needs in its folder; `None`, and said, where Python does not
/// have the library.
fn start(place: &Place, words: &[&str]) -> Option<Counting> {
    let python = python("WEIGH_GRPCIO", "grpc, grpc_tools, grpc_reflection")?;
    write_definitions(place);
    place.write("server.py", include_str!("grpc/server.py"));
    let files = ["greeter.proto", "lab.proto", "parts/site.proto"];
    let tool = ["-m", "grpc_tools.protoc", "-I.", "--python_out=.", "--grpc_python_out=."];
    let made = place.program(&python, &[&tool[..], &files].concat()).output().expect("it runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(Counting::start(place.program(&python, &[&["server.py"], words].concat())))
}

/// Ends it; what it counted.
fn end(server: Counting) -> Value {
    signal("TERM", server.process.id());
    serde_json::from_str(&server.end()).expect("the last line is JSON")
}

fn write_definitions(place: &Place) {
    std::fs::create_dir_all(place.folder().join("parts")).expect("a folder");
    place.write("greeter.proto", include_str!("grpc/greeter.proto"));
    place.write("lab.proto", include_str!("grpc/lab.proto"));
    place.write("parts/site.proto", include_str!("grpc/parts/site.proto"));
}

fn ledger(ended: &Ended) -> Value {
    cells(&ended.json())[0]["ledger"].clone()
}

const HELLO: [&str; 4] = ["--proto", "greeter.proto", "--method", "helloworld.Greeter/SayHello"];

/// A unary call with metadata, also secret and binary, and the numbers of the message in it.
#[test]
fn a_greeter_is_called_with_metadata() {
    let place = Place::new("grpc-greeter");
    let Some(server) = start(&place, &[]) else { return };
    let url = server.url("grpc");
    let message = ["--message", r#"{"name": "{client}-{seq}"}"#, "--metadata", "x-site: 7"];
    let further = ["--secret-header", "x-token: hush-hush", "-H", "x-raw-bin: AQI="];
    let load = ["-n", "300", "-c", "2", "--window", "4", "--json"];
    let words = [&[&*url][..], &HELLO, &message, &further, &load].concat();
    let ended = place.compare(&words).with(0);
    let found = ledger(&ended);
    assert_eq!((&found["delivered"], &found["lost"]), (&300.into(), &0.into()), "{found}");
    assert!(!std::fs::read_to_string(place.run().join("journal.jsonl")).unwrap().contains("hush"));
    let counted = end(server);
    assert_eq!(counted["hello"], 300, "{counted}");
    let metadata = ["x-raw-bin=0102", "x-site=7", "x-token=hush-hush"];
    assert_eq!(counted["metadata"], serde_json::json!(metadata), "{counted}");
}

/// Nested, repeated, map, oneof, enumeration and well-known types, by reflection; each message has
/// its own numbers and the body of the load.
#[test]
fn any_message_is_made_of_json_by_reflection() {
    let place = Place::new("grpc-lab");
    let Some(server) = start(&place, &["--reflection"]) else { return };
    let url = server.url("grpc");
    place.write("sample.json", SAMPLE);
    let words = [&*url, "--method", "lab.v1.Lab/Record", "--message", "@sample.json"];
    let load = ["-n", "200", "-c", "2", "-s", "100B", "--json"];
    let found = ledger(&place.compare(&[&words[..], &load].concat()).with(0));
    assert_eq!((&found["delivered"], &found["lost"]), (&200.into(), &0.into()), "{found}");
    // The same by the files.
    let files = ["--proto", "lab.proto", "--import-path", "."];
    let found = ledger(&place.compare(&[&words[..], &files, &load].concat()).with(0));
    assert_eq!(found["delivered"], 200, "{found}");
    let unknown = [&*url, "--method", "lab.v1.Lap/Record", "-n", "1"];
    place.compare(&unknown).with(2).saying(&["no service lab.v1.Lap", "lab.v1.Lab"]);
    let counted = end(server);
    assert_eq!((&counted["unique"], &counted["wrong"]), (&200.into(), &0.into()), "{counted}");
}

const SAMPLE: &str = r#"{
    "number": "{seq}",
    "client": "{client}",
    "kind": "WATER",
    "values": [1, -2, 3],
    "tags": {"ph": 6.1, "ec": -0.5},
    "raw": "{body}",
    "site": {"name": "site {client}/{seq}", "near": [{"near": [{"name": "inner"}]}]},
    "at": "1970-01-01T00:00:01Z",
    "delta": -7,
    "serial": "{seq}",
    "ratio": "{client}",
    "isNew": true
}"#;

/// Statuses are causes by their names, and deadlines end calls.
#[test]
fn statuses_and_deadlines_are_causes_by_name() {
    let place = Place::new("grpc-statuses");
    let Some(server) = start(&place, &["--reflection"]) else { return };
    let url = server.url("grpc");
    let apart = Place::new("grpc-deadlines");
    let call = |place: &Place, method: &str, further: &[&str]| {
        let words = [&*url, "--method", method, "-n", "20", "--undecided", "pass"];
        place.compare(&[&words[..], &["-c", "2"], further].concat())
    };
    let failed = call(&place, "lab.v1.Lab/Fail", &[]).with(0);
    assert!(failed.stderr.contains("RESOURCE_EXHAUSTED"), "{}", failed.stderr);
    let slow = call(&apart, "lab.v1.Lab/Slow", &["--deadline", "50ms"]).with(0);
    assert!(slow.stderr.contains("DEADLINE_EXCEEDED"), "{}", slow.stderr);
    assert!(slow.stderr.contains("grpc.deadline"), "{}", slow.stderr);
    let summary = apart.summary();
    let causes = &cells(&summary)[0]["ledger"]["causes"];
    assert_eq!(causes["error_answer"], 20, "{causes}");
    let in_time = call(&place, "lab.v1.Lab/Slow", &["--deadline", "5s", "--json"]).with(0);
    assert_eq!(ledger(&in_time)["delivered"], 20);
    // Calls that the client gave up may not have reached the method.
    let counted = end(server);
    let calls = counted["calls"].as_u64().expect("a number");
    assert!((40..=60).contains(&calls), "{counted}");
}

/// Streams: of the client for a batch, of the server for a request, and both for a dialogue.
#[test]
fn streams_of_a_foreign_service_are_patterns() {
    let place = Place::new("grpc-streams");
    let Some(server) = start(&place, &["--reflection"]) else { return };
    let url = server.url("grpc");
    let call = |method: &str, further: &[&str]| {
        let method = format!("helloworld.Greeter/{method}");
        let words = [&*url, "--method", &method, "--message", r#"{"name": "{body}"}"#];
        let load = ["-n", "600", "-c", "2", "-s", "80B", "--json"];
        ledger(&place.compare(&[&words[..], &load, further].concat()).with(0))
    };
    let batch = call("SayHelloLots", &["--pattern", "batch", "--batch", "20"]);
    assert_eq!((&batch["delivered"], &batch["lost"]), (&600.into(), &0.into()), "{batch}");
    let alone = call("SayHelloLots", &[]);
    assert_eq!(alone["delivered"], 600, "{alone}");
    let lots = call("LotsOfReplies", &[]);
    assert_eq!(lots["delivered"], 600, "{lots}");
    let chat = call("Chat", &["--window", "8"]);
    assert_eq!((&chat["delivered"], &chat["lost"]), (&600.into(), &0.into()), "{chat}");
    let each = call("Chat", &["--set", "grpc.streaming=client"]);
    assert_eq!(each["delivered"], 600, "{each}");
    let counted = end(server);
    assert_eq!((&counted["lots"], &counted["hello"]), (&1200.into(), &600.into()), "{counted}");
    assert_eq!((&counted["chat"], &counted["calls"]), (&1200.into(), &602.into()), "{counted}");
}

/// The built-in service in one call for each connection, with an answer to each message.
#[test]
fn the_store_answers_each_message_of_a_stream() {
    for pattern in ["request", "publish"] {
        let place = Place::new(&format!("grpc-bidi-{pattern}"));
        let words = ["grpc", "--set", "grpc.streaming=bidi", "--pattern", pattern, "--window", "8"];
        let found =
            ledger(&place.compare(&[&words[..], &["-n", "400", "--json"]].concat()).with(0));
        assert_eq!((&found["delivered"], &found["lost"]), (&400.into(), &0.into()), "{found}");
        let journal = place.journal();
        let finished = journal.iter().find(|event| event["event"] == "trial_finished");
        assert_eq!(finished.expect("a trial")["server"]["unique"], 400);
    }
    let place = Place::new("grpc-bidi-deadline");
    let deadline = ["grpc", "--set", "grpc.streaming=bidi", "--deadline", "1s", "-n", "1"];
    place.compare(&deadline).with(2).saying(&["--deadline", "leave it out"]);
}

/// The built-in service called as any other, by its definition: the server counts what was sent.
#[test]
fn the_store_is_called_by_its_definition() {
    let place = Place::new("grpc-store");
    place.write("store.proto", include_str!("../../crates/protocols/proto/store.proto"));
    let server = Server::start(&place, &["grpc"]);
    let method = ["--proto", "store.proto", "--method", "weigh.store.v1.Store/Append"];
    let message = ["--message", r#"{"reading": "{body}"}"#, "-n", "200", "--json"];
    let words = [&[&*server.url][..], &method, &message].concat();
    let found = ledger(&place.compare(&words).with(0));
    assert_eq!(found["delivered"], 200, "{found}");
    let (code, last) = server.end("INT");
    assert_eq!(code, Some(0));
    let report: Value = serde_json::from_str(last.trim()).expect("a report");
    assert_eq!((&report["received"], &report["unique"]), (&200.into(), &200.into()), "{report}");
}

/// Whatever is wrong is named with its file and line before anything starts: no server is there.
#[test]
fn what_is_wrong_is_named_before_anything_starts() {
    let place = Place::new("grpc-wrong");
    write_definitions(&place);
    place.write("broken.proto", "syntax = \"proto3\";\n\nservice {\n");
    place.write("message.json", "{\n  \"name\": 7\n}");
    let said = |words: &[&str], says: &[&str]| {
        let words = [&["grpc://127.0.0.1:1", "-n", "5"], words].concat();
        place.compare(&words).with(2).saying(says);
    };
    let near = ["--proto", "greeter.proto", "--method", "helloworld.Greeter/SayHelo"];
    said(&near, &["has no method SayHelo", "did you mean helloworld.Greeter/SayHello?"]);
    let broken = ["--proto", "broken.proto", "--method", "a.B/C"];
    said(&broken, &["broken.proto:3:9"]);
    said(&[&HELLO[..], &["--message", "@message.json"]].concat(), &["message.json:2", "name"]);
    said(&[&HELLO[..], &["--message", r#"{"nmae": "x"}"#]].concat(), &["did you mean name?"]);
    said(&[&HELLO[..], &["--message", "{"]].concat(), &["it is not JSON"]);
    said(&["--proto", "greeter.proto"], &["--method"]);
    said(&["--method", "helloworld.Greeter/SayHello"], &["--proto FILE"]);
    let hosted = [&HELLO[..], &["--set", "grpc.implementation=hosted"]].concat();
    said(&hosted, &["grpc.implementation"]);
    place.compare(&["mqtt", "--proto", "greeter.proto"]).with(2).saying(&["belongs to grpc"]);
    // Methods of HTTP are for HTTP, those of services for gRPC.
    let words = ["grpc", "--method", "POST", "-n", "5"];
    place.compare(&words).with(2).saying(&["--method: belongs to"]);
}
