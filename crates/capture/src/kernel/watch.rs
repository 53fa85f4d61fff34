//! Watches all TCP sockets of a network namespace: samples while they live, final counts when
//! they are freed.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use serde::{Deserialize, Serialize};

use crate::clock::own_thread_ns;
use crate::error::WireError;
use crate::kernel::diag::{Drained, Freed, SocketTable};
use crate::kernel::figures::{Role, SocketView, TcpFigures};

/// A watch that runs in its own thread.
#[derive(Debug)]
pub struct KernelWatch {
    thread: JoinHandle<Result<KernelAccount, WireError>>,
    asked: Arc<OnceLock<usize>>,
    wake: Arc<OwnedFd>,
}

/// Counts of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelAccount {
    /// The last figures of each socket; both ends of a connection if both are in this namespace.
    pub sockets: Vec<SocketView>,
    /// Samples of living sockets, in the order of time.
    pub samples: Vec<Sample>,
    /// Samples that were dropped because the list was full.
    pub samples_dropped: u64,
    /// True if the kernel had more notifications than its buffer holds: some sockets have no final
    /// figures.
    pub notices_lost: bool,
    /// Processor time of the watches' own threads, nanoseconds.
    pub own_cpu_ns: u64,
}

/// Figures of one socket at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Its own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Which end opened the connection.
    pub role: Role,
    /// Smoothed round-trip time in microseconds.
    pub round_trip_us: u32,
    /// Congestion window in segments.
    pub congestion_window_segments: u32,
    /// Segments sent again so far.
    pub segments_retransmitted: u64,
    /// Segments sent and not acknowledged.
    pub unacknowledged_segments: u32,
    /// Bytes sent so far, those sent again included.
    pub bytes_sent: u64,
}

impl KernelAccount {
    /// Adds the counts of another namespace.
    pub fn join(&mut self, other: KernelAccount) {
        self.sockets.extend(other.sockets);
        self.samples.extend(other.samples);
        self.samples.sort_by_key(|sample| sample.at_ns);
        self.samples_dropped += other.samples_dropped;
        self.notices_lost |= other.notices_lost;
        self.own_cpu_ns += other.own_cpu_ns;
    }
}

impl KernelWatch {
    /// Begins to watch sockets accepted on, or connected to, one of `server_ports` in the network
    /// namespace of the calling thread, and samples them at every `every`; without it only their
    /// final counts are kept.
    ///
    /// # Errors
    /// If the kernel refuses, or no thread can be started.
    pub fn start(server_ports: &[u16], every: Option<Duration>) -> Result<KernelWatch, WireError> {
        let (freed, table) = (Freed::open()?, SocketTable::open()?);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| WireError::of("eventfd", error))?;
        let (asked, wake) = (Arc::new(OnceLock::new()), Arc::new(wake));
        let watcher = Watcher {
            freed,
            table,
            ports: server_ports.to_vec(),
            every,
            asked: asked.clone(),
            wake: wake.clone(),
            last_words: Vec::new(),
            account: KernelAccount::default(),
        };
        let thread = std::thread::Builder::new()
            .name("tcp".to_owned())
            .spawn(move || watcher.run())
            .map_err(|error| WireError::of("starting the watch's thread", error))?;
        Ok(KernelWatch { thread, asked, wake })
    }

    /// Ends the watch. Sockets still open are in the account with their counts so far. If fewer
    /// than `sockets` are known, it waits for late notices, at most two seconds.
    ///
    /// # Errors
    /// If reading failed while it ran, or its thread panicked.
    pub fn stop(self, sockets: usize) -> Result<KernelAccount, WireError> {
        self.asked.get_or_init(|| sockets);
        rustix::io::write(&*self.wake, &1_u64.to_ne_bytes())
            .map_err(|error| WireError::of("write", error))?;
        self.thread.join().map_err(|_| WireError::Panicked)?
    }
}

struct Watcher {
    freed: Freed,
    table: SocketTable,
    ports: Vec<u16>,
    every: Option<Duration>,
    /// Once it shall stop: the number of sockets that it should know by then.
    asked: Arc<OnceLock<usize>>,
    wake: Arc<OwnedFd>,
    last_words: Vec<SocketView>,
    account: KernelAccount,
}

