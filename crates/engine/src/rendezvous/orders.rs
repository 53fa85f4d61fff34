//! Orders to the shards of one process, read at every step: plain atomics, so that looking costs
//! a load and no call.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Orders to stop, to give up and to keep connections. The shards of a process and its user write
/// them, and so does an implementation of [`Rendezvous`](super::Rendezvous) for other hosts. A
/// shard that waits for its sockets notices an order within 100 ms, earlier if it is woken.
#[derive(Debug, Default)]
pub struct Orders {
    stop: AtomicU8,
    has_failed: AtomicBool,
    is_heard: AtomicBool,
    is_held_here: AtomicBool,
    is_held_elsewhere: AtomicBool,
}

impl Orders {
    /// Asks all shards to finish the record: nothing more is sent, what is in flight is awaited
    /// for a moment. A second call ends them at once.
    pub fn stop(&self) {
        let _ = self.stop.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |level| {
            Some(level.saturating_add(1))
        });
    }

    /// Passes on that another host was asked to stop this many times. Levels do not add up: the
    /// same order over several hosts is one.
    pub fn raise_stop(&self, level: u8) {
        self.stop.fetch_max(level, Ordering::Relaxed);
    }

    /// Returns the number of calls of [`Orders::stop`], on the host that was asked most often.
    pub fn stop_level(&self) -> u8 {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the trial without a result, because a shard failed here or on another host. It cannot
    /// be taken back.
    pub fn give_up(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// True once the trial has failed.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Notes that the target has sent a byte to a session of this process.
    pub fn note_heard(&self) {
        self.is_heard.store(true, Ordering::Relaxed);
    }

    /// True once the target has sent a byte to a session of this process.
    pub fn is_heard(&self) -> bool {
        self.is_heard.load(Ordering::Relaxed)
    }

    /// Sets whether an observer of this process reads what connections cost: while one does, they
    /// stay as they are.
    pub fn hold_here(&self, is_held: bool) {
        self.is_held_here.store(is_held, Ordering::SeqCst);
    }

    /// Sets whether an observer on another host does. It must be set before the load starts if it
    /// is to be set at all: shards that are done would not wait for it.
    pub fn hold_elsewhere(&self, is_held: bool) {
        self.is_held_elsewhere.store(is_held, Ordering::SeqCst);
    }

    /// True while an observer of this process needs the connections, for the other hosts to hear.
    pub fn is_held_here(&self) -> bool {
        self.is_held_here.load(Ordering::SeqCst)
    }

    /// True while connections must stay as they are because their cost is being read somewhere.
    pub fn is_held(&self) -> bool {
        self.is_held_here() || self.is_held_elsewhere.load(Ordering::SeqCst)
    }
}
