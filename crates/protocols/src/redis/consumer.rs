//! A consumer of a stream: it finds the end of the stream or makes its group there, and reads from
//! there on, in `deliver` with requests that the server holds, in `poll` when it is asked to.

use std::collections::VecDeque;
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{Connection, Emit, Fault, Metered, Outbox, Poll, Signal};
use weigh_model::content::Phase;

use super::codec::{Id, Reply, Token, put_array, put_bulk};
use super::errors;
use super::hearing::Hearing;
use super::plan::{Plan, Reading, put_request};

/// A consumer's connection.
pub(super) struct StreamConsumer {
    plan: Arc<Plan>,
    seat: u32,
    /// Answers to the greeting that are still to come.
    greetings: u32,
    /// Commands in flight, oldest first.
    awaited: VecDeque<Awaited>,
    /// Last entry that arrived; where plain reading continues.
    cursor: Option<Id>,
    is_ready: bool,
    hearing: Hearing,
    /// IDs of the last answer, for its acknowledgement.
    ids: Vec<Id>,
}

/// A command in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// XGROUP CREATE.
    Group,
    /// XREVRANGE for the last entry of the stream.
    End,
    /// XREADGROUP of entries that were delivered before and not acknowledged.
    Pending,
    /// XREAD or XREADGROUP of new entries.
    New,
    /// XACK.
    Acknowledgement,
}

impl StreamConsumer {
    pub(super) fn new(plan: Arc<Plan>, seat: u32) -> StreamConsumer {
        StreamConsumer {
            greetings: plan.greeting.answers,
            cursor: plan.take_cursor(seat),
            plan,
            seat,
            awaited: VecDeque::new(),
            is_ready: false,
            hearing: Hearing::default(),
            ids: Vec::new(),
        }
    }

    fn phase(&self) -> Phase {
        if self.is_ready { Phase::Messages } else { Phase::SetUp }
    }

    fn ask_first(&mut self, out: &mut Outbox) {
        let before = out.len();
        let key = self.plan.list(self.seat).key.as_bytes();
        let buffer = out.buffer();
        match self.plan.reading {
            Reading::Group { .. } => {
                let group = self.plan.group(self.seat);
                let words = [&b"XGROUP"[..], b"CREATE", key, group.as_bytes(), b"$", b"MKSTREAM"];
                put_request(buffer, &words);
                self.awaited.push_back(Awaited::Group);
            }
            Reading::Plain => {
                put_request(buffer, &[b"XREVRANGE", key, b"+", b"-", b"COUNT", b"1"]);
                self.awaited.push_back(Awaited::End);
            }
        }
        self.hearing.meter.wrote(self.phase(), out.len() - before, 0);
    }

    /// Asks for entries: new ones, or those that are pending.
    fn ask_for(&mut self, what: Awaited, out: &mut Outbox) {
        let before = out.len();
        let plan = &self.plan;
        let key = plan.list(self.seat).key.as_bytes();
        let count = plan.polling.map_or(plan.count, |polling| polling.limit).to_string();
        let wait_ms = match plan.polling {
            Some(polling) if polling.wait.0 == 0 => None,
            Some(polling) => Some(polling.wait.0.div_ceil(1_000_000)),
            // As long as it takes.
            None => Some(0),
        };
        let wait_ms = wait_ms.filter(|_| what == Awaited::New).map(|wait| wait.to_string());
        let group = plan.group(self.seat);
        let consumer = format!("c{}", self.seat);
        let mut words: Vec<&[u8]> = Vec::new();
        match plan.reading {
            Reading::Plain => words.push(b"XREAD"),
            Reading::Group { .. } => {
                words.extend([&b"XREADGROUP"[..], b"GROUP", group.as_bytes(), consumer.as_bytes()]);
            }
        }
        words.extend([&b"COUNT"[..], count.as_bytes()]);
        if let Some(wait_ms) = &wait_ms {
            words.extend([&b"BLOCK"[..], wait_ms.as_bytes()]);
        }
        if plan.reading == (Reading::Group { acknowledges: false }) {
            words.push(b"NOACK");
        }
        words.extend([&b"STREAMS"[..], key]);
        let mut after = Vec::new();
        match (plan.reading, what) {
            (Reading::Plain, _) => self.cursor.unwrap_or(Id::MIN).put(&mut after),
            (_, Awaited::Pending) => after.push(b'0'),
            _ => after.push(b'>'),
        }
        words.push(&after);
        put_request(out.buffer(), &words);
        self.hearing.meter.wrote(self.phase(), out.len() - before, 0);
        self.awaited.push_back(what);
    }

