//! A consumer of the pattern `poll`: it requests new messages, takes them out of the answer, and
//! continues from the cursor in it. To set up its session it goes to the end of the list, so that
//! it
//! gets only later messages, like a subscriber.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use weigh_model::Nanos;
use weigh_model::connection::{Connection, Emit, Fault, Metered, Outbox, Poll, Signal};
use weigh_model::content::{Meter, Phase, StreamCounts};
use weigh_model::load::Polling;

use crate::http1_core::answer::{self, Answer, Body};
use crate::http1_core::chunked::Chunked;
use crate::http1_core::framing::{Memory, put_decimal};
use crate::readings_core::Page;

/// Common settings of all consumers of a list.
pub(super) struct Question {
    /// Method and path, up to the first key of the query.
    start: Vec<u8>,
    /// Text after the query, to the end of the head.
    end: Vec<u8>,
    polling: Polling,
    /// Cursors of the clients whose connections have ended, by seat.
    cursors: Mutex<HashMap<u32, String>>,
}

/// A consumer's connection.
pub(super) struct PollConnection {
    question: Arc<Question>,
    seat: u32,
    cursor: Option<String>,
    step: Step,
    state: State,
    answer: Answer,
    memory: Memory<Answer>,
    has_heard: bool,
    /// The body so far, where it does not come in one piece.
    body: Vec<u8>,
    meter: Meter,
}

/// Purpose of the next answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Find the end of the list.
    FindEnd,
    /// Confirm the end: messages in transit are old.
    ReachEnd,
    /// Read new messages.
    Session,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is asked.
    Idle,
    Head,
    Body,
    Chunked(Chunked),
    UntilClose,
    /// No more requests; later input is discarded.
    Closing,
}

impl Question {
    /// Polls `path`; `fields` are the header fields with their line ends.
    pub(super) fn new(path: &str, fields: &str, polling: Polling) -> Question {
        let mark = if path.contains('?') { '&' } else { '?' };
        Question {
            start: format!("GET {path}{mark}").into_bytes(),
            end: format!(" HTTP/1.1\r\n{fields}\r\n").into_bytes(),
            polling,
            cursors: Mutex::default(),
        }
    }

