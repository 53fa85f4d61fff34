//! The packet socket and its memory shared with the kernel: all code without a safe wrapper.

use std::ffi::c_void;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::capture::bpf::Instruction;
use crate::error::WireError;

/// A raw packet socket (packet(7)), which receives nothing before [`PacketSocket::bind`].
#[derive(Debug)]
pub struct PacketSocket(OwnedFd);

/// Memory that the kernel fills with packets, in blocks.
#[derive(Debug)]
pub struct SharedRing {
    start: NonNull<u8>,
    block_bytes: usize,
    blocks: usize,
}

/// Packets that passed the filter, and those dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub passed: u64,
    pub dropped: u64,
}

impl PacketSocket {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// Without the right to capture packets.
    pub fn open() -> Result<PacketSocket, WireError> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        #[expect(unsafe_code, reason = "rustix does not know packet sockets")]
        // SAFETY: socket(2) takes no pointers.
        let descriptor = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if descriptor < 0 {
            return Err(WireError::last("socket(AF_PACKET)"));
        }
        #[expect(unsafe_code, reason = "there is no safe way to own a raw descriptor")]
        // SAFETY: the kernel has just handed out this descriptor; nobody else owns it.
        Ok(PacketSocket(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    pub fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    /// Sets an integer option of the packet socket.
    ///
    /// # Errors
    /// If the kernel refuses the option.
    pub fn set(&self, name: i32, value: i32, call: &'static str) -> Result<(), WireError> {
        self.set_option(libc::SOL_PACKET, name, &value, call)
    }

    /// Attaches a filter.
    ///
    /// # Errors
    /// If the kernel refuses the filter.
    pub fn attach(&self, program: &[Instruction]) -> Result<(), WireError> {
        let mut filters: Vec<libc::sock_filter> = program
            .iter()
            .map(|i| libc::sock_filter { code: i.code, jt: i.jump_true, jf: i.jump_false, k: i.k })
            .collect();
        let program = libc::sock_fprog { len: filters.len() as u16, filter: filters.as_mut_ptr() };
        self.set_option(
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            &program,
            "setsockopt(SO_ATTACH_FILTER)",
        )
    }

    /// Asks for a ring of `blocks` blocks, and shares its memory. A block is handed over when it is
    /// full, or `retire_ms` milliseconds after its first packet.
    ///
    /// # Errors
    /// If the kernel refuses the ring or its mapping.
    pub fn share_ring(
        &self,
        block_bytes: usize,
        blocks: usize,
        retire_ms: u32,
    ) -> Result<SharedRing, WireError> {
        let request = libc::tpacket_req3 {
            tp_block_size: block_bytes as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: FRAME_BYTES as u32,
            tp_frame_nr: (block_bytes / FRAME_BYTES * blocks) as u32,
            tp_retire_blk_tov: retire_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        let name = libc::PACKET_RX_RING;
        self.set_option(libc::SOL_PACKET, name, &request, "setsockopt(PACKET_RX_RING)")?;
        let bytes = block_bytes * blocks;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        #[expect(unsafe_code, reason = "shared memory cannot be had otherwise")]
        // SAFETY: the address is left to the kernel, the length is that of the ring just made, and
        // the mapping is undone in drop, after which nothing points into it.
        let start = unsafe {
            let none = std::ptr::null_mut();
            libc::mmap(none, bytes, access, libc::MAP_SHARED, self.raw(), 0)
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(SharedRing { start, block_bytes, blocks })
            }
            _ => Err(WireError::last("mmap of the packet ring")),
        }
    }

    /// Begins to receive everything that passes interface number `index`.
    ///
    /// # Errors
    /// If the kernel refuses, for example because the interface is down.
    pub fn bind(&self, index: u32) -> Result<(), WireError> {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: index as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let length = size_of::<libc::sockaddr_ll>() as u32;
        #[expect(unsafe_code, reason = "rustix does not know packet sockets")]
        // SAFETY: bind(2) reads `length` bytes from `address` and keeps no pointer to it.
        let answer = unsafe { libc::bind(self.raw(), (&raw const address).cast(), length) };
        if answer < 0 { Err(WireError::last("bind(AF_PACKET)")) } else { Ok(()) }
    }

    /// Packets since the last call: the kernel sets its counters back.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn counters(&self) -> Result<Counters, WireError> {
        // struct tpacket_stats_v3: packets, drops, times that the queue was frozen.
        let mut counts = [0_u32; 3];
        let mut length = size_of_val(&counts) as u32;
        #[expect(unsafe_code, reason = "rustix does not know packet sockets")]
        // SAFETY: getsockopt(2) writes at most `length` bytes to `counts`, and the length written.
        let answer = unsafe {
            libc::getsockopt(
                self.raw(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                counts.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if answer < 0 {
            return Err(WireError::last("getsockopt(PACKET_STATISTICS)"));
        }
        // The first counter holds the dropped packets too (packet(7)).
        let [all, dropped, _] = counts.map(u64::from);
        Ok(Counters { passed: all.saturating_sub(dropped), dropped })
    }

    /// The error that the interface has left, such as that it went down.
    pub fn pending_error(&self) -> Option<io::Error> {
        rustix::net::sockopt::socket_error(&self.0).ok()?.err().map(io::Error::from)
    }

    fn set_option<T>(
        &self,
        level: i32,
        name: i32,
        value: &T,
        call: &'static str,
    ) -> Result<(), WireError> {
        let pointer = std::ptr::from_ref(value).cast::<c_void>();
        #[expect(unsafe_code, reason = "rustix has no wrapper for options of packet sockets")]
        // SAFETY: setsockopt(2) reads `size_of::<T>()` bytes from `value` and keeps no pointer to
        // it; a filter is copied before the call returns.
        let answer =
            unsafe { libc::setsockopt(self.raw(), level, name, pointer, size_of::<T>() as u32) };
        if answer < 0 { Err(WireError::last(call)) } else { Ok(()) }
    }
}

#[expect(unsafe_code, reason = "the memory is owned, not borrowed from a thread")]
// SAFETY: the mapping belongs to this value alone, and pages do not care which thread reads them.
unsafe impl Send for SharedRing {}

impl SharedRing {
    /// Blocks of the ring.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// The block with this number, if the kernel has handed it over.
    pub fn block(&self, number: usize) -> Option<&[u8]> {
        if self.status(number).load(Ordering::Acquire) & STATUS_USER == 0 {
            return None;
        }
        #[expect(unsafe_code, reason = "this is the kernel's memory")]
        // SAFETY: `block_start` is within the mapping, and a block that is the user's is not
        // written by the kernel until `give_back`, which needs this value to be borrowed mutably.
        let block =
            unsafe { std::slice::from_raw_parts(self.block_start(number), self.block_bytes) };
        Some(block)
    }

    /// Hands a block back to the kernel.
    pub fn give_back(&mut self, number: usize) {
        self.status(number).store(STATUS_KERNEL, Ordering::Release);
    }

    fn status(&self, number: usize) -> &AtomicU32 {
        #[expect(unsafe_code, reason = "this is the kernel's memory")]
        // SAFETY: block_status lies 8 bytes behind the start of a block (struct
        // tpacket_block_desc), aligned, within the mapping, and both sides access it as one word.
        unsafe {
            &*self.block_start(number).add(STATUS_OFFSET).cast::<AtomicU32>()
        }
    }

    fn block_start(&self, number: usize) -> *mut u8 {
        assert!(number < self.blocks, "the ring has {} blocks", self.blocks);
        #[expect(unsafe_code, reason = "this is the kernel's memory")]
        // SAFETY: the assertion keeps the offset within the mapping.
        unsafe {
            self.start.as_ptr().add(number * self.block_bytes)
        }
    }
}

impl Drop for SharedRing {
    fn drop(&mut self) {
        let bytes = self.block_bytes * self.blocks;
        #[expect(unsafe_code, reason = "a manual mapping is unmapped manually")]
        // SAFETY: this is the mapping that `share_ring` made, and nothing borrows it any more.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), bytes);
        }
    }
}

/// The kernel asks for a frame size but does not use it in version 3 of the ring.
const FRAME_BYTES: usize = 2048;
/// `block_status` in `struct tpacket_hdr_v1`.
const STATUS_OFFSET: usize = 8;
const STATUS_KERNEL: u32 = 0;
const STATUS_USER: u32 = 1;
