//! A trial on real sockets and real time: one thread per shard, each with its own epoll and,
//! where there are several, its own descriptor table.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Instant;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use weigh_model::Nanos;

use crate::io::doorbell::Doorbell;
use crate::io::epoll::EpollIo;
use crate::io::{Io, descriptors};
use crate::job::{Failure, Job, Progress, Shared};
use crate::outcome::{Outcome, ShardOutcome};
use crate::shard::{Phase, Shard};

/// What the caller wants done at moments of a trial, in the thread of a shard.
pub trait Attendant: Send + Sync {
    /// A shard's thread has started: the place to pin it.
    fn thread_started(&self, _shard: u32) {}

    /// The measured window begins, as the first shard sees it; `now` is on the trial's clock.
    /// Called in a thread of its own, so that it makes no message late.
    fn window_began(&self, _now: Nanos) {}

    /// The measured window of an open loop is over, as the first shard sees it; what is under way
    /// still comes. Called in the same thread as [`Attendant::window_began`].
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
    bells: Vec<Doorbell>,
}

impl Generator {
    /// Starts the threads of a trial. The trial's clock stands at 0 at `epoch`.
    pub fn start(
        job: Arc<Job>,
        epoch: Instant,
        attendant: &Arc<dyn Attendant>,
    ) -> Result<Generator, Failure> {
        let _ = descriptors::raise();
        let bells = (0..job.shards).map(|_| Doorbell::new()).collect::<Result<Vec<_>, _>>();
        let bells = bells.map_err(|errno| {
            Failure::Ourselves(format!("no descriptors to start shards with: {errno}"))
        })?;
        let mut threads = Vec::new();
        let mut herald = Some(Herald::start(attendant)?);
        job.shared.is_looked_at.store(true, Ordering::SeqCst);
        for (index, bell) in bells.iter().enumerate() {
            let start = Start {
                job: Arc::clone(&job),
                index: index as u32,
                epoch,
                bell: bell.clone(),
                attendant: Arc::clone(attendant),
                herald: herald.take(),
            };
            let thread = thread::Builder::new()
                .name(format!("weigh-shard-{index}"))
                .spawn(move || start.run())
                .map_err(|error| Failure::Ourselves(format!("no thread for a shard: {error}")))?;
            threads.push(thread);
        }
        Ok(Generator { job, threads, bells })
    }

    /// Something that stops the trial from anywhere: once to finish the record, twice to end it.
    pub fn stopper(&self) -> impl Fn() + Send + Sync + use<> {
        let (job, bells) = (Arc::clone(&self.job), self.bells.clone());
        move || {
            job.shared.stop();
            bells.iter().for_each(Doorbell::ring);
        }
    }

    /// Waits for the end of the trial.
    pub fn finish(self) -> Result<Outcome, Failure> {
        let mut shards = Vec::new();
        for thread in self.threads {
            let shard = thread
                .join()
                .map_err(|_| Failure::Ourselves("a shard of the generator panicked".to_owned()))?;
            shards.push(shard);
        }
        if let Some(failure) = shards.iter().find_map(|shard| shard.failure.clone()) {
            return Err(failure);
        }
        let (load, dial) = (self.job.load(), &self.job.dial);
        Ok(Outcome::merge(shards, load, dial.confirms, self.job.composer.is_marked()))
    }
}

/// All that the thread of a shard starts with.
struct Start {
    job: Arc<Job>,
    index: u32,
    epoch: Instant,
    bell: Doorbell,
    attendant: Arc<dyn Attendant>,
    /// With the first shard.
    herald: Option<Herald>,
}

/// Tells of the begin of the window, and of its end.
struct Herald {
    news: Sender<News>,
    thread: thread::JoinHandle<()>,
}

enum News {
    Began(Nanos),
    Ended(Nanos),
}

impl Herald {
    fn start(attendant: &Arc<dyn Attendant>) -> Result<Herald, Failure> {
        let (news, heard) = channel();
        let attendant = Arc::clone(attendant);
        let thread = thread::Builder::new()
            .name("weigh-window".to_owned())
            .spawn(move || {
                heard.iter().for_each(|news| match news {
                    News::Began(now) => attendant.window_began(now),
                    News::Ended(now) => attendant.load_ended(now),
                });
            })
            .map_err(|error| Failure::Ourselves(format!("no thread for the window: {error}")))?;
        Ok(Herald { news, thread })
    }

    /// It hears for as long as it is there.
    fn tell(&self, news: News) {
        let _ = self.news.send(news);
    }

