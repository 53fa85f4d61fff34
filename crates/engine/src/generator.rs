//! A trial on real sockets and real time: one thread per shard, each with its own epoll and,
//! where there are several, its own descriptor table.

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Instant;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use weigh_model::Nanos;
use weigh_model::protocol::Transport;

use crate::io::epoll::EpollIo;
use crate::io::wake_fd::WakeFd;
use crate::io::{Io, descriptors};
use crate::job::{Failure, Job, Progress};
use crate::outcome::{Outcome, ShardOutcome};
use crate::rendezvous::orders::Orders;
use crate::shard::{Phase, Shard};

/// Calls of the generator to its user at moments of a trial, in the thread of a shard. Shards have
/// their numbers among all of the trial.
pub trait TrialObserver: Send + Sync {
    /// A shard's thread has started: the place to pin it.
    fn thread_started(&self, _shard: u32) {}

    /// The measured window begins, as the first shard sees it; `now` is on the trial's clock.
    /// Called in a thread of its own, so that it makes no message late.
    fn window_began(&self, _now: Nanos) {}

    /// The measured window of an open loop is over, as the first shard sees it; what is under way
    /// still comes. Called in the same thread as [`TrialObserver::window_began`].
    fn load_ended(&self, _now: Nanos) {}

    /// Everything is accounted for; no connection has been closed yet.
    fn window_ended(&self, _now: Nanos) {}

    /// A shard has something to tell.
    fn progress(&self, shard: u32, progress: Progress);
}

/// A trial that is running.
pub struct Generator {
    job: Arc<Job>,
    threads: Vec<thread::JoinHandle<ShardOutcome>>,
    wake_fds: Vec<WakeFd>,
}

impl Generator {
    /// Starts the threads of those shards of a trial that run in this process: all of them,
    /// `0..job.shards`, where it is the only one. The trial's clock stands at 0 at `epoch`; where
    /// several processes run a trial, that must be one moment for all.
    ///
    /// # Errors
    /// [`Failure::Ourselves`] if there are no such shards, or if the process has no descriptors or
    /// threads left for them. Then the trial has failed on all hosts: they would wait for these
    /// shards.
    pub fn start(
        job: Arc<Job>,
        here: Range<u32>,
        epoch: Instant,
        observer: &Arc<dyn TrialObserver>,
    ) -> Result<Generator, Failure> {
        let orders = Arc::clone(job.rendezvous.orders());
        let started = Generator::start_threads(job, here, epoch, observer);
        started.inspect_err(|_| orders.give_up())
    }

    fn start_threads(
        job: Arc<Job>,
        here: Range<u32>,
        epoch: Instant,
        observer: &Arc<dyn TrialObserver>,
    ) -> Result<Generator, Failure> {
        if here.is_empty() || here.end > job.shards {
            let text = format!("shards {here:?} to run here, of {} in all", job.shards);
            return Err(Failure::Ourselves(text));
        }
        let _ = descriptors::raise();
        let wake_fds = here.clone().map(|_| WakeFd::new()).collect::<Result<Vec<_>, _>>();
        let wake_fds = wake_fds.map_err(|errno| {
            Failure::Ourselves(format!("no descriptors to start shards with: {errno}"))
        })?;
        let mut threads = Vec::new();
        let mut notifier = Some(WindowNotifier::start(observer)?);
        job.rendezvous.orders().hold_here(true);
        let is_alone = here.len() == 1;
        for (index, wake_fd) in here.zip(&wake_fds) {
            let start = Start {
                job: Arc::clone(&job),
                index,
                is_alone,
                epoch,
                wake_fd: wake_fd.clone(),
                observer: Arc::clone(observer),
                notifier: notifier.take(),
            };
            let thread = thread::Builder::new()
                .name(format!("weigh-shard-{index}"))
                .spawn(move || start.run())
                .map_err(|error| Failure::Ourselves(format!("no thread for a shard: {error}")))?;
            threads.push(thread);
        }
        Ok(Generator { job, threads, wake_fds })
    }

