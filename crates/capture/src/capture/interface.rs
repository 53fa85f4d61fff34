//! Properties of an interface: number, link header, MTU, offloads.

use std::os::fd::RawFd;

use crate::account::{Interface, Offloads};
use crate::capture::socket::PacketSocket;
use crate::error::WireError;
use crate::packet::Link;

/// An interface of the network namespace that the socket belongs to.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its number.
    pub index: u32,
    /// Its properties.
    pub interface: Interface,
}

/// Finds an interface by its name.
pub(crate) fn find(socket: &PacketSocket, name: &str) -> Result<Found, WireError> {
    let raw = socket.raw();
    let index = word(raw, name, SIOCGIFINDEX)?;
    let kind = word(raw, name, SIOCGIFHWADDR)? as u16;
    let link = match kind {
        libc::ARPHRD_ETHER => Link::Ethernet,
        libc::ARPHRD_LOOPBACK => Link::Loopback,
        ARPHRD_NONE => Link::Raw,
        _ => return Err(WireError::UnknownLink { name: name.to_owned(), kind }),
    };
    let mtu_bytes = word(raw, name, SIOCGIFMTU)?;
    let offload = |command| ethtool(raw, name, command).ok().map(|value| value != 0);
    let offloads = Offloads {
        tso: offload(ETHTOOL_GTSO),
        gso: offload(ETHTOOL_GGSO),
        gro: offload(ETHTOOL_GGRO),
    };
    let name = name.to_owned();
    Ok(Found { index, interface: Interface { name, link, mtu_bytes, offloads } })
}

/// First word of the answer to an interface request (netdevice(7)).
fn word(socket: RawFd, name: &str, request: u64) -> Result<u32, WireError> {
    let mut asked = Request::new(name, [0; 24]);
    call(socket, request, &mut asked)
        .map_err(|error| WireError::NoInterface { name: name.to_owned(), error })?;
    let [a, b, c, d, ..] = asked.value;
    Ok(u32::from_ne_bytes([a, b, c, d]))
}

/// Asks the driver (linux/ethtool.h).
fn ethtool(socket: RawFd, name: &str, command: u32) -> std::io::Result<u32> {
    let mut value = [command, 0];
    let mut pointer = [0; 24];
    let address = value.as_mut_ptr() as usize;
    pointer[..size_of::<usize>()].copy_from_slice(&address.to_ne_bytes());
    let mut asked = Request::new(name, pointer);
    call(socket, SIOCETHTOOL, &mut asked)?;
    // The kernel wrote through the pointer, which the compiler cannot know.
    Ok(std::hint::black_box(&value)[1])
}

fn call(socket: RawFd, request: u64, asked: &mut Request) -> std::io::Result<()> {
    #[expect(unsafe_code, reason = "rustix has no wrapper for these requests")]
    // SAFETY: each of the requests reads and writes one `struct ifreq`, which `Request` is, and
    // SIOCETHTOOL with the commands used here one `struct ethtool_value` behind its pointer.
    let answer = unsafe { libc::ioctl(socket, request as _, std::ptr::from_mut(asked)) };
    if answer < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// `struct ifreq`: a name and a union.
#[repr(C, align(8))]
struct Request {
    name: [u8; 16],
    value: [u8; 24],
}

impl Request {
    fn new(name: &str, value: [u8; 24]) -> Request {
        let mut field = [0; 16];
        // Names are at most 15 bytes long; a longer one is cut and will not be found.
        let count = name.len().min(15);
        field[..count].copy_from_slice(&name.as_bytes()[..count]);
        Request { name: field, value }
    }
}

// From linux/sockios.h, linux/ethtool.h and linux/if_arp.h.
const SIOCGIFINDEX: u64 = 0x8933;
const SIOCGIFHWADDR: u64 = 0x8927;
const SIOCGIFMTU: u64 = 0x8921;
const SIOCETHTOOL: u64 = 0x8946;
const ETHTOOL_GTSO: u32 = 0x1e;
const ETHTOOL_GGSO: u32 = 0x23;
const ETHTOOL_GGRO: u32 = 0x2b;
const ARPHRD_NONE: u16 = 0xfffe;
