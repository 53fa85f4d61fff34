//! HTTP/3 as a user measures it: aioquic is a client and a server of another make, Caddy a real
//! server, and tshark sees the same datagrams.

use std::process::Command;

use serde_json::Value;

use crate::foreign::{Counting, free_udp_port, python};
use crate::rig::{Place, cells, figure, has, has_hosts};
use crate::serving::Server;
use crate::wire::tshark;

const MESSAGES: [&str; 6] = ["-c", "3", "--window", "20", "-n", "600"];

/// Every case sent and delivered this number of messages.
pub fn ledgers_are_whole(place: &Place, messages: u64) {
    for cell in cells(&place.summary()) {
        let (name, ledger) = (&cell["name"], &cell["ledger"]);
        assert_eq!(ledger["sent"], messages, "{name}: {ledger}");
        assert_eq!(ledger["delivered"], messages, "{name}: {ledger}");
    }
}

/// Its lane says that it is inside TLS, and lanes inside TLS are what it is compared with.
#[test]
fn the_lane_is_named_with_tls() {
    let place = Place::new("http3-named");
    let words = [&["http3", "http2", "http1", "--tls", "on"][..], &MESSAGES].concat();
    place.compare(&words).with(0);
    ledgers_are_whole(&place, 600);
    let summary = place.summary();
    let own = cells(&summary).iter().find(|cell| cell["point"]["protocol"] == "http3");
    let own = own.expect("its cell");
    assert_eq!(own["point"]["http3.tls"], "on", "{own}");
    assert_eq!(own["scene"]["tls"], "QUICv1 TLSv1_3 h3", "{own}");
    assert!(figure(own, "tls_handshakes_full") >= 3.0);
    // Without the flag too.
    let place = Place::new("http3-alone");
    place.compare(&["http3", "--pattern", "session", "-n", "30"]).with(0);
    ledgers_are_whole(&place, 30);
    let summary = place.summary();
    let own = &cells(&summary)[0];
    assert!(own["name"].as_str().is_some_and(|name| name.contains("tls=on")), "{own}");
    assert!(figure(own, "tls_handshakes_full") >= 30.0, "a handshake for each message");
    place.compare(&["http3", "-n", "5", "--tls", "off"]).with(2).saying(&["never without TLS 1.3"]);
    place.compare(&["http3", "-n", "5", "--tls", "1.2"]).with(2).saying(&["never without TLS 1.3"]);
    place.nobody_is_left();
}

#[test]
fn congestion_control_and_datagrams_are_chosen_and_recorded() {
    for congestion in ["reno", "bbr"] {
        let place = Place::new(&format!("http3-{congestion}"));
        let set = format!("http3.congestion={congestion}");
        let words = ["http3", "-n", "60", "-s", "20kB", "--set", &set];
        place.compare(&[&words[..], &["--set", "http3.datagram_bytes=8000"]].concat()).with(0);
        ledgers_are_whole(&place, 60);
        let summary = place.summary();
        let cell = &cells(&summary)[0];
        assert_eq!(cell["point"]["http3.congestion"], congestion, "{cell}");
        assert_eq!(cell["point"]["http3.datagram_bytes"], 8_000, "{cell}");
    }
    let place = Place::new("http3-tuned");
    let small = ["http3", "-n", "5", "--set", "http3.datagram_bytes=1000"];
    place.compare(&small).with(2).saying(&["datagram_bytes", "1200"]);
    place.nobody_is_left();
}

/// A port without a process, and one that speaks no QUIC.
#[test]
fn a_server_that_is_none_is_named() {
    let place = Place::new("http3-nobody");
    let url = format!("h3://127.0.0.1:{}", free_udp_port());
    place.compare(&[&url, "-n", "5"]).with(3).saying(&["connection refused"]);
    let other = Place::new("http3-other");
    let made = Server::start(&other, &["http3", "--certificates", "made"]);
    let ca = other.folder().join("made/ca.pem");
    let ca = ca.to_str().expect("a path");
    // The certificate of this server is not that of the system's authorities.
    other.compare(&[&made.url, "-n", "5"]).with(3).saying(&["--cacert"]);
    other.compare(&[&made.url, "-n", "5", "-s", "64B", "--cacert", ca]).with(0);
    let (code, last) = made.end("TERM");
    assert_eq!(code, Some(0));
    let report: Value = serde_json::from_str(last.trim()).expect("a report");
    assert_eq!(report["unique"], 5, "{report}");
}

