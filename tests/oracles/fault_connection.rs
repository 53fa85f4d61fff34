//! A connection that does wrong what a list tells it to: it drops, doubles, swaps, damages and
//! holds back single messages, named by producer and number, or ends the connection at one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use weigh_model::Nanos;
use weigh_model::connection::{
    Connection, Emit, Fault, Op, Outbox, Reply, Signal, Ticket, Timing, Transfer,
};
use weigh_model::mark::{Mark, Reading};
use weigh_model::protocol::{Role, Seat};

use crate::rig::Wrap;

/// What is done to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// It never leaves.
    Drop,
    /// It leaves twice.
    Duplicate,
    /// It leaves after the one that follows it.
    Reorder,
    /// One byte of its content is flipped; its mark stays legible.
    Corrupt,
    /// One byte of its mark is flipped.
    CorruptMark,
    /// It leaves that long after it was due.
    Delay(Nanos),
    /// A body that is not ours comes before it.
    Foreign,
    /// It and everything after it is swallowed until the connection ends with a fault.
    Close,
}

/// Who does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Sender,
    Receiver,
}

/// What is to be done on one side, and what was done.
#[derive(Debug)]
pub struct Programme {
    pub side: Side,
    /// Bodies have a mark; without one the programme counts messages itself.
    pub actions: BTreeMap<(u32, u64), Action>,
    /// How often each action was carried out, by its name.
    pub done: BTreeMap<&'static str, u64>,
    /// Messages that a closing connection swallowed.
    pub swallowed: u64,
    /// Messages that a receiver has passed on.
    pub passed: u64,
}

impl Programme {
    pub fn new(side: Side, actions: impl IntoIterator<Item = ((u32, u64), Action)>) -> Programme {
        Programme {
            side,
            actions: actions.into_iter().collect(),
            done: BTreeMap::new(),
            swallowed: 0,
            passed: 0,
        }
    }

    /// How often this was carried out.
    pub fn count(&self, action: &'static str) -> u64 {
        self.done.get(action).copied().unwrap_or(0)
    }

    /// What is planned for the message of this body.
    fn planned(&mut self, body: &[u8]) -> Option<(Mark, Action)> {
        let Reading::Whole(mark) = Mark::read_any(body) else { return None };
        self.take(&mark).map(|action| (mark, action))
    }

    fn take(&mut self, mark: &Mark) -> Option<Action> {
        let action = self.actions.remove(&(mark.producer, mark.sequence))?;
        *self.done.entry(name(action)).or_default() += 1;
        Some(action)
    }
}

/// The word for an action.
pub fn name(action: Action) -> &'static str {
    match action {
        Action::Drop => "drop",
        Action::Duplicate => "duplicate",
        Action::Reorder => "reorder",
        Action::Corrupt => "corrupt",
        Action::CorruptMark => "corrupt mark",
        Action::Delay(_) => "delay",
        Action::Foreign => "foreign",
        Action::Close => "close",
    }
}

/// Puts the programme on every seat of its side; of receivers only on the first.
pub fn wrap(programme: &Arc<Mutex<Programme>>) -> Wrap {
    let programme = Arc::clone(programme);
    Arc::new(move |seat: Seat, inner| {
        let side = programme.lock().unwrap().side;
        let is_mine = match side {
            Side::Sender => seat.role == Role::Producer,
            Side::Receiver => seat.role == Role::Consumer && seat.index == 0,
        };
        if !is_mine {
            return inner;
        }
        Box::new(FaultConnection {
            inner,
            programme: Arc::clone(&programme),
            next_look: Nanos(0),
            swapped: None,
            held: Vec::new(),
            closing_since: None,
            outstanding: 0,
            extra: EXTRA_TICKETS,
            sends_pieces: false,
            gathered: None,
        })
    })
}

struct FaultConnection {
    inner: Box<dyn Connection>,
    programme: Arc<Mutex<Programme>>,
    /// When held messages are looked at next.
    next_look: Nanos,
    swapped: Option<(Ticket, Vec<u8>)>,
    held: Vec<(Nanos, Ticket, Vec<u8>)>,
    closing_since: Option<Nanos>,
    /// Operations handed to the inner connection and not answered yet.
    outstanding: u64,
    /// The next ticket of a double.
    extra: u32,
    /// Objects are sent as such; those of a programme are of one piece.
    sends_pieces: bool,
    /// Topic, size and what has come of an object that comes in pieces.
    gathered: Option<(Vec<u8>, u64, Vec<u8>)>,
}

