//! AMQP 0-9-1 end to end: compared with MQTT and HTTP, against RabbitMQ, and with the Python
//! library pika at the reference server.

use std::io::Write;
use std::net::TcpListener;

use serde_json::Value;

use crate::foreign::python;
use crate::rig::{Place, cells, figure, has, has_hosts};
use crate::serving::Server;
use crate::wire::tshark;

fn lane<'s>(summary: &'s Value, confirms: bool, mode: &str) -> &'s Value {
    let is_it = |cell: &&Value| {
        let point = &cell["point"];
        point["amqp.confirms"] == confirms && point["amqp.delivery_mode"] == mode
    };
    cells(summary).iter().find(is_it).unwrap_or_else(|| panic!("{confirms} {mode}: {summary:#}"))
}

/// Each lane has its guarantee, and what is confirmed is counted by the server.
#[test]
fn it_is_compared_with_the_same_guarantee_of_others() {
    let place = Place::new("amqp-compare");
    let words = ["amqp", "mqtt", "http", "--pattern", "publish", "-n", "200", "-s", "120B"];
    place.compare(&words).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 7);
    for (confirms, mode, guarantee) in [
        (true, "persistent", "at least once"),
        (true, "transient", "at least once"),
        (false, "transient", "at most once"),
    ] {
        let cell = lane(&summary, confirms, mode);
        assert_eq!(cell["guarantee"], guarantee);
        assert_eq!(cell["ledger"]["sent"], 200);
        let acknowledged = if confirms { 200 } else { 0 };
        assert_eq!(cell["ledger"]["acknowledged"], acknowledged, "{}", cell["ledger"]);
    }
    for finished in place.of_kind("trial_finished") {
        assert_eq!(finished["server"]["unique"], 200, "{}", finished["point"]);
    }
}

/// The guarantee and the durability follow from the settings: an auto-acknowledging consumer makes
/// it at most once, and transient messages of a classic queue are in memory, whatever the store.
#[test]
fn what_a_confirmation_means_follows_from_the_settings() {
    let place = Place::new("amqp-durability");
    let words = ["amqp", "--durability", "fsync", "-n", "50", "--set", "amqp.confirms=true"];
    place.compare(&words).with(0);
    let summary = place.summary();
    assert_eq!(lane(&summary, true, "persistent")["durability"], "fsync");
    assert_eq!(lane(&summary, true, "transient")["durability"], "memory");
    let place = Place::new("amqp-quorum");
    let quorum = [&words[..], &["--set", "amqp.queue_type=quorum"]].concat();
    place.compare(&quorum).with(0);
    assert_eq!(lane(&place.summary(), true, "transient")["durability"], "fsync");
}

/// Every pattern and topology through the reference server.
#[test]
fn every_pattern_is_carried() {
    let place = Place::new("amqp-patterns");
    for words in [
        &["--topology", "pairs", "-c", "3", "-y", "3"][..],
        &["--topology", "shared", "-x", "2", "-y", "3"],
        &["--topology", "fan-out", "-x", "1", "-y", "3", "--set", "amqp.exchange_type=topic"],
        &["--pattern", "session", "-c", "2"],
        &["--pattern", "poll", "-R", "100/s"],
        &["--pattern", "transfer", "-s", "300KB"],
    ] {
        let base = ["amqp", "-n", "40", "--json", "--set", "amqp.delivery_mode=persistent"];
        let summary = place.compare(&[&base[..], words].concat()).with(0).json();
        let ledger = &summary["cells"][0]["ledger"];
        assert_eq!(ledger["lost"], 0, "{words:?}: {ledger}");
        assert_eq!(ledger["messages"], 40, "{words:?}: {ledger}");
    }
    place.nobody_is_left();
}

