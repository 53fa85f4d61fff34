//! What the shards of one server have in common: all channels, and the events that one shard leaves
//! for the subscribers of another. One lock guards it, so that every channel has one order.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::channel::{Channel, Event};

/// All channels of a server.
#[derive(Debug)]
pub(crate) struct Hub {
    /// Events that each channel keeps for subscribers that come back; 0 for none.
    history: usize,
    shared: Mutex<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    channels: HashMap<u32, Channel>,
    /// Events for each shard.
    mail: Vec<Mailbox>,
}

#[derive(Debug, Default)]
struct Mailbox {
    events: Vec<Arc<Event>>,
    bytes: usize,
}

/// Result of [`Hub::publish`].
#[derive(Debug, Default)]
pub(crate) struct Published {
    /// The event; `None` if no subscriber gets it and nothing keeps it.
    pub(crate) event: Option<Arc<Event>>,
    /// Subscribers on all shards.
    pub(crate) receivers: u64,
    /// Shards that have to be notified.
    pub(crate) shards: Vec<u16>,
    /// Subscribers of shards whose mail is full.
    pub(crate) dropped: u64,
}

impl Hub {
    pub(crate) fn new(history: usize) -> Hub {
        Hub { history, shared: Mutex::default() }
    }

    /// True if channels keep events for subscribers that come back.
    pub(crate) fn keeps_events(&self) -> bool {
        self.history > 0
    }

    /// A shard that panicked has been reported; the others continue with the existing state.
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the next event of a channel, keeps it, and leaves it for the other shards. `encode`
    /// gets its number.
    pub(crate) fn publish(
        &self,
        channel: u32,
        shard: u16,
        encode: impl FnOnce(u64, &mut Vec<u8>),
    ) -> Published {
        let mut shared = self.shared();
        let Shared { channels, mail } = &mut *shared;
        if self.history == 0 && !channels.contains_key(&channel) {
            return Published::default();
        }
        let own = channels.entry(channel).or_default();
        own.last += 1;
        let mut bytes = Vec::new();
        encode(own.last, &mut bytes);
        let event = Arc::new(Event { channel, id: own.last, bytes });
        own.keep(&event, self.history);
        let mut published = Published::default();
        for (place, count) in own.subscribers.iter().enumerate().filter(|(_, count)| **count > 0) {
            published.receivers += u64::from(*count);
            if place == usize::from(shard) {
                continue;
            }
            if mail.len() <= place {
                mail.resize_with(place + 1, Mailbox::default);
            }
            if mail[place].bytes > MAIL_BYTES_MAX {
                published.dropped += u64::from(*count);
                continue;
            }
            mail[place].bytes += event.bytes.len();
            mail[place].events.push(Arc::clone(&event));
            if mail[place].events.len() == 1 {
                published.shards.push(place as u16);
            }
        }
        published.event = Some(event);
        published
    }

    /// Counts a subscriber in. Returns the number of the newest event, what it gets of the history
    /// behind `after`, and how many events that it asks for are no longer kept.
    pub(crate) fn enter(
        &self,
        channel: u32,
        shard: u16,
        after: Option<u64>,
    ) -> (u64, Vec<Arc<Event>>, u64) {
        let mut shared = self.shared();
        let own = shared.channels.entry(channel).or_default();
        own.count(shard, true);
        let (events, missed) = after.map_or_else(Default::default, |after| own.since(after));
        (own.last, events, missed)
    }

    /// Counts a subscriber out.
    pub(crate) fn leave(&self, channel: u32, shard: u16) {
        let mut shared = self.shared();
        if let Some(own) = shared.channels.get_mut(&channel) {
            own.count(shard, false);
            // Numbers go on where a history is kept, so that no subscriber sees one twice.
            if self.history == 0 && own.is_empty() {
                shared.channels.remove(&channel);
            }
        }
    }

    /// Takes what other shards left for one.
    pub(crate) fn take_mail(&self, shard: u16) -> Vec<Arc<Event>> {
        let mut shared = self.shared();
        let mailbox = shared.mail.get_mut(usize::from(shard)).map(std::mem::take);
        mailbox.map_or_else(Vec::new, |mailbox| mailbox.events)
    }
}

/// Bytes that wait for another shard.
const MAIL_BYTES_MAX: usize = 256 << 20;
