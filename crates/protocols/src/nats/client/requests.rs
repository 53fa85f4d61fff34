//! What a client sends: messages, and requests of a pull consumer.

use weigh_model::Nanos;
use weigh_model::connection::{Emit, Op, Outbox, Reply, Signal, Ticket};
use weigh_model::protocol::Role;

use super::super::api::API;
use super::super::codec::{Publish, headers, put_decimal};
use super::super::settings::Confirm;
use super::flow::{Flow, Pong};
use super::{Client, NOTHING};

impl Client {
    /// True if each message is a request to this connection's own responder.
    pub(super) fn is_requesting(&self) -> bool {
        self.plan.is_answered_by_itself && self.seat.role == Role::Producer
    }

    /// Encodes a message, and notes which answer will confirm it.
    pub(super) fn publish(&mut self, op: &Op<'_>, out: &mut Outbox) {
        let is_answered = self.is_requesting() || self.plan.confirm == Confirm::JetStream;
        let (index, connection) = (self.seat.index, self.number);
        let plan = &self.plan;
        let Flow { subject, inbox, okays, numbered, published, reply, headers, .. } =
            &mut **self.flow.get_or_insert_with(Flow::made);
        reply.clear();
        headers.clear();
        if is_answered {
            reply.extend_from_slice(inbox);
            put_decimal(reply, numbered.insert(op.ticket));
        } else if plan.confirm == Confirm::Okay {
            okays.push_back(Some(op.ticket));
        }
        if plan.sends_ids {
            headers::put_message_id(
                headers,
                &[u64::from(plan.tag), u64::from(index), u64::from(connection), *published],
            );
        }
        *published += 1;
        Publish { subject, reply, headers, body: op.body }.put(out.buffer());
    }

    /// Refuses an operation that cannot be sent. The refusal is reported with the next bytes from
    /// the server, so the server is asked for some.
    pub(super) fn refuse(
        &mut self,
        ticket: Ticket,
        reason: u16,
        now: Nanos,
        out: &mut Outbox,
    ) -> Reply {
        self.flow().unsendable.push((ticket, reason));
        self.ping(Pong::Alive, now, out);
        self.meter.wrote(self.phase(), super::codec::PING.len(), 0);
        Reply::Awaited
    }

    pub(super) fn report_unsendable(&mut self, emit: Emit<'_>) {
        if let Some(flow) = &mut self.flow {
            for (ticket, reason) in flow.unsendable.drain(..) {
                emit(Signal::Refused(ticket, reason));
            }
        }
    }

    /// Requests `batch` messages from the pull consumer of this seat.
    pub(super) fn request_messages(&mut self, batch: u64, out: &mut Outbox) {
        let plan = self.plan.clone();
        let (stream, consumer) = (&plan.stream.name, plan.consumer(self.seat.index));
        let subject = format!("{API}CONSUMER.MSG.NEXT.{stream}.{consumer}");
        let flow = self.flow();
        flow.requested += batch;
        let reply = [&*flow.inbox, b"next"].concat();
        let body = plan.next(batch);
        let request =
            Publish { subject: subject.as_bytes(), reply: &reply, body: &body, ..NOTHING };
        request.put(out.buffer());
    }
}
