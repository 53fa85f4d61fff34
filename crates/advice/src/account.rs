//! Bytes by layer, from IP up: arithmetic on what a dry trial wrote. Bodies, protocol and TLS are
//! exact. Acknowledgements of TCP depend on timers and kernels, so they are counted twice: as few
//! and as many as RFC 9293 (section 3.8.6.3) and Linux let there be.
//!
//! Stated assumptions: IPv4 without options, 20 B; a segment has 32 B of TCP (timestamps, RFC
//! 7323), SYN and SYN-ACK have 40 B; UDP has 8 B. A connection opens with three packets and closes
//! with three or four. Nothing is coalesced by offloads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::{Flight, Session};

/// Transport of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// True over UDP.
    pub is_datagram: bool,
    /// Largest IP packet, bytes.
    pub mtu: u64,
    /// True if the next message comes before a delayed acknowledgement is due (40 ms in Linux), so
    /// that it can carry the acknowledgement of the last answer.
    pub is_dense: bool,
}

/// Bytes and packets of both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Bodies.
    pub payload: f64,
    /// What the protocol adds.
    pub protocol: f64,
    /// What TLS adds, handshakes included.
    pub tls: f64,
    /// Headers of TCP or UDP, and packets without data.
    pub transport: f64,
    /// Headers of IP.
    pub network: f64,
    /// From IP up, from the device to the server.
    pub up: f64,
    /// From IP up, from the server to the device.
    pub down: f64,
    /// Packets from the device.
    pub up_packets: f64,
    /// Packets to the device.
    pub down_packets: f64,
}

impl Tally {
    /// All bytes from IP up.
    pub fn bytes(&self) -> f64 {
        self.payload + self.protocol + self.tls + self.transport + self.network
    }

    /// This `number` times.
    pub fn times(&self, number: f64) -> Tally {
        self.each(|own| own * number)
    }

    /// This and another.
    pub fn and(&self, other: &Tally) -> Tally {
        Tally {
            payload: self.payload + other.payload,
            protocol: self.protocol + other.protocol,
            tls: self.tls + other.tls,
            transport: self.transport + other.transport,
            network: self.network + other.network,
            up: self.up + other.up,
            down: self.down + other.down,
            up_packets: self.up_packets + other.up_packets,
            down_packets: self.down_packets + other.down_packets,
        }
    }

    fn each(&self, of: impl Fn(f64) -> f64) -> Tally {
        Tally {
            payload: of(self.payload),
            protocol: of(self.protocol),
            tls: of(self.tls),
            transport: of(self.transport),
            network: of(self.network),
            up: of(self.up),
            down: of(self.down),
            up_packets: of(self.up_packets),
            down_packets: of(self.down_packets),
        }
    }

    /// Takes packets without data away.
    fn remove_packets(&mut self, is_up: bool, number: u64) {
        let number = number as f64;
        self.network -= IP * number;
        self.transport -= TCP as f64 * number;
        let bytes = (IP + TCP as f64) * number;
        match is_up {
            true => (self.up, self.up_packets) = (self.up - bytes, self.up_packets - number),
            false => {
                (self.down, self.down_packets) = (self.down - bytes, self.down_packets - number);
            }
        }
    }

    /// Adds packets of these headers in one direction.
    fn add_packets(&mut self, is_up: bool, number: u64, transport: u64, data: u64) {
        let number = number as f64;
        self.network += IP * number;
        self.transport += transport as f64 * number;
        let bytes = (IP + transport as f64) * number + data as f64;
        match is_up {
            true => (self.up, self.up_packets) = (self.up + bytes, self.up_packets + number),
            false => {
                (self.down, self.down_packets) = (self.down + bytes, self.down_packets + number);
            }
        }
    }
}

/// How many packets acknowledge and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// An answer acknowledges what it answers, and else every second segment is acknowledged.
    Few,
    /// Every segment is acknowledged by a packet of its own, as Linux does on a young connection.
    Many,
}

/// The least and the most that a part of a connection can take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds {
    /// With few acknowledgements.
    pub low: Tally,
    /// With many.
    pub high: Tally,
}

impl Bounds {
    /// Computes both.
    fn of(of: impl Fn(Acks) -> Tally) -> Bounds {
        Bounds { low: of(Acks::Few), high: of(Acks::Many) }
    }

    /// These `number` times.
    pub fn times(&self, number: f64) -> Bounds {
        Bounds { low: self.low.times(number), high: self.high.times(number) }
    }

