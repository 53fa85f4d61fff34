//! The jobs: what is weighed, against which target, and what we want to reach beside whom.

use super::kinds::Kind;

/// What a job weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// HTTP POST of 64 bytes over kept connections.
    Http {
        /// How many.
        connections: u32,
        /// Against the floor's sink, which is faster than nginx: then the generator is the limit.
        is_sink: bool,
    },
    /// The same over TLS 1.3 to nginx.
    Https {
        /// How many connections.
        connections: u32,
        /// One request on each connection, so that every request has a full handshake.
        is_new_each: bool,
    },
    /// MQTT publish of 64 bytes by 60 clients.
    Mqtt {
        /// Quality of service.
        qos: u8,
        /// Unfinished messages per client at QoS 1 and 2.
        window: u32,
        /// Against the floor's sink instead of Mosquitto.
        is_sink: bool,
    },
    /// Frames of 64 bytes, one in flight on each of this many connections, echoed.
    Tcp(u32),
    /// Requests of 64 bytes in streams of HTTP/2.
    Streams {
        /// Unary calls of gRPC, in place of POST.
        is_grpc: bool,
        /// How many connections.
        connections: u32,
        /// Requests in flight on each.
        each: u32,
    },
    /// POST of HTTP/3 with 64 bytes.
    Http3 {
        /// How many connections.
        connections: u32,
        /// Requests in flight on each.
        each: u32,
    },
    /// Messages of 64 bytes to a queue of AMQP 1.0 by one sender, this many unsettled.
    Amqp1 {
        /// How many.
        window: u32,
    },
    /// Messages of 64 bytes to a queue of AMQP 0-9-1 by one publisher, this many unconfirmed.
    Amqp {
        /// How many.
        window: u32,
    },
    /// Messages of 64 bytes to a subject of core NATS without a subscriber, by this many clients.
    Nats {
        /// How many.
        clients: u32,
    },
    /// SET of 64 bytes by 50 clients, with this many in flight on each.
    Redis {
        /// How many.
        window: u32,
    },
    /// Messages of 64 bytes by one producer of Kafka, acks=all, this many in flight.
    Kafka {
        /// How many.
        window: u32,
    },
    /// Confirmable POST of CoAP with 64 bytes, one in progress on each of this many endpoints.
    Coap(u32),
    /// Messages of WebSocket with 64 bytes, one in flight on each of this many connections.
    WebSocket(u32),
    /// Memory per idle MQTT connection, with this many of them.
    Idle(u32),
    /// How exactly due times are kept at this many messages per second.
    Pacing(u32),
}

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// Ourselves, the floor, and the peers.
    Peers,
    /// Ourselves with and without recording: what an observation costs.
    Recording,
}

/// What we want to reach: `own` does at least `at_least` times what `other` does per CPU-second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bar {
    /// The variant of ours that is held against it.
    pub(crate) own: &'static str,
    /// The tool.
    pub(crate) other: &'static str,
    /// The least ratio.
    pub(crate) at_least: f64,
}

/// One job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// One line for the table.
    pub(crate) about: &'static str,
    /// What it weighs.
    pub(crate) work: Work,
    /// Who takes part.
    pub(crate) field: Field,
    /// What we want to reach.
    pub(crate) bars: &'static [Bar],
    /// The least operations per CPU-second, where that is asked for.
    pub(crate) rate_at_least: Option<f64>,
}

