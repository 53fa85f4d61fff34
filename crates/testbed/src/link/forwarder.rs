//! The thread that runs a switch between ports, on the machine's clock.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::fd::OwnedFd;
use weigh_model::units::Nanos;

use crate::link::clock;
use crate::link::counts::PathCounts;
use crate::link::port::Port;
use crate::link::switch::{Place, Switch};
use crate::link::urgency::{self, Rank};

/// Settings of a forwarder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Packets that may be under way together; more are overruns. 1.5 KiB each, when used.
    pub packets_max: u32,
    /// How long before a packet is due the forwarder wakes and then polls the clock. This removes
    /// the wake-up time from the delay, and uses up a core.
    pub spin: Nanos,
    /// Whether it requests real-time priority (`SCHED_FIFO`).
    pub ask_for_priority: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { packets_max: 65_536, spin: Nanos::from_micros(80), ask_for_priority: true }
    }
}

/// A running forwarder. It ends when it is dropped, or when the program does.
#[derive(Debug)]
pub struct Forwarder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    has_priority: bool,
    carrier: &'static str,
}

#[derive(Debug)]
struct Shared {
    published: Mutex<Published>,
    /// Notified when an order was carried out, or when none will be any more.
    carried_out: Condvar,
    failed: Mutex<Option<String>>,
    is_over: AtomicBool,
    wake: OwnedFd,
}

#[derive(Debug, Default)]
struct Published {
    counts: PathCounts,
    /// The seed of a requested start.
    begin: Option<u64>,
    /// Whether a caller waits for fresh counts.
    is_asked: bool,
    /// Whether the forwarder has ended.
    is_final: bool,
}

struct Loop {
    shared: Arc<Shared>,
    ports: Vec<Port>,
    switch: Switch,
    ready: OwnedFd,
    spin: Nanos,
    looked_at: Nanos,
}

