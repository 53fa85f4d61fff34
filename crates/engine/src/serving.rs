//! Reference servers: any number of shards, each a thread with its own sockets, all on one port.

mod lines;
mod report;
mod shard;
mod simulated;

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::io::Errno;
use weigh_model::Nanos;
use weigh_model::protocol::{Host, Transport};
use weigh_model::server::Server;

pub use shard::ServerShard;
pub use simulated::SimulatedServing;

use crate::io::epoll::EpollIo;
use crate::io::wake_fd::WakeFd;
use crate::io::{Io, IoFault, Waker, descriptors};
use crate::storage::{FileDisk, Store, StoreError, StoreSpec};
use report::ServingReport;

/// A running reference server. Dropping it stops it.
pub struct Serving {
    address: SocketAddr,
    shards: Vec<Running>,
}

/// Reason for which a server could not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServeError {
    /// The socket to listen on could not be made.
    #[error("cannot listen on {on}: {fault}; {}", listen_fix(on, *fault))]
    Listen {
        /// The address asked for.
        on: SocketAddr,
        /// Fault of the system.
        fault: IoFault,
    },
    /// A thread or its resources could not be had.
    #[error("cannot start shard {shard} of the server: {reason}")]
    Shard {
        /// Its index.
        shard: u16,
        /// Cause in words.
        reason: String,
    },
    /// The server cannot store what it would confirm.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns the reason and what to type if an address cannot be listened on.
pub fn listen_fix(on: &SocketAddr, fault: IoFault) -> String {
    let port = on.port();
    match fault {
        IoFault::Other(libc::EADDRNOTAVAIL) => {
            format!("not an address of this machine: type 127.0.0.1:{port}, or 0.0.0.0:{port}")
        }
        IoFault::Other(libc::EACCES) if port < PORT_OF_USERS_MIN => {
            format!("ports below {PORT_OF_USERS_MIN} are for root: type one from 1024 on")
        }
        _ => "choose another address, or port 0 for a free one".to_owned(),
    }
}

/// First port that every user may listen on (ip(7), `ip_unprivileged_port_start`).
const PORT_OF_USERS_MIN: u16 = 1024;

impl Serving {
    /// Starts `shards` threads that serve on `on` (port 0: a free one) and returns once all of them
    /// listen. Each has a descriptor table of its own, so that the limit on open files holds per
    /// shard; if the system forbids that (containers often do), they share the table of the
    /// process, and the report contains that.
    ///
    /// # Errors
    /// [`ServeError::Listen`] if the address cannot be listened on, and [`ServeError::Shard`] if a
    /// thread or its descriptors are missing. Shards that already run are stopped.
    pub fn start(host: &Host, on: SocketAddr, shards: u16) -> Result<Serving, ServeError> {
        Serving::start_storing(host, on, shards, None)
    }

    /// Starts as [`Serving::start`] does, with a clock that counts from `epoch`: one of a generator
    /// with which the server's times are compared.
    ///
    /// # Errors
    /// As of [`Serving::start`].
    pub fn start_since(
        host: &Host,
        on: SocketAddr,
        shards: u16,
        epoch: Instant,
    ) -> Result<Serving, ServeError> {
        Serving::start_shards(host, on, (shards, epoch), None)
    }

    /// Starts as [`Serving::start`] does, with a store for each shard, if one is given.
    ///
    /// # Errors
    /// As of [`Serving::start`], and [`ServeError::Store`] if a store cannot be made.
    pub fn start_storing(
        host: &Host,
        on: SocketAddr,
        shards: u16,
        store: Option<&StoreSpec>,
    ) -> Result<Serving, ServeError> {
        Serving::start_shards(host, on, (shards, Instant::now()), store)
    }

