//! Samples the load of some cores at an interval, of all processes together, as programs do that
//! show the load of a machine. It uses `/proc/stat`, which counts in clock ticks (10 ms): over
//! 1.5 s a figure is good to about one percent.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::ObserveError;
use crate::cpu::{HostCpu, monotonic_ns};

/// The kernel's counts for the cores at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Time of the sample, on `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Time of all of the cores since they were started.
    pub cores: HostCpu,
}

/// A thread that samples until the end of what it watches, or until it is dropped.
#[derive(Debug)]
pub struct CoresWatch {
    until: Option<Sender<u64>>,
    thread: Option<JoinHandle<Vec<Look>>>,
}

impl CoresWatch {
    /// Samples these cores now, and then every `every`.
    ///
    /// # Errors
    /// If the kernel does not report one of them, or no thread could be started.
    pub fn begin(cores: Vec<usize>, every: Duration) -> Result<CoresWatch, ObserveError> {
        let first = look(&cores)?;
        let (until, asked) = channel();
        let thread = std::thread::Builder::new()
            .name("weigh-cores".to_owned())
            .spawn(move || watch(|| look(&cores), first, every.max(EVERY_MIN), &asked))
            .map_err(|error| ObserveError::Unreadable { path: "a new thread".into(), error })?;
        Ok(CoresWatch { until: Some(until), thread: Some(thread) })
    }

    /// Waits for the first sample at or after `until_ns` and returns all samples.
    pub fn end(mut self, until_ns: u64) -> Vec<Look> {
        if let Some(until) = self.until.take() {
            // A thread that has ended has left its samples behind.
            let _ = until.send(until_ns);
        }
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for CoresWatch {
    fn drop(&mut self) {
        self.until = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has already been printed.
            let _ = thread.join();
        }
    }
}

fn watch(
    mut look: impl FnMut() -> Result<Look, ObserveError>,
    first: Look,
    every: Duration,
    asked: &Receiver<u64>,
) -> Vec<Look> {
    let mut looks = vec![first];
    let mut due = Instant::now() + every;
    let mut until_ns = None;
    loop {
        let wait = due.saturating_duration_since(Instant::now());
        match asked.recv_timeout(wait) {
            Ok(until) => until_ns = Some(until),
            Err(RecvTimeoutError::Timeout) => {}
            // The request is complete: what is left is to wait for the next sample.
            Err(RecvTimeoutError::Disconnected) if until_ns.is_some() => std::thread::sleep(wait),
            Err(RecvTimeoutError::Disconnected) => return looks,
        }
        let is_seen = |looks: &[Look]| {
            looks.last().zip(until_ns).is_some_and(|(last, until)| last.at_ns >= until)
        };
        if is_seen(&looks) {
            return looks;
        }
        if Instant::now() < due {
            continue;
        }
        match look() {
            Ok(look) => looks.push(look),
            Err(_) => return looks,
        }
        // From the sample that was made, not from the one that was due: a thread woken late would
        // otherwise sample again at once, in a window that is almost empty.
        due = Instant::now() + every;
        if is_seen(&looks) {
            return looks;
        }
    }
}

fn look(cores: &[usize]) -> Result<Look, ObserveError> {
    let cores = HostCpu::read_cores(cores)?;
    Ok(Look { at_ns: monotonic_ns(), cores })
}

/// Below it two samples may fall into one clock tick.
const EVERY_MIN: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_look_is_after_the_end_and_none_comes_after_it() {
        let watch = CoresWatch::begin(vec![0], Duration::from_millis(40)).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let until_ns = monotonic_ns() + 60_000_000;
        let looks = watch.end(until_ns);
        let [.., before, last] = looks.as_slice() else { panic!("{looks:?}") };
        assert!(last.at_ns >= until_ns && before.at_ns < until_ns, "{looks:?}");
        assert!(looks.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
        let used = last.cores.since(&looks[0].cores);
        assert!(used.all_ns() > 0, "{used:?}");
    }

    #[test]
    fn the_window_after_a_late_look_is_no_shorter_than_others() {
        let every = Duration::from_millis(20);
        let (until, asked) = channel();
        until.send(monotonic_ns() + 100_000_000).unwrap();
        let mut is_late = true;
        let late = || {
            if std::mem::take(&mut is_late) {
                std::thread::sleep(3 * every);
            }
            look(&[0])
        };
        let looks = watch(late, look(&[0]).unwrap(), every, &asked);
        assert!(looks.len() > 2, "{looks:?}");
        for pair in looks.windows(2) {
            assert!(pair[1].at_ns - pair[0].at_ns >= every.as_nanos() as u64, "{looks:?}");
        }
    }

    #[test]
    fn an_end_that_was_seen_already_is_not_waited_for() {
        let watch = CoresWatch::begin(vec![0], Duration::from_secs(3_600)).unwrap();
        assert_eq!(watch.end(0).len(), 1);
    }

    #[test]
    fn cores_that_are_not_there_are_told() {
        assert!(CoresWatch::begin(vec![99_999], Duration::from_secs(1)).is_err());
        drop(CoresWatch::begin(vec![0], Duration::from_secs(3_600)).unwrap());
    }
}
