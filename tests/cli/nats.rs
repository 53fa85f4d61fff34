//! NATS end to end: compared with MQTT and HTTP, against nats-server, and with a foreign client at
//! the reference server.

use serde_json::Value;

use crate::foreign::python;
#[cfg(feature = "tls")]
use crate::rig::warnings;
use crate::rig::{Place, cells, figure, has, has_hosts};
use crate::serving::Server;

/// The cell whose point has this `nats.confirm`.
fn of<'s>(summary: &'s Value, confirm: &str) -> &'s Value {
    let is_it = |cell: &&Value| cell["point"]["nats.confirm"] == confirm;
    let found = cells(summary).iter().find(is_it);
    found.unwrap_or_else(|| panic!("{confirm} was measured: {summary:#}"))
}

/// A core message is at most once, whatever confirms it; JetStream is at least once.
#[test]
fn it_is_compared_with_the_same_guarantee_of_others() {
    let place = Place::new("nats-compare");
    let words = ["nats", "mqtt", "http", "--pattern", "publish", "-n", "200", "-s", "120B"];
    place.compare(&words).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 6);
    for (confirm, guarantee) in [("jetstream", "at least once"), ("none", "at most once")] {
        let cell = of(&summary, confirm);
        assert_eq!(cell["guarantee"], guarantee);
        assert_eq!(cell["ledger"]["lost"], 0, "{confirm}: {}", cell["ledger"]);
    }
    for finished in place.of_kind("trial_finished") {
        assert_eq!(finished["server"]["unique"], 200, "{}", finished["point"]);
    }
    let place = Place::new("nats-flush");
    let flushed = ["nats", "--pattern", "publish", "-n", "200", "--set", "nats.confirm=flush"];
    place.compare(&flushed).with(0);
    let summary = place.summary();
    let cell = of(&summary, "flush");
    assert_eq!(
        (&cell["guarantee"], &cell["ledger"]["acknowledged"]),
        (&Value::from("at most once"), &Value::from(200))
    );
}

/// Every pattern, with a pull consumer and a queue group too; and the books hold.
#[test]
fn every_pattern_is_carried() {
    for words in [
        &["--pattern", "request"][..],
        &["--pattern", "session"],
        &["--pattern", "batch", "--set", "nats.confirm=flush"],
        &["--pattern", "deliver", "--set", "nats.confirm=jetstream", "--set", "nats.consume=pull"],
        &["--pattern", "deliver", "--subscribers", "3", "--topology", "shared"],
    ] {
        let place = Place::new("nats-patterns");
        place.compare(&[&["nats", "-n", "120", "-s", "64B"][..], words].concat()).with(0);
        for cell in cells(&place.summary()) {
            let ledger = &cell["ledger"];
            assert_eq!((&ledger["sent"], &ledger["lost"]), (&120.into(), &0.into()), "{words:?}");
        }
    }
    let place = Place::new("nats-poll");
    let poll = ["nats", "--pattern", "poll", "-R", "100/s", "-n", "200", "-s", "64B"];
    place.compare(&poll).with(0);
    assert_eq!(of(&place.summary(), "jetstream")["ledger"]["delivered"], 200);
}

/// nats-server takes and delivers every message, and counts them as the ledger does: of core
/// nothing else goes to it, of JetStream acknowledgements and requests too.
#[test]
fn the_real_server_counts_what_the_ledger_says() {
    if !has("nats-server") {
        return;
    }
    let place = Place::new("nats-server");
    let words = ["-n", "200", "-s", "120B"];
    place.compare(&[&["nats-server", "nats-server@memory"][..], &words].concat()).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 4);
    for cell in cells(&summary) {
        let (ledger, name) = (&cell["ledger"], &cell["name"]);
        assert_eq!(
            (&ledger["delivered"], &ledger["duplicates"]),
            (&200.into(), &0.into()),
            "{name}"
        );
        let counted = |what: &str| figure(cell, &format!("counter.{what}"));
        if cell["point"]["nats.confirm"] == "none" {
            assert_eq!((counted("received"), counted("forwarded")), (200.0, 200.0), "{name}");
            continue;
        }
        // 200 messages and 200 acknowledgements; 200 confirmations and 200 deliveries.
        assert!((400.0..420.0).contains(&counted("received")), "{name}: {}", counted("received"));
        assert!((400.0..420.0).contains(&counted("forwarded")), "{name}");
        let is_memory = cell["point"]["target"] == "nats-server@memory";
        let expected = if is_memory { "memory" } else { "fsync=2m" };
        assert_eq!(cell["durability"], expected, "{name}");
    }
    place.nobody_is_left();
}