    fn put(&self, cursor: Option<&str>, step: Step, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.start);
        if let Some(cursor) = cursor {
            out.extend_from_slice(b"since=");
            put_escaped(out, cursor);
            out.push(b'&');
        }
        out.extend_from_slice(b"limit=");
        let limit = match step {
            Step::FindEnd => 0,
            Step::ReachEnd => SET_UP_LIMIT,
            Step::Session => self.polling.limit,
        };
        put_decimal(out, u64::from(limit));
        if step == Step::Session && self.polling.wait.0 > 0 {
            out.extend_from_slice(b"&wait=");
            put_decimal(out, self.polling.wait.0.div_ceil(1_000_000));
            out.extend_from_slice(b"ms");
        }
        out.extend_from_slice(&self.end);
    }

    fn cursors(&self) -> std::sync::MutexGuard<'_, HashMap<u32, String>> {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PollConnection {
    pub(super) fn new(question: Arc<Question>, seat: u32) -> PollConnection {
        let cursor = question.cursors().remove(&seat);
        let answer = Answer { status: 0, body: Body::Length(0), keeps_alive: true };
        PollConnection {
            step: if cursor.is_some() { Step::Session } else { Step::FindEnd },
            question,
            seat,
            cursor,
            state: State::Idle,
            answer,
            memory: Memory::new(Box::default()),
            has_heard: false,
            body: Vec::new(),
            meter: Meter::default(),
        }
    }

    fn phase(&self) -> Phase {
        if self.step == Step::Session { Phase::Messages } else { Phase::SetUp }
    }

    fn put_question(&mut self, out: &mut Outbox) {
        let before = out.len();
        self.question.put(self.cursor.as_deref(), self.step, out.buffer());
        self.meter.wrote(self.phase(), out.len() - before, 0);
        self.state = State::Head;
    }

    /// Takes the head at the start of `input`; 0 if it is not all there.
    fn take_head(&mut self, input: &[u8]) -> Result<usize, Fault> {
        let known = self.memory.recall(input);
        if !self.has_heard {
            answer::recognise(input)?;
        }
        let Some((answer, head_bytes)) =
            known.map_or_else(|| answer::read(input, false), |known| Ok(Some(known)))?
        else {
            return Ok(0);
        };
        self.has_heard = true;
        self.meter.read(self.phase(), head_bytes, 0);
        // RFC 9110, section 15.2: interim answers do not count.
        if answer.status >= 200 {
            self.memory.keep(&input[..head_bytes], answer);
            self.answer = answer;
            self.state = match answer.body {
                Body::Length(_) => State::Body,
                Body::Chunked => State::Chunked(Chunked::START),
                Body::UntilClose => State::UntilClose,
            };
        }
        Ok(head_bytes)
    }

    /// Handles a complete answer.
    fn finish(&mut self, body: &[u8], out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        self.state = State::Idle;
        let status = self.answer.status;
        let is_empty = matches!(status, 204 | 304);
        let result = match status {
            _ if is_empty => Ok(None),
            200..=299 => Page::read(body).map(Some).map_err(Fault::Malformed),
            _ => Ok(None),
        };
        let page = result?;
        if self.step == Step::Session {
            let bytes = page
                .as_ref()
                .map_or(0, |page| page.each(|body| emit(Signal::Message { topic: b"", body })));
            self.meter.read(Phase::Messages, body.len(), bytes);
            self.cursor = page.map(|page| page.next()).or(self.cursor.take());
            let is_good = is_empty || (200..300).contains(&status);
            emit(Signal::Answered(if is_good { Ok(()) } else { Err(status) }));
        } else {
            self.meter.read(Phase::SetUp, body.len(), 0);
            self.set_up(page, is_empty, out, emit)?;
        }
        if !self.answer.keeps_alive {
            self.state = State::Closing;
            emit(Signal::Closing);
        }
        Ok(())
    }

    /// Continues to the end of the list. A server that rejects a limit of 0 is read from the
    /// beginning.
    fn set_up(
        &mut self,
        page: Option<Page<'_>>,
        is_empty: bool,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let Some(page) = page else {
            if self.step == Step::FindEnd && !is_empty {
                self.step = Step::ReachEnd;
            } else if is_empty {
                self.step = Step::Session;
                emit(Signal::Ready);
                return Ok(());
            } else {
                let reason = format!("it answers {} to a poll", self.answer.status);
                return Err(Fault::Refused { code: self.answer.status, reason });
            }
            self.go_on(out);
            return Ok(());
        };
        let next = page.next();
        let moves = self.cursor.as_deref() != Some(&*next);
        let is_at_end = self.step == Step::ReachEnd && page.len() == 0;
        if page.len() > 0 && self.step == Step::ReachEnd && !moves {
            let what = format!("its next cursor {next:?} returns the same readings again");
            return Err(Fault::Malformed(what));
        }
        self.cursor = Some(next);
        if is_at_end {
            self.step = Step::Session;
            emit(Signal::Ready);
        } else {
            self.step = Step::ReachEnd;
            self.go_on(out);
        }
        Ok(())
    }

    /// The next request of the set-up. A connection that ends before it is replaced, and the next
    /// continues from the cursor.
    fn go_on(&mut self, out: &mut Outbox) {
        if self.answer.keeps_alive {
            self.put_question(out);
        }
    }
}

impl Drop for PollConnection {
    /// Cursor for the next connection of this seat.
    fn drop(&mut self) {
        if let Some(cursor) = self.cursor.take() {
            self.question.cursors().insert(self.seat, cursor);
        }
    }
}

