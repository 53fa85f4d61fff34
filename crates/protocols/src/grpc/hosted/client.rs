//! The client's end: a call of the store for every message.

use std::sync::Arc;
use std::task::{Context, Poll};

use crate::adapter::client::{Answer, Client, Connected};
use crate::adapter::http2::{self, Requests};
use crate::adapter::stream::Stream;
use crate::adapter::tasks::{Soon, Tasks};
use bytes::Bytes;
use futures_util::stream;
use http::header::CONTENT_TYPE;
use http::uri::{PathAndQuery, Uri};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::metadata::{AsciiMetadataKey, MetadataMap, MetadataValue};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;
use tower_service::Service;
use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Trial;

use crate::fields;

use crate::grpc::client;
use crate::grpc::codec::{
    APPEND, APPEND_BATCH, AppendBatchReply, AppendReply, AppendRequest, SERVICE,
};
use crate::grpc::method::{CompiledMethod, DEADLINE, Streaming};

/// Common settings of all clients of a trial.
pub(super) struct Plan {
    /// Scheme and authority.
    origin: Uri,
    is_stream: bool,
    streams: u32,
    /// Metadata of every call: credentials, and the user's fields.
    metadata: MetadataMap,
}

impl Plan {
    /// Reads and checks those of a trial.
    pub(super) fn new(trial: &Trial) -> Result<Plan, Invalid> {
        let settings = &trial.settings;
        if CompiledMethod::of(settings)?.is_some() {
            let problem = format!("the library calls only {SERVICE}");
            return Err(Invalid::new("grpc.implementation", problem, "leave it at built-in"));
        }
        if settings.duration(DEADLINE.key) > Nanos(0) {
            let problem = "the library has no deadlines here";
            return Err(Invalid::new("grpc.deadline", problem, "use implementation = built-in"));
        }
        let streaming = Streaming::asked(settings, &[Streaming::None, Streaming::Client])?;
        Ok(Plan {
            origin: origin(trial)?,
            is_stream: streaming == Streaming::Client,
            streams: crate::requests::streams(trial),
            metadata: metadata(trial)?,
        })
    }
}

/// `:scheme` and `:authority` of every call, as the library takes them.
fn origin(trial: &Trial) -> Result<Uri, Invalid> {
    let (scheme, authority) = client::origin(trial)?;
    let text = format!("{scheme}://{authority}");
    text.parse().map_err(|error| {
        let problem = format!("{text:?} is not an address of a server: {error}");
        Invalid::new("target", problem, "type a host name or an address")
    })
}

/// Credentials in HTTP's form (RFC 7617), and further fields.
fn metadata(trial: &Trial) -> Result<MetadataMap, Invalid> {
    let mut metadata = MetadataMap::new();
    let basic = trial.endpoint.as_ref().and_then(crate::requests::basic_authorization);
    let further = fields::read(&trial.settings, "grpc", &OWN_FIELDS, basic.is_some())?;
    if let Some(text) = basic {
        let value = MetadataValue::try_from(text)
            .map_err(|error| Invalid::new("target", error.to_string(), "remove its password"))?;
        metadata.insert("authorization", value);
    }
    for (name, value) in further {
        let lower = name.to_ascii_lowercase();
        let problem = match lower.as_str() {
            own if own.starts_with("grpc-") => "names that begin with grpc- are reserved for gRPC",
            own if own.ends_with("-bin") => "a value of bytes (-bin) cannot be written as text",
            _ => "a field's value is not allowed in metadata",
        };
        let key = lower.parse::<AsciiMetadataKey>().ok();
        let pair = key.zip(MetadataValue::try_from(value).ok());
        let (key, value) = pair.filter(|_| !lower.starts_with("grpc-")).ok_or_else(|| {
            Invalid::new("grpc.headers", problem, "type another name, and visible characters")
        })?;
        metadata.append(key, value);
    }
    Ok(metadata)
}

/// Fields of every call that gRPC sets itself (gRPC over HTTP/2, "Requests").
const OWN_FIELDS: [(&str, &str); 6] = [
    ("host", "it is taken from the target's URL"),
    ("content-type", "gRPC sets it"),
    ("content-length", "gRPC does not use it"),
    ("te", "gRPC sets it"),
    ("user-agent", "the library sets it"),
    ("connection", "HTTP/2 does not use it"),
];

/// Opens a channel.
pub(super) async fn connect(stream: Stream, tasks: Tasks, plan: Arc<Plan>) -> Connected {
    let requests = http2::connect(stream, tasks).await?;
    let grpc = Grpc::with_origin(Channel { requests: requests.clone() }, plan.origin.clone());
    Ok(Box::new(Caller { requests, grpc, plan }))
}

/// A channel that takes calls.
struct Caller {
    requests: Requests<Body>,
    grpc: Grpc<Channel>,
    plan: Arc<Plan>,
}

