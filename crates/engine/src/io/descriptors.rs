//! Descriptor tables. The limit on open files counts per table, and a table belongs to a process
//! only until one of its threads asks for its own: so each shard can have as many sockets as the
//! limit allows.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::UnshareFlags;

/// The limits on open descriptors per table; `u64::MAX` stands for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Limit in force.
    pub soft: u64,
    /// Highest limit that can be set without privileges.
    pub hard: u64,
}

/// Reads both limits of this process.
pub fn limits() -> Limits {
    let now = getrlimit(Resource::Nofile);
    Limits { soft: now.current.unwrap_or(u64::MAX), hard: now.maximum.unwrap_or(u64::MAX) }
}

/// Raises the soft limit of this process to the hard one and returns what is now in force.
///
/// # Errors
/// The error of setrlimit(2), if the system does not allow it; the limit is then unchanged.
pub fn raise() -> Result<Limits, Errno> {
    let now = getrlimit(Resource::Nofile);
    if now.current != now.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum })?;
    }
    Ok(limits())
}

/// Gives the calling thread a descriptor table of its own (unshare(2), CLONE_FILES) that holds
/// standard input, output and error, and `keep` under their numbers. Everything else that the
/// old table held is closed in the new one: a copy would keep the sockets of other threads open
/// after those had closed them, and their peers would never hear of it.
///
/// A wake-up descriptor that was made before and is named in `keep` works across all tables; what
/// is opened later is in one table only.
///
/// # Errors
/// EPERM or ENOSYS if the system does not allow it (the default filter of container runtimes does
/// not); the thread then continues in the old table. Any other error leaves it in a table of its
/// own that still holds copies of everything.
///
/// # Safety
/// The thread must never use, and never drop, a descriptor that was opened before and is not in
/// `keep`: its number means nothing here, or something else. Nor may another thread use one that
/// this thread opens after. Threads that this thread starts share its table.
#[expect(unsafe_code, reason = "the caller has to keep descriptors apart, see Safety")]
pub unsafe fn own_table(keep: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    // SAFETY: the caller keeps to the contract above.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES)? };
    for number in open_numbers()? {
        if number > 2 && keep.iter().all(|kept| kept.as_raw_fd() != number) {
            // SAFETY: the table is this thread's alone, and by contract it uses none of these.
            unsafe { rustix::io::close(number) };
        }
    }
    Ok(())
}

/// Returns the number of descriptors in the table of this thread.
///
/// # Errors
/// If /proc cannot be read, for example because no descriptor is left to open it with.
pub fn open_count() -> Result<usize, Errno> {
    Ok(open_numbers()?.len())
}

/// The descriptors in the table of this thread, without the one that reads them.
fn open_numbers() -> Result<Vec<RawFd>, Errno> {
    let folder = rustix::fs::open(
        "/proc/thread-self/fd",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let own = folder.as_raw_fd();
    let mut numbers = Vec::new();
    for entry in Dir::new(folder)? {
        let entry = entry?;
        let number = entry.file_name().to_str().ok().and_then(|name| name.parse::<RawFd>().ok());
        numbers.extend(number.filter(|number| *number != own));
    }
    Ok(numbers)
}
