//! The start of a session: protocol header, credentials, limits, channel, and then what the client
//! declares. Every synchronous method waits for its answer, as in the common libraries.

use weigh_model::connection::{Emit, Fault, Outbox, Signal};
use weigh_model::protocol::Role;

use super::super::codec::{
    FRAME_MIN, Long, Method, PROTOCOL_HEADER, Short, bits, code, method_name,
};
use super::super::plan::{CHANNEL, Manner, NO_ARGUMENTS, Tuning, client_properties};
use super::{Client, Flow, State, Step};

impl Client {
    /// Checks the first bytes of the server; false if there are too few.
    pub(super) fn check_greeting(&self, input: &[u8]) -> Result<bool, Fault> {
        let beginning = &input[..input.len().min(PROTOCOL_HEADER.len())];
        if input.first() == Some(&METHOD_FRAME) {
            return Ok(true);
        }
        if let Some([b'A', b'M', b'Q', b'P', id, version @ ..]) = input.first_chunk::<8>() {
            // Section 4.2.2: a server that does not have the version names its own.
            let [a, b, c] = version;
            let of = if *id == 0 { String::new() } else { format!("protocol {id}, ") };
            return Err(Fault::OtherProtocol(format!(
                "it answers with AMQP {of}version {a}-{b}-{c}; Weighbridge speaks 0-9-1 here"
            )));
        }
        if b"AMQP".starts_with(&beginning[..beginning.len().min(4)]) && input.len() < 8 {
            return Ok(false);
        }
        Err(crate::requests::starts_otherwise(input))
    }

    /// Takes a method before the session stands.
    pub(super) fn greeted(
        &mut self,
        method: &Method<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        match (self.state, method) {
            (State::Header, Method::Start { major, minor, mechanisms, .. }) => {
                self.authenticate((*major, *minor), mechanisms.0, out)
            }
            (State::Tune, Method::Tune { channel_max, frame_max, heartbeat_s }) => {
                let (channel_max, frame_max) = (*channel_max, *frame_max);
                let announced = Tuning { frame_max, channel_max, heartbeat_s: *heartbeat_s };
                self.tune(announced, out, emit);
                Ok(())
            }
            (State::Tune, Method::Secure { .. }) => {
                let reason = "it asks for a challenge, which PLAIN does not have".to_owned();
                Err(Fault::Refused { code: code::ACCESS_REFUSED, reason })
            }
            (State::Open, Method::OpenOk { .. }) => {
                Method::ChannelOpen { reserved_1: Short("") }.put(CHANNEL, out.buffer());
                self.state = State::Channel;
                Ok(())
            }
            (State::Channel, Method::ChannelOpenOk { .. })
            | (State::Step(Step::Exchange), Method::ExchangeDeclareOk {})
            | (State::Step(Step::Queue), Method::QueueDeclareOk { .. })
            | (State::Step(Step::Bind), Method::QueueBindOk {})
            | (State::Step(Step::Qos), Method::QosOk {})
            | (State::Step(Step::Consume), Method::ConsumeOk { .. })
            | (State::Step(Step::Confirm), Method::ConfirmSelectOk {}) => {
                self.step_on(out, emit);
                Ok(())
            }
            _ => Err(Fault::Malformed(format!("it sends {} during set-up", method.name()))),
        }
    }

    fn authenticate(
        &mut self,
        version: (u8, u8),
        mechanisms: &[u8],
        out: &mut Outbox,
    ) -> Result<(), Fault> {
        if version != (0, 9) {
            let (major, minor) = version;
            let what = format!("it speaks AMQP {major}-{minor}; Weighbridge speaks 0-9-1");
            return Err(Fault::OtherProtocol(what));
        }
        if !mechanisms.split(|byte| *byte == b' ').any(|own| own == PLAIN.as_bytes()) {
            let offered = String::from_utf8_lossy(mechanisms);
            let reason = format!("it offers {offered}, and Weighbridge logs in by PLAIN");
            return Err(Fault::Refused { code: code::ACCESS_REFUSED, reason });
        }
        // RFC 4616: an empty identity, the user, the password.
        let response = format!("\0{}\0{}", self.plan.user, self.plan.password);
        let properties = client_properties();
        let start_ok = Method::StartOk {
            client_properties: properties.as_table(),
            mechanism: Short(PLAIN),
            response: Long(response.as_bytes()),
            locale: Short("en_US"),
        };
        start_ok.put(0, out.buffer());
        self.state = State::Tune;
        Ok(())
    }

    /// Agrees on limits: the smaller one of each, where 0 means no limit (section 4.2.7 for
    /// heartbeats, which either side may switch off).
    fn tune(&mut self, announced: Tuning, out: &mut Outbox, emit: Emit<'_>) {
        let own = self.plan.tuning;
        let Tuning { frame_max, channel_max, heartbeat_s } = announced;
        let least = |own: u32, other: u32| if other == 0 { own } else { own.min(other) };
        let channel_max = least(own.channel_max.into(), channel_max.into()) as u16;
        self.frame_max = least(own.frame_max, frame_max).max(FRAME_MIN);
        self.heartbeat_s = match own.heartbeat_s {
            0 => 0,
            asked => least(asked.into(), heartbeat_s.into()) as u16,
        };
        emit(Signal::Granted("frame_max", self.frame_max.into()));
        emit(Signal::Granted("channel_max", channel_max.into()));
        emit(Signal::Granted("heartbeat_s", self.heartbeat_s.into()));
        let (frame_max, heartbeat_s) = (self.frame_max, self.heartbeat_s);
        Method::TuneOk { channel_max, frame_max, heartbeat_s }.put(0, out.buffer());
        let virtual_host = Short(&self.plan.vhost);
        Method::Open { virtual_host, reserved_1: Short(""), reserved_2: 0 }.put(0, out.buffer());
        self.state = State::Open;
    }

