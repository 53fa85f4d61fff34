//! Sorts packets into connections.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use super::result::Counting;
use crate::account::connection::{Connection, Transport};
use crate::account::joined;
use crate::account::layers::Layers;
use crate::account::result::{Account, Interface};
use crate::account::tracked::{Share, Tracked};
use crate::dissect::{Carried, Dissection, Segment};
use crate::filter::Filter;
use crate::packet::Packet;

/// Turns packets into an account. Memory is bounded by the number of connections that are open at
/// once,
/// [`Settings::connections_kept_max`], and what may wait in each direction of a connection
/// ([`crate::stream::reassembly::HELD_BYTES_MAX`]).
#[derive(Debug)]
pub struct Accounting {
    settings: Settings,
    tracked: HashMap<Key, Tracked>,
    /// Closed connections, oldest first: packets may still arrive for them.
    closed: VecDeque<Key>,
    /// Connections whose packets are noted individually.
    noted: usize,
    account: Account,
}

/// Settings of an account.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Packets to count. The ports show which end is the server if the opening of a
    /// connection was not seen.
    pub filter: Filter,
    /// Whether super-packets count as the packets into which they are cut.
    pub counting: Counting,
    /// Number of connections in the list. Of further ones, only the last thousand that ended and
    /// those still open are listed.
    pub connections_kept_max: usize,
    /// Packets to note individually, for a sequence diagram.
    pub notes: Notes,
}

/// Packets that are noted individually; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Number of connections, counted from the first.
    pub connections: usize,
    /// Number of packets of each connection: half of them the first, half the last.
    pub packets: usize,
}

/// The two ends, the smaller first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    ends: [SocketAddr; 2],
    transport: Transport,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            filter: Filter::default(),
            counting: Counting::default(),
            connections_kept_max: CONNECTIONS_KEPT_MAX,
            notes: Notes::default(),
        }
    }
}

impl Accounting {
    /// An account without packets.
    pub fn new(settings: Settings) -> Accounting {
        let mut account = Account::empty(settings.counting);
        account.filter = settings.filter.clone();
        Accounting { settings, tracked: HashMap::new(), closed: VecDeque::new(), noted: 0, account }
    }

    /// Sets the interface on which the packets were seen.
    pub fn seen_on(&mut self, interface: Interface) {
        self.account.interface = Some(interface);
    }

    /// Counts a packet.
    pub fn packet(&mut self, packet: &Packet<'_>) {
        let found = Dissection::of(packet);
        let share = self.share(packet, &found);
        match found.carried {
            Carried::Tcp(segment) => {
                if self.settings.filter.admits(segment.source, segment.destination) {
                    self.note(packet);
                    self.segment(&segment, &share);
                }
            }
            Carried::Udp { source, destination, bytes } => {
                if self.settings.filter.admits(source, destination) {
                    self.note(packet);
                    let datagram_bytes = u64::from(packet.segment_bytes);
                    for (bytes, share) in joined::datagrams(bytes, &share, datagram_bytes) {
                        self.datagram([source, destination], bytes, &share);
                    }
                }
            }
            Carried::Fragment => {
                self.note(packet);
                self.account.other.fragments += 1;
                self.other(packet, &found);
            }
            Carried::Other => {
                if self.settings.filter.is_open() {
                    self.note(packet);
                    self.other(packet, &found);
                }
            }
        }
    }

    /// Ends the account and returns it.
    pub fn finish(mut self) -> Account {
        for (_, tracked) in std::mem::take(&mut self.tracked) {
            // Open connections have reserved places in the list.
            self.account.keep(tracked.finish(), usize::MAX);
        }
        self.account.connections.sort_by_key(|found| (found.first_at_ns, found.initiator));
        self.account
    }

    fn note(&mut self, packet: &Packet<'_>) {
        self.account.note(packet.at_ns, packet.length, packet.link);
    }

