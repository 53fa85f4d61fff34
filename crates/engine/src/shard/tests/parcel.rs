//! A protocol for tests: a kind, a ticket, a length, a body. Its server has the manners that a
//! test asks for.

use weigh_model::Nanos;
use weigh_model::connection::{
    Connection, Emit, Fault, Op, Outbox, Reply, Signal, Ticket, Transfer,
};
use weigh_model::protocol::{Host, Role, Seat, Transport};
use weigh_model::server::{ConnectionId, Outboxes, Server, ServerReport};

/// Behaviour of the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Manner {
    /// Answers every message and passes it on to all subscribers.
    Answers,
    /// Sends nothing after the greeting.
    Silent,
    /// Answers with an error.
    Refuses,
    /// Announces with every N-th answer that it closes, and closes.
    ClosesEvery(u32),
    /// Answers N messages of a connection; does not process the others, and says so.
    TakesOnly(u32),
    /// Answers by closing.
    AnswersByClosing,
    /// Resets the connection after N messages instead of answering.
    ResetsAfter(u32),
    /// Greets, and closes the connection at once.
    GreetsAndCloses,
    /// Resets a subscriber that received N messages.
    ResetsSubscribersAfter(u32),
}

const ASK: u8 = b'M';
const TELL: u8 = b'Q';
const SUBSCRIBE: u8 = b'S';
const GREET: u8 = b'G';
const ANSWER: u8 = b'A';
const REFUSE: u8 = b'R';
const CLOSE: u8 = b'C';
const RETURN: u8 = b'U';
const DELIVER: u8 = b'D';

fn put(out: &mut Vec<u8>, kind: u8, ticket: u32, body: &[u8]) {
    put_head(out, kind, ticket, body.len());
    out.extend_from_slice(body);
}

fn put_head(out: &mut Vec<u8>, kind: u8, ticket: u32, body_bytes: usize) {
    out.push(kind);
    out.extend_from_slice(&ticket.to_be_bytes());
    out.extend_from_slice(&(body_bytes as u32).to_be_bytes());
}

fn take(input: &[u8]) -> Option<(u8, u32, &[u8])> {
    let (head, rest) = input.split_at_checked(9)?;
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    Some((head[0], word(1), rest.get(..word(5) as usize)?))
}

/// Takes each body that is sent.
pub type Keep = Box<dyn Fn(&[u8]) + Send>;

/// The client's end.
pub struct Parcels {
    pub seat: Seat,
    pub confirms: bool,
    /// The seat that finds its session refused.
    pub refused_seat: Option<u32>,
    pub is_ready: bool,
    pub is_leaving: bool,
    pub in_flight: Vec<Ticket>,
    pub keep: Option<Keep>,
    pub times_its_handshake: bool,
}

impl Parcels {
    /// A connection that has not begun.
    pub fn new(seat: Seat, confirms: bool, refused_seat: Option<u32>) -> Parcels {
        Parcels {
            seat,
            confirms,
            refused_seat,
            is_ready: false,
            is_leaving: false,
            in_flight: Vec::new(),
            keep: None,
            times_its_handshake: false,
        }
    }
}

impl Connection for Parcels {
    fn open(&mut self, _: Nanos, out: &mut Outbox, _: Emit<'_>) {
        let kind = if self.seat.role == Role::Consumer { SUBSCRIBE } else { GREET };
        put(out.buffer(), kind, 0, b"");
    }

    fn times_its_handshake(&self) -> bool {
        self.times_its_handshake
    }

    fn room(&self) -> u32 {
        if self.is_ready && !self.is_leaving { 16 - self.in_flight.len() as u32 } else { 0 }
    }

    fn send(&mut self, op: &Op<'_>, _: Nanos, out: &mut Outbox) -> Reply {
        self.keep.iter().for_each(|keep| keep(op.body));
        put(out.buffer(), if self.confirms { ASK } else { TELL }, op.ticket.0, op.body);
        if self.confirms {
            self.in_flight.push(op.ticket);
            return Reply::Awaited;
        }
        Reply::None
    }

