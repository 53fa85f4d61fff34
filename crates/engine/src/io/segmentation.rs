//! Segmentation by the kernel (udp(7)): a run of datagrams leaves with one call and is cut by the
//! kernel (UDP_SEGMENT), and what the kernel joined (UDP_GRO) is cut again before it is reported.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use weigh_model::connection::Frames;

/// Consecutive datagrams that leave together: all have the size of the first, and the last one may
/// be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run<'b> {
    /// The bytes of all of them.
    pub(super) bytes: &'b [u8],
    /// Size of the first.
    pub(super) datagram_bytes: usize,
}

impl Run<'_> {
    /// True if there is something to cut.
    pub(super) fn is_cut(&self) -> bool {
        self.bytes.len() > self.datagram_bytes
    }
}

/// The frames behind the first `taken` bytes as runs of at most `datagrams_max` datagrams.
pub(super) fn runs(
    frames: Frames<'_>,
    taken: usize,
    datagrams_max: usize,
) -> impl Iterator<Item = Run<'_>> {
    let (mut start, mut rest) = (taken, frames.after(taken).peekable());
    std::iter::from_fn(move || {
        let first = rest.next()?.len();
        let (mut bytes, mut datagrams, mut last) = (first, 1, first);
        while last == first
            && datagrams < datagrams_max
            && let Some(next) =
                rest.next_if(|next| next.len() <= first && bytes + next.len() <= RUN_BYTES_MAX)
        {
            last = next.len();
            (bytes, datagrams) = (bytes + last, datagrams + 1);
        }
        let run = Run { bytes: &frames.bytes[start..start + bytes], datagram_bytes: first };
        start += bytes;
        Some(run)
    })
}

/// The datagrams of which the kernel made `joined`; all of it is one if `datagram_bytes` is 0.
pub(super) fn datagrams(joined: &[u8], datagram_bytes: usize) -> impl Iterator<Item = &[u8]> {
    // A datagram may be empty, and `chunks` has none for it.
    let is_one = datagram_bytes == 0 || joined.len() <= datagram_bytes;
    let (one, cut) = if is_one { (Some(joined), &[][..]) } else { (None, joined) };
    one.into_iter().chain(cut.chunks(datagram_bytes.max(1)))
}

/// Lets the kernel join what comes in at a socket. False if it cannot do this or cannot cut (before
/// Linux 5.0): it would send a run as one datagram.
pub(super) fn switch_on(socket: &OwnedFd) -> bool {
    set(socket, libc::UDP_SEGMENT, 0) && set(socket, libc::UDP_GRO, 1)
}

/// True for an error by which the kernel refuses to cut a run: an interface without checksums
/// before Linux 6.11 (EIO), or datagrams that do not fit its MTU (EINVAL, EMSGSIZE). None of the
/// run has left.
pub(super) fn is_refusal(errno: Errno) -> bool {
    matches!(errno, Errno::IO | Errno::INVAL | Errno::MSGSIZE | Errno::OPNOTSUPP)
}

fn set(socket: &OwnedFd, name: libc::c_int, value: libc::c_int) -> bool {
    let length = size_of_val(&value) as libc::socklen_t;
    #[expect(unsafe_code, reason = "rustix has no wrapper for the options of UDP")]
    // SAFETY: setsockopt(2) reads `length` bytes from `value` and keeps no pointer to it; the
    // descriptor is open for as long as `socket` is borrowed.
    let answer = unsafe {
        let value = (&raw const value).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, name, value, length)
    };
    answer == 0
}

/// Memory for the control message of one call: the size of the datagrams.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct Control([u8; CONTROL_BYTES]);

impl Control {
    /// Without a message.
    pub(super) const EMPTY: Control = Control([0; CONTROL_BYTES]);

    /// Asks the kernel to cut what a message sends into datagrams of this size.
    pub(super) fn cut(&mut self, message: &mut libc::msghdr, datagram_bytes: usize) {
        let size = u16::try_from(datagram_bytes).unwrap_or(u16::MAX);
        message.msg_control = (&raw mut self.0).cast();
        #[expect(unsafe_code, reason = "a control message is written through libc's accessors")]
        // SAFETY: the buffer is aligned for a cmsghdr and has room for one with 2 bytes of content,
        // as asserted below; `message` points to it.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(size_of::<u16>() as u32) as _;
            let head = libc::CMSG_FIRSTHDR(message);
            (*head).cmsg_level = libc::SOL_UDP;
            (*head).cmsg_type = libc::UDP_SEGMENT;
            (*head).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
            libc::CMSG_DATA(head).cast::<u16>().write_unaligned(size);
        }
    }

    /// Lets the kernel say with a message that it receives what it joined.
    pub(super) fn ask(&mut self, message: &mut libc::msghdr) {
        message.msg_control = (&raw mut self.0).cast();
        message.msg_controllen = CONTROL_BYTES as _;
    }
}

/// The size of the datagrams that the kernel joined to what came with a message; 0 if it joined
/// none, or was not asked.
///
/// # Safety
/// The control buffer of the message, if it has one, is alive and was filled by the kernel.
#[expect(unsafe_code, reason = "the caller answers for the pointer in the message")]
pub(super) unsafe fn joined_bytes(message: &libc::msghdr) -> usize {
    // SAFETY: the accessors stay within the length that the kernel set, by contract.
    let mut head = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !head.is_null() {
        // SAFETY: as above; a message of UDP_GRO holds an int, udp(7).
        unsafe {
            if (*head).cmsg_level == libc::SOL_UDP && (*head).cmsg_type == libc::UDP_GRO {
                let size = libc::CMSG_DATA(head).cast::<libc::c_int>().read_unaligned();
                return usize::try_from(size).unwrap_or(0);
            }
            head = libc::CMSG_NXTHDR(message, head);
        }
    }
    0
}

/// Datagrams that one call may hand over as a run: UDP_MAX_SEGMENTS, 128 on newer kernels.
pub(super) const DATAGRAMS_MAX: usize = 64;

/// The most that a packet of IPv4 carries above UDP.
const RUN_BYTES_MAX: usize = 65_507;

/// Room for a control message with an int, on every architecture.
const CONTROL_BYTES: usize = 32;

const _: () = {
    #[expect(unsafe_code, reason = "libc's sizes are unsafe functions without a contract")]
    // SAFETY: it computes a number.
    let needed = unsafe { libc::CMSG_SPACE(size_of::<libc::c_int>() as u32) };
    assert!(needed as usize <= CONTROL_BYTES && align_of::<libc::cmsghdr>() <= 8);
};

#[cfg(test)]
pub(super) mod tests;
