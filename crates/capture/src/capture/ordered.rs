//! Writes packets of several interfaces to one file, in the order of time. Each ring delivers its
//! packets with a delay, so they wait until no other ring can have an earlier one.

use crate::error::WireError;
use crate::files::{Statistics, Writer};
use crate::packet::{Link, Packet};

/// A file with packets in order.
#[derive(Debug)]
pub struct Ordered {
    file: Writer,
    /// Packets of one interface come in their order and need not wait.
    is_single: bool,
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    at_ns: u64,
    interface: u32,
    bytes: Vec<u8>,
    length: u32,
    link: Link,
    segment_bytes: u16,
}

impl Ordered {
    /// Makes a file of this number of interfaces.
    pub fn new(file: Writer, interfaces: usize) -> Ordered {
        Ordered { file, is_single: interfaces < 2, waiting: Vec::new() }
    }

    /// Accepts a packet of an interface.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn packet(&mut self, packet: &Packet<'_>, interface: u32) -> Result<(), WireError> {
        if self.is_single {
            return self.file.packet(packet, interface);
        }
        let Packet { at_ns, bytes, length, link, segment_bytes } = *packet;
        let bytes = bytes.to_vec();
        self.waiting.push(Waiting { at_ns, interface, bytes, length, link, segment_bytes });
        Ok(())
    }

    /// Writes all packets before which no earlier one can come; `now_ns` since 1970.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn settle(&mut self, now_ns: u64) -> Result<(), WireError> {
        if self.waiting.first().is_some_and(|first| first.at_ns + WAIT_NS <= now_ns) {
            return self.write_before(now_ns - WAIT_NS);
        }
        Ok(())
    }

    /// Writes all remaining packets and ends the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self, statistics: &[Statistics]) -> Result<(), WireError> {
        self.write_before(u64::MAX)?;
        self.file.finish(statistics)
    }

    fn write_before(&mut self, limit_ns: u64) -> Result<(), WireError> {
        self.waiting.sort_by_key(|packet| packet.at_ns);
        let count = self.waiting.partition_point(|packet| packet.at_ns < limit_ns);
        for one in self.waiting.drain(..count) {
            let Waiting { at_ns, length, link, segment_bytes, .. } = one;
            let packet = Packet { at_ns, bytes: &one.bytes, length, link, segment_bytes };
            self.file.packet(&packet, one.interface)?;
        }
        Ok(())
    }
}

/// Waiting time of a packet: many times the delay of a ring.
const WAIT_NS: u64 = 500_000_000;
