//! The start of a session: SASL, then everything up to the link in one go, as Qpid Proton does it
//! (pipelined `open`, part 2, section 2.4.1).

use weigh_model::connection::{Emit, Fault, Outbox, Signal};
use weigh_model::protocol::Role;
use weigh_model::units::Nanos;

use super::super::codec::{
    self, AMQP_HEADER, Attach, Begin, Detach, Open, Outcome, Performative, SASL_HEADER, Sasl,
    Symbols, Terminus,
};
use super::super::plan::{CHANNEL, HANDLE, Login, WINDOW};
use super::super::settings::announced_ms;
use super::receiving::MESSAGE_BYTES_MAX;
use super::{Client, Stage, not_now};

impl Client {
    /// Takes the server's protocol header; false if it is not whole yet.
    pub(super) fn take_header(&mut self, input: &[u8]) -> Result<bool, Fault> {
        let due = if self.stage == Stage::SaslHeader { SASL_HEADER } else { AMQP_HEADER };
        let seen = &input[..input.len().min(due.len())];
        if due.starts_with(seen) {
            if seen.len() < due.len() {
                return Ok(false);
            }
            self.stage = match self.stage {
                Stage::SaslHeader => Stage::Mechanisms,
                _ => Stage::Open,
            };
            return Ok(true);
        }
        if let Some([b'A', b'M', b'Q', b'P', version @ ..]) = input.first_chunk::<8>() {
            return Err(self.other_version(*version));
        }
        if b"AMQP".starts_with(&seen[..seen.len().min(4)]) && input.len() < 8 {
            return Ok(false);
        }
        Err(crate::requests::starts_otherwise(input))
    }

    /// A server that does not have what was asked for answers with what it has (section 2.2).
    fn other_version(&self, version: [u8; 4]) -> Fault {
        let reason = match version {
            [3, 1, 0, 0] => "it asks for SASL; leave amqp1.sasl=none out",
            [0, 1, 0, 0] => "it has no SASL; type --set amqp1.sasl=none",
            [2, 1, 0, 0] => "it asks for TLS; type --tls on",
            [0, 0, 9, 1] => {
                let what = "it answers with AMQP 0-9-1, which is another protocol: `amqp`";
                return Fault::OtherProtocol(what.to_owned());
            }
            [id, a, b, c] => {
                let what = format!("it answers with AMQP {a}-{b}-{c}, protocol {id}");
                return Fault::OtherProtocol(what);
            }
        };
        Fault::Refused { code: 0, reason: reason.to_owned() }
    }

    pub(super) fn take_sasl(&mut self, sasl: &Sasl<'_>, out: &mut Outbox) -> Result<(), Fault> {
        match (self.stage, *sasl) {
            (Stage::Mechanisms, Sasl::Mechanisms(offered)) => {
                let (mechanism, response) = match &self.plan.login {
                    Login::Plain(response) => ("PLAIN", &response[..]),
                    _ => ("ANONYMOUS", &b"weigh"[..]),
                };
                if !offered.contains(mechanism) {
                    let offered = offered.iter().collect::<Vec<&str>>().join(", ");
                    let reason = format!("it offers {offered}, and not {mechanism}");
                    return Err(Fault::Refused { code: Outcome::AUTH.into(), reason });
                }
                let hostname = self.plan.hostname.as_deref();
                Sasl::Init { mechanism, response: Some(response), hostname }.put(out.buffer());
                self.stage = Stage::Outcome;
                Ok(())
            }
            (Stage::Outcome, Sasl::Outcome(Outcome::OK)) => {
                self.put_connection(out);
                Ok(())
            }
            (Stage::Outcome, Sasl::Outcome(code)) => {
                let reason = match code {
                    Outcome::AUTH => "the user or the password is wrong (sasl-outcome auth)",
                    _ => "SASL failed (sasl-outcome sys)",
                };
                Err(Fault::Refused { code: code.into(), reason: reason.to_owned() })
            }
            (Stage::Outcome, Sasl::Challenge) => {
                let reason = "it sends a challenge, which PLAIN and ANONYMOUS do not have";
                Err(Fault::Refused { code: Outcome::AUTH.into(), reason: reason.to_owned() })
            }
            _ => Err(not_now(sasl.name())),
        }
    }

    /// Writes the header of AMQP and everything up to the link.
    pub(super) fn put_connection(&mut self, out: &mut Outbox) {
        let (plan, seat) = (&self.plan, self.seat);
        let name = plan.name(seat);
        out.put(&AMQP_HEADER);
        let out = out.buffer();
        let open = Open {
            container_id: &name,
            hostname: plan.hostname.as_deref(),
            max_frame_size: plan.frame_max,
            channel_max: CHANNEL,
            idle_time_out_ms: announced_ms(plan.idle),
        };
        Performative::Open(open).put(0, out);
        let begin = Begin {
            remote_channel: None,
            next_outgoing_id: 0,
            incoming_window: WINDOW,
            outgoing_window: WINDOW,
            handle_max: HANDLE,
        };
        Performative::Begin(begin).put(CHANNEL, out);
        if plan.has_link {
            self.put_attach(&name, out);
        }
        self.stage = Stage::Header;
    }