    fn start_shards(
        host: &Host,
        on: SocketAddr,
        (shards, epoch): (u16, Instant),
        store: Option<&StoreSpec>,
    ) -> Result<Serving, ServeError> {
        let shards = shards.max(1);
        let wake_fds = wake_fds(shards)?;
        let mut serving = Serving { address: on, shards: Vec::new() };
        for shard in 0..shards {
            let start = Start {
                server: (host.make)(shard),
                transport: host.transport,
                shard,
                wake_fds: wake_fds.clone(),
                on: serving.address,
                epoch,
                store: store.cloned(),
            };
            let running = start.spawn()?;
            serving.address = running.1;
            serving.shards.push(running.0);
        }
        Ok(serving)
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The kernel's ids of the shards' threads, to account their CPU time.
    pub fn thread_ids(&self) -> Vec<i32> {
        self.shards.iter().map(|running| running.thread_id).collect()
    }

    /// Asks all shards what they have counted so far.
    pub fn report(&self) -> ServingReport {
        let answers: Vec<Receiver<ServingReport>> = self
            .shards
            .iter()
            .filter_map(|running| {
                let (answer, question) = channel();
                running.commands.send(Command::Report(answer)).ok()?;
                running.wake_fd.wake();
                Some(question)
            })
            .collect();
        // A shard that has panicked does not answer; stopping will tell.
        merged(answers.iter().filter_map(|answer| answer.recv().ok()))
    }

    /// Stops all shards, closes their connections and returns what they counted.
    ///
    /// # Panics
    /// If a shard panicked, with its message.
    pub fn stop(mut self) -> ServingReport {
        let ended: Vec<_> = self.end();
        merged(ended.into_iter().map(|result| match result {
            Ok(report) => report,
            Err(panic) => std::panic::resume_unwind(panic),
        }))
    }

    fn end(&mut self) -> Vec<std::thread::Result<ServingReport>> {
        for running in &self.shards {
            let _ = running.commands.send(Command::Stop);
            running.wake_fd.wake();
        }
        // The bells are dropped here, after the last thread has ended, see `WakeFd`.
        let shards = std::mem::take(&mut self.shards);
        let (threads, _bells): (Vec<_>, Vec<_>) =
            shards.into_iter().map(|running| (running.thread, running.wake_fd)).unzip();
        threads.into_iter().map(JoinHandle::join).collect()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end();
    }
}

struct Running {
    thread: JoinHandle<ServingReport>,
    thread_id: i32,
    commands: Sender<Command>,
    wake_fd: WakeFd,
}

enum Command {
    Report(Sender<ServingReport>),
    Stop,
}

/// All that the thread of one shard is given.
struct Start {
    server: Box<dyn Server>,
    transport: Transport,
    shard: u16,
    wake_fds: Vec<WakeFd>,
    on: SocketAddr,
    epoch: Instant,
    store: Option<StoreSpec>,
}

impl Start {
    fn spawn(self) -> Result<(Running, SocketAddr), ServeError> {
        let shard = self.shard;
        let wake_fd = self.wake_fds[usize::from(shard)].clone();
        let (commands, orders) = channel();
        let (ready, started) = channel();
        let thread = std::thread::Builder::new()
            .name(format!("serve-{shard}"))
            .spawn(move || match self.open() {
                Ok((loops, address)) => {
                    let _ = ready.send(Ok((address, rustix::thread::gettid())));
                    loops.serve(&orders)
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                    ServingReport::default()
                }
            })
            .map_err(|error| ServeError::Shard { shard, reason: error.to_string() })?;
        match started.recv() {
            Ok(Ok((address, thread_id))) => {
                let thread_id = thread_id.as_raw_nonzero().get();
                Ok((Running { thread, thread_id, commands, wake_fd }, address))
            }
            Ok(Err(error)) => {
                let _ = thread.join();
                Err(error)
            }
            Err(_) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(_) => Err(ServeError::Shard { shard, reason: "it ended at once".to_owned() }),
            },
        }
    }

