//! The client's end: a call of the store for every message, or for several of them.

use weigh_model::connection::Fault;
use weigh_model::endpoint::percent_decoded;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Trial;
use weigh_model::{Endpoint, tls};

use super::codec::{
    self, APPEND, APPEND_BATCH, Messages, PREFIX_BYTES, SERVICE, Value, code, read_fields,
};
use crate::fields;
use crate::http2_core::exchange::{Exchange, Prefix};
use crate::http2_core::fields::{AnswerFields, AnswerHead};
use crate::http2_core::request::{RequestPath, RequestTemplate};

/// The calls of a trial.
pub(super) struct Calls {
    unary: RequestTemplate,
    batch: RequestTemplate,
    /// True if a message alone is a batch of one.
    is_stream: bool,
    streams: u32,
}

/// Fields of an answer that gRPC reads ("Responses").
#[derive(Clone, Debug, Default)]
pub(super) struct CallFields {
    content_type: Option<Box<[u8]>>,
    status: Option<u16>,
    message: Option<Box<[u8]>>,
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
        let (scheme, authority) = origin(trial)?;
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let pseudo =
            [(":method", "POST"), (":scheme", scheme), (":authority", &authority)].map(|own| {
                let (name, value) = own;
                pair(name, value)
            });
        let mut further = vec![pair("te", "trailers"), pair("content-type", CONTENT_TYPE)];
        further.extend(metadata(trial)?);
        let template = |path: &str| RequestTemplate {
            pseudo: pseudo.to_vec(),
            path: RequestPath::Same(path.to_owned()),
            fields: further.clone(),
            has_length: false,
        };
        Ok(Calls {
            unary: template(APPEND),
            batch: template(APPEND_BATCH),
            is_stream: settings.text("call") == "stream",
            streams: crate::requests::streams(trial),
        })
    }
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
            own if own.ends_with("-bin") => "a value of bytes (-bin) cannot be written as text",
            _ if !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) => {
                "a field's value is not allowed in metadata"
            }
            _ => {
                metadata.push((lower, value));
                continue;
            }
        };
        let fix = "type another name, and visible characters";
        return Err(Invalid::new("grpc.headers", problem, fix));
    }
    Ok(metadata)
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
        if is_together || self.is_stream { &self.batch } else { &self.unary }
    }

    fn streams(&self) -> u32 {
        self.streams
    }

    fn gathers(&self) -> bool {
        true
    }

    /// The prefix of the message, and the tag and the length of its field.
    #[inline]
    fn prefix(&self, body_bytes: usize) -> Option<Prefix> {
        let mut prefix = Prefix::default();
        // A field with its default is left out.
        if body_bytes == 0 {
            prefix.push(&codec::prefix(0));
            return Some(prefix);
        }
        let mut left = body_bytes as u64;
        prefix.push(&codec::prefix(1 + codec::varint_bytes(left) + body_bytes));
        prefix.push(&[READING << 3 | 2]);
        while left >= 0x80 {
            prefix.push(&[left as u8 | 0x80]);
            left >>= 7;
        }
        prefix.push(&[left as u8]);
        Some(prefix)
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
                     {SERVICE}"
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
        let taken = answer.messages.take(data, ANSWER_BYTES_MAX, |message| {
            *count += 1;
            let is_valid = read_fields(message, |number, value| {
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
                let reason = format!("it has no such method of {SERVICE}: \"{said}\"");
                return Err(Fault::Refused { code: code::UNIMPLEMENTED, reason });
            }
            Some(code) => return Ok(Err(code)),
        }
        if let Some(code) = answer.flaw {
            return Ok(Err(code));
        }
        if answer.count != 1 || !answer.messages.is_empty() {
            return Ok(Err(code::INTERNAL));
        }
        // A batch is confirmed if the server kept as many.
        let is_batch = self.is_stream || messages > 1;
        let is_whole = !is_batch || answer.appended == messages as u64;
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

/// Number of the field `reading` of an `AppendRequest`.
const READING: u8 = 1;
/// Number of the field `appended` of an `AppendBatchReply`.
const APPENDED: u64 = 1;

/// Largest message of an answer: 4 MiB is what gRPC libraries take.
const ANSWER_BYTES_MAX: usize = 4 << 20;

const _: () = assert!(PREFIX_BYTES + 1 + 10 <= 16, "a prefix fits its place");
