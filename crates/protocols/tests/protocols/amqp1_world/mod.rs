//! Clients and servers of AMQP 1.0 in memory, and frames that tests send.
#![allow(dead_code, unreachable_pub, reason = "every test binary uses its own part of it")]

use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Protocol, Role, Seat};
use weigh_protocols::amqp1::Amqp1;
use weigh_protocols::amqp1::codec::{
    self, AMQP_HEADER, Attach, Begin, Open, Performative, SASL_HEADER, Symbols, Terminus,
    read_frame,
};

use crate::rig::{Client, Heard, Shard, exchange, trial};

pub const URL: &str = "amqp1://127.0.0.1:5672";

pub fn seated(
    pattern: Pattern,
    topology: Topology,
    role: Role,
    index: u32,
    given: &[(&str, &str)],
) -> Client {
    let mut trial = trial(&Amqp1, pattern, topology, URL, given).unwrap();
    trial.load.connections = 3;
    trial.load.subscribers = if pattern == Pattern::Publish { 0 } else { 3 };
    Client::new((Amqp1.dial(&trial).unwrap().make)(Seat { index, role }))
}

pub fn producer(given: &[(&str, &str)]) -> Client {
    seated(Pattern::Deliver, Topology::FanIn, Role::Producer, 0, given)
}

pub fn consumer(index: u32, given: &[(&str, &str)]) -> Client {
    seated(Pattern::Deliver, Topology::FanIn, Role::Consumer, index, given)
}

/// A server with these clients on the connections 0, 1 ..., all ready.
pub fn world(given: &[(&str, &str)], clients: &mut [&mut Client]) -> Shard {
    let mut shard = Shard::of(&Amqp1, given);
    for (number, client) in clients.iter_mut().enumerate() {
        shard.accept(number as u32);
        exchange(client, &mut shard, number as u32, &[]);
        assert_eq!(client.heard.last(), Some(&Heard::Ready), "{:?}", client.heard);
        client.heard.clear();
    }
    shard
}

/// Frames and headers of `bytes`, by name.
pub fn names(bytes: &[u8]) -> Vec<&'static str> {
    let (mut rest, mut names) = (bytes, Vec::new());
    loop {
        if let Some(after) = rest.strip_prefix(&SASL_HEADER) {
            names.push("SASL");
            rest = after;
        } else if let Some(after) = rest.strip_prefix(&AMQP_HEADER) {
            names.push("AMQP");
            rest = after;
        } else if let Some((frame, size)) = read_frame(rest, 1 << 20).unwrap() {
            names.push(codec::name(&frame).unwrap_or("empty"));
            rest = &rest[size..];
        } else {
            return names;
        }
    }
}

/// The performatives of `bytes`, as they are printed.
pub fn said(bytes: &[u8]) -> Vec<String> {
    let (mut rest, mut said) = (bytes, Vec::new());
    while let Some((frame, size)) = read_frame(rest, 1 << 20).unwrap() {
        said.push(format!("{:?}", Performative::read(frame.body).unwrap().0));
        rest = &rest[size..];
    }
    said
}

pub fn put(performatives: &[Performative<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    performatives.iter().for_each(|own| own.put(0, &mut out));
    out
}

/// What a client of the test sends until its session stands, without SASL.
pub fn opened(shard: &mut Shard, connection: u32) {
    shard.accept(connection);
    let open = Open {
        container_id: "test",
        hostname: None,
        max_frame_size: 512,
        channel_max: 0,
        idle_time_out_ms: None,
    };
    let begin = Begin {
        remote_channel: None,
        next_outgoing_id: 0,
        incoming_window: 1000,
        outgoing_window: 1000,
        handle_max: 7,
    };
    let mut bytes = AMQP_HEADER.to_vec();
    bytes.extend(put(&[Performative::Open(open), Performative::Begin(begin)]));
    shard.feed(connection, &bytes).unwrap();
    assert_eq!(names(&shard.staged(connection)), ["AMQP", "open", "begin"]);
}

pub fn attach(handle: u32, role: codec::Role, address: &str) -> Attach<'_> {
    let node = Terminus { address: Some(address), ..Terminus::default() };
    let (own, other) = (Some(node), Some(Terminus::default()));
    let is_receiver = role == codec::Role::Receiver;
    Attach {
        name: "link",
        handle,
        role,
        snd_settle_mode: 2,
        rcv_settle_mode: 0,
        source: if is_receiver { own } else { other },
        target: if is_receiver { other } else { own },
        initial_delivery_count: (!is_receiver).then_some(0),
        max_message_size: None,
    }
}

/// The node of an attach, of another kind.
pub fn node<'a>(attach: Attach<'a>, change: impl Fn(&mut Terminus<'a>)) -> Attach<'a> {
    let mut attach = attach;
    let is_receiver = attach.role == codec::Role::Receiver;
    let end = if is_receiver { &mut attach.source } else { &mut attach.target };
    end.as_mut().into_iter().for_each(change);
    attach
}

pub const TOPIC: Symbols<'static> = Symbols::One("topic");
