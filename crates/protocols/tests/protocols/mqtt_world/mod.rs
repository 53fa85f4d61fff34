//! A world in memory: the reference broker with any number of shards, links that carry bytes to
//! it and from it, cut wherever a test likes, and virtual time.
#![allow(dead_code, reason = "each test binary uses its own part of the world")]

use weigh_model::connection::Signal;
use weigh_model::endpoint::Endpoint;
use weigh_model::protocol::{Dial, Protocol};
use weigh_model::server::{ConnectionId, Outboxes, Record, Server, ServerReport};
use weigh_model::trial::{Settings, Trial};
use weigh_model::{Load, Nanos, Pattern};
use weigh_protocols::mqtt::Mqtt;
use weigh_protocols::mqtt::codec::{
    Connect, Filter, Id, Limits, Options, Packet, Properties, Publish, Qos, Section, Subscribe,
    Value, Version, decode,
};

/// The broker and everything around it.
pub(crate) struct World {
    pub(crate) now: Nanos,
    shards: Vec<(Box<dyn Server>, Net)>,
}

/// A client's end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    shard: usize,
    id: ConnectionId,
}

#[derive(Default)]
struct Net {
    links: Vec<Option<Link>>,
    notified: Vec<u16>,
}

#[derive(Default)]
struct Link {
    /// From the client, not yet taken by the broker.
    unread: Vec<u8>,
    /// From the broker, not yet taken by the socket.
    staged: Vec<u8>,
    /// What reached the client.
    inbox: Vec<u8>,
    is_stalled: bool,
    wants_drain: bool,
    is_closing: bool,
    is_over: bool,
}

impl Net {
    fn link(&mut self, id: ConnectionId) -> &mut Link {
        self.links[id.0 as usize].as_mut().expect("the broker named an open connection")
    }
}

impl Outboxes for Net {
    fn stage(&mut self, to: ConnectionId) -> &mut Vec<u8> {
        let link = self.link(to);
        assert!(!link.is_closing, "nothing may be staged for a closing connection");
        &mut link.staged
    }

    fn frame(&mut self, _to: ConnectionId) {}

    fn pending_bytes(&self, of: ConnectionId) -> usize {
        self.links[of.0 as usize].as_ref().map_or(0, |link| link.staged.len())
    }

    fn notify_drained(&mut self, of: ConnectionId) {
        self.link(of).wants_drain = true;
    }

    fn hold(&mut self, _which: ConnectionId) {}

    fn release(&mut self, _which: ConnectionId) {}

    fn close(&mut self, which: ConnectionId) {
        self.link(which).is_closing = true;
    }

    fn abort(&mut self, which: ConnectionId) {
        let link = self.link(which);
        link.staged.clear();
        link.is_closing = true;
    }

    fn notify_shard(&mut self, shard: u16) {
        self.notified.push(shard);
    }

    fn store(&mut self, _record: Record<'_>) {}

    fn stores(&self) -> bool {
        false
    }
}

impl World {
    pub(crate) fn new(given: &[(&str, &str)]) -> World {
        World::sharded(1, given)
    }

    pub(crate) fn sharded(shards: u16, given: &[(&str, &str)]) -> World {
        let settings = Settings::new("mqtt", Mqtt.settings(), given.iter().copied()).unwrap();
        let host = Mqtt.host(&settings).unwrap();
        let shards = (0..shards).map(|shard| ((host.make)(shard), Net::default())).collect();
        let mut world = World { now: Nanos::from_secs(1), shards };
        world.advance(Nanos(0));
        world
    }

