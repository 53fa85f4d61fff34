//! The client's end: answers come in the order of the messages, so a queue of what is in flight
//! finds the one an answer belongs to, and an answer out of turn is seen.

use std::collections::VecDeque;

use weigh_model::Nanos;
use weigh_model::wire::{Emit, Fault, Op, Outbox, Reply, Signal, Ticket, Wire};

use super::codec::{self, Frame};

/// What the client asks of the server for each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    Nothing,
    Acknowledgement,
    Echo,
}

/// What a client says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greeting {
    None,
    Hello(u32),
    Subscribe(u32),
}

/// A client connection.
pub(super) struct TcpWire {
    asks: Asks,
    greeting: Greeting,
    is_ready: bool,
    has_heard: bool,
    frame_bytes_max: usize,
    in_flight: VecDeque<InFlight>,
}

struct InFlight {
    ticket: Ticket,
    /// CRC-32 of the body, where it will come back.
    check: u32,
}

impl TcpWire {
    pub(super) fn new(asks: Asks, greeting: Greeting, frame_bytes_max: usize) -> TcpWire {
        let in_flight = VecDeque::new();
        TcpWire { asks, greeting, is_ready: false, has_heard: false, frame_bytes_max, in_flight }
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
                let text = format!("a frame of kind {kind:#04x}, which nobody asked for");
                return Err(Fault::Malformed(text));
            }
        }
        Ok(())
    }

    fn answered(&mut self, frame: &Frame<'_>) -> Result<InFlight, Fault> {
        match self.in_flight.pop_front() {
            Some(sent) if sent.ticket.0 == frame.id => Ok(sent),
            Some(sent) => Err(Fault::Malformed(format!(
                "an answer to message {} where {} was due",
                frame.id, sent.ticket.0
            ))),
            None => Err(Fault::Malformed(format!(
                "an answer to message {}, and none is in flight",
                frame.id
            ))),
        }
    }

    /// What breaks the rules in the very first bytes is hardly this protocol.
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

impl Wire for TcpWire {
    fn open(&mut self, _now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        match self.greeting {
            Greeting::None => {}
            Greeting::Hello(index) => codec::write(out.buffer(), codec::HELLO, index, b""),
            Greeting::Subscribe(index) => {
                codec::write(out.buffer(), codec::SUBSCRIBE, index, b"");
                return;
            }
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
            let read = codec::read(rest, self.frame_bytes_max);
            let Some((frame, bytes)) = read.map_err(|fault| self.judged(fault, rest))? else {
                return Ok(taken);
            };
            self.has_heard = true;
            self.take(frame, emit)?;
            taken += bytes;
        }
    }

    fn end(&mut self, rest: &[u8], _emit: Emit<'_>) -> Result<(), Fault> {
        match rest {
            [] => Ok(()),
            _ => Err(Fault::Ended("in the middle of a frame".to_owned())),
        }
    }
}

const SHOWN_BYTES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<TcpWire>() <= 64, "{}", size_of::<TcpWire>());
    }
}
