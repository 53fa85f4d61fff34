//! Asks the other host for its clock, repeatedly.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::clocks::pair::Exchange;

use crate::clocks::packet::{BYTES, Packet};
use crate::clocks::wall_ns;

/// A socket to a responder.
#[derive(Debug)]
pub struct Asker {
    socket: UdpSocket,
    number: u64,
}

/// Result of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// An answer.
    Answered(Exchange),
    /// None in time: the question or its answer was lost, or no responder listens.
    Silent,
}

impl Asker {
    /// Asks the responder at `to`.
    ///
    /// # Errors
    /// If there is no route to it.
    pub fn new(to: SocketAddr) -> io::Result<Asker> {
        // The number must not be guessable by a host that has not seen a question.
        let mut number = [0; 8];
        rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty())?;
        let any: SocketAddr = if to.is_ipv4() {
            (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(to)?;
        Ok(Asker { socket, number: u64::from_ne_bytes(number) })
    }

    /// Asks once and waits at most `patience`.
    ///
    /// # Errors
    /// If the socket fails, except because no responder listens.
    pub fn ask(&mut self, patience: Duration) -> io::Result<Asked> {
        self.number = self.number.wrapping_add(1);
        let until = Instant::now() + patience;
        let question = Packet { number: self.number, sent_ns: wall_ns(), answer: None };
        match self.socket.send(&question.encode()) {
            // The kernel's report that an earlier question found no responder.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            sent => drop(sent?),
        }
        let mut bytes = [0; BYTES + 1];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Asked::Silent);
            }
            self.socket.set_read_timeout(Some(left))?;
            let length = match self.socket.recv(&mut bytes) {
                Ok(length) => length,
                Err(error) if is_silence(&error) => continue,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    return Ok(Asked::Silent);
                }
                Err(error) => return Err(error),
            };
            let received = wall_ns();
            let Some(packet) = Packet::decode(&bytes[..length]) else { continue };
            // The late answer to an earlier question.
            let is_ours = (packet.number, packet.sent_ns) == (question.number, question.sent_ns);
            if let (true, Some((reached, answered))) = (is_ours, packet.answer) {
                let sent = question.sent_ns;
                return Ok(Asked::Answered(Exchange { sent, reached, answered, received }));
            }
        }
    }
}

fn is_silence(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}