/// RabbitMQ carries every lane and a quorum queue, its own counters are those of the ledger, and
/// nothing is left behind.
#[test]
fn rabbitmq_is_measured_and_agrees() {
    if !has("rabbitmq-server") {
        return;
    }
    let place = Place::new("rabbitmq-amqp");
    place.compare(&["rabbitmq-amqp", "-n", "200", "-s", "120B", "--warmup", "0s"]).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 3);
    for (confirms, mode, durability) in
        [(true, "persistent", "fsync"), (true, "transient", "memory"), (false, "transient", "none")]
    {
        let cell = lane(&summary, confirms, mode);
        assert_eq!(cell["durability"], durability);
        assert_eq!(cell["ledger"]["delivered"], 200, "{}", cell["ledger"]);
        let counter = |name: &str| figure(cell, &format!("counter.{name}"));
        assert_eq!((counter("received"), counter("forwarded")), (200.0, 200.0), "{mode}");
        assert_eq!(counter("confirmed"), if confirms { 200.0 } else { 0.0 });
    }
    place.nobody_is_left();
}

/// Inside TLS, with a quorum queue, and what it does with a full queue.
#[test]
fn rabbitmq_has_tls_quorum_queues_and_refusals() {
    if !has("rabbitmq-server") {
        return;
    }
    let place = Place::new("rabbitmq-more");
    let base = ["rabbitmq-amqp", "-n", "60", "--warmup", "0s", "--json", "--set"];
    let confirmed = ["amqp.delivery_mode=persistent", "--set", "amqp.confirms=true"];
    let quorum = ["--set", "amqp.queue_type=quorum", "--tls", "on"];
    let words = [&base[..], &confirmed, &quorum].concat();
    let summary = place.compare(&words).with(0).json();
    let cell = &summary["cells"][0];
    assert_eq!(cell["ledger"]["delivered"], 60, "{}", cell["ledger"]);
    assert_eq!(cell["durability"], "fsync");
    let full = ["--pattern", "publish", "--set", "amqp.max_length=10"];
    let refused = ["--set", "amqp.overflow=reject-publish"];
    let words = [&base[..], &confirmed, &full, &refused].concat();
    let summary = place.compare(&words).with(0).json();
    let ledger = &summary["cells"][0]["ledger"];
    let errors = ledger["causes"]["error_answer"].as_u64().unwrap_or(0);
    let taken = ledger["acknowledged"].as_u64().unwrap_or(0);
    assert!(errors > 0 && taken >= 10 && errors + taken == 60, "{ledger}");
    place.nobody_is_left();
}

/// pika publishes with confirms, consumes, gets, gets back what no queue takes, and hears why its
/// channel was closed.
#[test]
fn the_client_pika_is_served() {
    let Some(python) = python("WEIGH_PIKA", "pika") else { return };
    let place = Place::new("pika");
    place.write("client.py", PIKA);
    let server = Server::start(&place, &["amqp"]);
    let port = server.url.rsplit(':').next().expect("a port").to_owned();
    let output = place.program(&python, &["client.py", &port]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        said.trim(),
        "got b'one' 2; consumed [b'two', b'xxx']; large 200000; returned 312 NO_ROUTE; closed 404",
        "{said}"
    );
    let (code, last) = server.end("TERM");
    assert_eq!(code, Some(0), "{last}");
    assert!(last.contains("\"received\":5"), "{last}");
}

const PIKA: &str = r#"
import sys, pika
url = pika.URLParameters(f'amqp://ann:secret@127.0.0.1:{sys.argv[1]}/%2F?heartbeat=30')
connection = pika.BlockingConnection(url)
channel = connection.channel()
channel.confirm_delivery()
channel.exchange_declare('readings', 'topic', durable=True)
queue = channel.queue_declare('', exclusive=True).method.queue
channel.queue_bind(queue, 'readings', 'farm.#')
persistent = pika.BasicProperties(delivery_mode=2, content_type='text/plain')
for body in [b'one', b'two', b'xxx']:
    channel.basic_publish('readings', 'farm.tank', body, persistent, mandatory=True)
method, properties, body = channel.basic_get(queue)
channel.basic_ack(method.delivery_tag)
got = f'got {body} {properties.delivery_mode}'
heard = []
for method, properties, body in channel.consume(queue, inactivity_timeout=5):
    heard.append(body)
    channel.basic_ack(method.delivery_tag)
    if len(heard) == 2:
        break
