//! A packet socket with a receive ring in shared memory: packet(7) and
//! Documentation/networking/packet_mmap.rst. Version 2 of the ring, not 3: version 3 hands over
//! whole blocks, after a timer of milliseconds if they do not fill, which no delay could hide.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use weigh_model::units::Nanos;

use crate::link::clock;

/// An open ring on one interface.
#[derive(Debug)]
pub(super) struct Ring {
    socket: OwnedFd,
    memory: NonNull<u8>,
    next: usize,
    overflowed: u64,
    wall_ahead_by: i128,
    wall_read_at: Nanos,
}

// SAFETY: the memory is shared with the kernel, which orders its accesses by the status word of
// each frame; in this process only the thread that holds the `Ring` touches it.
#[expect(unsafe_code, reason = "a raw pointer is not Send by itself")]
unsafe impl Send for Ring {}

impl Ring {
    /// Opens it on an interface of the calling thread's network namespace.
    pub(super) fn open(interface: &str) -> io::Result<Ring> {
        let socket = packet_socket()?;
        set(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as libc::c_int))?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (RING_BYTES / BLOCK_BYTES) as u32,
            tp_frame_size: FRAME_BYTES as u32,
            tp_frame_nr: FRAMES as u32,
        };
        set(&socket, libc::PACKET_RX_RING, &request)?;
        // Sent frames must not come back, and need no queue before the interface.
        set(&socket, PACKET_IGNORE_OUTGOING, &1_i32)?;
        set(&socket, libc::PACKET_QDISC_BYPASS, &1_i32)?;
        let memory = map(&socket)?;
        let (wall_ahead_by, wall_read_at) = (clock::wall_ahead_by(), clock::now());
        // Made before it is bound, so that it unmaps the memory if binding fails.
        let ring = Ring { socket, memory, next: 0, overflowed: 0, wall_ahead_by, wall_read_at };
        bind(&ring.socket, interface)?;
        Ok(ring)
    }

    /// The next frame: its length, and when the kernel received it, on the forwarder's clock.
    #[expect(unsafe_code, reason = "the ring is memory shared with the kernel")]
    pub(super) fn receive(&mut self, frame: &mut [u8]) -> Option<(usize, Nanos)> {
        // SAFETY: `next` is below FRAMES, so the frame lies within the mapped ring. Its header
        // begins there, on a multiple of 16, and its status word, its first field, is only ever
        // accessed atomically by either side.
        let (header, status) = unsafe {
            let at = self.memory.as_ptr().add(self.next * FRAME_BYTES);
            (at.cast::<libc::tpacket2_hdr>(), &*at.cast::<AtomicU32>())
        };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the status says that the frame belongs to this process until it is returned, and
        // the kernel has written a whole header.
        let found = unsafe { header.read() };
        let (at, length) = (usize::from(found.tp_mac), found.tp_snaplen as usize);
        let length = length.min(frame.len()).min(FRAME_BYTES.saturating_sub(at));
        // SAFETY: `at` and `length` stay within the frame, by the line before, and `frame` is
        // memory of this process that cannot overlap the ring.
        unsafe {
            let from = header.cast::<u8>().add(at.min(FRAME_BYTES));
            std::ptr::copy_nonoverlapping(from, frame.as_mut_ptr(), length);
        }
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % FRAMES;
        let wall = i128::from(found.tp_sec) * 1_000_000_000 + i128::from(found.tp_nsec);
        Some((length, self.moment(wall)))
    }

    /// Converts a moment of the wall clock to the forwarder's clock. The wall clock may be set, so
    /// the
    /// difference is read again from time to time, and an impossible moment becomes now.
    fn moment(&mut self, wall: i128) -> Nanos {
        let now = clock::now();
        if now.since(self.wall_read_at) > WALL_AGAIN {
            (self.wall_ahead_by, self.wall_read_at) = (clock::wall_ahead_by(), now);
        }
        let moment = u64::try_from(wall - self.wall_ahead_by).map_or(now, Nanos);
        if moment > now || now.since(moment) > STALE { now } else { moment }
    }

    #[expect(unsafe_code, reason = "no safe crate here sends on packet sockets")]
    pub(super) fn send(&self, frame: &[u8]) -> bool {
        // SAFETY: pointer and length are those of one slice.
        let sent = unsafe {
            let (from, length) = (frame.as_ptr().cast(), frame.len());
            libc::send(self.socket.as_raw_fd(), from, length, libc::MSG_DONTWAIT)
        };
        usize::try_from(sent) == Ok(frame.len())
    }

    /// Frames dropped because the ring was full. The kernel's counter is cleared by reading.
    #[expect(unsafe_code, reason = "no safe crate here reads packet statistics")]
    pub(super) fn overflowed(&mut self) -> u64 {
        let mut found = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of_val(&found) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into `found`, which has that many.
        let result = unsafe {
            let (to, length) = ((&raw mut found).cast(), &raw mut length);
            let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
            libc::getsockopt(self.socket.as_raw_fd(), level, option, to, length)
        };
        if result == 0 {
            self.overflowed += u64::from(found.tp_drops);
        }
        self.overflowed
    }
}

