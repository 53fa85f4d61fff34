//! A port for frames: a TAP device, or a packet socket on any other interface.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd};

use weigh_model::units::Nanos;

use crate::link::clock;

mod ring;
mod tap;

use ring::Ring;
use tap::Tap;

/// One end of the forwarder.
#[derive(Debug)]
pub struct Port(Kind);

#[derive(Debug)]
enum Kind {
    Tap { tap: Tap, interface: String, devices: File },
    Ring(Ring),
}

impl Port {
    /// Makes a TAP device of this name in the network namespace of the calling thread. What the
    /// host sends there comes in here. It is removed when the port is dropped.
    ///
    /// # Errors
    /// If `/dev/net/tun` may not be opened, or the device not be made.
    pub fn tap(interface: &str) -> io::Result<Port> {
        let tap = Tap::make(interface)?;
        // The file belongs to the namespace in which it was opened, whatever thread reads it later.
        let devices = File::open("/proc/thread-self/net/dev")?;
        Ok(Port(Kind::Tap { tap, interface: interface.to_owned(), devices }))
    }

    /// Whether TAP devices are possible: the device node can be opened.
    ///
    /// # Errors
    /// If the device node cannot be opened.
    pub fn tap_is_open() -> io::Result<()> {
        tap::open().map(drop)
    }

    /// Listens on an interface of the calling thread's network namespace and sends there. Its
    /// other end must have all offloads off: half-made packets would be passed on as they are.
    ///
    /// # Errors
    /// If packet sockets are not permitted there.
    pub fn ring(interface: &str) -> io::Result<Port> {
        Ring::open(interface).map(|ring| Port(Kind::Ring(ring)))
    }

    /// Kind of the port, for labels.
    pub fn kind(&self) -> &'static str {
        match self.0 {
            Kind::Tap { .. } => "tap",
            Kind::Ring(_) => "packet ring",
        }
    }

    /// Reads one frame, if there is one: its length and arrival time. A TAP device does not report
    /// that time, so it is now; a ring does.
    pub(crate) fn receive(&mut self, frame: &mut [u8]) -> io::Result<Option<(usize, Nanos)>> {
        match &mut self.0 {
            Kind::Tap { tap, .. } => Ok(tap.receive(frame)?.map(|length| (length, clock::now()))),
            Kind::Ring(ring) => Ok(ring.receive(frame)),
        }
    }

    /// Sends one frame; false if the interface did not accept it.
    pub(crate) fn send(&self, frame: &[u8]) -> bool {
        match &self.0 {
            Kind::Tap { tap, .. } => tap.send(frame),
            Kind::Ring(ring) => ring.send(frame),
        }
    }

    /// Error of a port whose descriptor reports one.
    pub(crate) fn check(&self) -> io::Result<()> {
        match &self.0 {
            // A TAP device reports one only when it is gone (tun_chr_poll in drivers/net/tun.c).
            Kind::Tap { interface, .. } => {
                Err(io::Error::other(format!("the interface {interface} has vanished")))
            }
            Kind::Ring(ring) => match rustix::net::sockopt::socket_error(ring)? {
                Ok(()) => Ok(()),
                Err(error) => Err(io::Error::other(format!("its interface is gone: {error}"))),
            },
        }
    }

    /// Frames dropped before they could be read, since the port was opened.
    pub(crate) fn overflowed(&mut self) -> u64 {
        match &mut self.0 {
            Kind::Tap { interface, devices, .. } => {
                let mut text = String::new();
                let read = devices.rewind().and_then(|()| devices.read_to_string(&mut text));
                read.ok().and_then(|_| sent_drops(&text, interface)).unwrap_or_default()
            }
            Kind::Ring(ring) => ring.overflowed(),
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Kind::Tap { tap, .. } => tap.as_fd(),
            Kind::Ring(ring) => ring.as_fd(),
        }
    }
}

/// The column `drop` of what an interface sent, in the form of `/proc/net/dev` (proc(5)).
fn sent_drops(text: &str, interface: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'));
    line?.split_whitespace().nth(SENT_DROPS)?.parse().ok()
}

/// After eight columns of what was received: bytes, packets, errors, dropped.
const SENT_DROPS: usize = 11;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_the_right_column() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop\n\
                    weigh00: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n\
                    weigh0:    1    2    3    4 5 6 7 8   10   11   12   13 14 15 16 17\n";
        assert_eq!(sent_drops(text, "weigh0"), Some(13));
        assert_eq!(sent_drops(text, "lo"), None);
    }
}
