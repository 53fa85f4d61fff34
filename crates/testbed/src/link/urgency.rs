//! Real-time priority for threads that make or carry traffic, so that they run as soon as they
//! are woken, on a machine where other processes work too.

use std::io;
use std::num::NonZeroU64;

/// Order of the threads. All of them run before ordinary threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Makes the load of an open loop: it is late while another thread has its core.
    Generator,
    /// Carries packets that are due. Medium priority: some of the kernel's own threads must run
    /// first.
    Forwarder,
}

/// Puts the calling thread before all ordinary ones (`SCHED_FIFO`), and its timers on the
/// nanosecond. Not for a thread that never sleeps: it would starve kernel work that runs as
/// an ordinary thread on its core.
///
/// # Errors
/// Without the right to (`CAP_SYS_NICE`, or the limit `RLIMIT_RTPRIO`): nothing changes.
#[expect(unsafe_code, reason = "no safe crate here sets a scheduling policy")]
pub fn before_others(rank: Rank) -> io::Result<()> {
    // Ordinary threads are woken up to 50 us late on purpose (prctl(2), PR_SET_TIMERSLACK).
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    // Children, such as targets, must not inherit it.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    let priority = rank.priority();
    // The call itself: musl's function only fails.
    // SAFETY: 0 is the calling thread; the kernel reads a sched_param, which is one number
    // (sched_setscheduler(2)) and lives here.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Rank {
    fn priority(self) -> libc::c_int {
        match self {
            Rank::Generator => 10,
            Rank::Forwarder => 50,
        }
    }
}
