//! The reference server: all connections of one shard.

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::server::{ById, ConnectionId, Outboxes, Server, ServerReport};
use weigh_model::streams::{self, Piece};

use super::codec::{
    Breach, DATA, DECOMPRESSION_FAILED, FRAME_ERROR, FRAME_UNEXPECTED, Frame, FrameReader, HEADERS,
    MESSAGE_ERROR, NO_ERROR, REQUEST_INCOMPLETE, put_control, put_data_head, put_headers,
};
use super::peer::PeerStreams;
use super::qpack::{self, LIST_BYTES_MAX};
use crate::http2_core::answer::{Answer, Fields};
use crate::http2_core::fields::RequestHead;
use crate::http2_core::intake::{Call, Intake, Rules};
use crate::http2_core::serving::Service;
use crate::http2_core::streams::Streams;

/// One shard.
pub(super) struct Serving {
    service: Intake,
    peers: ById<Box<Peer>>,
}

/// A connection.
struct Peer {
    streams: PeerStreams,
    /// Requests that are not complete, by their number, counted from 1.
    requests: Streams<Incoming>,
}

/// A request whose content is not complete.
#[derive(Default)]
struct Incoming {
    frames: FrameReader,
    call: Call,
    has_head: bool,
    has_trailers: bool,
    /// True once it was answered.
    is_answered: bool,
    /// Bytes of content that have to follow, if the request named them.
    left: Option<u64>,
}

/// What is wrong with a request.
enum Wrong {
    /// The connection cannot continue.
    Breach(Breach),
    /// The stream is abandoned with this code (section 4.1.2).
    Stream(u64),
}

impl Serving {
    /// A shard without connections.
    pub(super) fn new(rules: Arc<Rules>) -> Serving {
        Serving { service: Intake::new(rules), peers: ById::default() }
    }
}

impl Peer {
    fn new() -> Peer {
        Peer { streams: PeerStreams::default(), requests: Streams::new() }
    }

