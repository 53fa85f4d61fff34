//! The client's end: a call of the store, or of another service, for every message, or for several
//! of them.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use weigh_model::connection::Fault;
use weigh_model::endpoint::percent_decoded;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Trial;
use weigh_model::{Endpoint, Nanos, tls};

use super::codec::{
    self, APPEND, APPEND_BATCH, APPEND_EACH, Messages, PREFIX_BYTES, SERVICE, Value, code,
    read_fields,
};
use super::method::{CompiledMethod, DEADLINE, Streaming, check_pattern};
use super::template::{Filling, MessageTemplate};
use crate::fields;
use crate::http2_core::exchange::{Exchange, Prefix, Shape};
use crate::http2_core::fields::{AnswerFields, AnswerHead};
use crate::http2_core::request::{RequestPath, RequestTemplate};

/// The calls of a trial.
pub(super) struct Calls {
    /// A call with one message.
    alone: RequestTemplate,
    /// A call with several.
    together: RequestTemplate,
    streaming: Streaming,
    message: Message,
    streams: u32,
    deadline: Nanos,
    /// The service or the method, for errors.
    name: String,
}

/// The message of a call.
enum Message {
    /// A reading of the store.
    Reading,
    /// The same bytes each time, with their prefix.
    Same(Vec<u8>),
    /// Another message.
    Filled { template: MessageTemplate, bodies: usize, has_numbers: bool },
}

/// Fields of an answer that gRPC reads ("Responses").
#[derive(Clone, Debug, Default)]
pub(super) struct CallFields {
    content_type: Option<Box<[u8]>>,
    pub(super) status: Option<u16>,
    pub(super) message: Option<Box<[u8]>>,
}

/// State of an answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Status of HTTP, if it is an error of a proxy.
    http_error: Option<u16>,
    status: Option<u16>,
    message: Option<Box<[u8]>>,
    messages: Messages,
    /// Number of messages that came.
    count: u32,
    /// Number of them for which an operation was ended.
    used: u32,
    /// Readings that were kept, by the last message.
    appended: u64,
    /// Status of a message that cannot be read.
    flaw: Option<u16>,
}

impl Calls {
    /// Reads and checks those of a trial.
    ///
    /// # Errors
    /// What gRPC does not allow, and its key.
    pub(super) fn new(trial: &Trial) -> Result<Calls, Invalid> {
        let settings = &trial.settings;
        let compiled = CompiledMethod::of(settings)?;
        let own = compiled.as_ref().map_or(OF_STORE, CompiledMethod::streamings);
        let streaming = Streaming::asked(settings, own)?;
        let deadline = settings.duration(DEADLINE.key);
        if streaming == Streaming::Bidi && deadline > Nanos(0) {
            let problem = "a deadline is that of a call, and streaming = bidi has one for all \
                           messages";
            return Err(Invalid::new("grpc.deadline", problem, "leave it out"));
        }
        let template = |path: &str| template(trial, path, Some(deadline).filter(|own| own.0 > 0));
        let (alone, together, message, name) = match compiled {
            None => {
                if streaming == Streaming::Bidi {
                    check_pattern(streaming, trial.load.pattern)?;
                }
                let alone = match streaming {
                    Streaming::None | Streaming::Server => APPEND,
                    Streaming::Client => APPEND_BATCH,
                    Streaming::Bidi => APPEND_EACH,
                };
                let (alone, together) = (template(alone)?, template(APPEND_BATCH)?);
                (alone, together, Message::Reading, SERVICE.to_owned())
            }
            Some(own) => {
                check_pattern(streaming, trial.load.pattern)?;
                own.check_body(trial)?;
                let all = template(&format!("/{}", own.name))?;
                (all.clone(), all, Message::of(own.message), own.name)
            }
        };
        let streams = crate::requests::streams(trial);
        Ok(Calls { alone, together, streaming, message, streams, deadline, name })
    }
}

