//! MQTT over QUIC as a user measures it: aioquic is a client of another make, and in front of
//! Mosquitto a server of another make; tshark sees the same datagrams.

use std::process::Command;

use serde_json::Value;

use crate::foreign::{Counting, Installed, free_udp_port, python};
use crate::http3::ledgers_are_whole;
use crate::rig::{Place, cells, figure, has, has_hosts};
use crate::serving::Server;
use crate::wire::tshark;

const IN_QUIC: [&str; 2] = ["--set", "mqtt.quic=true"];

/// Its lane says that it is inside TLS, with every quality of service and pattern.
#[test]
fn the_lane_is_named_with_quic_and_tls() {
    let place = Place::new("mqtt-quic-named");
    let words = ["mqtt", "-n", "300", "-c", "3", "--window", "20"];
    place.compare(&[&words[..], &IN_QUIC].concat()).with(0);
    ledgers_are_whole(&place, 300);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 3);
    for own in cells(&summary) {
        assert_eq!(
            (&own["point"]["mqtt.tls"], &own["point"]["mqtt.quic"]),
            (&"on".into(), &true.into())
        );
        assert_eq!(own["scene"]["tls"], "QUICv1 TLSv1_3 mqtt", "{own}");
        assert!(own["name"].as_str().is_some_and(|name| name.contains("tls=on")), "{own}");
    }
    for pattern in ["publish", "session", "transfer"] {
        let place = Place::new(&format!("mqtt-quic-{pattern}"));
        let words = ["mqtt", "-q", "1", "--pattern", pattern, "-n", "20", "-c", "2", "-s", "50kB"];
        place.compare(&[&words[..], &IN_QUIC].concat()).with(0);
        ledgers_are_whole(&place, 20);
        place.nobody_is_left();
    }
}

