//! Common settings of all clients of a trial, read once from its plan.

use weigh_model::protocol::{Invalid, Lifetime, Role, Seat};
use weigh_model::trial::Settings;
use weigh_model::{Load, Pattern, Trial};

use super::codec::{
    FrameKind, Method, PERSISTENT, Properties, Short, TRANSIENT, Table, TableWriter, bits,
    end_frame, put_frame_head,
};
use super::routing::Routing;
use super::settings::{self, check_short, milliseconds};

/// Everything about clients that does not differ between connections.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) tuning: Tuning,
    pub(super) routing: Routing,
    pub(super) confirms: bool,
    /// Messages that no queue takes come back.
    pub(super) is_mandatory: bool,
    pub(super) consuming: Consuming,
    pub(super) lifetime: Lifetime,
    pub(super) user: String,
    pub(super) password: String,
    pub(super) vhost: String,
    /// False where connections are only held.
    pub(super) publishes: bool,
    /// Queues, exchanges and bindings are declared.
    declares: bool,
    pub(super) durable: bool,
    /// Arguments of queues.
    pub(super) queue_arguments: TableWriter,
    /// Flags and values of the properties of every message.
    properties: Vec<u8>,
}

/// Limits that clients ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    pub(super) frame_max: u32,
    pub(super) channel_max: u16,
    pub(super) heartbeat_s: u16,
}

/// How messages are consumed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Consuming {
    pub(super) manner: Manner,
    pub(super) prefetch: u16,
    pub(super) is_acknowledged: bool,
    /// Deliveries per acknowledgement.
    pub(super) ack_every: u16,
}

/// How a consumer gets its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// The server delivers.
    Deliver,
    /// The server delivers, and messages are taken in pieces.
    Pieces,
    /// The consumer asks, for this number of messages at most.
    Get(u32),
}

/// The constant part of a message on the wire: `basic.publish` and the content header.
#[derive(Debug, Default)]
pub(super) struct MessageHead {
    pub(super) bytes: Vec<u8>,
    /// Place of the body's size.
    pub(super) size_at: usize,
}

impl Plan {
    pub(super) fn read(trial: &Trial) -> Result<Plan, Invalid> {
        let (settings, load) = (&trial.settings, &trial.load);
        check(settings, load)?;
        let credentials = trial.endpoint.as_ref().and_then(|endpoint| endpoint.credentials.clone());
        let (user, password) = match credentials {
            Some(own) => (own.user, own.password),
            None => (GUEST.to_owned(), GUEST.to_owned()),
        };
        let confirms = settings.flag("confirms");
        Ok(Plan {
            tuning: Tuning {
                frame_max: settings.integer("frame_max") as u32,
                channel_max: settings.integer("channel_max") as u16,
                heartbeat_s: settings::seconds(settings, "heartbeat")?,
            },
            routing: Routing::read(trial)?,
            confirms,
            is_mandatory: confirms && settings.flag("mandatory"),
            consuming: Consuming {
                manner: match load.pattern {
                    Pattern::Poll => Manner::Get(load.polling().map_or(1, |polling| polling.limit)),
                    Pattern::Transfer => Manner::Pieces,
                    _ => Manner::Deliver,
                },
                prefetch: settings.integer("prefetch") as u16,
                is_acknowledged: settings.text("acks") != "auto",
                ack_every: settings.integer("ack_every").max(1) as u16,
            },
            lifetime: Lifetime::of(load.pattern),
            user,
            password,
            vhost: vhost(trial)?,
            publishes: load.pattern != Pattern::Hold,
            declares: settings.flag("declare") && load.pattern != Pattern::Hold,
            durable: settings.flag("durable"),
            queue_arguments: queue_arguments(settings),
            properties: properties(settings)?,
        })
    }

    /// True if this seat makes the queue and its binding: consumers do, and producers where nothing
    /// consumes.
    pub(super) fn declares(&self, seat: Seat) -> bool {
        self.declares && (seat.role == Role::Consumer || !self.routing.has_consumers())
    }

    /// True if this seat deletes its queue when it leaves at the end.
    pub(super) fn deletes(&self, seat: Seat) -> bool {
        let is_first = seat.index == 0 && self.lifetime == Lifetime::Kept;
        self.declares(seat) && (self.routing.has_own_queue(seat) || is_first)
    }

    /// The bytes before the body of every message of a producer.
    pub(super) fn message_head(&self, seat: Seat) -> MessageHead {
        let (mut bytes, key) = (Vec::new(), self.routing.key(seat.index));
        let publish = Method::Publish {
            reserved_1: 0,
            exchange: Short(&self.routing.exchange),
            routing_key: Short(&key),
            bits: if self.is_mandatory { bits::MANDATORY } else { 0 },
        };
        publish.put(CHANNEL, &mut bytes);
        let at = put_frame_head(FrameKind::Header, CHANNEL, &mut bytes);
        bytes.extend_from_slice(&[0, BASIC, 0, 0]);
        let size_at = bytes.len();
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&self.properties);
        end_frame(at, &mut bytes);
        MessageHead { bytes, size_at }
    }
}