    /// Runs on the shard's thread.
    fn open(self) -> Result<(Loop, SocketAddr), ServeError> {
        let shard = self.shard;
        let own_table =
            own_table(&self.wake_fds).map_err(|reason| ServeError::Shard { shard, reason })?;
        let wake_fd = self.wake_fds[usize::from(shard)].clone();
        let mut io = EpollIo::with_wake_fd(self.epoch, wake_fd)
            .map_err(|fault| ServeError::Shard { shard, reason: fault.to_string() })?;
        if self.transport == Transport::DatagramRuns {
            io.let_kernel_cut();
        }
        let listening = match (self.transport, self.wake_fds.len()) {
            (Transport::Stream, 1) => io.listen(self.on, BACKLOG),
            (Transport::Stream, _) => io.listen_shared(self.on, BACKLOG),
            (_, 1) => io.listen_datagrams(self.on),
            (_, _) => io.listen_datagrams_shared(self.on),
        };
        let address = listening.map_err(|fault| ServeError::Listen { on: self.on, fault })?;
        let wakers: Vec<Waker> = self.wake_fds.iter().map(WakeFd::waker).collect();
        let mut shard_loop = ServerShard::new(self.server, self.transport, wakers);
        if let Some(spec) = &self.store {
            // In the descriptor table of this thread, as the sockets are.
            let disk = FileDisk::create(spec, shard)?;
            let store = Store::new(Box::new(disk), spec.policy);
            shard_loop = shard_loop.storing(store, spec.on_failure.clone());
        }
        Ok((Loop { io, shard: shard_loop, own_table }, address))
    }
}

/// State of a shard's thread.
struct Loop {
    io: EpollIo,
    shard: ServerShard,
    own_table: bool,
}

impl Loop {
    fn serve(mut self, orders: &Receiver<Command>) -> ServingReport {
        loop {
            self.shard.step(&mut self.io, Nanos::NEVER);
            // Every order comes with a wake-up, so none waits for longer than a turn.
            for order in orders.try_iter() {
                match order {
                    Command::Report(answer) => {
                        let _ = answer.send(self.report());
                    }
                    Command::Stop => {
                        let mut report = self.report();
                        self.shard.shut(&mut self.io);
                        // What was sent and synced at the end counts.
                        report.server.store = self.shard.report().server.store;
                        return report;
                    }
                }
            }
        }
    }

    fn report(&self) -> ServingReport {
        let mut report = self.shard.report();
        report.shared_tables = u16::from(!self.own_table);
        report.accept_pauses = self.io.accept_pauses();
        (report.bytes_written, report.bytes_read) = self.io.bytes();
        report.note_dropped(self.io.dropped());
        report.server.uncut_sockets = self.io.uncut();
        report
    }
}

fn merged(reports: impl Iterator<Item = ServingReport>) -> ServingReport {
    let mut all = ServingReport::default();
    reports.for_each(|report| all.add(report));
    all
}

fn wake_fds(shards: u16) -> Result<Vec<WakeFd>, ServeError> {
    let wake_fd = |shard| {
        WakeFd::new().map_err(|errno| ServeError::Shard { shard, reason: errno.to_string() })
    };
    (0..shards).map(wake_fd).collect()
}

/// False if the system does not allow it.
fn own_table(wake_fds: &[WakeFd]) -> Result<bool, String> {
    let keep: Vec<_> = wake_fds.iter().map(AsFd::as_fd).collect();
    #[expect(unsafe_code, reason = "descriptor tables have to be kept separate manually")]
    // SAFETY: the thread has just begun and has opened nothing; of the older descriptors it
    // holds only the bells; what it opens stays in its own `EpollIo`.
    let answer = unsafe { descriptors::own_table(&keep) };
    match answer {
        Ok(()) => Ok(true),
        Err(Errno::PERM | Errno::NOSYS) => Ok(false),
        Err(errno) => Err(format!("no descriptor table of its own: {errno}")),
    }
}

/// As many as the kernel will queue: it lowers this to net.core.somaxconn.
const BACKLOG: u32 = 65_535;

#[cfg(test)]
mod tests;