    /// These and others.
    pub fn and(&self, other: &Bounds) -> Bounds {
        Bounds { low: self.low.and(&other.low), high: self.high.and(&other.high) }
    }
}

impl Wire {
    /// A message on a connection that is open.
    pub fn message(&self, session: &Session) -> Bounds {
        Bounds::of(|acks| {
            let mut tally = self.flights(&session.message, session.body, acks);
            if let (Acks::Few, true, Some(last)) = (acks, self.is_dense, session.message.last())
                && !self.is_datagram
            {
                let pure = self.packets(last.carried);
                let fewer = pure.div_ceil(2) - (pure - 1) / 2;
                tally.remove_packets(!last.is_up, fewer);
            }
            tally
        })
    }

    /// Opening and closing a connection, without a message.
    pub fn around(&self, session: &Session) -> Bounds {
        Bounds::of(|acks| {
            let mut tally = self.flights(&session.set_up, 0, acks);
            tally = tally.and(&self.flights(&session.tear_down, 0, acks));
            if !self.is_datagram {
                tally.add_packets(true, 1, SYN, 0);
                tally.add_packets(false, 1, SYN, 0);
                tally.add_packets(true, 1, TCP, 0);
                tally.add_packets(true, 2, TCP, 0);
                tally.add_packets(false, if acks == Acks::Few { 1 } else { 2 }, TCP, 0);
            }
            tally
        })
    }

    /// What keeps a silent connection open once: the protocol's own request and answer, or a probe
    /// of TCP and its acknowledgement.
    pub fn keep_alive(&self, session: &Session) -> Bounds {
        let [up, down] = session.ping;
        if up > 0 {
            let flight = |is_up, bytes| Flight { is_up, plain: bytes, carried: bytes };
            let both = [flight(true, up), flight(false, down)];
            return Bounds::of(|acks| self.flights(&both, 0, acks));
        }
        Bounds::of(|_| {
            let mut tally = Tally::default();
            if !self.is_datagram {
                tally.add_packets(true, 1, TCP, 0);
                tally.add_packets(false, 1, TCP, 0);
            }
            tally
        })
    }

    /// Data packets of one write.
    pub fn packets(&self, bytes: u64) -> u64 {
        match self.is_datagram {
            // Fragments carry the header of UDP once.
            true => (bytes + UDP).div_ceil(self.mtu.saturating_sub(IP as u64).max(1)).max(1),
            false => bytes.div_ceil(self.mtu.saturating_sub(IP as u64 + TCP).max(1)).max(1),
        }
    }

    /// Bytes of these writes, with `body` bytes of them payload.
    fn flights(&self, flights: &[Flight], body: u64, acks: Acks) -> Tally {
        let plain: u64 = flights.iter().map(|flight| flight.plain).sum();
        let carried: u64 = flights.iter().map(|flight| flight.carried).sum();
        let mut tally = Tally {
            payload: body as f64,
            protocol: plain as f64 - body as f64,
            tls: carried as f64 - plain as f64,
            ..Tally::default()
        };
        for (at, flight) in flights.iter().enumerate() {
            let packets = self.packets(flight.carried);
            if self.is_datagram {
                tally.add_packets(flight.is_up, packets, 0, flight.carried + UDP);
                tally.transport += UDP as f64;
                continue;
            }
            tally.add_packets(flight.is_up, packets, TCP, flight.carried);
            let next = flights.get(at + 1);
            let is_continued = next.is_some_and(|next| next.is_up == flight.is_up);
            let is_answered = next.is_some_and(|next| next.is_up != flight.is_up);
            let pure = match acks {
                Acks::Many => packets,
                Acks::Few if is_answered || is_continued => (packets - 1) / 2,
                Acks::Few => packets.div_ceil(2),
            };
            tally.add_packets(!flight.is_up, pure, TCP, 0);
        }
        tally
    }
}

/// Header of IPv4, bytes.
const IP: f64 = 20.0;

/// Header of a TCP segment with timestamps, bytes.
const TCP: u64 = 32;

/// Header of SYN and SYN-ACK with Linux' options: MSS, SACK, timestamps, window scale.
const SYN: u64 = 40;