/// What cannot work.
fn check(settings: &Settings, load: &Load) -> Result<(), Invalid> {
    let wrong = |key: &str, problem: String, fix: &str| {
        Err(Invalid::new(format!("amqp.{key}"), problem, fix.to_owned()))
    };
    let (every, prefetch) = (settings.integer("ack_every"), settings.integer("prefetch"));
    if settings.text("acks") == "auto" && every > 1 {
        let problem = "automatic acknowledgement has no basic.ack".to_owned();
        return wrong("ack_every", problem, "leave it at 1, or type amqp.acks=manual");
    }
    if settings.text("acks") != "auto" && prefetch > 0 && every > prefetch {
        let problem = format!("{every} deliveries never come while prefetch allows {prefetch}");
        return wrong("ack_every", problem, "make it at most amqp.prefetch");
    }
    if settings.text("queue_type") == "quorum" && !settings.flag("durable") {
        let problem = "quorum queues are durable".to_owned();
        return wrong("durable", problem, "leave it at true, or type amqp.queue_type=classic");
    }
    if load.pattern == Pattern::Poll && load.polling().is_some_and(|polling| polling.wait.0 > 0) {
        return Err(Invalid::new(
            "load.poll.wait",
            "basic.get does not wait for a message",
            "leave it out, or type --pattern deliver",
        ));
    }
    let expires = settings.duration("queue_expires");
    let is_unused = !load.delivers() && load.pattern != Pattern::Hold;
    if let Some(duration) = load.duration
        && (is_unused && settings.flag("declare"))
        && (expires.0 > 0 && duration + load.warmup >= expires)
    {
        let problem = format!("the queue is deleted after {expires} without a consumer");
        return wrong("queue_expires", problem, "make it longer than the load");
    }
    Ok(())
}

/// The virtual host: the path of the URL (amqp://HOST/VHOST), or the setting.
fn vhost(trial: &Trial) -> Result<String, Invalid> {
    let path = trial.endpoint.as_ref().map_or("", |endpoint| endpoint.path.as_str());
    let named = vhost_of(path).ok_or_else(|| {
        let problem = format!("{path:?} is not percent-encoded UTF-8");
        Invalid::new("the path of the URL", problem, "type amqp://HOST/%2F for the vhost /")
    })?;
    let vhost = match &*named {
        "" => trial.settings.text("vhost").to_owned(),
        _ => named,
    };
    check_short("amqp.vhost", &vhost)?;
    Ok(vhost)
}

/// The virtual host that the path of a URL names, empty if it names none; `None` if it is not
/// percent-encoded UTF-8.
pub fn vhost_of(path: &str) -> Option<String> {
    unescaped(path.split('?').next().unwrap_or_default().trim_start_matches('/'))
}

/// Percent-encoded text (RFC 3986, section 2.1).
fn unescaped(text: &str) -> Option<String> {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            out.push(*first);
            rest = after;
        }
    }
    String::from_utf8(out).ok()
}

fn queue_arguments(settings: &Settings) -> TableWriter {
    let mut table = TableWriter::default();
    table.text("x-queue-type", settings.text("queue_type"));
    let expires = settings.duration("queue_expires");
    if expires.0 > 0 {
        table.number("x-expires", milliseconds(expires));
    }
    let max_length = settings.integer("max_length");
    if max_length > 0 {
        table.number("x-max-length", max_length as i64);
        table.text("x-overflow", settings.text("overflow"));
    }
    table
}

fn properties(settings: &Settings) -> Result<Vec<u8>, Invalid> {
    let content_type = settings.text("content_type");
    check_short("amqp.content_type", content_type)?;
    let is_transient = settings.text("delivery_mode") == "transient";
    let properties = Properties {
        content_type: (!content_type.is_empty()).then_some(Short(content_type)),
        delivery_mode: Some(if is_transient { TRANSIENT } else { PERSISTENT }),
        ..Properties::default()
    };
    let mut raw = Vec::new();
    properties.put(&mut raw);
    Ok(raw)
}

/// What the client says about itself; without these capabilities the server would close the socket
/// on a wrong password, and would not say that it blocks.
pub fn client_properties() -> TableWriter {
    let mut capabilities = TableWriter::default();
    for name in [
        "publisher_confirms",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "authentication_failure_close",
    ] {
        capabilities.flag(name, true);
    }
    let mut table = TableWriter::default();
    table.text("product", "weigh").text("version", env!("CARGO_PKG_VERSION"));
    table.table("capabilities", capabilities.as_table());
    table
}

/// The table without entries, where a method has arguments that clients do not use.
pub(super) const NO_ARGUMENTS: Table<'static> = Table::EMPTY;

/// The one channel of every connection.
pub(super) const CHANNEL: u16 = 1;

/// User and password of clients without credentials, as in every AMQP library.
const GUEST: &str = "guest";

const BASIC: u8 = 60;
