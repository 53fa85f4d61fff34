//! Datagrams of real sockets, many with one call of the kernel: recvmmsg(2) and sendmmsg(2).

use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use weigh_model::connection::Frames;

use super::IoFault;
use super::segmentation::{self, Control, DATAGRAMS_MAX};
use super::socket::fault;

/// A socket that is connected to one peer, so that only its datagrams come in.
pub(super) fn dial(to: SocketAddr, from: Option<IpAddr>) -> Result<OwnedFd, IoFault> {
    let socket = make(to)?;
    if let Some(address) = from {
        rustix::net::bind(&socket, &SocketAddr::new(address, 0)).map_err(fault)?;
    }
    match rustix::net::connect(&socket, &to) {
        Ok(()) => Ok(socket),
        Err(Errno::AGAIN) => Err(IoFault::Ports),
        Err(errno) => Err(fault(errno)),
    }
}

/// A socket for datagrams of any peer. With `shared`, others of the same user may share its port,
/// and the kernel spreads the peers over them (SO_REUSEPORT, socket(7)).
pub(super) fn open(on: SocketAddr, shared: bool) -> Result<(OwnedFd, SocketAddr), IoFault> {
    let socket = make(on)?;
    if shared {
        sockopt::set_socket_reuseport(&socket, true).map_err(fault)?;
    }
    rustix::net::bind(&socket, &on).map_err(|errno| match errno {
        Errno::ADDRINUSE => IoFault::AddressInUse,
        errno => IoFault::Other(errno.raw_os_error()),
    })?;
    let address = rustix::net::getsockname(&socket).map_err(fault)?;
    Ok((socket, SocketAddr::try_from(address).map_err(fault)?))
}

fn make(towards: SocketAddr) -> Result<OwnedFd, IoFault> {
    let family = if towards.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let udp = Some(ipproto::UDP);
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, udp).map_err(fault)?;
    // The kernel lowers it to net.core.rmem_max.
    sockopt::set_socket_recv_buffer_size(&socket, QUEUE_BYTES).map_err(fault)?;
    Ok(socket)
}

/// Number of datagrams that the kernel has dropped at a socket since it was made, most of them
/// because its receive queue was full. SO_RXQ_OVFL reports the same count with the next datagram;
/// SO_MEMINFO (Linux 4.12) reports it also if no datagram follows. 0 if the kernel does not report
/// it.
pub(super) fn dropped(socket: &OwnedFd) -> u32 {
    let mut values = [0u32; MEMINFO_VALUES];
    let mut length = size_of_val(&values) as libc::socklen_t;
    #[expect(unsafe_code, reason = "rustix has no wrapper for SO_MEMINFO")]
    // SAFETY: getsockopt(2) writes at most `length` bytes to `values`, which has as many, and
    // keeps no pointer; the descriptor is open for as long as `socket` is borrowed.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MEMINFO,
            values.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if answer == 0 { values[MEMINFO_DROPS] } else { 0 }
}

/// Memory for the datagrams of one receive.
pub(super) struct Batch {
    bytes: Box<[u8]>,
    names: [libc::sockaddr_storage; BATCH],
    lengths: [u32; BATCH],
    /// Room for the sizes of datagrams that the kernel joined, if it may join.
    controls: Option<Box<[Control; BATCH]>>,
    /// Those sizes; 0 for a single datagram.
    joined_bytes: [usize; BATCH],
}

impl Batch {
    pub(super) fn new() -> Batch {
        #[expect(unsafe_code, reason = "libc gives sockaddr_storage no other constructor")]
        // SAFETY: sockaddr_storage holds only integers, for which zeros are values.
        let names =
            unsafe { MaybeUninit::<[libc::sockaddr_storage; BATCH]>::zeroed().assume_init() };
        let bytes = vec![0; BATCH * DATAGRAM_BYTES].into_boxed_slice();
        Batch { bytes, names, lengths: [0; BATCH], controls: None, joined_bytes: [0; BATCH] }
    }

