//! Observes a process tree or a control group from its own thread: a sample every period,
//! and on request.
//!
//! The thread runs where the thread that starts it may run, so start it from one that is pinned
//! to other cores than the target.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::ObserveError;
use crate::cpu::{Accounting, HostCpu, monotonic_ns, own_thread_ns};
use crate::memory::Memory;
use crate::subject::Subject;

/// One sample of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Its time on `CLOCK_MONOTONIC` ([`monotonic_ns`]).
    pub at_ns: u64,
    /// Processor time of the tree since the sampler started.
    pub cpu_ns: u64,
    /// Number of processes.
    pub processes: u32,
    /// Number of threads.
    pub threads: u32,
    /// Memory; with the proportional set only in requested samples.
    pub memory: Memory,
    /// Totals of the host; zeros if unknown.
    pub host: HostCpu,
}

/// A thread that samples a tree until it is stopped or dropped.
#[derive(Debug)]
pub struct Sampler {
    ask: Option<Sender<Sender<Sample>>>,
    thread: Option<JoinHandle<()>>,
    seen: Arc<Mutex<Recording>>,
}

impl Sampler {
    /// Starts to watch the tree below `root`, which was given `cores` cores, every `period`.
    ///
    /// # Errors
    /// [`ObserveError::NoProcess`] if there is no such process, [`ObserveError::Unreadable`] if
    /// no thread could be started.
    pub fn start(root: u32, cores: u32, period: Duration) -> Result<Sampler, ObserveError> {
        Sampler::start_of(&[root], cores, period)
    }

    /// Starts to watch the trees below several roots together.
    ///
    /// # Errors
    /// As [`Sampler::start`].
    pub fn start_of(roots: &[u32], cores: u32, period: Duration) -> Result<Sampler, ObserveError> {
        Sampler::watch(Subject::trees(roots)?, cores, period)
    }

    /// Starts to watch a subject that was given `cores` cores, every `period`.
    ///
    /// # Errors
    /// [`ObserveError::Unreadable`] if no thread could be started.
    pub fn watch(subject: Subject, cores: u32, period: Duration) -> Result<Sampler, ObserveError> {
        let (ask, asked) = channel();
        let period = period.max(Duration::from_millis(1));
        let seen = Arc::new(Mutex::new(Recording::new(cores.max(1), period)));
        let recording = Arc::clone(&seen);
        let thread = std::thread::Builder::new()
            .name("weigh-sampler".to_owned())
            .spawn(move || watch(subject, period, &asked, &recording))
            .map_err(|error| ObserveError::Unreadable { path: "a new thread".into(), error })?;
        Ok(Sampler { ask: Some(ask), thread: Some(thread), seen })
    }

    /// Returns a reader of the recording while it grows. A reader takes no sample and delays none
    /// by more than
    /// a short copy.
    pub fn so_far(&self) -> SoFar {
        SoFar(Arc::clone(&self.seen))
    }

    /// Takes a sample now, with the proportional memory; it is part of the recording. Mark the
    /// borders of a window with it.
    ///
    /// # Errors
    /// If the sampler's thread has ended, which it does not do by itself.
    pub fn sample(&self) -> Result<Sample, ObserveError> {
        let gone = || ObserveError::Unexpected("the sampler's thread".to_owned());
        let (reply, answer) = channel();
        let ask = self.ask.as_ref().ok_or_else(gone)?;
        ask.send(reply).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())
    }

    /// Ends the watch and returns the recording.
    ///
    /// # Errors
    /// If the sampler's thread has panicked.
    pub fn stop(mut self) -> Result<Recording, ObserveError> {
        self.ask = None;
        let gone = || ObserveError::Unexpected("the sampler's thread".to_owned());
        self.thread.take().ok_or_else(gone)?.join().map_err(|_| gone())?;
        self.seen.lock().map(|seen| seen.clone()).map_err(|_| gone())
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has already been printed.
            let _ = thread.join();
        }
    }
}

/// Samples up to now.
#[derive(Clone, Debug)]
pub struct SoFar(Arc<Mutex<Recording>>);

impl SoFar {
    /// See [`Recording::since`]; `None` if the sampler's thread has panicked.
    pub fn since(&self, from_ns: u64) -> Option<Recording> {
        self.0.lock().ok().map(|seen| seen.since(from_ns))
    }
}

/// All samples of a sampler.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The samples in the order of time.
    pub samples: Vec<Sample>,
    /// Cores the target was given.
    pub cores: u32,
    /// The coarsest source of processor time.
    pub accounting: Accounting,
    /// Processor time the sampler's thread has used itself.
    pub own_cpu_ns: u64,
    /// When the subject ended, if it did.
    pub gone_ns: Option<u64>,
    /// Number of samples taken.
    pub period: Duration,
}