    /// Takes the next step of set-up, or is ready.
    fn step_on(&mut self, out: &mut Outbox, emit: Emit<'_>) {
        let done = match self.state {
            State::Step(step) => STEPS.iter().position(|own| *own == step).map_or(0, |at| at + 1),
            _ => 0,
        };
        let next = STEPS[done..].iter().copied().find(|step| self.wants(*step));
        let Some(step) = next else { return self.ready(emit) };
        self.put_step(step, out);
        self.state = State::Step(step);
    }

    fn wants(&self, step: Step) -> bool {
        let (plan, seat) = (&self.plan, self.seat);
        let is_consumer = seat.role == Role::Consumer;
        let is_pushed = is_consumer && !matches!(plan.consuming.manner, Manner::Get(_));
        match step {
            Step::Exchange => plan.declares(seat) && plan.routing.is_own_exchange,
            Step::Queue => plan.declares(seat),
            Step::Bind => plan.declares(seat) && plan.routing.binding(seat).is_some(),
            // Without acknowledgements the limit has no meaning.
            Step::Qos => is_pushed && plan.consuming.is_acknowledged && plan.consuming.prefetch > 0,
            Step::Consume => is_pushed,
            Step::Confirm => !is_consumer && plan.confirms && plan.publishes,
        }
    }

    fn put_step(&self, step: Step, out: &mut Outbox) {
        let (plan, out) = (&self.plan, out.buffer());
        let queue = plan.routing.queue(self.seat);
        let (queue, exchange) = (Short(&queue), Short(&plan.routing.exchange));
        let durable = if plan.durable { bits::DURABLE } else { 0 };
        match step {
            Step::Exchange => {
                let kind = Short(plan.routing.kind.name());
                let (bits, arguments) = (durable, NO_ARGUMENTS);
                Method::ExchangeDeclare { reserved_1: 0, exchange, kind, bits, arguments }
                    .put(CHANNEL, out);
            }
            Step::Queue => {
                let (bits, arguments) = (durable, plan.queue_arguments.as_table());
                Method::QueueDeclare { reserved_1: 0, queue, bits, arguments }.put(CHANNEL, out);
            }
            Step::Bind => {
                let key = plan.routing.binding(self.seat).unwrap_or_default();
                let (routing_key, arguments) = (Short(&key), NO_ARGUMENTS);
                Method::QueueBind {
                    reserved_1: 0,
                    queue,
                    exchange,
                    routing_key,
                    bits: 0,
                    arguments,
                }
                .put(CHANNEL, out);
            }
            Step::Qos => {
                let prefetch_count = plan.consuming.prefetch;
                Method::Qos { prefetch_size: 0, prefetch_count, bits: 0 }.put(CHANNEL, out);
            }
            Step::Consume => {
                let bits = if plan.consuming.is_acknowledged { 0 } else { bits::NO_ACK };
                let (consumer_tag, arguments) = (Short(CONSUMER_TAG), NO_ARGUMENTS);
                Method::Consume { reserved_1: 0, queue, consumer_tag, bits, arguments }
                    .put(CHANNEL, out);
            }
            Step::Confirm => Method::ConfirmSelect { bits: 0 }.put(CHANNEL, out),
        }
    }

    fn ready(&mut self, emit: Emit<'_>) {
        self.state = State::Ready;
        if self.plan.publishes {
            let mut flow = Flow::made();
            match self.seat.role {
                Role::Producer => flow.head = self.plan.message_head(self.seat),
                Role::Consumer => flow.queue = self.plan.routing.queue(self.seat).into(),
            }
            self.flow = Some(flow);
        }
        emit(Signal::Ready);
    }

    /// The fault of a connection or channel that the server closed.
    pub(super) fn closed(&self, reply: (u16, &str), method: (u16, u16)) -> Fault {
        let (code, text) = reply;
        let text = if text.is_empty() { code::name(code) } else { text };
        let after = method_name(method.0, method.1);
        let after = after.map_or(String::new(), |name| format!(", after {name}"));
        match self.state {
            State::Ready | State::Leaving => Fault::Ended(format!("{text} ({code}{after})")),
            _ if code == code::CONNECTION_FORCED => Fault::Ended(format!("{text} ({code})")),
            _ => Fault::Refused { code, reason: format!("{text}{after}") },
        }
    }
}

/// The steps after the channel is open, in their order.
const STEPS: [Step; 6] =
    [Step::Exchange, Step::Queue, Step::Bind, Step::Qos, Step::Consume, Step::Confirm];

const PLAIN: &str = "PLAIN";
const METHOD_FRAME: u8 = 1;

/// Consumer tags are per channel, and a channel has one consumer.
const CONSUMER_TAG: &str = "weigh";