    /// Waits until everything has been told.
    fn finish(self) {
        drop(self.news);
        // A panic there has been printed; the trial's record does not depend on it.
        let _ = self.thread.join();
    }
}

/// Lets the other shards close their connections when the first has told that the window ended,
/// or is gone.
struct Parting<'a>(&'a Shared);

impl Drop for Parting<'_> {
    fn drop(&mut self) {
        self.0.is_looked_at.store(false, Ordering::SeqCst);
    }
}

impl Start {
    fn run(mut self) -> ShardOutcome {
        let herald = self.herald.take();
        let job = Arc::clone(&self.job);
        let parting = herald.as_ref().map(|_| Parting(&job.shared));
        self.attendant.thread_started(self.index);
        let mut io = match self.io() {
            Ok(io) => io,
            Err(reason) => {
                self.job.shared.stop();
                let failure = Some(Failure::Ourselves(reason));
                return ShardOutcome { failure, ..ShardOutcome::default() };
            }
        };
        let teller = Arc::clone(&self.attendant);
        let index = self.index;
        let told_cpu = Arc::new(AtomicU64::new(0));
        let cpu_at_border = Arc::clone(&told_cpu);
        let progress = Box::new(move |mut progress| {
            if let Progress::Interval(told) = &mut progress {
                let cpu = thread_cpu();
                told.cpu = cpu - Nanos(cpu_at_border.swap(cpu.0, Ordering::Relaxed));
            }
            teller.progress(index, progress);
        });
        let shard = Shard::new(Arc::clone(&self.job), index, progress);
        self.drive(shard, &mut io, (herald, parting), &told_cpu)
    }

    /// The shard's epoll, in a descriptor table of its own where there are several shards.
    fn io(&self) -> Result<EpollIo, String> {
        if self.job.shards > 1 {
            // SAFETY: this thread has opened nothing yet; of what was opened before it uses
            // only its doorbell, which is kept. What it opens stays with it until it ends.
            #[expect(unsafe_code, reason = "a table per shard lifts the limit on open files")]
            let own = unsafe { descriptors::own_table(&[self.bell.as_fd()]) };
            match own {
                // Containers forbid it as a rule: then all shards live within one limit.
                Ok(()) | Err(Errno::PERM | Errno::NOSYS) => {}
                Err(errno) => return Err(format!("no descriptor table for a shard: {errno}")),
            }
        }
        EpollIo::with_doorbell(self.epoch, self.bell.clone())
            .map_err(|fault| format!("no epoll for a shard: {fault}"))
    }

    fn drive(
        &self,
        mut shard: Shard,
        io: &mut EpollIo,
        (mut herald, mut parting): (Option<Herald>, Option<Parting<'_>>),
        told_cpu: &AtomicU64,
    ) -> ShardOutcome {
        let mut cpu_before = thread_cpu();
        let (mut cpu, mut window_cpu) = (None, None);
        let mut ended = None;
        let mut phase = shard.phase();
        while shard.step(io) {
            if shard.is_past_window() && window_cpu.is_none() {
                window_cpu = Some(thread_cpu() - cpu_before);
                herald.iter().for_each(|herald| herald.tell(News::Ended(io.now())));
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
                    herald.iter().for_each(|herald| herald.tell(News::Began(io.now())));
                }
                Phase::Lingering(_) => cpu = Some(thread_cpu() - cpu_before),
                Phase::Settled => {
                    cpu.get_or_insert_with(|| thread_cpu() - cpu_before);
                    ended = Some(io.now());
                    self.attendant.progress(self.index, Progress::Settled);
                    if let Some(herald) = herald.take() {
                        herald.finish();
                        self.attendant.window_ended(io.now());
                    }
                    drop(parting.take());
                }
                _ => {}
            }
        }
        let cpu = cpu.unwrap_or_else(|| thread_cpu() - cpu_before);
        let ended = ended.unwrap_or_else(|| io.now());
        // Of a shard that failed nobody has heard it yet.
        self.attendant.progress(self.index, Progress::Settled);
        if let Some(herald) = herald.take() {
            herald.finish();
            self.attendant.window_ended(io.now());
        }
        io.await_answers();
        let window_cpu = window_cpu.unwrap_or(cpu);
        ShardOutcome { cpu, window_cpu, ended, bytes: io.bytes(), ..shard.outcome() }
    }
}

/// Processor time of the calling thread.
fn thread_cpu() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
