//! Where signals are booked: the flight ends, the times are recorded, the slot is free again.

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

use crate::accounts::{Accounts, ConsumerAccount, ProducerAccount, hears};
use crate::interval_times::IntervalTimes;
use crate::job::{Failure, Job};
use crate::link::{Answered, Flight, Incoming, LinkPhase, LinkState};
use crate::message_log::{MessageEvent, Notes};
use crate::outcome::ShardOutcome;
use crate::recorder::{Recorder, Sending};
use crate::window::Window;

/// The books of a shard, apart from its links so that both can be borrowed at once.
pub(super) struct Desk {
    job: Arc<Job>,
    /// What the shard leaves behind, as far as it is known.
    pub(super) left: ShardOutcome,
    /// How many producers there are.
    pub(super) producers: usize,
    /// What happens to every single message, where that is kept.
    pub(super) notes: Option<Notes>,
    /// Links with a slot that is free again, and since when.
    pub(super) freed: Vec<(u32, Nanos)>,
    /// Links that may take more, because something ended or came up.
    pub(super) stirred: Vec<u32>,
    /// Deliveries that end the flight of a producer: its index, the number, whether of the
    /// warm-up.
    pub(super) deliveries: Vec<(u32, u64, bool, Nanos)>,
    /// Consumers that got their answer.
    pub(super) answered: Vec<Answered>,
    /// Requests of the measured window that are not answered.
    pub(super) requests_awaited: u64,
    /// When the clock stood at 0, where it goes on within a turn.
    pub(super) epoch: Option<Instant>,
    /// Messages in flight on all links, expired ones included.
    pub(super) in_flight: u64,
    /// Measured messages that have become due.
    pub(super) due_count: u64,
    /// The latest due time of a measured message.
    pub(super) last_due: Nanos,
    /// When the target last did something: answered or delivered a message, took bytes after it
    /// had taken none, or ended a connection. To accept and to greet is not enough.
    pub(super) last_moved: Nanos,
    /// Sessions that stand.
    pub(super) open_links: u64,
    /// Different messages each consumer got in time or late, by account.
    pub(super) unique: Vec<u64>,
    granted: BTreeMap<&'static str, u64>,
    rules: Rules,
    order: Vec<BTreeMap<u32, u64>>,
}

/// What holds of every message of the trial.
struct Rules {
    tag: u16,
    /// Consumers ask.
    polls: bool,
    is_marked: bool,
    delivers_complete: bool,
}

