//! Applies the signals of connections to the ledger, the latency recorder and flow control: a
//! flight ends, its times are recorded, its slot is free again.

mod exchanges;
mod identity;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use weigh_model::connection::{Signal, Ticket};
use weigh_model::event::Interval;
use weigh_model::ledger::{Cause, NotSentCause};
use weigh_model::mark::{Mark, Reading};
use weigh_model::pieces::BodyReader;
use weigh_model::protocol::{Lifetime, Role};
use weigh_model::tally::Arrived;
use weigh_model::{Nanos, Pattern};

use super::rules::{Consumer, Rules};
use crate::accounts::{Accounts, ConsumerAccount, ProducerAccount, hears};
use crate::flights::Flight;
use crate::interval_times::IntervalTimes;
use crate::job::{Failure, Job};
use crate::link::{Answered, Incoming, LinkId, LinkPhase, LinkState};
use crate::message_log::{MessageEvent, Notes};
use crate::outcome::ShardOutcome;
use crate::recorder::{Recorder, Sending};
use crate::window::Window;

/// The bookkeeping of a shard, apart from its links so that both can be borrowed at once.
pub(super) struct Bookkeeping {
    job: Arc<Job>,
    /// Results of the shard, as far as they are known.
    pub(super) outcome: ShardOutcome,
    /// Number of producers.
    pub(super) producers: usize,
    /// Log of single messages, if it is kept.
    pub(super) notes: Option<Notes>,
    /// Links with a slot that is free again, and since when.
    pub(super) freed: Vec<(LinkId, Nanos)>,
    /// Links that may be able to send again, because a message ended or the connection changed.
    pub(super) unblocked: Vec<LinkId>,
    /// Deliveries that may end the flight of a producer.
    pub(super) deliveries: Vec<Delivery>,
    /// Consumers that got their answer.
    pub(super) answered: Vec<Answered>,
    /// Requests of the measured window that are not answered.
    pub(super) requests_awaited: u64,
    /// Instant at which the clock was at 0, if the clock advances within a turn.
    pub(super) epoch: Option<Instant>,
    /// Messages in flight on all links, expired ones included.
    pub(super) in_flight: u64,
    /// Measured messages that have become due.
    pub(super) due_count: u64,
    /// The latest due time of a measured message.
    pub(super) last_due: Nanos,
    /// Time of the last progress of the target: it answered or delivered a message, took bytes
    /// after it had taken none, or ended a connection. Accepting and greeting are not progress.
    pub(super) last_moved: Nanos,
    /// Sessions that stand.
    pub(super) open_links: u64,
    /// Different messages each consumer got in time or late, by account.
    pub(super) unique: Vec<u64>,
    /// The sum of those.
    pub(super) unique_total: u64,
    granted: BTreeMap<&'static str, u64>,
    rules: Rules,
    order: Vec<BTreeMap<u32, u64>>,
}

/// A delivery that may end the flight of a producer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// Index of the producer, over all shards.
    pub(super) producer: u32,
    pub(super) number: u64,
    pub(super) warmup: bool,
    pub(super) at: Nanos,
}

/// A message that was handed to its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handed {
    pub(super) mark: Mark,
    pub(super) sent: Nanos,
    pub(super) body_bytes: u64,
    /// True if it had to wait for the window.
    pub(super) was_held_up: bool,
}

impl Bookkeeping {
    /// Empty books with room for this many consumers and producers.
    pub(super) fn new(
        job: Arc<Job>,
        rules: Rules,
        consumers: usize,
        producers: usize,
    ) -> Bookkeeping {
        let is_hold = job.load().pattern == Pattern::Hold;
        let mut recorder = Recorder::new(job.dial.confirms);
        let (load, seed) = (job.load(), job.trial.seed);
        recorder.window.prepare(Window::offered(load, &job.trace, seed), load.timeout);
        if !is_hold {
            recorder.prepare();
        }
        if matches!(rules.consumer, Consumer::Poll(_)) {
            recorder.prepare_for_polls();
        }
        Bookkeeping {
            outcome: ShardOutcome {
                accounts: Accounts {
                    producers: Vec::with_capacity(if is_hold { 0 } else { producers }),
                    consumers: Vec::with_capacity(consumers),
                    ..Accounts::default()
                },
                recorder,
                measure_from: Nanos::NEVER,
                ..ShardOutcome::default()
            },
            producers: 0,
            notes: job.messages.as_deref().map(Notes::new),
            freed: Vec::new(),
            unblocked: Vec::new(),
            deliveries: Vec::new(),
            answered: Vec::new(),
            requests_awaited: 0,
            epoch: None,
            in_flight: 0,
            due_count: 0,
            last_due: Nanos(0),
            last_moved: Nanos(0),
            open_links: 0,
            unique: Vec::new(),
            unique_total: 0,
            granted: BTreeMap::new(),
            rules,
            order: Vec::new(),
            job,
        }
    }