impl Connection for PollConnection {
    fn open(&mut self, _now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        if self.step == Step::Session {
            emit(Signal::Ready);
        } else {
            self.put_question(out);
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
        loop {
            let rest = &input[taken..];
            match self.state {
                State::Closing => {
                    self.meter.read(Phase::Messages, rest.len(), 0);
                    return Ok(input.len());
                }
                State::Body => {
                    let Body::Length(length) = self.answer.body else { return Ok(taken) };
                    let length = usize::try_from(length).unwrap_or(usize::MAX);
                    if length > ANSWER_BYTES_MAX {
                        return Err(too_long());
                    }
                    let Some(body) = rest.get(..length) else { return Ok(taken) };
                    self.finish(body, out, emit)?;
                    taken += length;
                }
                _ if rest.is_empty() => return Ok(taken),
                State::Idle => return Err(unasked(rest)),
                State::Head => match self.take_head(rest)? {
                    0 => return Ok(taken),
                    head_bytes => taken += head_bytes,
                },
                State::Chunked(mut chunked) => {
                    let before = self.body.len();
                    let body = &mut self.body;
                    let advance = chunked.advance(rest, &mut |piece| body.extend_from_slice(piece));
                    let advance = advance.map_err(|flaw| Fault::Malformed(flaw.to_string()))?;
                    if self.body.len() > ANSWER_BYTES_MAX {
                        return Err(too_long());
                    }
                    taken += advance.taken;
                    // The content of chunks counts when the answer is complete.
                    let data = self.body.len() - before;
                    self.meter.read(self.phase(), advance.taken - data, 0);
                    self.state = State::Chunked(chunked);
                    if advance.is_whole {
                        let body = std::mem::take(&mut self.body);
                        self.finish(&body, out, emit)?;
                    } else if advance.taken == 0 {
                        return Ok(taken);
                    }
                }
                State::UntilClose => {
                    self.body.extend_from_slice(rest);
                    if self.body.len() > ANSWER_BYTES_MAX {
                        return Err(too_long());
                    }
                    taken += rest.len();
                }
            }
        }
    }

    fn end(&mut self, rest: &[u8], emit: Emit<'_>) -> Result<(), Fault> {
        match self.state {
            State::UntilClose => {
                let body = std::mem::take(&mut self.body);
                self.finish(&body, &mut Outbox::default(), emit)
            }
            State::Idle | State::Closing => Ok(()),
            State::Head if rest.is_empty() => Ok(()),
            _ => Err(Fault::Ended("in the middle of an answer".to_owned())),
        }
    }

    fn poll(&mut self) -> Option<&mut dyn Poll> {
        Some(self)
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(self)
    }
}

impl Poll for PollConnection {
    fn ask(&mut self, _now: Nanos, out: &mut Outbox) {
        if self.state == State::Idle {
            self.put_question(out);
        }
    }
}

impl Metered for PollConnection {
    fn meter(&mut self) {
        self.meter.start();
    }

    /// Counts of complete answers, and the state of an incomplete one.
    fn counts(&mut self) -> Option<StreamCounts> {
        let mut counts = self.meter.counts()?;
        counts.received.add(self.phase(), self.body.len(), 0);
        Some(counts)
    }
}

/// Appends `text` as the value of a query (RFC 3986, section 2.1).
fn put_escaped(out: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
}

fn unasked(input: &[u8]) -> Fault {
    Fault::Malformed(format!("\"{}\" without a request", answer::shown(input)))
}

fn too_long() -> Fault {
    Fault::Malformed(format!("an answer of more than {ANSWER_BYTES_MAX} bytes"))
}

/// Readings in one answer while the session is set up.
const SET_UP_LIMIT: u32 = 1000;

/// The largest answer that is taken.
const ANSWER_BYTES_MAX: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<PollConnection>() <= 256, "{}", size_of::<PollConnection>());
    }

    #[test]
    fn cursors_are_escaped_and_the_query_of_a_url_is_kept() {
        let polling = Polling { period: Nanos(0), wait: Nanos::from_secs(30), limit: 7 };
        let question = Question::new("/r?site=7", "Host: x\r\n", polling);
        let mut out = Vec::new();
        question.put(Some("a+b/=1"), Step::Session, &mut out);
        let head =
            "GET /r?site=7&since=a%2Bb%2F%3D1&limit=7&wait=30000ms HTTP/1.1\r\nHost: x\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), head);
    }
}
