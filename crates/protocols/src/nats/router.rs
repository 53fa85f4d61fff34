//! Routing at the reference server: who subscribes to what, and the way of a message to each of
//! them, also to those on other shards.

use std::collections::BTreeMap;

use super::api::{ACK, API, INBOX};
use super::codec::{Message, Publish};
use super::trie::Trie;
use crate::broker_core::{Place, Turn};

/// A subscription.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) owner: Place,
    pub(super) sid: Box<[u8]>,
    pub(super) subject: Box<[u8]>,
    /// Empty for none.
    pub(super) queue: Box<[u8]>,
    /// Its connection understands headers.
    pub(super) has_headers: bool,
    /// Messages until it ends by itself.
    pub(super) left: Option<u64>,
    pub(super) delivered: u64,
}

/// All subscriptions.
#[derive(Debug, Default)]
pub(super) struct Router {
    trie: Trie,
    subscriptions: Vec<Option<Subscription>>,
    free: Vec<u32>,
    /// Scratch space for the subscriptions of a subject, and those in queue groups.
    found: Vec<u32>,
    grouped: Vec<u32>,
    /// Whose turn it is in queue groups.
    turns: usize,
    mail: Vec<Mailbox>,
    /// Connections that do not read, and have to go.
    slow: Vec<Place>,
    pending_bytes_max: usize,
    pub(super) counts: Counts,
}

/// Messages that other shards left for the connections of one.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    pub(super) letters: Vec<Letter>,
    pub(super) bytes: Vec<u8>,
}

/// A message in a mailbox: its bytes follow those of the letters before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Letter {
    pub(super) to: Place,
    pub(super) bytes: usize,
}

/// Counts about forwarding.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) forwarded: u64,
    pub(super) dropped: BTreeMap<&'static str, u64>,
    pub(super) disconnects: u64,
}

impl Counts {
    pub(super) fn drop(&mut self, cause: &'static str) {
        *self.dropped.entry(cause).or_default() += 1;
    }
}

impl Router {
    pub(super) fn new(pending_bytes_max: usize) -> Router {
        Router { pending_bytes_max, ..Router::default() }
    }

    /// Adds a subscription and returns its number.
    pub(super) fn subscribe(&mut self, subscription: Subscription) -> u32 {
        let id = self.free.pop().unwrap_or(self.subscriptions.len() as u32);
        self.trie.insert(&subscription.subject, id);
        match self.subscriptions.get_mut(id as usize) {
            Some(place) => *place = Some(subscription),
            None => self.subscriptions.push(Some(subscription)),
        }
        id
    }

    /// Ends a subscription, now or after it got `after` messages in total.
    pub(super) fn unsubscribe(&mut self, id: u32, after: Option<u64>) {
        let Some(Some(subscription)) = self.subscriptions.get_mut(id as usize) else { return };
        let left = after.map(|after| after.saturating_sub(subscription.delivered));
        if let Some(left @ 1..) = left {
            subscription.left = Some(left);
            return;
        }
        if let Some(subscription) = self.subscriptions[id as usize].take() {
            self.trie.remove(&subscription.subject, id);
            self.free.push(id);
        }
    }

    /// True if a connection has this subscription under this identifier.
    pub(super) fn is(&self, id: u32, owner: Place, sid: &[u8]) -> bool {
        let subscription = self.subscriptions.get(id as usize).and_then(Option::as_ref);
        subscription.is_some_and(|known| known.owner == owner && *known.sid == *sid)
    }

    /// Brings `message` to the subscribers of `to`, of each queue group to one, but not to the
    /// connection `except`. Returns how many got it.
    pub(super) fn send(
        &mut self,
        to: &[u8],
        message: &Publish<'_>,
        except: Option<Place>,
        turn: &mut Turn<'_>,
    ) -> usize {
        let mut found = std::mem::take(&mut self.found);
        let mut grouped = std::mem::take(&mut self.grouped);
        found.clear();
        grouped.clear();
        self.trie.find(to, &mut found);
        let mut reached = 0;
        for id in found.drain(..) {
            let Some(Some(known)) = self.subscriptions.get(id as usize) else { continue };
            if except == Some(known.owner) {
                continue;
            }
            match known.queue.is_empty() {
                true => reached += usize::from(self.deliver(id, message, turn)),
                false => grouped.push(id),
            }
        }
        while let Some(first) = grouped.last().copied() {
            let members = self.take_group(first, &mut grouped, &mut found);
            self.turns = self.turns.wrapping_add(1);
            let chosen = found[self.turns % members];
            reached += usize::from(self.deliver(chosen, message, turn));
        }
        (self.found, self.grouped) = (found, grouped);
        reached
    }