    /// Something that stops the trial from anywhere: once to finish the record, twice to end it.
    pub fn stopper(&self) -> impl Fn() + Send + Sync + use<> {
        let (orders, wake_fds) = (Arc::clone(self.job.rendezvous.orders()), self.wake_fds.clone());
        move || {
            orders.stop();
            wake_fds.iter().for_each(WakeFd::wake);
        }
    }

    /// Waits for the end of a trial whose shards are all here.
    ///
    /// # Errors
    /// The first failure of a shard; [`Failure::Ourselves`] if a shard panicked.
    pub fn finish(self) -> Result<Outcome, Failure> {
        let job = Arc::clone(&self.job);
        let shards = self.finish_here()?;
        if let Some(failure) = shards.iter().find_map(|shard| shard.failure.clone()) {
            return Err(failure);
        }
        Ok(Outcome::merge(shards, job.load(), job.dial.confirms, job.composer.is_marked()))
    }

    /// Waits for the end of the trial. Returns the results of the shards that ran here, in the
    /// order of their numbers, also of those that failed: [`Outcome::merge`] takes those of all
    /// processes, in the same order.
    ///
    /// # Errors
    /// [`Failure::Ourselves`] if a shard panicked.
    pub fn finish_here(self) -> Result<Vec<ShardOutcome>, Failure> {
        let panicked = |_| Failure::Ourselves("a shard of the generator panicked".to_owned());
        let ended: Vec<_> = self.threads.into_iter().map(thread::JoinHandle::join).collect();
        ended.into_iter().map(|shard| shard.map_err(panicked)).collect()
    }
}

/// All that the thread of a shard starts with.
struct Start {
    job: Arc<Job>,
    index: u32,
    /// True if no other shard of the trial is in this process.
    is_alone: bool,
    epoch: Instant,
    wake_fd: WakeFd,
    observer: Arc<dyn TrialObserver>,
    /// With the first shard.
    notifier: Option<WindowNotifier>,
}

/// Reports the begin of the window, and its end, in a thread of its own.
struct WindowNotifier {
    news: Sender<WindowEdge>,
    thread: thread::JoinHandle<()>,
}

enum WindowEdge {
    Began(Nanos),
    Ended(Nanos),
}

impl WindowNotifier {
    fn start(observer: &Arc<dyn TrialObserver>) -> Result<WindowNotifier, Failure> {
        let (news, heard) = channel();
        let observer = Arc::clone(observer);
        let thread = thread::Builder::new()
            .name("weigh-window".to_owned())
            .spawn(move || {
                heard.iter().for_each(|news| match news {
                    WindowEdge::Began(now) => observer.window_began(now),
                    WindowEdge::Ended(now) => observer.load_ended(now),
                });
            })
            .map_err(|error| Failure::Ourselves(format!("no thread for the window: {error}")))?;
        Ok(WindowNotifier { news, thread })
    }

    /// It hears for as long as it is there.
    fn tell(&self, news: WindowEdge) {
        let _ = self.news.send(news);
    }

    /// Waits until everything has been reported.
    fn finish(self) {
        drop(self.news);
        // A panic there has been printed; the trial's record does not depend on it.
        let _ = self.thread.join();
    }
}

/// Lets the other shards close their connections when the first shard has reported the end of the
/// window, or has ended.
struct ClosePermit<'a>(&'a Orders);

impl Drop for ClosePermit<'_> {
    fn drop(&mut self) {
        self.0.hold_here(false);
    }
}

/// Ends the trial on all hosts if the shard panics: the others would wait for it for ever.
struct PanicGuard(Arc<Orders>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.give_up();
        }
    }
}

