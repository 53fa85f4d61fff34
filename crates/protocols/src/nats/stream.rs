//! A stream of the reference server: its messages in memory, by number. What is confirmed is
//! stored by the loop ([`weigh_model::server::Outboxes::store`]), as in the other servers.

use std::collections::{HashMap, VecDeque};

use weigh_model::Nanos;

use super::api::StreamConfig;
use super::codec::{Publish, headers, subject};
use super::consumer::Consumer;
use super::log::Log;

/// A stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) config: StreamConfig,
    pub(super) consumers: Vec<Consumer>,
    pub(super) log: Log,
    /// Messages by Nats-Msg-Id, and when each was stored.
    ids: HashMap<Box<[u8]>, u64>,
    ids_in_order: VecDeque<(Nanos, Box<[u8]>)>,
}

/// What a stream did with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// It is stored, under this number.
    New(u64),
    /// It was stored before, under this number.
    Duplicate(u64),
}

impl Stream {
    pub(super) fn new(config: StreamConfig) -> Stream {
        Stream {
            config,
            consumers: Vec::new(),
            log: Log::new(),
            ids: HashMap::new(),
            ids_in_order: VecDeque::new(),
        }
    }

    /// True if messages of this subject belong to it.
    pub(super) fn takes(&self, name: &[u8]) -> bool {
        self.config.subjects.iter().any(|filter| subject::matches(filter.as_bytes(), name))
    }

    /// True if it is the stream that `config` asks for.
    pub(super) fn is(&self, config: &StreamConfig) -> bool {
        self.config == *config
    }

    /// Keeps a message, unless it is there already.
    pub(super) fn keep(&mut self, message: &Publish<'_>, now: Nanos) -> Stored {
        if let Some(id) = headers::value(message.headers, headers::MESSAGE_ID) {
            self.forget_ids(now);
            if let Some(number) = self.ids.get(id) {
                return Stored::Duplicate(*number);
            }
            self.ids.insert(id.into(), self.log.next());
            self.ids_in_order.push_back((now, id.into()));
        }
        let number = self.log.push(message, now);
        self.trim(now);
        Stored::New(number)
    }

    /// Forgets identifiers that are older than the window for duplicates.
    fn forget_ids(&mut self, now: Nanos) {
        let window = Nanos(self.config.duplicate_window);
        while let Some((stored, _)) = self.ids_in_order.front() {
            if now.since(*stored) < window {
                return;
            }
            if let Some((_, id)) = self.ids_in_order.pop_front() {
                self.ids.remove(&id);
            }
        }
    }

    /// Discards the oldest messages beyond the stream's limits.
    pub(super) fn trim(&mut self, now: Nanos) {
        let config = &self.config;
        while let Some(stored) = self.log.oldest() {
            let is_within = |limit: i64, is: u64| limit <= 0 || is <= limit as u64;
            let is_young = config.max_age == 0 || now.since(stored).0 < config.max_age;
            if is_young
                && is_within(config.max_msgs, self.log.len())
                && is_within(config.max_bytes, self.log.bytes())
            {
                return;
            }
            self.log.pop();
        }
    }

    /// Discards all messages; how many.
    pub(super) fn purge(&mut self) -> u64 {
        let count = self.log.len();
        (0..count).for_each(|_| self.log.pop());
        count
    }
}
