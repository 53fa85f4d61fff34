//! What comes to the inbox: answers of JetStream and of responders, and messages of a pull
//! consumer.

use weigh_model::connection::{Emit, Fault, Outbox, Signal};

use super::super::api;
use super::super::codec::{Message, decimal, headers};
use super::super::settings::Consume;
use super::flow::{INBOX_SID, INTEREST_SID};
use super::{Client, Stage};

impl Client {
    /// True if the body of a message is payload: not an answer, and not a notice of the server.
    pub(super) fn brings(&self, message: &Message<'_>) -> bool {
        let is_pulled = message.sid == INBOX_SID && !self.is_in_inbox(message.subject);
        let is_for_us = message.sid == INTEREST_SID || is_pulled;
        is_for_us || message.sid == super::flow::SERVICE_SID
    }

    fn is_in_inbox(&self, subject: &[u8]) -> bool {
        let flow = self.flow.as_ref();
        flow.is_some_and(|flow| !flow.inbox.is_empty() && subject.starts_with(&flow.inbox))
    }

    /// Handles a message for the inbox.
    pub(super) fn answered(
        &mut self,
        message: &Message<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        if !self.is_in_inbox(message.subject) {
            return self.pulled(message, out, emit);
        }
        let suffix = &message.subject[self.flow().inbox.len()..];
        if let Some(number) = decimal(suffix) {
            return self.acknowledged(number, message, emit);
        }
        match (suffix, self.stage) {
            (b"stream", Stage::Stream) | (b"consumer", Stage::Consumer) => {
                self.set_up(message, out, emit)
            }
            (b"next", _) => self.answered_request(message, out, emit),
            // A second answer to what was answered.
            _ => Ok(()),
        }
    }

    /// The answer to a message: of the stream, of the responder, or that there is neither.
    fn acknowledged(
        &mut self,
        number: u64,
        message: &Message<'_>,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let Some(ticket) = self.flow().numbered.remove(number) else { return Ok(()) };
        if let Some((code, _)) = headers::status(message.headers) {
            emit(Signal::Refused(ticket, code));
            return Ok(());
        }
        if self.is_requesting() {
            emit(Signal::Done(ticket));
            return Ok(());
        }
        let error = api::error_of(message.body).map_err(|error| {
            Fault::Malformed(format!("an answer of JetStream that is not JSON: {error}"))
        })?;
        match error {
            Some(error) => emit(Signal::Refused(ticket, error.number())),
            None => emit(Signal::Done(ticket)),
        }
        Ok(())
    }

    /// A message of a pull consumer.
    fn pulled(
        &mut self,
        message: &Message<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        if self.plan.consume != Consume::Pull || self.stage != Stage::Ready {
            return Err(Fault::Malformed("a message that was not requested".to_owned()));
        }
        self.deliver(message, out, emit);
        let batch = self.plan.pull_batch;
        let polls = self.plan.polling.is_some();
        let flow = self.flow();
        let was_requested = flow.requested > 0;
        flow.requested = flow.requested.saturating_sub(1);
        let left = flow.requested;
        if polls {
            if was_requested && left == 0 {
                emit(Signal::Answered(Ok(())));
            }
        } else if left <= batch / 2 {
            self.request_messages(batch - left, out);
        }
        Ok(())
    }

    /// A status in place of further messages: the request is over.
    fn answered_request(
        &mut self,
        message: &Message<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let Some((code, words)) = headers::status(message.headers) else {
            return Err(Fault::Malformed("an answer to a pull request without status".to_owned()));
        };
        if code == headers::CONTROL {
            return Ok(());
        }
        let is_over = matches!(code, NO_MESSAGES | REQUEST_TIMEOUT);
        if self.plan.polling.is_some() {
            if std::mem::take(&mut self.flow().requested) > 0 {
                emit(Signal::Answered(if is_over { Ok(()) } else { Err(code) }));
            }
            return Ok(());
        }
        if !is_over {
            let reason = format!("the pull consumer: {}", String::from_utf8_lossy(words));
            return Err(Fault::Refused { code, reason });
        }
        let pending = headers::value(message.headers, PENDING_MESSAGES).and_then(decimal);
        let batch = self.plan.pull_batch;
        let flow = self.flow();
        flow.requested = flow.requested.saturating_sub(pending.unwrap_or(flow.requested));
        let left = flow.requested;
        if left <= batch / 2 {
            self.request_messages(batch - left, out);
        }
        Ok(())
    }
}

/// Messages that the request would still have taken.
const PENDING_MESSAGES: &str = "Nats-Pending-Messages";

const NO_MESSAGES: u16 = 404;
const REQUEST_TIMEOUT: u16 = 408;
