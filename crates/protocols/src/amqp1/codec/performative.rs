//! Performatives (part 2, section 2.7): what a frame of AMQP begins with.

use super::composite::Fields;
use super::flaw::Flaw;
use super::frame::{Frame, FrameKind, begin_frame, end_frame};
use super::state::{Problem, State};
use super::terminus::Terminus;
use super::value::{Cursor, Value};
use super::writer::List;

/// A performative. Fields that neither end uses are read over and not written: locales,
/// capabilities and properties of connections, sessions and links, and maps of unsettled
/// deliveries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Performative<'a> {
    /// Negotiates the connection.
    Open(Open<'a>),
    /// Begins a session.
    Begin(Begin),
    /// Attaches a link.
    Attach(Attach<'a>),
    /// State of a session, and of a link.
    Flow(Flow),
    /// A message, or a part of one.
    Transfer(Transfer<'a>),
    /// State of deliveries.
    Disposition(Disposition<'a>),
    /// Detaches a link.
    Detach(Detach<'a>),
    /// Ends a session.
    End(Option<Problem<'a>>),
    /// Closes the connection.
    Close(Option<Problem<'a>>),
}

/// Which end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It sends messages.
    Sender,
    /// It receives messages.
    Receiver,
}

/// `open`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open<'a> {
    /// Name of the container.
    pub container_id: &'a str,
    /// Name of the host, which may choose a virtual one.
    pub hostname: Option<&'a str>,
    /// Largest frame that it takes, in bytes.
    pub max_frame_size: u32,
    /// Highest channel number.
    pub channel_max: u16,
    /// Time after which it misses the peer, in milliseconds.
    pub idle_time_out_ms: Option<u32>,
}

/// `begin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// The peer's channel, in the answer.
    pub remote_channel: Option<u16>,
    /// Number of the first transfer that it sends.
    pub next_outgoing_id: u32,
    /// Transfers that it takes.
    pub incoming_window: u32,
    /// Transfers that it may send.
    pub outgoing_window: u32,
    /// Highest handle.
    pub handle_max: u32,
}

/// `attach`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attach<'a> {
    /// Name of the link.
    pub name: &'a str,
    /// Number of the link.
    pub handle: u32,
    /// Which end attaches.
    pub role: Role,
    /// Settlement by the sender: 0 unsettled, 1 settled, 2 mixed.
    pub snd_settle_mode: u8,
    /// Settlement by the receiver: 0 at once, 1 after the sender.
    pub rcv_settle_mode: u8,
    /// Where messages are from.
    pub source: Option<Terminus<'a>>,
    /// Where messages go.
    pub target: Option<Terminus<'a>>,
    /// Delivery count of a sender.
    pub initial_delivery_count: Option<u32>,
    /// Largest message that it takes, in bytes; none and 0 mean no limit.
    pub max_message_size: Option<u64>,
}

/// `flow`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Number of the transfer that is due.
    pub next_incoming_id: Option<u32>,
    /// Transfers that it takes.
    pub incoming_window: u32,
    /// Number of the next transfer that it sends.
    pub next_outgoing_id: u32,
    /// Transfers that it may send.
    pub outgoing_window: u32,
    /// The link; none for the session alone.
    pub handle: Option<u32>,
    /// Deliveries so far.
    pub delivery_count: Option<u32>,
    /// Deliveries from that count on that the receiver takes.
    pub link_credit: Option<u32>,
    /// Messages that wait at the sender.
    pub available: Option<u32>,
    /// The sender uses up the credit at once.
    pub drain: bool,
    /// An answer is asked for.
    pub echo: bool,
}

/// `transfer`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transfer<'a> {
    /// The link.
    pub handle: u32,
    /// Number of the delivery; in its first transfer.
    pub delivery_id: Option<u32>,
    /// Tag of the delivery, at most 32 bytes; in its first transfer.
    pub delivery_tag: Option<&'a [u8]>,
    /// Format of the message; in its first transfer.
    pub message_format: Option<u32>,
    /// The sender has settled it.
    pub settled: bool,
    /// More transfers of this delivery follow.
    pub more: bool,
    /// It continues an earlier delivery.
    pub resume: bool,
    /// The delivery does not count.
    pub aborted: bool,
}