/// All jobs, in the order they run.
pub(crate) const JOBS: &[Job] = &[
    job("http-64", "POST of 64 bytes, 64 kept connections, nginx", http(64, false), HTTP),
    job("http-1000", "POST of 64 bytes, 1,000 kept connections, nginx", http(1_000, false), HTTP),
    job("http-sink", "POST of 64 bytes, 64 kept connections, sink", http(64, true), HTTP_SINK),
    job(
        "http-sink-1000",
        "POST of 64 bytes, 1,000 kept connections, sink",
        http(1_000, true),
        HTTP_SINK,
    ),
    job(
        "https-64",
        "POST of 64 bytes over TLS 1.3, 64 kept connections, nginx",
        Work::Https { connections: 64, is_new_each: false },
        HTTPS,
    ),
    job(
        "https-new",
        "a full TLS 1.3 handshake for each request, 1 connection at a time, nginx",
        Work::Https { connections: 1, is_new_each: true },
        HANDSHAKES,
    ),
    job("mqtt-0", "publish of 64 bytes at QoS 0, 60 clients, Mosquitto", mqtt(0, 1, false), BLAST),
    Job {
        rate_at_least: Some(8e6),
        ..job("mqtt-0-sink", "the same, sink", mqtt(0, 1, true), BLAST_SINK)
    },
    job("mqtt-1-w1", "publish at QoS 1, window 1, Mosquitto", mqtt(1, 1, false), QOS_1),
    job("mqtt-1", "publish at QoS 1, window 20, Mosquitto", mqtt(1, 20, false), QOS_1),
    job("mqtt-1-open", "publish at QoS 1, no window, Mosquitto", mqtt(1, OPEN, false), QOS_1),
    job("mqtt-2-w1", "publish at QoS 2, window 1, Mosquitto", mqtt(2, 1, false), QOS_2),
    job("mqtt-2", "publish at QoS 2, window 20, Mosquitto", mqtt(2, 20, false), QOS_2),
    job("mqtt-2-open", "publish at QoS 2, no window, Mosquitto", mqtt(2, OPEN, false), QOS_2),
    job("mqtt-1-sink-w1", "publish at QoS 1, window 1, sink", mqtt(1, 1, true), QOS_1),
    job("mqtt-1-sink", "publish at QoS 1, window 20, sink", mqtt(1, 20, true), QOS_1),
    job("mqtt-1-sink-open", "publish at QoS 1, no window, sink", mqtt(1, OPEN, true), QOS_1),
    job("mqtt-2-sink-w1", "publish at QoS 2, window 1, sink", mqtt(2, 1, true), QOS_2),
    job("mqtt-2-sink", "publish at QoS 2, window 20, sink", mqtt(2, 20, true), QOS_2),
    job("tcp-1", "64 bytes there and back, 1 connection, echo server", Work::Tcp(1), PING_PONG),
    job("tcp-64", "64 bytes there and back, 64 connections, echo server", Work::Tcp(64), FLOOR),
    job(
        "grpc-64",
        "unary calls of 64 bytes, 8 x 8 in flight, reference store",
        streams(true, 8, 8),
        GRPC,
    ),
    job("grpc-16x4", "the same, 16 x 4 in flight", streams(true, 16, 4), GRPC),
    job("grpc-1x64", "the same, 1 x 64 in flight", streams(true, 1, 64), GRPC),
    job(
        "http2-64",
        "HTTP/2 POST of 64 bytes, 1 x 64 in flight, reference server",
        streams(false, 1, 64),
        HTTP2,
    ),
    job(
        "http3-64",
        "HTTP/3 POST of 64 bytes, 1 x 64 in flight, reference server",
        Work::Http3 { connections: 1, each: 64 },
        HTTP3,
    ),
    job(
        "amqp-confirm",
        "64 bytes, persistent and confirmed, 1 publisher, 1,000 in flight, reference server",
        Work::Amqp { window: 1_000 },
        AMQP,
    ),
    job(
        "amqp1-w1000",
        "64 bytes, accepted, 1 sender, 1,000 unsettled, reference server",
        Work::Amqp1 { window: 1_000 },
        &[],
    ),
    job(
        "nats-core",
        "publish of 64 bytes, 8 clients, no subscriber, NATS",
        Work::Nats { clients: 8 },
        NATS,
    ),
    job("redis-w1", "SET of 64 bytes, 50 clients, Redis", Work::Redis { window: 1 }, REDIS),
    job("redis-w16", "the same, 16 in flight on each", Work::Redis { window: 16 }, REDIS),
    job(
        "kafka-w1000",
        "64 bytes, acks=all, 1 producer, 1,000 in flight, reference server",
        Work::Kafka { window: 1_000 },
        KAFKA,
    ),
    job(
        "coap-64",
        "confirmable POST of 64 bytes, 64 endpoints, reference server",
        Work::Coap(64),
        FLOOR,
    ),
    job(
        "websocket-64",
        "messages of 64 bytes, confirmed, 64 connections, reference server",
        Work::WebSocket(64),
        FLOOR,
    ),
    recording("recording-http", "what recording costs: POST, 64 connections, sink", http(64, true)),
    recording("recording-mqtt-0", "what recording costs: QoS 0 blast, sink", mqtt(0, 1, true)),
    recording(
        "recording-mqtt-1",
        "what recording costs: QoS 1, window 20, sink",
        mqtt(1, 20, true),
    ),
    job("idle", "20,000 idle MQTT connections, reference broker", Work::Idle(20_000), &[]),
    job("pacing-1k", "send lag at 1,000 requests a second", Work::Pacing(1_000), &[]),
    job("pacing-50k", "send lag at 50,000 requests a second", Work::Pacing(50_000), &[]),
];

/// Ourselves, every message in a write of its own.
pub(crate) const SINGLE: &str = "weigh-single";
/// Ourselves without times.
pub(crate) const UNRECORDED: &str = "weigh-unrecorded";
/// Ourselves with a record of every single message.
pub(crate) const KEEPING: &str = "weigh-keeping";
/// The window of a client that waits for nobody: more than it has messages.
pub(crate) const OPEN: u32 = 32_000;

