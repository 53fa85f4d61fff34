//! The socket of a connection: TCP, or UDP below QUIC. Both block, for one turn at a time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use weigh_model::connection::Outbox;

use crate::reach::{Reach, SHORTEST, Trouble};

/// A socket.
pub(crate) enum Wire {
    Tcp(TcpStream),
    /// Each end keeps its own time here, and is woken by it.
    #[cfg_attr(not(feature = "quic"), expect(dead_code, reason = "only QUIC is over UDP"))]
    Udp(UdpSocket),
}

impl Wire {
    pub(crate) fn is_udp(&self) -> bool {
        matches!(self, Wire::Udp(_))
    }

    /// Sends all that a connection said: bytes, or datagrams.
    pub(crate) fn send(
        &mut self,
        out: &mut Outbox,
        reach: &Reach,
        until: Instant,
    ) -> Result<(), Trouble> {
        match self {
            Wire::Tcp(socket) => write_all(socket, out.bytes(), reach, until),
            Wire::Udp(socket) => {
                let mut datagrams = out.frames().after(0);
                let sent = datagrams.try_for_each(|own| socket.send(own).map(drop));
                sent.map_err(|error| of_udp(&error, reach))
            }
        }
    }

    /// Reads once; `None` if nothing came in time. At most `left` is waited over UDP; over TCP
    /// until something comes.
    pub(crate) fn read(
        &mut self,
        chunk: &mut [u8],
        reach: &Reach,
        (until, left): (Instant, Option<Duration>),
    ) -> Result<Option<usize>, Trouble> {
        match self {
            Wire::Tcp(socket) => loop {
                let _ = socket.set_read_timeout(Some(reach.turn(until)?));
                match socket.read(chunk) {
                    Err(error) if is_unfinished(&error) => {}
                    read => return read.map(Some).map_err(|error| broken(&error)),
                }
            },
            Wire::Udp(socket) => {
                let turn = reach.turn(until)?;
                let turn = left.map_or(turn, |left| turn.min(left)).max(SHORTEST);
                let _ = socket.set_read_timeout(Some(turn));
                match socket.recv(chunk) {
                    Ok(0) => Ok(None),
                    Ok(bytes) => Ok(Some(bytes)),
                    Err(error) if is_unfinished(&error) => Ok(None),
                    Err(error) => Err(of_udp(&error, reach)),
                }
            }
        }
    }

    /// Ends the connection of TCP as the end of a process does.
    pub(crate) fn shut(&self) {
        if let Wire::Tcp(socket) = self {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn write_all(
    socket: &mut TcpStream,
    bytes: &[u8],
    reach: &Reach,
    until: Instant,
) -> Result<(), Trouble> {
    // What answers something that came at the last moment may still leave.
    let until = until.max(Instant::now() + SHORTEST);
    let mut rest = bytes;
    while !rest.is_empty() {
        let _ = socket.set_write_timeout(Some(reach.turn(until)?));
        match socket.write(rest) {
            Ok(0) => return Err(closed()),
            Ok(count) => rest = &rest[count..],
            Err(error) if is_unfinished(&error) => {}
            Err(error) => return Err(broken(&error)),
        }
    }
    Ok(())
}

/// The trouble of a connection that is over.
pub(crate) fn closed() -> Trouble {
    Trouble::Closed("the server closed the connection".to_owned())
}

/// Returns true if there was nothing to do yet: the socket was not ready, or a signal came that did
/// not end the probe (one that does is seen before the next turn).
fn is_unfinished(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn broken(error: &io::Error) -> Trouble {
    match error.kind() {
        ErrorKind::ConnectionReset => Trouble::Closed("the server reset the connection".to_owned()),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => closed(),
        _ => Trouble::Closed(format!("the connection failed: {error}")),
    }
}

/// The trouble of a socket of UDP.
pub(crate) fn of_udp(error: &io::Error, reach: &Reach) -> Trouble {
    let address = reach.address;
    match error.kind() {
        ErrorKind::ConnectionRefused => Trouble::Unreachable(format!(
            "no process listens on UDP port {address}: it was refused; check host and port"
        )),
        _ => Trouble::Unreachable(format!("{address}: {error}; check host and port")),
    }
}