/// `disposition`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disposition<'a> {
    /// Which end says so.
    pub role: Role,
    /// The first delivery.
    pub first: u32,
    /// The last delivery; none if it is the first.
    pub last: Option<u32>,
    /// They are settled.
    pub settled: bool,
    /// Their state.
    pub state: Option<State<'a>>,
}

/// `detach`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detach<'a> {
    /// The link.
    pub handle: u32,
    /// The link is over.
    pub closed: bool,
    /// The reason for it.
    pub error: Option<Problem<'a>>,
}

impl<'a> Performative<'a> {
    /// Reads the performative at the beginning of a frame's body, and returns what follows it.
    ///
    /// # Errors
    /// A body that begins with none, or with a broken one.
    pub fn read(body: &'a [u8]) -> Result<(Performative<'a>, &'a [u8]), Flaw> {
        let mut cursor = Cursor::new(body);
        let Value::Described(described) = cursor.value()? else {
            return Err(Flaw::decode("a frame that does not begin with a performative"));
        };
        let code = described.code()?;
        let mut fields = Fields::of(described)?;
        let of = &mut fields;
        let performative = match code {
            0x10 => Performative::Open(Open::read(of)?),
            0x11 => Performative::Begin(Begin::read(of)?),
            0x12 => Performative::Attach(Attach::read(of)?),
            0x13 => Performative::Flow(Flow::read(of)?),
            0x14 => Performative::Transfer(Transfer::read(of)?),
            0x15 => Performative::Disposition(Disposition::read(of)?),
            0x16 => Performative::Detach(Detach {
                handle: of.uint()?.ok_or(MANDATORY)?,
                closed: of.boolean()?.unwrap_or(false),
                error: Problem::read(of)?,
            }),
            0x17 => Performative::End(Problem::read(of)?),
            0x18 => Performative::Close(Problem::read(of)?),
            _ => return Err(Flaw::decode("an unknown performative")),
        };
        fields.finish()?;
        Ok((performative, cursor.rest()))
    }

    /// Writes a frame with this performative and nothing after it.
    pub fn put(&self, channel: u16, out: &mut Vec<u8>) {
        let at = begin_frame(FrameKind::Amqp, channel, out);
        match self {
            Performative::Open(own) => own.put(out),
            Performative::Begin(own) => own.put(out),
            Performative::Attach(own) => own.put(out),
            Performative::Flow(own) => own.put(out),
            Performative::Transfer(own) => own.put(out),
            Performative::Disposition(own) => own.put(out),
            Performative::Detach(own) => {
                let mut list = List::begin(0x16, out);
                list.uint(own.handle, out);
                list.flag(own.closed, out);
                put_problem(own.error, list, out);
            }
            Performative::End(error) => put_problem(*error, List::begin(0x17, out), out),
            Performative::Close(error) => put_problem(*error, List::begin(0x18, out), out),
        }
        end_frame(at, out);
    }

    /// Its name in the specification.
    pub fn name(&self) -> &'static str {
        match self {
            Performative::Open(_) => "open",
            Performative::Begin(_) => "begin",
            Performative::Attach(_) => "attach",
            Performative::Flow(_) => "flow",
            Performative::Transfer(_) => "transfer",
            Performative::Disposition(_) => "disposition",
            Performative::Detach(_) => "detach",
            Performative::End(_) => "end",
            Performative::Close(_) => "close",
        }
    }
}

