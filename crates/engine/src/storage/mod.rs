//! The store of a reference server: what it confirms is in an append-only file before the
//! confirmation leaves. The loop calls it, so it is the same for every protocol: the server hands
//! over records during a turn ([`weigh_model::server::Outboxes::store`]), and before anything
//! staged in the turn is sent, one write and, if the policy asks for it, one sync cover all of them
//! (group commit).

mod disk;
mod record;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use weigh_model::server::{Record, StoreCounts};
use weigh_model::{Durability, Nanos};

pub use disk::{Disk, FileDisk, StoreError};
pub use record::{FILE_HEAD, HEAD_BYTES, Records, append, messages};

/// How a server is to store what it confirms.
#[derive(Clone)]
pub struct StoreSpec {
    /// Folder of the files, one for each shard and start: `store-SHARD-START.log`.
    pub folder: PathBuf,
    /// When they are synced.
    pub policy: StorePolicy,
    /// Called once by a shard whose store has failed, with the reason and what to do. The shard has
    /// sent no confirmation that depends on it, and sends nothing more.
    pub on_failure: Arc<dyn Fn(&str) + Send + Sync>,
}

/// When a store is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorePolicy {
    /// Never: the kernel decides.
    Never,
    /// Before each confirmation; one sync covers what arrived in one turn of the loop.
    Each,
    /// At the latest this time after a record was written.
    Every(Nanos),
}

impl StorePolicy {
    /// Returns the policy that gives this durability; `None` for `memory`, which needs no store.
    ///
    /// # Errors
    /// A durability that a reference server does not have.
    pub fn of(durability: Durability) -> Result<Option<StorePolicy>, String> {
        match durability {
            Durability::Memory => Ok(None),
            Durability::PageCache => Ok(Some(StorePolicy::Never)),
            Durability::Synced => Ok(Some(StorePolicy::Each)),
            Durability::SyncedEvery(time) => Ok(Some(StorePolicy::Every(time))),
            Durability::Unknown | Durability::Nothing | Durability::Replicated(_) => Err(format!(
                "a reference server cannot be {durability}: type memory, page-cache, fsync or \
                 fsync=100ms"
            )),
        }
    }
}

/// The store of one shard.
pub struct Store {
    disk: Box<dyn Disk>,
    policy: StorePolicy,
    /// Records that are not written yet.
    unwritten: Vec<u8>,
    /// Time at which what is written must be synced.
    sync_due: Option<Nanos>,
    counts: StoreCounts,
    /// Error of a write before its turn was over.
    early: Option<String>,
    has_failed: bool,
}

impl Store {
    /// A store on this disk.
    pub fn new(disk: Box<dyn Disk>, policy: StorePolicy) -> Store {
        let (unwritten, counts) = (FILE_HEAD.to_vec(), StoreCounts::default());
        Store { disk, policy, unwritten, sync_due: None, counts, early: None, has_failed: false }
    }

    /// Takes a record. It is written with the others of the turn, or at once if those are large.
    pub fn put(&mut self, record: Record<'_>) {
        if self.has_failed {
            return;
        }
        append(&mut self.unwritten, record);
        self.counts.records += 1;
        if self.unwritten.len() >= UNWRITTEN_BYTES_MAX
            && let Err(said) = self.write()
        {
            self.early.get_or_insert(said);
        }
    }

    /// Makes everything that was put as durable as the policy says. Only then may the confirmations
    /// of this turn be sent.
    ///
    /// # Errors
    /// A write or a sync that failed, once; what was put since the last commit must not be
    /// confirmed. The store is not used again: after a failed sync the kernel may have dropped the
    /// unwritten pages and marked them clean, so that a second sync would succeed without them
    /// (fsync(2), errors; <https://wiki.postgresql.org/wiki/Fsync_Errors>).
    pub fn commit(&mut self, now: Nanos) -> Result<(), String> {
        if self.has_failed || (self.unwritten.is_empty() && self.early.is_none()) {
            return Ok(());
        }
        let result = match self.early.take() {
            Some(said) => Err(said),
            None => self.write(),
        };
        let result = result.and_then(|()| match self.policy {
            StorePolicy::Never => Ok(()),
            StorePolicy::Each => self.sync(),
            StorePolicy::Every(time) => {
                self.sync_due.get_or_insert(now + time);
                Ok(())
            }
        });
        self.note(result)
    }

    /// Syncs if it is time to.
    ///
    /// # Errors
    /// As of [`Store::commit`].
    pub fn sync_if_due(&mut self, now: Nanos) -> Result<(), String> {
        if self.has_failed || self.sync_due.is_none_or(|due| due > now) {
            return Ok(());
        }
        let result = self.sync();
        self.note(result)
    }

    /// Time at which [`Store::sync_if_due`] is to be called.
    pub fn next_due(&self) -> Option<Nanos> {
        self.sync_due.filter(|_| !self.has_failed)
    }

    /// Writes and, unless the policy is never, syncs everything: the server ends.
    ///
    /// # Errors
    /// As of [`Store::commit`].
    pub fn finish(&mut self, now: Nanos) -> Result<(), String> {
        self.commit(now)?;
        if self.has_failed || self.sync_due.is_none() {
            return Ok(());
        }
        let result = self.sync();
        self.note(result)
    }

    /// True after a failure.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Counts so far.
    pub fn counts(&self) -> StoreCounts {
        self.counts
    }

    fn note(&mut self, result: Result<(), String>) -> Result<(), String> {
        self.has_failed |= result.is_err();
        result
    }

    fn write(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        let mut rest = &self.unwritten[..];
        while !rest.is_empty() {
            let written = self.disk.write(rest).map_err(|error| {
                let said = format!("cannot write to {}: {error}", self.disk.name());
                format!("{said}\nhelp: make room there, or choose another folder")
            })?;
            self.counts.writes += 1;
            self.counts.bytes += written as u64;
            rest = &rest[written..];
        }
        self.counts.write_ns += nanos_since(begun);
        self.unwritten.clear();
        self.unwritten.shrink_to(UNWRITTEN_BYTES_MAX);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        self.sync_due = None;
        self.disk.sync().map_err(|error| {
            format!(
                "cannot sync {}: {error}; what was written since the last sync may be lost, and a \
                 second sync would not report it\nhelp: check the disk (dmesg), then start again",
                self.disk.name()
            )
        })?;
        self.counts.syncs += 1;
        self.counts.sync_ns += nanos_since(begun);
        Ok(())
    }
}

fn nanos_since(begun: Instant) -> u64 {
    begun.elapsed().as_nanos() as u64
}

/// Records of one turn are written early beyond this size.
const UNWRITTEN_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
pub(crate) mod tests;