impl Drop for Ring {
    #[expect(unsafe_code, reason = "what was mapped must be unmapped")]
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, once, and nothing else has the pointer.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), RING_BYTES) };
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Writes an interface's name as the kernel wants it: at most 15 bytes, and a zero.
pub(super) fn put_name(to: &mut [libc::c_char], interface: &str) -> io::Result<()> {
    if interface.len() >= to.len() {
        return Err(io::Error::other(format!("the name {interface} is too long")));
    }
    for (to, from) in to.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(())
}

/// Receives nothing until it is bound (protocol 0).
#[expect(unsafe_code, reason = "no safe crate here opens packet sockets")]
fn packet_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed; a descriptor that is not negative is ours alone.
    unsafe {
        let socket = libc::socket(libc::AF_PACKET, kind, 0);
        if socket < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(socket)) }
    }
}

#[expect(unsafe_code, reason = "no safe crate here sets packet options")]
fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `value`, which has that many.
    let result = unsafe {
        let (level, from) = (libc::SOL_PACKET, (&raw const *value).cast());
        libc::setsockopt(socket.as_raw_fd(), level, option, from, length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[expect(unsafe_code, reason = "the ring is memory shared with the kernel")]
fn map(socket: &OwnedFd) -> io::Result<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping of the socket's ring at an address that the kernel chooses.
    let memory = unsafe {
        let socket = socket.as_raw_fd();
        libc::mmap(std::ptr::null_mut(), RING_BYTES, access, libc::MAP_SHARED, socket, 0)
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(memory.cast()).ok_or_else(|| io::Error::other("a ring at address 0"))
}

#[expect(unsafe_code, reason = "no safe crate here binds packet sockets")]
fn bind(socket: &OwnedFd, interface: &str) -> io::Result<()> {
    // SAFETY: an ifreq and a sockaddr_ll are plain data, for which all zeroes are a value.
    let (mut request, mut address): (libc::ifreq, libc::sockaddr_ll) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    put_name(&mut request.ifr_name, interface)?;
    // SAFETY: SIOCGIFINDEX reads and writes one ifreq, which lives until it returns, and leaves
    // the index in the union.
    let index = unsafe {
        if libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFINDEX as libc::Ioctl, &mut request) < 0 {
            return Err(io::Error::last_os_error());
        }
        request.ifr_ifru.ifru_ifindex
    };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `address`, which has that many.
    let result = unsafe {
        let from = (&raw const address).cast::<libc::sockaddr>();
        libc::bind(socket.as_raw_fd(), from, length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A frame of 1,514 bytes, its header and the room that the kernel leaves before it (at most 82
/// bytes), in whole fractions of a page.
const FRAME_BYTES: usize = 2048;
/// As many as a TAP device's queue here (`txqueuelen`), in whole blocks.
const FRAMES: usize = 8192;
const BLOCK_BYTES: usize = 65536;
const RING_BYTES: usize = FRAMES * FRAME_BYTES;
/// include/uapi/linux/if_packet.h, since Linux 4.20.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// The wall clock drifts from the monotonic one by at most 500 ppm while it is adjusted
/// (adjtimex(2)): 5 us in this time.
const WALL_AGAIN: Nanos = Nanos::from_millis(10);
/// No frame waits this long in a ring: the wall clock was set.
const STALE: Nanos = Nanos::from_millis(500);
