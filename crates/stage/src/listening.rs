//! Ports of this machine: a free one, and whose a listening one is.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A port on 127.0.0.1 that nobody uses at the moment. Somebody may take it before it is used
/// again, so whoever passes it on must be ready to ask for another.
///
/// # Errors
/// If the kernel has none.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Who listens on a port of 127.0.0.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// Nobody.
    Nobody,
    /// A process of the group asked about.
    Group,
    /// Somebody else.
    Other,
    /// Somebody, and the kernel does not show us who.
    Unseen,
}

/// Who listens on a port, without connecting to it: `/proc/net/tcp` gives the socket's inode,
/// `/proc/PID/fd` its holder (proc(5)).
pub fn listener(port: u16, group: u32) -> Listener {
    let Ok(table) = fs::read_to_string("/proc/net/tcp") else { return Listener::Unseen };
    // Without IPv6 there is no second table.
    let table_v6 = fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
    let mut inodes = listening_inodes(&table, port);
    inodes.extend(listening_inodes(&table_v6, port));
    if inodes.is_empty() {
        return Listener::Nobody;
    }
    let seen: Vec<io::Result<bool>> =
        members(group).iter().map(|pid| holds(*pid, &inodes)).collect();
    if seen.iter().any(|holds| matches!(holds, Ok(true))) {
        return Listener::Group;
    }
    let hidden = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let unseen = seen.iter().any(|holds| holds.as_ref().is_err_and(hidden));
    if unseen { Listener::Unseen } else { Listener::Other }
}

/// Whether a connection to the port is taken; it is closed at once.
pub fn accepts(port: u16, within: Duration) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, within).is_ok()
}

/// State of a listening socket in `/proc/net/tcp`: `TCP_LISTEN` of the kernel's `tcp_states.h`.
const LISTEN: &str = "0A";

fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let local = fields.get(1)?.rsplit_once(':')?.1;
        let here = u16::from_str_radix(local, 16) == Ok(port) && *fields.get(3)? == LISTEN;
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

fn holds(pid: u32, inodes: &[String]) -> io::Result<bool> {
    let links = fs::read_dir(format!("/proc/{pid}/fd"))?
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
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
        assert!(accepts(port, Duration::from_secs(5)));
        drop(socket);
        assert_eq!(listener(port, group), Listener::Nobody);
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

    #[test]
    fn a_free_port_takes_no_connections() {
        assert!(!accepts(free_port().unwrap(), Duration::from_secs(5)));
    }
}
