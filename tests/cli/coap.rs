//! CoAP end to end: compared with MQTT and HTTP, against libcoap's server, and with foreign clients
//! at the reference server.

use serde_json::Value;

use crate::foreign::python;
use crate::rig::{Place, cells, figure, has, has_hosts, ledgers_are_whole};
use crate::serving::Server;
use crate::wire::tshark;

/// Each type has the guarantee of its lane, every message is confirmed, and the server counts them.
#[test]
fn it_is_compared_with_the_same_guarantee_of_others() {
    let place = Place::new("coap-compare");
    let words = ["coap", "mqtt", "http", "--pattern", "publish", "-n", "200", "-s", "120B"];
    place.compare(&words).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 6);
    let of = |kind: &str| {
        let found = cells(&summary).iter().find(|cell| cell["point"]["coap.type"] == kind);
        found.unwrap_or_else(|| panic!("{kind} was measured")).clone()
    };
    for (kind, guarantee) in [("con", "at least once"), ("non", "at most once")] {
        let cell = of(kind);
        assert_eq!(cell["guarantee"], guarantee);
        assert_eq!(cell["ledger"]["delivered"], 200, "{kind}: {}", cell["ledger"]);
    }
    for finished in place.of_kind("trial_finished") {
        assert_eq!(finished["server"]["unique"], 200, "{}", finished["point"]);
    }
}

/// Observers get what was sent; a state that a newer one replaced is lost by the server, which says
/// so.
#[test]
fn observers_are_delivered_to() {
    let place = Place::new("coap-deliver");
    let words = ["coap", "--pattern", "deliver", "-n", "300", "--set", "coap.notify_queue=1000"];
    place.compare(&words).with(0);
    ledgers_are_whole(&place, 300);
}

/// libcoap's own client stores, reads and discovers, also with blocks and with NON.
#[test]
fn the_client_of_libcoap_is_served() {
    const CLIENT: &str = "coap-client-notls";
    if !has(CLIENT) {
        return;
    }
    let place = Place::new("coap-client");
    let large = "x".repeat(3_000);
    place.write("large", &large);
    let server = Server::start(&place, &["coap"]);
    let ask = |words: &[&str], path: &str| {
        let url = format!("{}/{path}", server.url);
        let output = place.program(CLIENT, &[words, &[&*url]].concat()).output().expect("it runs");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    ask(&["-m", "post", "-e", "first"], "messages");
    ask(&["-N", "-m", "put", "-e", "second"], "messages");
    assert!(ask(&["-m", "get"], "messages").contains("second"));
    ask(&["-m", "post", "-f", "large"], "messages");
    assert!(ask(&["-m", "get"], "messages").contains(&large));
    assert!(ask(&["-m", "get"], ".well-known/core").contains("</messages>;obs"));
    let (code, last) = server.end("TERM");
    assert_eq!(code, Some(0), "{last}");
    let report: Value = serde_json::from_str(last.trim()).expect("the last line is JSON");
    assert!(report.to_string().contains("\"received\":3"), "{report}");
}

/// libcoap's server takes every message of both types, and leaves nothing behind.
#[test]
fn the_server_of_libcoap_is_measured() {
    if !has("coap-server-notls") {
        return;
    }
    let place = Place::new("libcoap");
    place.compare(&["libcoap", "-n", "200", "--pattern", "publish"]).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 2);
    for cell in cells(&summary) {
        assert_eq!(cell["ledger"]["delivered"], 200, "{}", cell["ledger"]);
        assert_eq!(cell["point"]["coap.method"], "PUT");
    }
    // It does not take a POST where its example keeps data, and its answer is in the ledger.
    let refused = ["libcoap", "-n", "20", "--pattern", "publish", "--set", "coap.method=POST"];
    place.compare(&refused).with(2).saying(&["coap.method", "cannot do POST"]);
    place.nobody_is_left();
}

/// A client of aiocoap, where Python has it, stores and observes.
#[test]
fn the_client_of_aiocoap_is_served() {
    let Some(python) = python("WEIGH_AIOCOAP", "aiocoap") else { return };
    let place = Place::new("aiocoap");
    place.write("client.py", AIOCOAP);
    let server = Server::start(&place, &["coap"]);
    let url = format!("{}/messages", server.url);
    let output =
        place.program(&python, &["-W", "ignore", "client.py", &url]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.trim(), "2.04 Changed; observed: b'two'; blocks: 5000", "{said}");
    assert_eq!(server.end("TERM").0, Some(0));
}

const AIOCOAP: &str = r#"
import asyncio, sys
from aiocoap import Context, Message, GET, POST, NON

async def main(url):
    context = await Context.create_client_context()
    first = await context.request(Message(code=POST, uri=url, payload=b'one')).response
    registered = context.request(Message(code=GET, uri=url, observe=0))
    await registered.response
    heard = asyncio.get_running_loop().create_future()
    registered.observation.register_callback(
        lambda message: heard.done() or heard.set_result(message.payload))
    await context.request(Message(code=POST, uri=url, payload=b'two', mtype=NON)).response
    payload = await asyncio.wait_for(heard, 5)
    await context.request(Message(code=POST, uri=url, payload=b'x' * 5000)).response
    whole = await context.request(Message(code=GET, uri=url)).response
    print(f'{first.code}; observed: {payload}; blocks: {len(whole.payload)}')
    await context.shutdown()

asyncio.run(main(sys.argv[1]))
"#;

#[test]
fn what_is_not_there_is_named() {
    let place = Place::new("coap-nowhere");
    let refused = place.compare(&["coap://127.0.0.1:1", "-n", "5"]);
    refused.with(3).saying(&["coap://127.0.0.1:1", "connection refused"]);
    // The consumer would get the first block of each.
    let large = place.compare(&["coap", "--pattern", "deliver", "-s", "2KB", "-n", "5"]);
    large.with(2).saying(&["-s", "one block", "--pattern poll"]);
    let held = place.compare(&["coap", "--pattern", "poll", "--wait", "30s", "-n", "5"]);
    held.with(2).saying(&["--pattern deliver"]);
}