/// The head of the calls of a method.
///
/// # Errors
/// A target or metadata that gRPC does not allow.
pub(super) fn template(
    trial: &Trial,
    path: &str,
    deadline: Option<Nanos>,
) -> Result<RequestTemplate, Invalid> {
    let (scheme, authority) = origin(trial)?;
    let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let pseudo = [(":method", "POST"), (":scheme", scheme), (":authority", &authority)];
    let mut fields = [("te", "trailers"), ("content-type", CONTENT_TYPE)].map(pair).to_vec();
    fields.extend(deadline.map(|own| ("grpc-timeout".to_owned(), timeout(own))));
    fields.extend(metadata(trial)?);
    let path = RequestPath::Same(path.to_owned());
    Ok(RequestTemplate { pseudo: pseudo.map(pair).to_vec(), path, fields, has_length: false })
}

impl Message {
    fn of(template: MessageTemplate) -> Message {
        let (bodies, has_numbers) = (template.bodies(), template.has_numbers());
        if bodies > 0 || has_numbers {
            return Message::Filled { template, bodies, has_numbers };
        }
        let mut message = Vec::new();
        Filling::of(b"", false).put(&template.0, &mut message);
        Message::Same([&codec::prefix(message.len())[..], &message].concat())
    }
}

/// Prefix of a reading: that of the message, and the tag and the length of its field.
#[inline]
fn reading_prefix(body_bytes: usize) -> Prefix {
    let mut prefix = Prefix::default();
    // A field with its default is left out.
    if body_bytes == 0 {
        prefix.push(&codec::prefix(0));
        return prefix;
    }
    let mut left = body_bytes as u64;
    prefix.push(&codec::prefix(1 + codec::varint_bytes(left) + body_bytes));
    prefix.push(&[READING << 3 | 2]);
    while left >= 0x80 {
        prefix.push(&[left as u8 | 0x80]);
        left >>= 7;
    }
    prefix.push(&[left as u8]);
    prefix
}

/// A deadline as gRPC writes it ("Requests", Timeout): at most eight digits, and a unit.
fn timeout(deadline: Nanos) -> String {
    let units = [(1, 'n'), (1_000, 'u'), (1_000_000, 'm'), (1_000_000_000, 'S')];
    let fits = |(unit, _): &(u64, char)| deadline.0.div_ceil(*unit) <= TIMEOUT_MAX;
    let (unit, letter) = units.into_iter().find(fits).unwrap_or((60_000_000_000, 'M'));
    format!("{}{letter}", deadline.0.div_ceil(unit).min(TIMEOUT_MAX))
}

/// `:scheme` and `:authority` of every call.
pub(super) fn origin(trial: &Trial) -> Result<(&'static str, String), Invalid> {
    let endpoint = trial.endpoint.as_ref();
    let is_secure = tls::is_on(&trial.settings) || endpoint.is_some_and(|own| own.scheme == SECURE);
    let scheme = if is_secure { "https" } else { "http" };
    let authority = endpoint.map_or("localhost:0".to_owned(), Endpoint::authority);
    let path = endpoint.map_or("", |own| own.path.trim_matches('/'));
    if !path.is_empty() {
        let problem = format!("the URL has the path /{path}, but gRPC calls {SERVICE} by name");
        return Err(Invalid::new("target", problem, format!("type grpc://{authority}")));
    }
    if !authority.bytes().all(|byte| byte.is_ascii_graphic()) {
        let problem = format!("{authority:?} is not an address of a server");
        return Err(Invalid::new("target", problem, "type a host name or an address"));
    }
    Ok((scheme, authority))
}

/// Credentials in HTTP's form (RFC 7617), and further fields.
fn metadata(trial: &Trial) -> Result<Vec<(String, String)>, Invalid> {
    let basic = trial.endpoint.as_ref().and_then(crate::requests::basic_authorization);
    let further = fields::read(&trial.settings, "grpc", &OWN_FIELDS, basic.is_some())?;
    let mut metadata: Vec<(String, String)> =
        basic.into_iter().map(|text| ("authorization".to_owned(), text)).collect();
    for (name, value) in further {
        let lower = name.to_ascii_lowercase();
        let problem = match lower.as_str() {
            own if own.starts_with("grpc-") => "names that begin with grpc- are reserved for gRPC",
            own if own.ends_with("-bin") && !is_base64(&value) => {
                "a value of bytes (-bin) has to be written in base64"
            }
            _ if !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) => {
                "a field's value is not allowed in metadata"
            }
            _ => {
                metadata.push((lower, value));
                continue;
            }
        };
        let fix = "type another name, and visible characters; values of names with -bin in base64";
        return Err(Invalid::new("grpc.headers", problem, fix));
    }
    Ok(metadata)
}

