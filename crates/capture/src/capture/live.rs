//! A capture that runs in a thread of its own, from start to stop.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use crate::account::{Account, Accounting, Settings};
use crate::capture::bpf::SNAP_ALL;
use crate::capture::interface::Found;
use crate::capture::ordered::Ordered;
use crate::capture::ring::{RETIRE_MS, Ring};
use crate::clock::{now_ns, own_thread_ns};
use crate::error::WireError;
use crate::files::{Statistics, Writer};
use crate::packet::Link;
use crate::warning::Warning;

/// Settings of a capture.
#[derive(Clone, Debug)]
pub struct Options {
    /// The interface, such as `lo`.
    pub interface: String,
    /// What to count.
    pub settings: Settings,
    /// Memory of the ring, in bytes. The default holds a second of 50,000 packets of 1,514 bytes.
    pub ring_bytes: usize,
    /// How much of each packet to copy, in bytes; the rest is counted but not read. TLS needs whole
    /// packets, the default; for anything else 128 bytes are enough.
    pub snap_bytes: u32,
    /// A pcapng file to write the packets to as well.
    pub file: Option<PathBuf>,
}

/// An open tap on an interface, on any host.
#[derive(Debug)]
pub struct Tap {
    ring: Ring,
    found: Found,
}

/// A running capture.
#[derive(Debug)]
pub struct Capture {
    thread: JoinHandle<Result<Account, WireError>>,
    stop: Stop,
    found: Found,
}

#[derive(Clone, Debug)]
struct Stop {
    asked: Arc<AtomicBool>,
    wake: Arc<OwnedFd>,
}

impl Options {
    /// Whole packets of an interface, counted as they are on the wire.
    pub fn new(interface: &str, settings: Settings) -> Options {
        Options {
            interface: interface.to_owned(),
            settings,
            ring_bytes: RING_BYTES,
            snap_bytes: SNAP_ALL,
            file: None,
        }
    }
}

impl Tap {
    /// Opens the interface of `options` in the network namespace of the calling thread. Packets
    /// sent
    /// after it returns are counted.
    ///
    /// # Errors
    /// If the interface is unknown, or captures are not permitted.
    pub fn open(options: &Options) -> Result<Tap, WireError> {
        let filter = &options.settings.filter;
        let (ring, found) =
            Ring::open(&options.interface, filter, options.ring_bytes, options.snap_bytes)?;
        Ok(Tap { ring, found })
    }
}

impl Capture {
    /// Begins to capture in the network namespace of the calling thread. Packets sent after it
    /// returns are counted.
    ///
    /// # Errors
    /// As [`Tap::open`], and if a file or thread cannot be made.
    pub fn start(options: Options) -> Result<Capture, WireError> {
        let tap = Tap::open(&options)?;
        Capture::of(vec![tap], options)
    }

    /// Counts the packets of several taps together. No connection may pass two of them, since its
    /// packets would count twice. The account's interface is the first.
    ///
    /// # Errors
    /// If there are no taps, or a file or thread cannot be made.
    pub fn of(taps: Vec<Tap>, options: Options) -> Result<Capture, WireError> {
        let found = taps.first().map(|tap| tap.found.clone());
        let found = found.ok_or_else(|| WireError::of("a capture without taps", Errno::INVAL))?;
        let file = match &options.file {
            Some(path) => {
                let interfaces = taps.iter().map(|tap| &tap.found.interface);
                let described: Vec<(&str, Link)> =
                    interfaces.map(|own| (own.name.as_str(), own.link)).collect();
                Some(Ordered::new(Writer::create(path, &described)?, described.len()))
            }
            None => None,
        };
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| WireError::of("eventfd", error))?;
        let stop = Stop { asked: Arc::new(AtomicBool::new(false)), wake: Arc::new(wake) };
        let mut accounting = Accounting::new(options.settings);
        accounting.seen_on(found.interface.clone());
        let rings = taps.into_iter().map(|tap| tap.ring).collect();
        let reader = Reader { rings, accounting, file, stop: stop.clone() };
        let thread = std::thread::Builder::new()
            .name("wire".to_owned())
            .spawn(move || reader.run())
            .map_err(|error| WireError::of("starting the capture's thread", error))?;
        Ok(Capture { thread, stop, found })
    }

    /// The interface of the tap.
    pub fn interface(&self) -> &Found {
        &self.found
    }

    /// Ends the capture. Everything that was sent before is in the account: this waits, for about
    /// 50 milliseconds, until the kernel has handed over the last block.
    ///
    /// # Errors
    /// If the capture failed while it ran, or its file cannot be written.
    pub fn stop(self) -> Result<Account, WireError> {
        self.stop.asked.store(true, Ordering::Release);
        let one = 1_u64.to_ne_bytes();
        rustix::io::write(&*self.stop.wake, &one).map_err(|error| WireError::of("write", error))?;
        self.thread.join().map_err(|_| WireError::Panicked)?
    }
}

