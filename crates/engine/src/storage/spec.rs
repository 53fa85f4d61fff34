//! What a server is asked to store: where, and when it is synced.

use std::path::PathBuf;
use std::sync::Arc;

use weigh_model::{Durability, Nanos};

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
