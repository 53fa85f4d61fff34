//! A server of HTTP/2 (RFC 9113): all connections of one shard, for `http2` and for protocols
//! inside HTTP/2.

use std::collections::VecDeque;

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::server::{ById, ConnectionId, Outboxes, Server, ServerReport};

use super::answer::{Answer, AnswerEncoder, Fields, KnownFields};
use super::decoder::{BlockReader, LIST_BYTES_MAX};
use super::events::{Event, Events, STREAM_MAX};
use super::fields::RequestHead;
use super::flow::{Inflow, OWN_WINDOW, Outflow, grow};
use super::frame::{
    self, ACK, Breach, ErrorCode, PING, PREFACE, SETTINGS, code_name, put_go_away, put_headers,
    put_reset, put_settings, put_window_update,
};
use super::peer::{
    INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, MAX_HEADER_LIST_SIZE, PeerSettings, WINDOW_DEFAULT,
};
use super::stored::Stored;
use super::streams::Streams;

/// What a protocol makes of requests.
pub(crate) trait Service: Send + 'static {
    /// State of a request whose content is not complete.
    type Call: Default + Send;

    /// Header fields of its usual answers.
    const KNOWN: KnownFields;

    /// A connection was accepted.
    fn accepted(&mut self);

    /// Begins a request.
    fn begin(&mut self, head: &RequestHead) -> Self::Call;

    /// Takes content that more follows. An answer is sent at once; what follows is ignored.
    fn more(&mut self, call: &mut Self::Call, data: &[u8]) -> Option<Answer>;

    /// Place among the known fields of the head of answers that are sent in parts.
    const HEAD_OF_PARTS: usize = 0;

    /// What of the answer can be sent before the request is complete; it is cleared then.
    fn part<'c>(&mut self, _call: &'c mut Self::Call) -> Option<&'c mut Vec<u8>> {
        None
    }

    /// Takes the last content, and answers.
    fn end(&mut self, call: Self::Call, data: &[u8]) -> Answer;

    /// Where it puts messages that it confirms.
    fn stored(&mut self) -> &mut Stored;

    /// Counts of this shard.
    fn report(&self) -> ServerReport;
}

/// All connections of one shard.
pub(crate) struct Serving<S: Service> {
    service: S,
    peers: ById<Box<Peer<S>>>,
}

/// A connection.
struct Peer<S: Service> {
    stage: Stage,
    events: Events,
    reader: BlockReader<RequestHead>,
    settings: PeerSettings,
    encoder: AnswerEncoder,
    outflow: Outflow<Fields>,
    inflow: Inflow,
    /// Requests that are not complete.
    streams: Streams<Incoming<S::Call>>,
    /// The highest stream that the client has opened.
    last: u32,
    /// The latest ranges of streams that the client passed over, first and last.
    skipped: VecDeque<[u32; 2]>,
    /// The latest streams that this end has reset: what was still in transit is ignored.
    reset: VecDeque<u32>,
}

/// A request whose content is not complete.
#[derive(Default)]
struct Incoming<C> {
    call: C,
    /// True once it was answered; its remaining content is ignored.
    is_answered: bool,
    /// True once a part of its answer was sent.
    is_begun: bool,
    /// Bytes of content that have to follow, if the request named them.
    left: Option<u64>,
    /// Bytes that may be sent as its answer.
    window: i64,
    inflow: Inflow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing has arrived.
    Preface,
    /// The preface has arrived; SETTINGS have not.
    Settings,
    /// Requests may come.
    Open,
}

/// An error that ends a stream (section 5.4.2): RST_STREAM is sent with its code.
struct StreamError {
    stream: u32,
    code: ErrorCode,
}

/// What is wrong with a frame.
enum Wrong {
    Breach(Breach),
    Stream(StreamError),
}

impl<S: Service> Serving<S> {
    /// A shard without connections.
    pub(crate) fn new(service: S) -> Serving<S> {
        Serving { service, peers: ById::default() }
    }
}

impl<S: Service> Peer<S> {
    fn new() -> Peer<S> {
        Peer {
            stage: Stage::Preface,
            events: Events::default(),
            reader: BlockReader::new(),
            settings: PeerSettings::INITIAL,
            encoder: AnswerEncoder::new(S::KNOWN),
            outflow: Outflow::new(),
            inflow: Inflow::default(),
            streams: Streams::new(),
            last: 0,
            skipped: VecDeque::new(),
            reset: VecDeque::new(),
        }
    }

