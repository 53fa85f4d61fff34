//! The client's end: a request for every message in a stream of its own, done when the whole answer
//! is there.

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{
    Connection, Emit, Fault, Metered, Op, Outbox, Reply, Signal, Ticket,
};
use weigh_model::content::{Meter, Phase};
use weigh_model::load::Pattern;
use weigh_model::protocol::{Dial, Lifetime, Transport};
use weigh_model::streams::{self, Piece};

use super::codec::{
    Breach, DATA, DECOMPRESSION_FAILED, FRAME_ERROR, FRAME_UNEXPECTED, Frame, FrameReader, HEADERS,
    MESSAGE_ERROR, NO_ERROR, STREAM_CREATION_ERROR, put_control,
};
use super::peer::PeerStreams;
use super::qpack::{self, LIST_BYTES_MAX};
use super::request::Requests;
use crate::http2_core::fields::AnswerHead;
use crate::http2_core::streams::Streams;

/// Makes clients that send these requests.
pub(super) fn dial(requests: Requests, pattern: Pattern) -> Dial {
    let requests = Arc::new(requests);
    Dial {
        transport: Transport::Streams,
        lifetime: Lifetime::of(pattern),
        confirms: true,
        is_answered: false,
        producer_of: None,
        make: Box::new(move |_seat| Box::new(Caller::new(Arc::clone(&requests)))),
    }
}

/// A connection.
struct Caller {
    requests: Arc<Requests>,
    peer: PeerStreams,
    /// Requests whose answers are not complete, by their number, counted from 1.
    calls: Streams<Call>,
    /// Requests so far.
    sent: u32,
    /// Streams that the server has allowed so far.
    opened: u64,
    stage: Stage,
    /// True once the server said GOAWAY.
    is_leaving: bool,
    /// The last head of an answer, and its meaning: a server repeats it byte for byte.
    known: (Vec<u8>, AnswerHead<()>),
    meter: Meter,
}

/// A request whose answer is not complete.
#[derive(Debug, Default)]
struct Call {
    ticket: u32,
    frames: FrameReader,
    /// Status of the answer; 0 before its head.
    status: u16,
    has_trailers: bool,
    /// Bytes of content that have to follow, if the answer named them.
    left: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The connection does not stand.
    Opening,
    /// Requests may be sent.
    Ready,
    /// No more requests, and the engine has been informed.
    Closing,
    /// Closed by this end.
    Closed,
}

impl Caller {
    fn new(requests: Arc<Requests>) -> Caller {
        Caller {
            requests,
            peer: PeerStreams::default(),
            calls: Streams::new(),
            sent: 0,
            opened: 0,
            stage: Stage::Opening,
            is_leaving: false,
            known: (Vec::new(), AnswerHead::default()),
            meter: Meter::default(),
        }
    }

    /// Takes a piece. Returns how many bytes of it are payload.
    fn take(&mut self, piece: Piece<'_>, emit: Emit<'_>) -> Result<usize, Breach> {
        match piece {
            Piece::Opened(streams) => self.opened = streams,
            Piece::Bytes { stream, bytes, is_last } => {
                if is_request(stream) {
                    return self.take_answer(stream, bytes, is_last, emit);
                }
                if streams::is_both_ways(stream) {
                    let what = "a server opened a stream in both directions";
                    return Err(Breach::new(STREAM_CREATION_ERROR, what));
                }
                let taken = self.peer.take(stream, bytes, is_last, true);
                if let Some(first) = self.peer.goaway.take() {
                    self.take_go_away(first / 4, emit);
                }
                taken?;
            }
            Piece::Reset { stream, code } if is_request(stream) => {
                if let Some(call) = self.calls.remove(number(stream)) {
                    emit(Signal::Refused(Ticket(call.ticket), short_code(code)));
                }
            }
            Piece::Reset { stream, .. } => self.peer.end(stream)?,
            // The server answers without reading the whole request, or resets its own side too.
            Piece::Stop { .. } | Piece::Close(_) => {}
        }
        Ok(0)
    }