    /// Prepares for sockets at which the kernel joins datagrams.
    pub(super) fn take_joined(&mut self) {
        self.controls.get_or_insert_with(|| Box::new([Control::EMPTY; BATCH]));
    }

    /// Receives what waits at a socket, up to [`BATCH`] datagrams or runs of them that the kernel
    /// joined, and returns how many: fewer mean that no more wait.
    pub(super) fn receive(&mut self, socket: &OwnedFd) -> Result<usize, Errno> {
        let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        for (vector, room) in vectors.iter_mut().zip(self.bytes.chunks_exact_mut(DATAGRAM_BYTES)) {
            *vector = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: DATAGRAM_BYTES };
        }
        let mut messages = [EMPTY; BATCH];
        for ((message, vector), name) in messages.iter_mut().zip(&mut vectors).zip(&mut self.names)
        {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_name = (&raw mut *name).cast();
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        }
        let controls = self.controls.iter_mut().flat_map(|controls| controls.iter_mut());
        for (message, control) in messages.iter_mut().zip(controls) {
            control.ask(&mut message.msg_hdr);
        }
        #[expect(unsafe_code, reason = "rustix has no wrapper for recvmmsg")]
        // SAFETY: each of the BATCH messages points to one vector and one name, and perhaps to a
        // buffer for control messages, each vector to DATAGRAM_BYTES of `bytes`; all of them
        // outlive the call, and the kernel keeps no pointer.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        let received = usize::try_from(received).map_err(|_| last_errno())?;
        for (index, message) in messages[..received].iter().enumerate() {
            self.lengths[index] = message.msg_len;
            #[expect(unsafe_code, reason = "the kernel has just filled the control buffers")]
            // SAFETY: `controls` is alive, and the kernel set how much of it is filled.
            let size = unsafe { segmentation::joined_bytes(&message.msg_hdr) };
            self.joined_bytes[index] = size;
        }
        Ok(received)
    }

    /// Who sent what was received with this index.
    pub(super) fn sender(&self, index: usize) -> Option<SocketAddr> {
        address_of(&self.names[index])
    }

    /// The datagrams that were received with this index: one, or all that the kernel joined.
    pub(super) fn datagrams(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        let start = index * DATAGRAM_BYTES;
        let bytes = &self.bytes[start..start + self.lengths[index] as usize];
        segmentation::datagrams(bytes, self.joined_bytes[index])
    }
}

/// What a call to send did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// Bytes of the frames that are taken.
    pub(super) taken: usize,
    /// True if the kernel refused to cut a run, whose datagrams left one by one.
    pub(super) is_refused: bool,
}