/// Pull consumers, polls, requests, queue groups and flushes work at nats-server as at the
/// reference server.
#[test]
fn the_real_server_is_used_in_every_way() {
    if !has("nats-server") {
        return;
    }
    for words in [
        &["--set", "nats.confirm=jetstream", "--set", "nats.consume=pull"][..],
        &["--set", "nats.confirm=jetstream", "--set", "nats.message_id=true"],
        &["--set", "nats.confirm=jetstream", "--subscribers", "3", "--topology", "shared"],
        &["--set", "nats.confirm=none", "--subscribers", "3", "--topology", "shared"],
        &["--set", "nats.confirm=ok", "--pattern", "publish"],
        &["--set", "nats.confirm=flush", "--pattern", "batch"],
        &["--set", "nats.confirm=none", "--pattern", "request"],
        &["--set", "nats.confirm=jetstream", "--pattern", "session"],
        &["--set", "nats.confirm=jetstream", "--pattern", "poll", "-R", "200/s"],
    ] {
        let place = Place::new("nats-ways");
        let common = ["nats-server", "-n", "120", "-s", "64B"];
        place.compare(&[&common[..], words].concat()).with(0);
        for cell in cells(&place.summary()) {
            let ledger = &cell["ledger"];
            assert_eq!((&ledger["sent"], &ledger["lost"]), (&120.into(), &0.into()), "{words:?}");
        }
    }
    // The profile says what a confirmation means, so that it decides about the storage.
    let place = Place::new("nats-storage");
    let refused = ["nats-server", "-n", "5", "--set", "nats.storage=memory"];
    place.compare(&refused).with(2).saying(&["nats.storage", "cannot do memory", "give file"]);
    place.nobody_is_left();
}

/// TLS begins behind INFO, as servers before 2.10.4 need it; and so does that of the reference
/// server.
#[cfg(feature = "tls")]
#[test]
fn connections_are_upgraded_to_tls() {
    let place = Place::new("nats-tls");
    let mut targets = vec!["nats"];
    if has("nats-server") {
        targets.push("nats-server");
    }
    let words = ["-n", "100", "-s", "64B", "--tls", "on"];
    place.compare(&[&targets[..], &words].concat()).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 2 * targets.len());
    for cell in cells(&summary) {
        assert_eq!(cell["ledger"]["delivered"], 100, "{}: {}", cell["name"], cell["ledger"]);
        assert_eq!(cell["point"]["nats.tls"], "on");
    }
    // A server that wants TLS is named, where the URL has none.
    let server =
        Server::start(&place, &["nats", "--set", "nats.tls=on", "--certificates", "certificates"]);
    let plain = server.url.replace("tls+nats://", "nats://");
    place.compare(&[&plain, "-n", "5"]).with(3).saying(&["requires TLS", "tls+nats://"]);
    server.end("TERM");
}

