//! Packets under way between ports: each passes its sender's direction up, then its receiver's
//! direction down, and leaves when it is due. Knows no socket and no clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::Ipv4Addr;

use weigh_model::path::{Path, Way};
use weigh_model::units::Nanos;

use crate::link::counts::{LATE, PathCounts, PortCounts};
use crate::link::line::{Fate, Line};
use crate::link::pool::{Pool, Slot};

/// A host as the switch knows it.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its address: packets for it leave at its port.
    pub address: Ipv4Addr,
    /// Its path to all others; `None` for none.
    pub path: Option<Path>,
}

/// All packets under way.
#[derive(Debug)]
pub struct Switch {
    places: Vec<Lines>,
    pool: Pool,
    due: BinaryHeap<Reverse<Departure>>,
    sequence: u64,
    /// Counts since the start.
    pub counts: PathCounts,
}

#[derive(Debug)]
struct Lines {
    address: [u8; 4],
    up: Option<Line>,
    down: Option<Line>,
}

/// Ordered by time; packets due at the same time leave in the order of arrival.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Departure {
    at: Nanos,
    sequence: u64,
    slot: u32,
    length: u16,
    to: u16,
    /// Whether it still has to pass the receiver's direction down.
    is_half_way: bool,
}

impl Switch {
    /// Makes a switch between these places, port by port, with memory for this number of packets.
    pub fn new(places: &[Place], packets_max: u32) -> Switch {
        let line = |place: &Place, way| {
            let path = place.path.as_ref()?;
            let plan = path.over_time(way);
            let is_free = plan.iter().all(|(_, direction)| direction.is_free());
            (!is_free).then(|| Line::new(plan))
        };
        let lines = |place: &Place| Lines {
            address: place.address.octets(),
            up: line(place, Way::Up),
            down: line(place, Way::Down),
        };
        let ports = vec![PortCounts::default(); places.len()];
        Switch {
            places: places.iter().map(lines).collect(),
            pool: Pool::new(packets_max),
            due: BinaryHeap::new(),
            sequence: 0,
            counts: PathCounts { ports, ..PathCounts::default() },
        }
    }

    /// Starts or restarts all paths, with random streams from this seed: two for each port.
    pub fn begin(&mut self, at: Nanos, seed: u64) {
        for (port, place) in self.places.iter_mut().enumerate() {
            for (way, line) in [&mut place.up, &mut place.down].into_iter().enumerate() {
                if let Some(line) = line {
                    // Random losses draw from streams of these: any two different numbers do.
                    let own = (2 * port + way) as u64;
                    line.begin(at, seed.wrapping_add(own.wrapping_mul(GOLDEN)));
                }
            }
        }
    }

    /// Accepts a frame from a port. `fill` writes it into the memory it gets and returns its
    /// length.
    /// Returns the result of `fill`. Without memory the packet is read and discarded.
    ///
    /// # Errors
    /// Those of `fill`.
    pub fn arrive<E>(
        &mut self,
        port: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<Option<(usize, Nanos)>, E>,
    ) -> Result<bool, E> {
        let Some(slot) = self.pool.take() else {
            let read = fill(&mut [0; crate::link::pool::SLOT_BYTES])?;
            self.counts.overruns += u64::from(read.is_some());
            return Ok(read.is_some());
        };
        let read = fill(self.pool.bytes_mut(slot)).inspect_err(|_| self.pool.give_back(slot))?;
        let Some((length, at)) = read else {
            self.pool.give_back(slot);
            return Ok(false);
        };
        self.enter(port, slot, length, at);
        Ok(true)
    }