    /// Takes all whole frames. Returns their number of bytes.
    fn receive(
        &mut self,
        service: &mut S,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<usize, Breach> {
        let mut taken = 0;
        if self.stage == Stage::Preface {
            let head = &input[..input.len().min(PREFACE.len())];
            if !PREFACE.starts_with(head) {
                return Err(Breach::protocol("it does not begin with the preface of HTTP/2"));
            }
            if head.len() < PREFACE.len() {
                return Ok(0);
            }
            self.stage = Stage::Settings;
            taken = PREFACE.len();
        }
        while let Some((event, bytes)) = self.events.next(&input[taken..])? {
            if self.stage == Stage::Settings {
                if !matches!(event, Event::Settings(_)) {
                    return Err(Breach::protocol("its first frame is not SETTINGS"));
                }
                self.stage = Stage::Open;
            }
            match self.take(service, event, out) {
                Ok(()) => {}
                Err(Wrong::Breach(breach)) => return Err(breach),
                Err(Wrong::Stream(StreamError { stream, code })) => {
                    self.streams.remove(stream);
                    self.outflow.forget(stream);
                    remember(&mut self.reset, stream);
                    put_reset(out, stream, code);
                }
            }
            taken += bytes;
        }
        Ok(taken)
    }

    fn take(&mut self, service: &mut S, event: Event<'_>, out: &mut Vec<u8>) -> Result<(), Wrong> {
        match event {
            Event::Head { stream, block, ends, is_circular } => {
                self.take_head(service, stream, &block, ends, out)?;
                if is_circular {
                    return Err(wrong(stream, ErrorCode::Protocol));
                }
            }
            Event::Data { stream, data, flow_bytes, ends } => {
                self.inflow.take(0, flow_bytes, out)?;
                self.take_data(service, stream, data, flow_bytes, ends, out)?;
            }
            Event::Reset { stream, .. } => {
                self.check_opened(stream, "RST_STREAM")?;
                self.streams.remove(stream);
                self.outflow.forget(stream);
            }
            Event::Window { stream: 0, by } => {
                self.outflow.grow(by)?;
                self.pump(out);
            }
            Event::Window { stream, by } => {
                self.check_opened(stream, "WINDOW_UPDATE")?;
                let grown = match self.streams.get_mut(stream) {
                    Some(incoming) => grow(&mut incoming.window, by),
                    None => Ok(()),
                };
                grown
                    .and_then(|()| self.outflow.grow_stream(stream, by))
                    .map_err(|code| wrong(stream, code))?;
                self.pump(out);
            }
            Event::Settings(payload) => self.take_settings(payload, out)?,
            Event::Ping(data) => frame::put(out, PING, ACK, 0, data),
            Event::Priority { stream, error: Some(code) } if stream > self.last => {
                return Err(Breach::new(code, "a PRIORITY that is not allowed").into());
            }
            Event::Priority { stream, error: Some(code) } => return Err(wrong(stream, code)),
            Event::GoAway { .. } | Event::Priority { .. } | Event::Nothing => {}
        }
        Ok(())
    }

    fn take_settings(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Breach> {
        self.settings.take(payload, false)?;
        self.encoder.limit(self.settings.table_bytes_max);
        self.outflow.limit_frames(self.settings.frame_bytes_max);
        let by = self.outflow.set_initial(self.settings.window)?;
        let mut is_too_large = false;
        self.streams.for_each(|_, incoming| {
            incoming.window += by;
            is_too_large |= incoming.window > i64::from(STREAM_MAX);
        });
        if is_too_large {
            return Err(Breach::new(ErrorCode::FlowControl, "a window is larger than allowed"));
        }
        frame::put(out, SETTINGS, ACK, 0, &[]);
        self.pump(out);
        Ok(())
    }

    #[inline]
    fn take_head(
        &mut self,
        service: &mut S,
        stream: u32,
        block: &[u8],
        ends: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Wrong> {
        // The block is read whatever becomes of its stream: it may change the table.
        let head = RequestHead::read(&mut self.reader, block)
            .map_err(|flaw| Breach::new(ErrorCode::Compression, flaw.0))?;
        if stream <= self.last {
            let is_wrong = !ends || head.wrong_as_trailers().is_some();
            if self.reset.contains(&stream) {
                return Ok(());
            }
            if self.streams.get_mut(stream).is_none() {
                return Err(self.not_open(stream).into());
            }
            return match is_wrong {
                true => Err(wrong(stream, ErrorCode::Protocol)),
                false => self.finish(service, stream, &[], out),
            };
        }
        if stream.is_multiple_of(2) {
            return Err(Breach::protocol("a client opened a stream with an even number").into());
        }
        if self.last > 0 && stream > self.last + 2 || self.last == 0 && stream > 1 {
            remember(&mut self.skipped, [self.last + 1, stream - 1]);
        }
        self.last = stream;
        if self.streams.len() + self.outflow.waiting() >= STREAMS_MAX as usize {
            return Err(wrong(stream, ErrorCode::RefusedStream));
        }
        let window = self.outflow.initial();
        let mut incoming = Incoming { window, left: head.length, ..Incoming::default() };
        if head.is_too_large {
            let status = (":status", "431".to_owned());
            self.answer(stream, window, Answer::bare(Fields::Other(vec![status])), out);
            incoming.is_answered = true;
        } else if head.wrong_as_request().is_some() {
            return Err(wrong(stream, ErrorCode::Protocol));
        } else {
            incoming.call = service.begin(head);
        }
        self.streams.insert(stream, incoming);
        if ends { self.finish(service, stream, &[], out) } else { Ok(()) }
    }

    #[inline]
    fn take_data(
        &mut self,
        service: &mut S,
        stream: u32,
        data: &[u8],
        flow_bytes: usize,
        ends: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Wrong> {
        let Some(incoming) = self.streams.get_mut(stream) else {
            self.check_opened(stream, "DATA")?;
            return if self.reset.contains(&stream) {
                Ok(())
            } else {
                Err(self.not_open(stream).into())
            };
        };
        if let Some(left) = &mut incoming.left {
            let after = left.checked_sub(data.len() as u64);
            *left = after.ok_or_else(|| wrong(stream, ErrorCode::Protocol))?;
        }
        if ends {
            return self.finish(service, stream, data, out);
        }
        incoming.inflow.take(stream, flow_bytes, out)?;
        if !incoming.is_answered
            && let Some(answer) = service.more(&mut incoming.call, data)
        {
            incoming.is_answered = true;
            let (window, is_begun) = (incoming.window, incoming.is_begun);
            self.complete(stream, window, is_begun, answer, out);
        } else if let Some(part) = service.part(&mut incoming.call) {
            if !std::mem::replace(&mut incoming.is_begun, true) {
                let (encoder, head) = (&mut self.encoder, Fields::Known(S::HEAD_OF_PARTS));
                put_headers(out, stream, false, self.outflow.frame_bytes_max(), |out| {
                    encoder.put(&head, out);
                });
                self.outflow.keep(stream, incoming.window);
            }
            let put = |out: &mut Vec<u8>| out.extend_from_slice(part);
            let waits = self.outflow.send_kept(stream, part.len(), put, out);
            part.clear();
            if waits {
                self.pump(out);
            }
        }
        Ok(())
    }

    /// Sends an answer, or its end if a part of it was sent.
    #[inline]
    fn complete(
        &mut self,
        stream: u32,
        window: i64,
        is_begun: bool,
        answer: Answer,
        out: &mut Vec<u8>,
    ) {
        if !is_begun {
            return self.answer(stream, window, answer, out);
        }
        if !answer.body.is_empty() {
            let put = |out: &mut Vec<u8>| out.extend_from_slice(&answer.body);
            self.outflow.send_kept(stream, answer.body.len(), put, out);
        }
        let frame_bytes_max = self.outflow.frame_bytes_max();
        let encoder = &mut self.encoder;
        let end = answer.trailers.unwrap_or_else(|| answer.head.into_trailers());
        self.outflow.end_kept(stream, Some(end), out, |stream, end, out| {
            put_headers(out, stream, true, frame_bytes_max, |out| encoder.put(&end, out));
        });
    }

    /// A request is complete.
    #[inline]
    fn finish(
        &mut self,
        service: &mut S,
        stream: u32,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Wrong> {
        let Some(incoming) = self.streams.remove(stream) else { return Ok(()) };
        if incoming.left.is_some_and(|left| left > 0) {
            return Err(wrong(stream, ErrorCode::Protocol));
        }
        if !incoming.is_answered {
            let answer = service.end(incoming.call, data);
            self.complete(stream, incoming.window, incoming.is_begun, answer, out);
        }
        Ok(())
    }

    /// Sends an answer, as far as the windows allow.
    #[inline]
    fn answer(&mut self, stream: u32, window: i64, answer: Answer, out: &mut Vec<u8>) {
        let Answer { head, body, trailers } = answer;
        let frame_bytes_max = self.outflow.frame_bytes_max();
        let is_last = trailers.is_none();
        let encoder = &mut self.encoder;
        put_headers(out, stream, is_last && body.is_empty(), frame_bytes_max, |out| {
            encoder.put(&head, out);
        });
        if is_last && body.is_empty() {
            return;
        }
        let mut put_end = |stream: u32, end: Fields, out: &mut Vec<u8>| {
            put_headers(out, stream, true, frame_bytes_max, |out| encoder.put(&end, out));
        };
        if !self.outflow.begin(stream, window, body.len(), is_last, out) {
            self.outflow.send(stream, window, body.into_owned(), trailers, out, put_end);
            return;
        }
        out.extend_from_slice(&body);
        if let Some(trailers) = trailers {
            put_end(stream, trailers, out);
        }
    }

    fn pump(&mut self, out: &mut Vec<u8>) {
        let frame_bytes_max = self.outflow.frame_bytes_max();
        let encoder = &mut self.encoder;
        self.outflow.pump(out, |stream, end, out| {
            put_headers(out, stream, true, frame_bytes_max, |out| encoder.put(&end, out));
        });
    }

    /// Section 5.1: of a stream that was never opened, only HEADERS and PRIORITY may come.
    fn check_opened(&self, stream: u32, name: &str) -> Result<(), Breach> {
        if stream <= self.last && !self.is_skipped(stream) {
            return Ok(());
        }
        Err(Breach::protocol(format!("{name} on a stream that was never opened")))
    }

    /// Sections 5.1 and 5.1.1: frames of a message on a stream that is closed, or that may no
    /// longer be opened.
    fn not_open(&self, stream: u32) -> Breach {
        if self.is_skipped(stream) {
            return Breach::protocol("a stream has a lower number than an earlier one");
        }
        Breach::new(ErrorCode::StreamClosed, "a frame of a message on a closed stream")
    }

    fn is_skipped(&self, stream: u32) -> bool {
        let holds = |[first, last]: &[u32; 2]| (*first..=*last).contains(&stream);
        stream.is_multiple_of(2) || self.skipped.iter().any(holds)
    }
}

impl<S: Service> Server for Serving<S> {
    fn accepted(&mut self, connection: ConnectionId, _now: Nanos, out: &mut dyn Outboxes) {
        self.service.accepted();
        self.service.stored().turn(out);
        self.peers.put(connection, Box::new(Peer::new()));
        let own = [
            (MAX_CONCURRENT_STREAMS, STREAMS_MAX),
            (INITIAL_WINDOW_SIZE, OWN_WINDOW),
            (MAX_HEADER_LIST_SIZE, LIST_BYTES_MAX as u32),
        ];
        let out = out.stage(connection);
        put_settings(out, &own);
        put_window_update(out, 0, OWN_WINDOW - WINDOW_DEFAULT);
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        _now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        let peer = self.peers.get_mut(connection);
        let Some(peer) = peer else { return Ok(input.len()) };
        let received = peer.receive(&mut self.service, input, out.stage(connection));
        self.service.stored().hand_over(out);
        match received {
            Ok(taken) => {
                // A client that sends without reading has to wait.
                if out.pending_bytes(connection) > PENDING_BYTES_MAX {
                    out.hold(connection);
                    out.notify_drained(connection);
                }
                Ok(taken)
            }
            Err(Breach { code, what }) => {
                put_go_away(out.stage(connection), peer.last, code);
                Err(Fault::Malformed(format!("{what} ({})", code_name(code as u32))))
            }
        }
    }

    fn drained(&mut self, connection: ConnectionId, _now: Nanos, out: &mut dyn Outboxes) {
        out.release(connection);
    }

    fn closed(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        self.peers.remove(connection);
    }

    fn report(&self) -> ServerReport {
        self.service.report()
    }
}

impl From<Breach> for Wrong {
    fn from(breach: Breach) -> Wrong {
        Wrong::Breach(breach)
    }
}

fn wrong(stream: u32, code: ErrorCode) -> Wrong {
    Wrong::Stream(StreamError { stream, code })
}

/// Adds to a list that keeps only its latest entries.
fn remember<T>(list: &mut VecDeque<T>, entry: T) {
    if list.len() == REMEMBERED_MAX {
        list.pop_front();
    }
    list.push_back(entry);
}

/// Most streams that a reference server allows on a connection: it must not narrow a measured
/// window.
const STREAMS_MAX: u32 = 65_535;

/// Most bytes that wait for a client before nothing more is read from it.
const PENDING_BYTES_MAX: usize = 4 << 20;

const REMEMBERED_MAX: usize = 64;