    fn take_answer(
        &mut self,
        stream: u64,
        bytes: &[u8],
        is_last: bool,
        emit: Emit<'_>,
    ) -> Result<usize, Breach> {
        let Some(mut call) = self.calls.remove(number(stream)) else { return Ok(0) };
        let (mut rest, mut payload) = (bytes, 0);
        while let Some(frame) = call.frames.next(&mut rest)? {
            match frame {
                Frame::Data(content) => {
                    self.take_content(&mut call, content)?;
                    payload += content.len();
                }
                Frame::Whole(HEADERS, section) => self.take_head(&mut call, &section)?,
                Frame::Whole(kind, _) => return Err(unexpected(kind)),
            }
        }
        if !is_last {
            self.calls.insert(number(stream), call);
            return Ok(payload);
        }
        if !call.frames.is_between() {
            return Err(Breach::new(FRAME_ERROR, "the stream of an answer ends within a frame"));
        }
        if call.status == 0 {
            return Err(malformed("it has no head"));
        }
        if call.left.is_some_and(|left| left > 0) {
            return Err(malformed("it is shorter than its content-length"));
        }
        emit(match self.requests.hold(call.status) {
            true => Signal::Done(Ticket(call.ticket)),
            false => Signal::Refused(Ticket(call.ticket), call.status),
        });
        Ok(payload)
    }

    fn take_content(&self, call: &mut Call, content: &[u8]) -> Result<(), Breach> {
        if call.status == 0 || call.has_trailers {
            return Err(unexpected(DATA));
        }
        if let Some(left) = &mut call.left {
            let after = left.checked_sub(content.len() as u64);
            *left = after.ok_or_else(|| malformed("it is longer than its content-length"))?;
        }
        Ok(())
    }

    fn take_head(&mut self, call: &mut Call, section: &[u8]) -> Result<(), Breach> {
        if self.known.0 != section {
            self.known = (section.to_vec(), read_head(section)?);
        }
        let head = &self.known.1;
        if let Some(wrong) = head.malformed {
            return Err(malformed(wrong));
        }
        if call.has_trailers {
            return Err(unexpected(HEADERS));
        }
        if call.status != 0 {
            call.has_trailers = true;
            return match head.is_trailers() {
                true => Ok(()),
                false => Err(malformed("fields behind its content are not its trailers")),
            };
        }
        match head.status {
            0 => return Err(malformed("it has no :status")),
            101 => return Err(malformed("it switches protocols")),
            // Interim answers.
            100..=199 => return Ok(()),
            _ => {}
        }
        call.status = head.status;
        let has_content = !self.requests.is_bodiless() && !matches!(head.status, 204 | 304);
        call.left = head.length.filter(|_| has_content);
        Ok(())
    }

    /// RFC 9114, section 5.2: requests from `first` on were not processed, and may be sent again.
    fn take_go_away(&mut self, first: u64, emit: Emit<'_>) {
        self.is_leaving = true;
        let mut unprocessed = Vec::new();
        self.calls.for_each(|number, _| {
            unprocessed.extend(Some(number).filter(|own| u64::from(*own) > first));
        });
        unprocessed.sort_unstable();
        for number in unprocessed {
            if let Some(call) = self.calls.remove(number) {
                emit(Signal::Unprocessed(Ticket(call.ticket)));
            }
        }
    }

    /// Informs the engine once a connection that takes no more requests has no open ones.
    fn settle(&mut self, emit: Emit<'_>) {
        if self.is_leaving && self.calls.is_empty() && self.stage == Stage::Ready {
            self.stage = Stage::Closing;
            emit(Signal::Closing);
        }
    }
}

impl Connection for Caller {
    /// The connection stands, with ALPN: requests need not wait for the server's settings (section
    /// 7.2.4.2).
    fn open(&mut self, _now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        let before = out.len();
        streams::put_bytes(out.buffer(), OWN_CONTROL, false, |out| {
            put_control(out, LIST_BYTES_MAX);
        });
        self.meter.wrote(Phase::SetUp, out.len() - before - streams::HEAD_BYTES, 0);
        self.stage = Stage::Ready;
        emit(Signal::Ready);
    }

    fn room(&self) -> u32 {
        if self.stage != Stage::Ready || self.is_leaving {
            return 0;
        }
        let allowed = self.opened.saturating_sub(self.sent.into());
        let own = self.requests.streams().saturating_sub(self.calls.len() as u32);
        own.min(u32::try_from(allowed).unwrap_or(u32::MAX)).min(REQUESTS_MAX - self.sent)
    }