/// Sends the frames behind the first `taken` bytes, to `to` or to the peer of a connected socket.
/// With `cuts` the kernel cuts runs of them; it never loses one that it refuses to cut.
pub(super) fn send(
    socket: &OwnedFd,
    frames: Frames<'_>,
    taken: usize,
    to: Option<SocketAddr>,
    cuts: bool,
) -> Result<Sent, Errno> {
    let (mut taken, mut is_refused) = (taken, false);
    let mut name = to.map(storage_of);
    loop {
        let datagrams_max = if cuts && !is_refused { DATAGRAMS_MAX } else { 1 };
        let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        let (mut controls, mut messages) = ([Control::EMPTY; BATCH], [EMPTY; BATCH]);
        let mut count = 0;
        for run in segmentation::runs(frames, taken, datagrams_max).take(BATCH) {
            let (vector, message) = (&mut vectors[count], &mut messages[count].msg_hdr);
            let base = run.bytes.as_ptr().cast_mut().cast();
            *vector = libc::iovec { iov_base: base, iov_len: run.bytes.len() };
            message.msg_iov = vector;
            message.msg_iovlen = 1;
            if let Some((name, length)) = &mut name {
                message.msg_name = (&raw mut *name).cast();
                message.msg_namelen = *length;
            }
            if run.is_cut() {
                controls[count].cut(message, run.datagram_bytes);
            }
            count += 1;
        }
        if count == 0 {
            return Ok(Sent { taken, is_refused });
        }
        #[expect(unsafe_code, reason = "rustix has no wrapper for sendmmsg")]
        // SAFETY: the first `count` messages point to one vector each, which points to a run, and
        // perhaps to a control message; sendmmsg(2) only reads these and the name, all outlive the
        // call, and no pointer is kept.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_fd().as_raw_fd(),
                messages.as_mut_ptr(),
                count as libc::c_uint,
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        };
        let is_cut = messages[0].msg_hdr.msg_controllen > 0;
        match usize::try_from(sent).map_err(|_| last_errno()) {
            Ok(sent) => taken += vectors[..sent].iter().map(|vector| vector.iov_len).sum::<usize>(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(Sent { taken, is_refused }),
            // The error is that of the first run: nothing of it has left.
            Err(errno) if is_cut && segmentation::is_refusal(errno) => is_refused = true,
            Err(errno) => return Err(errno),
        }
    }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

fn address_of(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    #[expect(unsafe_code, reason = "an address is read as the type that its family names")]
    // SAFETY: sockaddr_storage is as large as any address and aligned for it; the kernel wrote the
    // one that `ss_family` names, and both types hold only integers.
    unsafe {
        match i32::from(name.ss_family) {
            libc::AF_INET => {
                let own = &*(&raw const *name).cast::<libc::sockaddr_in>();
                let ip = Ipv4Addr::from(u32::from_be(own.sin_addr.s_addr));
                Some(SocketAddr::new(ip.into(), u16::from_be(own.sin_port)))
            }
            libc::AF_INET6 => {
                let own = &*(&raw const *name).cast::<libc::sockaddr_in6>();
                let ip = Ipv6Addr::from(own.sin6_addr.s6_addr);
                let (port, scope) = (u16::from_be(own.sin6_port), own.sin6_scope_id);
                Some(std::net::SocketAddrV6::new(ip, port, own.sin6_flowinfo, scope).into())
            }
            _ => None,
        }
    }
}

fn storage_of(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    #[expect(unsafe_code, reason = "an address is written as the type that its family names")]
    // SAFETY: as above; zeros are values of sockaddr_storage.
    unsafe {
        let mut storage = MaybeUninit::<libc::sockaddr_storage>::zeroed().assume_init();
        let length = match address {
            SocketAddr::V4(v4) => {
                let own = &mut *(&raw mut storage).cast::<libc::sockaddr_in>();
                own.sin_family = libc::AF_INET as libc::sa_family_t;
                own.sin_port = v4.port().to_be();
                own.sin_addr.s_addr = u32::from(*v4.ip()).to_be();
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(v6) => {
                let own = &mut *(&raw mut storage).cast::<libc::sockaddr_in6>();
                own.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                own.sin6_port = v6.port().to_be();
                own.sin6_addr.s6_addr = v6.ip().octets();
                own.sin6_flowinfo = v6.flowinfo();
                own.sin6_scope_id = v6.scope_id();
                size_of::<libc::sockaddr_in6>()
            }
        };
        (storage, length as libc::socklen_t)
    }
}

/// Datagrams, or runs of them, that one call moves.
pub(super) const BATCH: usize = 16;

/// The largest datagram: UDP's length field has 16 bits.
const DATAGRAM_BYTES: usize = 64 * 1024;

/// Size of the receive queue of a socket, as far as the system allows it.
const QUEUE_BYTES: usize = 4 << 20;

/// From asm-generic/socket.h and linux/sock_diag.h.
const SO_MEMINFO: i32 = 55;
const MEMINFO_VALUES: usize = 9;
const MEMINFO_DROPS: usize = 8;

/// A message without anything.
const EMPTY: libc::mmsghdr = {
    #[expect(unsafe_code, reason = "libc gives mmsghdr no other constructor")]
    // SAFETY: mmsghdr holds integers and raw pointers, for which zeros are values.
    unsafe {
        MaybeUninit::zeroed().assume_init()
    }
};
