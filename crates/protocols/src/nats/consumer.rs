//! A consumer of a stream at the reference server: what it has delivered, what is unacknowledged,
//! and, if it is pulled, the requests that wait.

use std::collections::{BTreeMap, VecDeque};

use weigh_model::Nanos;

use super::api::{ACK, ConsumerConfig, Next};
use super::codec::{Publish, headers, put_decimal, subject};
use super::log::Log;
use super::router::Router;
use crate::broker_core::Turn;

/// A consumer.
#[derive(Debug)]
pub(super) struct Consumer {
    pub(super) name: String,
    pub(super) config: ConsumerConfig,
    /// Number of the next message of the stream to look at.
    next: u64,
    /// Deliveries so far.
    delivered: u64,
    unacknowledged: BTreeMap<u64, Unacknowledged>,
    /// Messages to be delivered again, now.
    again: VecDeque<u64>,
    waiting: VecDeque<Pull>,
    /// Start of the subjects for acknowledgements.
    prefix: Vec<u8>,
    reply: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Unacknowledged {
    due: Nanos,
    deliveries: u64,
}

/// A request for messages.
#[derive(Debug)]
struct Pull {
    reply: Box<[u8]>,
    left: u64,
    sent: u64,
    is_one_shot: bool,
    expires: Nanos,
}

/// What a client says about a delivered message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Done,
    /// To be delivered again.
    Again,
    /// It is being worked on.
    InProgress,
}

impl Consumer {
    /// A consumer of the stream `stream`, whose messages are `log`.
    pub(super) fn new(stream: &str, name: &str, config: ConsumerConfig, log: &Log) -> Consumer {
        let next = match config.deliver_policy.as_str() {
            "new" => log.next(),
            "last" => log.next().saturating_sub(1).max(log.first()),
            "by_start_sequence" => config.opt_start_seq.max(log.first()),
            _ => log.first(),
        };
        Consumer {
            name: name.to_owned(),
            config,
            next,
            delivered: 0,
            unacknowledged: BTreeMap::new(),
            again: VecDeque::new(),
            waiting: VecDeque::new(),
            prefix: format!("{ACK}{stream}.{name}.").into_bytes(),
            reply: Vec::new(),
        }
    }

    pub(super) fn is_push(&self) -> bool {
        !self.config.deliver_subject.is_empty()
    }

    fn acknowledges(&self) -> bool {
        self.config.ack_policy != "none"
    }

    fn ack_wait(&self) -> Nanos {
        match self.config.ack_wait {
            0 => ACK_WAIT,
            given => Nanos(given),
        }
    }

    fn is_in_filter(&self, name: &[u8]) -> bool {
        let filter = self.config.filter_subject.as_bytes();
        filter.is_empty() || subject::matches(filter, name)
    }

    /// Number of the message to deliver now.
    fn due(&mut self, log: &Log) -> Option<u64> {
        while let Some(again) = self.again.front().copied() {
            if self.unacknowledged.contains_key(&again) && log.get(again).is_some() {
                return Some(again);
            }
            self.unacknowledged.remove(&again);
            self.again.pop_front();
        }
        self.next = self.next.max(log.first());
        while let Some((message, _)) = log.get(self.next) {
            if self.is_in_filter(message.subject) {
                return Some(self.next);
            }
            self.next += 1;
        }
        None
    }

    /// Delivers what can be delivered; when it has to be looked at again.
    pub(super) fn pump(&mut self, log: &Log, router: &mut Router, turn: &mut Turn<'_>) -> Nanos {
        let most = self.config.max_ack_pending;
        let most = if most <= 0 { usize::MAX } else { most as usize };
        let mut wake = Nanos::NEVER;
        loop {
            let is_full = self.acknowledges() && self.unacknowledged.len() >= most;
            if is_full && self.again.is_empty() {
                break;
            }
            let Some(number) = self.due(log) else {
                self.finish_one_shots(router, turn);
                break;
            };
            if !self.send(number, log, router, turn) {
                break;
            }
            wake = wake.min(turn.now + self.ack_wait());
        }
        wake
    }

    /// Delivers one message; false if there is nowhere to deliver to.
    fn send(&mut self, number: u64, log: &Log, router: &mut Router, turn: &mut Turn<'_>) -> bool {
        let Some((mut message, time)) = log.get(number) else { return false };
        let earlier = self.unacknowledged.get(&number).map_or(0, |known| known.deliveries);
        let mut reply = std::mem::take(&mut self.reply);
        reply.clear();
        reply.extend_from_slice(&self.prefix);
        let pending = log.next().saturating_sub(number.max(self.next) + 1);
        for (index, part) in
            [earlier + 1, number, self.delivered + 1, time.0, pending].into_iter().enumerate()
        {
            if index > 0 {
                reply.push(b'.');
            }
            put_decimal(&mut reply, part);
        }
        message.reply = &reply;
        let is_sent = self.hand_over(&message, router, turn);
        self.reply = reply;
        if !is_sent {
            return false;
        }
        self.delivered += 1;
        if self.again.front() == Some(&number) {
            self.again.pop_front();
        } else {
            self.next = number + 1;
        }
        if self.acknowledges() {
            let due = turn.now + self.ack_wait();
            self.unacknowledged.insert(number, Unacknowledged { due, deliveries: earlier + 1 });
        }
        true
    }

