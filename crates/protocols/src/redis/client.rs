//! The producer's end: answers arrive in the order of the commands, so a queue of commands in
//! flight finds the command of an answer.

use std::collections::VecDeque;
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{
    Connection, Emit, Fault, Metered, Op, Outbox, Reply as Expects, Signal, Ticket,
};
use weigh_model::content::Phase;

use super::codec::{Reply, Token, put_decimal};
use super::errors;
use super::hearing::Hearing;
use super::plan::{Command, Plan};

/// A producer's connection.
pub(super) struct RedisClient {
    plan: Arc<Plan>,
    index: u32,
    is_open: bool,
    /// Answers to the greeting that are still to come.
    greetings: u32,
    in_flight: VecDeque<Ticket>,
    hearing: Hearing,
    /// Receivers of the last message, as the server reported them.
    receivers: Option<i64>,
}

impl RedisClient {
    pub(super) fn new(plan: Arc<Plan>, index: u32) -> RedisClient {
        RedisClient {
            greetings: plan.greeting.answers,
            plan,
            index,
            is_open: false,
            in_flight: VecDeque::new(),
            hearing: Hearing::default(),
            receivers: None,
        }
    }

    fn is_ready(&self) -> bool {
        self.is_open && self.greetings == 0
    }

    fn take(&mut self, reply: &Reply<'_>, emit: Emit<'_>) -> Result<(), Fault> {
        // A push belongs to no command.
        if matches!(reply.head, Token::Push(_)) {
            return Ok(());
        }
        if self.greetings > 0 {
            if let Token::Error(text) = reply.head {
                return Err(errors::refused(text));
            }
            self.greetings -= 1;
            if self.greetings == 0 {
                emit(Signal::Ready);
            }
            return Ok(());
        }
        let Some(ticket) = self.in_flight.pop_front() else {
            return Err(self.hearing.unasked(reply));
        };
        match (self.plan.command, reply.head) {
            (_, Token::Error(text)) => match errors::fault(text) {
                Some(fault) => return Err(fault),
                None => emit(Signal::Refused(ticket, errors::code(text))),
            },
            (Command::Publish, Token::Integer(receivers)) => {
                if self.plan.delivers && self.receivers != Some(receivers) {
                    emit(Signal::Granted(RECEIVERS, receivers.max(0) as u64));
                }
                self.receivers = Some(receivers);
                emit(match receivers {
                    0 => Signal::NoSubscriber(ticket),
                    _ => Signal::Done(ticket),
                });
            }
            (Command::Xadd, Token::Bulk(_)) | (Command::Set, Token::Simple(_)) => {
                emit(Signal::Done(ticket));
            }
            (command, head) => {
                let text = format!("{} as the answer to {command:?}", head.kind());
                return Err(Fault::Malformed(text));
            }
        }
        Ok(())
    }
}

impl Connection for RedisClient {
    fn open(&mut self, _now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        self.is_open = true;
        let bytes = &self.plan.greeting.bytes;
        out.put(bytes);
        self.hearing.meter.wrote(Phase::SetUp, bytes.len(), 0);
        if self.greetings == 0 {
            emit(Signal::Ready);
        }
    }

    /// Commands may follow each other without waiting: pipelining is the load's window.
    fn room(&self) -> u32 {
        match self.is_ready() {
            true => u32::MAX - self.in_flight.len() as u32,
            false => 0,
        }
    }

    fn send(&mut self, op: &Op<'_>, _now: Nanos, out: &mut Outbox) -> Expects {
        let before = out.len();
        let buffer = out.buffer();
        let head = &self.plan.list(self.index).head;
        buffer.reserve(head.len() + op.body.len() + LENGTH_BYTES_MAX);
        buffer.extend_from_slice(head);
        buffer.push(b'$');
        put_decimal(buffer, op.body.len() as u64);
        buffer.extend_from_slice(b"\r\n");
        buffer.extend_from_slice(op.body);
        buffer.extend_from_slice(b"\r\n");
        self.hearing.meter.wrote(Phase::Messages, out.len() - before, op.body.len());
        self.in_flight.push_back(op.ticket);
        Expects::Awaited
    }

    fn receive(
        &mut self,
        input: &[u8],
        _now: Nanos,
        _out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        while let Some((reply, bytes)) = self.hearing.reply(&input[taken..], self.plan.bytes_max)? {
            let phase = if self.greetings > 0 { Phase::SetUp } else { Phase::Messages };
            self.hearing.count(phase, bytes, 0);
            self.take(&reply, emit)?;
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

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(&mut self.hearing.meter)
    }
}

/// Name of the least number of receivers that the answers to PUBLISH had.
pub(super) const RECEIVERS: &str = "receivers";

/// A dollar sign, a length, and two ends of lines.
const LENGTH_BYTES_MAX: usize = 1 + 20 + 2 + 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<RedisClient>() <= 88, "{}", size_of::<RedisClient>());
    }
}