    /// Moves the members of one queue group from `grouped` to `members`; how many they are.
    fn take_group(&self, first: u32, grouped: &mut Vec<u32>, members: &mut Vec<u32>) -> usize {
        let queue_of = |id: u32| {
            let known = self.subscriptions.get(id as usize).and_then(Option::as_ref);
            known.map_or(&b""[..], |known| &known.queue)
        };
        members.clear();
        let queue = queue_of(first);
        grouped.retain(|id| {
            let is_member = queue_of(*id) == queue;
            if is_member {
                members.push(*id);
            }
            !is_member
        });
        members.sort_unstable();
        members.len()
    }

    fn deliver(&mut self, id: u32, message: &Publish<'_>, turn: &mut Turn<'_>) -> bool {
        let Some(Some(known)) = self.subscriptions.get_mut(id as usize) else { return false };
        let owner = known.owner;
        let message = Message {
            subject: message.subject,
            sid: &known.sid,
            reply: message.reply,
            headers: if known.has_headers { message.headers } else { b"" },
            body: message.body,
        };
        let is_here = owner.shard == turn.shard;
        let waiting = match is_here {
            true => turn.out.pending_bytes(owner.connection),
            false => self.mail.get(usize::from(owner.shard)).map_or(0, |mail| mail.bytes.len()),
        };
        if waiting.saturating_add(message.bytes_max()) > self.pending_bytes_max {
            self.counts.drop(SLOW_CONSUMER);
            if is_here && !self.slow.contains(&owner) {
                self.slow.push(owner);
            }
            return true;
        }
        if is_here {
            message.put(turn.out.stage(owner.connection));
        } else {
            if self.mail.len() <= usize::from(owner.shard) {
                self.mail.resize_with(usize::from(owner.shard) + 1, Mailbox::default);
            }
            let mail = &mut self.mail[usize::from(owner.shard)];
            let before = mail.bytes.len();
            message.put(&mut mail.bytes);
            mail.letters.push(Letter { to: owner, bytes: mail.bytes.len() - before });
            if mail.letters.len() == 1 {
                turn.out.notify_shard(owner.shard);
            }
        }
        self.counts.forwarded += u64::from(!is_control(message.subject));
        known.delivered += 1;
        if let Some(left) = &mut known.left {
            *left -= 1;
            if *left == 0 {
                self.unsubscribe(id, None);
            }
        }
        true
    }

    /// Takes what other shards left for this one.
    pub(super) fn take_mail(&mut self, shard: u16) -> Mailbox {
        self.mail.get_mut(usize::from(shard)).map(std::mem::take).unwrap_or_default()
    }

    /// Takes a connection of this shard that does not read.
    pub(super) fn next_slow(&mut self) -> Option<Place> {
        self.slow.pop()
    }

    /// A connection did not read: its message from another shard is dropped.
    pub(super) fn drop_letter(&mut self, letter: &Letter) {
        self.counts.drop(SLOW_CONSUMER);
        self.counts.forwarded = self.counts.forwarded.saturating_sub(1);
        if !self.slow.contains(&letter.to) {
            self.slow.push(letter.to);
        }
    }

    /// The bytes that may wait for one connection.
    pub(super) fn pending_bytes_max(&self) -> usize {
        self.pending_bytes_max
    }
}

/// True for subjects of requests and answers, which carry no messages of their own.
pub(super) fn is_control(subject: &[u8]) -> bool {
    [API, ACK, INBOX].iter().any(|prefix| subject.starts_with(prefix.as_bytes()))
}

/// The cause of nats-server for a consumer that does not read.
const SLOW_CONSUMER: &str = "slow_consumer";
