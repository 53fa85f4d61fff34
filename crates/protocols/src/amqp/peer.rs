//! A connection of the reference server with its channels, as one shard keeps it.

use std::collections::VecDeque;

use weigh_model::Nanos;

use super::queue::Waiting;
use crate::broker_core::Place;

/// A connection.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) place: Place,
    pub(super) stage: Stage,
    /// Largest frame of both directions.
    pub(super) frame_max: u32,
    /// Half of the heartbeat timeout; 0 for none.
    pub(super) beat: Nanos,
    pub(super) last_received: Nanos,
    pub(super) last_sent: Nanos,
    pub(super) channels: Vec<Channel>,
    /// It wants to know when it is blocked.
    pub(super) hears_blocked: bool,
    /// It wants to know when its consumers are cancelled.
    pub(super) hears_cancelled: bool,
    /// It waits until there is memory again.
    pub(super) is_blocked: bool,
    /// It waits until it has read its answers.
    pub(super) is_behind: bool,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No protocol header yet.
    Header,
    /// `connection.start` is out.
    Start,
    /// `connection.tune` is out.
    Tune,
    /// The limits are agreed on.
    Tuned,
    /// The virtual host is open.
    Open,
    /// `connection.close` is out: only its answer counts.
    Closing,
    /// The server closes it; later input is ignored.
    Over,
}

/// A channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) number: u16,
    /// `channel.close` is out: only its answer counts.
    pub(super) is_closing: bool,
    /// Number of the last message, where they are confirmed.
    pub(super) confirms: Option<u64>,
    /// Limit of consumers that are made from now on.
    pub(super) prefetch: u32,
    pub(super) consumers: Vec<u32>,
    pub(super) given: Given,
    pub(super) content: Content,
    /// The queue that was declared last, which an empty name means.
    pub(super) last_queue: String,
}

/// Deliveries of a channel that are not acknowledged.
#[derive(Debug, Default)]
pub(super) struct Given {
    deliveries: VecDeque<Option<Delivery>>,
    /// Tag of the first one, less one.
    ended: u64,
}

/// A message that was delivered.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) queue: u32,
    /// `None` for `basic.get`.
    pub(super) consumer: Option<u32>,
    pub(super) waiting: Waiting,
}

/// The message that is arriving on a channel.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) stage: ContentStage,
    pub(super) exchange: String,
    pub(super) key: String,
    pub(super) bits: u8,
    pub(super) properties: Vec<u8>,
    pub(super) is_persistent: bool,
    pub(super) left: u64,
    pub(super) body: Vec<u8>,
}

/// What a channel waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ContentStage {
    #[default]
    Nothing,
    Header,
    Body,
}

impl Peer {
    pub(super) fn new(place: Place, frame_max: u32, now: Nanos) -> Peer {
        Peer {
            place,
            stage: Stage::Header,
            frame_max,
            beat: Nanos(0),
            last_received: now,
            last_sent: now,
            channels: Vec::new(),
            hears_blocked: false,
            hears_cancelled: false,
            is_blocked: false,
            is_behind: false,
        }
    }

    pub(super) fn channel(&mut self, number: u16) -> Option<&mut Channel> {
        self.channels.iter_mut().find(|channel| channel.number == number)
    }

    /// Time at which it has been silent for too long; [`Nanos::NEVER`] without a limit.
    pub(super) fn deadline(&self) -> Nanos {
        match self.stage {
            Stage::Open if self.beat.0 == 0 => Nanos::NEVER,
            Stage::Open => self.last_received + Nanos(self.beat.0 * 4),
            Stage::Over => Nanos::NEVER,
            _ => self.last_received + HANDSHAKE,
        }
    }
}

impl Channel {
    pub(super) fn new(number: u16) -> Channel {
        Channel {
            number,
            is_closing: false,
            confirms: None,
            prefetch: 0,
            consumers: Vec::new(),
            given: Given::default(),
            content: Content::default(),
            last_queue: String::new(),
        }
    }
}

impl Given {
    /// Notes a delivery; `None` if it needs no acknowledgement. Returns its tag.
    pub(super) fn note(&mut self, delivery: Option<Delivery>) -> u64 {
        if delivery.is_none() && self.deliveries.is_empty() {
            self.ended += 1;
            return self.ended;
        }
        self.deliveries.push_back(delivery);
        self.ended + self.deliveries.len() as u64
    }

    /// Takes one delivery, or all up to it (0: all), in their order; `None` if there is no such
    /// tag.
    pub(super) fn take(&mut self, tag: u64, is_multiple: bool) -> Option<Vec<Delivery>> {
        let after = self.ended + self.deliveries.len() as u64;
        let last = if tag == 0 && is_multiple { after } else { tag };
        if last > after || (tag == 0 && !is_multiple) {
            return None;
        }
        let count = last.saturating_sub(self.ended) as usize;
        let from = if is_multiple { 0 } else { count.saturating_sub(1) };
        let taken: Vec<Delivery> =
            self.deliveries.range_mut(from..count).filter_map(Option::take).collect();
        while self.deliveries.front().is_some_and(Option::is_none) {
            self.deliveries.pop_front();
            self.ended += 1;
        }
        (is_multiple || !taken.is_empty()).then_some(taken)
    }

    /// Takes all that is open.
    pub(super) fn take_all(&mut self) -> Vec<Delivery> {
        self.take(0, true).unwrap_or_default()
    }
}

/// Time limit of each step before a connection is open (section 4.10 asks for some limit).
const HANDSHAKE: Nanos = Nanos::from_secs(10);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::queue::Message;
    use super::*;

    fn delivery(queue: u32) -> Option<Delivery> {
        let message = Arc::new(Message::new("", "", b"", b"x", &Arc::default()));
        let waiting = Waiting { message, is_redelivered: false };
        Some(Delivery { queue, consumer: None, waiting })
    }

    #[test]
    fn tags_count_every_delivery_and_are_taken_once() {
        let mut given = Given::default();
        assert_eq!(given.note(None), 1);
        let tags: Vec<u64> = (0..4).map(|queue| given.note(delivery(queue))).collect();
        assert_eq!(tags, [2, 3, 4, 5]);
        assert_eq!(given.note(None), 6);
        let queues = |taken: Option<Vec<Delivery>>| {
            taken.map(|all| all.iter().map(|one| one.queue).collect::<Vec<_>>())
        };
        assert_eq!(queues(given.take(3, false)), Some(vec![1]));
        assert_eq!(queues(given.take(3, false)), None, "it was taken");
        assert_eq!(queues(given.take(1, false)), None, "it needed no acknowledgement");
        assert_eq!(queues(given.take(7, true)), None, "it does not exist");
        assert_eq!(queues(given.take(4, true)), Some(vec![0, 2]));
        assert_eq!(queues(given.take(0, true)), Some(vec![3]));
        assert_eq!(given.note(delivery(9)), 7);
    }
}