/// RFC 9000, section 14.1: an Initial fills 1,200 bytes. What tshark sees as QUIC is what the
/// layers were counted as.
#[test]
fn datagrams_are_as_tshark_sees_them() {
    let test = "datagrams_are_as_tshark_sees_them";
    if !has_hosts(test) || !has("tshark") {
        return;
    }
    let place = Place::new("http3-wire");
    place
        .compare(&["http3", "--wire", "--pcap", "-Q", "-n", "40", "-s", "100B", "-c", "2"])
        .with(0);
    ledgers_are_whole(&place, 40);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    let trial = &place.of_kind("trial_finished")[0];
    let remote = place.of_kind("connections")[0]["rows"][0]["remote"]
        .as_str()
        .expect("an address")
        .to_owned();
    let port = remote.rsplit(':').next().expect("a port");
    let file = place.pcap(trial);
    let decode = format!("udp.port=={port},quic");
    let sent = format!("quic && udp.dstport=={port}");
    let rows = tshark(&file, &sent, &["udp.length", "quic.long.packet_type"], &["-d", &decode]);
    let bytes: f64 = rows.iter().map(|row| row[0].parse::<f64>().expect("a length") - 8.0).sum();
    let initial = rows.iter().find(|row| row[1].starts_with('0')).expect("an Initial");
    assert_eq!(initial[0], "1208", "padded");
    let layer = |name: &str| figure(cell, &format!("wire.sent.layers.{name}_bytes"));
    let above = ["tls_handshake", "tls_record", "protocol", "payload"].map(|name| {
        cell["metrics"][format!("wire.sent.layers.{name}_bytes")]["value"].as_f64().unwrap_or(0.0)
    });
    assert_eq!(above.iter().sum::<f64>(), bytes, "{cell}");
    assert_eq!(layer("payload"), 40.0 * 100.0);
    place.nobody_is_left();
}

#[test]
fn caddy_answers_every_request() {
    if !has("caddy") {
        return;
    }
    let place = Place::new("http3-caddy");
    let words = [&["caddy", "http3"][..], &MESSAGES].concat();
    place.compare(&words).with(0);
    ledgers_are_whole(&place, 600);
    // With a certificate for the client, and a connection for every message.
    let place = Place::new("http3-caddy-session");
    let mutual = ["--set", "http3.tls_mutual=true"];
    place.compare(&[&["caddy", "--pattern", "session", "-n", "30"][..], &mutual].concat()).with(0);
    ledgers_are_whole(&place, 30);
    place.nobody_is_left();
}