    /// Acknowledges the entries of the last answer.
    fn acknowledge(&mut self, out: &mut Outbox) {
        if self.ids.is_empty() || self.plan.reading != (Reading::Group { acknowledges: true }) {
            return;
        }
        let before = out.len();
        let buffer = out.buffer();
        put_array(buffer, 3 + self.ids.len());
        put_bulk(buffer, b"XACK");
        put_bulk(buffer, self.plan.list(self.seat).key.as_bytes());
        put_bulk(buffer, self.plan.group(self.seat).as_bytes());
        let mut text = Vec::new();
        for id in self.ids.drain(..) {
            text.clear();
            id.put(&mut text);
            put_bulk(buffer, &text);
        }
        self.hearing.meter.wrote(self.phase(), out.len() - before, 0);
        self.awaited.push_back(Awaited::Acknowledgement);
    }

    /// Takes a reply; returns the bytes of the messages in it.
    fn take(&mut self, reply: Reply<'_>, out: &mut Outbox, emit: Emit<'_>) -> Result<usize, Fault> {
        if matches!(reply.head, Token::Push(_)) {
            return Ok(0);
        }
        if self.greetings > 0 {
            if let Token::Error(text) = reply.head {
                return Err(errors::refused(text));
            }
            self.greetings -= 1;
            if self.greetings == 0 && self.awaited.is_empty() {
                self.ready(out, emit);
            }
            return Ok(0);
        }
        let Some(awaited) = self.awaited.pop_front() else {
            return Err(self.hearing.unasked(&reply));
        };
        if let Token::Error(text) = reply.head
            && !(awaited == Awaited::Group && text.starts_with(b"BUSYGROUP"))
        {
            return self.refused(awaited, text, emit);
        }
        match awaited {
            Awaited::Group => {
                // The group is there already: of an earlier connection, or of another consumer.
                match reply.head {
                    Token::Error(_) => self.ask_for(Awaited::Pending, out),
                    _ => self.ready(out, emit),
                }
                Ok(0)
            }
            Awaited::End => {
                let mut values = reply.values;
                let last = match reply.head {
                    Token::Array(0) => Some(Id::MIN),
                    Token::Array(_) => values.token().and_then(|_| read_id(values.text()?)),
                    _ => None,
                };
                self.cursor = Some(last.ok_or_else(|| unexpected(&reply, "XREVRANGE"))?);
                self.ready(out, emit);
                Ok(0)
            }
            Awaited::Pending | Awaited::New => {
                let payload = self.entries(reply, emit)?;
                let was_pending = awaited == Awaited::Pending;
                let has_more = was_pending && payload.1 > 0;
                self.acknowledge(out);
                match (was_pending, self.plan.polling) {
                    (true, _) if has_more => self.ask_for(Awaited::Pending, out),
                    (true, _) => self.ready(out, emit),
                    (false, Some(_)) => emit(Signal::Answered(Ok(()))),
                    (false, None) => self.ask_for(Awaited::New, out),
                }
                Ok(payload.0)
            }
            Awaited::Acknowledgement => match reply.head {
                Token::Integer(_) => Ok(0),
                _ => Err(unexpected(&reply, "XACK")),
            },
        }
    }

    fn refused(&self, awaited: Awaited, text: &[u8], emit: Emit<'_>) -> Result<usize, Fault> {
        let is_polled = self.plan.polling.is_some() && awaited == Awaited::New;
        match (is_polled, errors::fault(text)) {
            (true, None) => {
                emit(Signal::Answered(Err(errors::code(text))));
                Ok(0)
            }
            _ => Err(errors::refused(text)),
        }
    }

