//! A client of MQTT that asks one thing after the other and waits for each answer.
//!
//! It speaks by the product's codec, but is not the product's client: that one hides what is asked
//! for here (flags and QoS of a message, codes of a SUBACK, numbers of a CONNACK), and never does
//! what a broker's limits are found by: it acknowledges every message and keeps to the Receive
//! Maximum.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use weigh_protocols::mqtt::codec::{
    self, Ack, AckKind, Connect, Disconnect, Filter, Id, Limits, Options, Packet, Properties,
    Publish, Qos, Section, Subscribe, Version, Will, connack_words, encode_pingreq, words,
};

use crate::link::Link;
use crate::reach::{Reach, Trouble};

/// Contents of a client's CONNECT.
#[derive(Clone, Debug)]
pub struct Hello<'h> {
    /// Version of the protocol.
    pub version: Version,
    /// Empty asks for one.
    pub client_id: &'h str,
    /// True if it starts without an earlier session.
    pub clean: bool,
    /// Keep-alive, seconds.
    pub keep_alive_s: u16,
    /// Time that the session outlives the connection, seconds (MQTT 5 only).
    pub session_expiry_s: u32,
    /// Topic and body of its will.
    pub will: Option<(&'h str, &'h [u8])>,
}

impl<'h> Hello<'h> {
    /// A client whose session ends with its connection.
    pub fn new(version: Version, client_id: &'h str) -> Hello<'h> {
        let (keep_alive_s, session_expiry_s) = (KEEP_ALIVE_S, 0);
        Hello { version, client_id, clean: true, keep_alive_s, session_expiry_s, will: None }
    }

    /// The CONNECT to this broker.
    pub fn connect(&self, reach: &Reach) -> Vec<u8> {
        let credentials = reach.endpoint.credentials.as_ref();
        let password = credentials.map(|own| own.password.as_bytes());
        let mut section = Section::default();
        if self.version == Version::V5 && self.session_expiry_s > 0 {
            section.number(Id::SessionExpiryInterval, self.session_expiry_s);
        }
        if self.version == Version::V5 {
            section.number(Id::TopicAliasMaximum, 0);
        }
        let connect = Connect {
            version: self.version,
            clean: self.clean,
            keep_alive_s: self.keep_alive_s,
            properties: section.properties(),
            client_id: self.client_id,
            will: self.will.map(|(topic, body)| Will {
                properties: Properties::NONE,
                topic,
                body,
                qos: Qos::AtLeastOnce,
                retain: false,
            }),
            user: credentials.map(|own| own.user.as_str()),
            password: password.filter(|password| !password.is_empty()),
        };
        let mut bytes = Vec::new();
        connect.encode(&mut bytes);
        bytes
    }
}

/// Answer of a broker that accepted a client; of MQTT 5 unless noted otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// It had a session for this client (3.1.1, too).
    pub session_present: bool,
    /// The client identifier that it gave.
    pub client_id: Option<String>,
    /// All numbers among its properties.
    pub numbers: Vec<(Id, u32)>,
}

impl Granted {
    /// The number of this property.
    pub fn number(&self, id: Id) -> Option<u32> {
        self.numbers.iter().find(|(found, _)| *found == id).map(|(_, number)| *number)
    }
}

/// A message that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Topic of the message; empty if an alias was sent instead.
    pub topic: String,
    /// Body of the message.
    pub body: Vec<u8>,
    /// The QoS it came with.
    pub qos: Qos,
    /// True if it was delivered as a retained message.
    pub retain: bool,
    /// True if it had a subscription identifier.
    pub has_subscription_id: bool,
}

/// A message to be published, without flags and properties.
pub fn draft<'d>(topic: &'d str, body: &'d [u8], qos: Qos) -> Publish<'d> {
    let properties = Properties::NONE;
    Publish { dup: false, qos, retain: false, topic, packet_id: 0, properties, body }
}

/// A session with a broker.
pub struct Client {
    link: Link,
    version: Version,
    inbox: VecDeque<Message>,
    packet_id: u16,
    /// True if messages are acknowledged when they are read.
    pub acknowledges: bool,
    /// Answer of the broker that accepted the client.
    pub granted: Granted,
}

/// Progress of messages that are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// The message of this number was sent.
    Sent(u64),
    /// One was confirmed with this reason code.
    Reason(u8),
}

/// A packet that is not a message.
enum Heard {
    Message,
    Connack(u8, Granted),
    Ack(AckKind, u16, u8),
    Suback(u16, Vec<u8>),
    Pong,
}

