//! Objects that are sent piece by piece: the next piece is made when the socket has taken the last
//! one, so that an object of any size takes the memory of one piece.

use weigh_model::Nanos;
use weigh_model::connection::{Connection, Op, Outbox, Reply, Ticket};
use weigh_model::mark::Mark;
use weigh_model::pieces::BodyMaker;

use super::parts::PIECE_BYTES;
use super::rules::Exchange;
use super::{Phase, Shard};
use crate::io::Io;
use crate::job::Job;
use crate::link::{Link, LinkId, Outgoing};

/// Body, as far as it was composed.
pub(super) enum Composed {
    /// All of it.
    Whole,
    /// Its first piece; here is what makes the others.
    Part(BodyMaker),
    /// Nothing: the file could not be read, and why.
    Nothing(String),
}

/// Object that continues after the message was handed over.
pub(super) enum Object {
    /// The rest of it follows.
    Rest(Box<Outgoing>),
    /// It could not be read: its flight, and why.
    Unread(Ticket, String),
}

impl Composed {
    /// Hands the message to its connection.
    #[inline]
    pub(super) fn hand_to(
        &self,
        connection: &mut Box<dyn Connection>,
        op: &Op<'_>,
        now: Nanos,
        out: &mut Outbox,
    ) -> Reply {
        match self {
            Composed::Whole => connection.send(op, now, out),
            Composed::Part(maker) => match connection.transfer() {
                Some(transfer) => transfer.begin(op, maker.left(), now, out),
                // Its protocol does not offer the pattern: see `Protocol::patterns`.
                None => Reply::Awaited,
            },
            Composed::Nothing(_) => Reply::Awaited,
        }
    }

    /// Returns the remainder of the object; `None` for a message that is complete.
    pub(super) fn object(self, ticket: Ticket, is_unanswered: bool) -> Option<Object> {
        match self {
            Composed::Part(maker) if maker.left() > 0 => {
                Some(Object::Rest(Box::new(Outgoing { maker, ticket, is_unanswered })))
            }
            Composed::Nothing(why) => Some(Object::Unread(ticket, why)),
            _ => None,
        }
    }

    /// Bytes of the whole body, of which `body` is what was composed.
    pub(super) fn whole_bytes(&self, body: &[u8]) -> u64 {
        match self {
            Composed::Part(maker) => maker.whole(),
            _ => body.len() as u64,
        }
    }
}

/// Composes the body of the message `mark`, or the first piece of it.
#[inline]
pub(super) fn compose(job: &Job, exchange: Exchange, mark: &Mark, body: &mut Vec<u8>) -> Composed {
    if exchange != Exchange::Stream {
        job.composer.compose(mark, body);
        return Composed::Whole;
    }
    let mut maker = job.composer.begin(mark);
    match make(job, &mut maker, body) {
        Ok(()) => Composed::Part(maker),
        Err(why) => Composed::Nothing(why),
    }
}

/// Makes the next piece of a body.
fn make(job: &Job, maker: &mut BodyMaker, body: &mut Vec<u8>) -> Result<(), String> {
    maker.make(PIECE_BYTES, body, |at, place| match &job.object {
        Some(object) => object.read(at, place),
        None => Err("there is no file to read from".to_owned()),
    })
}

impl Shard {
    /// An object was begun, or could not be.
    pub(super) fn object_begun(&mut self, index: LinkId, object: Object, now: Nanos) {
        self.books.in_flight += 1;
        match object {
            Object::Rest(rest) => {
                self.links[index].state.traffic_mut().outgoing = Some(rest);
            }
            Object::Unread(ticket, why) => self.drop_object(index, ticket, why, now),
        }
    }

    /// Hands more of the object that a link sends to its socket, as far as that takes it and the
    /// share of one turn goes.
    pub(super) fn send_on(&mut self, index: LinkId, io: &mut dyn Io) {
        for _ in 0..PIECES_PER_TURN {
            let Link { connection, state } = &mut self.links[index];
            if state.is_blocked || state.is_lost || state.out_bytes() > 0 {
                return;
            }
            let Some(connection) = connection else { return };
            let Some(object) = &mut state.traffic_mut().outgoing else { return };
            if !connection.transfer().is_some_and(|transfer| transfer.takes_more()) {
                return;
            }
            self.out.body.clear();
            if let Err(why) = make(&self.job, &mut object.maker, &mut self.out.body) {
                let ticket = object.ticket;
                return self.drop_object(index, ticket, why, io.now());
            }
            let now = io.now();
            let is_last = object.maker.left() == 0;
            let (ticket, is_unanswered) = (object.ticket, object.is_unanswered);
            let mut staged = self.out.spare.lend(state);
            if let Some(transfer) = connection.transfer() {
                transfer.more(&self.out.body, now, &mut staged.out);
            }
            self.out.spare.settle(state, staged);
            if is_last {
                state.traffic_mut().outgoing = None;
                self.object_left(index, ticket, is_unanswered, now);
            }
            self.hand_over(index, io);
            if is_last {
                return;
            }
        }
        self.out.streaming.push(index);
    }

    /// Gives a link that sends an object its turn: its connection may have waited for what just
    /// came.
    pub(super) fn continue_object(&mut self, index: LinkId) {
        let is_stream = self.rules.exchange == Exchange::Stream;
        if is_stream && self.links[index].state.traffic().outgoing.is_some() {
            self.mark_dirty(index);
        }
    }

    /// The last byte of an object went to the connection: without an answer to await, that ends it.
    fn object_left(&mut self, index: LinkId, ticket: Ticket, is_unanswered: bool, now: Nanos) {
        // Another may follow while the answer is awaited, where the window allows it.
        self.books.unblocked.push(index);
        if !is_unanswered {
            return;
        }
        let state = &mut self.links[index].state;
        let Some(flight) = state.traffic_mut().flights.end(ticket) else { return };
        self.close_if_per_message(index);
        self.books.in_flight -= 1;
        if !flight.warmup {
            self.books.outcome.recorder.done(now);
        }
        self.free_unanswered(index, now);
    }

    /// An object cannot be read to its end. Its connection waits for bytes that will not come, and
    /// is replaced.
    pub(super) fn drop_object(&mut self, index: LinkId, ticket: Ticket, why: String, now: Nanos) {
        let state = &mut self.links[index].state;
        let traffic = state.traffic_mut();
        traffic.outgoing = None;
        if let Some(flight) = traffic.flights.end(ticket) {
            self.books.dropped(state, &flight, why.clone());
            self.books.free_slot(index, state, &flight, now);
            if !flight.warmup && self.clock.phase == Phase::Draining {
                self.job.rendezvous.note_dropped();
            }
        }
        self.lose(index, why, false);
    }
}

/// Pieces that one link may send before the others have their turn.
const PIECES_PER_TURN: u32 = 16;
