//! State shared by the shards of one server: keys, channels, blocked reads, and what the shards
//! leave for each other. One lock guards it: Redis executes commands one after the other too.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use weigh_model::Nanos;

use super::blocked::{Blocked, Read};
use super::channels::Channels;
use super::place::{Key, Place, Refusal, Turn};
use super::rules::Rules;
use super::stream::Stream;
use crate::server_counts::ServerCounts;

/// Everything that the shards have in common.
pub(in crate::redis) struct World {
    pub(super) rules: Rules,
    pub(super) keys: HashMap<Key, Value>,
    /// Approximate memory of all keys.
    pub(super) bytes: usize,
    pub(super) channels: Channels,
    pub(super) blocked: Blocked,
    /// Mail for each shard.
    mail: Vec<Mailbox>,
    pub(super) census: ServerCounts,
    /// Subscribers that did not read and were disconnected.
    pub(super) disconnects: u64,
    /// Calls by command.
    pub(super) calls: BTreeMap<&'static str, u64>,
    pub(super) connections: u64,
}

/// Content of a key.
pub(super) enum Value {
    Text(Vec<u8>),
    Stream(Box<Stream>),
}

/// What other shards left for the connections of one.
#[derive(Default)]
struct Mailbox {
    letters: Vec<Letter>,
    bytes: usize,
}

/// Bytes for a connection.
pub(super) struct Letter {
    pub(super) to: Place,
    pub(super) bytes: Arc<[u8]>,
    /// True for the answer to a blocked command, false for a message of a channel.
    pub(super) is_answer: bool,
}

impl World {
    pub(in crate::redis) fn new(rules: Rules) -> World {
        World {
            rules,
            keys: HashMap::new(),
            bytes: 0,
            channels: Channels::default(),
            blocked: Blocked::default(),
            mail: Vec::new(),
            census: ServerCounts::default(),
            disconnects: 0,
            calls: BTreeMap::new(),
            connections: 0,
        }
    }

    /// Refuses a command that needs memory if none is left.
    pub(super) fn check_memory(&self, more: usize) -> Result<(), Refusal> {
        match self.bytes.saturating_add(more) > self.rules.memory_bytes_max {
            true => Err(Refusal::from("OOM command not allowed when used memory > 'maxmemory'.")),
            false => Ok(()),
        }
    }

    /// The stream of a key, made if there is no such key.
    pub(super) fn stream_or_new(&mut self, key: &Key) -> Result<&mut Stream, Refusal> {
        if !self.keys.contains_key(key) {
            self.bytes += key.name.len() + KEY_BYTES;
            self.keys.insert(key.clone(), Value::Stream(Box::default()));
        }
        self.stream_mut(key)?.ok_or_else(|| Refusal::from(WRONG_TYPE))
    }

    /// The stream of a key; `None` if there is no such key.
    pub(super) fn stream(&self, key: &Key) -> Result<Option<&Stream>, Refusal> {
        match self.keys.get(key) {
            None => Ok(None),
            Some(Value::Stream(stream)) => Ok(Some(stream)),
            Some(Value::Text(_)) => Err(Refusal::from(WRONG_TYPE)),
        }
    }

    /// The stream of a key, to change it; `None` if there is no such key.
    pub(super) fn stream_mut(&mut self, key: &Key) -> Result<Option<&mut Stream>, Refusal> {
        match self.keys.get_mut(key) {
            None => Ok(None),
            Some(Value::Stream(stream)) => Ok(Some(stream)),
            Some(Value::Text(_)) => Err(Refusal::from(WRONG_TYPE)),
        }
    }

    /// Counts the memory that a stream gained or lost.
    pub(super) fn note_bytes(&mut self, before: usize, after: usize) {
        self.bytes = (self.bytes + after).saturating_sub(before);
    }

    /// Removes a key; false if there is none.
    pub(super) fn remove(&mut self, key: &Key) -> bool {
        let Some(value) = self.keys.remove(key) else { return false };
        let bytes = match value {
            Value::Text(text) => text.len(),
            Value::Stream(stream) => stream.bytes(),
        };
        self.bytes = self.bytes.saturating_sub(bytes + key.name.len() + KEY_BYTES);
        true
    }

