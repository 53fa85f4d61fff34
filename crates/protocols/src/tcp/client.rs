//! The client's end: answers arrive in the order of the messages, so a queue of messages in flight
//! finds the message of an answer, and an answer out of order is detected.

use std::collections::VecDeque;

use weigh_model::Nanos;
use weigh_model::connection::{
    Connection, Emit, Fault, Metered, Op, Outbox, Reply, Signal, Ticket, Transfer,
};
use weigh_model::content::{Meter, Phase};

use super::codec::{self, Frame, Head};

/// Answers that the client requests for each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    Nothing,
    Acknowledgement,
    Echo,
}

/// First frame of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greeting {
    None,
    Hello(u32),
    Subscribe(u32),
}

/// Messages that a client receives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) frame_bytes_max: usize,
    /// Messages for a consumer are passed on piece by piece.
    pub(super) in_pieces: bool,
}

/// A client connection.
pub(super) struct TcpConnection {
    asks: Asks,
    greeting: Greeting,
    is_ready: bool,
    has_heard: bool,
    in_pieces: bool,
    /// Remaining bytes of the message that arrives in pieces.
    incoming_bytes: u32,
    frame_bytes_max: usize,
    in_flight: VecDeque<InFlight>,
    meter: Meter,
}

struct InFlight {
    ticket: Ticket,
    /// CRC-32 of the body, if it will be echoed.
    check: u32,
}

impl TcpConnection {
    pub(super) fn new(asks: Asks, greeting: Greeting, limits: Limits) -> TcpConnection {
        let Limits { frame_bytes_max, in_pieces } = limits;
        TcpConnection {
            asks,
            greeting,
            is_ready: false,
            has_heard: false,
            in_pieces,
            incoming_bytes: 0,
            frame_bytes_max,
            in_flight: VecDeque::new(),
            meter: Meter::default(),
        }
    }

    /// Handles the available part of a message that arrives in pieces. Returns its number of bytes.
    fn take_pieces(&mut self, input: &[u8], emit: Emit<'_>) -> usize {
        if self.incoming_bytes == 0 {
            let Some(head) = codec::read_head(input) else { return 0 };
            if head.kind != codec::DELIVERED || !self.is_ready {
                return 0;
            }
            let bytes = u64::from(head.body_bytes);
            self.meter.read(Phase::Messages, codec::HEAD_BYTES, 0);
            self.incoming_bytes = head.body_bytes;
            emit(Signal::Head { topic: &head.id.to_be_bytes(), bytes });
            return codec::HEAD_BYTES;
        }
        let here = input.len().min(self.incoming_bytes as usize);
        if here > 0 {
            self.incoming_bytes -= here as u32;
            self.meter.read(Phase::Messages, here, here);
            emit(Signal::Piece(&input[..here]));
        }
        here
    }

    fn take(&mut self, frame: Frame<'_>, emit: Emit<'_>) -> Result<(), Fault> {
        match frame.kind {
            codec::ACKNOWLEDGED if self.asks == Asks::Acknowledgement => {
                emit(Signal::Done(self.answered(&frame)?.ticket));
            }
            codec::NO_SUBSCRIBER if self.asks == Asks::Acknowledgement => {
                emit(Signal::NoSubscriber(self.answered(&frame)?.ticket));
            }
            codec::ECHOED if self.asks == Asks::Echo => {
                let sent = self.answered(&frame)?;
                if sent.check != crc32fast::hash(frame.body) {
                    let text = format!("the echo of message {} is not what was sent", frame.id);
                    return Err(Fault::Malformed(text));
                }
                emit(Signal::Done(sent.ticket));
            }
            codec::SUBSCRIBED if self.greeting == Greeting::Subscribe(frame.id) => {
                if !self.is_ready {
                    self.is_ready = true;
                    emit(Signal::Ready);
                }
            }
            codec::DELIVERED if matches!(self.greeting, Greeting::Subscribe(_)) => {
                emit(Signal::Message { topic: &frame.id.to_be_bytes(), body: frame.body });
            }
            kind => {
                let text = format!("an unexpected frame of kind {kind:#04x}");
                return Err(Fault::Malformed(text));
            }
        }
        Ok(())
    }

    fn answered(&mut self, frame: &Frame<'_>) -> Result<InFlight, Fault> {
        match self.in_flight.pop_front() {
            Some(sent) if sent.ticket.0 == frame.id => Ok(sent),
            Some(sent) => Err(Fault::Malformed(format!(
                "an answer to message {} instead of {}",
                frame.id, sent.ticket.0
            ))),
            None => Err(Fault::Malformed(format!(
                "an answer to message {}, and none is in flight",
                frame.id
            ))),
        }
    }

