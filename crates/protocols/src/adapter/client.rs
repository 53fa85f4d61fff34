//! A client connection whose protocol a library implements: calls in, answers out, and the
//! library's bytes between.

use std::sync::{Arc, Mutex};

use weigh_model::Nanos;
use weigh_model::connection::{
    Batch, Connection, Emit, Fault, Metered, Op, Outbox, Reply, Signal, Ticket, Timing, Transfer,
};
use weigh_model::content::{Meter, Phase};
use weigh_model::load::Pattern;
use weigh_model::protocol::{self, Dial, Lifetime};

use crate::adapter::stream::{self, Stream, Transport, lock};
use crate::adapter::tasks::{Pool, Soon, Tasks};

/// Makes connections with a library.
pub struct Library {
    /// Recognises by the first bytes of a server whether it speaks the protocol.
    pub recognise: fn(&[u8]) -> Recognised,
    /// Starts the protocol on a stream; ends once calls may be made.
    pub connect: Connect,
}

impl Library {
    /// Makes clients for the library, which confirms every message that it accepted.
    pub fn dial(self, pattern: Pattern) -> Dial {
        let library = Arc::new(self);
        Dial {
            transport: protocol::Transport::Stream,
            lifetime: Lifetime::of(pattern),
            confirms: true,
            is_answered: false,
            producer_of: None,
            make: Box::new(move |_seat| Box::new(LibraryConnection::new(Arc::clone(&library)))),
        }
    }
}

/// Starts the protocol on a stream, with its own tasks.
pub type Connect = Box<dyn Fn(Stream, Tasks) -> Soon<Connected> + Send + Sync>;

/// A connection, or why there is none.
pub type Connected = Result<Box<dyn Client>, Fault>;

/// Result of reading the first bytes of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recognised {
    /// Too few bytes to decide.
    NotYet,
    /// The server speaks the protocol.
    Yes,
    /// The server does not speak it; the text describes what it sent.
    No(String),
}

/// One connection of a client, implemented by a library.
pub trait Client: Send {
    /// Number of calls that may be open now.
    fn room(&self) -> u32;

    /// False once the connection accepts no more calls.
    fn is_open(&self) -> bool;

    /// Limits granted by the server, by name, for the journal.
    fn granted(&self) -> Option<(&'static str, u64)> {
        None
    }

    /// Makes a call with this body.
    fn call(&mut self, body: &[u8]) -> Soon<Answer>;

    /// Makes one call with all of these bodies, which are confirmed together (pattern `batch`);
    /// `None` where every body takes a call of its own.
    fn call_together(&mut self, _bodies: &[&[u8]]) -> Option<Soon<Answer>> {
        None
    }

    /// True if [`Client::call_together`] makes calls.
    fn gathers(&self) -> bool {
        false
    }
}

/// Result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Confirmed.
    Done,
    /// Answered with an error; the code is that of [`Signal::Refused`].
    Refused(u16),
    /// Not answered: the connection failed, in words.
    Unanswered(String),
    /// The answer shows that no call will ever succeed.
    Useless(Fault),
}

/// A library's connection as a connection of the engine.
pub struct LibraryConnection {
    library: Arc<Library>,
    pool: Pool,
    transport: Option<Transport>,
    made: Arc<Mutex<Option<Connected>>>,
    client: Option<Box<dyn Client>>,
    answers: Arc<Mutex<Vec<Ended>>>,
    open_calls: u32,
    /// The server's first bytes, until they are recognised.
    head: Vec<u8>,
    stage: Stage,
    /// Reason why a call got no answer.
    failure: Option<String>,
    /// A body that arrives in pieces: a library needs it complete.
    pieces: Option<(Ticket, Vec<u8>, u64)>,
    meter: Meter,
    /// Bytes of bodies that the library was given and has not written yet.
    unwritten: usize,
}

/// A finished call: what it carried, and its result.
type Ended = (Vec<Ticket>, Answer);

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The server has not been recognised.
    Opening,
    /// The server was recognised; the library is not ready.
    Recognised,
    /// Calls may be made.
    Ready,
    /// No more calls, and the engine has been informed.
    Closing,
    /// The connection was closed in order.
    Closed,
}