    fn hand_over(
        &mut self,
        message: &Publish<'_>,
        router: &mut Router,
        turn: &mut Turn<'_>,
    ) -> bool {
        if self.is_push() {
            let to = self.config.deliver_subject.as_bytes();
            return router.send(to, message, None, turn) > 0;
        }
        while let Some(pull) = self.waiting.front_mut() {
            if router.send(&pull.reply, message, None, turn) == 0 {
                // Its client is gone.
                self.waiting.pop_front();
                continue;
            }
            pull.left -= 1;
            pull.sent += 1;
            if pull.left == 0 {
                self.waiting.pop_front();
            }
            return true;
        }
        false
    }

    /// One-shot requests that got something are over when there is nothing more.
    fn finish_one_shots(&mut self, router: &mut Router, turn: &mut Turn<'_>) {
        self.end_pulls(router, turn, |pull| pull.is_one_shot && pull.sent > 0);
    }

    fn end_pulls(
        &mut self,
        router: &mut Router,
        turn: &mut Turn<'_>,
        is_over: impl Fn(&Pull) -> bool,
    ) {
        self.waiting.retain(|pull| {
            let ends = is_over(pull);
            if ends {
                let fields = [(PENDING_MESSAGES, pull.left), (PENDING_BYTES, 0)];
                answer(&pull.reply, (408, "Request Timeout"), &fields, router, turn);
            }
            !ends
        });
    }

    /// A request for messages.
    pub(super) fn request(
        &mut self,
        next: &Next,
        reply: &[u8],
        log: &Log,
        router: &mut Router,
        turn: &mut Turn<'_>,
    ) -> Nanos {
        if self.is_push() {
            answer(reply, (409, "Consumer is push based"), &[], router, turn);
            return Nanos::NEVER;
        }
        let expires = match next.expires {
            0 => Nanos::NEVER,
            after => turn.now + Nanos(after),
        };
        if next.no_wait && next.expires == 0 && self.due(log).is_none() {
            answer(reply, (404, "No Messages"), &[], router, turn);
            return Nanos::NEVER;
        }
        if self.waiting.len() >= WAITING_MAX {
            answer(reply, (409, "Exceeded MaxWaiting"), &[], router, turn);
            return Nanos::NEVER;
        }
        self.waiting.push_back(Pull {
            reply: reply.into(),
            left: next.batch.max(1),
            sent: 0,
            is_one_shot: next.no_wait,
            expires,
        });
        self.pump(log, router, turn).min(expires)
    }

    /// An acknowledgement of message `number`.
    pub(super) fn acknowledged(&mut self, number: u64, verdict: Verdict, now: Nanos) {
        let due = now + self.ack_wait();
        match (verdict, self.unacknowledged.get_mut(&number)) {
            (_, None) => {}
            (Verdict::Done, _) if self.config.ack_policy == "all" => {
                self.unacknowledged = self.unacknowledged.split_off(&(number + 1));
            }
            (Verdict::Done, _) => {
                self.unacknowledged.remove(&number);
            }
            (Verdict::Again, Some(known)) => {
                known.due = due;
                self.again.push_back(number);
            }
            (Verdict::InProgress, Some(known)) => known.due = due,
        }
    }

    /// Delivers again what was not acknowledged in time, ends requests whose time is over, and
    /// returns when to look again.
    pub(super) fn wake(&mut self, log: &Log, router: &mut Router, turn: &mut Turn<'_>) -> Nanos {
        let now = turn.now;
        let limit = u64::try_from(self.config.max_deliver).unwrap_or(u64::MAX).max(1);
        let wait = self.ack_wait();
        let mut given_up = Vec::new();
        for (number, known) in &mut self.unacknowledged {
            if known.due <= now {
                known.due = now + wait;
                if known.deliveries >= limit {
                    given_up.push(*number);
                } else if !self.again.contains(number) {
                    self.again.push_back(*number);
                }
            }
        }
        self.unacknowledged.retain(|number, _| !given_up.contains(number));
        self.end_pulls(router, turn, |pull| pull.expires <= now);
        let pumped = self.pump(log, router, turn);
        let unacknowledged = self.unacknowledged.values().map(|known| known.due);
        let pulls = self.waiting.iter().map(|pull| pull.expires);
        unacknowledged.chain(pulls).fold(pumped, Nanos::min)
    }

    /// Deliveries so far, unacknowledged messages, and messages that were not delivered yet.
    pub(super) fn counts(&self, log: &Log) -> (u64, usize, u64) {
        let next = self.next.max(log.first());
        (self.delivered, self.unacknowledged.len(), log.next().saturating_sub(next))
    }

    /// Number of the last message of the stream that was delivered.
    pub(super) fn position(&self) -> u64 {
        self.next.saturating_sub(1)
    }
}

/// Sends a status to a client that waits.
pub(super) fn answer(
    reply: &[u8],
    status: (u16, &str),
    fields: &[(&str, u64)],
    router: &mut Router,
    turn: &mut Turn<'_>,
) {
    let mut block = Vec::new();
    headers::put_status(&mut block, status.0, status.1, fields);
    let message = Publish { subject: reply, reply: b"", headers: &block, body: b"" };
    router.send(reply, &message, None, turn);
}

/// What an acknowledgement says
/// (<https://docs.nats.io/reference/reference-protocols/nats_api_reference>).
pub(super) fn verdict(body: &[u8]) -> Verdict {
    match body {
        _ if body.starts_with(b"-NAK") => Verdict::Again,
        _ if body.starts_with(b"+WPI") => Verdict::InProgress,
        _ => Verdict::Done,
    }
}

const PENDING_MESSAGES: &str = "Nats-Pending-Messages";
const PENDING_BYTES: &str = "Nats-Pending-Bytes";

/// Defaults of nats-server: the time for an acknowledgement, and requests that may wait.
const ACK_WAIT: Nanos = Nanos::from_secs(30);
const WAITING_MAX: usize = 512;