impl Forwarder {
    /// Starts a thread that forwards between these ports, each with its place in the switch.
    ///
    /// # Errors
    /// If the kernel gives no thread or descriptor.
    pub fn start(ports: Vec<(Port, Place)>, options: &Options) -> io::Result<Forwarder> {
        let (ports, places): (Vec<Port>, Vec<Place>) = ports.into_iter().unzip();
        let carrier = ports.first().map_or("none", Port::kind);
        let switch = Switch::new(&places, options.packets_max);
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let shared = Arc::new(Shared {
            published: Mutex::default(),
            carried_out: Condvar::new(),
            failed: Mutex::new(None),
            is_over: AtomicBool::new(false),
            wake: eventfd(0, flags)?,
        });
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let watched = |at: usize| (epoll::EventData::new_u64(at as u64), epoll::EventFlags::IN);
        for (index, port) in ports.iter().enumerate() {
            let (data, flags) = watched(index);
            epoll::add(&ready, port, data, flags)?;
        }
        let (data, flags) = watched(ports.len());
        epoll::add(&ready, &shared.wake, data, flags)?;
        let looked_at = Nanos(0);
        let spin = options.spin;
        let own = Loop { shared: shared.clone(), ports, switch, ready, spin, looked_at };
        let ask = options.ask_for_priority;
        let (tell, told) = std::sync::mpsc::channel();
        let name = "weigh-path".to_owned();
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            // The receiver is missing only if the forwarder has ended.
            let _ = tell.send(ask && urgency::before_others(Rank::Forwarder).is_ok());
            let _last = Last(own.shared.clone());
            own.run();
        })?;
        let has_priority = told.recv().unwrap_or(false);
        Ok(Forwarder { shared, thread: Some(thread), has_priority, carrier })
    }

    /// Starts or restarts the paths: their steps count from now, and random losses come from the
    /// seed from the next packet on.
    pub fn begin(&self, seed: u64) {
        // Packets sent after this returns must find a started path.
        self.order(|orders| orders.begin = Some(seed));
    }

    /// Counts up to now.
    pub fn counts(&self) -> PathCounts {
        self.order(|orders| orders.is_asked = true);
        lock(&self.shared.published).counts.clone()
    }

    /// Gives an order and waits until it was carried out, or until the forwarder has ended.
    fn order(&self, order: impl FnOnce(&mut Published)) {
        let mut orders = lock(&self.shared.published);
        order(&mut orders);
        self.shared.wake();
        while (orders.is_asked || orders.begin.is_some()) && !orders.is_final {
            orders = self.shared.carried_out.wait(orders).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Why it stopped by itself, for example because an interface vanished.
    pub fn failed(&self) -> Option<String> {
        lock(&self.shared.failed).clone()
    }

    /// Whether it has real-time priority.
    pub fn has_priority(&self) -> bool {
        self.has_priority
    }

    /// What carries the frames: `tap` or `packet ring`.
    pub fn carrier(&self) -> &'static str {
        self.carrier
    }

    /// Stops it; packets under way are lost.
    pub fn stop(mut self) -> PathCounts {
        self.end();
        self.counts()
    }

    fn end(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            // A panic there has already been printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn wake(&self) {
        // It fails only when the counter is full, and then the thread is awake.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

/// Reports, however the thread ends, that no order will be carried out any more.
struct Last(Arc<Shared>);

impl Drop for Last {
    fn drop(&mut self) {
        lock(&self.0.published).is_final = true;
        self.0.carried_out.notify_all();
    }
}

impl Loop {
    fn run(mut self) {
        while !self.shared.is_over.load(Ordering::Relaxed) {
            if let Err(error) = self.turn() {
                *lock(&self.shared.failed) = Some(error.to_string());
                break;
            }
        }
        self.publish();
    }

    fn turn(&mut self) -> io::Result<()> {
        let mut has_read = false;
        for (index, port) in self.ports.iter_mut().enumerate() {
            for _ in 0..BATCH {
                if !self.switch.arrive(index, |frame| port.receive(frame))? {
                    break;
                }
                has_read = true;
            }
        }
        let ports = &self.ports;
        self.switch.leave(clock::now(), |port, frame| {
            let is_taken = ports[port].send(frame);
            (is_taken, clock::now())
        });
        let now = clock::now();
        if now.since(self.looked_at) > LOOK_EVERY {
            self.look_for_orders(now);
        }
        if has_read {
            return Ok(());
        }
        let wait = match self.switch.next_due() {
            Some(due) if due <= now + self.spin => return Ok(()),
            Some(due) => due.since(now).since(self.spin).min(IDLE),
            None => IDLE,
        };
        self.sleep(wait)
    }

    fn sleep(&mut self, wait: Nanos) -> io::Result<()> {
        let (seconds, nanos) = (wait.0 / 1_000_000_000, wait.0 % 1_000_000_000);
        let timeout = Timespec { tv_sec: seconds as i64, tv_nsec: nanos as _ };
        let mut events = [MaybeUninit::uninit(); 8];
        let found = match epoll::wait(&self.ready, &mut events[..], Some(&timeout)) {
            Ok((found, _)) => &*found,
            Err(rustix::io::Errno::INTR) => &[],
            Err(error) => return Err(error.into()),
        };
        // Which one is readable does not matter: all are read in the next turn. A failed one would
        // wake
        // this thread forever.
        for event in found {
            let (flags, data) = (event.flags, event.data);
            if flags.contains(epoll::EventFlags::ERR)
                && let Some(port) = self.ports.get(data.u64() as usize)
            {
                port.check()?;
            }
        }
        self.look_for_orders(clock::now());
        Ok(())
    }

    fn look_for_orders(&mut self, now: Nanos) {
        self.looked_at = now;
        let mut counter = [0; 8];
        // Would block if there was none.
        let _ = rustix::io::read(&self.shared.wake, &mut counter);
        let mut orders = lock(&self.shared.published);
        if let Some(seed) = orders.begin.take() {
            self.switch.begin(now, seed);
            self.shared.carried_out.notify_all();
        }
        if orders.is_asked {
            drop(orders);
            self.publish();
        }
    }

    fn publish(&mut self) {
        for (port, counts) in self.ports.iter_mut().zip(&mut self.switch.counts.ports) {
            counts.overflowed = port.overflowed();
        }
        self.switch.counts.cpu_ns = clock::thread_cpu().0;
        let mut published = lock(&self.shared.published);
        published.counts.clone_from(&self.switch.counts);
        published.is_asked = false;
        self.shared.carried_out.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frames read from one port before another has its turn.
const BATCH: usize = 64;
/// Time between two checks for orders under full load.
const LOOK_EVERY: Nanos = Nanos::from_millis(5);
/// The longest sleep; orders and packets end it.
const IDLE: Nanos = Nanos::from_secs(1);
