//! Ports of this machine: finds a free one, and the process that listens on one.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns a port on this address that is unused at the moment. Another process may take it before
/// it is used, so the caller must be ready to ask for another.
///
/// # Errors
/// If the kernel has none left.
pub fn free_port(address: Ipv4Addr) -> io::Result<u16> {
    Ok(TcpListener::bind((address, 0))?.local_addr()?.port())
}

/// Returns a port on this address that takes no datagrams at the moment; see [`free_port`].
///
/// # Errors
/// If the kernel has none left.
pub fn free_datagram_port(address: Ipv4Addr) -> io::Result<u16> {
    Ok(UdpSocket::bind((address, 0))?.local_addr()?.port())
}

/// Holder of a listening port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// No process.
    Nobody,
    /// A process of the given group.
    Group,
    /// A process outside the given group.
    Other,
    /// A process that the kernel does not show to this user.
    Unseen,
}

/// Finds who listens on a port, without connecting to it: `/proc/net/tcp` gives the socket's inode,
/// `/proc/PID/fd` its holder (proc(5)).
pub fn listener(port: u16, group: u32) -> Listener {
    holder_of(group, ["tcp", "tcp6"], |table| listening_inodes(table, port))
}

/// Finds who receives datagrams on a port, in `/proc/net/udp`.
pub fn datagram_listener(port: u16, group: u32) -> Listener {
    holder_of(group, ["udp", "udp6"], |table| receiving_inodes(table, port))
}

fn holder_of(group: u32, tables: [&str; 2], inodes_of: impl Fn(&str) -> Vec<String>) -> Listener {
    let Ok(table) = sockets(group, tables[0]) else { return Listener::Unseen };
    // Without IPv6 there is no second table.
    let table_v6 = sockets(group, tables[1]).unwrap_or_default();
    let mut inodes = inodes_of(&table);
    inodes.extend(inodes_of(&table_v6));
    if inodes.is_empty() {
        return Listener::Nobody;
    }
    let seen: Vec<io::Result<bool>> =
        members(group).iter().map(|pid| holds(&process(*pid), &inodes)).collect();
    if seen.iter().any(|holds| matches!(holds, Ok(true))) {
        return Listener::Group;
    }
    let hidden = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let unseen = seen.iter().any(|holds| holds.as_ref().is_err_and(hidden));
    if unseen { Listener::Unseen } else { Listener::Other }
}

/// Returns the process of this machine that listens on a port, or else the one that receives
/// datagrams there. Of several that share it (a server
/// that forks) it is the one with the lowest number, usually the parent of the others. The first
/// process of the machine, which holds sockets for others, is returned only if it is the only one.
///
/// # Errors
/// If no process does, or if the kernel does not show the process to this user.
pub fn holder(port: u16) -> io::Result<u32> {
    let table = fs::read_to_string("/proc/net/tcp")?;
    let table_v6 = fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
    let mut inodes = listening_inodes(&table, port);
    inodes.extend(listening_inodes(&table_v6, port));
    if inodes.is_empty() {
        for table in ["/proc/net/udp", "/proc/net/udp6"] {
            let table = fs::read_to_string(table).unwrap_or_default();
            inodes.extend(receiving_inodes(&table, port));
        }
    }
    if inodes.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no process listens there"));
    }
    let number = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let mut pids: Vec<u32> = fs::read_dir("/proc")?.filter_map(number).collect();
    pids.sort_unstable();
    // A reference server has a table of descriptors for each of its threads.
    let is_holder = |pid: &u32| {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        threads.into_iter().any(|thread| holds(&thread.path(), &inodes).unwrap_or(false))
    };
    pids.sort_by_key(|pid| *pid == 1);
    pids.into_iter().find(is_holder).ok_or_else(|| {
        let text =
            "the kernel hides the process that listens there: run as the same user, or as root";
        io::Error::new(io::ErrorKind::PermissionDenied, text)
    })
}