    /// A producer takes its place. One that sends nothing has no books: a hundred thousand of them
    /// would be most of what idle connections cost.
    pub(super) fn open_producer(&mut self, index: u32) -> u32 {
        self.producers += 1;
        if self.job.load().pattern == Pattern::Hold {
            return self.producers as u32 - 1;
        }
        self.outcome
            .accounts
            .producers
            .push(ProducerAccount { index, ..ProducerAccount::default() });
        self.outcome.accounts.producers.len() as u32 - 1
    }

    pub(super) fn open_consumer(&mut self, index: u32) -> u32 {
        self.outcome
            .accounts
            .consumers
            .push(ConsumerAccount { index, ..ConsumerAccount::default() });
        self.unique.push(0);
        self.order.push(BTreeMap::new());
        self.outcome.accounts.consumers.len() as u32 - 1
    }

    /// A message has become due.
    pub(super) fn scheduled(&mut self, warmup: bool) {
        self.due_count += u64::from(!warmup);
    }

    /// Enters a message that was handed to its connection. Returns by how much the quotas owe
    /// less.
    #[inline]
    pub(super) fn handed_over(&mut self, handed: &Handed, state: &mut LinkState) -> u64 {
        let Handed { mark, sent, body_bytes, was_held_up } = *handed;
        self.outcome.recorder.sent(mark.due, sent, mark.warmup, was_held_up);
        let account = &mut self.outcome.accounts.producers[state.account as usize];
        let traffic = state.traffic_mut();
        if mark.warmup {
            traffic.warmup_sequence += 1;
            account.warmup_sent += 1;
            return 0;
        }
        traffic.sequence += 1;
        account.hand_over(sent);
        let owed_less = u64::from(traffic.quota > 0);
        traffic.quota -= owed_less;
        self.last_due = self.last_due.max(mark.due);
        self.outcome.recorder.body_bytes += body_bytes;
        if let Some(notes) = &mut self.notes {
            notes.note(MessageEvent::Sent {
                producer: mark.producer,
                connection: state.connections.saturating_sub(1),
                number: mark.sequence,
                due: mark.due,
                sent,
                own_lag: mark.own_lag,
                body_bytes: body_bytes as u32,
            });
        }
        owed_less
    }

    /// That many measured messages have become due.
    pub(super) fn scheduled_many(&mut self, count: u64) {
        self.due_count += count;
    }

    /// Applies a signal of a link.
    pub(super) fn signal(
        &mut self,
        link: LinkId,
        state: &mut LinkState,
        now: Nanos,
        signal: Signal<'_>,
    ) {
        match signal {
            Signal::Ready => self.ready(link, state, now),
            Signal::Done(ticket) => self.confirmed(link, state, now, ticket, false),
            Signal::NoSubscriber(ticket) => self.confirmed(link, state, now, ticket, true),
            Signal::Refused(ticket, reason) => {
                self.outcome.first_error.get_or_insert(reason);
                self.refused(link, state, now, ticket);
            }
            Signal::Unprocessed(ticket) => {
                self.last_moved = now;
                state.traffic_mut().unprocessed.push(ticket);
            }
            Signal::Message { topic, body } => {
                let consumer = self.rules.consumer;
                let marked = self.rules.is_marked.then(|| match consumer {
                    Consumer::Listen => Mark::read_any(body),
                    Consumer::Poll(_) => self.job.composer.read(body),
                });
                let reading = self.identity(state, topic, marked);
                let reading = self.opened(state, body, reading);
                match consumer {
                    Consumer::Listen => _ = self.message(state, now, reading, Nanos(0)),
                    Consumer::Poll(_) => self.polled(state, now, reading),
                }
            }
            Signal::Answered(result) => self.answered(link, state, now, result),
            Signal::Head { topic, bytes } => self.head(state, now, topic, bytes),
            Signal::Piece(piece) => self.piece(state, now, piece),
            Signal::Granted(what, value) => {
                let least = self.granted.entry(what).or_insert(value);
                *least = value.min(*least);
            }
            Signal::Alive => self.outcome.alive.answered += 1,
            Signal::KeptAlive => {
                let begin = self.outcome.measure_from;
                let end = self.job.load().duration.map_or(Nanos::NEVER, |lasts| begin + lasts);
                self.note_sign_of_life((begin..end).contains(&now));
            }
            // Before the load a group is still put together.
            Signal::Regrouped(_) if self.outcome.measure_from == Nanos::NEVER => {}
            Signal::Regrouped(pause) => self.outcome.accounts.regroupings.note(pause),
            Signal::Closing => state.phase = LinkPhase::Closing,
        }
    }

