//! Splits a packet into link, IP and transport header, and content.

use std::net::{IpAddr, SocketAddr};

use etherparse::TransportSlice;
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TcpSlice};

use crate::packet::{Link, Packet};

/// The parts of a packet. The lengths are those on the wire, also where the capture cut the bytes:
/// link, IP, transport and stream bytes add up to [`Packet::length`].
#[derive(Clone, Copy, Debug)]
pub struct Dissection<'a> {
    /// Link header, VLAN tags and the padding of short frames.
    pub link_bytes: u32,
    /// IP header with options or extension headers.
    pub ip_bytes: u32,
    /// TCP header with options, or UDP header.
    pub transport_bytes: u32,
    /// Bytes carried by the transport.
    pub stream_bytes: u32,
    /// Addresses, ports and kind of the packet.
    pub carried: Carried<'a>,
}

/// Content of an IP packet.
#[derive(Clone, Copy, Debug)]
pub enum Carried<'a> {
    /// A segment of TCP.
    Tcp(Segment<'a>),
    /// A datagram of UDP.
    Udp {
        /// Source address and port.
        source: SocketAddr,
        /// Destination address and port.
        destination: SocketAddr,
        /// The captured part of what it carries.
        bytes: &'a [u8],
    },
    /// A fragment of an IP packet: only the first one has ports.
    Fragment,
    /// Anything else: ARP, ICMP, other protocols, damaged headers.
    Other,
}

/// A segment of TCP (RFC 9293, section 3.1).
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port.
    pub destination: SocketAddr,
    /// Sequence number of its first byte, or of its SYN.
    pub sequence: u32,
    /// Acknowledgement number, if it has one.
    pub acknowledgement: Option<u32>,
    /// True for SYN.
    pub syn: bool,
    /// True for FIN.
    pub fin: bool,
    /// True for RST.
    pub rst: bool,
    /// True if the header has a timestamp option (RFC 7323).
    pub timestamps: bool,
    /// The captured part of what it carries; may be shorter than what it carried.
    pub bytes: &'a [u8],
}

impl<'a> Dissection<'a> {
    /// Splits `packet` into its parts. Never fails: what cannot be understood is
    /// [`Carried::Other`],
    /// with all its bytes in the deepest layer that was understood.
    pub fn of(packet: &Packet<'a>) -> Dissection<'a> {
        Self::try_of(packet).unwrap_or(Dissection {
            link_bytes: packet.length,
            ip_bytes: 0,
            transport_bytes: 0,
            stream_bytes: 0,
            carried: Carried::Other,
        })
    }

    fn try_of(packet: &Packet<'a>) -> Option<Dissection<'a>> {
        let sliced = slice(packet)?;
        let network = Network::of(sliced.net.as_ref()?, packet)?;
        let after_link = packet.length.checked_sub(network.at)?;
        let total = network.total_bytes.unwrap_or(after_link).min(after_link);
        let ip_bytes = network.header_bytes.min(total);
        let mut found = Dissection {
            link_bytes: packet.length - total,
            ip_bytes: total,
            transport_bytes: 0,
            stream_bytes: 0,
            carried: if network.is_fragment { Carried::Fragment } else { Carried::Other },
        };
        let inside = total - ip_bytes;
        let (header_bytes, carried) = match sliced.transport {
            Some(TransportSlice::Tcp(tcp)) => {
                let header_bytes = tcp.header_slice().len() as u32;
                let room = inside.saturating_sub(header_bytes) as usize;
                (header_bytes, Carried::Tcp(segment(&network, &tcp, room)))
            }
            Some(TransportSlice::Udp(udp)) => {
                let source = SocketAddr::new(network.source, udp.source_port());
                let destination = SocketAddr::new(network.destination, udp.destination_port());
                // Behind it may be the padding of a short frame.
                let room = inside.saturating_sub(8) as usize;
                let bytes = udp.payload();
                let bytes = &bytes[..bytes.len().min(room)];
                (8, Carried::Udp { source, destination, bytes })
            }
            _ => return Some(found),
        };
        if header_bytes > inside {
            return Some(found);
        }
        found.ip_bytes = ip_bytes;
        found.transport_bytes = header_bytes;
        found.stream_bytes = inside - header_bytes;
        found.carried = carried;
        Some(found)
    }
}

fn slice<'a>(packet: &Packet<'a>) -> Option<LaxSlicedPacket<'a>> {
    let bytes = packet.bytes;
    let word =
        |at: usize| Some(EtherType(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])));
    match packet.link {
        Link::Ethernet | Link::Loopback => LaxSlicedPacket::from_ethernet(bytes).ok(),
        Link::Raw => LaxSlicedPacket::from_ip(bytes).ok(),
        Link::Null => LaxSlicedPacket::from_ip(bytes.get(4..)?).ok(),
        Link::Cooked => Some(LaxSlicedPacket::from_ether_type(word(14)?, bytes.get(16..)?)),
        Link::CookedTwo => Some(LaxSlicedPacket::from_ether_type(word(0)?, bytes.get(20..)?)),
    }
}

/// Fields of the IP header.
struct Network {
    /// Offset in the packet.
    at: u32,
    header_bytes: u32,
    /// Header and payload; absent where the length field is 0, as in super-packets above 64 KiB.
    total_bytes: Option<u32>,
    source: IpAddr,
    destination: IpAddr,
    is_fragment: bool,
}

impl Network {
    fn of(net: &LaxNetSlice<'_>, packet: &Packet<'_>) -> Option<Network> {
        let start = packet.bytes.as_ptr() as usize;
        match net {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                let options = ip.extensions().auth.map_or(0, |header| header.slice().len());
                Some(Network {
                    at: (header.slice().as_ptr() as usize - start) as u32,
                    header_bytes: (header.slice().len() + options) as u32,
                    total_bytes: some_length(header.total_len(), 0),
                    source: header.source_addr().into(),
                    destination: header.destination_addr().into(),
                    is_fragment: ip.is_payload_fragmented(),
                })
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                Some(Network {
                    at: (header.slice().as_ptr() as usize - start) as u32,
                    header_bytes: (header.slice().len() + ip.extensions().slice().len()) as u32,
                    total_bytes: some_length(header.payload_length(), 40),
                    source: header.source_addr().into(),
                    destination: header.destination_addr().into(),
                    is_fragment: ip.is_payload_fragmented(),
                })
            }
            LaxNetSlice::Arp(_) => None,
        }
    }
}

fn some_length(length: u16, more: u32) -> Option<u32> {
    (length > 0).then(|| u32::from(length) + more)
}

fn segment<'a>(network: &Network, tcp: &TcpSlice<'a>, room: usize) -> Segment<'a> {
    let captured = tcp.payload();
    Segment {
        source: SocketAddr::new(network.source, tcp.source_port()),
        destination: SocketAddr::new(network.destination, tcp.destination_port()),
        sequence: tcp.sequence_number(),
        acknowledgement: tcp.ack().then(|| tcp.acknowledgment_number()),
        syn: tcp.syn(),
        fin: tcp.fin(),
        rst: tcp.rst(),
        timestamps: has_timestamps(tcp),
        bytes: &captured[..captured.len().min(room)],
    }
}

fn has_timestamps(tcp: &TcpSlice<'_>) -> bool {
    // A timestamp takes 12 bytes of options with its padding; shorter options cannot hold one.
    tcp.header_slice().len() >= 32
        && tcp.options_iterator().flatten().any(|o| matches!(o, TcpOptionElement::Timestamp(..)))
}