impl LibraryConnection {
    /// A connection that is not open yet.
    pub fn new(library: Arc<Library>) -> LibraryConnection {
        LibraryConnection {
            library,
            pool: Pool::new(),
            transport: None,
            made: Arc::default(),
            client: None,
            answers: Arc::default(),
            open_calls: 0,
            head: Vec::new(),
            stage: Stage::Opening,
            failure: None,
            pieces: None,
            meter: Meter::default(),
            unwritten: 0,
        }
    }

    /// Lets the library run, and takes the bytes that it wants to send.
    fn turn(&mut self, out: &mut Outbox) {
        self.pool.run();
        let Some(transport) = &self.transport else { return };
        let bytes = transport.drain(out.buffer());
        if bytes > 0 {
            let payload = self.unwritten.min(bytes);
            self.unwritten -= payload;
            self.meter.wrote(self.phase(), bytes, payload);
        }
    }

    /// Phase of the connection to which bytes belong.
    fn phase(&self) -> Phase {
        match self.stage {
            Stage::Opening | Stage::Recognised => Phase::SetUp,
            Stage::Ready | Stage::Closing => Phase::Messages,
            Stage::Closed => Phase::TearDown,
        }
    }

    /// Checks whether the server speaks the protocol, if that is not known yet.
    fn recognise(&mut self, input: &[u8]) -> Result<(), Fault> {
        if self.stage != Stage::Opening {
            return Ok(());
        }
        self.head.extend_from_slice(&input[..input.len().min(HEAD_BYTES_MAX)]);
        match (self.library.recognise)(&self.head) {
            Recognised::NotYet => Ok(()),
            Recognised::No(saw) => Err(Fault::OtherProtocol(saw)),
            Recognised::Yes => {
                self.stage = Stage::Recognised;
                self.head = Vec::new();
                Ok(())
            }
        }
    }

    /// Reports events of the library to the engine.
    fn tell(&mut self, emit: Emit<'_>) -> Result<(), Fault> {
        let made = lock(&self.made).take();
        if let Some(made) = made {
            self.client = Some(made?);
        }
        let Some(client) = &self.client else { return Ok(()) };
        if self.stage == Stage::Recognised {
            self.stage = Stage::Ready;
            if let Some((what, value)) = client.granted() {
                emit(Signal::Granted(what, value));
            }
            emit(Signal::Ready);
        }
        let mut useless = None;
        let answers = std::mem::take(&mut *lock(&self.answers));
        for (tickets, answer) in answers {
            self.open_calls -= 1;
            match answer {
                Answer::Done => tickets.into_iter().for_each(|own| emit(Signal::Done(own))),
                Answer::Refused(code) => {
                    tickets.into_iter().for_each(|own| emit(Signal::Refused(own, code)));
                }
                Answer::Unanswered(why) => drop(self.failure.get_or_insert(why)),
                Answer::Useless(fault) => drop(useless.get_or_insert(fault)),
            }
        }
        if let Some(fault) = useless {
            return Err(fault);
        }
        let is_over = !client.is_open() && self.open_calls == 0;
        match self.failure.take_if(|_| is_over || client.is_open()) {
            Some(why) => Err(Fault::Ended(why)),
            None => {
                if is_over && self.stage == Stage::Ready {
                    self.stage = Stage::Closing;
                    emit(Signal::Closing);
                }
                Ok(())
            }
        }
    }

    /// Waits for the end of a call that carries `body_bytes` of bodies.
    fn await_call(
        &mut self,
        tickets: Vec<Ticket>,
        call: Soon<Answer>,
        body_bytes: usize,
        out: &mut Outbox,
    ) {
        let answers = Arc::clone(&self.answers);
        self.open_calls += 1;
        self.unwritten += body_bytes;
        self.pool.tasks().spawn(async move {
            let answer = call.await;
            lock(&answers).push((tickets, answer));
        });
        self.turn(out);
    }

    fn call(&mut self, ticket: Ticket, body: &[u8], out: &mut Outbox) {
        let Some(client) = &mut self.client else { return };
        let call = client.call(body);
        self.await_call(vec![ticket], call, body.len(), out);
    }
}