    /// Fault of the very first bytes: the server probably speaks another protocol.
    fn judged(&self, fault: Fault, input: &[u8]) -> Fault {
        let has_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        match fault {
            Fault::Malformed(_) if !self.has_heard && input.iter().take(4).all(has_text) => {
                let start = &input[..input.len().min(SHOWN_BYTES_MAX)];
                Fault::OtherProtocol(format!("it starts with \"{}\"", start.escape_ascii()))
            }
            fault => fault,
        }
    }
}

impl Connection for TcpConnection {
    fn open(&mut self, _now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        let (kind, index) = match self.greeting {
            Greeting::None => (None, 0),
            Greeting::Hello(index) => (Some(codec::HELLO), index),
            Greeting::Subscribe(index) => (Some(codec::SUBSCRIBE), index),
        };
        if let Some(kind) = kind {
            codec::write(out.buffer(), kind, index, b"");
            self.meter.wrote(Phase::SetUp, codec::HEAD_BYTES, 0);
        }
        if kind == Some(codec::SUBSCRIBE) {
            return;
        }
        self.is_ready = true;
        emit(Signal::Ready);
    }

    fn room(&self) -> u32 {
        match self.is_ready {
            true => u32::MAX - self.in_flight.len() as u32,
            false => 0,
        }
    }

    fn send(&mut self, op: &Op<'_>, _now: Nanos, out: &mut Outbox) -> Reply {
        let (kind, check) = match self.asks {
            Asks::Nothing => (codec::MESSAGE, None),
            Asks::Acknowledgement => (codec::ASK, Some(0)),
            Asks::Echo => (codec::ECHO, Some(crc32fast::hash(op.body))),
        };
        codec::write(out.buffer(), kind, op.ticket.0, op.body);
        let payload = op.body.len();
        self.meter.wrote(Phase::Messages, codec::HEAD_BYTES + payload, payload);
        match check {
            Some(check) => {
                self.in_flight.push_back(InFlight { ticket: op.ticket, check });
                Reply::Awaited
            }
            None => Reply::None,
        }
    }

    fn receive(
        &mut self,
        input: &[u8],
        _now: Nanos,
        _out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        loop {
            let rest = &input[taken..];
            if self.in_pieces {
                let pieces = self.take_pieces(rest, emit);
                taken += pieces;
                if pieces > 0 || self.incoming_bytes > 0 {
                    if taken == input.len() {
                        return Ok(taken);
                    }
                    continue;
                }
            }
            let read = codec::read(rest, self.frame_bytes_max);
            let Some((frame, bytes)) = read.map_err(|fault| self.judged(fault, rest))? else {
                return Ok(taken);
            };
            self.has_heard = true;
            let phase = if self.is_ready { Phase::Messages } else { Phase::SetUp };
            self.meter.read(phase, bytes, frame.body.len());
            self.take(frame, emit)?;
            taken += bytes;
        }
    }

    fn end(&mut self, rest: &[u8], _emit: Emit<'_>) -> Result<(), Fault> {
        match rest {
            [] if self.incoming_bytes == 0 => Ok(()),
            _ => Err(Fault::Ended("in the middle of a frame".to_owned())),
        }
    }

    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        Some(self)
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(&mut self.meter)
    }
}

impl Transfer for TcpConnection {
    fn begin(&mut self, op: &Op<'_>, rest: u64, _now: Nanos, out: &mut Outbox) -> Reply {
        let kind = match self.asks {
            Asks::Nothing => codec::MESSAGE,
            _ => codec::ASK,
        };
        let body_bytes = (op.body.len() as u64 + rest) as u32;
        codec::write_head(out.buffer(), Head { kind, id: op.ticket.0, body_bytes });
        out.put(op.body);
        self.meter.wrote(Phase::Messages, codec::HEAD_BYTES + op.body.len(), op.body.len());
        if kind == codec::MESSAGE {
            return Reply::None;
        }
        self.in_flight.push_back(InFlight { ticket: op.ticket, check: 0 });
        Reply::Awaited
    }

    fn more(&mut self, piece: &[u8], _now: Nanos, out: &mut Outbox) {
        out.put(piece);
        self.meter.wrote(Phase::Messages, piece.len(), piece.len());
    }
}

const SHOWN_BYTES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<TcpConnection>() <= 72, "{}", size_of::<TcpConnection>());
    }
}
