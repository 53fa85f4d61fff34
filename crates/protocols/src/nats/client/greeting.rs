//! The start of a session: INFO, CONNECT and its PONG, the stream and the consumer of JetStream.

use weigh_model::connection::{Emit, Fault, Outbox, Signal};
use weigh_model::protocol::Role;

use super::super::api::{self, API, ApiError};
use super::super::codec::info::Info;
use super::super::codec::{self, Message, Publish, Subscribe};
use super::super::names;
use super::super::settings::{Confirm, Consume};
use super::flow::{INBOX_SID, INTEREST_SID, Pong, SERVICE_SID};
use super::{Client, NOTHING, Stage};

impl Client {
    /// INFO: the first greets; later ones bring news, of which only the limit matters.
    pub(super) fn informed(
        &mut self,
        json: &[u8],
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let info: Info = serde_json::from_slice(json).map_err(|error| {
            let text = format!("its INFO is not what a NATS server sends: {error}");
            match self.stage {
                Stage::Expecting => Fault::OtherProtocol(text),
                _ => Fault::Malformed(text),
            }
        })?;
        if info.max_payload > 0 {
            self.payload_bytes_max = u32::try_from(info.max_payload).unwrap_or(u32::MAX);
            emit(Signal::Granted("max_payload", info.max_payload));
        }
        if info.is_lame_duck {
            // A load does not move to another server: it stays until the end, and says so.
            self.is_lame_duck = true;
            emit(Signal::Granted("lame_duck", 1));
        }
        if self.stage != Stage::Expecting {
            return Ok(());
        }
        self.check_info(&info)?;
        self.greet(out);
        Ok(())
    }

    fn check_info(&self, info: &Info) -> Result<(), Fault> {
        let refused = |reason: &str| Err(Fault::Refused { code: 0, reason: reason.to_owned() });
        if info.tls_required && !self.plan.is_secure {
            return refused("it requires TLS: type a tls+nats:// URL, or --tls on");
        }
        let needs_jetstream = self.plan.confirm == Confirm::JetStream
            || (self.seat.role == Role::Consumer && self.plan.consume != Consume::Core);
        if needs_jetstream && !info.jetstream {
            return refused("it has no JetStream: start nats-server with -js");
        }
        if !info.headers && (needs_jetstream || self.plan.is_answered_by_itself) {
            return refused("it accepts no headers: NATS 2.2 or later is needed");
        }
        Ok(())
    }

    /// CONNECT, the subscriptions, and a PING: its PONG says that all were taken.
    fn greet(&mut self, out: &mut Outbox) {
        let plan = self.plan.clone();
        self.number = plan.next_connection();
        out.put(plan.connect(self.seat.role));
        let mut lines = 1;
        let mut subscribe = |subject: &str, queue: &str, sid: &[u8]| {
            let (subject, queue) = (subject.as_bytes(), queue.as_bytes());
            Subscribe { subject, queue, sid }.put(out.buffer());
            lines += 1;
        };
        let inbox = names::inbox(plan.tag, self.seat, self.number);
        if self.has_inbox() {
            subscribe(&format!("{inbox}*"), "", INBOX_SID);
        }
        if self.seat.role == Role::Consumer {
            let (subject, queue) = plan.interest(self.seat.index);
            let name = plan.consumer(self.seat.index);
            match plan.consume {
                Consume::Core => subscribe(&subject, queue, INTEREST_SID),
                Consume::Push => {
                    subscribe(&names::deliver_subject(plan.tag, &name), queue, INTEREST_SID);
                }
                Consume::Pull => {}
            }
        } else if plan.is_answered_by_itself {
            subscribe(&plan.subject(self.seat.index), "", SERVICE_SID);
        }
        out.put(codec::PING);
        let is_verbose = self.seat.role == Role::Producer && plan.confirm == Confirm::Okay;
        let subject = plan.subject(self.seat.index);
        let flow = self.flow();
        if is_verbose {
            flow.okays.extend((0..lines).map(|_| None));
        }
        flow.pongs.push_back(Pong::Greeting);
        flow.subject = subject.into_bytes().into();
        flow.inbox = inbox.into_bytes().into();
        self.stage = Stage::Greeting;
    }

    /// True if answers come to subjects of this connection.
    fn has_inbox(&self) -> bool {
        match self.seat.role {
            Role::Producer => self.plan.confirm == Confirm::JetStream || self.is_requesting(),
            Role::Consumer => self.plan.consume != Consume::Core,
        }
    }

    /// CONNECT was accepted.
    pub(super) fn greeted(&mut self, out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        let uses_stream = self.has_inbox() && !self.is_requesting();
        if !uses_stream {
            self.ready(out, emit);
        } else if self.plan.stream.is_made() {
            self.with_stream(out, emit);
        } else {
            let plan = self.plan.clone();
            let subject = format!("{API}STREAM.CREATE.{}", plan.stream.name);
            self.ask(&subject, b"stream", &plan.stream.create, out);
            self.stage = Stage::Stream;
        }
        Ok(())
    }

    /// An answer of the API before the session stands.
    pub(super) fn set_up(
        &mut self,
        message: &Message<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let error = if message.body.is_empty() {
            let (code, err_code) = (NO_RESPONDERS, 0);
            Some(ApiError { code, err_code, description: "JetStream does not answer".to_owned() })
        } else {
            api::error_of(message.body).map_err(|error| {
                Fault::Malformed(format!("an answer of JetStream that is not JSON: {error}"))
            })?
        };
        if let Some(error) = error {
            let what = match self.stage {
                Stage::Stream => format!("the stream {}", self.plan.stream.name),
                _ => format!("the consumer {}", self.plan.consumer(self.seat.index)),
            };
            let reason = format!("{what}: {}", error.description);
            return Err(Fault::Refused { code: error.number(), reason });
        }
        match self.stage {
            Stage::Stream => {
                self.plan.stream.note_made();
                self.with_stream(out, emit);
            }
            _ => self.ready(out, emit),
        }
        Ok(())
    }

    fn with_stream(&mut self, out: &mut Outbox, emit: Emit<'_>) {
        if self.seat.role == Role::Producer {
            return self.ready(out, emit);
        }
        let (stream, consumer) = (&self.plan.stream.name, self.plan.consumer(self.seat.index));
        let subject = format!("{API}CONSUMER.DURABLE.CREATE.{stream}.{consumer}");
        let request = self.plan.create_consumer(self.seat.index);
        self.ask(&subject, b"consumer", &request, out);
        self.stage = Stage::Consumer;
    }

    fn ready(&mut self, out: &mut Outbox, emit: Emit<'_>) {
        self.stage = Stage::Ready;
        emit(Signal::Ready);
        let pulls = self.seat.role == Role::Consumer && self.plan.consume == Consume::Pull;
        if pulls && self.plan.polling.is_none() {
            self.request_messages(self.plan.pull_batch, out);
        }
    }

    fn ask(&mut self, subject: &str, suffix: &[u8], body: &[u8], out: &mut Outbox) {
        let reply = [&*self.flow().inbox, suffix].concat();
        Publish { subject: subject.as_bytes(), reply: &reply, body, ..NOTHING }.put(out.buffer());
    }
}

const NO_RESPONDERS: u16 = 503;