impl Watcher {
    fn run(mut self) -> Result<KernelAccount, WireError> {
        let mut due = self.every.map(|_| Instant::now());
        let expected = loop {
            if let Some(expected) = self.asked.get() {
                break *expected;
            }
            self.drain()?;
            if let Some((at, every)) = due.zip(self.every)
                && at <= Instant::now()
            {
                self.sample()?;
                // Samples missed in a pause of the whole machine are not repeated.
                due = Some((at + every).max(Instant::now()));
            }
            self.wait(due)?;
        };
        self.await_notices(expected)?;
        // What is open is read before the last notices: a socket freed in between is in both, and
        // its final counts are used. Earlier notices are of earlier sockets, even between the same
        // ends.
        self.drain()?;
        let earlier = self.last_words.len();
        let open = self.table.read(&self.ports)?;
        self.drain()?;
        let freed: HashSet<_> =
            self.last_words[earlier..].iter().map(|view| (view.local, view.remote)).collect();
        let open = open.into_iter().filter(|view| !freed.contains(&(view.local, view.remote)));
        self.account.sockets.extend(open);
        self.account.sockets.append(&mut self.last_words);
        self.account.own_cpu_ns = own_thread_ns();
        Ok(self.account)
    }

    /// Takes notices until none has come for a while and `expected` sockets are known, at most for
    /// [`LATE_MAX`]. The kernel sends them from a work queue, which a busy machine runs late.
    fn await_notices(&mut self, expected: usize) -> Result<(), WireError> {
        let end = Instant::now() + LATE_MAX;
        while Instant::now() < end {
            let mut notices = [PollFd::from_borrowed_fd(self.freed.netlink.as_fd(), PollFlags::IN)];
            match poll(&mut notices, Some(&QUIET)) {
                Ok(0) if self.known()? >= expected => return Ok(()),
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => self.drain()?,
                Err(error) => return Err(WireError::of("poll", error)),
            }
        }
        Ok(())
    }

    fn known(&mut self) -> Result<usize, WireError> {
        Ok(self.last_words.len() + self.table.read(&self.ports)?.len())
    }

    fn drain(&mut self) -> Result<(), WireError> {
        let drained = self.freed.drain(&self.ports, &mut self.last_words)?;
        self.account.notices_lost |= drained == Drained::Lost;
        Ok(())
    }

    fn sample(&mut self) -> Result<(), WireError> {
        for view in self.table.read(&self.ports)? {
            if self.account.samples.len() < SAMPLES_MAX {
                self.account.samples.push(Sample::of(&view));
            } else {
                self.account.samples_dropped += 1;
            }
        }
        Ok(())
    }

    fn wait(&self, due: Option<Instant>) -> Result<(), WireError> {
        let mut both = [
            PollFd::from_borrowed_fd(self.freed.netlink.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN),
        ];
        let limit = due.map_or(IDLE, |at| at.saturating_duration_since(Instant::now()).min(IDLE));
        let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(limit.subsec_nanos()) };
        match poll(&mut both, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(WireError::of("poll", error)),
        }
    }
}

impl Sample {
    fn of(view: &SocketView) -> Sample {
        let TcpFigures {
            round_trip_us,
            congestion_window_segments,
            segments_retransmitted,
            unacknowledged_segments,
            bytes_sent,
            ..
        } = view.figures;
        Sample {
            at_ns: view.at_ns,
            local: view.local,
            remote: view.remote,
            role: view.role,
            round_trip_us,
            congestion_window_segments,
            segments_retransmitted,
            unacknowledged_segments,
            bytes_sent,
        }
    }
}

/// How long no notice comes before a watch ends.
const QUIET: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// How long missing notices are waited for.
const LATE_MAX: Duration = Duration::from_secs(2);

const IDLE: Duration = Duration::from_millis(500);
/// About 100 MB; a sample a second of 1,000 sockets for a quarter of an hour.
const SAMPLES_MAX: usize = 1_000_000;
