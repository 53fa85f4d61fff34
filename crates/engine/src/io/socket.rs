//! Sockets as the engine wants them: non-blocking, closed on exec, without Nagle's delay.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

use super::IoFault;

/// Starts to connect; `Err` inside `Ok` is a failure that the kernel reported at once.
pub(super) fn dial(
    to: SocketAddr,
    from: Option<IpAddr>,
) -> Result<(OwnedFd, Result<(), IoFault>), IoFault> {
    let socket = make(to).map_err(fault)?;
    sockopt::set_tcp_nodelay(&socket, true).map_err(fault)?;
    if let Some(address) = from {
        choose_port_at_connect(&socket).map_err(fault)?;
        rustix::net::bind(&socket, &SocketAddr::new(address, 0)).map_err(|errno| match errno {
            Errno::ADDRINUSE => IoFault::Ports,
            errno => IoFault::Other(errno.raw_os_error()),
        })?;
    }
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok((socket, Ok(()))),
        Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE | Errno::AGAIN) => Err(IoFault::Ports),
        Err(errno) => Ok((socket, Err(fault(errno)))),
    }
}

/// A listening socket. With `shared`, others of the same user that ask for it too may listen on
/// the same port, and the kernel spreads the connections (SO_REUSEPORT, socket(7)).
pub(super) fn listener(
    on: SocketAddr,
    backlog: u32,
    shared: bool,
) -> Result<(OwnedFd, SocketAddr), IoFault> {
    let listen_fault = |errno| match errno {
        Errno::ADDRINUSE => IoFault::AddressInUse,
        Errno::ADDRNOTAVAIL => IoFault::Other(errno.raw_os_error()),
        errno => fault(errno),
    };
    let socket = make(on).map_err(fault)?;
    sockopt::set_socket_reuseaddr(&socket, true).map_err(fault)?;
    if shared {
        sockopt::set_socket_reuseport(&socket, true).map_err(fault)?;
    }
    rustix::net::bind(&socket, &on).map_err(listen_fault)?;
    rustix::net::listen(&socket, i32::try_from(backlog).unwrap_or(i32::MAX))
        .map_err(listen_fault)?;
    let address = rustix::net::getsockname(&socket).map_err(fault)?;
    Ok((socket, SocketAddr::try_from(address).map_err(fault)?))
}

/// The next waiting connection of a listener.
pub(super) fn accept(listener: &OwnedFd) -> Result<OwnedFd, Errno> {
    let socket = rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
    // A peer that has reset already makes this fail; reading will tell.
    let _ = sockopt::set_tcp_nodelay(&socket, true);
    Ok(socket)
}

/// Makes the close of this socket a reset: nothing lingers, no port stays in TIME_WAIT
/// (SO_LINGER with time 0, socket(7)).
pub(super) fn reset_on_close(socket: &OwnedFd) {
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

/// Converts an errno of a connection.
pub(super) fn fault(errno: Errno) -> IoFault {
    match errno {
        Errno::CONNREFUSED => IoFault::Refused,
        Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => IoFault::Reset,
        Errno::HOSTUNREACH
        | Errno::NETUNREACH
        | Errno::TIMEDOUT
        | Errno::NETDOWN
        | Errno::HOSTDOWN => IoFault::Unreachable,
        Errno::MFILE | Errno::NFILE => IoFault::Descriptors,
        Errno::ADDRNOTAVAIL => IoFault::Ports,
        Errno::ADDRINUSE => IoFault::AddressInUse,
        errno => IoFault::Other(errno.raw_os_error()),
    }
}

fn make(towards: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if towards.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))
}

/// Leaves the choice of the local port to connect, which may use a port again towards another
/// peer (IP_BIND_ADDRESS_NO_PORT, ip(7)); bind would reserve one for this socket alone.
fn choose_port_at_connect(socket: &OwnedFd) -> Result<(), Errno> {
    let on: libc::c_int = 1;
    let length = size_of_val(&on) as libc::socklen_t;
    #[expect(unsafe_code, reason = "rustix has no wrapper for IP_BIND_ADDRESS_NO_PORT")]
    // SAFETY: setsockopt(2) reads `length` bytes from `on` and keeps no pointer to it; the
    // descriptor is open for as long as `socket` is borrowed.
    let answer = unsafe {
        let (level, name) = (libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT);
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const on).cast(), length)
    };
    match answer {
        0 => Ok(()),
        // Neither before Linux 4.2 nor in qemu's user mode: bind reserves a port then.
        _ => match Errno::from_io_error(&std::io::Error::last_os_error()) {
            Some(Errno::NOPROTOOPT) => Ok(()),
            errno => Err(errno.unwrap_or(Errno::INVAL)),
        },
    }
}
