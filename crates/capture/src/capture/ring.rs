//! Reads packets out of the kernel's ring (TPACKET_V3, Documentation/networking/packet_mmap.rst).

use crate::capture::bpf::program;
use crate::capture::interface::{self, Found};
use crate::capture::socket::{Counters, PacketSocket, SharedRing};
use crate::error::WireError;
use crate::filter::Filter;
use crate::packet::{Link, Packet};

/// A packet socket with a ring, bound to one interface.
#[derive(Debug)]
pub struct Ring {
    // The mapping goes before the socket.
    memory: SharedRing,
    socket: PacketSocket,
    link: Link,
    next: usize,
    /// The frame as it was on the wire, where a VLAN tag has to be put back.
    scratch: Vec<u8>,
    counters: Counters,
    /// Number of packets read.
    pub packets: u64,
}

impl Ring {
    /// Opens a ring of about `ring_bytes` on an interface, in the network namespace of the calling
    /// thread.
    ///
    /// # Errors
    /// If the interface is unknown, or the kernel refuses the ring.
    pub fn open(
        name: &str,
        filter: &Filter,
        ring_bytes: usize,
        snap_bytes: u32,
    ) -> Result<(Ring, Found), WireError> {
        let socket = PacketSocket::open()?;
        let found = interface::find(&socket, name)?;
        let link = found.interface.link;
        socket.set(libc::PACKET_VERSION, TPACKET_V3, "setsockopt(PACKET_VERSION)")?;
        // With it every packet says into which segments it will be cut.
        socket.set(libc::PACKET_VNET_HDR, 1, "setsockopt(PACKET_VNET_HDR)")?;
        if link == Link::Loopback {
            // Every packet passes the loopback interface twice, going out and coming in.
            let call = "setsockopt(PACKET_IGNORE_OUTGOING)";
            socket.set(PACKET_IGNORE_OUTGOING, 1, call)?;
        }
        if let Some(program) = program(filter, link.header_bytes() as u32, snap_bytes)? {
            socket.attach(&program)?;
        }
        let blocks = (ring_bytes / BLOCK_BYTES).max(BLOCKS_MIN);
        let memory = socket.share_ring(BLOCK_BYTES, blocks, RETIRE_MS)?;
        socket.bind(found.index)?;
        let (scratch, counters) = (Vec::new(), Counters::default());
        let ring = Ring { memory, socket, link, next: 0, scratch, counters, packets: 0 };
        Ok((ring, found))
    }

    /// The socket to wait on.
    pub fn socket(&self) -> &PacketSocket {
        &self.socket
    }

    /// Delivers all available packets. Returns the number of blocks.
    pub fn read(&mut self, take: &mut dyn FnMut(&Packet<'_>)) -> usize {
        let mut blocks = 0;
        while let Some(block) = self.memory.block(self.next) {
            let link = self.link;
            self.packets += read_block(block, link, &mut self.scratch, take);
            self.memory.give_back(self.next);
            self.next = (self.next + 1) % self.memory.blocks();
            blocks += 1;
        }
        blocks
    }

    /// Packets that passed the filter and those that were dropped, since the ring was opened.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn counters(&mut self) -> Result<Counters, WireError> {
        let more = self.socket.counters()?;
        self.counters.passed += more.passed;
        self.counters.dropped += more.dropped;
        Ok(self.counters)
    }
}

fn read_block(
    block: &[u8],
    link: Link,
    scratch: &mut Vec<u8>,
    take: &mut dyn FnMut(&Packet<'_>),
) -> u64 {
    // struct tpacket_block_desc: version, offset to private data, then struct tpacket_hdr_v1:
    // status, number of packets, offset to the first.
    let (count, mut at) = (word(block, 12), word(block, 16) as usize);
    for _ in 0..count {
        let Some(frame) = block.get(at..) else { break };
        // struct tpacket3_hdr.
        let mac = usize::from(half(frame, 24));
        let captured = word(frame, 12) as usize;
        let Some(mut bytes) = frame.get(mac..mac + captured) else { break };
        let mut length = word(frame, 16);
        if word(frame, 20) & STATUS_VLAN_VALID != 0 && bytes.len() >= 12 {
            // The kernel has taken the tag out of the frame.
            scratch.clear();
            scratch.extend_from_slice(&bytes[..12]);
            scratch.extend_from_slice(&half(frame, 36).to_be_bytes());
            scratch.extend_from_slice(&(word(frame, 32) as u16).to_be_bytes());
            scratch.extend_from_slice(&bytes[12..]);
            bytes = scratch;
            length += 4;
        }
        let at_ns = u64::from(word(frame, 4)) * 1_000_000_000 + u64::from(word(frame, 8));
        // struct virtio_net_hdr stands before the frame: flags, kind, header length, segment size.
        let segment_bytes = match frame.get(mac.wrapping_sub(VNET_BYTES)..mac) {
            Some(header) if header[1] != 0 => half(header, 4),
            _ => 0,
        };
        take(&Packet { at_ns, bytes, length, link, segment_bytes });
        at += word(frame, 0) as usize;
    }
    u64::from(count)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
}

fn half(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from_ne_bytes([b[0], b[1]]))
}

/// A block: three super-packets of 64 KiB, or about 150 packets at an MTU of 1500. However few
/// packets come, one is used up every [`RETIRE_MS`]: many small ones outlast a reader that is late.
const BLOCK_BYTES: usize = 1 << 18;
const BLOCKS_MIN: usize = 16;
/// Milliseconds after which a block is delivered even if it is not full.
pub const RETIRE_MS: u32 = 10;
/// `struct virtio_net_hdr`, linux/virtio_net.h.
const VNET_BYTES: usize = 10;
/// From linux/if_packet.h.
const TPACKET_V3: i32 = 2;
const PACKET_IGNORE_OUTGOING: i32 = 23;
const STATUS_VLAN_VALID: u32 = 1 << 4;