    /// A connection said something of its own accord, to keep its session alive.
    pub(super) fn note_sign_of_life(&mut self, in_window: bool) {
        self.outcome.alive.sent += 1;
        self.outcome.alive.in_window += u64::from(in_window);
    }

    /// Signs of life that the target has not answered.
    pub(super) fn signs_awaited(&self) -> u64 {
        self.outcome.alive.sent.saturating_sub(self.outcome.alive.answered)
    }

    /// Sets the number of messages that a producer may have in flight; `u32::MAX` for no limit.
    pub(super) fn note_window(&mut self, window: u32) {
        if window < u32::MAX {
            let least = self.granted.entry(IN_FLIGHT).or_insert(u64::from(window));
            *least = u64::from(window).min(*least);
        }
    }

    fn ready(&mut self, link: LinkId, state: &mut LinkState, now: Nanos) {
        if state.phase != LinkPhase::Opening {
            return;
        }
        state.is_standing = true;
        state.phase = LinkPhase::Ready;
        state.attempts = 0;
        self.open_links += 1;
        self.outcome.opened += 1;
        if self.outcome.measure_from == Nanos::NEVER {
            let (asked, stood) = self.outcome.set_up.unwrap_or((state.connecting_since, now));
            self.outcome.set_up = Some((asked.min(state.connecting_since), stood.max(now)));
        }
        let is_kept = self.rules.lifetime == Lifetime::Kept;
        if is_kept || state.connecting_since >= self.outcome.measure_from {
            self.outcome.recorder.connect.record((now - state.connecting_since).0);
        }
        if self.outcome.measure_from < Nanos::NEVER {
            self.unblocked.push(link);
        } // Else the load has not begun, and when it does it looks at every link.
    }

    fn confirmed(
        &mut self,
        link: LinkId,
        state: &mut LinkState,
        now: Nanos,
        ticket: Ticket,
        no_subscriber: bool,
    ) {
        let traffic = state.traffic_mut();
        let Some(flight) = traffic.flights.end(ticket) else { return };
        traffic.has_answer = true;
        self.in_flight -= 1;
        self.last_moved = now;
        self.outcome.recorder.confirmed(flight.sending(), now, flight.warmup);
        if !flight.warmup {
            let is_late = now - flight.due > self.rules.timeout;
            let has_consumers = self.rules.has_consumers;
            if is_late && !has_consumers {
                self.outcome.recorder.late(now - flight.due);
            }
            let account = &mut self.outcome.accounts.producers[state.account as usize];
            account.confirm(flight.number, is_late, has_consumers);
            account.last_confirmed = Some(now);
            account.no_subscriber += u64::from(no_subscriber);
            if let Some(notes) = &mut self.notes {
                let (producer, number) = (state.index, flight.number);
                notes.note(MessageEvent::Confirmed { producer, number, at: now });
            }
        }
        self.end_of_message(state, ticket);
        let is_whole = self.end_in_batch(state, &flight, true, now);
        self.free_window(link, &flight, is_whole, now);
    }

    /// Ends the connection, if it is used for one message only. It also ends the connection after
    /// an answer that came before the whole object was sent: the server does not want the
    /// remainder, and an answer to the next message could not be distinguished.
    fn end_of_message(&self, state: &mut LinkState, ticket: Ticket) {
        let outgoing = &mut state.traffic_mut().outgoing;
        let is_cut_off = outgoing.take_if(|object| object.ticket == ticket).is_some();
        if self.rules.is_per_message() || is_cut_off {
            state.phase = LinkPhase::Closing;
        }
    }

    /// An object could not be read to its end: the generator has lost it.
    pub(super) fn dropped(&mut self, state: &LinkState, flight: &Flight, why: String) {
        self.in_flight -= 1;
        self.outcome.object_fault.get_or_insert(why);
        if !flight.warmup {
            let has_consumers = self.rules.has_consumers;
            let account = &mut self.outcome.accounts.producers[state.account as usize];
            account.fail(flight.number, Cause::ProducerDropped, has_consumers);
            if let Some(notes) = &mut self.notes {
                let (producer, number) = (state.index, flight.number);
                let (at, cause) = (Nanos::NEVER, Cause::ProducerDropped);
                notes.note(MessageEvent::Failed { producer, number, at, cause });
            }
        }
    }