/// A client of nats-py, where Python has it, publishes, subscribes, asks, and uses JetStream.
#[test]
fn the_client_of_nats_py_is_served() {
    let Some(python) = python("WEIGH_NATS_PY", "nats") else { return };
    let place = Place::new("nats-py");
    place.write("client.py", NATS_PY);
    let server = Server::start(&place, &["nats"]);
    let output = place.program(&python, &["client.py", &server.url]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let expected = "core: one two\nrequest: pong\nnobody: NoRespondersError\nack: weigh-py 1\n\
                    again: True\npush: kept\npull: kept\n";
    assert_eq!(said, expected);
    let (code, last) = server.end("TERM");
    assert_eq!(code, Some(0), "{last}");
    let report: Value = serde_json::from_str(last.trim()).expect("the last line is JSON");
    // Two core messages, two requests, and one for JetStream that came twice.
    assert!(report.to_string().contains("\"received\":6"), "{report}");
}

const NATS_PY: &str = r#"
import asyncio, sys
import nats
from nats.js.api import StreamConfig

async def main(url):
    client = await nats.connect(url)
    heard = await client.subscribe("farm.*")
    await client.publish("farm.a", b"one")
    await client.publish("farm.b", b"two")
    got = [(await heard.next_msg(timeout=5)).data.decode() for _ in range(2)]
    print("core:", *got)

    async def answer(message):
        await message.respond(b"pong")

    await client.subscribe("ask", cb=answer)
    print("request:", (await client.request("ask", b"ping", timeout=5)).data.decode())
    try:
        await client.request("nobody", b"ping", timeout=5)
    except Exception as error:
        print("nobody:", type(error).__name__)

    stream = client.jetstream()
    await stream.add_stream(StreamConfig(name="weigh-py", subjects=["kept.*"]))
    headers = {"Nats-Msg-Id": "7"}
    first = await stream.publish("kept.a", b"kept", headers=headers)
    print("ack:", first.stream, first.seq)
    print("again:", (await stream.publish("kept.a", b"kept", headers=headers)).duplicate)
    push = await stream.subscribe("kept.*", durable="push")
    message = await push.next_msg(timeout=5)
    await message.ack()
    print("push:", message.data.decode())
    pull = await stream.pull_subscribe("kept.*", durable="pull")
    message, = await pull.fetch(1, timeout=5)
    await message.ack_sync()
    print("pull:", message.data.decode())
    await client.drain()

asyncio.run(main(sys.argv[1]))
"#;

#[test]
fn what_is_not_there_is_named() {
    let place = Place::new("nats-nowhere");
    let refused = place.compare(&["nats://127.0.0.1:1", "-n", "5"]);
    refused.with(3).saying(&["nats://127.0.0.1:1", "connection refused"]);
    let server = Server::start(&place, &["mqtt"]);
    let url = server.url.replace("mqtt://", "nats://");
    place.compare(&[&url, "-n", "5"]).with(3).saying(&["may not speak nats", "check protocol"]);
    server.end("TERM");
    let server = Server::start(&place, &["nats", "--set", "nats.server_token=s3cret"]);
    let refused = place.compare(&[&server.url, "-n", "5"]);
    refused.with(3).saying(&["Authorization Violation", "nats://TOKEN@HOST"]);
    let right = server.url.replace("nats://", "nats://s3cret@");
    let words = ["-n", "20", "--set", "nats.confirm=jetstream", "--json"];
    let summary = place.compare(&[&[&*right][..], &words].concat()).with(0).json();
    assert_eq!(cells(&summary)[0]["ledger"]["delivered"], 20);
    server.end("TERM");
}

/// Every byte of a message above TCP: `PUB a.b 100` and two line ends are 15, PING and PONG 6 each.
#[test]
fn bytes_are_counted_by_layer() {
    if !has_hosts("bytes_are_counted_by_layer") {
        return;
    }
    for (confirm, sent, received) in [("none", 15.0, 0.0), ("ok", 15.0, 5.0), ("flush", 21.0, 6.0)]
    {
        let place = Place::new("nats-wire");
        let confirm = format!("nats.confirm={confirm}");
        let words = ["compare", "nats", "--pattern", "publish", "-s", "100B", "-n", "10"];
        let more = ["--wire", "-Q", "--reps", "1", "--warmup", "0s", "-c", "1"];
        let set = ["--set", "nats.subject=a.b", "--set", &confirm];
        place.weigh(&[&words[..], &more, &set].concat()).with(0);
        let summary = place.summary();
        let cell = &cells(&summary)[0];
        let of = |layer: &str| figure(cell, &format!("wire.phases.messages.layers.{layer}_bytes"));
        assert_eq!(of("payload"), 1000.0, "{confirm}");
        assert_eq!(of("protocol"), 10.0 * (sent + received), "{confirm}");
        assert_eq!(figure(cell, "wire.kernel.differences"), 0.0, "{confirm}");
    }
    // With TLS the first line of the server is content in the clear.
    #[cfg(feature = "tls")]
    for confirm in ["nats.confirm=none", "nats.confirm=jetstream"] {
        let place = Place::new("nats-wire-tls");
        let words = ["compare", "nats", "-s", "100B", "-n", "10", "--tls", "on", "--wire", "-Q"];
        let more = ["--reps", "1", "--warmup", "0s", "-c", "1", "--set", confirm];
        place.weigh(&[&words[..], &more].concat()).with(0);
        let summary = place.summary();
        let cell = &cells(&summary)[0];
        assert!(!warnings(cell).contains(&"wire"), "{confirm}: {}", cell["doubts"]);
        assert_eq!(figure(cell, "wire.kernel.differences"), 0.0, "{confirm}");
        assert!(figure(cell, "wire.layers.tls_handshake_bytes") > 0.0, "{confirm}");
    }
}
