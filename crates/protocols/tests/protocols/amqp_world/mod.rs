//! Clients and servers of AMQP in memory, and frames that tests send.
#![allow(dead_code, unreachable_pub, reason = "every test binary uses its own part of it")]

use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Protocol, Role, Seat};
use weigh_protocols::amqp::Amqp;
use weigh_protocols::amqp::codec::{
    Header, Long, Method, PROTOCOL_HEADER, Short, Table, put_body, read_frame,
};

use crate::rig::{Client, Heard, Shard, exchange, trial};

pub const URL: &str = "amqp://127.0.0.1:5672";

pub fn seated(
    pattern: Pattern,
    topology: Topology,
    role: Role,
    index: u32,
    given: &[(&str, &str)],
) -> Client {
    let mut trial = trial(&Amqp, pattern, topology, URL, given).unwrap();
    trial.load.connections = 3;
    trial.load.subscribers = if pattern == Pattern::Publish { 0 } else { 3 };
    Client::new((Amqp.dial(&trial).unwrap().make)(Seat { index, role }))
}

pub fn producer(given: &[(&str, &str)]) -> Client {
    seated(Pattern::Deliver, Topology::FanIn, Role::Producer, 0, given)
}

pub fn consumer(index: u32, given: &[(&str, &str)]) -> Client {
    seated(Pattern::Deliver, Topology::FanIn, Role::Consumer, index, given)
}

/// A server with these clients on the connections 0, 1 ..., all ready.
pub fn world(given: &[(&str, &str)], clients: &mut [&mut Client]) -> Shard {
    let mut shard = Shard::of(&Amqp, given);
    for (number, client) in clients.iter_mut().enumerate() {
        shard.accept(number as u32);
        exchange(client, &mut shard, number as u32, &[]);
        assert_eq!(client.heard.last(), Some(&Heard::Ready), "{:?}", client.heard);
        client.heard.clear();
    }
    shard
}

/// Methods among the frames of `bytes`, by name.
pub fn names(bytes: &[u8]) -> Vec<&'static str> {
    let mut rest = bytes.strip_prefix(&PROTOCOL_HEADER).unwrap_or(bytes);
    let mut names = Vec::new();
    while let Some((frame, size)) = read_frame(rest, 1 << 20).unwrap() {
        if frame.payload.len() >= 4
            && let Ok(method) = Method::read(frame.payload)
        {
            names.push(method.name());
        }
        rest = &rest[size..];
    }
    names
}

pub fn put(methods: &[(u16, Method<'_>)]) -> Vec<u8> {
    let mut out = Vec::new();
    methods.iter().for_each(|(channel, method)| method.put(*channel, &mut out));
    out
}

/// What a client of the test sends until its channel 1 is open.
pub fn opened(shard: &mut Shard, connection: u32) {
    shard.accept(connection);
    let mut bytes = PROTOCOL_HEADER.to_vec();
    let start_ok = Method::StartOk {
        client_properties: Table::EMPTY,
        mechanism: Short("PLAIN"),
        response: Long(b"\0ann\0secret"),
        locale: Short("en_US"),
    };
    let tune_ok = Method::TuneOk { channel_max: 0, frame_max: 0, heartbeat_s: 0 };
    let open = Method::Open { virtual_host: Short("/"), reserved_1: Short(""), reserved_2: 0 };
    let channel = Method::ChannelOpen { reserved_1: Short("") };
    bytes.extend(put(&[(0, start_ok), (0, tune_ok), (0, open), (1, channel)]));
    shard.feed(connection, &bytes).unwrap();
    let said = shard.staged(connection);
    assert_eq!(names(&said).last(), Some(&"channel.open-ok"), "{:?}", names(&said));
}

pub fn declared(
    queue: &str,
    bits: u8,
    arguments: Table<'_>,
    shard: &mut Shard,
) -> Vec<&'static str> {
    let declare = Method::QueueDeclare { reserved_1: 0, queue: Short(queue), bits, arguments };
    shard.feed(0, &put(&[(1, declare)])).unwrap();
    names(&shard.staged(0))
}

pub fn message(queue: &str, body: &[u8]) -> Vec<u8> {
    let (exchange, routing_key) = (Short(""), Short(queue));
    let mut bytes = put(&[(1, Method::Publish { reserved_1: 0, exchange, routing_key, bits: 0 })]);
    Header { body_bytes: body.len() as u64, raw: &[0, 0] }.put(1, &mut bytes);
    put_body(body, 1, 131_072, &mut bytes);
    bytes
}
