//! A client of AMQP 0-9-1 that asks one thing after the other, on one channel.
//!
//! It speaks by the product's codec, but is not the product's client: that one hides what is asked
//! for here, such as limits before they are agreed on, and methods that no load needs.

use weigh_protocols::amqp::codec::{
    Frame, FrameKind, Header, Long, Method, PROTOCOL_HEADER, Properties, Short, Table, Value, code,
    method_name, put_body, read_frame,
};
use weigh_protocols::amqp::{client_properties, vhost_of};

use crate::exchange::Exchange;
use crate::reach::{Reach, Trouble};

/// What a broker says before a channel is open.
#[derive(Clone, Debug, Default)]
pub(super) struct Greeting {
    pub(super) product: String,
    pub(super) capabilities: String,
    pub(super) mechanisms: String,
    /// 0 stands for no limit.
    pub(super) frame_max: u32,
    /// 0 stands for no limit.
    pub(super) channel_max: u16,
    pub(super) heartbeat_s: u16,
}

/// A connection with one channel.
pub(super) struct Session {
    line: Exchange,
    pub(super) greeting: Greeting,
    frame_max: u32,
}

/// What comes on the channel.
pub(super) enum Event<'a> {
    Method(Method<'a>),
    /// A method that the codec does not have: its class and its number.
    Other(u16, u16),
    Header(Header<'a>),
    Body(&'a [u8]),
}

/// A message that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Got {
    pub(super) tag: u64,
    pub(super) is_redelivered: bool,
    /// The value of [`HEADER`] among its headers.
    pub(super) header: Option<String>,
    pub(super) body: Vec<u8>,
}

/// A message to be published.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Draft<'a> {
    pub(super) queue: &'a str,
    pub(super) bits: u8,
    pub(super) headers: Option<Table<'a>>,
    pub(super) body: &'a [u8],
}

/// How the broker answered a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirmed {
    Acked,
    Nacked,
    /// It came back, and was confirmed then.
    Returned(u16),
}

impl Session {
    /// Opens a connection, and a channel on it.
    pub(super) fn open(reach: &Reach) -> Result<Session, Trouble> {
        let mut line = Exchange::open(reach)?;
        line.send(&PROTOCOL_HEADER)?;
        let mut session = Session { line, greeting: Greeting::default(), frame_max: FRAME_MAX };
        session.start()?;
        session.log_in(reach)?;
        let named = vhost_of(&reach.endpoint.path);
        let vhost = named.filter(|own| !own.is_empty()).unwrap_or_else(|| "/".to_owned());
        let open =
            Method::Open { virtual_host: Short(&vhost), reserved_1: Short(""), reserved_2: 0 };
        session.ask(0, &open, |own| matches!(own, Method::OpenOk { .. }).then_some(()))?;
        session.open_channel()?;
        Ok(session)
    }

    /// Opens the channel, at first or after it was closed.
    pub(super) fn open_channel(&mut self) -> Result<(), Trouble> {
        let open = Method::ChannelOpen { reserved_1: Short("") };
        self.ask(CHANNEL, &open, |own| matches!(own, Method::ChannelOpenOk { .. }).then_some(()))
    }

    fn start(&mut self) -> Result<(), Trouble> {
        self.greeting = self.line.hear(|input| {
            if let Some([b'A', b'M', b'Q', b'P', id, version @ ..]) = input.first_chunk::<8>() {
                let [a, b, c] = version;
                let text = format!("it answers with AMQP {a}-{b}-{c} (protocol {id})");
                return Err(Trouble::Foreign(text));
            }
            if !input.is_empty() && b"AMQP".starts_with(&input[..input.len().min(4)]) {
                return Ok(None);
            }
            let Some((frame, bytes)) = read_frame(input, FRAME_MAX).map_err(|_| odd(input))? else {
                return Ok(None);
            };
            match Method::read(frame.payload) {
                Ok(Method::Start { server_properties, mechanisms, .. }) => {
                    Ok(Some((greeting(&server_properties, mechanisms.0), bytes)))
                }
                _ => Err(odd(input)),
            }
        })?;
        Ok(())
    }

    /// SASL PLAIN (RFC 4616), as the user of the URL or as guest.
    fn log_in(&mut self, reach: &Reach) -> Result<(), Trouble> {
        let own = reach.endpoint.credentials.as_ref();
        let (user, password) = own.map_or(GUEST, |own| (&*own.user, &*own.password));
        if !self.greeting.mechanisms.split(' ').any(|own| own == PLAIN) {
            let offered = &self.greeting.mechanisms;
            return Err(Trouble::Refused(format!("it offers {offered}, and not {PLAIN}")));
        }
        let (response, properties) = (format!("\0{user}\0{password}"), client_properties());
        let start_ok = Method::StartOk {
            client_properties: properties.as_table(),
            mechanism: Short(PLAIN),
            response: Long(response.as_bytes()),
            locale: Short("en_US"),
        };
        let tuned = self.ask(0, &start_ok, |own| match *own {
            Method::Tune { channel_max, frame_max, heartbeat_s } => {
                Some((channel_max, frame_max, heartbeat_s))
            }
            _ => None,
        });
        let (channel_max, frame_max, heartbeat_s) = tuned.map_err(|trouble| match trouble {
            // Section 4.2.2 lets a broker close without a word; not all name the reason.
            Trouble::Closed(text) => Trouble::Refused(format!("{text} after the credentials")),
            other => other,
        })?;
        self.greeting.channel_max = channel_max;
        self.greeting.frame_max = frame_max;
        self.greeting.heartbeat_s = heartbeat_s;
        self.frame_max = if frame_max == 0 { FRAME_MAX } else { frame_max.min(FRAME_MAX) };
        // No heartbeats: every wait is short.
        let tune_ok = Method::TuneOk { channel_max, frame_max: self.frame_max, heartbeat_s: 0 };
        self.say(0, &tune_ok)
    }

