//! Bytes of whole sessions as a counting proxy sees them, against what the specifications say
//! they must be.

use weigh_engine::serving::Serving;
use weigh_model::{Nanos, Pattern};

use crate::proxy::Proxy;
use crate::rig::Setup;

const MESSAGES: u64 = 50;
const BODY: u64 = 64;
const TOPIC: &str = "farm/tank";

/// MQTT 3.1.1 and 5.0, chapter 3: bytes of the packets, where no remaining length is above 127.
struct Sizes {
    is_5: bool,
}

impl Sizes {
    /// A property length of 0 that 3.1.1 does not have.
    fn properties(&self) -> u64 {
        u64::from(self.is_5)
    }

    fn connect(&self, client_id: &str) -> u64 {
        14 + client_id.len() as u64 + self.properties()
    }

    fn connack(&self) -> u64 {
        4 + self.properties()
    }

    fn publish(&self, qos: u64) -> u64 {
        let packet_id = if qos > 0 { 2 } else { 0 };
        4 + TOPIC.len() as u64 + BODY + packet_id + self.properties()
    }

    fn subscribe(&self) -> u64 {
        7 + TOPIC.len() as u64 + self.properties()
    }

    fn suback(&self) -> u64 {
        5 + self.properties()
    }
}

const ACK: u64 = 4;
const DISCONNECT: u64 = 2;

fn settings(version: &'static str, qos: &'static str) -> Vec<(&'static str, &'static str)> {
    vec![
        ("version", version),
        ("qos", qos),
        ("topic", TOPIC),
        ("client_id", "scale-%r%i"),
        ("broker_topic_alias_maximum", "0"),
    ]
}

/// Bytes up and down through a proxy in front of the reference server, and what clients said.
fn through_proxy(setup: &Setup) -> (u64, u64, Vec<Vec<u8>>) {
    let serving = Serving::start(&setup.host(), crate::rig::any_port(), 1).unwrap();
    let proxy = Proxy::start(serving.address(), false, 0);
    let outcome = setup.against(proxy.address);
    assert_eq!(outcome.ledger.contradiction(), None);
    assert_eq!(outcome.ledger.sent, MESSAGES);
    assert!(matches!(outcome.ledger.lost, None | Some(0)));
    let (up, down) = proxy.totals();
    let report = serving.stop();
    assert_eq!((report.bytes_read, report.bytes_written), (up, down));
    let said = proxy.said.lock().unwrap().clone();
    (up, down, said)
}

#[test]
fn mqtt_sessions_have_the_size_of_the_specification() {
    for version in ["3.1.1", "5"] {
        let sizes = Sizes { is_5: version == "5" };
        for (qos, name) in [(0, "0"), (1, "1"), (2, "2")] {
            // Nobody subscribes: MQTT 5 says so with a reason code, one byte more.
            let reason = u64::from(sizes.is_5);
            let setup = Setup::new("mqtt", &settings(version, name), Pattern::Publish, MESSAGES);
            let (up, down, _) = through_proxy(&setup);
            let (acks_up, acks_down) =
                [(0, 0), (0, ACK + reason), (ACK, ACK + reason + ACK)][qos as usize];
            let per_message = sizes.publish(qos) + acks_up;
            let expected_up = sizes.connect("scale-p0") + MESSAGES * per_message + DISCONNECT;
            let expected_down = sizes.connack() + MESSAGES * acks_down;
            println!("MQTT {version} QoS {qos} publish: {up} bytes up, {down} down");
            assert_eq!((up, down), (expected_up, expected_down), "MQTT {version} QoS {qos}");

            let setup = Setup::new("mqtt", &settings(version, name), Pattern::Deliver, MESSAGES);
            let (up, down, _) = through_proxy(&setup);
            // Confirmations go up from the subscriber as they come down to the publisher.
            let (acks_up, acks_down) = [(0, 0), (ACK, ACK), (3 * ACK, 3 * ACK)][qos as usize];
            let sessions = sizes.connect("scale-p0") + sizes.connect("scale-c0");
            let expected_up = sessions
                + sizes.subscribe()
                + MESSAGES * (sizes.publish(qos) + acks_up)
                + 2 * DISCONNECT;
            let expected_down =
                2 * sizes.connack() + sizes.suback() + MESSAGES * (sizes.publish(qos) + acks_down);
            println!("MQTT {version} QoS {qos} deliver: {up} bytes up, {down} down");
            assert_eq!((up, down), (expected_up, expected_down), "MQTT {version} QoS {qos}");
        }
    }
}