/// Values of bytes are sent in base64, with or without padding ("Requests", Binary-Header).
fn is_base64(value: &str) -> bool {
    STANDARD.decode(value).is_ok() || STANDARD_NO_PAD.decode(value).is_ok()
}

impl AnswerFields for CallFields {
    fn take(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"content-type" => self.content_type = Some(value.into()),
            b"grpc-status" => {
                let text = std::str::from_utf8(value).unwrap_or_default();
                let number = text.parse().ok().filter(|number| *number <= code::MAX);
                self.status = Some(number.unwrap_or(code::UNKNOWN));
            }
            b"grpc-message" => self.message = Some(value.into()),
            _ => {}
        }
    }
}

impl Exchange for Calls {
    type Fields = CallFields;
    type Answer = Answer;

    fn template(&self, is_together: bool) -> &RequestTemplate {
        if is_together { &self.together } else { &self.alone }
    }

    fn streams(&self) -> u32 {
        self.streams
    }

    fn gathers(&self) -> bool {
        self.streaming != Streaming::Bidi
    }

    fn is_dialogue(&self) -> bool {
        self.streaming == Streaming::Bidi
    }

    fn deadline(&self) -> Option<(Nanos, u16)> {
        (self.deadline > Nanos(0)).then_some((self.deadline, code::DEADLINE_EXCEEDED))
    }

    #[inline]
    fn shape(&self, body: &[u8]) -> Shape {
        match &self.message {
            Message::Reading => {
                let prefix = reading_prefix(body.len());
                let bytes = prefix.bytes().len() + body.len();
                Shape { prefix, bytes, payload: body.len(), ..Shape::default() }
            }
            Message::Same(whole) => Shape { bytes: whole.len(), ..Shape::default() },
            Message::Filled { template, bodies, has_numbers } => {
                let filling = Filling::of(body, *has_numbers);
                let bytes = PREFIX_BYTES + filling.bytes(&template.0);
                let numbers = filling.numbers();
                Shape { bytes, payload: bodies * body.len(), numbers, ..Shape::default() }
            }
        }
    }

    #[inline]
    fn put(&self, body: &[u8], shape: &Shape, out: &mut Vec<u8>) {
        match &self.message {
            Message::Reading => {
                out.extend_from_slice(shape.prefix.bytes());
                out.extend_from_slice(body);
            }
            Message::Same(whole) => out.extend_from_slice(whole),
            Message::Filled { template, .. } => {
                out.extend_from_slice(&codec::prefix(shape.bytes - PREFIX_BYTES));
                Filling::with(body, shape.numbers).put(&template.0, out);
            }
        }
    }

    fn answered(&self, answer: &mut Answer) -> u32 {
        let new = answer.count - answer.used;
        answer.used = answer.count;
        new
    }

    fn flaw(&self, answer: &Answer) -> Option<u16> {
        answer.flaw
    }

    /// The status is 200, and the content type begins with `application/grpc`. A proxy in front of
    /// the server may answer for a server that is busy or away.
    fn head(&self, answer: &mut Answer, head: &AnswerHead<CallFields>) -> Result<(), Fault> {
        let kind = head.own.content_type.as_deref().unwrap_or_default();
        match head.status {
            200 if kind.starts_with(CONTENT_TYPE.as_bytes()) => Ok(()),
            status @ 500.. => {
                answer.http_error = Some(status);
                Ok(())
            }
            status => {
                let kind = match kind {
                    b"" => "without a content type".to_owned(),
                    _ => format!("of type {}", kind.escape_ascii()),
                };
                let saw = format!(
                    "its answer is not gRPC but HTTP status {status}, {kind}: check that it has \
                     {}",
                    self.name
                );
                Err(Fault::OtherProtocol(saw))
            }
        }
    }

