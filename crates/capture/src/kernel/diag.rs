//! Queries the kernel's socket statistics (sock_diag(7)).

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags,
};
use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::sockopt::{
    set_socket_recv_buffer_size, set_socket_recv_buffer_size_force, set_socket_timeout,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, sendto, socket_with,
};

use crate::clock::now_ns;
use crate::error::WireError;
use crate::kernel::figures::{Role, SocketView, Source, TcpFigures};

/// The kernel's list of TCP sockets of a network namespace: that of the thread that opens it.
#[derive(Debug)]
pub struct SocketTable {
    netlink: OwnedFd,
    buffer: Vec<u8>,
}

impl SocketTable {
    /// Opens the list.
    ///
    /// # Errors
    /// If the kernel refuses the socket.
    pub fn open() -> Result<SocketTable, WireError> {
        let netlink = open(0)?;
        set_socket_timeout(&netlink, rustix::net::sockopt::Timeout::Recv, Some(ANSWER_WITHIN))
            .map_err(|error| WireError::of("setsockopt(SO_RCVTIMEO)", error))?;
        Ok(SocketTable { netlink, buffer: vec![0; MESSAGES_BYTES] })
    }

    /// All open sockets that were accepted on one of `server_ports`, or are connected to one.
    ///
    /// # Errors
    /// If the kernel's answer cannot be read.
    pub fn read(&mut self, server_ports: &[u16]) -> Result<Vec<SocketView>, WireError> {
        let mut found = Vec::new();
        for (family, socket_id) in [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())] {
            self.ask(family, socket_id)?;
            self.answer(&mut |response| {
                found.extend(view(response, server_ports, Source::Listed));
            })?;
        }
        Ok(found)
    }

    fn ask(&self, family: u8, socket_id: SocketId) -> Result<(), WireError> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let request = InetRequest {
            family,
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO,
            // Listeners have no counts, and sockets in TIME_WAIT have no figures.
            states: StateFlags::all() - StateFlags::LISTEN - StateFlags::TIME_WAIT,
            socket_id,
        };
        let request = SockDiagMessage::InetRequest(request);
        let mut message = NetlinkMessage::new(header, request.into());
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.netlink, &bytes, SendFlags::empty(), &kernel)
            .map_err(|error| WireError::of("asking sock_diag", error))?;
        Ok(())
    }

    fn answer(&mut self, take: &mut dyn FnMut(&InetResponse)) -> Result<(), WireError> {
        loop {
            let (count, _) = recv(&self.netlink, &mut self.buffer[..], RecvFlags::empty())
                .map_err(|error| WireError::of("reading from sock_diag", error))?;
            if messages(&self.buffer[..count], take)? {
                return Ok(());
            }
        }
    }
}

/// Notifications of freed sockets.
#[derive(Debug)]
pub(crate) struct Freed {
    pub netlink: OwnedFd,
    buffer: Vec<u8>,
}

/// Completeness of the notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    /// All were received.
    All,
    /// The kernel had more notifications than its buffer holds: some are lost.
    Lost,
}

impl Freed {
    /// Subscribes to the notices of the calling thread's network namespace. This takes no privilege
    /// on the kernels that were tried.
    ///
    /// # Errors
    /// If the kernel refuses the socket.
    pub fn open() -> Result<Freed, WireError> {
        let netlink = open(GROUP_TCP_FREED)?;
        // Beyond the system's limit only root of the first user namespace may go; else as far as
        // it.
        if set_socket_recv_buffer_size_force(&netlink, NOTICES_BYTES).is_err() {
            set_socket_recv_buffer_size(&netlink, NOTICES_BYTES)
                .map_err(|error| WireError::of("setsockopt(SO_RCVBUF)", error))?;
        }
        Ok(Freed { netlink, buffer: vec![0; MESSAGES_BYTES] })
    }

    /// Reads all notices that are there.
    ///
    /// # Errors
    /// If the notifications cannot be read.
    pub fn drain(
        &mut self,
        server_ports: &[u16],
        found: &mut Vec<SocketView>,
    ) -> Result<Drained, WireError> {
        let mut drained = Drained::All;
        loop {
            match recv(&self.netlink, &mut self.buffer[..], RecvFlags::DONTWAIT) {
                Ok((count, _)) => {
                    messages(&self.buffer[..count], &mut |response| {
                        found.extend(view(response, server_ports, Source::Freed));
                    })?;
                }
                Err(Errno::AGAIN) => return Ok(drained),
                Err(Errno::NOBUFS) => drained = Drained::Lost,
                Err(Errno::INTR) => {}
                Err(error) => return Err(WireError::of("reading from sock_diag", error)),
            }
        }
    }
}

fn open(groups: u32) -> Result<OwnedFd, WireError> {
    let flags = SocketFlags::CLOEXEC;
    let netlink = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(SOCK_DIAG))
        .map_err(|error| WireError::of("socket(NETLINK_SOCK_DIAG)", error))?;
    bind(&netlink, &SocketAddrNetlink::new(0, groups))
        .map_err(|error| WireError::of("bind(NETLINK_SOCK_DIAG)", error))?;
    Ok(netlink)
}

/// Passes on the answers in a buffer; true if it was the last buffer.
fn messages(bytes: &[u8], take: &mut dyn FnMut(&InetResponse)) -> Result<bool, WireError> {
    let mut at = 0;
    while at < bytes.len() {
        let message = <NetlinkMessage<SockDiagMessage>>::deserialize(&bytes[at..])
            .map_err(|error| WireError::Unexpected(error.to_string()))?;
        match message.payload {
            NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                take(&response);
            }
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) => {
                return Err(WireError::of("sock_diag", error.to_io()));
            }
            _ => {}
        }
        // Messages are padded to 4 bytes (netlink(7)).
        at += (message.header.length.max(16) as usize).next_multiple_of(4);
    }
    Ok(false)
}

fn view(response: &InetResponse, server_ports: &[u16], source: Source) -> Option<SocketView> {
    let id = &response.header.socket_id;
    let role = match () {
        () if server_ports.contains(&id.source_port) => Role::Accepted,
        () if server_ports.contains(&id.destination_port) => Role::Opened,
        () => return None,
    };
    let info = response.nlas.iter().find_map(|nla| match nla {
        Nla::TcpInfo(info) => Some(info),
        _ => None,
    })?;
    let figures = TcpFigures::from(info);
    if figures.is_idle() {
        return None;
    }
    let plain = |address: std::net::IpAddr, port| SocketAddr::new(address.to_canonical(), port);
    Some(SocketView {
        local: plain(id.source_address, id.source_port),
        remote: plain(id.destination_address, id.destination_port),
        role,
        source,
        at_ns: now_ns(),
        figures,
    })
}

/// SKNLGRP_INET_TCP_DESTROY is 1 (linux/sock_diag.h), which is bit 0 of the groups.
const GROUP_TCP_FREED: u32 = 1;
/// 4,000 sockets freed at once were all reported with it, and with the default size 3,834.
const NOTICES_BYTES: usize = 16 << 20;
/// The kernel sends at most 32 KiB at once.
const MESSAGES_BYTES: usize = 64 << 10;
const ANSWER_WITHIN: std::time::Duration = std::time::Duration::from_secs(2);