impl Connection for LibraryConnection {
    fn open(&mut self, _now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        let (stream, transport) = stream::pair();
        self.transport = Some(transport);
        let tasks = self.pool.tasks();
        let (connecting, made) =
            ((self.library.connect)(stream, tasks.clone()), Arc::clone(&self.made));
        tasks.spawn(async move {
            let ended = connecting.await;
            *lock(&made) = Some(ended);
        });
        self.turn(out);
        if let Err(fault) = self.tell(emit) {
            *lock(&self.made) = Some(Err(fault));
        }
    }

    fn room(&self) -> u32 {
        match (&self.client, self.stage) {
            (Some(client), Stage::Ready) => client.room().saturating_sub(self.open_calls),
            _ => 0,
        }
    }

    fn send(&mut self, op: &Op<'_>, _now: Nanos, out: &mut Outbox) -> Reply {
        self.call(op.ticket, op.body, out);
        Reply::Awaited
    }

    fn receive(
        &mut self,
        input: &[u8],
        _now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        self.meter.read(self.phase(), input.len(), 0);
        self.recognise(input)?;
        if let Some(transport) = &self.transport {
            transport.feed(input);
        }
        self.turn(out);
        self.tell(emit)?;
        Ok(input.len())
    }

    fn end(&mut self, _rest: &[u8], emit: Emit<'_>) -> Result<(), Fault> {
        if let Some(transport) = &self.transport {
            transport.end();
        }
        self.pool.run();
        self.tell(emit)
    }

    fn timing(&self) -> Timing {
        Timing::KeepAlive
    }

    /// Called at once after an error at the start, which could not be reported when it happened.
    fn next_wake(&self) -> Option<Nanos> {
        matches!(*lock(&self.made), Some(Err(_))).then_some(Nanos(0))
    }

    fn wake(&mut self, _now: Nanos, _out: &mut Outbox, _emit: Emit<'_>) -> Result<(), Fault> {
        match lock(&self.made).take_if(|made| made.is_err()) {
            Some(Err(fault)) => Err(fault),
            _ => Ok(()),
        }
    }

    fn close(&mut self, out: &mut Outbox) {
        self.stage = Stage::Closed;
        self.client = None;
        self.turn(out);
    }

    fn batch(&mut self) -> Option<&mut dyn Batch> {
        Some(self)
    }

    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        Some(self)
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(&mut self.meter)
    }
}

impl Batch for LibraryConnection {
    /// Any number of bodies goes into one call, where the library has such calls.
    fn room_together(&mut self) -> u32 {
        let gathers = self.client.as_ref().is_some_and(|client| client.gathers());
        match self.room() {
            0 => 0,
            _ if gathers => u32::MAX,
            room => room,
        }
    }

    fn send_together(&mut self, ops: &[Op<'_>], now: Nanos, out: &mut Outbox) -> Reply {
        let Some(client) = &mut self.client else { return Reply::Awaited };
        let bodies: Vec<&[u8]> = ops.iter().map(|op| op.body).collect();
        match client.call_together(&bodies) {
            Some(call) => {
                let body_bytes = bodies.iter().map(|body| body.len()).sum();
                let tickets = ops.iter().map(|op| op.ticket).collect();
                self.await_call(tickets, call, body_bytes, out);
            }
            None => {
                for op in ops {
                    self.send(op, now, out);
                }
            }
        }
        Reply::Awaited
    }
}

impl Transfer for LibraryConnection {
    fn begin(&mut self, op: &Op<'_>, rest: u64, now: Nanos, out: &mut Outbox) -> Reply {
        self.pieces = Some((op.ticket, Vec::new(), rest + op.body.len() as u64));
        self.more(op.body, now, out);
        Reply::Awaited
    }

    fn more(&mut self, piece: &[u8], _now: Nanos, out: &mut Outbox) {
        let Some((ticket, body, bytes)) = &mut self.pieces else { return };
        body.extend_from_slice(piece);
        if body.len() as u64 >= *bytes {
            let (ticket, body) = (*ticket, std::mem::take(body));
            self.pieces = None;
            self.call(ticket, &body, out);
        }
    }
}

/// Most of the server's first bytes that are read in one piece.
const HEAD_BYTES_MAX: usize = 64;