/// Name of what a frame begins with, by the descriptor of its type.
pub fn name(frame: &Frame<'_>) -> Option<&'static str> {
    let [0x00, 0x53, code, ..] = *frame.body else { return None };
    Some(match (frame.kind, code) {
        (FrameKind::Amqp, 0x10) => "open",
        (FrameKind::Amqp, 0x11) => "begin",
        (FrameKind::Amqp, 0x12) => "attach",
        (FrameKind::Amqp, 0x13) => "flow",
        (FrameKind::Amqp, 0x14) => "transfer",
        (FrameKind::Amqp, 0x15) => "disposition",
        (FrameKind::Amqp, 0x16) => "detach",
        (FrameKind::Amqp, 0x17) => "end",
        (FrameKind::Amqp, 0x18) => "close",
        (FrameKind::Sasl, 0x40) => "sasl-mechanisms",
        (FrameKind::Sasl, 0x41) => "sasl-init",
        (FrameKind::Sasl, 0x42) => "sasl-challenge",
        (FrameKind::Sasl, 0x43) => "sasl-response",
        (FrameKind::Sasl, 0x44) => "sasl-outcome",
        _ => return None,
    })
}

fn put_problem(error: Option<Problem<'_>>, mut list: List, out: &mut Vec<u8>) {
    if let Some(error) = error {
        list.value(out, |out| error.put(out));
    }
    list.end(out);
}

impl Role {
    fn read(fields: &mut Fields<'_>) -> Result<Role, Flaw> {
        Ok(match fields.boolean()?.ok_or(MANDATORY)? {
            true => Role::Receiver,
            false => Role::Sender,
        })
    }

    fn put(self, list: &mut List, out: &mut Vec<u8>) {
        list.boolean(self == Role::Receiver, out);
    }
}

impl<'a> Open<'a> {
    fn read(fields: &mut Fields<'a>) -> Result<Open<'a>, Flaw> {
        Ok(Open {
            container_id: fields.text()?.ok_or(MANDATORY)?,
            hostname: fields.text()?,
            max_frame_size: fields.uint()?.unwrap_or(u32::MAX),
            channel_max: fields.ushort()?.unwrap_or(u16::MAX),
            idle_time_out_ms: fields.uint()?,
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        let mut list = List::begin(0x10, out);
        list.text(self.container_id, out);
        list.optional_text(self.hostname, out);
        list.uint(self.max_frame_size, out);
        list.ushort(self.channel_max, out);
        list.optional_uint(self.idle_time_out_ms, out);
        list.end(out);
    }
}

impl Begin {
    fn read(fields: &mut Fields<'_>) -> Result<Begin, Flaw> {
        Ok(Begin {
            remote_channel: fields.ushort()?,
            next_outgoing_id: fields.uint()?.ok_or(MANDATORY)?,
            incoming_window: fields.uint()?.ok_or(MANDATORY)?,
            outgoing_window: fields.uint()?.ok_or(MANDATORY)?,
            handle_max: fields.uint()?.unwrap_or(u32::MAX),
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        let mut list = List::begin(0x11, out);
        match self.remote_channel {
            Some(channel) => list.ushort(channel, out),
            None => list.null(),
        }
        list.uint(self.next_outgoing_id, out);
        list.uint(self.incoming_window, out);
        list.uint(self.outgoing_window, out);
        list.uint(self.handle_max, out);
        list.end(out);
    }
}

impl<'a> Attach<'a> {
    fn read(fields: &mut Fields<'a>) -> Result<Attach<'a>, Flaw> {
        let attach = Attach {
            name: fields.text()?.ok_or(MANDATORY)?,
            handle: fields.uint()?.ok_or(MANDATORY)?,
            role: Role::read(fields)?,
            snd_settle_mode: fields.ubyte()?.unwrap_or(2),
            rcv_settle_mode: fields.ubyte()?.unwrap_or(0),
            source: fields.described()?.map(|own| Terminus::read(own, true)).transpose()?,
            target: fields.described()?.map(|own| Terminus::read(own, false)).transpose()?,
            initial_delivery_count: {
                fields.skip()?;
                fields.skip()?;
                fields.uint()?
            },
            max_message_size: fields.ulong()?,
        };
        match attach.snd_settle_mode > 2 || attach.rcv_settle_mode > 1 {
            true => Err(Flaw::decode("an unknown settle mode")),
            false => Ok(attach),
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        let mut list = List::begin(0x12, out);
        list.text(self.name, out);
        list.uint(self.handle, out);
        self.role.put(&mut list, out);
        list.ubyte(self.snd_settle_mode, out);
        list.ubyte(self.rcv_settle_mode, out);
        for (terminus, is_source) in [(&self.source, true), (&self.target, false)] {
            match terminus {
                Some(own) => list.value(out, |out| own.put(is_source, out)),
                None => list.null(),
            }
        }
        list.null();
        list.null();
        list.optional_uint(self.initial_delivery_count, out);
        match self.max_message_size {
            Some(size) => list.ulong(size, out),
            None => list.null(),
        }
        list.end(out);
    }
}

impl Flow {
    fn read(fields: &mut Fields<'_>) -> Result<Flow, Flaw> {
        Ok(Flow {
            next_incoming_id: fields.uint()?,
            incoming_window: fields.uint()?.ok_or(MANDATORY)?,
            next_outgoing_id: fields.uint()?.ok_or(MANDATORY)?,
            outgoing_window: fields.uint()?.ok_or(MANDATORY)?,
            handle: fields.uint()?,
            delivery_count: fields.uint()?,
            link_credit: fields.uint()?,
            available: fields.uint()?,
            drain: fields.boolean()?.unwrap_or(false),
            echo: fields.boolean()?.unwrap_or(false),
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        let mut list = List::begin(0x13, out);
        list.optional_uint(self.next_incoming_id, out);
        list.uint(self.incoming_window, out);
        list.uint(self.next_outgoing_id, out);
        list.uint(self.outgoing_window, out);
        list.optional_uint(self.handle, out);
        list.optional_uint(self.delivery_count, out);
        list.optional_uint(self.link_credit, out);
        list.optional_uint(self.available, out);
        list.flag(self.drain, out);
        list.flag(self.echo, out);
        list.end(out);
    }
}

impl<'a> Transfer<'a> {
    fn read(fields: &mut Fields<'a>) -> Result<Transfer<'a>, Flaw> {
        let mut transfer = Transfer {
            handle: fields.uint()?.ok_or(MANDATORY)?,
            delivery_id: fields.uint()?,
            delivery_tag: fields.binary()?,
            message_format: fields.uint()?,
            settled: fields.boolean()?.unwrap_or(false),
            more: fields.boolean()?.unwrap_or(false),
            ..Transfer::default()
        };
        // A settle mode and a state, which no sender here has.
        fields.ubyte()?;
        fields.described()?;
        transfer.resume = fields.boolean()?.unwrap_or(false);
        transfer.aborted = fields.boolean()?.unwrap_or(false);
        match transfer.delivery_tag.is_some_and(|tag| tag.len() > TAG_BYTES_MAX) {
            true => Err(Flaw::decode("a delivery tag of more than 32 bytes")),
            false => Ok(transfer),
        }
    }

    /// Writes it without a frame around it, since a message follows it there.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let mut list = List::begin(0x14, out);
        list.uint(self.handle, out);
        list.optional_uint(self.delivery_id, out);
        match self.delivery_tag {
            Some(tag) => list.binary(tag, out),
            None => list.null(),
        }
        list.optional_uint(self.message_format, out);
        list.flag(self.settled, out);
        list.flag(self.more, out);
        list.null();
        list.null();
        list.flag(self.resume, out);
        list.flag(self.aborted, out);
        list.end(out);
    }
}

impl<'a> Disposition<'a> {
    /// The last delivery.
    pub fn last(&self) -> u32 {
        self.last.unwrap_or(self.first)
    }

    fn read(fields: &mut Fields<'a>) -> Result<Disposition<'a>, Flaw> {
        Ok(Disposition {
            role: Role::read(fields)?,
            first: fields.uint()?.ok_or(MANDATORY)?,
            last: fields.uint()?,
            settled: fields.boolean()?.unwrap_or(false),
            state: fields.described()?.map(State::read).transpose()?,
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        let mut list = List::begin(0x15, out);
        self.role.put(&mut list, out);
        list.uint(self.first, out);
        list.optional_uint(self.last, out);
        list.flag(self.settled, out);
        match &self.state {
            Some(state) => list.value(out, |out| state.put(out)),
            None => list.null(),
        }
        list.end(out);
    }
}

const MANDATORY: Flaw = Flaw::decode("a mandatory field that is null");

/// Part 2, section 2.8.7.
const TAG_BYTES_MAX: usize = 32;