/// Resources that a tree used in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Length of the window.
    pub wall_ns: u64,
    /// Processor time in it.
    pub cpu_ns: u64,
    /// Mean load in percent of the cores the target was given.
    pub percent_mean: f64,
    /// Highest load between two samples at least half a period apart, in the same percent.
    pub percent_max: f64,
    /// Highest memory sampled: proportional where that was known, else resident.
    pub memory_bytes_max: u64,
    /// Highest resident memory sampled.
    pub rss_bytes_max: u64,
    /// Samples in the window.
    pub samples: usize,
    /// Source of the processor time.
    pub accounting: Accounting,
    /// The sampler's own processor time over the whole recording.
    pub own_cpu_ns: u64,
    /// Processor time of the whole host in the window, by kind, as the kernel's samples have it.
    pub host: HostCpu,
    /// Processor time of the whole host in the window ([`HostCpu::used_ns`]).
    pub host_used_ns: u64,
}

impl Recording {
    /// An empty recording.
    fn new(cores: u32, period: Duration) -> Recording {
        let accounting = Accounting::ProcessClock;
        Recording { samples: Vec::new(), cores, accounting, own_cpu_ns: 0, gone_ns: None, period }
    }

    /// The part that windows from `from_ns` on need: the last sample up to then and all later
    /// ones, and all samples that know the proportional memory.
    pub fn since(&self, from_ns: u64) -> Recording {
        let later = self.samples.iter().rev().take_while(|sample| sample.at_ns > from_ns).count();
        let first = (self.samples.len() - later).saturating_sub(1);
        let (before, rest) = self.samples.split_at(first);
        let asked_for = before.iter().filter(|sample| sample.memory.pss_bytes.is_some());
        let samples = asked_for.chain(rest).copied().collect();
        let Recording { cores, accounting, own_cpu_ns, gone_ns, period, .. } = *self;
        Recording { samples, cores, accounting, own_cpu_ns, gone_ns, period }
    }

    /// True once nothing up to `at_ns` can be added: a sample was taken then or later, or the
    /// subject
    /// has ended.
    pub fn reaches(&self, at_ns: u64) -> bool {
        self.gone_ns.is_some() || self.samples.last().is_some_and(|last| last.at_ns >= at_ns)
    }

    /// Resources used between two instants of [`monotonic_ns`]; `None` without two samples
    /// around or inside them. Between samples processor time is assumed to grow linearly.
    pub fn window(&self, from_ns: u64, to_ns: u64) -> Option<Usage> {
        let from_ns = from_ns.max(self.samples.first()?.at_ns);
        let to_ns = to_ns.min(self.samples.last()?.at_ns);
        let wall_ns = to_ns.checked_sub(from_ns).filter(|wall| *wall > 0)?;
        let cpu_ns = self.cpu_at(to_ns)?.saturating_sub(self.cpu_at(from_ns)?);
        let inside: Vec<&Sample> =
            self.samples.iter().filter(|s| (from_ns..=to_ns).contains(&s.at_ns)).collect();
        let percent_mean = self.percent(cpu_ns, wall_ns);
        let (first, last) = (self.nearest(from_ns)?, self.nearest(to_ns)?);
        Some(Usage {
            wall_ns,
            cpu_ns,
            percent_mean,
            percent_max: self.percent_max(&inside).max(percent_mean),
            memory_bytes_max: memory_max(&inside),
            rss_bytes_max: inside.iter().map(|s| s.memory.rss_bytes).max().unwrap_or(0),
            samples: inside.len(),
            accounting: self.accounting,
            own_cpu_ns: self.own_cpu_ns,
            host: last.host.since(&first.host),
            host_used_ns: used_ns(first, last, wall_ns),
        })
    }

    fn note(&mut self, sample: Sample, accounting: Accounting, is_gone: bool) {
        self.accounting = self.accounting.max(accounting);
        self.gone_ns = self.gone_ns.or(is_gone.then_some(sample.at_ns));
        self.samples.push(sample);
        if self.samples.len() >= SAMPLES_MAX {
            self.samples = thinned(std::mem::take(&mut self.samples));
            self.period *= 2;
        }
    }

    fn cpu_at(&self, at_ns: u64) -> Option<u64> {
        let after = self.samples.iter().position(|sample| sample.at_ns >= at_ns)?;
        let right = &self.samples[after];
        if right.at_ns == at_ns || after == 0 {
            return Some(right.cpu_ns);
        }
        let left = &self.samples[after - 1];
        let share = (at_ns - left.at_ns) as f64 / (right.at_ns - left.at_ns) as f64;
        Some(left.cpu_ns + ((right.cpu_ns - left.cpu_ns) as f64 * share).round() as u64)
    }

