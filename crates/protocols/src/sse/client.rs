//! A subscriber: one GET, and an answer that does not end. The next connection of the seat
//! continues behind the last event. Producers are connections of [`crate::http1_core::caller`].

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{Connection, Emit, Fault, Metered, Outbox, Signal};
use weigh_model::content::{Meter, Phase, StreamCounts};

use super::codec::{self, Item, Parser};
use super::plan::Plan;
use crate::http1_core::answer::{self, Answer, Body};
use crate::http1_core::chunked::Chunked;

/// A subscriber's connection.
pub(super) struct Subscriber {
    plan: Arc<Plan>,
    seat: u32,
    state: State,
    parser: Box<Parser>,
    /// Bytes of the stream that are not counted as payload: those around events, and those of an
    /// event that is not whole.
    uncounted: usize,
    meter: Meter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before [`Connection::open`].
    New,
    /// The request is sent.
    Head,
    Chunked(Chunked),
    /// Bytes that follow.
    Length(u64),
    UntilClose,
    /// The stream has ended; later input is discarded.
    Ended,
}

impl Subscriber {
    pub(super) fn new(plan: Arc<Plan>, seat: u32) -> Subscriber {
        let parser = Parser::new(plan.event_bytes_max, plan.take_last_id(seat));
        Subscriber {
            plan,
            seat,
            state: State::New,
            parser: Box::new(parser),
            uncounted: 0,
            meter: Meter::default(),
        }
    }

    /// Takes the head at the start of `input`; 0 if it is not all there.
    fn take_head(&mut self, input: &[u8], emit: Emit<'_>) -> Result<usize, Fault> {
        answer::recognise(input)?;
        let mut kind = String::new();
        let read = answer::read_fields(input, false, &mut |name, value| {
            if name.eq_ignore_ascii_case("content-type") {
                kind = String::from_utf8_lossy(value).into_owned();
            }
        })?;
        let Some((answer, head_bytes)) = read else { return Ok(0) };
        self.meter.read(Phase::SetUp, head_bytes, 0);
        // RFC 9110, section 15.2: interim answers do not count.
        if answer.status >= 200 {
            check(&answer, &kind)?;
            self.state = match answer.body {
                Body::Chunked => State::Chunked(Chunked::START),
                Body::Length(length) => State::Length(length),
                Body::UntilClose => State::UntilClose,
            };
            emit(Signal::Ready);
        }
        Ok(head_bytes)
    }

    /// Takes bytes of the stream.
    fn take_stream(&mut self, bytes: &[u8], emit: Emit<'_>) -> Result<usize, Fault> {
        let topic = if self.plan.is_in_pairs() { self.seat.to_string() } else { String::new() };
        let mut payload = 0;
        let taken = self.parser.take(bytes, &mut |item| match item {
            Item::Event { data, .. } => {
                payload += data.len();
                emit(Signal::Message { topic: topic.as_bytes(), body: data });
            }
            Item::Retry(milliseconds) => emit(Signal::Granted(RETRY, milliseconds)),
        });
        taken.map_err(|flaw| Fault::Malformed(format!("{flaw}: raise sse.event_bytes_max")))?;
        Ok(payload)
    }

    /// Takes what it can of a chunked stream: how many bytes, and how many of them are payload.
    fn take_chunks(
        &mut self,
        mut chunked: Chunked,
        input: &[u8],
        emit: Emit<'_>,
    ) -> Result<(usize, usize), Fault> {
        let (mut payload, mut result) = (0, Ok(()));
        let advance = chunked.advance(input, &mut |piece| {
            if result.is_ok() {
                result = self.take_stream(piece, emit).map(|bytes| payload += bytes);
            }
        });
        result?;
        let advance = advance.map_err(|flaw| Fault::Malformed(flaw.to_string()))?;
        self.state = State::Chunked(chunked);
        if advance.is_whole {
            self.finish(emit);
        }
        Ok((advance.taken, payload))
    }

    /// The server ended the stream: the client is to connect again.
    fn finish(&mut self, emit: Emit<'_>) {
        self.state = State::Ended;
        emit(Signal::Closing);
    }

    /// Counts bytes of the stream. `payload` is that of the events that they complete, some of
    /// which may have come before.
    fn count(&mut self, bytes: usize, payload: usize) {
        self.meter.read(Phase::Messages, payload, payload);
        self.uncounted = (self.uncounted + bytes).saturating_sub(payload);
    }
}

