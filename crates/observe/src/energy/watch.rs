//! Reads a meter from its own thread: every period, and on request.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::meter::Meter;
use super::readings::{MeterError, Reading};
use super::track::Track;
use crate::ObserveError;
use crate::cpu::own_thread_ns;

/// A thread that reads a meter until it is stopped or dropped.
#[derive(Debug)]
pub struct MeterWatch {
    ask: Option<Sender<Option<Sender<()>>>>,
    thread: Option<JoinHandle<(Meter, Track)>>,
}

impl MeterWatch {
    /// Starts to read `meter`; `settle` runs first in the new thread, which should not run where
    /// the load or the target does. A watch of about `length` gives at most [`READINGS_MAX`]
    /// readings.
    ///
    /// # Errors
    /// If no thread could be started.
    pub fn start(
        meter: Meter,
        length: Duration,
        settle: impl FnOnce() + Send + 'static,
    ) -> Result<MeterWatch, ObserveError> {
        let (ask, asked) = channel();
        let period = meter.facts().period.max(length / READINGS_MAX);
        let read = move || {
            settle();
            watch(meter, period, &asked)
        };
        let thread = std::thread::Builder::new()
            .name("weigh-meter".to_owned())
            .spawn(read)
            .map_err(|error| ObserveError::Unreadable { path: "a new thread".into(), error })?;
        Ok(MeterWatch { ask: Some(ask), thread: Some(thread) })
    }

    /// Reads now and returns after that; marks the borders of a window.
    pub fn look(&self) {
        let (reply, answer) = channel();
        if let Some(ask) = &self.ask
            && ask.send(Some(reply)).is_ok()
        {
            // A meter that has vanished does not answer any more; its track says so.
            let _ = answer.recv();
        }
    }

    /// Requests a reading without waiting for it: for threads that must not wait.
    pub fn poke(&self) {
        if let Some(ask) = &self.ask {
            // Without the thread there are no more readings; the track says so.
            let _ = ask.send(None);
        }
    }

    /// Reads a last time and returns meter and readings.
    ///
    /// # Errors
    /// If the thread has panicked.
    pub fn stop(mut self) -> Result<(Meter, Track), ObserveError> {
        self.ask = None;
        let gone = || ObserveError::Unexpected("the meter's thread".to_owned());
        self.thread.take().ok_or_else(gone)?.join().map_err(|_| gone())
    }
}

impl Drop for MeterWatch {
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has already been printed.
            let _ = thread.join();
        }
    }
}

fn watch(
    mut meter: Meter,
    period: Duration,
    asked: &Receiver<Option<Sender<()>>>,
) -> (Meter, Track) {
    let mut readings: Vec<Reading> = Vec::new();
    let mut lost: Option<MeterError> = None;
    let mut due = Instant::now();
    loop {
        let wanted = asked.recv_timeout(due.saturating_duration_since(Instant::now()));
        if lost.is_none() {
            match meter.read() {
                // Two readings at one moment count as one.
                Ok(reading) if readings.last().is_some_and(|own| own.at_ns >= reading.at_ns) => {}
                Ok(reading) => readings.push(reading),
                Err(error) => lost = Some(error),
            }
        }
        match wanted {
            Ok(reply) => drop(reply.map(|reply| reply.send(()))),
            // A missed period is skipped, not repeated.
            Err(RecvTimeoutError::Timeout) => due = (due + period).max(Instant::now()),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let track = Track::new(meter.facts().clone(), &readings, lost);
    (meter, track.with_own_cpu(own_thread_ns()))
}

/// Readings of a trial, 56 bytes each and as many for their curves: some 60 MB.
pub const READINGS_MAX: u32 = 500_000;