/// One connection, as tonic sees it.
#[derive(Clone)]
struct Channel {
    requests: Requests<Body>,
}

/// Why there is no gRPC answer.
#[derive(Debug, thiserror::Error)]
enum Failed {
    /// No answer at all.
    #[error(transparent)]
    Http2(#[from] hyper::Error),
    /// An answer that is not gRPC: its status and its content type.
    #[error("HTTP status {status}, {kind}", status = .0.as_u16(), kind = .1)]
    Other(StatusCode, String),
}

impl Service<Request<Body>> for Channel {
    type Response = Response<Incoming>;
    type Error = Failed;
    type Future = Soon<Result<Response<Incoming>, Failed>>;

    /// The engine makes no call without room for it.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        Poll::Ready(Ok(()))
    }

    /// gRPC over HTTP/2, "Responses": the status is 200, and the content type begins with
    /// `application/grpc`.
    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answering = self.requests.send(request);
        Box::pin(async move {
            let answer = answering.await?;
            let kind = answer.headers().get(CONTENT_TYPE).map_or(&b""[..], |kind| kind.as_bytes());
            if answer.status() == StatusCode::OK && kind.starts_with(b"application/grpc") {
                return Ok(answer);
            }
            let kind = match kind {
                b"" => "without a content type".to_owned(),
                _ => format!("of type {}", kind.escape_ascii()),
            };
            Err(Failed::Other(answer.status(), kind))
        })
    }
}

impl Client for Caller {
    fn room(&self) -> u32 {
        self.requests.room(self.plan.streams)
    }

    fn is_open(&self) -> bool {
        self.requests.is_open()
    }

    fn granted(&self) -> Option<(&'static str, u64)> {
        self.requests.announced()
    }

    fn call(&mut self, body: &[u8]) -> Soon<Answer> {
        if self.plan.is_stream {
            return self.append_batch(&[body]);
        }
        let (mut grpc, plan) = (self.grpc.clone(), Arc::clone(&self.plan));
        let message = AppendRequest { reading: Bytes::copy_from_slice(body) };
        Box::pin(async move {
            let codec = ProstCodec::<AppendRequest, AppendReply>::default();
            let path = PathAndQuery::from_static(APPEND);
            match grpc.unary(with(message, &plan), path, codec).await {
                Ok(_) => Answer::Done,
                Err(status) => answer(&status),
            }
        })
    }

    fn call_together(&mut self, bodies: &[&[u8]]) -> Option<Soon<Answer>> {
        Some(self.append_batch(bodies))
    }

    fn gathers(&self) -> bool {
        true
    }
}

impl Caller {
    /// A client stream of these readings. It confirms them if the server kept as many.
    fn append_batch(&self, bodies: &[&[u8]]) -> Soon<Answer> {
        let (mut grpc, plan) = (self.grpc.clone(), Arc::clone(&self.plan));
        let sent = bodies.len() as u64;
        let message = |body: &&[u8]| AppendRequest { reading: Bytes::copy_from_slice(body) };
        let messages: Vec<AppendRequest> = bodies.iter().map(message).collect();
        Box::pin(async move {
            let codec = ProstCodec::<AppendRequest, AppendBatchReply>::default();
            let path = PathAndQuery::from_static(APPEND_BATCH);
            let batch = with(stream::iter(messages), &plan);
            match grpc.client_streaming(batch, path, codec).await {
                Ok(reply) if reply.get_ref().appended == sent => Answer::Done,
                Ok(_) => Answer::Refused(Code::DataLoss as u16),
                Err(status) => answer(&status),
            }
        })
    }
}

/// A call with its metadata.
fn with<T>(message: T, plan: &Plan) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    if !plan.metadata.is_empty() {
        request.metadata_mut().clone_from(&plan.metadata);
    }
    request
}

/// Meaning of a status other than OK.
fn answer(status: &Status) -> Answer {
    use std::error::Error;
    if let Some(cause) = status.source() {
        return match cause.downcast_ref() {
            Some(Failed::Http2(error)) => http2::unanswered(error),
            // A proxy in front of it may answer for a server that is busy or away.
            Some(Failed::Other(code, _)) if code.is_server_error() => {
                Answer::Refused(code.as_u16())
            }
            Some(other) => {
                let saw =
                    format!("its answer is not gRPC but {other}: check that it has {SERVICE}");
                Answer::Useless(Fault::OtherProtocol(saw))
            }
            None => http2::unanswered(cause),
        };
    }
    let code = status.code();
    if code == Code::Unimplemented {
        let said = status.message();
        let reason = format!("it has no such method of {SERVICE}: \"{said}\"");
        return Answer::Useless(Fault::Refused { code: code as u16, reason });
    }
    Answer::Refused(code as u16)
}
