//! Settings that a load test usually needs, applied inside the hosts only.

use std::fs;
use std::io;

/// Settings of a host and their values. `/proc/sys/net` is that of the namespace of the thread
/// that opens it (ip-sysctl.rst, "somaxconn" in net.rst).
const SETTINGS: [(&str, &str); 4] = [
    // Ports for 64,512 connections to one server port instead of 28,232: see `PORTS`.
    ("net/ipv4/ip_local_port_range", "1024 65535"),
    // A port can be reused a second after its connection was closed, not after a minute. Linux does
    // this by default on loopback only.
    ("net/ipv4/tcp_tw_reuse", "1"),
    // Connections that wait to be accepted, and those that are half open: servers request less.
    ("net/core/somaxconn", "65535"),
    ("net/ipv4/tcp_max_syn_backlog", "65535"),
];

/// The first and the last port that a host gives to connections.
pub(crate) const PORTS: (u16, u16) = (1024, 65535);

/// Applies all settings in the calling thread's namespace. Returns those that failed, and why.
pub(super) fn tune() -> Vec<String> {
    let failed = |(name, value): &(&str, &str)| {
        let error = set(name, value).err()?;
        Some(format!("{} = {value}: {error}", name.replace('/', ".")))
    };
    SETTINGS.iter().filter_map(failed).collect()
}

/// Turns IPv6 off on an interface, before the interface is turned on: discovery of neighbours and
/// routers would be counted as traffic.
pub(super) fn without_ipv6(interface: &str) -> io::Result<()> {
    match set(&format!("net/ipv6/conf/{interface}/disable_ipv6"), "1") {
        // The kernel has no IPv6, or it is turned off everywhere.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Lets the calling thread's namespace forward packets between its interfaces.
pub(super) fn forward() -> io::Result<()> {
    set("net/ipv4/ip_forward", "1")
}

/// Writes one setting.
fn set(name: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/{name}"), value)
}