#[test]
fn what_quic_does_not_have_is_refused() {
    let place = Place::new("mqtt-quic-refused");
    let refused = |more: &[&str], said: &str| {
        place
            .compare(&[&["mqtt", "-q", "1", "-n", "5"][..], more].concat())
            .with(2)
            .saying(&[said]);
    };
    let with = |more: &[&'static str]| [&IN_QUIC[..], more].concat();
    refused(&with(&["--tls", "off"]), "never without TLS 1.3");
    refused(&with(&["--tls", "1.2"]), "never without TLS 1.3");
    refused(&with(&["--set", "mqtt.websocket=true"]), "QUIC carries no WebSocket");
    refused(&with(&["--set", "mqtt.tls_resume=true"]), "are not resumed");
    refused(&with(&["--set", "mqtt.datagram_bytes=1000"]), "1200");
    refused(&["--set", "mqtt.congestion=bbr"], "there is no QUIC");
    refused(&["--set", "mqtt.segmentation=kernel"], "there is no QUIC");
    let url = ["mqtt-quic://localhost", "-n", "5", "--set", "mqtt.quic=false"];
    place.compare(&url).with(2).saying(&["uses QUIC"]);
    place.compare(&["mqtt+quic://localhost"]).with(2).saying(&["type a mqtt-quic:// URL"]);
    let managed = [&["mosquitto", "-q", "1", "-n", "5"][..], &IN_QUIC].concat();
    if has("mosquitto") {
        place.compare(&managed).with(2).saying(&["not started with QUIC"]);
    }
    let served = [&["serve", "mqtt", "--set", "mqtt.tls=off"][..], &IN_QUIC].concat();
    place.weigh(&served).with(2).saying(&["never without TLS 1.3"]);
}

#[test]
fn congestion_control_datagrams_and_client_certificates_are_chosen() {
    let place = Place::new("mqtt-quic-tuned");
    let tuned = ["--set", "mqtt.congestion=bbr", "--set", "mqtt.datagram_bytes=8000"];
    let mutual = ["--set", "mqtt.tls_mutual=true"];
    let words = [&["mqtt", "-q", "1", "-n", "60", "-s", "20kB"][..], &IN_QUIC, &tuned, &mutual];
    place.compare(&words.concat()).with(0);
    ledgers_are_whole(&place, 60);
    let summary = place.summary();
    let point = &cells(&summary)[0]["point"];
    assert_eq!(
        (&point["mqtt.congestion"], &point["mqtt.datagram_bytes"]),
        (&"bbr".into(), &8_000.into())
    );
    place.nobody_is_left();
}

/// `--cacert` and `--insecure`; a port that is closed; a broker of its own certificate.
#[test]
fn a_url_names_its_layers() {
    let place = Place::new("mqtt-quic-url");
    let url = format!("mqtt-quic://127.0.0.1:{}", free_udp_port());
    place.compare(&[&url, "-q", "1", "-n", "5"]).with(3).saying(&["connection refused"]);
    let made = Server::start(&place, &[&["mqtt", "--certificates", "made"][..], &IN_QUIC].concat());
    assert!(made.url.starts_with("mqtt-quic://"), "{}", made.url);
    let ca = place.folder().join("made/ca.pem");
    let ca = ca.to_str().expect("a path");
    let words = [&*made.url, "-q", "1", "-n", "5", "-s", "64B"];
    place.compare(&words).with(3).saying(&["--cacert"]);
    place.compare(&[&words[..], &["--cacert", ca]].concat()).with(0);
    place.compare(&[&words[..], &["--insecure"]].concat()).with(0);
    let (code, last) = made.end("TERM");
    assert_eq!(code, Some(0));
    let report: Value = serde_json::from_str(last.trim()).expect("a report");
    assert_eq!(report["unique"], 10, "{report}");
    place.nobody_is_left();
}

/// What tshark sees as QUIC is what the layers were counted as; of it the codec's count is content.
#[test]
fn datagrams_are_as_tshark_sees_them() {
    let test = "mqtt_quic::datagrams_are_as_tshark_sees_them";
    if !has_hosts(test) || !has("tshark") {
        return;
    }
    let place = Place::new("mqtt-quic-wire");
    let words = ["mqtt", "--pattern", "publish", "--wire", "--pcap", "-n", "40"];
    place.compare(&[&words[..], &["-s", "100B", "-c", "2"], &IN_QUIC].concat()).with(0);
    let summary = place.summary();
    let (trials, rows) = (place.of_kind("trial_finished"), place.of_kind("connections"));
    assert_eq!((trials.len(), rows.len()), (3, 3));
    for (trial, rows) in trials.iter().zip(&rows) {
        let remote = rows["rows"][0]["remote"].as_str().expect("an address").to_owned();
        let port = remote.rsplit(':').next().expect("a port");
        let file = place.pcap(trial);
        let decode = format!("udp.port=={port},quic");
        let sent = format!("quic && udp.dstport=={port}");
        let seen = tshark(&file, &sent, &["udp.length"], &["-d", &decode]);
        let bytes = seen.iter().map(|row| row[0].parse::<f64>().expect("a length") - 8.0);
        let layer = |name: &str| {
            trial["metrics"][format!("wire.sent.layers.{name}_bytes")].as_f64().unwrap_or(0.0)
        };
        let above = ["tls_handshake", "tls_record", "protocol", "payload"].map(layer);
        assert_eq!(above.iter().sum::<f64>(), bytes.sum::<f64>(), "{trial}");
        assert_eq!(layer("payload"), 40.0 * 100.0, "{trial}");
        assert!(layer("tls_record") > 0.0 && layer("protocol") > 0.0, "{trial}");
    }
    for cell in cells(&summary) {
        assert!(figure(cell, "wire.sent.layers.tls_handshake_bytes") > 0.0, "{cell}");
    }
    ledgers_are_whole(&place, 40);
    place.nobody_is_left();
}

/// aioquic as a client that writes packets of MQTT itself: what it published and heard is what the
/// broker counts.
#[test]
fn aioquic_is_served() {
    let Some(python) = python("WEIGH_AIOQUIC", "aioquic") else { return };
    let place = Place::new("mqtt-quic-aioquic-client");
    let words = [&["mqtt", "--certificates", "made"][..], &IN_QUIC].concat();
    let server = Server::start(&place, &words);
    place.write("client.py", CLIENT);
    let port = server.url.rsplit(':').next().expect("a port").to_owned();
    let ca = place.folder().join("made/ca.pem");
    let output = Command::new(python)
        .arg(place.folder().join("client.py"))
        .args([port.as_str(), ca.to_str().expect("a path"), "200"])
        .output()
        .expect("python starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said.trim(),
        "connack:0 suback:1 puback:200 heard:200 pong:1 closed:0x0",
        "{failed}"
    );
    let (code, last) = server.end("INT");
    assert_eq!(code, Some(0));
    let report: Value = serde_json::from_str(last.trim()).expect("a report");
    let counted = (&report["connections"], &report["received"], &report["foreign"]);
    assert_eq!(counted, (&1.into(), &200.into(), &200.into()), "{report}");
}

/// A real broker behind QUIC of another make: aioquic passes the stream on to Mosquitto, and back.
#[test]
fn mosquitto_behind_aioquic_loses_nothing() {
    let Some(python) = python("WEIGH_AIOQUIC", "aioquic") else { return };
    let place = Place::new("mqtt-quic-mosquitto");
    let Some(mosquitto) = Installed::mosquitto(&place, "") else { return };
    let (front, ca) = front(&place, &python, mosquitto.port, &[]);
    let url = front.url("mqtt-quic");
    let ca = ["--cacert", ca.as_str()];
    let mut connections = 0;
    for (qos, pattern, messages) in [
        ("1", "deliver", 600_u64),
        ("2", "deliver", 200),
        ("0", "deliver", 600),
        ("1", "session", 30),
    ] {
        let place = Place::new(&format!("mqtt-quic-mosquitto-{qos}-{pattern}"));
        let count = messages.to_string();
        let words = [&*url, "-q", qos, "--pattern", pattern, "-n", &*count, "-c", "3"];
        place.compare(&[&words[..], &["--window", "10"], &ca].concat()).with(0);
        ledgers_are_whole(&place, messages);
        connections += if pattern == "session" { messages } else { 4 };
    }
    let counted: Value = serde_json::from_str(&front.end()).expect("its counts");
    assert_eq!(counted["streams"], counted["connections"], "one stream each: {counted}");
    assert!(counted["connections"].as_u64().expect("a number") >= connections, "{counted}");
    // Every client said DISCONNECT, ended its stream and closed with code 0.
    assert_eq!(counted["ended"], counted["connections"], "{counted}");
    assert_eq!(counted["disconnects"], counted["connections"], "{counted}");
}

/// Whether the one broker with QUIC of its own is installed; a package client compiles it.
fn has_rmqtt(place: &Place) -> bool {
    let listed = place.weigh(&["targets"]).with(0).stdout;
    let line = listed.lines().find(|line| line.split(' ').next() == Some("rmqtt"));
    let is_missing = line.expect("it is listed").contains("not installed");
    if is_missing {
        println!("SKIPPED: rmqtt is not installed: weigh targets install rmqtt --yes");
    }
    !is_missing
}

/// What the broker counted: received, forwarded, acknowledged and dropped.
fn counted(cell: &Value) -> [f64; 4] {
    ["received", "forwarded", "acknowledged", "dropped"]
        .map(|name| figure(cell, &format!("counter.{name}")))
}

/// What is sent arrives, as over TLS and TCP, and the broker counts as the ledger does.
#[test]
fn rmqtt_carries_messages_over_quic_tls_and_tcp() {
    if !has_rmqtt(&Place::new("mqtt-quic-rmqtt")) {
        return;
    }
    let mutual = [&IN_QUIC[..], &["--set", "mqtt.tls_mutual=true"]].concat();
    let version_5 = [&IN_QUIC[..], &["--set", "mqtt.version=5"]].concat();
    for (at, (qos, pattern, more)) in [
        ("0", "deliver", &IN_QUIC[..]),
        ("1", "deliver", &IN_QUIC),
        ("2", "deliver", &IN_QUIC),
        ("1", "session", &IN_QUIC),
        ("1", "deliver", &mutual),
        ("2", "deliver", &version_5),
        ("1", "deliver", &["--tls", "on"]),
        ("2", "deliver", &[]),
    ]
    .into_iter()
    .enumerate()
    {
        let place = Place::new(&format!("mqtt-quic-rmqtt-{at}"));
        let words = ["rmqtt", "-q", qos, "--pattern", pattern, "-n", "200", "-c", "3"];
        place.compare(&[&words[..], &["--window", "5"], more].concat()).with(0);
        ledgers_are_whole(&place, 200);
        let summary = place.summary();
        let own = &cells(&summary)[0];
        let forwarded = if pattern == "session" { 0.0 } else { 200.0 };
        let acknowledged = if qos == "0" { 0.0 } else { forwarded };
        assert_eq!(counted(own), [200.0, forwarded, acknowledged, 0.0], "{own}");
        assert_eq!(own["durability"], if qos == "0" { "none" } else { "memory" }, "{own}");
        place.nobody_is_left();
    }
}

/// Lost packets cost time and no message.
#[test]
fn rmqtt_loses_nothing_on_a_path_that_loses_packets() {
    let test = "mqtt_quic::rmqtt_loses_nothing_on_a_path_that_loses_packets";
    if !has_hosts(test) || !has_rmqtt(&Place::new("mqtt-quic-rmqtt-installed")) {
        return;
    }
    for (qos, acknowledged) in [("0", 0.0), ("1", 200.0), ("2", 200.0)] {
        let place = Place::new(&format!("mqtt-quic-rmqtt-path-{qos}"));
        let words = ["rmqtt", "-q", qos, "-n", "200", "-R", "100/s", "-c", "3"];
        let path = ["--path", "delay=10ms,loss=3%"];
        place.compare(&[&words[..], &path, &IN_QUIC].concat()).with(0);
        ledgers_are_whole(&place, 200);
        let summary = place.summary();
        let own = &cells(&summary)[0];
        assert_eq!(counted(own), [200.0, 200.0, acknowledged, 0.0], "{own}");
        place.nobody_is_left();
    }
}

/// Its limits are those of the profile: beyond the queue it drops messages and counts them, and
/// beyond its window it ends the session of a client that cannot know it.
#[test]
fn rmqtt_drops_what_its_profile_says() {
    if !has_rmqtt(&Place::new("mqtt-quic-rmqtt-limits")) {
        return;
    }
    let shared = ["rmqtt", "-q", "1", "-n", "5", "--topology", "shared"];
    let said = ["rmqtt 0.24.0 lacks shared_subscriptions"];
    Place::new("mqtt-quic-rmqtt-lacks").compare(&shared).with(2).saying(&said);
    let load = ["-q", "1", "-n", "3000", "-R", "3000/s", "--stalled-subscriber=3s"];
    for (target, is_limited) in [("rmqtt", true), ("rmqtt@wide", false)] {
        let place = Place::new(&format!("mqtt-quic-{target}"));
        place.compare(&[&[target][..], &load].concat()).with(0);
        let summary = place.summary();
        let own = &cells(&summary)[0];
        let ledger = &own["ledger"];
        // 16 were in flight and 1,000 waited.
        let lost = if is_limited { 3000 - 1016 } else { 0 };
        assert_eq!(ledger["acked_not_delivered"], lost, "{ledger}");
        assert_eq!(counted(own)[3], f64::from(lost), "{own}");
        if is_limited {
            assert_eq!(ledger["causes"]["server_dropped"], lost, "{ledger}");
        }
        place.nobody_is_left();
        let place = Place::new(&format!("mqtt-quic-window-{target}"));
        let window = ["-q", "2", "-n", "200", "--window", "40"];
        place.compare(&[&[target][..], &window, &IN_QUIC].concat()).with(0);
        let summary = place.summary();
        let ledger = &cells(&summary)[0]["ledger"];
        let closed = ledger["causes"].get("connection_closed").and_then(Value::as_u64);
        assert_eq!(closed.is_some_and(|closed| closed > 0), is_limited, "{ledger}");
        place.nobody_is_left();
    }
}

/// A server of aioquic before this port; and its CA.
pub fn front(place: &Place, python: &str, port: u16, more: &[&str]) -> (Counting, String) {
    // The certificates of a server that is ended at once.
    let words = [&["mqtt", "--certificates", "made"][..], &IN_QUIC].concat();
    Server::start(place, &words).end("TERM");
    place.write("front.py", FRONT);
    let made = place.folder().join("made");
    let mut command = Command::new(python);
    command.arg(place.folder().join("front.py"));
    command.arg(made.join("server.pem")).arg(made.join("server.key"));
    command.arg(port.to_string()).args(more);
    let ca = made.join("ca.pem").to_str().expect("a path").to_owned();
    (Counting::start(command), ca)
}

/// A broker that is asked through QUIC has the abilities that it has over TCP.
#[test]
fn mosquitto_behind_aioquic_is_probed_as_over_tcp() {
    let Some(python) = python("WEIGH_AIOQUIC", "aioquic") else { return };
    let place = Place::new("mqtt-quic-probed");
    let Some(mosquitto) = Installed::mosquitto(&place, "max_queued_messages 500\n") else { return };
    let (front, ca) = front(&place, &python, mosquitto.port, &["passes-ends-on"]);
    let asked = |words: &[&str]| {
        let short = ["--payload-to", "100KB", "--queue-to", "700", "--json"];
        let found = place.weigh(&[&["probe"], words, &short].concat()).with(0).json();
        found["abilities"].as_array().expect("a list").clone()
    };
    let inside = asked(&[&front.url("mqtt-quic"), "--cacert", &ca]);
    let outside = asked(&[&mosquitto.url("mqtt")]);
    let of = |found: &[Value], name: &str| {
        let own = found.iter().find(|own| own["name"] == name);
        own.map(|own| (own["status"].clone(), own["value"].clone()))
    };
    assert_eq!(of(&inside, "quic"), Some(("yes".into(), "QUICv1 TLSv1_3 mqtt".into())));
    let differ = ["order_qos_0", "queue_stalled", "websocket_on_port", "tls_on_port", "sys_topics"];
    for own in &outside {
        let name = own["name"].as_str().expect("a name");
        if !differ.contains(&name) {
            assert_eq!(of(&inside, name), of(&outside, name), "{name}");
        }
    }
    assert_eq!(of(&inside, "queue_offline"), Some(("less".into(), 500.into())));
    front.end();
}

/// Packets of 3.1.1 (sections 3.1, 3.3, 3.8, 3.12 and 3.14) on the first stream.
const CLIENT: &str = r#"
import asyncio, sys
from aioquic.asyncio import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamDataReceived


def packet(first, rest):
    length, size = b"", len(rest)
    while True:
        length += bytes([size % 128 | (0x80 if size >= 128 else 0)])
        size //= 128
        if not size:
            return bytes([first]) + length + rest


def text(value):
    return len(value).to_bytes(2, "big") + value


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.input, self.counts, self.changed = b"", {}, asyncio.Event()
        self.code = None

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived):
            self.input += event.data
            self.read()
        if isinstance(event, ConnectionTerminated):
            self.code = event.error_code
        self.changed.set()

    def read(self):
        while len(self.input) >= 2:
            size, shift, at = 0, 0, 1
            while at < len(self.input):
                size |= (self.input[at] & 127) << shift
                shift, at = shift + 7, at + 1
                if self.input[at - 1] < 128:
                    break
            else:
                return
            if len(self.input) < at + size:
                return
            first, body = self.input[0], self.input[at:at + size]
            self.input = self.input[at + size:]
            self.counts[first >> 4] = self.counts.get(first >> 4, 0) + 1
            if first >> 4 == 2:
                self.code_of_connack = body[1]
            if first >> 4 == 3:
                topic = int.from_bytes(body[:2], "big")
                self.say(packet(0x40, body[2 + topic:4 + topic]))

    def say(self, data, end=False):
        self._quic.send_stream_data(0, data, end_stream=end)
        self.transmit()

    async def until(self, condition):
        while not condition():
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 20)