    fn share(&self, packet: &Packet<'_>, found: &Dissection<'_>) -> Share {
        let segment_bytes = u32::from(packet.segment_bytes);
        let is_cut = self.settings.counting == Counting::OnTheWire
            && segment_bytes > 0
            && found.stream_bytes > segment_bytes;
        let packets =
            if is_cut { u64::from(found.stream_bytes.div_ceil(segment_bytes)) } else { 1 };
        Share {
            at_ns: packet.at_ns,
            packets,
            packets_captured: 1,
            bytes_captured: u64::from(packet.length),
            headers: Layers {
                link: u64::from(found.link_bytes) * packets,
                ip: u64::from(found.ip_bytes) * packets,
                transport: u64::from(found.transport_bytes) * packets,
                ..Layers::default()
            },
            stream_bytes: u64::from(found.stream_bytes),
            segment_bytes: if is_cut { u64::from(segment_bytes) } else { 0 },
        }
    }

    fn segment(&mut self, segment: &Segment<'_>, share: &Share) {
        let key = Key::of([segment.source, segment.destination], Transport::Tcp);
        let is_over = self.tracked.get(&key).is_some_and(|found| found.is_over_for(segment));
        if is_over {
            self.settle(key);
        }
        let (settings, noted) = (&self.settings, &mut self.noted);
        let tracked = self.tracked.entry(key).or_insert_with(|| {
            let ends = orient(segment, &settings.filter.ports);
            let Notes { connections, packets } = settings.notes;
            let is_noted = *noted < connections;
            *noted += usize::from(is_noted);
            let mut tracked = Tracked::new(ends, Transport::Tcp, segment.syn);
            tracked.notes.notes_max = if is_noted { packets } else { 0 };
            tracked
        });
        let was_closed = tracked.is_closed();
        tracked.segment(segment, share);
        if !was_closed && tracked.is_closed() {
            self.closed.push_back(key);
            if self.closed.len() > CLOSED_MAX {
                self.settle_oldest();
            }
        }
    }

    fn datagram(&mut self, ends: [SocketAddr; 2], bytes: &[u8], share: &Share) {
        let [source, destination] = ends;
        let ports = &self.settings.filter.ports;
        let is_answer = ports.contains(&source.port()) && !ports.contains(&destination.port());
        let oriented = if is_answer { [destination, source] } else { ends };
        self.tracked
            .entry(Key::of(ends, Transport::Udp))
            .or_insert_with(|| Tracked::new(oriented, Transport::Udp, true))
            .datagram(source, bytes, share);
    }

    fn other(&mut self, packet: &Packet<'_>, found: &Dissection<'_>) {
        let other = &mut self.account.other;
        other.packets += 1;
        other.bytes += u64::from(packet.length);
        other.ip_packets += u64::from(found.ip_bytes > 0);
    }

    fn settle_oldest(&mut self) {
        while let Some(key) = self.closed.pop_front() {
            // The ports may have been reused since.
            if self.tracked.get(&key).is_some_and(Tracked::is_closed) {
                self.settle(key);
                return;
            }
        }
    }

    fn settle(&mut self, key: Key) {
        if let Some(tracked) = self.tracked.remove(&key) {
            let found: Connection = tracked.finish();
            self.account.keep(found, self.settings.connections_kept_max);
        }
    }
}

impl Key {
    fn of([one, other]: [SocketAddr; 2], transport: Transport) -> Key {
        let ends = if one <= other { [one, other] } else { [other, one] };
        Key { ends, transport }
    }
}

/// Initiator and responder: by the SYN if there is one, otherwise by the servers' ports, otherwise
/// the end with the higher port counts as the initiator.
fn orient(segment: &Segment<'_>, server_ports: &[u16]) -> [SocketAddr; 2] {
    let (one, other) = (segment.source, segment.destination);
    let one_opens = match (segment.syn, segment.acknowledgement) {
        (true, None) => true,
        (true, Some(_)) => false,
        _ => match (server_ports.contains(&one.port()), server_ports.contains(&other.port())) {
            (false, true) => true,
            (true, false) => false,
            _ => one.port() >= other.port(),
        },
    };
    if one_opens { [one, other] } else { [other, one] }
}

/// Closed connections that packets may still come for: the last acknowledgement of a FIN.
const CLOSED_MAX: usize = 1024;

/// About 20 MB.
const CONNECTIONS_KEPT_MAX: usize = 10_000;
