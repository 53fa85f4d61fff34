//! Offloads: whether an interface may make packets larger than the link's, or leave checksums to
//! hardware that does not exist: ethtool(8), `include/uapi/linux/ethtool.h`.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType, socket};

/// The state of the offloads on the wires of a scene. It is part of every figure of packets or
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offloads {
    /// Off: each packet is as it would be on a link.
    #[default]
    Off,
    /// As the kernel has them: a capture sees super-packets of up to 64 KiB, headers are counted
    /// once for all of it. "As captured", not as on a wire.
    AsCaptured,
}

/// Turns all offloads off on an interface of the calling thread's namespace. What it does not have
/// is off.
#[expect(unsafe_code, reason = "no crate here wraps this ioctl")]
pub(super) fn turn_off(interface: &str) -> io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    for command in COMMANDS {
        let mut value = EthtoolValue { command, data: 0 };
        // SAFETY: an ifreq is plain data, for which all zeroes are a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if interface.len() >= request.ifr_name.len() {
            return Err(io::Error::other(format!("the name {interface} is too long")));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the kernel reads the ifreq and, through its pointer, a command and its value,
        // both of which live until it returns.
        let result = unsafe {
            libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &mut request)
        };
        if result < 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EOPNOTSUPP) {
                return Err(error);
            }
        }
    }
    Ok(())
}

#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// ETHTOOL_SGRO, ETHTOOL_SGSO, ETHTOOL_STSO, ETHTOOL_SSG, ETHTOOL_SRXCSUM, ETHTOOL_STXCSUM.
const COMMANDS: [u32; 6] = [0x2c, 0x24, 0x1f, 0x19, 0x15, 0x17];