    fn nearest(&self, at_ns: u64) -> Option<&Sample> {
        self.samples.iter().min_by_key(|sample| sample.at_ns.abs_diff(at_ns))
    }

    fn percent(&self, cpu_ns: u64, wall_ns: u64) -> f64 {
        cpu_ns as f64 * 100.0 / (wall_ns as f64 * f64::from(self.cores))
    }

    fn percent_max(&self, inside: &[&Sample]) -> f64 {
        let shortest = u64::try_from(self.period.as_nanos() / 2).unwrap_or(u64::MAX);
        let mut highest: f64 = 0.0;
        let mut left = 0;
        for right in 1..inside.len() {
            let wall_ns = inside[right].at_ns - inside[left].at_ns;
            if wall_ns >= shortest.max(1) {
                let cpu_ns = inside[right].cpu_ns - inside[left].cpu_ns;
                highest = highest.max(self.percent(cpu_ns, wall_ns));
                left = right;
            }
        }
        highest
    }
}

/// The highest sample. The frequent ones have only resident memory: from it is subtracted the least
/// by which resident memory exceeded proportional memory in the samples that have both.
/// What the whole host used between two samples, for a window of that length, which begins and ends
/// within a period of them.
fn used_ns(first: &Sample, last: &Sample, wall_ns: u64) -> u64 {
    let between_ns = last.at_ns - first.at_ns;
    let used_ns = last.host.since(&first.host).used_ns(between_ns);
    (used_ns as f64 * wall_ns as f64 / between_ns.max(1) as f64) as u64
}

fn memory_max(inside: &[&Sample]) -> u64 {
    let known = inside.iter().filter(|sample| sample.memory.pss_bytes.is_some());
    let proportional = known.clone().map(|sample| sample.memory.bytes()).max();
    let shared = known.map(|s| s.memory.rss_bytes.saturating_sub(s.memory.bytes())).min();
    let resident = inside.iter().map(|sample| sample.memory.rss_bytes).max().unwrap_or(0);
    match (proportional, shared) {
        (Some(proportional), Some(shared)) => proportional.max(resident.saturating_sub(shared)),
        _ => resident,
    }
}

fn watch(
    mut subject: Subject,
    mut period: Duration,
    asked: &Receiver<Sender<Sample>>,
    seen: &Mutex<Recording>,
) {
    let mut due = Instant::now();
    loop {
        let wanted = asked.recv_timeout(due.saturating_duration_since(Instant::now()));
        let (sample, accounting, is_gone) = look(&mut subject, wanted.is_ok());
        let Ok(mut recording) = seen.lock() else { return };
        recording.note(sample, accounting, is_gone);
        match wanted {
            // The caller may have gone; the sample is recorded anyway.
            Ok(reply) => drop(reply.send(sample)),
            // A missed period is skipped, not repeated.
            Err(RecvTimeoutError::Timeout) => due = (due + period).max(Instant::now()),
            Err(RecvTimeoutError::Disconnected) => {
                recording.own_cpu_ns = own_thread_ns();
                return;
            }
        }
        period = recording.period;
    }
}

/// Every other of the samples that were not requested. The highest memory of each one left out is
/// kept in the next one, so that a watch of any length takes the same memory.
pub fn thinned(samples: Vec<Sample>) -> Vec<Sample> {
    let last = samples.len().saturating_sub(1);
    let mut left: Vec<Sample> = Vec::with_capacity(SAMPLES_MAX);
    let mut rss_bytes_max = 0;
    let mut was_left_out = true;
    for (place, mut sample) in samples.into_iter().enumerate() {
        let is_border = sample.memory.pss_bytes.is_some() || place == 0 || place == last;
        was_left_out = !is_border && !was_left_out;
        rss_bytes_max = sample.memory.rss_bytes.max(rss_bytes_max);
        if was_left_out {
            continue;
        }
        // A border's resident memory is taken together with its proportional memory.
        if sample.memory.pss_bytes.is_none() {
            sample.memory.rss_bytes = rss_bytes_max;
            rss_bytes_max = 0;
        }
        left.push(sample);
    }
    left
}

fn look(subject: &mut Subject, with_proportional: bool) -> (Sample, Accounting, bool) {
    let at_ns = monotonic_ns();
    let look = subject.look(with_proportional);
    let sample = Sample {
        at_ns,
        cpu_ns: look.reading.cpu_ns,
        processes: look.reading.processes,
        threads: look.reading.threads,
        memory: look.memory,
        host: HostCpu::read().unwrap_or_default(),
    };
    (sample, look.reading.accounting, look.is_gone)
}

