//! What stops a trial, from any thread and at any time, also while agents are awaited for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::Sender;

use super::events::Event;

/// How often a trial was asked to stop.
pub struct Stopping {
    level: Arc<AtomicU8>,
    wake: Sender<Event>,
}

impl Stopping {
    /// A trial that has not been asked to stop; `wake` is where it takes events from.
    pub fn new(wake: Sender<Event>) -> Stopping {
        Stopping { level: Arc::default(), wake }
    }

    /// What stops the trial: once to finish the record, twice to end it.
    pub fn stopper(&self) -> Box<dyn Fn() + Send + Sync> {
        let (level, wake) = (Arc::clone(&self.level), self.wake.clone());
        Box::new(move || {
            let _ = level.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |level| {
                Some(level.saturating_add(1))
            });
            // Between trials nothing listens.
            let _ = wake.send(Event::Stop);
        })
    }

    /// How often it was asked to.
    pub fn level(&self) -> u8 {
        self.level.load(Ordering::SeqCst)
    }
}
