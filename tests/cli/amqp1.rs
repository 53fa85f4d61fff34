//! AMQP 1.0 end to end: compared with AMQP 0-9-1 and MQTT, against Artemis and RabbitMQ, and with
//! the Python library Qpid Proton at the reference server.

use std::io::Write;
use std::net::TcpListener;

use serde_json::Value;

use crate::foreign::python;
use crate::rig::{Place, cells, figure, has, has_hosts};
use crate::serving::Server;
use crate::wire::tshark;

fn lane<'s>(summary: &'s Value, transfers: &str, durable: bool) -> &'s Value {
    let is_it = |cell: &&Value| {
        let point = &cell["point"];
        point["amqp1.transfers"] == transfers && point["amqp1.durable"] == durable
    };
    cells(summary)
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("{transfers} {durable}: {summary:#}"))
}

/// Each lane has its guarantee, and what is confirmed is counted by the server.
#[test]
fn it_is_compared_with_the_same_guarantee_of_others() {
    let place = Place::new("amqp1-compare");
    let words = ["amqp1", "amqp", "mqtt", "--pattern", "publish", "-n", "200", "-s", "120B"];
    place.compare(&words).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 9);
    for (transfers, durable, guarantee) in [
        ("unsettled", true, "at least once"),
        ("unsettled", false, "at least once"),
        ("settled", false, "at most once"),
    ] {
        let cell = lane(&summary, transfers, durable);
        assert_eq!(cell["guarantee"], guarantee);
        assert_eq!(cell["ledger"]["sent"], 200);
        let acknowledged = if transfers == "unsettled" { 200 } else { 0 };
        assert_eq!(cell["ledger"]["acknowledged"], acknowledged, "{}", cell["ledger"]);
    }
    for finished in place.of_kind("trial_finished") {
        assert_eq!(finished["server"]["unique"], 200, "{}", finished["point"]);
    }
}

/// The guarantee and the durability follow from the settings, whatever the store.
#[test]
fn what_a_confirmation_means_follows_from_the_settings() {
    let place = Place::new("amqp1-durability");
    let words = ["amqp1", "--durability", "fsync", "-n", "50"];
    place.compare(&words).with(0);
    let summary = place.summary();
    assert_eq!(lane(&summary, "unsettled", true)["durability"], "fsync");
    assert_eq!(lane(&summary, "unsettled", false)["durability"], "memory");
    assert_eq!(lane(&summary, "settled", false)["durability"], "none");
}

/// Every pattern and topology through the reference server, and inside TLS.
#[test]
fn every_pattern_is_carried() {
    let place = Place::new("amqp1-patterns");
    for words in [
        &["--topology", "pairs", "-c", "3", "-y", "3"][..],
        &["--topology", "shared", "-x", "2", "-y", "3"],
        &["--topology", "fan-out", "-x", "1", "-y", "3", "--set", "amqp1.credit=3"],
        &["--pattern", "session", "-c", "2"],
        &["--pattern", "poll", "-R", "100/s"],
        &["--pattern", "batch", "--batch", "4"],
        &["-s", "300KB", "--set", "amqp1.sasl=none"],
        #[cfg(feature = "tls")]
        &["--tls", "on"],
    ] {
        let base = ["amqp1", "-n", "40", "--json", "--set", "amqp1.transfers=unsettled"];
        let durable = ["--set", "amqp1.durable=true"];
        let summary = place.compare(&[&base[..], &durable, words].concat()).with(0).json();
        let ledger = &summary["cells"][0]["ledger"];
        assert_eq!(ledger["lost"], 0, "{words:?}: {ledger}");
        assert_eq!(ledger["messages"], 40, "{words:?}: {ledger}");
    }
    place.nobody_is_left();
}

/// RabbitMQ's plugin carries every lane, its own counters are those of the ledger, and nothing is
/// left behind.
#[test]
fn rabbitmq_is_measured_and_agrees() {
    if !has("rabbitmq-server") {
        return;
    }
    let place = Place::new("rabbitmq-amqp1");
    place.compare(&["rabbitmq-amqp1", "-n", "200", "-s", "120B", "--warmup", "0s"]).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 3);
    // What the settings allow lowers a durability that is known.
    for (transfers, durable, durability) in [
        ("unsettled", true, "unknown"),
        ("unsettled", false, "unknown"),
        ("settled", false, "none"),
    ] {
        let cell = lane(&summary, transfers, durable);
        assert_eq!(cell["durability"], durability);
        assert_eq!(cell["ledger"]["delivered"], 200, "{}", cell["ledger"]);
        let counter = |name: &str| figure(cell, &format!("counter.{name}"));
        assert_eq!((counter("received"), counter("forwarded")), (200.0, 200.0), "{transfers}");
        assert_eq!(counter("confirmed"), if transfers == "unsettled" { 200.0 } else { 0.0 });
    }
    place.nobody_is_left();
}