impl Drop for Subscriber {
    /// The last event for the next connection of this seat.
    fn drop(&mut self) {
        if !self.parser.last_id().is_empty() {
            self.plan.leave_last_id(self.seat, self.parser.last_id());
        }
    }
}

impl Connection for Subscriber {
    fn open(&mut self, _now: Nanos, out: &mut Outbox, _emit: Emit<'_>) {
        let before = out.len();
        self.plan.put_question(self.seat, self.parser.last_id(), out.buffer());
        self.meter.wrote(Phase::SetUp, out.len() - before, 0);
        self.state = State::Head;
    }

    fn receive(
        &mut self,
        input: &[u8],
        _now: Nanos,
        _out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        while taken < input.len() {
            let rest = &input[taken..];
            let (bytes, payload) = match self.state {
                State::New | State::Head => {
                    let head_bytes = self.take_head(rest, emit)?;
                    if head_bytes == 0 {
                        break;
                    }
                    taken += head_bytes;
                    if self.state == State::Length(0) {
                        self.finish(emit);
                    }
                    continue;
                }
                State::Chunked(chunked) => {
                    let (bytes, payload) = self.take_chunks(chunked, rest, emit)?;
                    if bytes == 0 {
                        break;
                    }
                    (bytes, payload)
                }
                State::Length(length) => {
                    let bytes = rest.len().min(usize::try_from(length).unwrap_or(usize::MAX));
                    let payload = self.take_stream(&rest[..bytes], emit)?;
                    self.state = State::Length(length - bytes as u64);
                    if length == bytes as u64 {
                        self.finish(emit);
                    }
                    (bytes, payload)
                }
                State::UntilClose => (rest.len(), self.take_stream(rest, emit)?),
                State::Ended => (rest.len(), 0),
            };
            self.count(bytes, payload);
            taken += bytes;
        }
        Ok(taken)
    }

    /// An event that is not whole is discarded (WHATWG HTML, section 9.2.6): the server sends it
    /// again behind Last-Event-ID.
    fn end(&mut self, rest: &[u8], emit: Emit<'_>) -> Result<(), Fault> {
        match self.state {
            State::Ended => Ok(()),
            State::UntilClose if self.parser.is_between_events() => {
                self.finish(emit);
                Ok(())
            }
            State::UntilClose => Err(Fault::Ended("in the middle of an event".to_owned())),
            State::New | State::Head if rest.is_empty() => {
                Err(Fault::Ended("without an answer to the request for events".to_owned()))
            }
            _ => Err(Fault::Ended("in the middle of an answer".to_owned())),
        }
    }

    fn resumes(&self) -> bool {
        self.plan.resumes()
    }

    fn close(&mut self, _out: &mut Outbox) {
        self.state = State::Ended;
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(self)
    }
}

impl Metered for Subscriber {
    fn meter(&mut self) {
        self.meter.start();
    }

    fn counts(&mut self) -> Option<StreamCounts> {
        let mut counts = self.meter.counts()?;
        counts.received.add(Phase::Messages, self.uncounted, 0);
        Some(counts)
    }
}

/// WHATWG HTML, section 9.2.2: an event stream is an answer 200 of its media type.
fn check(answer: &Answer, kind: &str) -> Result<(), Fault> {
    let status = answer.status;
    let fix = match status {
        200 => {
            let media_type = kind.split(';').next().unwrap_or_default().trim();
            if media_type.eq_ignore_ascii_case(codec::KIND) {
                return Ok(());
            }
            return Err(Fault::OtherProtocol(format!(
                "its answer is {media_type:?} and not {}: check the path of the URL",
                codec::KIND
            )));
        }
        204 => "it has no more events",
        301 | 302 | 303 | 307 | 308 => {
            "redirects are not followed: type the URL that the server names (curl -i shows it)"
        }
        401 | 403 | 407 => "it requires credentials: type --user NAME, or a header with -H",
        404 | 410 => "check the path of the URL, or sse.path",
        405 => "subscribers send GET: check the path of the URL",
        _ => "see its log",
    };
    let reason = format!("it answers {status} to a request for events; {fix}");
    Err(Fault::Refused { code: status, reason })
}

/// Name of the reconnection time that a server asked for, in milliseconds. The engine connects a
/// lost subscriber again by its own rule, so that servers are compared alike.
const RETRY: &str = "retry_ms";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<Subscriber>() <= 88, "{}", size_of::<Subscriber>());
    }
}
