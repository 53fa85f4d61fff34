//! Filter of packets by port and address.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// Packets to count: those from or to one of the ports, and from or to one of the addresses.
/// An empty list means any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Ports of TCP and UDP, usually those of the servers.
    pub ports: Vec<u16>,
    /// Addresses of hosts.
    pub addresses: Vec<IpAddr>,
}

impl Filter {
    /// Packets from or to one port.
    pub fn port(port: u16) -> Filter {
        Filter { ports: vec![port], addresses: Vec::new() }
    }

    /// True if every packet is counted, also those that are not IP.
    pub fn is_open(&self) -> bool {
        self.ports.is_empty() && self.addresses.is_empty()
    }

    /// True if a packet between these ends is counted.
    pub fn admits(&self, one: SocketAddr, other: SocketAddr) -> bool {
        let has_port = |end: SocketAddr| self.ports.contains(&end.port());
        let has_address = |end: SocketAddr| self.addresses.contains(&end.ip());
        (self.ports.is_empty() || has_port(one) || has_port(other))
            && (self.addresses.is_empty() || has_address(one) || has_address(other))
    }
}
