//! A server that answers 50 ms late: the median is 50 ms and the way there and back, and there
//! are as many samples as messages, in open and in closed loops.

use weigh_engine::io::sim::Link;
use weigh_model::{Nanos, Pattern};

use crate::rig::{Seen, Setup, assert_near};

const DELAY: Nanos = Nanos::from_millis(50);
const ONE_WAY: Nanos = Nanos::from_micros(150);
const MESSAGES: u64 = 500;

fn every_protocol() -> Vec<Setup> {
    let mut setups = of_requests();
    setups.extend(of_brokers());
    setups.extend(of_push());
    setups.extend(of_devices());
    setups
}

fn of_requests() -> Vec<Setup> {
    vec![
        Setup::new("tcp", &[], Pattern::Request, MESSAGES),
        Setup::new("tcp", &[("echo", "true")], Pattern::Publish, MESSAGES),
        Setup::new("tcp", &[("acknowledge", "false")], Pattern::Deliver, MESSAGES),
        Setup::new("tcp", &[], Pattern::Deliver, MESSAGES),
        Setup::new("http1", &[], Pattern::Request, MESSAGES),
        Setup::new("http1", &[("keep_alive", "false")], Pattern::Request, MESSAGES),
        Setup::new("http1", &[("pipeline", "16")], Pattern::Request, MESSAGES),
        Setup::new("http2", &[], Pattern::Request, MESSAGES),
        #[cfg(feature = "quic")]
        Setup::new("http3", &[], Pattern::Request, MESSAGES),
        Setup::new("grpc", &[], Pattern::Request, MESSAGES),
        Setup::new("grpc", &[("streaming", "client")], Pattern::Publish, MESSAGES),
    ]
}

fn of_brokers() -> Vec<Setup> {
    let mut setups = Vec::new();
    for confirm in ["none", "jetstream"] {
        setups.push(Setup::new("nats", &[("confirm", confirm)], Pattern::Deliver, MESSAGES));
        setups.push(Setup::new("nats", &[("confirm", confirm)], Pattern::Request, MESSAGES));
    }
    for confirm in ["ok", "flush"] {
        setups.push(Setup::new("nats", &[("confirm", confirm)], Pattern::Publish, MESSAGES));
    }
    for (command, resp) in [("publish", "2"), ("publish", "3"), ("xadd", "2"), ("set", "3")] {
        let given = [("command", command), ("resp", resp)];
        setups.push(Setup::new("redis", &given, Pattern::Publish, MESSAGES));
        // An entry is in its stream before its answer leaves; a push leaves with it.
        if command == "publish" {
            setups.push(Setup::new("redis", &given, Pattern::Deliver, MESSAGES));
        }
    }
    setups.extend([
        Setup::new("amqp", &[], Pattern::Publish, MESSAGES),
        Setup::new("amqp", &[], Pattern::Deliver, MESSAGES),
        Setup::new("amqp", &[("confirms", "false"), ("acks", "auto")], Pattern::Deliver, MESSAGES),
        Setup::new("amqp1", &[], Pattern::Publish, MESSAGES),
        Setup::new("amqp1", &[], Pattern::Deliver, MESSAGES),
    ]);
    let settled = [("transfers", "settled"), ("deliveries", "settled")];
    setups.push(Setup::new("amqp1", &settled, Pattern::Deliver, MESSAGES));
    // What a consumer fetches is in the log before its answer leaves.
    for acks in ["1", "all", "idempotent"] {
        setups.push(Setup::new("kafka", &[("acks", acks)], Pattern::Publish, MESSAGES));
    }
    setups
}

fn of_push() -> Vec<Setup> {
    let mut setups = Vec::new();
    for confirm in ["reply", "none", "echo", "pong"] {
        let given = [("confirm", confirm)];
        setups.push(Setup::new("websocket", &given, Pattern::Deliver, MESSAGES));
        if confirm != "none" {
            setups.push(Setup::new("websocket", &given, Pattern::Request, MESSAGES));
        }
    }
    for framing in ["chunked", "close"] {
        let mut setup = Setup::new("sse", &[], Pattern::Deliver, MESSAGES);
        setup.server_settings = vec![("server_framing".to_owned(), framing.to_owned())];
        setups.push(setup);
    }
    setups.push(Setup::new("sse", &[], Pattern::Publish, MESSAGES));
    setups
}

fn of_devices() -> Vec<Setup> {
    let mut setups = Vec::new();
    for kind in ["con", "non"] {
        let given = [("type", kind)];
        setups.push(Setup::new("coap", &given, Pattern::Publish, MESSAGES));
        setups.push(Setup::new("coap", &given, Pattern::Request, MESSAGES));
    }
    // A confirmable notification also waits for the acknowledgement of the one before it.
    setups.push(Setup::new("coap", &[("type", "non")], Pattern::Deliver, MESSAGES));
    let ways = [("version", "3.1.1"), ("version", "5"), ("quic", "true")];
    for way in &ways[..if cfg!(feature = "quic") { 3 } else { 2 }] {
        for qos in ["0", "1", "2"] {
            let given = [("qos", qos), *way];
            setups.push(Setup::new("mqtt", &given, Pattern::Deliver, MESSAGES));
            if qos != "0" {
                setups.push(Setup::new("mqtt", &given, Pattern::Publish, MESSAGES));
            }
        }
    }
    setups
}