/// State of the thread.
struct Reader {
    rings: Vec<Ring>,
    accounting: Accounting,
    file: Option<Ordered>,
    stop: Stop,
}

impl Reader {
    fn run(mut self) -> Result<Account, WireError> {
        let mut broke = None;
        let mut quiet_rounds = 0;
        loop {
            let is_over = self.stop.asked.load(Ordering::Acquire);
            let blocks = self.read()?;
            quiet_rounds = if is_over && blocks == 0 { quiet_rounds + 1 } else { 0 };
            // The last block arrives within one round, unless the kernel is busy; read three.
            if quiet_rounds > 3 {
                break;
            }
            self.wait(is_over)?;
            if broke.is_none() {
                broke = self.rings.iter().find_map(|ring| ring.socket().pending_error());
            }
        }
        self.finish(broke)
    }

    fn read(&mut self) -> Result<usize, WireError> {
        let Reader { rings, accounting, file, .. } = self;
        let (mut failed, mut blocks) = (None, 0);
        for (number, ring) in rings.iter_mut().enumerate() {
            blocks += ring.read(&mut |packet| {
                accounting.packet(packet);
                let written = file.as_mut().map(|file| file.packet(packet, number as u32));
                if let Some(Err(error)) = written {
                    failed = Some(error);
                }
            });
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some(file) = file {
            file.settle(now_ns())?;
        }
        Ok(blocks)
    }

    fn wait(&self, is_over: bool) -> Result<(), WireError> {
        let flags = PollFlags::IN | PollFlags::ERR;
        let sockets = self.rings.iter().map(|ring| ring.socket().descriptor().as_fd());
        let mut all: Vec<PollFd<'_>> = sockets
            .chain([self.stop.wake.as_fd()])
            .map(|one| PollFd::from_borrowed_fd(one, flags))
            .collect();
        // Once it is over the wake-up stays readable and must not be waited on.
        let waited_on = if is_over { self.rings.len() } else { all.len() };
        let limit = if is_over { i64::from(RETIRE_MS) * 1_000_000 } else { 200_000_000 };
        let limit = Timespec { tv_sec: 0, tv_nsec: limit };
        match poll(&mut all[..waited_on], Some(&limit)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(WireError::of("poll", error)),
        }
    }

    fn finish(mut self, broke: Option<std::io::Error>) -> Result<Account, WireError> {
        let mut heard = Vec::new();
        for ring in &mut self.rings {
            heard.push((ring.packets, ring.counters()?.dropped));
        }
        let mut account = self.accounting.finish();
        account.packets_dropped = heard.iter().map(|(_, dropped)| dropped).sum();
        if let Some(error) = broke {
            account.capture_warnings.push(Warning::CaptureBroke { reason: error.to_string() });
        }
        if let Some(file) = self.file {
            let at_ns = account.last_at_ns.unwrap_or_default();
            let of_one = |(read, dropped): &(u64, u64)| Statistics {
                at_ns,
                received: read + dropped,
                dropped: *dropped,
            };
            let statistics: Vec<Statistics> = heard.iter().map(of_one).collect();
            file.finish(&statistics)?;
        }
        account.own_cpu_ns = own_thread_ns();
        Ok(account)
    }
}

/// The default ring: 64 MiB.
const RING_BYTES: usize = 64 << 20;