async def main():
    port, ca, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["mqtt"])
    configuration.load_verify_locations(ca)
    make = dict(configuration=configuration, create_protocol=Client)
    async with connect("localhost", port, **make) as client:
        assert client._quic.get_next_available_stream_id() == 0
        seen = lambda kind: client.counts.get(kind, 0)
        client.say(packet(0x10, text(b"MQTT") + b"\x04\x02\x00\x3c" + text(b"aioquic")))
        await client.until(lambda: seen(2) == 1)
        client.say(packet(0x82, b"\x00\x01" + text(b"a/#") + b"\x01"))
        await client.until(lambda: seen(9) == 1)
        for number in range(1, count + 1):
            body = b"x" * (number * 10)
            client.say(packet(0x32, text(b"a/b") + number.to_bytes(2, "big") + body))
        await client.until(lambda: seen(4) == count and seen(3) == count)
        client.say(packet(0xC0, b""))
        await client.until(lambda: seen(13) == 1)
        client.say(packet(0xE0, b""), end=True)
        await client.until(lambda: client.code is not None)
        print(f"connack:{client.code_of_connack} suback:{seen(9)} puback:{seen(4)} heard:{seen(3)} "
              f"pong:{seen(13)} closed:{client.code:#x}")


asyncio.run(main())
"#;

