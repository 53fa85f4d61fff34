//! A TAP device: an interface whose cable is a file (Linux, Documentation/networking/tuntap.rst).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// The device's file. It has no offloads: what is read is what a wire would carry.
#[derive(Debug)]
pub(super) struct Tap {
    file: File,
}

/// Opens the device node.
pub(super) fn open() -> io::Result<File> {
    File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")
}

impl Tap {
    /// Makes the device in the calling thread's network namespace.
    #[expect(unsafe_code, reason = "no crate here wraps this ioctl")]
    pub(super) fn make(interface: &str) -> io::Result<Tap> {
        let file = open()?;
        // SAFETY: an ifreq is plain data, for which all zeroes are a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        super::ring::put_name(&mut request.ifr_name, interface)?;
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as i16;
        // SAFETY: TUNSETIFF reads and writes one ifreq, which lives until it returns.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(Tap { file }) }
    }

    pub(super) fn receive(&mut self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(frame) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // It is being taken down, or is not up yet.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn send(&self, frame: &[u8]) -> bool {
        (&self.file).write(frame).is_ok_and(|written| written == frame.len())
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
