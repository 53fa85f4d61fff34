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
    let many = load.connections + load.subscribers > PORTS_OF_ONE_SOURCE;
    let protocol = weigh_protocols::find(&trial.protocol);
    let renews = protocol.is_ok_and(|protocol| protocol.renews(&trial.settings));
    let needs_more = many || renews || load.pattern == Pattern::Session;
    if !to.is_loopback() || !needs_more {
        return Vec::new();
    }
    (1..=SOURCES).map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))).collect()
}

/// Connections from one local address that find a free port quickly: the search slows down once
/// half of the default range of 28,232 ports is used.
const PORTS_OF_ONE_SOURCE: u32 = 10_000;

/// Local loopback addresses to connect from if one is not enough.
const SOURCES: u8 = 16;

/// Maximum number of local addresses, for the doctor.
pub const SOURCES_MAX: u32 = SOURCES as u32;
