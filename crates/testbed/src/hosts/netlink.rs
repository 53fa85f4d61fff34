//! The requests to the kernel's routing socket that hosts need: rtnetlink(7).

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily as SocketFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto,
    socket_with,
};

/// An Ethernet address.
pub(super) type Mac = [u8; 6];

/// The routing socket of the namespace in which it was opened.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// Opens the socket in the calling thread's namespace.
    pub(super) fn open() -> io::Result<Netlink> {
        let family = SocketFamily::NETLINK;
        // Protocol 0 of this family is NETLINK_ROUTE.
        let socket = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Joins this namespace to another by a wire: `here` and, over there, `there`.
    pub(super) fn add_wire(
        &mut self,
        here: &str,
        there: &str,
        other: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let mut peer = LinkMessage::default();
        peer.attributes.push(LinkAttribute::IfName(there.to_owned()));
        peer.attributes.push(LinkAttribute::NetNsFd(other.as_raw_fd()));
        let mut link = LinkMessage::default();
        link.attributes.push(LinkAttribute::IfName(here.to_owned()));
        link.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.ask(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Gives an interface its address, size of packets and, if given, length of queue, and turns
    /// it on.
    pub(super) fn turn_on(
        &mut self,
        interface: &str,
        mac: Mac,
        mtu: u16,
        queue: Option<u32>,
    ) -> io::Result<()> {
        let mut link = named(interface);
        link.attributes.push(LinkAttribute::Address(mac.to_vec()));
        link.attributes.push(LinkAttribute::Mtu(u32::from(mtu)));
        link.attributes.extend(queue.map(LinkAttribute::TxQueueLen));
        self.ask(RouteNetlinkMessage::SetLink(link), 0)?;
        self.set_up(interface)
    }

    /// Turns an interface on as it is.
    pub(super) fn set_up(&mut self, interface: &str) -> io::Result<()> {
        let mut link = named(interface);
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.ask(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Gives an interface an IP address in a network with a prefix of `bits` bits.
    pub(super) fn add_address(&mut self, index: u32, to: Ipv4Addr, bits: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = bits;
        message.header.index = index;
        message.attributes.push(AddressAttribute::Local(IpAddr::V4(to)));
        message.attributes.push(AddressAttribute::Address(IpAddr::V4(to)));
        self.ask(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sets the Ethernet address of a neighbour permanently, so that ARP is never used.
    pub(super) fn add_neighbour(&mut self, index: u32, who: Ipv4Addr, mac: Mac) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.attributes.push(NeighbourAttribute::Destination(NeighbourAddress::Inet(who)));
        message.attributes.push(NeighbourAttribute::LinkLayerAddress(mac.to_vec()));
        self.ask(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE)
    }

    /// Sets the interface behind which an address is.
    pub(super) fn add_route(&mut self, index: u32, to: Ipv4Addr) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        message.header.destination_prefix_length = 32;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Link;
        message.header.kind = RouteType::Unicast;
        message.attributes.push(RouteAttribute::Destination(RouteAddress::Inet(to)));
        message.attributes.push(RouteAttribute::Oif(index));
        self.ask(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE)
    }

    /// Waits until an interface that was turned on carries packets. The kernel learns of the
    /// cable a moment later, in a thread of its own, and discards packets until then.
    pub(super) fn wait_ready(&mut self, interface: &str) -> io::Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let answer = self.exchange(RouteNetlinkMessage::GetLink(named(interface)), 0)?;
            let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) = answer else {
                return Err(unexpected(&answer));
            };
            let is = |attribute: &LinkAttribute| match attribute {
                LinkAttribute::Qdisc(name) => name != "noop",
                _ => false,
            };
            if link.attributes.iter().any(is) {
                // The kernel's thread works under the lock that this request takes too: when it is
                // answered,
                // the work is done.
                return self.set_up(interface);
            }
            if Instant::now() > deadline {
                let error = format!("{interface} carries no packets after {READY_WITHIN:?}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, error));
            }
            std::thread::sleep(READY_PAUSE);
        }
    }

    /// Sends a request and waits for its acknowledgement.
    fn ask(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        match self.exchange(message, NLM_F_ACK | flags)? {
            NetlinkPayload::Error(error) if error.code.is_none() => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Sends a request and returns the first answer, or the error that it is.
    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<NetlinkPayload<RouteNetlinkMessage>> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        sendto(&self.socket, &bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut answer = vec![0_u8; ANSWER_BYTES];
        let (length, _) = recv(&self.socket, &mut answer[..], RecvFlags::empty())?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer[..length])
            .map_err(|error| io::Error::other(error.to_string()))?;
        match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            payload => Ok(payload),
        }
    }
}

fn unexpected(answer: &NetlinkPayload<RouteNetlinkMessage>) -> io::Error {
    io::Error::other(format!("the kernel answered {answer:?}"))
}

/// The number of an interface in the calling thread's namespace.
pub(super) fn index_of(interface: &str) -> io::Result<u32> {
    let socket = rustix::net::socket(SocketFamily::INET, SocketType::DGRAM, None)?;
    Ok(rustix::net::netdevice::name_to_index(socket, interface)?)
}

fn named(interface: &str) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.attributes.push(LinkAttribute::IfName(interface.to_owned()));
    link
}

/// The kernel's answers are at most this long (netlink(7): a page, or 8,192 bytes), a link's
/// with all its statistics too.
const ANSWER_BYTES: usize = 32_768;
/// It usually takes a millisecond; beyond a second the kernel delays such events.
const READY_WITHIN: Duration = Duration::from_secs(10);
const READY_PAUSE: Duration = Duration::from_micros(200);
