//! The store of one shard: records are gathered during a turn of the loop, then written and synced
//! together.

use std::time::Instant;

use weigh_model::Nanos;
use weigh_model::server::{Record, StoreCounts};

use super::disk::Disk;
use super::record::{FILE_HEAD, append};
use super::spec::StorePolicy;

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
pub(super) const UNWRITTEN_BYTES_MAX: usize = 1 << 20;