/// Samples kept, 130 bytes each: some 5 MB. With more the period doubles.
pub const SAMPLES_MAX: usize = 40_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(points: &[(u64, u64, u64)]) -> Recording {
        let sample = |&(at_ns, cpu_ns, rss_bytes): &(u64, u64, u64)| Sample {
            at_ns,
            cpu_ns,
            processes: 1,
            threads: 1,
            memory: Memory { rss_bytes, pss_bytes: None },
            host: HostCpu::default(),
        };
        Recording {
            samples: points.iter().map(sample).collect(),
            cores: 2,
            accounting: Accounting::Ticks,
            own_cpu_ns: 3,
            gone_ns: None,
            period: Duration::from_nanos(100),
        }
    }

    #[test]
    fn percent_is_of_the_cores_given() {
        let recording = recording(&[(0, 0, 1), (100, 200, 9), (200, 200, 4), (300, 300, 2)]);
        let usage = recording.window(0, 300).unwrap();
        assert_eq!((usage.cpu_ns, usage.wall_ns, usage.samples), (300, 300, 4));
        assert_eq!((usage.percent_mean, usage.percent_max), (50.0, 100.0));
        assert_eq!((usage.memory_bytes_max, usage.own_cpu_ns), (9, 3));
    }

    #[test]
    fn borders_between_samples_are_interpolated() {
        let recording = recording(&[(0, 0, 1), (100, 100, 1), (200, 300, 1)]);
        assert_eq!(recording.window(50, 150).unwrap().cpu_ns, 150);
        assert_eq!(recording.window(50, 900).unwrap().cpu_ns, 250);
        assert_eq!(recording.window(300, 400), None);
    }

    #[test]
    fn samples_close_together_make_no_peak() {
        let recording = recording(&[(0, 0, 1), (100, 50, 1), (101, 60, 1), (200, 100, 1)]);
        let usage = recording.window(0, 200).unwrap();
        assert!(usage.percent_max < 30.0, "{usage:?}");
    }

    #[test]
    fn shared_pages_are_taken_off_the_frequent_samples() {
        let mut recording = recording(&[(0, 0, 100), (100, 0, 300), (200, 0, 200)]);
        recording.samples[0].memory.pss_bytes = Some(60);
        assert_eq!(recording.window(0, 200).unwrap().memory_bytes_max, 260);
    }

    #[test]
    fn a_thinned_watch_keeps_borders_and_the_most_memory() {
        let points: Vec<(u64, u64, u64)> =
            (0..1001).map(|n| (n * 100, n * 50, if n == 501 { 900 } else { 7 })).collect();
        let mut whole = recording(&points);
        whole.samples[300].memory.pss_bytes = Some(5);
        let mut thin = whole.clone();
        for _ in 0..3 {
            thin.samples = thinned(thin.samples);
            thin.period *= 2;
        }
        assert!(thin.samples.len() < 200, "{}", thin.samples.len());
        assert!(thin.samples.iter().any(|sample| sample.at_ns == 30_000));
        let (before, after) = (whole.window(0, 100_000), thin.window(0, 100_000));
        let (before, after) = (before.unwrap(), after.unwrap());
        assert_eq!((after.cpu_ns, after.rss_bytes_max), (before.cpu_ns, 900));
        assert_eq!(after.percent_max, before.percent_max);
    }

    /// Of 1,000 samples a reader gets those that its window needs, with the same figures.
    #[test]
    fn a_window_is_the_same_while_the_recording_grows() {
        let points: Vec<(u64, u64, u64)> = (0..1000).map(|n| (n * 100, n * n, 7 + n)).collect();
        let mut whole = recording(&points);
        whole.samples[3].memory.pss_bytes = Some(5);
        let part = whole.since(98_750);
        assert_eq!((part.samples.len(), part.samples[1].at_ns), (14, 98_700));
        assert_eq!(part.window(98_750, 99_850), whole.window(98_750, 99_850));
        assert!(part.reaches(99_900) && !part.reaches(99_901));
        assert_eq!(whole.since(0).samples.len(), 1000);
        assert_eq!(whole.since(200_000).samples.len(), 2);
        let gone = Recording { gone_ns: Some(99_900), ..part };
        assert!(gone.reaches(200_000));
        assert!(!recording(&[]).since(5).reaches(0));
    }

    #[test]
    fn asked_for_samples_are_recorded_too() {
        let sampler = Sampler::start(std::process::id(), 1, Duration::from_millis(50)).unwrap();
        let first = sampler.sample().unwrap();
        let last = sampler.sample().unwrap();
        let so_far = sampler.so_far().since(first.at_ns).unwrap();
        assert!(so_far.reaches(last.at_ns) && so_far.window(first.at_ns, last.at_ns).is_some());
        let recording = sampler.stop().unwrap();
        assert!(recording.samples.len() >= 3);
        assert!(recording.window(first.at_ns, last.at_ns).is_some());
        assert!(recording.own_cpu_ns > 0);
    }
}
