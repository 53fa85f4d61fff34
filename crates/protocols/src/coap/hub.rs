//! Shards of one server leave messages for each other's observers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use weigh_model::server::Outboxes;

/// State shared by the shards of one server.
#[derive(Clone, Default)]
pub(super) struct Hub {
    boxes: Arc<RwLock<Vec<Arc<Mailbox>>>>,
    /// Observers on all shards.
    observers: Arc<AtomicU32>,
}

/// The place of one shard.
#[derive(Default)]
pub(super) struct Mailbox {
    shard: u16,
    observers: AtomicU32,
    /// Messages one behind the other: list, length, body.
    posts: Mutex<Vec<u8>>,
}

impl Hub {
    /// A shard joins.
    pub(super) fn join(&self, shard: u16) -> Arc<Mailbox> {
        let own = Arc::new(Mailbox { shard, ..Mailbox::default() });
        self.boxes.write().unwrap_or_else(PoisonError::into_inner).push(own.clone());
        own
    }

    /// An observer of a shard came.
    pub(super) fn came(&self, own: &Mailbox) {
        own.observers.fetch_add(1, Ordering::AcqRel);
        self.observers.fetch_add(1, Ordering::AcqRel);
    }

    /// That many observers of a shard went.
    pub(super) fn went(&self, own: &Mailbox, count: usize) {
        own.observers.fetch_sub(count as u32, Ordering::AcqRel);
        self.observers.fetch_sub(count as u32, Ordering::AcqRel);
    }

    /// Leaves a message for the observers of other shards; `here` observe on this one.
    pub(super) fn post(
        &self,
        own: &Mailbox,
        here: usize,
        list: u32,
        body: &[u8],
        out: &mut dyn Outboxes,
    ) {
        if self.observers.load(Ordering::Acquire) as usize == here {
            return;
        }
        let boxes = self.boxes.read().unwrap_or_else(PoisonError::into_inner);
        for other in boxes.iter().filter(|other| other.shard != own.shard) {
            if other.observers.load(Ordering::Acquire) == 0 {
                continue;
            }
            let mut posts = other.posts.lock().unwrap_or_else(PoisonError::into_inner);
            let was_empty = posts.is_empty();
            posts.extend_from_slice(&list.to_be_bytes());
            posts.extend_from_slice(&(body.len() as u32).to_be_bytes());
            posts.extend_from_slice(body);
            if was_empty {
                out.notify_shard(other.shard);
            }
        }
    }
}

impl Mailbox {
    /// Takes what was left here.
    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.posts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The first of the messages that [`Mailbox::take`] returned, and the others.
pub(super) fn split(posts: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (list, rest) = posts.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (body, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    Some((u32::from_be_bytes(*list), body, rest))
}
