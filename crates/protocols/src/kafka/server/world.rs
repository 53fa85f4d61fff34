//! State shared by the shards of one server: topics and their logs, numbers of producers, and what
//! the shards leave for each other. One lock guards it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::group::{Group, Id};
use super::log::{Log, Taken};
use super::place::{Place, Turn};
use super::rules::Rules;
use crate::broker_core::Mailboxes;
use crate::kafka::errors;
use crate::server_counts::ServerCounts;

/// Everything that the shards have in common.
pub(in crate::kafka) struct World {
    pub(super) rules: Rules,
    pub(super) topics: BTreeMap<Arc<[u8]>, Vec<Log>>,
    partitions: usize,
    /// Bytes of all logs.
    bytes: usize,
    /// Topic and partition of each batch in the logs, oldest first.
    arrivals: VecDeque<(Arc<[u8]>, i32)>,
    next_producer: i64,
    groups: BTreeMap<Box<[u8]>, Group>,
    next_member: u64,
    pub(super) census: ServerCounts,
    /// Connections of each shard whose fetch may have something.
    pub(super) mail: Mailboxes<Place>,
}

impl World {
    pub(in crate::kafka) fn new(rules: Rules) -> World {
        World {
            rules,
            topics: BTreeMap::new(),
            partitions: 0,
            bytes: 0,
            arrivals: VecDeque::new(),
            next_producer: 0,
            groups: BTreeMap::new(),
            next_member: 0,
            census: ServerCounts::default(),
            mail: Mailboxes::new(),
        }
    }

    /// A number for an idempotent producer.
    pub(super) fn next_producer(&mut self) -> i64 {
        self.next_producer += 1;
        self.next_producer
    }

    /// An id for a member of a group: the name of its client and a number.
    pub(super) fn next_member(&mut self, client: &[u8]) -> Id {
        self.next_member += 1;
        let name = &client[..client.len().min(NAME_BYTES_MAX)];
        [name, b"-", self.next_member.to_string().as_bytes()].concat().into()
    }

    /// The group of this name, which is created if it is not there; `None` if the name is empty or
    /// too long, or there are too many groups.
    pub(super) fn group(&mut self, name: &[u8]) -> Option<&mut Group> {
        if name.is_empty() || name.len() > GROUP_BYTES_MAX {
            return None;
        }
        if !self.groups.contains_key(name) {
            if self.groups.len() >= GROUPS_MAX {
                self.groups.retain(|_, group| !group.is_gone());
            }
            if self.groups.len() >= GROUPS_MAX {
                return None;
            }
            self.groups.insert(name.into(), Group::default());
        }
        self.groups.get_mut(name)
    }

    /// The group of this name, if it is there.
    pub(super) fn known_group(&mut self, name: &[u8]) -> Option<&mut Group> {
        self.groups.get_mut(name)
    }

    /// Wakes the members of a group whose requests can be answered.
    pub(super) fn wake_group(&mut self, name: &[u8], turn: &mut Turn<'_>) {
        let woken = self.groups.get_mut(name).map(Group::take_woken).unwrap_or_default();
        self.wake_places(woken, turn);
    }

    /// Creates a topic; the error is a code of Kafka.
    pub(super) fn create(&mut self, name: &[u8], partitions: i32) -> Result<(), i16> {
        let is_legal = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        let is_name = !name.is_empty()
            && name.len() <= TOPIC_BYTES_MAX
            && !matches!(name, b"." | b"..")
            && name.iter().all(is_legal);
        if !is_name {
            return Err(errors::INVALID_TOPIC);
        }
        if self.topics.contains_key(name) {
            return Err(errors::TOPIC_ALREADY_EXISTS);
        }
        let count = usize::try_from(partitions).unwrap_or(0);
        if count == 0 || self.partitions + count > PARTITIONS_MAX {
            return Err(errors::INVALID_PARTITIONS);
        }
        self.partitions += count;
        self.topics.insert(name.into(), (0..count).map(|_| Log::default()).collect());
        Ok(())
    }

    /// The log of a partition.
    pub(super) fn log(&mut self, topic: &[u8], partition: i32) -> Option<&mut Log> {
        self.topics.get_mut(topic)?.get_mut(usize::try_from(partition).ok()?)
    }

    /// Makes room for a batch that is appended next: the oldest ones of all logs go. False if it is
    /// larger than all of them may be.
    pub(super) fn make_room(&mut self, topic: &[u8], partition: i32, more: usize) -> bool {
        let most = self.rules.log_bytes_max;
        let Some((name, _)) = self.topics.get_key_value(topic).filter(|_| more <= most) else {
            return false;
        };
        let name = name.clone();
        while self.bytes.saturating_add(more) > most {
            let Some(trimmed) = self.trim() else { break };
            self.bytes = self.bytes.saturating_sub(trimmed.bytes);
        }
        self.bytes += more;
        self.arrivals.push_back((name, partition));
        true
    }

    /// Removes the oldest batch of all logs.
    fn trim(&mut self) -> Option<Taken> {
        let (topic, partition) = self.arrivals.pop_front()?;
        self.log(&topic, partition)?.trim()
    }

    /// Wakes the fetches that wait for a partition.
    pub(super) fn wake(&mut self, topic: &[u8], partition: i32, turn: &mut Turn<'_>) {
        let Some(log) = self.log(topic, partition) else { return };
        let waiting = std::mem::take(&mut log.waiting);
        self.wake_places(waiting, turn);
    }

    /// Wakes connections, those of other shards by mail.
    fn wake_places(&mut self, places: impl IntoIterator<Item = Place>, turn: &mut Turn<'_>) {
        for place in places {
            if place.shard == turn.shard {
                turn.woken.push(place);
                continue;
            }
            self.mail.post(place.shard, place, turn.out);
        }
    }
}

/// `Topic.MAX_NAME_LENGTH`.
const TOPIC_BYTES_MAX: usize = 249;

const PARTITIONS_MAX: usize = 100_000;

/// Groups, and bytes of the name of one.
const GROUPS_MAX: usize = 1000;
const GROUP_BYTES_MAX: usize = 4096;

/// Bytes of the name of a client in the id of a member.
const NAME_BYTES_MAX: usize = 100;
