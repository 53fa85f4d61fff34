//! The account: what was on the wire.

use serde::{Deserialize, Serialize};

use crate::account::connection::{Connection, Transport};
use crate::account::traffic::Phases;
use crate::filter::Filter;
use crate::packet::Link;
use crate::stream::tls::TLS_1_3;
use crate::warning::Warning;

/// Definition of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// Packets as they go over a wire: a super-packet that the kernel or the card cuts into
    /// segments counts as these segments, each with its headers.
    #[default]
    OnTheWire,
    /// Packets as the capture saw them, as other tools count.
    AsCaptured,
}

/// Packets and bytes on the wire during a capture, or in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Definition of a packet.
    pub counting: Counting,
    /// Packets that were counted.
    pub filter: Filter,
    /// The interface; absent for a file.
    pub interface: Option<Interface>,
    /// The link header of the packets; absent without packets.
    pub link: Option<Link>,
    /// From initiators to responders: sent by a generator that opens its connections.
    pub sent: Phases,
    /// From responders to initiators: received by such a generator.
    pub received: Phases,
    /// Each connection, by the time of its first packet.
    pub connections: Vec<Connection>,
    /// Connections that are in the totals but not in the list.
    pub connections_folded: u64,
    /// Packets that belong to no connection. They are not in the totals.
    pub other: Other,
    /// Packets captured, those of `other` included.
    pub packets_captured: u64,
    /// Packets that the kernel dropped because the ring was full.
    pub packets_dropped: u64,
    /// The largest packet captured, in bytes with its link header.
    pub largest_packet_bytes: u32,
    /// The first packet, in nanoseconds since 1970.
    pub first_at_ns: Option<u64>,
    /// The last packet, in nanoseconds since 1970.
    pub last_at_ns: Option<u64>,
    /// Processor time that capturing and accounting took, in nanoseconds; 0 for a file.
    pub own_cpu_ns: u64,
    /// True once codecs have said what of the content is payload.
    pub attributed: bool,
    /// Figures of connections that are no longer in the list.
    pub(crate) folded: [Phases; 2],
    /// Warnings raised by the capture itself.
    #[serde(rename = "capture_doubts")]
    pub(crate) capture_warnings: Vec<Warning>,
}

/// Interface of the capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its link header.
    pub link: Link,
    /// The largest IP packet it carries, in bytes.
    pub mtu_bytes: u32,
    /// Its offloads.
    pub offloads: Offloads,
}

/// Offloads of an interface. If one is on, a capture sees packets that are not on the wire; absent
/// if the kernel did not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offloads {
    /// TCP segmentation offload.
    pub tso: Option<bool>,
    /// Generic segmentation offload.
    pub gso: Option<bool>,
    /// Generic receive offload.
    pub gro: Option<bool>,
}

/// Packets without a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Other {
    /// All of them.
    pub packets: u64,
    /// Their bytes with link headers.
    pub bytes: u64,
    /// Those that are IP.
    pub ip_packets: u64,
    /// Fragments of IP packets.
    pub fragments: u64,
}

impl Account {
    pub(crate) fn empty(counting: Counting) -> Account {
        Account {
            counting,
            filter: Filter::default(),
            interface: None,
            link: None,
            sent: Phases::default(),
            received: Phases::default(),
            connections: Vec::new(),
            connections_folded: 0,
            other: Other::default(),
            packets_captured: 0,
            packets_dropped: 0,
            largest_packet_bytes: 0,
            first_at_ns: None,
            last_at_ns: None,
            own_cpu_ns: 0,
            attributed: false,
            folded: [Phases::default(); 2],
            capture_warnings: Vec::new(),
        }
    }

    /// Everything that makes these figures questionable.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.capture_warnings.clone();
        if self.packets_dropped > 0 {
            warnings.push(Warning::Dropped { packets: self.packets_dropped });
        }
        if self.other.fragments > 0 {
            warnings.push(Warning::Fragments { packets: self.other.fragments });
        }
        let bytes: u64 = self.connections.iter().map(|found| found.unseen_bytes).sum();
        if bytes > 0 {
            warnings.push(Warning::Unseen { bytes });
        }
        let mut add = |is_meant: &dyn Fn(&Connection) -> bool, warning: fn(u64) -> Warning| {
            let connections = self.connections.iter().filter(|found| is_meant(found)).count();
            if connections > 0 {
                warnings.push(warning(connections as u64));
            }
        };
        add(&|found| found.transport == Transport::Tcp && !found.opening_seen, |connections| {
            Warning::OpeningUnseen { connections }
        });
        add(&|found| found.tls.is_some_and(|tls| tls.lost), |connections| Warning::TlsLost {
            connections,
        });
        if !self.attributed {
            add(
                &|found| found.tls.is_some_and(|tls| !tls.overhead_exact && !tls.lost),
                |connections| Warning::TlsOverheadUnknown { connections },
            );
            add(
                &|found| found.tls.is_some_and(|tls| tls.version == Some(TLS_1_3) && !tls.lost),
                |connections| Warning::TlsTicketsHidden { connections },
            );
        }
        warnings.extend(self.super_packets());
        warnings
    }

    /// Packets larger than the interface can carry do not exist on the wire in this form.
    fn super_packets(&self) -> Option<Warning> {
        let interface = self.interface.as_ref();
        let mtu_bytes = interface.map_or(ETHERNET_MTU_BYTES, |found| found.mtu_bytes);
        let header = self.link.unwrap_or_default().header_bytes() as u32 + VLAN_BYTES;
        let is_larger = self.largest_packet_bytes > mtu_bytes + header;
        // With a known segment size, the packets were counted as segments.
        let is_cut = self.counting == Counting::OnTheWire && interface.is_some();
        let bytes = self.largest_packet_bytes;
        (is_larger && !is_cut).then_some(Warning::SuperPackets { bytes })
    }

    pub(crate) fn note(&mut self, at_ns: u64, length: u32, link: Link) {
        self.packets_captured += 1;
        self.largest_packet_bytes = self.largest_packet_bytes.max(length);
        self.first_at_ns = Some(self.first_at_ns.map_or(at_ns, |before| before.min(at_ns)));
        self.last_at_ns = Some(self.last_at_ns.map_or(at_ns, |before| before.max(at_ns)));
        self.link = Some(link);
    }

    /// Adds a connection to the totals, and to the list unless that is full.
    pub(crate) fn keep(&mut self, connection: Connection, kept_max: usize) {
        self.sent += connection.sent;
        self.received += connection.received;
        if self.connections.len() < kept_max {
            self.connections.push(connection);
        } else {
            self.connections_folded += 1;
            self.folded[0] += connection.sent;
            self.folded[1] += connection.received;
        }
    }
}

const ETHERNET_MTU_BYTES: u32 = 1500;
const VLAN_BYTES: u32 = 4;