    fn refused(&mut self, link: LinkId, state: &mut LinkState, now: Nanos, ticket: Ticket) {
        let traffic = state.traffic_mut();
        let Some(flight) = traffic.flights.end(ticket) else { return };
        traffic.has_answer = true;
        self.in_flight -= 1;
        self.last_moved = now;
        self.outcome.recorder.refused(flight.due, flight.sent, now, flight.warmup);
        self.fail_at(state, &flight, Cause::ErrorAnswer, now);
        self.end_of_message(state, ticket);
        self.free_slot(link, state, &flight, now);
    }

    /// Books a flight that ended without success. A flight that was to complete by delivery is
    /// not given a cause here: the consumers' books tell.
    pub(super) fn fail(&mut self, state: &LinkState, flight: &Flight, cause: Cause) {
        self.fail_at(state, flight, cause, Nanos::NEVER);
    }

    fn fail_at(&mut self, state: &LinkState, flight: &Flight, cause: Cause, at: Nanos) {
        if !flight.warmup && !self.rules.ends_by_delivery {
            let has_consumers = self.rules.has_consumers;
            let account = &mut self.outcome.accounts.producers[state.account as usize];
            account.fail(flight.number, cause, has_consumers);
            if let Some(notes) = &mut self.notes {
                let (producer, number) = (state.index, flight.number);
                notes.note(MessageEvent::Failed { producer, number, at, cause });
            }
        }
    }

    /// The flight ended without success and no longer counts against the window: in a closed loop
    /// the next may follow.
    pub(super) fn free_slot(
        &mut self,
        link: LinkId,
        state: &mut LinkState,
        flight: &Flight,
        now: Nanos,
    ) {
        let is_whole = self.end_in_batch(state, flight, false, now);
        self.free_window(link, flight, is_whole, now);
    }

    /// The end of a flight frees a slot if its exchange `is_whole`: over with it.
    fn free_window(&mut self, link: LinkId, flight: &Flight, is_whole: bool, now: Nanos) {
        if flight.is_expired || !is_whole || !self.rules.is_closed {
            self.unblocked.push(link);
        } else {
            self.freed.push((link, now));
        }
    }

    /// An object begins to come in.
    fn head(&mut self, state: &mut LinkState, now: Nanos, topic: &[u8], bytes: u64) {
        let (topic, reader) = (topic.into(), BodyReader::default());
        let incoming = Incoming { reader, topic, left: bytes, since: now };
        state.traffic_mut().incoming = Some(Box::new(incoming));
        if bytes == 0 {
            self.piece(state, now, b"");
        }
    }

    /// More of an object came in; with its last piece it is a message like any other.
    fn piece(&mut self, state: &mut LinkState, now: Nanos, piece: &[u8]) {
        self.last_moved = now;
        let place = &mut state.traffic_mut().incoming;
        let Some(incoming) = place else { return };
        incoming.reader.take(piece);
        incoming.left = incoming.left.saturating_sub(piece.len() as u64);
        if incoming.left > 0 {
            return;
        }
        let Some(incoming) = place.take() else { return };
        let marked = self.rules.is_marked.then(|| incoming.reader.finish());
        let reading = self.identity(state, &incoming.topic, marked);
        if let (Reading::Whole(mark), true) = (reading, self.rules.is_marked)
            && !mark.warmup
        {
            self.outcome.recorder.first_byte.record((incoming.since - mark.due).0);
        }
        self.message(state, now, reading, Nanos(0));
    }