    fn receive(
        &mut self,
        input: &[u8],
        _: Nanos,
        _: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        while let Some((kind, ticket, body)) = take(&input[taken..]) {
            taken += 9 + body.len();
            self.in_flight.retain(|known| known.0 != ticket || kind == DELIVER);
            match kind {
                GREET if self.refused_seat == Some(self.seat.index) => {
                    return Err(Fault::Refused { code: 5, reason: "not you".to_owned() });
                }
                GREET => {
                    self.is_ready = true;
                    emit(Signal::Ready);
                }
                ANSWER => emit(Signal::Done(Ticket(ticket))),
                REFUSE => emit(Signal::Refused(Ticket(ticket), 500)),
                RETURN => {
                    self.is_leaving = true;
                    emit(Signal::Unprocessed(Ticket(ticket)));
                }
                CLOSE => {
                    emit(Signal::Done(Ticket(ticket)));
                    emit(Signal::Closing);
                }
                _ => emit(Signal::Message { topic: b"", body }),
            }
            if self.is_leaving && self.in_flight.is_empty() {
                emit(Signal::Closing);
            }
        }
        Ok(taken)
    }

    fn end(&mut self, _: &[u8], emit: Emit<'_>) -> Result<(), Fault> {
        for ticket in self.in_flight.drain(..) {
            emit(Signal::Done(ticket));
            emit(Signal::Closing);
        }
        Ok(())
    }

    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        Some(self)
    }
}

impl Transfer for Parcels {
    fn begin(&mut self, op: &Op<'_>, rest: u64, _: Nanos, out: &mut Outbox) -> Reply {
        put_head(out.buffer(), ASK, op.ticket.0, op.body.len() + rest as usize);
        out.put(op.body);
        self.in_flight.push(op.ticket);
        Reply::Awaited
    }

    fn more(&mut self, piece: &[u8], _: Nanos, out: &mut Outbox) {
        out.put(piece);
    }
}

/// The server's end.
struct Office {
    manner: Manner,
    taken: Vec<u32>,
    subscribers: Vec<(ConnectionId, u32)>,
    report: ServerReport,
}

pub fn host(manner: Manner) -> Host {
    Host {
        transport: Transport::Stream,
        make: Box::new(move |_| {
            Box::new(Office {
                manner,
                taken: Vec::new(),
                subscribers: Vec::new(),
                report: ServerReport::default(),
            })
        }),
    }
}

impl Office {
    fn message(&mut self, from: ConnectionId, ticket: u32, asks: bool, out: &mut dyn Outboxes) {
        let taken = &mut self.taken[from.0 as usize];
        *taken += 1;
        let answer = match self.manner {
            Manner::Silent => return,
            Manner::AnswersByClosing => return out.close(from),
            Manner::ResetsAfter(count) if *taken >= count => return out.abort(from),
            Manner::ClosesEvery(count) if *taken >= count => CLOSE,
            Manner::Refuses => REFUSE,
            Manner::TakesOnly(count) if *taken > count => RETURN,
            _ => ANSWER,
        };
        if asks {
            put(out.stage(from), answer, ticket, b"");
        }
        if answer == CLOSE {
            out.close(from);
        }
    }

    fn pass_on(&mut self, body: &[u8], out: &mut dyn Outboxes) {
        for (subscriber, got) in &mut self.subscribers {
            *got += 1;
            put(out.stage(*subscriber), DELIVER, 0, body);
            if matches!(self.manner, Manner::ResetsSubscribersAfter(count) if *got >= count) {
                out.abort(*subscriber);
            }
        }
    }
}

impl Server for Office {
    fn accepted(&mut self, connection: ConnectionId, _: Nanos, _: &mut dyn Outboxes) {
        let place = connection.0 as usize;
        if self.taken.len() <= place {
            self.taken.resize(place + 1, 0);
        }
        self.taken[place] = 0;
        self.report.connections += 1;
    }

    fn receive(
        &mut self,
        from: ConnectionId,
        input: &[u8],
        _: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        while let Some((kind, ticket, body)) = take(&input[taken..]) {
            taken += 9 + body.len();
            match kind {
                GREET => {
                    put(out.stage(from), GREET, 0, b"");
                    if matches!(self.manner, Manner::GreetsAndCloses) {
                        out.close(from);
                    }
                }
                SUBSCRIBE => {
                    self.subscribers.push((from, 0));
                    put(out.stage(from), GREET, 0, b"");
                }
                kind => {
                    self.report.received += 1;
                    self.pass_on(body, out);
                    self.message(from, ticket, kind == ASK, out);
                }
            }
        }
        Ok(taken)
    }

    fn closed(&mut self, connection: ConnectionId, _: Nanos, _: &mut dyn Outboxes) {
        self.subscribers.retain(|(subscriber, _)| *subscriber != connection);
    }

    fn report(&self) -> ServerReport {
        self.report.clone()
    }
}