/// Whether a connection to the port is accepted; it is closed at once.
pub fn accepts(address: Ipv4Addr, port: u16, within: Duration) -> bool {
    let address = SocketAddr::from((address, port));
    TcpStream::connect_timeout(&address, within).is_ok()
}

/// The kernel's table of sockets of the host of a process; that of this process if it is gone.
fn sockets(process: u32, protocol: &str) -> io::Result<String> {
    fs::read_to_string(format!("/proc/{process}/net/{protocol}"))
        .or_else(|_| fs::read_to_string(format!("/proc/net/{protocol}")))
}

/// State of a listening socket in `/proc/net/tcp`: `TCP_LISTEN` of the kernel's `tcp_states.h`.
const LISTEN: &str = "0A";

/// State of an unconnected socket in `/proc/net/udp`: `TCP_CLOSE`.
const UNCONNECTED: &str = "07";

fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    inodes(table, port, LISTEN)
}

fn receiving_inodes(table: &str, port: u16) -> Vec<String> {
    inodes(table, port, UNCONNECTED)
}

fn inodes(table: &str, port: u16, state: &str) -> Vec<String> {
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let local = fields.get(1)?.rsplit_once(':')?.1;
        let here = u16::from_str_radix(local, 16) == Ok(port) && *fields.get(3)? == state;
        here.then(|| fields.get(9).map(|inode| format!("socket:[{inode}]")))?
    };
    table.lines().filter_map(inode).collect()
}

fn members(group: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let member = |entry: io::Result<fs::DirEntry>| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // After the name in parentheses: state, parent, group.
        let of: u32 = text.rsplit_once(')')?.1.split_ascii_whitespace().nth(2)?.parse().ok()?;
        (of == group).then_some(pid)
    };
    entries.filter_map(member).collect()
}

fn process(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

/// Whether the process or thread with this folder in `/proc` holds one of these sockets.
fn holds(folder: &Path, inodes: &[String]) -> io::Result<bool> {
    let links =
        fs::read_dir(folder.join("fd"))?.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let mut ours =
        links.filter(|link| inodes.iter().any(|inode| link.as_os_str() == inode.as_str()));
    Ok(ours.next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_listener_is_found() {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        let group = u32::try_from(rustix::process::getpgrp().as_raw_nonzero().get()).unwrap();
        assert_eq!(listener(port, group), Listener::Group);
        assert_eq!(listener(port, u32::MAX), Listener::Other);
        assert_eq!(holder(port).unwrap(), std::process::id());
        assert!(accepts(Ipv4Addr::LOCALHOST, port, Duration::from_secs(5)));
        drop(socket);
        assert_eq!(listener(port, group), Listener::Nobody);
        assert_eq!(holder(port).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn our_own_receiver_of_datagrams_is_found() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        let group = u32::try_from(rustix::process::getpgrp().as_raw_nonzero().get()).unwrap();
        assert_eq!(datagram_listener(port, group), Listener::Group);
        assert_eq!(datagram_listener(port, u32::MAX), Listener::Other);
        drop(socket);
        assert_eq!(datagram_listener(port, group), Listener::Nobody);
        assert!(free_datagram_port(Ipv4Addr::LOCALHOST).is_ok());
    }

    #[test]
    fn lines_of_the_table_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 77 1\n\
            1: 0100007F:1F90 0100007F:0001 01 00000000:00000000 00:00000000 00000000 0 0 78 1\n";
        assert_eq!(listening_inodes(table, 0x1F90), ["socket:[77]"]);
        assert!(listening_inodes(table, 1).is_empty());
        assert!(listening_inodes("cut", 1).is_empty());
    }

    /// Another test may take the port in between: not each time.
    #[test]
    fn a_free_port_takes_no_connections() {
        let local = Ipv4Addr::LOCALHOST;
        let is_free = || !accepts(local, free_port(local).unwrap(), Duration::from_secs(5));
        assert!((0..5).any(|_| is_free()));
    }
}