impl Desk {
    /// Books for so many consumers and producers.
    pub(super) fn new(job: Arc<Job>, consumers: usize, producers: usize) -> Desk {
        let is_hold = job.load().pattern == Pattern::Hold;
        let mut recorder = Recorder::new(job.dial.confirms);
        let (load, seed) = (job.load(), job.trial.seed);
        recorder.window.prepare(Window::offered(load, &job.trace, seed), load.timeout);
        if !is_hold {
            recorder.prepare();
        }
        if job.load().polling().is_some() {
            recorder.prepare_for_polls();
        }
        Desk {
            left: ShardOutcome {
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
            stirred: Vec::new(),
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
            granted: BTreeMap::new(),
            rules: Rules {
                tag: job.trial.tag(),
                polls: job.load().polling().is_some(),
                is_marked: job.composer.is_marked(),
                delivers_complete: job.completes_on_delivery(),
            },
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
        self.left.accounts.producers.push(ProducerAccount { index, ..ProducerAccount::default() });
        self.left.accounts.producers.len() as u32 - 1
    }

    pub(super) fn open_consumer(&mut self, index: u32) -> u32 {
        self.left.accounts.consumers.push(ConsumerAccount { index, ..ConsumerAccount::default() });
        self.unique.push(0);
        self.order.push(BTreeMap::new());
        self.left.accounts.consumers.len() as u32 - 1
    }

    /// A message has become due.
    pub(super) fn scheduled(&mut self, warmup: bool) {
        self.due_count += u64::from(!warmup);
    }

    /// A measured message of so many bytes was handed over at `sent`.
    pub(super) fn note_sent(&mut self, mark: &Mark, state: &LinkState, sent: Nanos, bytes: u64) {
        self.left.recorder.body_bytes += bytes;
        if let Some(notes) = &mut self.notes {
            notes.note(MessageEvent::Sent {
                producer: mark.producer,
                connection: state.connections.saturating_sub(1),
                number: mark.sequence,
                due: mark.due,
                sent,
                own_lag: mark.own_lag,
                body_bytes: bytes as u32,
            });
        }
    }

    /// That many measured messages have become due.
    pub(super) fn scheduled_many(&mut self, count: u64) {
        self.due_count += count;
    }

    /// Books a signal of link `link`.
    pub(super) fn signal(
        &mut self,
        link: u32,
        state: &mut LinkState,
        now: Nanos,
        signal: Signal<'_>,
    ) {
        match signal {
            Signal::Ready => self.ready(link, state, now),
            Signal::Done(ticket) => self.confirmed(link, state, now, ticket, false),
            Signal::NoSubscriber(ticket) => self.confirmed(link, state, now, ticket, true),
            Signal::Refused(ticket, reason) => {
                self.left.first_error.get_or_insert(reason);
                self.refused(link, state, now, ticket);
            }
            Signal::Message { topic, body } if self.rules.polls => {
                let job = Arc::clone(&self.job);
                let reading = self.read(state, topic, || job.composer.read(body));
                let reading = self.opened(state, body, reading);
                self.polled(state, now, reading);
            }
            Signal::Message { topic, body } => {
                let reading = self.read(state, topic, || Mark::read_any(body));
                let reading = self.opened(state, body, reading);
                self.message(state, now, reading, Nanos(0));
            }
            Signal::Answered(result) => self.answered(link, state, now, result),
            Signal::Head { topic, bytes } => self.head(state, now, topic, bytes),
            Signal::Piece(piece) => self.piece(state, now, piece),
            Signal::Granted(what, value) => {
                let least = self.granted.entry(what).or_insert(value);
                *least = value.min(*least);
            }
            Signal::Alive => self.left.alive.answered += 1,
            Signal::Closing => state.phase = LinkPhase::Closing,
        }
    }

    /// A connection said something of its own accord, to keep its session alive.
    pub(super) fn note_sign_of_life(&mut self, in_window: bool) {
        self.left.alive.sent += 1;
        self.left.alive.in_window += u64::from(in_window);
    }

    /// Signs of life that the target has not answered.
    pub(super) fn signs_awaited(&self) -> u64 {
        self.left.alive.sent.saturating_sub(self.left.alive.answered)
    }

    /// A producer may have that many messages in flight; `u32::MAX` is no limit.
    pub(super) fn note_window(&mut self, window: u32) {
        if window < u32::MAX {
            let least = self.granted.entry(IN_FLIGHT).or_insert(u64::from(window));
            *least = u64::from(window).min(*least);
        }
    }

    fn ready(&mut self, link: u32, state: &mut LinkState, now: Nanos) {
        if state.phase != LinkPhase::Opening {
            return;
        }
        state.is_standing = true;
        state.phase = LinkPhase::Ready;
        state.attempts = 0;
        self.open_links += 1;
        self.left.opened += 1;
        if self.left.measure_from == Nanos::NEVER {
            let (asked, stood) = self.left.set_up.unwrap_or((state.connecting_since, now));
            self.left.set_up = Some((asked.min(state.connecting_since), stood.max(now)));
        }
        let is_kept = self.job.dial.lifetime == Lifetime::Kept;
        if is_kept || state.connecting_since >= self.left.measure_from {
            self.left.recorder.connect.record((now - state.connecting_since).0);
        }
        if self.left.measure_from < Nanos::NEVER {
            self.stirred.push(link);
        } // Else the load has not begun, and when it does it looks at every link.
    }

    fn confirmed(
        &mut self,
        link: u32,
        state: &mut LinkState,
        now: Nanos,
        ticket: Ticket,
        no_subscriber: bool,
    ) {
        let Some(flight) = state.traffic_mut().flights.end(ticket) else { return };
        self.in_flight -= 1;
        self.last_moved = now;
        self.left.recorder.confirmed(flight.sending(), now, flight.warmup);
        if !flight.warmup {
            let is_late = now - flight.due > self.job.load().timeout;
            let has_consumers = self.job.has_consumers();
            if is_late && !has_consumers {
                self.left.recorder.late(now - flight.due);
            }
            let account = &mut self.left.accounts.producers[state.account as usize];
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

    /// Where a connection lives for one message, its end ends the connection. So does an answer
    /// that came before the whole object was sent: what is left of it nobody wants, and nothing
    /// else could be told from it.
    fn end_of_message(&self, state: &mut LinkState, ticket: Ticket) {
        let outgoing = &mut state.traffic_mut().outgoing;
        let is_cut_off = outgoing.take_if(|object| object.ticket == ticket).is_some();
        if self.job.dial.lifetime == Lifetime::PerMessage || is_cut_off {
            state.phase = LinkPhase::Closing;
        }
    }

    /// An object could not be read to its end: it is lost on our own side, whoever waits for it.
    pub(super) fn dropped(&mut self, state: &LinkState, flight: &Flight, why: String) {
        self.in_flight -= 1;
        self.left.object_fault.get_or_insert(why);
        if !flight.warmup {
            let has_consumers = self.job.has_consumers();
            let account = &mut self.left.accounts.producers[state.account as usize];
            account.fail(flight.number, Cause::ProducerDropped, has_consumers);
            if let Some(notes) = &mut self.notes {
                let (producer, number) = (state.index, flight.number);
                let (at, cause) = (Nanos::NEVER, Cause::ProducerDropped);
                notes.note(MessageEvent::Failed { producer, number, at, cause });
            }
        }
    }

    fn refused(&mut self, link: u32, state: &mut LinkState, now: Nanos, ticket: Ticket) {
        let Some(flight) = state.traffic_mut().flights.end(ticket) else { return };
        self.in_flight -= 1;
        self.last_moved = now;
        self.left.recorder.refused(flight.due, flight.sent, now, flight.warmup);
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
        if !flight.warmup && !self.rules.delivers_complete {
            let has_consumers = self.job.has_consumers();
            let account = &mut self.left.accounts.producers[state.account as usize];
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
        link: u32,
        state: &mut LinkState,
        flight: &Flight,
        now: Nanos,
    ) {
        let is_whole = self.end_in_batch(state, flight, false, now);
        self.free_window(link, flight, is_whole, now);
    }

    /// The end of a flight frees a slot if its exchange `is_whole`: over with it.
    fn free_window(&mut self, link: u32, flight: &Flight, is_whole: bool, now: Nanos) {
        if flight.is_expired || !is_whole || self.job.load().arrival.is_open() {
            self.stirred.push(link);
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
        let reading = self.read(state, &incoming.topic, || incoming.reader.finish());
        if let (Reading::Whole(mark), true) = (reading, self.rules.is_marked)
            && !mark.warmup
        {
            self.left.recorder.first_byte.record((incoming.since - mark.due).0);
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
        let account = &mut self.left.accounts.consumers[state.account as usize];
        let (Reading::Whole(mark) | Reading::Corrupt(Some(mark))) = reading else {
            account.tally.note(reading, false);
            return false;
        };
        let is_whole = matches!(reading, Reading::Whole(_));
        let is_late = self.rules.is_marked && now - mark.due > self.job.load().timeout;
        let arrived = account.tally.note(reading, is_late);
        let is_new = matches!(arrived, Arrived::First | Arrived::Late);
        if arrived == Arrived::Late {
            self.left.recorder.late(now - mark.due);
        }
        if is_new {
            account.last_arrived = Some(now);
            self.unique[state.account as usize] += 1;
            if let Some(notes) = &mut self.notes {
                let (producer, number) = (mark.producer, mark.sequence);
                let (consumer, is_late) = (state.index, arrived == Arrived::Late);
                notes.note(MessageEvent::Arrived { consumer, producer, number, at: now, is_late });
            }
        }
        if (is_new || (mark.warmup && is_whole)) && self.rules.is_marked {
            let Mark { due, lag, own_lag, .. } = mark;
            let sending = Sending { due, sent: due + lag, own_lag: own_lag + late_request };
            self.left.recorder.delivered(sending, now, mark.warmup);
        } else if is_new || (mark.warmup && is_whole) {
            self.left.recorder.delivered_unmarked(now, mark.warmup);
        }
        if self.rules.delivers_complete && (is_new || (mark.warmup && is_whole)) {
            self.deliveries.push((mark.producer, mark.sequence, mark.warmup, now));
        }
        is_new
    }

    /// Reads the identity of a body: from its mark, or from connection and order where bodies
    /// are too small for one.
    fn read(
        &mut self,
        state: &LinkState,
        topic: &[u8],
        marked: impl FnOnce() -> Reading,
    ) -> Reading {
        let producers = self.job.load().connections;
        let reading = if self.rules.is_marked {
            marked().of_trial(self.rules.tag)
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
        link: u32,
        state: &mut LinkState,
        flight: &Flight,
        now: Nanos,
    ) {
        self.in_flight -= 1;
        self.free_slot(link, state, flight, now);
    }

    pub(super) fn take_interval(&mut self, now: Nanos, warmup: bool) -> (Interval, IntervalTimes) {
        self.left.recorder.take_interval(now, warmup, self.open_links)
    }

    /// Hands over what was noted of single messages, once it is much or if it `is_last`.
    pub(super) fn hand_notes_over(&mut self, is_last: bool) {
        if let (Some(notes), Some(log)) = (&mut self.notes, &self.job.messages) {
            notes.hand_over(log, is_last);
        }
    }

    /// Notes that a connection failed or was lost.
    pub(super) fn note_loss(&mut self, reason: &str) {
        self.left.lost_links += 1;
        self.left.first_loss.get_or_insert_with(|| reason.to_owned());
    }

    /// Notes messages that were due and will not be sent.
    pub(super) fn note_not_sent(&mut self, cause: NotSentCause, count: u64) {
        if count > 0 {
            *self.left.accounts.not_sent.entry(cause).or_default() += count;
            if let Some(notes) = &mut self.notes {
                notes.note(MessageEvent::NotSent { cause, count });
            }
        }
    }

    /// The trial is over; the sessions that stand now were held to the end.
    pub(super) fn note_end(&mut self) {
        self.left.held = self.open_links;
    }

    pub(super) fn into_outcome(mut self, failure: Option<Failure>) -> ShardOutcome {
        self.hand_notes_over(true);
        self.left.recorder.settle();
        let granted = self.granted.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        ShardOutcome { granted, failure, ..self.left }
    }
}

/// The name under which the window of a connection is kept: the least of what the plan, the
/// protocol and the server allow.
const IN_FLIGHT: &str = "in_flight";

/// Numbers taken from producers of other shards, whose counts are not known here.
const SEQUENCES_ELSEWHERE_MAX: u64 = 1 << 30;