/// What RabbitMQ announces is found.
#[test]
fn rabbitmq_is_probed() {
    if !has("rabbitmq-server") {
        return;
    }
    let place = Place::new("rabbitmq-amqp1-probe");
    let found = place.weigh(&["probe", "rabbitmq-amqp1", "--json"]).with(0).json();
    let all = found["abilities"].as_array().expect("a list");
    let ability = |name: &str| all.iter().find(|own| own["name"] == name).expect(name);
    let product = ability("product")["value"].as_str().expect("its name");
    assert!(product.starts_with("RabbitMQ"), "{found}");
    let sasl = ability("sasl")["value"].as_str().expect("mechanisms");
    assert!(sasl.contains("PLAIN"), "{found}");
    for name in ["frame_bytes", "session_window"] {
        assert_eq!(ability(name)["how"], "announced", "{found}");
    }
    place.nobody_is_left();
}

/// Artemis carries every lane and topology, where it is installed. CI does not install it.
#[test]
fn artemis_is_measured() {
    let place = Place::new("artemis-amqp1");
    let listed = place.weigh(&["targets"]).with(0).stdout;
    let line = listed.lines().find(|line| line.split(' ').next() == Some("artemis-amqp1"));
    if line.expect("it is listed").contains("not installed") {
        println!("SKIPPED: Artemis is not installed: weigh targets install artemis-amqp1");
        return;
    }
    place.compare(&["artemis-amqp1", "-n", "200", "-s", "120B", "--warmup", "0s"]).with(0);
    let summary = place.summary();
    for (transfers, durable, durability) in
        [("unsettled", true, "fsync"), ("unsettled", false, "memory"), ("settled", false, "none")]
    {
        let cell = lane(&summary, transfers, durable);
        assert_eq!(cell["durability"], durability);
        assert_eq!(cell["ledger"]["delivered"], 200, "{}", cell["ledger"]);
        assert_eq!(cell["ledger"]["duplicates"], 0, "{}", cell["ledger"]);
    }
    for words in [
        &["--topology", "shared", "-x", "2", "-y", "3"][..],
        &["--topology", "pairs", "-c", "2", "-y", "2"],
        &["--pattern", "publish"],
        &["--pattern", "poll", "-R", "100/s"],
        &["--pattern", "session", "-c", "2"],
        &["-s", "300KB"],
    ] {
        let base = ["artemis-amqp1", "-n", "60", "--warmup", "0s", "--json"];
        let keys = ["--set", "amqp1.transfers=unsettled", "--set", "amqp1.durable=true"];
        let summary = place.compare(&[&base[..], &keys, words].concat()).with(0).json();
        let ledger = &summary["cells"][0]["ledger"];
        assert_eq!(ledger["acknowledged"], ledger["messages"], "{words:?}: {ledger}");
        assert!(ledger["lost"].as_u64().is_none_or(|lost| lost == 0), "{words:?}: {ledger}");
    }
    place.nobody_is_left();
}

/// Proton logs in by PLAIN, sends settled and unsettled, receives a large message, modifies one
/// (not as failed, so that its count stays 0) and rejects one, subscribes to a topic, and hears why
/// a link was refused.
#[test]
fn the_client_proton_is_served() {
    let Some(python) = python("WEIGH_PROTON", "proton") else { return };
    let place = Place::new("proton");
    place.write("client.py", PROTON);
    let login = ["--set", "amqp1.broker_user=ann", "--set", "amqp1.broker_password=secret"];
    let server = Server::start(&place, &[&["amqp1"][..], &login].concat());
    let port = server.url.rsplit(':').next().expect("a port").to_owned();
    let output = place.program(&python, &["client.py", &port]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        said.trim(),
        "accepted 3; got ['one', 'two', 'xxx']; again two 0; large 200000; topic news; \
         refused amqp:not-implemented",
        "{said}"
    );
    let (code, last) = server.end("TERM");
    assert_eq!(code, Some(0), "{last}");
    assert!(last.contains("\"received\":5") && last.contains("\"rejected\":1"), "{last}");
}

const PROTON: &str = r#"
import sys
from proton import Message, Delivery, symbol
from proton.reactor import AtMostOnce, ReceiverOption, LinkOption
from proton.utils import BlockingConnection, LinkDetached

class Topic(LinkOption):
    def apply(self, link):
        end = link.source if link.is_receiver else link.target
        end.capabilities.put_array(False, 21)
        end.capabilities.enter()
        end.capabilities.put_symbol(symbol('topic'))
        end.capabilities.exit()

url = f'amqp://ann:secret@127.0.0.1:{sys.argv[1]}'
connection = BlockingConnection(url, timeout=10, allowed_mechs='PLAIN', heartbeat=20)
sender = connection.create_sender('readings')
states = []
for body in ['one', 'two', 'xxx']:
    states.append(sender.send(Message(body=body, durable=True)).remote_state)