    fn put_attach(&self, name: &str, out: &mut Vec<u8>) {
        let (plan, is_consumer) = (&self.plan, self.seat.role == Role::Consumer);
        let address = plan.nodes.address(self.seat.index);
        // A subscription of a topic stores what waits for it only if it is durable itself.
        let is_durable = is_consumer && plan.is_durable && !plan.nodes.is_queue;
        let node = Terminus {
            address: Some(&address),
            durable: if is_durable { UNSETTLED_STATE } else { 0 },
            expiry_policy: is_durable.then_some("never"),
            capabilities: match plan.has_capabilities {
                true => Symbols::One(plan.nodes.capability()),
                false => Symbols::None,
            },
            ..Terminus::default()
        };
        let (source, target) = match is_consumer {
            true => (node, Terminus::default()),
            false => (Terminus::default(), node),
        };
        let is_settled = if is_consumer { plan.consuming.is_settled } else { plan.is_settled };
        let attach = Attach {
            name,
            handle: HANDLE,
            role: if is_consumer { codec::Role::Receiver } else { codec::Role::Sender },
            snd_settle_mode: u8::from(is_settled),
            rcv_settle_mode: 0,
            source: Some(source),
            target: Some(target),
            initial_delivery_count: (!is_consumer).then_some(0),
            max_message_size: is_consumer.then_some(MESSAGE_BYTES_MAX),
        };
        Performative::Attach(attach).put(CHANNEL, out);
    }

    /// Detaches the link for good: what was made for it is deleted.
    pub(super) fn put_detach(&mut self, out: &mut Outbox) {
        if !self.plan.has_link {
            return;
        }
        self.flow().receiving.settle(out);
        let detach = Detach { handle: HANDLE, closed: true, error: None };
        Performative::Detach(detach).put(CHANNEL, out.buffer());
    }

    /// Takes a performative before the link is ready.
    pub(super) fn take_setup(
        &mut self,
        performative: &Performative<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        match (self.stage, performative) {
            (Stage::Open, Performative::Open(open)) => {
                self.opened(open, emit);
                self.stage = Stage::Begin;
            }
            (Stage::Begin, Performative::Begin(begin)) => {
                self.flow().session.began(begin.next_outgoing_id, begin.incoming_window);
                self.stage = Stage::Attach;
                if !self.plan.has_link {
                    self.ready(emit);
                }
            }
            (Stage::Attach, Performative::Attach(attach)) => self.attached(attach, out, emit)?,
            // A server may say what its session takes before it attaches.
            (Stage::Attach | Stage::Credit, Performative::Flow(own)) => {
                let flow = self.flow();
                flow.session.heard(own);
                if own.handle == Some(HANDLE) && self.seat.role == Role::Producer {
                    let flow = self.flow();
                    flow.sending.heard(own, &flow.session, out);
                    self.check_credit(emit);
                }
            }
            _ => return self.ended(performative),
        }
        Ok(())
    }

    fn opened(&mut self, open: &Open<'_>, emit: Emit<'_>) {
        self.frame_max = open.max_frame_size.clamp(codec::FRAME_MIN, FRAME_MAX);
        let agreed = self.frame_max.min(self.plan.frame_max);
        emit(Signal::Granted("max_frame_size", agreed.into()));
        if let Some(idle_ms) = open.idle_time_out_ms.filter(|idle_ms| *idle_ms > 0) {
            emit(Signal::Granted("idle_time_out_ms", idle_ms.into()));
            self.beat = Nanos(u64::from(idle_ms) * 500_000);
        }
    }

    fn attached(
        &mut self,
        attach: &Attach<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        if attach.handle != HANDLE {
            return Err(not_now("a link that was not asked for"));
        }
        let is_consumer = self.seat.role == Role::Consumer;
        let node = if is_consumer { &attach.source } else { &attach.target };
        if node.is_none() {
            // The server refuses the link: its `detach` says why (part 2, section 2.6.3).
            return Ok(());
        }
        self.stage = Stage::Credit;
        if !is_consumer {
            self.check_credit(emit);
            return Ok(());
        }
        let asked_settled = self.plan.consuming.is_settled;
        if asked_settled && attach.snd_settle_mode == 0 {
            let reason = "it sends deliveries unsettled only; type amqp1.deliveries=unsettled";
            return Err(Fault::Refused { code: 0, reason: reason.to_owned() });
        }
        let address = self.plan.nodes.address(self.seat.index);
        let (credit, asks_for) = (self.plan.consuming.credit, self.plan.consuming.asks_for);
        let flow = self.flow();
        flow.receiving.address = address.into();
        flow.receiving.attached(attach.initial_delivery_count.unwrap_or(0));
        if asks_for.is_none() {
            flow.receiving.renew(credit, &flow.session, out);
        }
        self.ready(emit);
        Ok(())
    }

    /// A producer is ready when it may send its first message.
    fn check_credit(&mut self, emit: Emit<'_>) {
        if self.stage != Stage::Credit || !self.flow().sending.has_credit() {
            return;
        }
        let credit = self.flow().sending.credit();
        emit(Signal::Granted("link_credit", credit.into()));
        self.ready(emit);
    }

    fn ready(&mut self, emit: Emit<'_>) {
        self.stage = Stage::Ready;
        emit(Signal::Ready);
    }
}

/// `terminus-durability` of a subscription that survives (part 3, section 3.5.5).
const UNSETTLED_STATE: u32 = 2;

/// Frames are not made larger, whatever the server takes.
const FRAME_MAX: u32 = 1 << 24;