/// Header of UDP, bytes.
const UDP: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const TCP_WIRE: Wire = Wire { is_datagram: false, mtu: 1500, is_dense: false };

    fn plain(is_up: bool, bytes: u64) -> Flight {
        Flight { is_up, plain: bytes, carried: bytes }
    }

    /// MQTT 3.1.1, sections 3.3 and 3.4: a PUBLISH of 125 B on a topic of 9 B takes 2 + 2 + 9 + 2 +
    /// 125 = 140 B with QoS 1, a PUBACK 4 B. Each is a segment with 52 B of headers; the answer
    /// carries an acknowledgement, and the answer is acknowledged by a packet of 52 B.
    #[test]
    fn a_message_is_what_one_computes_by_the_specifications() {
        let session = Session {
            message: vec![plain(true, 140), plain(false, 4)],
            body: 125,
            ..Session::default()
        };
        let found = TCP_WIRE.message(&session);
        assert_eq!(found.low.bytes(), (140.0 + 52.0) + (4.0 + 52.0) + 52.0);
        assert_eq!(found.high.bytes(), found.low.bytes() + 52.0, "both are acknowledged apart");
        assert_eq!((found.low.payload, found.low.protocol, found.low.tls), (125.0, 19.0, 0.0));
        assert_eq!((found.low.up, found.low.down), (192.0 + 52.0, 56.0));
        assert_eq!(found.low.up + found.low.down, found.low.bytes());
        assert_eq!(found.high.up + found.high.down, found.high.bytes());
        assert_eq!((found.low.up_packets, found.low.down_packets), (2.0, 1.0));
    }

    /// At 100 messages/s the next message carries the acknowledgement of the last answer.
    #[test]
    fn dense_messages_need_no_acknowledgement_of_their_own() {
        let session = Session {
            message: vec![plain(true, 140), plain(false, 4)],
            body: 125,
            ..Session::default()
        };
        let dense = Wire { is_dense: true, ..TCP_WIRE }.message(&session);
        assert_eq!(dense.low.bytes(), (140.0 + 52.0) + (4.0 + 52.0));
        assert_eq!((dense.low.up, dense.low.down), (192.0, 56.0));
        assert_eq!(dense.high, TCP_WIRE.message(&session).high);
    }

    /// Three packets of 60, 60 and 52 B open it, three or four of 52 B close it.
    #[test]
    fn a_connection_opens_and_closes() {
        let found = TCP_WIRE.around(&Session::default());
        assert_eq!(found.low.bytes(), 60.0 + 60.0 + 52.0 + 3.0 * 52.0);
        assert_eq!(found.high.bytes(), found.low.bytes() + 52.0);
        let datagrams = Wire { is_datagram: true, mtu: 1500, is_dense: false };
        assert_eq!(datagrams.around(&Session::default()).high.bytes(), 0.0);
    }

    /// 14,480 B are ten full segments; five acknowledgements if nothing answers.
    #[test]
    fn large_bodies_take_several_segments() {
        let session =
            Session { message: vec![plain(true, 14_480)], body: 14_480, ..Session::default() };
        let found = TCP_WIRE.message(&session);
        assert_eq!(found.low.bytes(), 14_480.0 + 10.0 * 52.0 + 5.0 * 52.0);
        assert_eq!(found.high.bytes(), 14_480.0 + 20.0 * 52.0);
        let small = Wire { mtu: 576, ..TCP_WIRE };
        assert_eq!(small.packets(14_480), 28, "27.6 segments of 524 B");
    }

    /// A datagram has 28 B of headers, and fragments have 20 B more each.
    #[test]
    fn datagrams_have_no_acknowledgements() {
        let wire = Wire { is_datagram: true, mtu: 1500, is_dense: false };
        let session = Session {
            message: vec![plain(true, 100), plain(false, 10)],
            body: 60,
            ..Session::default()
        };
        let found = wire.message(&session);
        assert_eq!(found.low, found.high);
        assert_eq!(found.low.bytes(), 110.0 + 2.0 * 28.0);
        assert_eq!(found.low.up + found.low.down, found.low.bytes());
        assert_eq!(wire.packets(3_000), 3);
    }

    #[test]
    fn a_silent_connection_is_kept_by_a_ping_or_by_tcp() {
        let pinged = Session { ping: [2, 2], ..Session::default() };
        assert_eq!(TCP_WIRE.keep_alive(&pinged).low.bytes(), 2.0 * 54.0 + 52.0);
        assert_eq!(TCP_WIRE.keep_alive(&Session::default()).low.bytes(), 104.0);
    }
}