impl Client {
    /// Connects, and is let in.
    ///
    /// # Errors
    /// [`Trouble::Refused`] with the broker's reason, and whatever is in the way.
    pub fn open(reach: &Reach, hello: &Hello<'_>) -> Result<Client, Trouble> {
        Client::open_with(reach, hello.version, &hello.connect(reach))
    }

    /// Opens a connection with these bytes as CONNECT.
    ///
    /// # Errors
    /// Those of [`Client::open`].
    pub fn open_with(reach: &Reach, version: Version, connect: &[u8]) -> Result<Client, Trouble> {
        let mut client = Client {
            link: reach.open()?,
            version,
            inbox: VecDeque::new(),
            packet_id: 0,
            acknowledges: true,
            granted: Granted::default(),
        };
        let until = reach.until()?;
        client.link.send(connect, until)?;
        match client.next(until)? {
            Heard::Connack(0, granted) => client.granted = granted,
            Heard::Connack(code, _) => {
                let words = connack_words(code, version);
                return Err(Trouble::Refused(format!("CONNACK {code:#04x}, {words}")));
            }
            _ => return Err(Trouble::Foreign("a packet came before the CONNACK".to_owned())),
        }
        Ok(client)
    }

    /// Subscribes with options and properties (MQTT 5); the QoS that the broker grants.
    ///
    /// # Errors
    /// [`Trouble::Refused`] with the broker's reason, and whatever is in the way.
    pub fn subscribe(
        &mut self,
        filter: &str,
        options: Options,
        properties: Properties<'_>,
    ) -> Result<Qos, Trouble> {
        let packet_id = self.new_id();
        let mut raw_filters = Vec::new();
        Filter { filter, options }.put(&mut raw_filters);
        let subscribe = Subscribe { packet_id, properties, raw_filters: &raw_filters };
        self.say(&Packet::Subscribe(subscribe))?;
        let until = self.link.reach.until()?;
        loop {
            match self.next(until)? {
                Heard::Suback(id, codes) if id == packet_id => {
                    return granted_qos(codes.first().copied().unwrap_or(UNSPECIFIED));
                }
                _ => {}
            }
        }
    }

    /// Subscribes, without options.
    ///
    /// # Errors
    /// Those of [`Client::subscribe`].
    pub fn subscribed(&mut self, filter: &str, qos: Qos) -> Result<Qos, Trouble> {
        self.subscribe(filter, Options::plain(qos), Properties::NONE)
    }

    /// Publishes, and waits for the whole exchange of its QoS.
    ///
    /// # Errors
    /// [`Trouble::Refused`] with the broker's reason, and whatever is in the way.
    pub fn publish(&mut self, message: &Publish<'_>) -> Result<(), Trouble> {
        let packet_id = self.send_message(message)?;
        if message.qos == Qos::AtMostOnce {
            return Ok(());
        }
        let until = self.link.reach.until()?;
        loop {
            match self.confirmation(until)? {
                (done, reason) if done == packet_id => return accepted(reason),
                _ => {}
            }
        }
    }

    /// Sends a message, and waits for nothing; its packet identifier.
    ///
    /// # Errors
    /// If it cannot be sent.
    pub fn send_message(&mut self, message: &Publish<'_>) -> Result<u16, Trouble> {
        let packet_id = if message.qos == Qos::AtMostOnce { 0 } else { self.new_id() };
        self.say(&Packet::Publish(Publish { packet_id, ..*message }))?;
        Ok(packet_id)
    }

    /// Returns the next message of this client whose exchange is over, with the broker's last
    /// reason code.
    fn confirmation(&mut self, until: Instant) -> Result<(u16, u8), Trouble> {
        loop {
            match self.next(until)? {
                Heard::Ack(AckKind::Pubrec, id, ..UNSPECIFIED) => {
                    self.say(&Packet::Ack(Ack::new(AckKind::Pubrel, id, 0)))?;
                }
                Heard::Ack(_, id, reason) => return Ok((id, reason)),
                _ => {}
            }
        }
    }