accepted = states.count(Delivery.ACCEPTED)
receiver = connection.create_receiver('readings', credit=2)
got = []
message = receiver.receive(); got.append(message.body); receiver.accept()
message = receiver.receive(); got.append(message.body); receiver.release(delivered=True)
while True:
    message = receiver.receive()
    if message.body == 'two':
        again = f'{message.body} {message.delivery_count}'
        receiver.accept()
    else:
        got.append(message.body)
        receiver.reject()
    if len(got) == 3 and 'again' in dir():
        break
receiver.close()
quiet = connection.create_sender('large', options=[AtMostOnce()])
quiet.send(Message(body=b'y' * 200000))
receiver = connection.create_receiver('large')
large = len(receiver.receive().body); receiver.accept()
news = connection.create_receiver('news', options=[Topic()])
speaker = connection.create_sender('news', options=[Topic()])
speaker.send(Message(body='news'))
topic = news.receive().body; news.accept()
try:
    connection.create_receiver(None, dynamic=True)
    refused = 'nothing'
except LinkDetached as error:
    refused = error.condition
print(f'accepted {accepted}; got {got}; again {again}; large {large};', end=' ')
print(f'topic {topic}; refused {refused}')
connection.close()
"#;

#[test]
fn what_is_wrong_is_named() {
    let place = Place::new("amqp1-wrong");
    place.compare(&["amqp1://127.0.0.1:1", "-n", "5"]).with(3).saying(&["refused"]);
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = other.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in other.incoming().flatten() {
            let _ = stream.write_all(b"AMQP\x00\x00\x09\x01");
        }
    });
    let url = format!("amqp1://127.0.0.1:{port}");
    let ended = place.compare(&[&url, "-n", "5", "--timeout", "500ms"]);
    ended.with(3).saying(&["AMQP 0-9-1", "another protocol", "amqp"]);
    let server = Server::start(&place, &["http"]);
    let url = server.url.replace("http://", "amqp1://");
    let ended = place.compare(&[&url, "-n", "5", "--timeout", "500ms"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let login =
        ["amqp1", "--set", "amqp1.broker_user=ann", "--set", "amqp1.broker_password=secret"];
    let server = Server::start(&place, &login);
    let ended = place.compare(&[&server.url, "-n", "5"]);
    ended.with(3).saying(&["PLAIN", "ANONYMOUS", "credentials"]);
    for (set, said) in [
        ("amqp1.credit_every=200", "make it at most amqp1.credit"),
        ("amqp1.sasl=plain", "WEIGH_PASSWORD"),
        ("amqp1.transfer=settled", "did you mean amqp1.transfers"),
        ("amqp1.deliveries=never", "unsettled, settled"),
    ] {
        place.compare(&["amqp1", "-n", "5", "--set", set]).with(2).saying(&[said]);
    }
}

/// Bytes of a message by layer, and tshark finds as many messages and outcomes.
#[test]
fn bytes_are_counted_by_layer_and_tshark_agrees() {
    let test = "bytes_are_counted_by_layer_and_tshark_agrees";
    if !has_hosts(test) || !has("tshark") {
        return;
    }
    let place = Place::new("amqp1-wire");
    let words = ["compare", "amqp1", "--pattern", "publish", "-s", "100B", "-n", "10"];
    let more = ["--wire", "--pcap", "-Q", "--reps", "1", "--warmup", "0s", "-c", "1"];
    let keys = ["--set", "amqp1.transfers=unsettled", "--set", "amqp1.durable=true"];
    place.weigh(&[&words[..], &more, &keys].concat()).with(0);
    let summary = place.summary();
    let cell = lane(&summary, "unsettled", true);
    let of = |name: &str| figure(cell, &format!("wire.{name}"));
    assert_eq!(of("sent.layers.payload_bytes"), 1000.0);
    // Transfer 23, header 7, head of the data 5, disposition 22; numbers above 0 have 2 bytes, and
    // not 1, in each of both.
    let of_messages = of("phases.messages.layers.protocol_bytes");
    assert_eq!(of_messages, 10.0 * (23.0 + 7.0 + 5.0 + 22.0) + 9.0 * 2.0);
    for finished in place.of_kind("trial_finished") {
        let file = place.pcap(&finished);
        let port = finished["endpoint"].as_str().and_then(|url| url.rsplit(':').next());
        let port = port.map_or("1-65535".to_owned(), str::to_owned);
        let decode = format!("tcp.port=={port},amqp");
        let count =
            |filter: &str| tshark(&file, filter, &["amqp.performative"], &["-d", &decode]).len();
        assert_eq!(count("amqp.performative == 0x14"), 10, "transfers");
        assert_eq!(count("amqp.performative == 0x15"), 10, "dispositions");
    }
}