    /// Sets a key to a text.
    pub(super) fn set(&mut self, key: Key, text: &[u8]) {
        self.remove(&key);
        self.bytes += text.len() + key.name.len() + KEY_BYTES;
        self.keys.insert(key, Value::Text(text.to_vec()));
    }

    /// Hands a message of a channel to a subscriber; false if it could not take it.
    pub(super) fn push(&mut self, to: Place, bytes: &Arc<[u8]>, turn: &mut Turn<'_>) -> bool {
        if to.shard != turn.shard {
            return self.post(to, bytes, false, turn);
        }
        let waiting = turn.out.pending_bytes(to.connection);
        if waiting.saturating_add(bytes.len()) > self.rules.output_bytes_max {
            self.overflowed(to, turn);
            return false;
        }
        turn.out.stage(to.connection).extend_from_slice(bytes);
        true
    }

    /// Parts with a subscriber whose output buffer is full (`client-output-buffer-limit`).
    fn overflowed(&mut self, place: Place, turn: &mut Turn<'_>) {
        self.channels.remove(place);
        self.census.note_dropped(OUTPUT_BUFFER_FULL);
        self.disconnects += 1;
        turn.out.abort(place.connection);
    }

    /// Hands an answer to a client whose command was blocked.
    pub(super) fn answer(&mut self, to: Place, bytes: &[u8], turn: &mut Turn<'_>) {
        if to.shard == turn.shard {
            turn.out.stage(to.connection).extend_from_slice(bytes);
            turn.woken.push(to);
        } else {
            self.post(to, &Arc::from(bytes), true, turn);
        }
    }

    fn post(&mut self, to: Place, bytes: &Arc<[u8]>, is_answer: bool, turn: &mut Turn<'_>) -> bool {
        let shard = usize::from(to.shard);
        if self.mail.len() <= shard {
            self.mail.resize_with(shard + 1, Mailbox::default);
        }
        let mailbox = &mut self.mail[shard];
        if !is_answer && mailbox.bytes.saturating_add(bytes.len()) > MAIL_BYTES_MAX {
            self.census.note_dropped(MAILBOX_FULL);
            return false;
        }
        if mailbox.letters.is_empty() {
            turn.out.notify_shard(to.shard);
        }
        mailbox.bytes += bytes.len();
        mailbox.letters.push(Letter { to, bytes: bytes.clone(), is_answer });
        true
    }

    /// Takes what other shards left for the connections of one.
    pub(super) fn take_mail(&mut self, shard: u16) -> Vec<Letter> {
        let mailbox = self.mail.get_mut(usize::from(shard)).map(std::mem::take);
        mailbox.map_or_else(Vec::new, |mailbox| mailbox.letters)
    }

    /// A connection is gone.
    pub(super) fn forget(&mut self, place: Place) {
        self.channels.remove(place);
        self.blocked.remove(place);
    }

    /// Blocks a connection until its read has something.
    pub(super) fn block(&mut self, read: Read) {
        self.blocked.insert(read);
    }
}

/// Milliseconds of the IDs of a stream. The server has no clock but that of the loop, so it counts
/// from a fixed date, which gives its IDs the length of those of Redis.
pub(super) fn id_ms(now: Nanos) -> u64 {
    FIRST_ID_MS + now.0 / 1_000_000
}

/// 14 November 2023.
const FIRST_ID_MS: u64 = 1_700_000_000_000;

/// Refusal of a command for another type.
pub(super) const WRONG_TYPE: &str =
    "WRONGTYPE Operation against a key holding the wrong kind of value";

/// Memory of a key besides its name and content.
const KEY_BYTES: usize = 96;

/// Bytes that wait for another shard.
const MAIL_BYTES_MAX: usize = 256 << 20;

/// Causes of messages that were dropped.
const OUTPUT_BUFFER_FULL: &str = "output_buffer_full";
const MAILBOX_FULL: &str = "mailbox_full";