const HTTP: &[Bar] = &[
    bar("floor", 0.97),
    bar("wrk", 1.2),
    bar("zrk", 1.05),
    bar("h2load", 1.3),
    bar("oha", 1.8),
    bar("autocannon", 2.8),
    bar("hey", 5.0),
    bar("vegeta", 5.0),
    bar("k6", 10.0),
    bar("jmeter", 10.0),
];
const HTTP_SINK: &[Bar] = &[bar("floor", 0.97), bar("wrk", 1.25), bar("zrk", 1.05)];
const HTTPS: &[Bar] = &[bar("wrk", 1.0)];
const HANDSHAKES: &[Bar] = &[bar("openssl", 0.9)];
const BLAST: &[Bar] = &[
    Bar { own: SINGLE, other: "floor", at_least: 0.9 },
    bar("rumqttc-bench", 3.0),
    bar("mosquitto_pub", 3.0),
    bar("mqtt-stresser", 20.0),
    bar("mqtt-benchmark", 25.0),
];
const BLAST_SINK: &[Bar] = &[Bar { own: SINGLE, other: "floor", at_least: 0.9 }];
const QOS_1: &[Bar] = &[
    bar("floor", 0.97),
    bar("floor-batch", 0.95),
    Bar { own: SINGLE, other: "floor", at_least: 0.95 },
    bar("rumqttc-bench", 1.0),
    bar("mosquitto_pub", 1.0),
    bar("mqtt-benchmark", 3.0),
    bar("mqtt-stresser", 3.0),
];
const QOS_2: &[Bar] = QOS_1;
const PING_PONG: &[Bar] = &[bar("floor", 0.95), bar("sockperf", 0.97), bar("netperf", 0.95)];
const FLOOR: &[Bar] = &[bar("floor", 0.95)];
const GRPC: &[Bar] = &[bar("h2load", 1.1), bar("ghz", 7.0), bar("k6", 5.0)];
const KAFKA: &[Bar] = &[bar("kafka-producer-perf-test", 1.0)];
const AMQP: &[Bar] = &[bar("perf-test", 1.0)];
const NATS: &[Bar] = &[bar("nats-bench", 1.0)];
const HTTP3: &[Bar] = &[bar("h2load-h3", 1.0)];
const REDIS: &[Bar] = &[bar("redis-benchmark", 1.0)];
const HTTP2: &[Bar] = &[bar("h2load", 1.1)];
/// "Under 5 % against not recording": 1 / 1.05.
const RECORDED: &[Bar] =
    &[bar(UNRECORDED, 0.952), Bar { own: KEEPING, other: "weigh", at_least: 0.952 }];

const fn bar(other: &'static str, at_least: f64) -> Bar {
    Bar { own: "weigh", other, at_least }
}

const fn job(name: &'static str, about: &'static str, work: Work, bars: &'static [Bar]) -> Job {
    Job { name, about, work, field: Field::Peers, bars, rate_at_least: None }
}

const fn recording(name: &'static str, about: &'static str, work: Work) -> Job {
    Job { field: Field::Recording, ..job(name, about, work, RECORDED) }
}

const fn http(connections: u32, is_sink: bool) -> Work {
    Work::Http { connections, is_sink }
}

const fn streams(is_grpc: bool, connections: u32, each: u32) -> Work {
    Work::Streams { is_grpc, connections, each }
}

const fn mqtt(qos: u8, window: u32, is_sink: bool) -> Work {
    Work::Mqtt { qos, window, is_sink }
}

impl Work {
    /// The server this work needs; `None` where `weigh` brings its own.
    pub(crate) fn target(self) -> Option<Kind> {
        match self {
            Work::Http { is_sink: false, .. } => Some(Kind::Nginx),
            Work::Http { is_sink: true, .. } => Some(Kind::Sink("http")),
            Work::Https { .. } => Some(Kind::NginxTls),
            Work::Mqtt { is_sink: true, .. } => Some(Kind::Sink("mqtt")),
            Work::Mqtt { is_sink: false, .. } => Some(Kind::Mosquitto),
            Work::Tcp(_) => Some(Kind::Echo),
            Work::Streams { is_grpc: true, .. } => Some(Kind::Reference("grpc")),
            Work::Streams { is_grpc: false, .. } => Some(Kind::Reference("http2")),
            Work::Http3 { .. } => Some(Kind::Reference("http3")),
            Work::Amqp { .. } => Some(Kind::Reference("amqp")),
            Work::Amqp1 { .. } => Some(Kind::Reference("amqp1")),
            Work::Nats { .. } => Some(Kind::Nats),
            Work::Redis { .. } => Some(Kind::Redis),
            Work::Coap(_) => Some(Kind::Reference("coap")),
            Work::WebSocket(_) => Some(Kind::Reference("websocket")),
            Work::Kafka { .. } => Some(Kind::Reference("kafka")),
            Work::Idle(_) | Work::Pacing(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_names_are_unique() {
        let mut names: Vec<&str> = JOBS.iter().map(|job| job.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), JOBS.len());
    }
}