/// aioquic as a client: what it was answered is what the server counts.
#[test]
fn aioquic_is_served() {
    let Some(python) = python("WEIGH_AIOQUIC", "aioquic") else { return };
    let place = Place::new("http3-aioquic-client");
    let server = Server::start(&place, &["http3", "--certificates", "made"]);
    place.write("client.py", CLIENT);
    let port = server.url.rsplit(':').next().expect("a port").to_owned();
    let ca = place.folder().join("made/ca.pem");
    let output = Command::new(python)
        .arg(place.folder().join("client.py"))
        .args([port.as_str(), ca.to_str().expect("a path"), "300"])
        .output()
        .expect("python starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.trim(), "201:300 413:0 large:201", "{failed}");
    let (code, last) = server.end("INT");
    assert_eq!(code, Some(0));
    let report: Value = serde_json::from_str(last.trim()).expect("a report");
    let counted = (&report["connections"], &report["received"], &report["foreign"]);
    assert_eq!(counted, (&1.into(), &301.into(), &301.into()));
}

/// aioquic as a server, with the certificates of a reference server that is ended at once.
pub fn aioquic(python: String, place: &Place) -> (Counting, String, String) {
    Server::start(place, &["http3", "--certificates", "made"]).end("TERM");
    place.write("server.py", SERVER);
    let made = place.folder().join("made");
    let mut command = Command::new(python);
    command.arg(place.folder().join("server.py"));
    command.arg(made.join("server.pem")).arg(made.join("server.key"));
    let server = Counting::start(command);
    let url = server.url("h3");
    (server, url, made.join("ca.pem").to_str().expect("a path").to_owned())
}

/// The table of QPACK that it announces is that of its source (`H3Connection`).
#[test]
fn aioquic_is_probed() {
    let Some(python) = python("WEIGH_AIOQUIC", "aioquic") else { return };
    let place = Place::new("http3-aioquic-probe");
    let (server, url, ca) = aioquic(python, &place);
    let words = ["probe", &*url, "--cacert", &*ca, "--json", "--payload-to", "20KB"];
    let found = place.weigh(&words).with(0).json();
    let all = found["abilities"].as_array().expect("a list");
    let value = |name: &str| &all.iter().find(|own| own["name"] == name).expect(name)["value"];
    assert_eq!(value("quic"), "QUICv1 TLSv1_3 h3");
    assert_eq!(value("qpack_table_bytes"), 4_096, "{found}");
    assert_eq!(value("qpack_blocked_streams"), 16, "{found}");
    assert_eq!((value("method_post"), value("body_bytes")), (&200.into(), &20_000.into()));
    server.end();
    place.nobody_is_left();
}

/// Its own count is the ledger's.
#[test]
fn the_ledger_agrees_with_the_count_of_aioquic() {
    let Some(python) = python("WEIGH_AIOQUIC", "aioquic") else { return };
    let place = Place::new("http3-aioquic-server");
    let (server, url, ca) = aioquic(python, &place);
    let ca = ["--cacert", &*ca];
    place.compare(&[&[url.as_str()][..], &MESSAGES, &ca].concat()).with(0);
    ledgers_are_whole(&place, 600);
    // Bodies of many datagrams.
    let place = Place::new("http3-aioquic-large");
    place.compare(&[&[url.as_str(), "-n", "20", "-s", "200kB"][..], &ca].concat()).with(0);
    ledgers_are_whole(&place, 20);
    let counted: Value = serde_json::from_str(&server.end()).expect("its counts");
    assert_eq!(counted["requests"], 620, "{counted}");
    assert_eq!(counted["large"], 20, "{counted}");
}

const CLIENT: &str = r#"
import asyncio, collections, sys
from aioquic.asyncio import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http, self.waits, self.status = H3Connection(self._quic), {}, {}

    def quic_event_received(self, event):
        for heard in self.http.handle_event(event):
            if isinstance(heard, HeadersReceived):
                self.status[heard.stream_id] = dict(heard.headers)[b":status"]
            if heard.stream_ended:
                self.waits[heard.stream_id].set_result(self.status[heard.stream_id])

    async def post(self, body):
        stream = self._quic.get_next_available_stream_id()
        self.waits[stream] = asyncio.get_event_loop().create_future()
        head = [(b":method", b"POST"), (b":scheme", b"https"), (b":authority", b"localhost"),
                (b":path", b"/messages"), (b"content-length", str(len(body)).encode())]
        self.http.send_headers(stream, head)
        self.http.send_data(stream, body, end_stream=True)
        self.transmit()
        return (await self.waits[stream]).decode()


async def main():
    port, ca, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN)
    configuration.load_verify_locations(ca)
    make = dict(configuration=configuration, create_protocol=Client)
    async with connect("localhost", port, **make) as client:
        found = collections.Counter()
        for _ in range(count // 50):
            found.update(await asyncio.gather(*[client.post(b"x" * 64) for _ in range(50)]))
        large = await client.post(b"x" * 3_000_000)
        print(f"201:{found['201']} 413:{found['413']} large:{large}")


asyncio.run(main())
"#;

const SERVER: &str = r#"
import asyncio, json, sys
from aioquic.asyncio import serve
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration

counted = {"requests": 0, "large": 0}


class Answering(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http, self.bytes = H3Connection(self._quic), {}

    def quic_event_received(self, event):
        for heard in self.http.handle_event(event):
            if isinstance(heard, DataReceived):
                size = self.bytes.get(heard.stream_id, 0) + len(heard.data)
                self.bytes[heard.stream_id] = size
            if isinstance(heard, (DataReceived, HeadersReceived)) and heard.stream_ended:
                counted["requests"] += 1
                counted["large"] += self.bytes.pop(heard.stream_id, 0) >= 200_000
                head = [(b":status", b"200"), (b"server", b"aioquic"), (b"content-length", b"2")]
                self.http.send_headers(heard.stream_id, head)
                self.http.send_data(heard.stream_id, b"ok", end_stream=True)
        self.transmit()


async def main():
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(sys.argv[1], sys.argv[2])
    server = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Answering)
    print(server._transport.get_extra_info("sockname")[1], flush=True)
    await asyncio.get_event_loop().run_in_executor(None, sys.stdin.read)
    print(json.dumps(counted), flush=True)
    server.close()


asyncio.run(main())
"#;