/// RFC 9112, sections 2 to 6: request line, fields, empty line, content.
#[test]
fn http_sessions_have_the_size_of_the_specification() {
    for keep_alive in ["true", "false"] {
        let given = [("keep_alive", keep_alive), ("path", "/readings")];
        let mut setup = Setup::new("http1", &given, Pattern::Request, MESSAGES);
        setup.load.think = Nanos(0);
        let (up, down, said) = through_proxy(&setup);
        let mut requests = 0;
        let mut bytes = 0;
        for connection in &said {
            let mut rest = &connection[..];
            while !rest.is_empty() {
                let head = rest.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
                let text = std::str::from_utf8(&rest[..head]).unwrap();
                let mut lines: Vec<&str> = text.split("\r\n").collect();
                assert_eq!(lines.remove(0), "POST /readings HTTP/1.1");
                let host = lines.iter().position(|line| line.starts_with("Host: 127.0.0.1:"));
                lines.remove(host.expect("RFC 9112, section 3.2: a Host field"));
                lines.sort_unstable();
                let mut fields = vec!["Content-Length: 64", "Content-Type: application/json"];
                if keep_alive == "false" {
                    fields.insert(0, "Connection: close");
                }
                assert_eq!(lines, fields);
                rest = &rest[head + 4 + BODY as usize..];
                bytes += head as u64 + 4 + BODY;
                requests += 1;
            }
        }
        assert_eq!((requests, bytes), (MESSAGES, up));
        assert_eq!(down % MESSAGES, 0, "all answers are alike");
        println!(
            "HTTP/1.1 keep-alive {keep_alive}: {up} bytes up, {down} down, {requests} requests"
        );
    }
}

/// RESP: an array of bulk strings, each with its length and two line ends.
#[test]
fn redis_sessions_have_the_size_of_the_specification() {
    let word = |length: u64| 1 + length.to_string().len() as u64 + 2 + length + 2;
    let words = |lengths: &[u64]| 4 + lengths.iter().map(|length| word(*length)).sum::<u64>();
    // `:0`, and `+OK`, with their line ends.
    for (command, request, answer) in
        [("publish", words(&[7, 13, BODY]), 4), ("set", words(&[3, 12, BODY]), 5)]
    {
        let setup = Setup::new("redis", &[("command", command)], Pattern::Publish, MESSAGES);
        let (up, down, _) = through_proxy(&setup);
        println!("Redis {command}: {up} bytes up, {down} down");
        assert_eq!((up, down), (MESSAGES * request, MESSAGES * answer), "{command}");
    }
    let setup = Setup::new("redis", &[], Pattern::Publish, MESSAGES);
    let request = words(&[4, 12, 6, 1, 6, 1, 4, BODY]);
    assert_eq!(through_proxy(&setup).0, MESSAGES * request, "XADD");
    // HELLO 3 comes first, once.
    let setup =
        Setup::new("redis", &[("command", "set"), ("resp", "3")], Pattern::Publish, MESSAGES);
    let request = words(&[3, 12, BODY]);
    assert_eq!(through_proxy(&setup).0, words(&[5, 1]) + MESSAGES * request, "HELLO");
}

/// The heads of requests without their bodies, and how many there are.
fn heads(said: &[Vec<u8>]) -> (u64, u64) {
    let (mut bytes, mut count) = (0, 0);
    for connection in said {
        let mut rest = &connection[..];
        while rest.starts_with(b"GET ") || rest.starts_with(b"POST ") {
            let head = rest.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
            let body = if rest.starts_with(b"POST ") { BODY as usize } else { 0 };
            rest = &rest[head + body..];
            bytes += head as u64;
            count += 1;
        }
    }
    (bytes, count)
}

/// RFC 6455, section 5.2: two bytes of header, four of the mask of a client; close frames with
/// codes.
#[test]
fn websocket_sessions_have_the_size_of_the_specification() {
    // Status line, Upgrade, Connection, Sec-WebSocket-Accept, empty line.
    let accepted = 34 + 20 + 21 + 52 + 2;
    for (confirm, more_up, answer) in
        [("reply", 0, 2 + 1), ("none", 0, 0), ("echo", 0, 2 + BODY), ("pong", 6 + 4, 2 + 4)]
    {
        let given = [("confirm", confirm)];
        let setup = Setup::new("websocket", &given, Pattern::Deliver, MESSAGES);
        let (up, down, said) = through_proxy(&setup);
        println!("WebSocket {confirm}: {up} bytes up, {down} down");
        let (heads, count) = heads(&said);
        assert_eq!(count, 2, "a producer and a subscriber");
        let closes = 2 * (2 + 4 + 2);
        assert_eq!(up, heads + MESSAGES * (2 + 4 + BODY + more_up) + closes, "{confirm}");
        let closed = 2 * (2 + 2);
        assert_eq!(down, 2 * accepted + MESSAGES * (2 + BODY + answer) + closed, "{confirm}");
    }
}

/// WHATWG HTML, section 9.2.6, in chunks of RFC 9112, section 7.1; IDs from 1 to 50.
#[test]
fn event_streams_have_the_size_of_the_specification() {
    let setup = Setup::new("sse", &[], Pattern::Deliver, MESSAGES);
    let (up, down, said) = through_proxy(&setup);
    println!("Server-sent events: {up} bytes up, {down} down");
    let (heads, count) = heads(&said);
    assert_eq!((count, up), (1 + MESSAGES, heads + MESSAGES * BODY));
    let created = 22 + 19 + 2;
    let stream = 17 + 33 + 25 + 28 + 2;
    let event = |digits: u64| 4 + digits + 1 + 6 + BODY + 2;
    let chunk = |bytes: u64| 2 + 2 + bytes + 2;
    let events = 9 * chunk(event(1)) + 41 * chunk(event(2));
    assert_eq!(down, MESSAGES * created + stream + events);
}