/// Objects go block by block to both servers, one file that is larger than a piece too.
#[test]
fn objects_are_transferred_block_by_block() {
    let place = Place::new("coap-transfer");
    let words = ["coap", "--pattern", "transfer", "-s", "200KB", "-n", "5", "--timeout", "30s"];
    place.compare(&words).with(0);
    ledgers_are_whole(&place, 5);
    for finished in place.of_kind("trial_finished") {
        assert_eq!(finished["server"]["unique"], 5, "{}", finished["point"]);
    }
    if has("coap-server-notls") {
        let other = Place::new("coap-transfer-libcoap");
        let words = ["libcoap", "--pattern", "transfer", "-s", "20KB", "-n", "5"];
        other.compare(&words).with(0);
        for cell in cells(&other.summary()) {
            assert_eq!(cell["ledger"]["delivered"], 5, "{}", cell["ledger"]);
        }
        other.nobody_is_left();
    }
}

/// Consumers ask for what is new, and get every message once.
#[test]
fn consumers_poll() {
    let place = Place::new("coap-poll");
    let words = ["coap", "--pattern", "poll", "--period", "50ms", "-R", "200/s", "-n", "300"];
    place.compare(&[&words[..], &["-c", "4", "-y", "2", "-s", "120B"]].concat()).with(0);
    for cell in cells(&place.summary()) {
        assert_eq!(cell["ledger"]["delivered"], 600, "{}", cell["ledger"]);
        assert!(figure(cell, "polls") > 10.0 && figure(cell, "messages_per_poll") > 1.0);
    }
}

/// What a server can do, and a plan that asks for more.
#[test]
fn servers_are_probed() {
    let place = Place::new("coap-probe");
    let found = place.weigh(&["probe", "coap", "--json"]).with(0).json();
    let status = |found: &Value, name: &str| {
        let all = found["abilities"].as_array().expect("a list");
        let own = all.iter().find(|own| own["name"] == name).expect("it was asked");
        own["status"].as_str().expect("a word").to_owned()
    };
    for name in ["ping", "method_post", "observe", "block1", "block2", "no_response"] {
        assert_eq!(status(&found, name), "yes", "{name}: {found}");
    }
    if has("coap-server-notls") {
        place.weigh(&["probe", "libcoap", "-o", "libcoap.toml"]).with(0);
        let found = place.weigh(&["probe", "libcoap", "--json"]).with(0).json();
        assert_eq!(status(&found, "ping"), "yes", "{found}");
        assert_eq!(status(&found, "method_put"), "yes", "{found}");
        assert_eq!(status(&found, "method_post"), "refused", "{found}");
        assert_eq!(status(&found, "block1"), "yes", "{found}");
        let words = ["libcoap", "--abilities", "libcoap.toml", "--pattern", "publish", "-n", "5"];
        place.compare(&words).with(0);
    }
    let nothing = place.weigh(&["probe", "coap://127.0.0.1:1"]).with(3);
    nothing.saying(&["coap://127.0.0.1:1", "no process listens"]);
    place.weigh(&["probe", "coaps://127.0.0.1:1"]).with(2).saying(&["coap:// URL"]);
}

/// Every byte of a message, by layer: 14 Ethernet, 20 IP, 8 UDP, 20 CoAP, 100 body; tshark finds
/// the same datagrams.
#[test]
fn bytes_are_counted_by_layer_and_tshark_agrees() {
    let test = "bytes_are_counted_by_layer_and_tshark_agrees";
    if !has_hosts(test) || !has("tshark") {
        return;
    }
    let place = Place::new("coap-wire");
    let words = ["compare", "coap", "--pattern", "publish", "-s", "100B", "-n", "10"];
    let more = ["--wire", "--pcap", "-Q", "--reps", "1", "--warmup", "0s", "-c", "1"];
    place.weigh(&[&words[..], &more].concat()).with(0);
    let summary = place.summary();
    for cell in cells(&summary) {
        let of = |name: &str| figure(cell, &format!("wire.{name}"));
        let name = &cell["name"];
        assert_eq!((of("sent.packets"), of("received.packets")), (10.0, 10.0), "{name}");
        assert_eq!(of("sent.bytes"), 10.0 * (14.0 + 20.0 + 8.0 + 20.0 + 100.0), "{name}");
        assert_eq!(of("received.bytes"), 10.0 * (14.0 + 20.0 + 8.0 + 8.0), "{name}");
        for (layer, bytes) in
            [("ip", 200.0), ("transport", 80.0), ("protocol", 200.0), ("payload", 1000.0)]
        {
            assert_eq!(of(&format!("sent.layers.{layer}_bytes")), bytes, "{name} {layer}");
        }
    }
    for finished in place.of_kind("trial_finished") {
        let file = place.pcap(&finished);
        let metric = |name: &str| finished["metrics"][name].as_f64().expect("a figure");
        for (way, code) in [("sent", "coap.code == 2"), ("received", "coap.code == 68")] {
            let decode = ["-d", "udp.port==1-65535,coap"];
            let rows = tshark(&file, code, &["frame.len"], &decode);
            let lengths: Vec<f64> = rows.iter().filter_map(|row| row[0].parse().ok()).collect();
            assert_eq!(lengths.len() as f64, metric(&format!("wire.{way}.packets")), "{way}");
            let bytes: f64 = lengths.iter().sum();
            assert_eq!(bytes, metric(&format!("wire.{way}.bytes")), "{way}");
        }
    }
}