    /// Messages of answers carry no payload.
    #[inline]
    fn data(&self, answer: &mut Answer, data: &[u8]) -> usize {
        if answer.flaw.is_some() || answer.http_error.is_some() {
            return 0;
        }
        let (count, appended) = (&mut answer.count, &mut answer.appended);
        let is_store = matches!(self.message, Message::Reading);
        let taken = answer.messages.take(data, ANSWER_BYTES_MAX, |message| {
            *count += 1;
            let is_valid = !is_store
                || read_fields(message, |number, value| {
                    if let (APPENDED, Value::Number(number)) = (number, value) {
                        *appended = number;
                    }
                });
            if is_valid { Ok(()) } else { Err(code::INTERNAL) }
        });
        answer.flaw = taken.err();
        0
    }

    #[inline]
    fn trailers(&self, answer: &mut Answer, fields: &CallFields) {
        answer.status = fields.status;
        if fields.status != Some(0) {
            answer.message.clone_from(&fields.message);
        }
    }

    #[inline]
    fn end(&self, answer: &Answer, messages: usize) -> Result<Result<(), u16>, Fault> {
        if let Some(code) = answer.http_error {
            return Ok(Err(code));
        }
        match answer.status {
            None => return Ok(Err(code::UNKNOWN)),
            Some(0) => {}
            Some(code::UNIMPLEMENTED) => {
                let said = answer.message.as_deref().unwrap_or_default();
                let said = percent_decoded(&String::from_utf8_lossy(said));
                let name = &self.name;
                let reason = match self.message {
                    Message::Reading => format!("it has no such method of {name}: \"{said}\""),
                    _ => format!("it does not have the method {name}: \"{said}\""),
                };
                return Err(Fault::Refused { code: code::UNIMPLEMENTED, reason });
            }
            Some(code) => return Ok(Err(code)),
        }
        if let Some(code) = answer.flaw {
            return Ok(Err(code));
        }
        if self.is_dialogue() && messages > 0 {
            return Ok(Err(code::DATA_LOSS));
        }
        let answers_once = matches!(self.streaming, Streaming::None | Streaming::Client);
        if !answer.messages.is_empty() || answers_once && answer.count != 1 {
            return Ok(Err(code::INTERNAL));
        }
        // A batch is confirmed if the server kept as many.
        let is_batch = self.streaming == Streaming::Client || messages > 1;
        let is_counted = matches!(self.message, Message::Reading) && is_batch;
        let is_whole = !is_counted || answer.appended == messages as u64;
        Ok(if is_whole { Ok(()) } else { Err(code::DATA_LOSS) })
    }
}

/// Fields of every call that gRPC sets itself (gRPC over HTTP/2, "Requests").
const OWN_FIELDS: [(&str, &str); 5] = [
    ("host", "it is taken from the target's URL"),
    ("content-type", "gRPC sets it"),
    ("content-length", "gRPC does not use it"),
    ("te", "gRPC sets it"),
    ("connection", "HTTP/2 does not use it"),
];

/// The scheme for TLS.
pub(super) const SECURE: &str = "grpcs";

const CONTENT_TYPE: &str = "application/grpc";

/// The largest number of a timeout: eight digits.
const TIMEOUT_MAX: u64 = 99_999_999;

/// Streams of the calls with which the store takes messages.
const OF_STORE: &[Streaming] = &[Streaming::None, Streaming::Client, Streaming::Bidi];

/// Number of the field `reading` of an `AppendRequest`.
const READING: u8 = 1;
/// Number of the field `appended` of an `AppendBatchReply`.
const APPENDED: u64 = 1;

/// Largest message of an answer: 4 MiB is what gRPC libraries take.
const ANSWER_BYTES_MAX: usize = 4 << 20;

const _: () = assert!(PREFIX_BYTES + 1 + 10 <= 16, "a prefix fits its place");
