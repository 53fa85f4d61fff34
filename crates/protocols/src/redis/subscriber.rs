//! A consumer of a channel: it subscribes, and messages are pushed to it.

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{Connection, Emit, Fault, Metered, Outbox, Signal};
use weigh_model::content::Phase;

use super::codec::{Reply, Token};
use super::errors;
use super::hearing::Hearing;
use super::plan::{Plan, put_request};

/// A subscriber's connection.
pub(super) struct Subscriber {
    plan: Arc<Plan>,
    index: u32,
    /// Answers to the greeting that are still to come.
    greetings: u32,
    is_ready: bool,
    hearing: Hearing,
}

impl Subscriber {
    pub(super) fn new(plan: Arc<Plan>, index: u32) -> Subscriber {
        let greetings = plan.greeting.answers;
        Subscriber { plan, index, greetings, is_ready: false, hearing: Hearing::default() }
    }

    /// Takes a reply; returns the bytes of the message in it.
    fn take(&mut self, mut reply: Reply<'_>, emit: Emit<'_>) -> Result<usize, Fault> {
        if let Token::Error(text) = reply.head {
            return Err(errors::refused(text));
        }
        if self.greetings > 0 {
            self.greetings -= 1;
            return Ok(0);
        }
        let (Token::Array(_) | Token::Push(_)) = reply.head else {
            return Err(self.hearing.unasked(&reply));
        };
        let values = &mut reply.values;
        let (kind, channel) = (values.text().unwrap_or_default(), values.text());
        match (kind, channel, values.token()) {
            (b"message", Some(topic), Some(Token::Bulk(body))) if self.is_ready => {
                emit(Signal::Message { topic, body });
                Ok(body.len())
            }
            (b"subscribe", Some(_), Some(Token::Integer(_))) => {
                if !self.is_ready {
                    self.is_ready = true;
                    emit(Signal::Ready);
                }
                Ok(0)
            }
            _ => {
                let text = format!("a push \"{}\" to a subscriber", kind.escape_ascii());
                Err(Fault::Malformed(text))
            }
        }
    }
}

impl Connection for Subscriber {
    fn open(&mut self, _now: Nanos, out: &mut Outbox, _emit: Emit<'_>) {
        let before = out.len();
        out.put(&self.plan.greeting.bytes);
        let channel = self.plan.list(self.index).key.as_bytes();
        put_request(out.buffer(), &[b"SUBSCRIBE", channel]);
        self.hearing.meter.wrote(Phase::SetUp, out.len() - before, 0);
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
            let phase = if self.is_ready { Phase::Messages } else { Phase::SetUp };
            let payload = self.take(reply, emit)?;
            self.hearing.count(phase, bytes, payload);
            taken += bytes;
        }
        Ok(taken)
    }

    fn end(&mut self, rest: &[u8], _emit: Emit<'_>) -> Result<(), Fault> {
        match rest {
            [] => Ok(()),
            _ => Err(Fault::Ended("in the middle of a push".to_owned())),
        }
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(&mut self.hearing.meter)
    }
}