    fn enter(&mut self, port: usize, slot: Slot, length: usize, at: Nanos) {
        let frame = &self.pool.bytes(slot)[..length];
        let counts = &mut self.counts.ports[port];
        let Some(receiver) = receiver_of(frame) else {
            counts.foreign += 1;
            return self.pool.give_back(slot);
        };
        let to = self.places.iter().position(|place| place.address == receiver);
        let Some(to) = to.filter(|to| *to != port) else {
            counts.unroutable += 1;
            return self.pool.give_back(slot);
        };
        self.pass(
            Way::Up,
            port,
            Departure {
                at,
                sequence: 0,
                slot: slot.index(),
                length: length as u16,
                to: to as u16,
                is_half_way: true,
            },
        );
    }

    /// Sends a packet through a port's line and puts what comes out in its place.
    fn pass(&mut self, way: Way, port: usize, packet: Departure) {
        let (slot, length) = (Slot::of(packet.slot), usize::from(packet.length));
        let bytes = u32::from(packet.length) - ETHERNET_BYTES;
        let place = &mut self.places[port];
        let counts = &mut self.counts.ports[port];
        let (line, counts) = match way {
            Way::Up => (&mut place.up, &mut counts.up),
            Way::Down => (&mut place.down, &mut counts.down),
        };
        counts.offered += 1;
        counts.offered_bytes += u64::from(bytes);
        let fate = match line {
            Some(line) => line.offer(packet.at, bytes),
            None => Fate::Leaves { at: packet.at, twice: false },
        };
        match fate {
            Fate::Dropped(cause) => {
                counts.dropped(cause);
                self.pool.give_back(slot);
            }
            Fate::Leaves { at, twice } => {
                counts.doubled += u64::from(twice);
                let is_half_way = way == Way::Up;
                self.put(Departure { at, is_half_way, ..packet });
                if twice {
                    match self.pool.copy(slot, length) {
                        Some(copy) => {
                            let slot = copy.index();
                            self.put(Departure { at, is_half_way, slot, ..packet });
                        }
                        None => self.counts.overruns += 1,
                    }
                }
            }
        }
    }

    fn put(&mut self, departure: Departure) {
        self.sequence += 1;
        self.due.push(Reverse(Departure { sequence: self.sequence, ..departure }));
    }

    /// Time at which the next packet moves.
    pub fn next_due(&self) -> Option<Nanos> {
        self.due.peek().map(|Reverse(departure)| departure.at)
    }

    /// Number of packets under way.
    pub fn under_way(&self) -> usize {
        self.due.len()
    }

    /// Sends everything due by now: `write` gets the port and the frame, and returns whether it was
    /// accepted and the time then.
    pub fn leave(&mut self, now: Nanos, mut write: impl FnMut(usize, &[u8]) -> (bool, Nanos)) {
        while self.next_due().is_some_and(|at| at <= now) {
            let Some(Reverse(departure)) = self.due.pop() else { return };
            let to = usize::from(departure.to);
            if departure.is_half_way {
                // At the moment it was due, not now: lateness does not add up.
                self.pass(Way::Down, to, departure);
                continue;
            }
            let slot = Slot::of(departure.slot);
            let frame = &self.pool.bytes(slot)[..usize::from(departure.length)];
            let (is_taken, at) = write(to, frame);
            self.pool.give_back(slot);
            if is_taken {
                self.counts.ports[to].written += 1;
            } else {
                self.counts.ports[to].refused += 1;
            }
            let lateness = at.since(departure.at);
            self.counts.lateness_ns_sum += lateness.0;
            self.counts.lateness_ns_max = self.counts.lateness_ns_max.max(lateness.0);
            self.counts.late += u64::from(lateness > LATE);
        }
    }
}

/// The receiver's address of an IPv4 packet in an Ethernet frame (RFC 894, RFC 791 section 3.1).
fn receiver_of(frame: &[u8]) -> Option<[u8; 4]> {
    let is_ip = frame.get(12..14)? == [0x08, 0x00] && frame.get(14)? >> 4 == 4;
    frame.get(30..34).filter(|_| is_ip)?.try_into().ok()
}

/// The header of an Ethernet frame.
const ETHERNET_BYTES: u32 = 14;
/// The odd number nearest to 2^64 divided by the golden ratio: its multiples differ in many bits.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