    pub(super) fn say(&mut self, channel: u16, method: &Method<'_>) -> Result<(), Trouble> {
        let mut bytes = Vec::new();
        method.put(channel, &mut bytes);
        self.line.send(&bytes)
    }

    /// Sends a method, and waits for the one that `take` knows.
    pub(super) fn ask<T>(
        &mut self,
        channel: u16,
        method: &Method<'_>,
        mut take: impl FnMut(&Method<'_>) -> Option<T>,
    ) -> Result<T, Trouble> {
        self.say(channel, method)?;
        self.event(|event| match event {
            Event::Method(own) => take(own),
            _ => None,
        })
    }

    /// Waits for the event that `take` knows; others are passed over. A close is a refusal.
    pub(super) fn event<T>(
        &mut self,
        mut take: impl FnMut(&Event<'_>) -> Option<T>,
    ) -> Result<T, Trouble> {
        let frame_max = self.frame_max;
        loop {
            let came = self.line.hear(|input| {
                let read = read_frame(input, frame_max).map_err(|flaw| foreign(&flaw))?;
                let Some((frame, bytes)) = read else { return Ok(None) };
                let event = read_event(&frame)?;
                let found = event.as_ref().and_then(&mut take);
                if let (None, Some(Event::Method(own))) = (&found, &event) {
                    passed_over(own)?;
                }
                Ok(Some((found, bytes)))
            })?;
            if let Some(found) = came {
                return Ok(found);
            }
        }
    }

    /// Declares a queue; returns how many messages it has.
    pub(super) fn declare(
        &mut self,
        queue: &str,
        bits: u8,
        arguments: Table<'_>,
    ) -> Result<u32, Trouble> {
        let declare = Method::QueueDeclare { reserved_1: 0, queue: Short(queue), bits, arguments };
        self.ask(CHANNEL, &declare, |own| match *own {
            Method::QueueDeclareOk { message_count, .. } => Some(message_count),
            _ => None,
        })
    }

    pub(super) fn delete(&mut self, queue: &str) -> Result<(), Trouble> {
        let delete = Method::QueueDelete { reserved_1: 0, queue: Short(queue), bits: 0 };
        self.ask(CHANNEL, &delete, |own| matches!(own, Method::QueueDeleteOk { .. }).then_some(()))
    }

    /// Asks for a confirmation of each message from now on.
    pub(super) fn confirm(&mut self) -> Result<(), Trouble> {
        let select = Method::ConfirmSelect { bits: 0 };
        let is_it = |own: &Method<'_>| matches!(own, Method::ConfirmSelectOk {}).then_some(());
        self.ask(CHANNEL, &select, is_it)
    }

    /// Publishes a message through the default exchange, to the queue of its name.
    pub(super) fn publish(&mut self, draft: Draft<'_>) -> Result<(), Trouble> {
        let Draft { queue, bits, headers, body } = draft;
        let (mut bytes, mut raw) = (Vec::with_capacity(body.len() + 256), Vec::new());
        Properties { headers, delivery_mode: Some(PERSISTENT), ..Properties::default() }
            .put(&mut raw);
        let (exchange, routing_key) = (Short(""), Short(queue));
        Method::Publish { reserved_1: 0, exchange, routing_key, bits }.put(CHANNEL, &mut bytes);
        Header { body_bytes: body.len() as u64, raw: &raw }.put(CHANNEL, &mut bytes);
        put_body(body, CHANNEL, self.frame_max, &mut bytes);
        self.line.send(&bytes)
    }

    /// Publishes a message, and waits for its confirmation; [`Session::confirm`] came before.
    pub(super) fn confirmed(&mut self, draft: Draft<'_>) -> Result<Confirmed, Trouble> {
        let sent = self.publish(draft);
        let mut returned = None;
        let confirmed = self.event(|event| match event {
            Event::Method(Method::Return { reply_code, .. }) => {
                returned = Some(*reply_code);
                None
            }
            Event::Method(Method::Ack { .. }) => {
                Some(returned.map_or(Confirmed::Acked, Confirmed::Returned))
            }
            Event::Method(Method::Nack { .. }) => Some(Confirmed::Nacked),
            _ => None,
        });
        // A broker that refuses something large may close before it has read all of it.
        match (sent, confirmed) {
            (_, Ok(confirmed)) => Ok(confirmed),
            (Err(_), Err(trouble @ Trouble::Refused(_))) => Err(trouble),
            (Err(trouble), Err(_)) | (Ok(()), Err(trouble)) => Err(trouble),
        }
    }

    /// Asks for one message (`basic.get`), which is not acknowledged; `None` if there is none.
    pub(super) fn get(&mut self, queue: &str) -> Result<Option<Got>, Trouble> {
        let get = Method::Get { reserved_1: 0, queue: Short(queue), bits: 0 };
        let got = self.ask(CHANNEL, &get, |own| match *own {
            Method::GetOk { delivery_tag, bits, .. } => Some(Some(Got {
                tag: delivery_tag,
                is_redelivered: bits & 1 != 0,
                ..Got::default()
            })),
            Method::GetEmpty { .. } => Some(None),
            _ => None,
        })?;
        let Some(mut got) = got else { return Ok(None) };
        let (header, bytes) = self.event(|event| match event {
            Event::Header(own) => Some((header_of(own), own.body_bytes)),
            _ => None,
        })?;
        got.header = header;
        while (got.body.len() as u64) < bytes {
            let part = self.event(|event| match event {
                Event::Body(part) => Some(part.to_vec()),
                _ => None,
            })?;
            got.body.extend_from_slice(&part);
        }
        Ok(Some(got))
    }

    /// Waits until the broker has closed the connection in order.
    pub(super) fn leave(mut self) {
        let reply_text = Short("");
        let close =
            Method::ConnectionClose { reply_code: 200, reply_text, class_id: 0, method_id: 0 };
        let _ =
            self.ask(0, &close, |own| matches!(own, Method::ConnectionCloseOk {}).then_some(()));
    }
}

fn greeting(properties: &Table<'_>, mechanisms: &[u8]) -> Greeting {
    let words = ["product", "version"].into_iter().filter_map(|name| properties.text(name));
    let names: Vec<&str> = match properties.get("capabilities") {
        Some(Value::Table(inner)) => {
            let set = inner.entries().filter(|(_, value)| *value == Value::Flag(true));
            set.map(|(name, _)| name).collect()
        }
        _ => Vec::new(),
    };
    Greeting {
        product: words.collect::<Vec<_>>().join(" "),
        capabilities: names.join(", "),
        mechanisms: String::from_utf8_lossy(mechanisms).into_owned(),
        ..Greeting::default()
    }
}

/// What a frame holds; `None` for a heartbeat.
fn read_event<'a>(frame: &Frame<'a>) -> Result<Option<Event<'a>>, Trouble> {
    Ok(Some(match frame.kind {
        FrameKind::Heartbeat => return Ok(None),
        FrameKind::Body => Event::Body(frame.payload),
        FrameKind::Header => {
            Event::Header(Header::read(frame.payload).map_err(|flaw| foreign(&flaw))?)
        }
        FrameKind::Method => match Method::read(frame.payload) {
            Ok(own) => Event::Method(own),
            Err(flaw) => match frame.payload.first_chunk::<4>() {
                Some(&[a, b, c, d]) if flaw.code == code::NOT_IMPLEMENTED => {
                    Event::Other(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
                }
                _ => return Err(foreign(&flaw)),
            },
        },
    }))
}

/// A method that is not waited for; one that ends something is a refusal.
fn passed_over(own: &Method<'_>) -> Result<(), Trouble> {
    let (reply_code, text, ids) = match *own {
        Method::ChannelClose { reply_code, reply_text, class_id, method_id }
        | Method::ConnectionClose { reply_code, reply_text, class_id, method_id } => {
            (reply_code, reply_text.0, (class_id, method_id))
        }
        _ => return Ok(()),
    };
    let text = if text.is_empty() { code::name(reply_code) } else { text };
    let after = method_name(ids.0, ids.1);
    let after = after.map_or(String::new(), |name| format!(" after {name}"));
    Err(Trouble::Refused(format!("{text} ({reply_code}){after}")))
}

fn header_of(header: &Header<'_>) -> Option<String> {
    let headers = Properties::read(header.raw).ok()?.headers?;
    headers.text(HEADER).map(str::to_owned)
}

fn odd(input: &[u8]) -> Trouble {
    let start = input[..input.len().min(24)].escape_ascii();
    Trouble::Foreign(format!("it begins with \"{start}\""))
}

fn foreign(flaw: &impl std::fmt::Display) -> Trouble {
    Trouble::Foreign(flaw.to_string())
}

/// The only channel of a connection.
pub(super) const CHANNEL: u16 = 1;

/// Name of a header that a message is given.
pub(super) const HEADER: &str = "x-weigh-probe";

const PLAIN: &str = "PLAIN";

/// What brokers of AMQP have as their first user.
const GUEST: (&str, &str) = ("guest", "guest");

const PERSISTENT: u8 = 2;

/// Largest frame that is agreed on, bytes.
const FRAME_MAX: u32 = 131_072;