    fn take(
        &mut self,
        service: &mut Intake,
        piece: Piece<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Breach> {
        match piece {
            Piece::Bytes { stream, bytes, is_last } if streams::is_both_ways(stream) => {
                match self.take_request(service, stream, bytes, is_last, out) {
                    Ok(()) => {}
                    Err(Wrong::Breach(breach)) => return Err(breach),
                    Err(Wrong::Stream(code)) => {
                        streams::put_stop(out, stream, code);
                        streams::put_reset(out, stream, code);
                    }
                }
            }
            Piece::Bytes { stream, bytes, is_last } => {
                self.streams.take(stream, bytes, is_last, false)?;
            }
            Piece::Reset { stream, .. } if streams::is_both_ways(stream) => {
                if self.requests.remove(number(stream)).is_some_and(|own| !own.is_answered) {
                    streams::put_reset(out, stream, REQUEST_INCOMPLETE);
                }
            }
            Piece::Reset { stream, .. } => self.streams.end(stream)?,
            Piece::Stop { .. } | Piece::Opened(_) | Piece::Close(_) => {}
        }
        Ok(())
    }

    fn take_request(
        &mut self,
        service: &mut Intake,
        stream: u64,
        bytes: &[u8],
        is_last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Wrong> {
        let mut request = self.requests.remove(number(stream)).unwrap_or_default();
        let (mut rest, mut last) = (bytes, &[][..]);
        while let Some(frame) = request.frames.next(&mut rest).map_err(Wrong::Breach)? {
            match frame {
                Frame::Data(content) => {
                    let before = std::mem::replace(&mut last, content);
                    request.check_content(content)?;
                    request.more(service, stream, before, out);
                }
                Frame::Whole(HEADERS, section) => {
                    request.take_head(service, stream, &section, out)?;
                }
                Frame::Whole(kind, _) => return Err(unexpected(kind)),
            }
            if request.is_answered {
                break;
            }
        }
        if !is_last {
            request.more(service, stream, last, out);
            // Of one that is answered nothing more is read.
            if !request.is_answered {
                self.requests.insert(number(stream), request);
            }
            return Ok(());
        }
        if request.is_answered {
            return Ok(());
        }
        if !request.frames.is_between() {
            let what = "the stream of a request ends within a frame";
            return Err(Wrong::Breach(Breach::new(FRAME_ERROR, what)));
        }
        if !request.has_head {
            return Err(Wrong::Stream(REQUEST_INCOMPLETE));
        }
        if request.left.is_some_and(|left| left > 0) {
            return Err(Wrong::Stream(MESSAGE_ERROR));
        }
        let answer = service.end(request.call, last);
        put_answer(stream, answer, out);
        Ok(())
    }
}

impl Incoming {
    fn check_content(&mut self, content: &[u8]) -> Result<(), Wrong> {
        if !self.has_head || self.has_trailers {
            return Err(unexpected(DATA));
        }
        if let Some(left) = &mut self.left {
            let after = left.checked_sub(content.len() as u64);
            *left = after.ok_or(Wrong::Stream(MESSAGE_ERROR))?;
        }
        Ok(())
    }

    /// Takes content that more follows.
    fn more(&mut self, service: &mut Intake, stream: u64, content: &[u8], out: &mut Vec<u8>) {
        if content.is_empty() || self.is_answered {
            return;
        }
        if let Some(answer) = service.more(&mut self.call, content) {
            self.answer(stream, answer, out);
        }
    }

    /// Answers before the request is complete, and asks for no more of it (section 4.1).
    fn answer(&mut self, stream: u64, answer: Answer, out: &mut Vec<u8>) {
        self.is_answered = true;
        put_answer(stream, answer, out);
        streams::put_stop(out, stream, NO_ERROR);
    }

    fn take_head(
        &mut self,
        service: &mut Intake,
        stream: u64,
        section: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Wrong> {
        if self.has_trailers {
            return Err(unexpected(HEADERS));
        }
        let mut head = RequestHead::default();
        let is_whole = qpack::decode(section, |name, value| {
            let taken = head.take(name, value);
            head.malformed = head.malformed.or(taken.err());
        })
        .map_err(|flaw| Wrong::Breach(Breach::new(DECOMPRESSION_FAILED, flaw.0)))?;
        if self.has_head {
            self.has_trailers = true;
            return match head.wrong_as_trailers() {
                Some(_) => Err(Wrong::Stream(MESSAGE_ERROR)),
                None => Ok(()),
            };
        }
        self.has_head = true;
        if !is_whole {
            let status = (":status", "431".to_owned());
            self.answer(stream, Answer::bare(Fields::Other(vec![status])), out);
            return Ok(());
        }
        if head.wrong_as_request().is_some() {
            return Err(Wrong::Stream(MESSAGE_ERROR));
        }
        self.left = head.length;
        self.call = service.begin(&head);
        Ok(())
    }
}

impl Server for Serving {
    fn accepted(&mut self, connection: ConnectionId, _now: Nanos, out: &mut dyn Outboxes) {
        self.service.accepted();
        self.service.stored().turn(out);
        self.peers.put(connection, Box::new(Peer::new()));
        streams::put_bytes(out.stage(connection), OWN_CONTROL, false, |out| {
            put_control(out, LIST_BYTES_MAX);
        });
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
        let mut taken = 0;
        let mut result = Ok(());
        while let Some((piece, bytes)) = streams::next(&input[taken..]) {
            taken += bytes;
            result = peer.take(&mut self.service, piece, out.stage(connection));
            if result.is_err() {
                break;
            }
        }
        self.service.stored().hand_over(out);
        if let Err(breach) = result {
            streams::put_close(out.stage(connection), breach.code);
            return Err(Fault::Malformed(breach.to_string()));
        }
        // A client that sends without reading has to wait.
        if out.pending_bytes(connection) > PENDING_BYTES_MAX {
            out.hold(connection);
            out.notify_drained(connection);
        }
        Ok(taken)
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

/// Sends an answer.
fn put_answer(stream: u64, answer: Answer, out: &mut Vec<u8>) {
    let Answer { head, body, trailers } = answer;
    streams::put_bytes(out, stream, true, |out| {
        put_headers(out, |out| put_fields(&head, out));
        if !body.is_empty() {
            put_data_head(out, body.len());
            out.extend_from_slice(&body);
        }
        if let Some(trailers) = trailers {
            put_headers(out, |out| put_fields(&trailers, out));
        }
    });
}

fn put_fields(fields: &Fields, out: &mut Vec<u8>) {
    qpack::put_prefix(out);
    match fields {
        Fields::Known(place) => {
            for (name, value) in Intake::KNOWN.get(*place).copied().unwrap_or_default() {
                qpack::put(name.as_bytes(), value.as_bytes(), out);
            }
        }
        Fields::Other(fields) => {
            for (name, value) in fields {
                qpack::put(name.as_bytes(), value.as_bytes(), out);
            }
        }
    }
}

/// The number of a request, counted from 1.
fn number(stream: u64) -> u32 {
    (stream / 4 + 1).min(u64::from(u32::MAX)) as u32
}

fn unexpected(kind: u64) -> Wrong {
    let what = format!("a frame of type {kind} at a wrong place of a request");
    Wrong::Breach(Breach::new(FRAME_UNEXPECTED, what))
}

/// The first stream in one direction that a server opens.
const OWN_CONTROL: u64 = 3;

/// Most bytes that wait for a client before nothing more is read from it.
const PENDING_BYTES_MAX: usize = 4 << 20;