fn late(now: Nanos, _message: &[u8]) -> Nanos {
    now + DELAY
}

/// Round trips of a confirmation: QoS 2 has a second one (MQTT 5.0, section 4.3.3), and a request
/// of NATS one to its responder.
fn round_trips(setup: &Setup) -> u64 {
    let is_set = |wanted: (&str, &str)| {
        setup.settings.iter().any(|(key, value)| (key.as_str(), value.as_str()) == wanted)
    };
    let has_responder = setup.load.pattern == Pattern::Request && is_set(("confirm", "none"));
    1 + u64::from(is_set(("qos", "2")) || has_responder)
}

fn check(setup: &Setup, seen: &Seen, expected: Nanos, tolerance_ns: f64) {
    let name = format!("{} {:?} {}", setup.protocol.name(), setup.settings, setup.load.arrival);
    let ledger = seen.ledger();
    assert_eq!((ledger.sent, ledger.lost), (MESSAGES, Some(0)), "{name}");
    let recorder = &seen.outcome.shards.recorder;
    let is_delivered = setup.load.pattern == Pattern::Deliver;
    if is_delivered {
        assert_eq!(recorder.delivery.count(), MESSAGES, "{name}");
        let p50 = recorder.delivery.quantile(0.5).unwrap() as f64;
        assert_near(&name, p50, (DELAY + ONE_WAY + ONE_WAY).0 as f64, tolerance_ns);
    }
    if setup.load.pattern != Pattern::Deliver || ledger.acknowledged > 0 {
        assert_eq!(recorder.response.count(), MESSAGES, "{name}");
        let p50 = recorder.response.quantile(0.5).unwrap() as f64;
        assert_near(&name, p50, expected.0 as f64, tolerance_ns);
    }
}

/// A histogram keeps three digits: 0.1 % is what can be asked of it.
#[test]
fn fifty_milliseconds_are_fifty_on_virtual_time() {
    for setup in every_protocol() {
        let mut setup = setup.connections(8);
        setup.link = Link { delay: ONE_WAY, ..Link::default() };
        let trips = round_trips(&setup);
        let expected = Nanos(DELAY.0 + trips * 2 * ONE_WAY.0);
        let tolerance_ns = expected.0 as f64 * 0.001;
        let per_message = setup.settings.iter().any(|(key, _)| key == "keep_alive");
        if !per_message {
            check(&setup, &setup.scripted_on_virtual_time(Box::new(late)), expected, tolerance_ns);
        }
        // 100/s over 8 connections: 80 ms between the messages of one, so none waits for a slot.
        let open = setup.open("constant", "100/s");
        // A connection per message is made first: one more round trip before the message.
        let set_up = if per_message { 2 * ONE_WAY.0 } else { 0 };
        let expected = expected + Nanos(set_up);
        check(&open, &open.scripted_on_virtual_time(Box::new(late)), expected, tolerance_ns);
    }
}

#[test]
fn fifty_milliseconds_are_fifty_on_sockets() {
    let setups = [
        Setup::new("tcp", &[], Pattern::Request, MESSAGES),
        Setup::new("http1", &[], Pattern::Request, MESSAGES),
        Setup::new("mqtt", &[("qos", "1")], Pattern::Publish, MESSAGES),
        #[cfg(feature = "quic")]
        Setup::new("mqtt", &[("qos", "1"), ("quic", "true")], Pattern::Publish, MESSAGES),
        Setup::new("http2", &[], Pattern::Request, MESSAGES),
        #[cfg(feature = "quic")]
        Setup::new("http3", &[], Pattern::Request, MESSAGES),
        Setup::new("grpc", &[], Pattern::Request, MESSAGES),
        Setup::new("redis", &[], Pattern::Request, MESSAGES),
        Setup::new("amqp", &[], Pattern::Publish, MESSAGES),
        Setup::new("amqp1", &[], Pattern::Publish, MESSAGES),
        Setup::new("websocket", &[], Pattern::Request, MESSAGES),
        Setup::new("sse", &[], Pattern::Publish, MESSAGES),
        Setup::new("kafka", &[], Pattern::Publish, MESSAGES),
    ];
    for setup in setups {
        let setup = setup.connections(40).open("constant", "500/s");
        let seen = setup.scripted_on_sockets(Box::new(late));
        assert_eq!(seen.outcome.shards.recorder.response.count(), MESSAGES);
        assert_eq!(seen.ledger().lost, Some(0));
        // No answer can be earlier than the server made it; how much later is the machine's.
        assert!(
            seen.outcome.shards.recorder.response.min().unwrap() as f64 >= 0.999 * DELAY.0 as f64
        );
    }
}