    pub(crate) fn open(&mut self, shard: usize) -> Peer {
        let (server, net) = &mut self.shards[shard];
        let free = net.links.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            net.links.push(None);
            net.links.len() - 1
        });
        net.links[at] = Some(Link::default());
        let id = ConnectionId(at as u32);
        server.accepted(id, self.now, net);
        Peer { shard, id }
    }

    /// Bytes from a client; what the broker leaves over comes again with what follows.
    pub(crate) fn feed(&mut self, peer: Peer, bytes: &[u8]) {
        let (server, net) = &mut self.shards[peer.shard];
        let Some(link) = net.links[peer.id.0 as usize].as_mut() else { return };
        if link.is_closing {
            return;
        }
        link.unread.extend_from_slice(bytes);
        let input = std::mem::take(&mut link.unread);
        match server.receive(peer.id, &input, self.now, net) {
            Ok(used) => net.link(peer.id).unread = input[used..].to_vec(),
            Err(_) => net.link(peer.id).is_closing = true,
        }
    }

    /// Lets sockets take what is staged, and everything follow from it, until nothing moves.
    pub(crate) fn settle(&mut self) {
        while self.turn() {}
    }

    fn turn(&mut self) -> bool {
        let mut has_moved = false;
        for shard in 0..self.shards.len() {
            for at in 0..self.shards[shard].1.links.len() {
                has_moved |= self.move_link(shard, at);
            }
            let notified = std::mem::take(&mut self.shards[shard].1.notified);
            for other in notified {
                has_moved = true;
                let (server, net) = &mut self.shards[usize::from(other)];
                server.notified(self.now, net);
            }
        }
        has_moved
    }

    fn move_link(&mut self, shard: usize, at: usize) -> bool {
        let (server, net) = &mut self.shards[shard];
        let Some(link) = net.links[at].as_mut() else { return false };
        let id = ConnectionId(at as u32);
        let mut has_moved = false;
        if !link.is_stalled {
            has_moved = !link.staged.is_empty();
            link.inbox.append(&mut link.staged);
            if std::mem::take(&mut link.wants_drain) {
                server.drained(id, self.now, net);
                return true;
            }
        }
        let link = net.link(id);
        if link.is_closing && !link.is_over && link.staged.is_empty() {
            link.is_over = true;
            server.closed(id, self.now, net);
            return true;
        }
        has_moved
    }

    /// The client's socket is gone without a word.
    pub(crate) fn cut(&mut self, peer: Peer) {
        let (server, net) = &mut self.shards[peer.shard];
        let link = net.link(peer.id);
        if !link.is_over {
            link.is_over = true;
            link.is_closing = true;
            server.closed(peer.id, self.now, net);
        }
        self.settle();
    }

    /// Frees the number of a connection that is over.
    pub(crate) fn forget(&mut self, peer: Peer) {
        self.shards[peer.shard].1.links[peer.id.0 as usize] = None;
    }

    pub(crate) fn stall(&mut self, peer: Peer, is_stalled: bool) {
        self.shards[peer.shard].1.link(peer.id).is_stalled = is_stalled;
    }

    /// What reached the client since the last look.
    pub(crate) fn take(&mut self, peer: Peer) -> Vec<u8> {
        std::mem::take(&mut self.shards[peer.shard].1.link(peer.id).inbox)
    }

    /// True once the broker has closed the connection.
    pub(crate) fn is_over(&mut self, peer: Peer) -> bool {
        self.shards[peer.shard].1.link(peer.id).is_over
    }

    pub(crate) fn advance(&mut self, by: Nanos) {
        self.now = self.now + by;
        for (server, net) in &mut self.shards {
            let again = server.wake(self.now, net).expect("the broker has timers");
            assert!(again > self.now, "the next look is in the future");
        }
        self.settle();
    }

    pub(crate) fn report(&self) -> ServerReport {
        let mut report = ServerReport::default();
        for (server, _) in &self.shards {
            report.add(&server.report());
        }
        report
    }

    /// Connects with `connect`, and takes the CONNACK off.
    pub(crate) fn join(&mut self, connect: &Connect<'_>) -> Peer {
        self.join_on(0, connect)
    }

    pub(crate) fn join_on(&mut self, shard: usize, connect: &Connect<'_>) -> Peer {
        let peer = self.open(shard);
        self.send(peer, connect.version, &Packet::Connect(*connect));
        let bytes = &mut self.shards[shard].1.link(peer.id).inbox;
        let (packet, size) =
            decode(bytes, connect.version, &Limits::default()).unwrap().expect("a CONNACK");
        let Packet::Connack(connack) = packet else { panic!("no CONNACK: {packet:?}") };
        assert_eq!(connack.code, 0);
        bytes.drain(..size);
        peer
    }

    pub(crate) fn send(&mut self, peer: Peer, version: Version, packet: &Packet<'_>) {
        let mut bytes = Vec::new();
        packet.encode(version, &mut bytes);
        self.feed(peer, &bytes);
        self.settle();
    }

    /// Subscribes, and takes the SUBACK off (retained messages stay).
    pub(crate) fn subscribe(
        &mut self,
        peer: Peer,
        version: Version,
        filter: &str,
        options: Options,
        id: u32,
    ) -> u8 {
        let mut raw_filters = Vec::new();
        Filter { filter, options }.put(&mut raw_filters);
        let mut section = Section::default();
        if id > 0 {
            section.number(Id::SubscriptionIdentifier, id);
        }
        let properties = section.properties();
        let subscribe = Subscribe { packet_id: 77, properties, raw_filters: &raw_filters };
        self.send(peer, version, &Packet::Subscribe(subscribe));
        let bytes = &mut self.shards[peer.shard].1.link(peer.id).inbox;
        let (packet, size) = decode(bytes, version, &Limits::default()).unwrap().unwrap();
        let Packet::Suback(suback) = packet else { panic!("no SUBACK: {packet:?}") };
        let code = suback.codes[0];
        bytes.drain(..size);
        code
    }

    /// What reached the client, each packet as a line.
    pub(crate) fn lines(&mut self, peer: Peer, version: Version) -> Vec<String> {
        let bytes = self.take(peer);
        let mut rest = &bytes[..];
        let mut lines = Vec::new();
        while let Some((packet, size)) = decode(rest, version, &Limits::default()).unwrap() {
            lines.push(line(&packet));
            rest = &rest[size..];
        }
        assert!(rest.is_empty(), "half a packet");
        lines
    }
}