impl Start {
    fn run(mut self) -> ShardOutcome {
        let _guard = PanicGuard(Arc::clone(self.job.rendezvous.orders()));
        let notifier = self.notifier.take();
        let job = Arc::clone(&self.job);
        let permit = notifier.as_ref().map(|_| ClosePermit(job.rendezvous.orders()));
        self.observer.thread_started(self.index);
        let mut io = match self.io() {
            Ok(io) => io,
            Err(reason) => {
                self.job.rendezvous.orders().stop();
                let failure = Some(Failure::Ourselves(reason));
                return ShardOutcome { failure, ..ShardOutcome::default() };
            }
        };
        let observer = Arc::clone(&self.observer);
        let index = self.index;
        let told_cpu = Arc::new(AtomicU64::new(0));
        let cpu_at_border = Arc::clone(&told_cpu);
        let progress = Box::new(move |mut progress| {
            if let Progress::Interval(told) = &mut progress {
                let cpu = thread_cpu();
                told.cpu = cpu - Nanos(cpu_at_border.swap(cpu.0, Ordering::Relaxed));
            }
            observer.progress(index, progress);
        });
        let shard = Shard::new(Arc::clone(&self.job), index, progress);
        self.drive(shard, &mut io, (notifier, permit), &told_cpu)
    }

    /// The shard's epoll, in a descriptor table of its own where there are several shards.
    fn io(&self) -> Result<EpollIo, String> {
        if !self.is_alone {
            // SAFETY: this thread has opened nothing yet; of what was opened before it uses only
            // its wake-up descriptor, which is kept. What it opens stays with it until it ends.
            #[expect(unsafe_code, reason = "a table per shard lifts the limit on open files")]
            let own = unsafe { descriptors::own_table(&[self.wake_fd.as_fd()]) };
            match own {
                // Containers forbid it as a rule: then all shards live within one limit.
                Ok(()) | Err(Errno::PERM | Errno::NOSYS) => {}
                Err(errno) => return Err(format!("no descriptor table for a shard: {errno}")),
            }
        }
        let mut io = EpollIo::with_wake_fd(self.epoch, self.wake_fd.clone())
            .map_err(|fault| format!("no epoll for a shard: {fault}"))?;
        if self.job.dial.transport == Transport::DatagramRuns {
            io.let_kernel_cut();
        }
        Ok(io)
    }

    fn drive(
        &self,
        mut shard: Shard,
        io: &mut EpollIo,
        (mut notifier, mut permit): (Option<WindowNotifier>, Option<ClosePermit<'_>>),
        told_cpu: &AtomicU64,
    ) -> ShardOutcome {
        let mut cpu_before = thread_cpu();
        let (mut cpu, mut window_cpu) = (None, None);
        let mut ended = None;
        let mut phase = shard.phase();
        while shard.step(io) {
            if shard.is_past_window() && window_cpu.is_none() {
                window_cpu = Some(thread_cpu() - cpu_before);
                notifier.iter().for_each(|notifier| notifier.tell(WindowEdge::Ended(io.now())));
            }
            if shard.phase() == phase {
                continue;
            }
            if phase == Phase::Waiting {
                // What was used until here made connections: it belongs to no interval.
                told_cpu.store(thread_cpu().0, Ordering::Relaxed);
            }
            phase = shard.phase();
            match phase {
                Phase::Measuring => {
                    cpu_before = thread_cpu();
                    notifier.iter().for_each(|notifier| notifier.tell(WindowEdge::Began(io.now())));
                }
                Phase::Lingering(_) => cpu = Some(thread_cpu() - cpu_before),
                Phase::Settled => {
                    cpu.get_or_insert_with(|| thread_cpu() - cpu_before);
                    ended = Some(io.now());
                    self.observer.progress(self.index, Progress::Settled);
                    if let Some(notifier) = notifier.take() {
                        notifier.finish();
                        self.observer.window_ended(io.now());
                    }
                    drop(permit.take());
                }
                _ => {}
            }
        }
        let cpu = cpu.unwrap_or_else(|| thread_cpu() - cpu_before);
        let ended = ended.unwrap_or_else(|| io.now());
        // A shard that failed has not reported it yet.
        self.observer.progress(self.index, Progress::Settled);
        if let Some(notifier) = notifier.take() {
            notifier.finish();
            self.observer.window_ended(io.now());
        }
        io.await_answers();
        let window_cpu = window_cpu.unwrap_or(cpu);
        let mut outcome = shard.outcome();
        outcome.accounts.queue_drops = io.dropped();
        outcome.accounts.uncut_sockets = io.uncut();
        ShardOutcome { cpu, window_cpu, ended, bytes: io.bytes(), ..outcome }
    }
}

/// Processor time of the calling thread.
fn thread_cpu() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