const FRONT: &str = r#"
import asyncio, json, sys
from aioquic.asyncio import serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated
from aioquic.asyncio.protocol import QuicConnectionProtocol

counted = {"connections": 0, "streams": 0, "disconnects": 0, "ended": 0}


class Front(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        counted["connections"] += 1

    def quic_event_received(self, event):
        super().quic_event_received(event)
        if isinstance(event, ConnectionTerminated):
            counted["ended"] += event.error_code == 0


async def passed(reader, writer, last):
    while data := await reader.read(65536):
        last[:] = (bytes(last) + data)[-2:]
        writer.write(data)
        await writer.drain()
    if len(sys.argv) > 4:
        writer.write_eof()


async def handle(reader, writer):
    counted["streams"] += 1
    broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[3]))
    last = bytearray()
    back = asyncio.ensure_future(passed(broker_reader, writer, bytearray()))
    await passed(reader, broker_writer, last)
    counted["disconnects"] += bytes(last) == b"\xe0\x00"
    broker_writer.close()
    back.cancel()


async def main():
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["mqtt"])
    configuration.load_cert_chain(sys.argv[1], sys.argv[2])
    server = await serve(
        "127.0.0.1", 0, configuration=configuration, create_protocol=Front,
        stream_handler=lambda reader, writer: asyncio.ensure_future(handle(reader, writer)))
    print(server._transport.get_extra_info("sockname")[1], flush=True)
    await asyncio.get_event_loop().run_in_executor(None, sys.stdin.read)
    await asyncio.sleep(0.5)
    print(json.dumps(counted), flush=True)
    server.close()


asyncio.run(main())
"#;
