//! Address of a target, and local addresses for connections to it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};

use weigh_model::{Endpoint, Pattern, Trial};

use crate::exit::{Exit, Stop};

/// Resolves the address of an endpoint.
///
/// # Errors
/// An unknown host.
pub fn resolve(endpoint: &Endpoint) -> Result<SocketAddr, Stop> {
    if let Some(address) = endpoint.address {
        return Ok(address);
    }
    let found = (endpoint.host.as_str(), endpoint.port).to_socket_addrs().map_err(|error| {
        Stop::new(
            Exit::Target,
            format!("{endpoint}: the host {} is unknown: {error}; check its name", endpoint.host),
        )
    })?;
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(|address| address.is_ipv6());
    found.first().copied().ok_or_else(|| {
        Stop::new(Exit::Target, format!("{endpoint}: the host has no address; check its name"))
    })
}

/// Local addresses to connect from: several on loopback, if one has too few ports for the trial's
/// connections or if every message takes a new one.
pub fn sources(trial: &Trial, address: SocketAddr) -> Vec<IpAddr> {
    let load = &trial.load;
    let IpAddr::V4(to) = address.ip() else { return Vec::new() };
    let connections = load.connections.saturating_add(load.subscribers);
    let many = connections > PORTS_OF_ONE_SOURCE;
    let protocol = weigh_protocols::find(&trial.protocol);
    let renews = protocol.is_ok_and(|protocol| protocol.renews(&trial.settings));
    let needs_more = many || renews || load.pattern == Pattern::Session;
    if !to.is_loopback() || !needs_more {
        return Vec::new();
    }
    let number = sources_for(connections) as u8;
    (1..=number).map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))).collect()
}

/// Number of local loopback addresses from which this number of connections is made.
pub fn sources_for(connections: u32) -> u32 {
    connections.div_ceil(PORTS_OF_ONE_SOURCE).clamp(SOURCES_MIN, SOURCES_MAX)
}

/// Connections from one local address that find a free port quickly: the search slows down once
/// half of the default range of 28,232 ports is used.
const PORTS_OF_ONE_SOURCE: u32 = 10_000;

/// Local loopback addresses to connect from if one is not enough: for sessions, whose ports rest
/// after they are closed; and at most. An address reaches half of its ports before the kernel finds
/// none: of 64,512 ports 32,000 were used on Linux 6.18.
const SOURCES_MIN: u32 = 16;
const SOURCES_MAX: u32 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_connections_have_a_hundred_addresses() {
        let all = [100, 100_000, 160_001, 1_000_000, u32::MAX].map(sources_for);
        assert_eq!(all, [16, 16, 17, 100, 200]);
    }
}