    /// The session is established: entries are new from here on.
    fn ready(&mut self, out: &mut Outbox, emit: Emit<'_>) {
        if !self.is_ready {
            self.is_ready = true;
            emit(Signal::Ready);
        }
        if self.plan.polling.is_none() {
            self.ask_for(Awaited::New, out);
        }
    }

    /// Emits the entries of an answer; returns the bytes of their bodies, and their number.
    fn entries(&mut self, reply: Reply<'_>, emit: Emit<'_>) -> Result<(usize, usize), Fault> {
        let flawed = || unexpected(&reply, "XREAD");
        let mut values = reply.values;
        let (streams, is_map) = match reply.head {
            Token::Null => return Ok((0, 0)),
            Token::Array(streams) => (streams, false),
            Token::Map(streams) => (streams, true),
            _ => return Err(flawed()),
        };
        self.ids.clear();
        let mut payload = 0;
        for _ in 0..streams {
            if !is_map && values.token() != Some(Token::Array(2)) {
                return Err(flawed());
            }
            let topic = values.text().ok_or_else(flawed)?;
            let Some(Token::Array(entries)) = values.token() else { return Err(flawed()) };
            for _ in 0..entries {
                let (id, body) = entry(&mut values).ok_or_else(flawed)?;
                self.ids.push(id);
                self.cursor = Some(id);
                if let Some(body) = body {
                    payload += body.len();
                    emit(Signal::Message { topic, body });
                }
            }
        }
        Ok((payload, self.ids.len()))
    }
}

/// Reads one entry: its ID and the value of its last field, `None` if it was deleted.
fn entry<'v>(values: &mut super::codec::Values<'v>) -> Option<(Id, Option<&'v [u8]>)> {
    if values.token()? != Token::Array(2) {
        return None;
    }
    let id = read_id(values.text()?)?;
    let fields = match values.token()? {
        Token::Array(fields) => fields,
        Token::Null => return Some((id, None)),
        _ => return None,
    };
    let mut last = None;
    for _ in 0..fields {
        last = Some(values.text()?);
    }
    Some((id, last))
}

fn read_id(text: &[u8]) -> Option<Id> {
    Id::read(text, 0)
}

fn unexpected(reply: &Reply<'_>, command: &str) -> Fault {
    Fault::Malformed(format!("{} is not an answer to {command}", reply.head.kind()))
}

impl Drop for StreamConsumer {
    /// Cursor for the next connection of this seat.
    fn drop(&mut self) {
        if let Some(cursor) = self.cursor.take() {
            self.plan.leave_cursor(self.seat, cursor);
        }
    }
}

impl Connection for StreamConsumer {
    fn open(&mut self, _now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        let bytes = &self.plan.greeting.bytes;
        out.put(bytes);
        self.hearing.meter.wrote(Phase::SetUp, bytes.len(), 0);
        match (self.plan.reading, self.cursor) {
            // It continues where the last connection of its seat ended.
            (Reading::Plain, Some(_)) if self.greetings == 0 => self.ready(out, emit),
            (Reading::Plain, Some(_)) => {}
            _ => self.ask_first(out),
        }
    }

    fn receive(
        &mut self,
        input: &[u8],
        _now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        while let Some((reply, bytes)) = self.hearing.reply(&input[taken..], self.plan.bytes_max)? {
            let phase = self.phase();
            let payload = self.take(reply, out, emit)?;
            self.hearing.count(phase, bytes, payload);
            taken += bytes;
        }
        Ok(taken)
    }

    fn end(&mut self, rest: &[u8], _emit: Emit<'_>) -> Result<(), Fault> {
        match rest {
            [] => Ok(()),
            _ => Err(Fault::Ended("in the middle of a reply".to_owned())),
        }
    }

    fn poll(&mut self) -> Option<&mut dyn Poll> {
        Some(self)
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(&mut self.hearing.meter)
    }
}

impl Poll for StreamConsumer {
    fn ask(&mut self, _now: Nanos, out: &mut Outbox) {
        self.ask_for(Awaited::New, out);
    }
}