    /// Publishes numbers from 0 on, `window` of them in flight at once. Calls `each` with the
    /// reason code of every one that is confirmed; at QoS 0 none is.
    ///
    /// # Errors
    /// Any obstacle; what was confirmed before has been reported.
    pub fn publish_numbers(
        &mut self,
        topic: &str,
        count: u64,
        (qos, window): (Qos, u64),
        each: &mut dyn FnMut(Came) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let mut on_the_way = 0;
        for number in 0..count {
            let body = (number as u32).to_be_bytes();
            self.send_message(&draft(topic, &body, qos))?;
            each(Came::Sent(number))?;
            if qos == Qos::AtMostOnce {
                continue;
            }
            on_the_way += 1;
            while on_the_way >= window.max(1) || (number + 1 == count && on_the_way > 0) {
                let until = self.link.reach.until()?;
                let (_, reason) = self.confirmation(until)?;
                on_the_way -= 1;
                each(Came::Reason(reason))?;
            }
        }
        Ok(())
    }

    /// Takes what waits at the socket of a client that is not read meanwhile. Over TCP the kernel
    /// takes it; inside QUIC the broker would wait for confirmations.
    ///
    /// # Errors
    /// Whatever is in the way.
    pub fn keep_up(&mut self) -> Result<(), Trouble> {
        let until = Instant::now() + KEEPING_UP;
        while self.link.keeps_its_own_time() {
            match self.link.turn(until) {
                Ok(()) => {}
                Err(Trouble::Silent(_)) => return Ok(()),
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    /// The next message; `None` if none comes within `time`.
    ///
    /// # Errors
    /// Whatever is in the way.
    pub fn message(&mut self, time: Duration) -> Result<Option<Message>, Trouble> {
        let until = self.link.reach.end.min(Instant::now() + time);
        loop {
            if let Some(message) = self.inbox.pop_front() {
                return Ok(Some(message));
            }
            match self.next(until) {
                Ok(_) => {}
                Err(Trouble::Silent(_)) => return Ok(None),
                Err(other) => return Err(other),
            }
        }
    }

    /// All messages up to the one with this body, which is left out; `false` if it did not come in
    /// time.
    ///
    /// # Errors
    /// Whatever is in the way.
    pub fn messages_until(&mut self, fence: &[u8]) -> Result<(Vec<Message>, bool), Trouble> {
        let mut came = Vec::new();
        let until = self.link.reach.until()?;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.message(left)? {
                Some(message) if message.body == fence => return Ok((came, true)),
                Some(message) => came.push(message),
                None => return Ok((came, false)),
            }
        }
    }

    /// Waits until the broker has answered a ping: what was sent before has been read.
    ///
    /// # Errors
    /// Whatever is in the way.
    pub fn ping(&mut self) -> Result<(), Trouble> {
        let mut bytes = Vec::new();
        encode_pingreq(&mut bytes);
        let until = self.link.reach.until()?;
        self.link.send(&bytes, until)?;
        while !matches!(self.next(until)?, Heard::Pong) {}
        Ok(())
    }

    /// Versions and protocol that were agreed on inside QUIC.
    #[cfg(feature = "quic")]
    pub fn negotiated(&self) -> Option<String> {
        self.link.negotiated()
    }

    /// Disconnects and closes.
    pub fn leave(mut self) {
        let _ = self.say(&Packet::Disconnect(Disconnect::new(0)));
        self.link.cut();
    }

    /// Closes without a word, as a client that dies does.
    pub fn cut(mut self) {
        self.link.cut();
    }

    fn new_id(&mut self) -> u16 {
        self.packet_id = self.packet_id.checked_add(1).unwrap_or(1);
        self.packet_id
    }

    fn say(&mut self, packet: &Packet<'_>) -> Result<(), Trouble> {
        let mut bytes = Vec::new();
        packet.encode(self.version, &mut bytes);
        let until = self.link.reach.until()?;
        let sent = self.link.send(&bytes, until);
        match sent {
            // Why it was closed may have been said before.
            Err(Trouble::Closed(text)) => Err(self.last_words().unwrap_or(Trouble::Closed(text))),
            sent => sent,
        }
    }

    /// Returns the last answer of the broker before it closed.
    fn last_words(&mut self) -> Option<Trouble> {
        let until = self.link.reach.until().ok()?;
        loop {
            match self.next(until) {
                Ok(_) => {}
                Err(trouble @ (Trouble::Closed(_) | Trouble::Refused(_))) => return Some(trouble),
                Err(_) => return None,
            }
        }
    }

    /// The next packet; messages go into the inbox.
    fn next(&mut self, until: Instant) -> Result<Heard, Trouble> {
        loop {
            if let Some(heard) = self.take_one(until)? {
                return Ok(heard);
            }
            self.link.read(until)?;
        }
    }

    fn take_one(&mut self, until: Instant) -> Result<Option<Heard>, Trouble> {
        // A broker that knows 3.1.1 only answers a client of 5 in its own words, which are too
        // short to be of 5 (MQTT 3.1.1, section 3.2).
        if let (Version::V5, [CONNACK, 2, _, code, ..]) = (self.version, &self.link.buffer[..]) {
            let words = connack_words(*code, Version::V311);
            return Err(Trouble::Refused(format!("CONNACK {code:#04x} of 3.1.1, {words}")));
        }
        let decoded = codec::decode(&self.link.buffer, self.version, &Limits::default());
        let decoded = decoded.map_err(|fault| Trouble::Foreign(fault.to_string()))?;
        let Some((packet, size)) = decoded else { return Ok(None) };
        let mut answer = Vec::new();
        let heard = match packet {
            Packet::Publish(publish) => {
                self.inbox.push_back(Message {
                    topic: publish.topic.to_owned(),
                    body: publish.body.to_vec(),
                    qos: publish.qos,
                    retain: publish.retain,
                    has_subscription_id: publish.properties.has(Id::SubscriptionIdentifier),
                });
                let kind = match publish.qos {
                    Qos::AtMostOnce => None,
                    Qos::AtLeastOnce => Some(AckKind::Puback),
                    Qos::ExactlyOnce => Some(AckKind::Pubrec),
                };
                if let Some(kind) = kind.filter(|_| self.acknowledges) {
                    Ack::new(kind, publish.packet_id, 0).encode(self.version, &mut answer);
                }
                Heard::Message
            }
            Packet::Ack(Ack { kind: AckKind::Pubrel, packet_id, .. }) => {
                Ack::new(AckKind::Pubcomp, packet_id, 0).encode(self.version, &mut answer);
                Heard::Message
            }
            Packet::Ack(ack) => Heard::Ack(ack.kind, ack.packet_id, ack.reason),
            Packet::Suback(suback) => Heard::Suback(suback.packet_id, suback.codes.to_vec()),
            Packet::Connack(connack) => {
                let numbers = connack.properties.iter().filter_map(|(id, value)| match value {
                    codec::Value::Number(number) => Some((id, number)),
                    _ => None,
                });
                let client_id = connack.properties.text(Id::AssignedClientIdentifier);
                let granted = Granted {
                    session_present: connack.session_present,
                    client_id: client_id.map(str::to_owned),
                    numbers: numbers.collect(),
                };
                Heard::Connack(connack.code, granted)
            }
            Packet::Disconnect(disconnect) => {
                let code = disconnect.reason;
                let text = disconnect.properties.text(Id::ReasonString);
                let text = text.map_or(String::new(), |text| format!(": {text}"));
                let words = words(code);
                return Err(Trouble::Closed(format!("DISCONNECT {code:#04x}, {words}{text}")));
            }
            Packet::Pingresp => Heard::Pong,
            _ => return Err(Trouble::Foreign("a packet of a client came".to_owned())),
        };
        self.link.buffer.drain(..size);
        if !answer.is_empty() {
            self.link.send(&answer, until)?;
        }
        Ok(Some(heard))
    }
}

/// The QoS that a code of SUBACK grants (section 3.9.3).
///
/// # Errors
/// [`Trouble::Refused`] from 0x80 on.
fn granted_qos(code: u8) -> Result<Qos, Trouble> {
    let refused = || Trouble::Refused(format!("SUBACK {code:#04x}, {}", words(code)));
    Qos::from_bits(code).ok_or_else(refused)
}

/// Accepts a reason code of an acknowledgement that is not an error.
///
/// # Errors
/// [`Trouble::Refused`] from 0x80 on.
pub fn accepted(reason: u8) -> Result<(), Trouble> {
    match reason {
        0..UNSPECIFIED => Ok(()),
        _ => Err(Trouble::Refused(format!("reason code {reason:#04x}, {}", words(reason)))),
    }
}

/// The first byte of a CONNACK (section 3.2.1).
const CONNACK: u8 = 0x20;

/// The first code that is an error (section 2.4).
pub const UNSPECIFIED: u8 = 0x80;

/// Time for what waits at a socket.
const KEEPING_UP: Duration = Duration::from_millis(2);

/// Longer than any probe is silent, and short enough for brokers that refuse long ones.
const KEEP_ALIVE_S: u16 = 30;
