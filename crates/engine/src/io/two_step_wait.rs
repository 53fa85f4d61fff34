//! Waits for events where the kernel has no `epoll_pwait2` (before Linux 5.11, and in emulators):
//! first for the epoll to become ready, in nanoseconds, then for what is ready, not at all. Costs a
//! call more, and is as exact.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::event::epoll::{Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Waits at most `timeout`, without end for `None`, and puts what happened into `events`, as many
/// as it has room for.
///
/// # Errors
/// The error of poll(2) or epoll_wait(2): `EINTR` if a signal arrived first.
pub fn wait(
    epoll: impl AsFd,
    events: &mut Vec<Event>,
    timeout: Option<&Timespec>,
) -> Result<(), Errno> {
    let epoll = epoll.as_fd();
    poll(&mut [PollFd::from_borrowed_fd(epoll, PollFlags::IN)], timeout)?;
    take(epoll, events)
}

/// Takes the events that are ready now.
fn take(epoll: BorrowedFd<'_>, events: &mut Vec<Event>) -> Result<(), Errno> {
    let room = (events.capacity() - events.len()).clamp(1, EVENTS_MAX);
    let mut ready = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
    // SAFETY: the descriptor is open for as long as it is borrowed, and the array has room for that
    // number of events. No safe call of rustix makes this system call once it may use epoll_pwait2.
    #[expect(unsafe_code, reason = "rustix asks for epoll_pwait2 and nothing else")]
    let count = unsafe { libc::epoll_wait(epoll.as_raw_fd(), ready.as_mut_ptr(), room as i32, 0) };
    let count = usize::try_from(count).map_err(|_| {
        Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
    })?;
    events.extend(ready[..count].iter().map(|event| Event {
        flags: EventFlags::from_bits_retain(event.events),
        data: EventData::new_u64(event.u64),
    }));
    Ok(())
}

/// Most events taken at once: the room on the stack.
const EVENTS_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use rustix::event::epoll::{self, CreateFlags};
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    /// Both waits report the same events as `epoll_wait` of the kernel.
    #[test]
    fn it_tells_the_same_events_as_one_step() {
        let ready = epoll::create(CreateFlags::CLOEXEC).unwrap();
        let wake_fds: Vec<_> =
            (0..5).map(|_| eventfd(0, EventfdFlags::NONBLOCK).unwrap()).collect();
        for (number, wake_fd) in wake_fds.iter().enumerate() {
            let data = EventData::new_u64(number as u64 | 7 << 40);
            epoll::add(&ready, wake_fd, data, EventFlags::IN).unwrap();
        }
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut none = Vec::with_capacity(8);
        wait(&ready, &mut none, Some(&now)).unwrap();
        assert!(none.is_empty());
        for is_set in [0, 3, 4] {
            rustix::io::write(&wake_fds[is_set], &1u64.to_ne_bytes()).unwrap();
        }
        let mut ours = Vec::with_capacity(8);
        wait(&ready, &mut ours, None).unwrap();
        let mut theirs = Vec::with_capacity(8);
        epoll::wait(&ready, rustix::buffer::spare_capacity(&mut theirs), Some(&now)).unwrap();
        let told = |events: &[Event]| -> Vec<(u32, u64)> {
            events.iter().map(|event| ({ event.flags }.bits(), { event.data }.u64())).collect()
        };
        assert_eq!(told(&ours), told(&theirs));
        assert_eq!(ours.len(), 3);
    }

    #[test]
    fn no_more_than_there_is_room_for() {
        let ready = epoll::create(CreateFlags::CLOEXEC).unwrap();
        let wake_fds: Vec<_> =
            (0..5).map(|_| eventfd(1, EventfdFlags::NONBLOCK).unwrap()).collect();
        for wake_fd in &wake_fds {
            epoll::add(&ready, wake_fd, EventData::new_u64(1), EventFlags::IN).unwrap();
        }
        let mut few = Vec::with_capacity(2);
        wait(&ready, &mut few, None).unwrap();
        assert_eq!(few.len(), few.capacity().min(5));
    }
}