    /// A message for a consumer, which `late_request` of the generator's lateness made wait; true
    /// if it is a measured one that was not here before.
    fn message(
        &mut self,
        state: &LinkState,
        now: Nanos,
        reading: Reading,
        late_request: Nanos,
    ) -> bool {
        if state.role != Role::Consumer {
            return false;
        }
        self.last_moved = now;
        let account = &mut self.outcome.accounts.consumers[state.account as usize];
        account.last_heard = Some(now);
        let (Reading::Whole(mark) | Reading::Corrupt(Some(mark))) = reading else {
            account.tally.note(reading, false);
            return false;
        };
        let is_whole = matches!(reading, Reading::Whole(_));
        let is_late = self.rules.is_marked && now - mark.due > self.rules.timeout;
        let arrived = account.tally.note(reading, is_late);
        let is_new = matches!(arrived, Arrived::First | Arrived::Late);
        if arrived == Arrived::Late {
            self.outcome.recorder.late(now - mark.due);
        }
        if is_new {
            account.last_arrived = Some(now);
            self.unique[state.account as usize] += 1;
            self.unique_total += 1;
            if let Some(notes) = &mut self.notes {
                let (producer, number) = (mark.producer, mark.sequence);
                let (consumer, is_late) = (state.index, arrived == Arrived::Late);
                notes.note(MessageEvent::Arrived { consumer, producer, number, at: now, is_late });
            }
        }
        if (is_new || (mark.warmup && is_whole)) && self.rules.is_marked {
            let Mark { due, lag, own_lag, .. } = mark;
            let sending = Sending { due, sent: due + lag, own_lag: own_lag + late_request };
            self.outcome.recorder.delivered(sending, now, mark.warmup);
        } else if is_new || (mark.warmup && is_whole) {
            self.outcome.recorder.delivered_unmarked(now, mark.warmup);
        }
        if self.rules.ends_by_delivery && (is_new || (mark.warmup && is_whole)) {
            let Mark { producer, sequence: number, warmup, .. } = mark;
            self.deliveries.push(Delivery { producer, number, warmup, at: now });
        }
        is_new
    }

    /// Returns the identity of a body: from its mark, or from connection and order if bodies are
    /// too small for a mark.
    fn identity(&mut self, state: &LinkState, topic: &[u8], marked: Option<Reading>) -> Reading {
        let producers = self.job.load().connections;
        let reading = if let Some(reading) = marked {
            reading.of_trial(self.rules.tag)
        } else {
            let known = self.job.dial.producer_of.as_ref().and_then(|of| of(topic));
            let only = (producers == 1).then_some(0);
            match known.or(only) {
                Some(producer) => {
                    let next = self.order[state.account as usize].entry(producer).or_default();
                    let number = *next;
                    *next += 1;
                    self.by_order(producer, number)
                }
                None => Reading::Foreign,
            }
        };
        match reading {
            Reading::Whole(mark) | Reading::Corrupt(Some(mark))
                if mark.producer >= producers
                    || mark.sequence >= self.sequences_below(&mark)
                    || !hears(self.job.load(), state.index, mark.producer) =>
            {
                Reading::Foreign
            }
            reading => reading,
        }
    }

    /// The flight of a producer that waited for delivery has ended.
    pub(super) fn completed_by_delivery(
        &mut self,
        link: LinkId,
        state: &mut LinkState,
        flight: &Flight,
        now: Nanos,
    ) {
        self.in_flight -= 1;
        self.free_slot(link, state, flight, now);
    }

    pub(super) fn take_interval(&mut self, now: Nanos, warmup: bool) -> (Interval, IntervalTimes) {
        self.outcome.recorder.take_interval(now, warmup, self.open_links)
    }

    /// Hands over what was noted of single messages, once it is much or if it `is_last`.
    pub(super) fn hand_notes_over(&mut self, is_last: bool) {
        if let (Some(notes), Some(log)) = (&mut self.notes, &self.job.messages) {
            notes.hand_over(log, is_last);
        }
    }

    /// Notes that a connection failed or was lost.
    pub(super) fn note_loss(&mut self, reason: &str) {
        self.outcome.lost_links += 1;
        self.outcome.first_loss.get_or_insert_with(|| reason.to_owned());
    }

    /// Notes messages that were due and will not be sent.
    pub(super) fn note_not_sent(&mut self, cause: NotSentCause, count: u64) {
        if count > 0 {
            *self.outcome.accounts.not_sent.entry(cause).or_default() += count;
            if let Some(notes) = &mut self.notes {
                notes.note(MessageEvent::NotSent { cause, count });
            }
        }
    }

    /// The trial is over; the sessions that stand now were held to the end.
    pub(super) fn note_end(&mut self) {
        self.outcome.held = self.open_links;
    }

    pub(super) fn into_outcome(mut self, failure: Option<Failure>) -> ShardOutcome {
        self.hand_notes_over(true);
        self.outcome.recorder.settle();
        self.outcome.accounts.close();
        let granted = self.granted.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        ShardOutcome { granted, failure, ..self.outcome }
    }
}

/// The name under which the window of a connection is kept: the least of what the plan, the
/// protocol and the server allow.
const IN_FLIGHT: &str = "in_flight";

/// Numbers taken from producers of other shards, whose counts are not known here.
const SEQUENCES_ELSEWHERE_MAX: u64 = 1 << 30;