channel.cancel()
channel.basic_publish('readings', 'farm.big', b'y' * 200000, persistent, mandatory=True)
method, properties, body = channel.basic_get(queue, auto_ack=True)
try:
    channel.basic_publish('readings', 'other', b'nowhere', mandatory=True)
    returned = 'nothing'
except pika.exceptions.UnroutableError as error:
    returned = f'{error.messages[0].method.reply_code} {error.messages[0].method.reply_text}'
try:
    channel.basic_publish('absent', 'x', b'lost')
    closed = 'nothing'
except pika.exceptions.ChannelClosedByBroker as error:
    closed = error.reply_code
print(f'{got}; consumed {heard}; large {len(body)}; returned {returned}; closed {closed}')
connection.close()
"#;

#[test]
fn what_is_wrong_is_named() {
    let place = Place::new("amqp-wrong");
    place.compare(&["amqp://127.0.0.1:1", "-n", "5"]).with(3).saying(&["refused"]);
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = other.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in other.incoming().flatten() {
            let _ = stream.write_all(b"AMQP\x00\x01\x00\x00");
        }
    });
    let url = format!("amqp://127.0.0.1:{port}");
    let ended = place.compare(&[&url, "-n", "5", "--timeout", "500ms"]);
    ended.with(3).saying(&["1-0-0;", "0-9-1"]);
    let server = Server::start(&place, &["http"]);
    let url = server.url.replace("http://", "amqp://");
    let ended = place.compare(&[&url, "-n", "5", "--timeout", "500ms"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let login = ["amqp", "--set", "amqp.broker_user=ann", "--set", "amqp.broker_password=secret"];
    let server = Server::start(&place, &login);
    let ended = place.compare(&[&server.url, "-n", "5"]);
    ended.with(3).saying(&["ACCESS_REFUSED", "credentials"]);
    for (set, said) in [
        ("amqp.ack_every=200", "make it at most amqp.prefetch"),
        ("amqp.queue_typ=quorum", "did you mean amqp.queue_type"),
        ("amqp.acks=never", "manual, auto"),
    ] {
        place.compare(&["amqp", "-n", "5", "--set", set]).with(2).saying(&[said]);
    }
}

/// Bytes of a message by layer, and tshark finds as many messages and the same bytes.
#[test]
fn bytes_are_counted_by_layer_and_tshark_agrees() {
    let test = "bytes_are_counted_by_layer_and_tshark_agrees";
    if !has_hosts(test) || !has("tshark") {
        return;
    }
    let place = Place::new("amqp-wire");
    let words = ["compare", "amqp", "--pattern", "publish", "-s", "100B", "-n", "10"];
    let more = ["--wire", "--pcap", "-Q", "--reps", "1", "--warmup", "0s", "-c", "1"];
    let keys = ["--set", "amqp.queue=q", "--set", "amqp.delivery_mode=persistent"];
    place.weigh(&[&words[..], &more, &keys].concat()).with(0);
    let summary = place.summary();
    let cell = lane(&summary, true, "persistent");
    let of = |name: &str| figure(cell, &format!("wire.{name}"));
    assert_eq!(of("sent.layers.payload_bytes"), 1000.0);
    // basic.publish 18, content header 23, head and end of the body 8, basic.ack 21.
    let of_messages = of("phases.messages.layers.protocol_bytes");
    assert_eq!(of_messages, 10.0 * (18.0 + 23.0 + 8.0 + 21.0));
    for finished in place.of_kind("trial_finished") {
        let file = place.pcap(&finished);
        let port = finished["endpoint"].as_str().and_then(|url| url.rsplit(':').next());
        let port = port.map_or("1-65535".to_owned(), str::to_owned);
        let decode = format!("tcp.port=={port},amqp");
        let count =
            |filter: &str| tshark(&file, filter, &["amqp.method.method"], &["-d", &decode]).len();
        // Class 60, method 40: basic.publish; method 80: basic.ack.
        assert_eq!(count("amqp.method.class == 60 && amqp.method.method == 40"), 10);
        assert_eq!(count("amqp.method.class == 60 && amqp.method.method == 80"), 10);
    }
}