    fn send(&mut self, op: &Op<'_>, _now: Nanos, out: &mut Outbox) -> Reply {
        let before = out.len();
        let stream = u64::from(self.sent) * 4;
        self.sent += 1;
        let mut payload = 0;
        streams::put_bytes(out.buffer(), stream, true, |out| {
            payload = self.requests.put(op.body, out);
        });
        self.meter.wrote(Phase::Messages, out.len() - before - streams::HEAD_BYTES, payload);
        self.calls.insert(self.sent, Call { ticket: op.ticket.0, ..Call::default() });
        Reply::Awaited
    }

    fn receive(
        &mut self,
        input: &[u8],
        _now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        while let Some((piece, bytes)) = streams::next(&input[taken..]) {
            taken += bytes;
            let content = match piece {
                Piece::Bytes { bytes, .. } => bytes.len(),
                _ => 0,
            };
            let is_request = matches!(piece, Piece::Bytes { stream, .. } if is_request(stream));
            let phase = match (self.stage, is_request) {
                (Stage::Closed, _) => Phase::TearDown,
                (_, true) => Phase::Messages,
                (_, false) => Phase::SetUp,
            };
            if self.stage == Stage::Closed {
                self.meter.read(phase, content, 0);
                continue;
            }
            match self.take(piece, &mut *emit) {
                Ok(payload) => self.meter.read(phase, content, payload),
                Err(breach) => {
                    // What was not processed is sent again, whatever else is wrong.
                    self.settle(&mut *emit);
                    streams::put_close(out.buffer(), breach.code);
                    return Err(Fault::Malformed(breach.to_string()));
                }
            }
            self.settle(&mut *emit);
        }
        Ok(taken)
    }

    fn end(&mut self, _rest: &[u8], _emit: Emit<'_>) -> Result<(), Fault> {
        match self.calls.len() {
            0 => Ok(()),
            1 => Err(Fault::Ended("before it answered a request".to_owned())),
            many => Err(Fault::Ended(format!("before it answered {many} requests"))),
        }
    }

    fn close(&mut self, out: &mut Outbox) {
        self.stage = Stage::Closed;
        streams::put_close(out.buffer(), NO_ERROR);
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(&mut self.meter)
    }
}

fn read_head(section: &[u8]) -> Result<AnswerHead<()>, Breach> {
    let mut head = AnswerHead::default();
    let is_whole = qpack::decode(section, |name, value| {
        let taken = head.take(name, value);
        head.malformed = head.malformed.or(taken.err());
    })
    .map_err(|flaw| Breach::new(DECOMPRESSION_FAILED, flaw.0))?;
    if !is_whole {
        head.malformed = Some("its header fields are too many");
    }
    Ok(head)
}

/// True for a stream that a client opens for a request.
fn is_request(stream: u64) -> bool {
    streams::is_of_client(stream) && streams::is_both_ways(stream)
}

/// The number of a request, counted from 1.
fn number(stream: u64) -> u32 {
    (stream / 4 + 1).min(u64::from(u32::MAX)) as u32
}

/// The code of a stream that the server abandoned, as [`Signal::Refused`] has it.
fn short_code(code: u64) -> u16 {
    u16::try_from(code).ok().filter(|code| STREAM_CODES.contains(code)).unwrap_or(OTHER_CODE)
}

fn malformed(what: &str) -> Breach {
    Breach::new(MESSAGE_ERROR, format!("an answer is malformed: {what}"))
}

fn unexpected(kind: u64) -> Breach {
    Breach::new(FRAME_UNEXPECTED, format!("a frame of type {kind} at a wrong place of an answer"))
}

/// The codes of RFC 9114, section 8.1. No status of an answer that is refused is among them.
pub(super) const STREAM_CODES: std::ops::RangeInclusive<u16> = 0x100..=0x110;

/// Any other code.
pub(super) const OTHER_CODE: u16 = 0x11f;

/// The first stream in one direction that a client opens.
const OWN_CONTROL: u64 = 2;

/// Requests of a connection; QUIC would allow more.
const REQUESTS_MAX: u32 = u32::MAX - 1;