impl FaultConnection {
    fn pass(&mut self, ticket: Ticket, body: &[u8], now: Nanos, out: &mut Outbox) -> Reply {
        let op = Op { ticket, body };
        let reply = match self.inner.transfer().filter(|_| self.sends_pieces) {
            Some(transfer) => transfer.begin(&op, 0, now, out),
            None => self.inner.send(&op, now, out),
        };
        self.outstanding += u64::from(reply == Reply::Awaited);
        reply
    }

    /// What the engine is told of a message that goes nowhere: what it would be told of any.
    fn reply_of_nothing(&self) -> Reply {
        if self.confirms() { Reply::Awaited } else { Reply::None }
    }

    fn confirms(&self) -> bool {
        self.programme.lock().unwrap().done.contains_key(CONFIRMS)
    }

    fn end_if_closing(&self, now: Nanos) -> Result<(), Fault> {
        match self.closing_since {
            Some(since) if now >= since + GRACE && self.outstanding == 0 => {
                Err(Fault::Ended("as the programme says".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

/// In the map of what was done: the protocol confirms messages. Set by whoever makes the trial.
pub const CONFIRMS: &str = "confirms";

impl Connection for FaultConnection {
    fn open(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        self.inner.open(now, out, emit);
    }

    fn room(&self) -> u32 {
        self.inner.room()
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        let Reading::Whole(mark) = Mark::read_any(op.body) else { panic!("a body without mark") };
        if self.closing_since.is_some() {
            self.programme.lock().unwrap().swallowed += 1;
            return self.reply_of_nothing();
        }
        let action = self.programme.lock().unwrap().take(&mark);
        let reply = match action {
            None | Some(Action::Foreign) => self.pass(op.ticket, op.body, now, out),
            Some(Action::Drop) => self.reply_of_nothing(),
            Some(Action::Duplicate) => {
                self.extra += 1;
                self.pass(Ticket(self.extra), op.body, now, out);
                self.pass(op.ticket, op.body, now, out)
            }
            Some(Action::Corrupt) => self.pass(op.ticket, &flipped(op.body, 0), now, out),
            Some(Action::CorruptMark) => {
                let place = op.body.len() - 20;
                self.pass(op.ticket, &flipped(op.body, place), now, out)
            }
            Some(Action::Reorder) => {
                self.swapped = Some((op.ticket, op.body.to_vec()));
                return self.reply_of_nothing();
            }
            Some(Action::Delay(by)) => {
                self.held.push((mark.due + by, op.ticket, op.body.to_vec()));
                self.reply_of_nothing()
            }
            Some(Action::Close) => {
                self.closing_since = Some(now);
                self.programme.lock().unwrap().swallowed += 1;
                self.reply_of_nothing()
            }
        };
        if let Some((ticket, body)) = self.swapped.take() {
            self.pass(ticket, &body, now, out);
        }
        reply
    }

    fn receive(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let programme = Arc::clone(&self.programme);
        let mut programme = programme.lock().unwrap();
        let is_receiver = programme.side == Side::Receiver;
        let (outstanding, swapped) = (&mut self.outstanding, &mut self.swapped);
        let (held, closing) = (&mut self.held, &mut self.closing_since);
        let gathered = &mut self.gathered;
        let mut act = |signal: Signal<'_>, emit: Emit<'_>| match signal {
            Signal::Done(ticket) | Signal::Refused(ticket, _) | Signal::NoSubscriber(ticket) => {
                *outstanding -= 1;
                if ticket.0 < EXTRA_TICKETS {
                    emit(signal);
                }
            }
            Signal::Message { topic, body } if is_receiver => {
                if closing.is_some() {
                    return;
                }
                let mut copies = match programme.planned(body) {
                    Some((_, Action::Reorder)) => {
                        *swapped = Some((Ticket(0), body.to_vec()));
                        return;
                    }
                    Some((mark, Action::Delay(by))) => {
                        held.push((mark.due + by, Ticket(0), body.to_vec()));
                        Vec::new()
                    }
                    Some((_, Action::Close)) => {
                        *closing = Some(Nanos(0));
                        Vec::new()
                    }
                    planned => copies(planned.map(|(_, action)| action), body),
                };
                copies.extend(swapped.take().map(|(_, body)| body));
                let due: Vec<_> = held.extract_if(.., |(at, _, _)| *at <= now).collect();
                copies.extend(due.into_iter().map(|(_, _, body)| body));
                for body in &copies {
                    programme.passed += 1;
                    emit(Signal::Message { topic, body });
                }
            }
            signal => emit(signal),
        };
        let taken = self.inner.receive(input, now, out, &mut |signal| match signal {
            Signal::Head { topic, bytes } if is_receiver => {
                *gathered = Some((topic.to_vec(), bytes, Vec::new()));
            }
            Signal::Piece(piece) if is_receiver => {
                let (_, bytes, body) = gathered.as_mut().unwrap();
                body.extend_from_slice(piece);
                if body.len() as u64 == *bytes {
                    let (topic, _, body) = gathered.take().unwrap();
                    let message = Signal::Message { topic: &topic, body: &body };
                    act(message, &mut |signal| in_pieces(signal, emit));
                }
            }
            signal => act(signal, emit),
        })?;
        match (is_receiver, self.closing_since) {
            (true, Some(_)) => Err(Fault::Ended("as the programme says".to_owned())),
            _ => Ok(taken),
        }
    }

    fn end(&mut self, rest: &[u8], emit: Emit<'_>) -> Result<(), Fault> {
        self.inner.end(rest, emit)
    }

    fn timing(&self) -> Timing {
        Timing::Exact
    }

    fn next_wake(&self) -> Option<Nanos> {
        match self.programme.lock().unwrap().side {
            Side::Receiver => self.inner.next_wake(),
            Side::Sender => Some(self.next_look),
        }
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        if self.programme.lock().unwrap().side == Side::Sender {
            self.next_look = now + TICK;
            self.end_if_closing(now)?;
            let due: Vec<_> = self.held.extract_if(.., |(at, _, _)| *at <= now).collect();
            for (_, ticket, body) in due {
                self.pass(ticket, &body, now, out);
            }
        }
        match self.inner.next_wake() {
            Some(at) if at <= now => self.inner.wake(now, out, emit),
            _ => Ok(()),
        }
    }

    fn close(&mut self, out: &mut Outbox) {
        self.inner.close(out);
    }

    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        Some(self)
    }
}

impl Transfer for FaultConnection {
    fn begin(&mut self, op: &Op<'_>, rest: u64, now: Nanos, out: &mut Outbox) -> Reply {
        assert_eq!(rest, 0, "an object of one piece");
        self.sends_pieces = true;
        self.send(op, now, out)
    }

    fn more(&mut self, _piece: &[u8], _now: Nanos, _out: &mut Outbox) {
        unreachable!("an object of one piece");
    }
}

/// A message as an object of two pieces.
fn in_pieces(signal: Signal<'_>, emit: Emit<'_>) {
    let Signal::Message { topic, body } = signal else { return emit(signal) };
    emit(Signal::Head { topic, bytes: body.len() as u64 });
    let (first, second) = body.split_at(body.len() / 2);
    emit(Signal::Piece(first));
    emit(Signal::Piece(second));
}

/// What comes of a message that is delayed by nothing, as the programme says.
fn copies(action: Option<Action>, body: &[u8]) -> Vec<Vec<u8>> {
    match action {
        Some(Action::Drop) => Vec::new(),
        Some(Action::Duplicate) => vec![body.to_vec(), body.to_vec()],
        Some(Action::Foreign) => {
            vec![b"not one of ours, whatever it says".to_vec(), body.to_vec()]
        }
        Some(Action::Corrupt) => vec![flipped(body, 0)],
        Some(Action::CorruptMark) => vec![flipped(body, body.len() - 20)],
        _ => vec![body.to_vec()],
    }
}

fn flipped(body: &[u8], place: usize) -> Vec<u8> {
    let mut body = body.to_vec();
    body[place] ^= 0x01;
    body
}

/// Tickets from here on are ours and not the engine's.
const EXTRA_TICKETS: u32 = 1 << 31;

/// How often held messages are looked at.
const TICK: Nanos = Nanos::from_millis(5);

/// What was sent before a connection ends on purpose has this long to arrive.
const GRACE: Nanos = Nanos::from_millis(100);