/// A trial with these settings of mqtt.
pub(crate) fn trial(given: &[(&str, &str)], connections: u32, subscribers: u32) -> Trial {
    let address = "127.0.0.1:1883".parse().unwrap();
    Trial {
        id: "t".to_owned(),
        point: Default::default(),
        repetition: 0,
        seed: 0xBEEF,
        protocol: "mqtt".to_owned(),
        target: "reference".to_owned(),
        endpoint: Some(Endpoint::at("mqtt", address)),
        load: Load {
            subscribers,
            messages: Some(1),
            ..Load::closed(Pattern::Deliver, connections)
        },
        settings: Settings::new("mqtt", Mqtt.settings(), given.iter().copied()).unwrap(),
    }
}

pub(crate) fn dial(trial: &Trial) -> Dial {
    Mqtt.dial(trial).map_err(|error| error.to_string()).unwrap()
}

/// A signal of a connection, kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Ready,
    Alive,
    Done(u32),
    Refused(u32, u16),
    NoSubscriber(u32),
    Message(String, Vec<u8>),
    Granted(&'static str, u64),
}

pub(crate) fn keep(said: &mut Vec<Said>, signal: Signal<'_>) {
    said.push(match signal {
        Signal::Ready => Said::Ready,
        Signal::Done(ticket) => Said::Done(ticket.0),
        Signal::Refused(ticket, code) => Said::Refused(ticket.0, code),
        Signal::NoSubscriber(ticket) => Said::NoSubscriber(ticket.0),
        Signal::Message { topic, body } => {
            Said::Message(String::from_utf8(topic.to_vec()).unwrap(), body.to_vec())
        }
        Signal::Granted(name, value) => Said::Granted(name, value),
        Signal::Alive => Said::Alive,
        Signal::KeptAlive => unreachable!("only layers report it"),
        Signal::Head { .. } | Signal::Piece(_) => unreachable!("no transfer is tested here"),
        Signal::Answered(_) => unreachable!("MQTT has nothing to ask for"),
        Signal::Unprocessed(_) => unreachable!("MQTT does not say so"),
        Signal::Regrouped(_) => unreachable!("MQTT has no groups that are divided anew"),
        Signal::Closing => unreachable!("MQTT connections never ask to be closed"),
    });
}

/// A CONNECT with nothing special in it.
pub(crate) fn hello(version: Version, client_id: &str) -> Connect<'_> {
    Connect {
        version,
        clean: true,
        keep_alive_s: 0,
        properties: Properties::NONE,
        client_id,
        will: None,
        user: None,
        password: None,
    }
}

/// A PUBLISH with nothing special in it.
pub(crate) fn message<'a>(qos: Qos, topic: &'a str, body: &'a str) -> Publish<'a> {
    Publish {
        dup: false,
        qos,
        retain: false,
        topic,
        packet_id: if qos == Qos::AtMostOnce { 0 } else { 1 },
        properties: Properties::NONE,
        body: body.as_bytes(),
    }
}

fn line(packet: &Packet<'_>) -> String {
    match packet {
        Packet::Publish(publish) => {
            let flags = [(publish.dup, " dup"), (publish.retain, " retain")];
            let flags: String = flags.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
            let body = String::from_utf8_lossy(publish.body);
            let properties: String = publish
                .properties
                .iter()
                .map(|(id, value)| match value {
                    Value::Number(number) => format!(" {id:?}={number}"),
                    Value::Text(text) => format!(" {id:?}={text}"),
                    Value::Binary(bytes) => format!(" {id:?}={bytes:?}"),
                    Value::Pair(name, value) => format!(" {name}={value}"),
                })
                .collect();
            format!("{} q{}{flags} {body}{properties}", publish.topic, publish.qos as u8)
        }
        Packet::Ack(ack) => format!("{:?} {} {:#x}", ack.kind, ack.packet_id, ack.reason),
        Packet::Disconnect(disconnect) => format!("disconnect {:#x}", disconnect.reason),
        Packet::Connack(connack) => format!("connack {:#x}", connack.code),
        Packet::Unsuback(unsuback) => format!("unsuback {:?}", unsuback.codes),
        Packet::Pingresp => "pingresp".to_owned(),
        other => format!("{other:?}"),
    }
}
