//! The next stage of a stage: its own storage, the store by gRPC, or the API by HTTP.

use std::error::Error;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream;
use http::header::CONTENT_TYPE;
use http::uri::PathAndQuery;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_prost::ProstCodec;
use weigh_model::Endpoint;
use weigh_protocols::grpc::codec::{
    APPEND, APPEND_BATCH, AppendBatchReply, AppendReply, AppendRequest, COUNT, CountReply,
    CountRequest, READ, ReadReply, ReadRequest, SERVICE,
};

use crate::failed::Failed;
use crate::keeper::Keeper;
use crate::kept::{Kept, Page};
use crate::queue::Piece;

/// The next stage.
pub(crate) enum Next {
    /// This stage itself.
    Keeper(Keeper),
    Store(Store),
    Api(Box<Api>),
}

/// Why readings were not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Untaken {
    /// The next stage rejects them permanently.
    Refused(String),
    /// It cannot be reached, or cannot accept them now.
    Away(String),
}

impl Next {
    /// Passes readings on; the next stage has them when this returns.
    pub(crate) async fn take(&self, pieces: &[Piece]) -> Result<Kept, Untaken> {
        match self {
            Next::Keeper(keeper) => {
                let bodies = pieces.iter().map(|piece| piece.body.clone()).collect();
                keeper.keep(bodies).await.map_err(Untaken::Away)
            }
            Next::Store(store) => store.append(pieces).await.map(|()| Kept::default()),
            Next::Api(api) => api.post(pieces).await.map(|()| Kept::default()),
        }
    }

    /// Readings after a cursor.
    pub(crate) async fn read(
        &self,
        since: u64,
        limit: usize,
        sensor: Option<String>,
    ) -> Result<Page, String> {
        match self {
            Next::Keeper(keeper) => keeper.read(since, limit, sensor).await,
            Next::Store(store) => store.read(since, limit, sensor).await,
            Next::Api(api) => Err(format!("readings cannot be requested from {}", api.readings)),
        }
    }

    /// Number of readings in it; 0 for an API that is healthy.
    pub(crate) async fn count(&self) -> Result<u64, String> {
        match self {
            Next::Keeper(keeper) => keeper.count(),
            Next::Store(store) => store.count().await.map_err(|status| told(&status)),
            Next::Api(api) => api.is_there().await.map(|()| 0),
        }
    }
}

/// The store, by gRPC.
pub(crate) struct Store {
    channel: Channel,
    url: String,
}

impl Store {
    /// Connects, and asks for its count, so that a server that is not a store is detected at once.
    ///
    /// # Errors
    /// A server that cannot be reached, or is not a store.
    pub(crate) async fn connect(endpoint: &Endpoint) -> Result<Store, Failed> {
        let url = endpoint.to_string();
        let uri = format!("http://{}", endpoint.authority());
        let bad =
            |error: tonic::transport::Error| Failed::Typed(format!("{url}: {}", chain(&error)));
        let target = tonic::transport::Endpoint::from_shared(uri).map_err(bad)?;
        let target = target.connect_timeout(CONNECT_WITHIN).timeout(ANSWER_WITHIN);
        let away = |error: tonic::transport::Error| {
            let fix =
                format!("start it first: weigh serve store --listen {}", endpoint.authority());
            Failed::Found(format!("no store at {url}: {}; {fix}", chain(&error)))
        };
        let channel = target.connect().await.map_err(away)?;
        let store = Store { channel, url };
        match store.count().await {
            Ok(_) => Ok(store),
            Err(status) if status.code() == Code::Unimplemented => Err(Failed::Found(format!(
                "{}: it has no service {SERVICE} (\"{}\"); type the address of a store",
                store.url,
                status.message()
            ))),
            Err(status) => {
                let saw = told(&status);
                let fix = "type the address of a store";
                Err(Failed::Found(format!("{}: no answer to a call: {saw}; {fix}", store.url)))
            }
        }
    }

    /// Number of readings that it has received.
    ///
    /// # Errors
    /// A server that does not report it.
    pub(crate) async fn counted(&self) -> Result<u64, Failed> {
        let failed = |status: Status| Failed::Found(format!("{}: {}", self.url, told(&status)));
        self.count().await.map_err(failed)
    }

    async fn append(&self, pieces: &[Piece]) -> Result<(), Untaken> {
        let message = |piece: &Piece| AppendRequest { reading: piece.body.clone() };
        let mut grpc = self.grpc().await.map_err(|status| untaken(&status))?;
        if let [piece] = pieces {
            let codec = ProstCodec::<AppendRequest, AppendReply>::default();
            let path = PathAndQuery::from_static(APPEND);
            let call = grpc.unary(tonic::Request::new(message(piece)), path, codec);
            return call.await.map(|_| ()).map_err(|status| untaken(&status));
        }
        let codec = ProstCodec::<AppendRequest, AppendBatchReply>::default();
        let path = PathAndQuery::from_static(APPEND_BATCH);
        let messages: Vec<AppendRequest> = pieces.iter().map(message).collect();
        let call = grpc.client_streaming(tonic::Request::new(stream::iter(messages)), path, codec);
        let reply = call.await.map_err(|status| untaken(&status))?;
        let appended = reply.get_ref().appended;
        if appended == pieces.len() as u64 {
            return Ok(());
        }
        let sent = pieces.len();
        Err(Untaken::Away(format!("{}: it kept {appended} of {sent}", self.url)))
    }

    async fn read(&self, since: u64, limit: usize, sensor: Option<String>) -> Result<Page, String> {
        let request = ReadRequest {
            since,
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            sensor: sensor.unwrap_or_default(),
        };
        let codec = ProstCodec::<ReadRequest, ReadReply>::default();
        let mut grpc = self.grpc().await.map_err(|status| told(&status))?;
        let call = grpc.unary(tonic::Request::new(request), PathAndQuery::from_static(READ), codec);
        let ReadReply { readings, next } = call.await.map_err(|status| told(&status))?.into_inner();
        Ok(Page { readings, next })
    }

    async fn count(&self) -> Result<u64, Status> {
        let codec = ProstCodec::<CountRequest, CountReply>::default();
        let path = PathAndQuery::from_static(COUNT);
        let mut grpc = self.grpc().await?;
        Ok(grpc.unary(tonic::Request::new(CountRequest {}), path, codec).await?.get_ref().count)
    }

    /// A handle of the channel for one call; the channel reconnects on its own.
    async fn grpc(&self) -> Result<Grpc<Channel>, Status> {
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX);
        grpc.ready().await.map_err(|error| Status::unavailable(chain(&error)))?;
        Ok(grpc)
    }
}

/// The meaning of a status for sent readings.
fn untaken(status: &Status) -> Untaken {
    match status.code() {
        Code::InvalidArgument | Code::OutOfRange => Untaken::Refused(told(status)),
        _ => Untaken::Away(told(status)),
    }
}

/// A status in words, with its cause.
fn told(status: &Status) -> String {
    let cause = status.source().map(|cause| format!(": {}", chain(cause))).unwrap_or_default();
    format!("{:?}: {}{cause}", status.code(), status.message())
}

/// The api, by HTTP.
pub(crate) struct Api {
    client: Client<HttpConnector, Full<Bytes>>,
    readings: Uri,
    health: Uri,
}

impl Api {
    /// Checks that it answers.
    ///
    /// # Errors
    /// An API that cannot be reached, or is not healthy.
    pub(crate) async fn connect(endpoint: &Endpoint) -> Result<Api, Failed> {
        let root = format!("http://{}", endpoint.authority());
        let path = if endpoint.path.len() > 1 { endpoint.path.as_str() } else { "/readings" };
        let uri = |text: String| {
            text.parse::<Uri>().map_err(|error| Failed::Typed(format!("{text}: {error}")))
        };
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_WITHIN));
        let api = Api {
            client: Client::builder(TokioExecutor::new()).build(connector),
            readings: uri(format!("{root}{path}"))?,
            health: uri(format!("{root}/healthz"))?,
        };
        match api.is_there().await {
            Ok(()) => Ok(api),
            Err(saw) => {
                let fix =
                    format!("start it first: weigh serve api --listen {}", endpoint.authority());
                Err(Failed::Found(format!("no api at {root}: {saw}; {fix}")))
            }
        }
    }

    async fn is_there(&self) -> Result<(), String> {
        let (status, body) = self.ask(Method::GET, &self.health, Bytes::new()).await?;
        if status.is_server_error() {
            return Err(format!("GET {} answers {status}: {}", self.health, excerpt(&body)));
        }
        Ok(())
    }

    /// Number of readings that it has received.
    ///
    /// # Errors
    /// An API that does not report it.
    pub(crate) async fn counted(&self) -> Result<u64, Failed> {
        let failed = |said: String| Failed::Found(format!("GET {}: {said}", self.health));
        let (_, body) = self.ask(Method::GET, &self.health, Bytes::new()).await.map_err(failed)?;
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let count = answer["readings"].as_u64();
        count.ok_or_else(|| failed(format!("it reports no count: {}", excerpt(&body))))
    }

    async fn post(&self, pieces: &[Piece]) -> Result<(), Untaken> {
        let body = match pieces {
            [piece] => piece.body.clone(),
            _ => array(pieces),
        };
        let answer = self.ask(Method::POST, &self.readings, body).await;
        let (status, body) = answer.map_err(Untaken::Away)?;
        let said = || format!("POST {} answers {status}: {}", self.readings, excerpt(&body));
        match status {
            status if status.is_success() => Ok(()),
            StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNPROCESSABLE_ENTITY => Err(Untaken::Refused(said())),
            _ => Err(Untaken::Away(said())),
        }
    }

    async fn ask(
        &self,
        method: Method,
        uri: &Uri,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), String> {
        let request = Request::builder().method(method).uri(uri.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(Full::new(body));
        let request = request.map_err(|error| error.to_string())?;
        let exchange = async {
            let answer = self.client.request(request).await.map_err(|error| chain(&error))?;
            let (head, body) = answer.into_parts();
            let body = body.collect().await.map_err(|error| chain(&error))?;
            Ok((head.status, body.to_bytes()))
        };
        let silent = |_| format!("no answer within {} s", ANSWER_WITHIN.as_secs());
        timeout(ANSWER_WITHIN, exchange).await.map_err(silent)?
    }
}

/// Joins readings to one array, each as received.
fn array(pieces: &[Piece]) -> Bytes {
    let bytes: usize = pieces.iter().map(|piece| piece.body.len() + 1).sum();
    let mut all = BytesMut::with_capacity(bytes + 1);
    for (number, piece) in pieces.iter().enumerate() {
        all.put_u8(if number == 0 { b'[' } else { b',' });
        all.put_slice(&piece.body);
    }
    all.put_u8(b']');
    all.freeze()
}

/// An error with its causes: libraries put the cause last.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(behind) = cause {
        let more = behind.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = behind.source();
    }
    text
}

fn excerpt(body: &Bytes) -> String {
    let text = String::from_utf8_lossy(body);
    text.chars().take(EXCERPT_CHARS).collect()
}

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Timeout of a stage, which then counts as unreachable.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Maximum size of an answer with readings.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
const EXCERPT_CHARS: usize = 300;

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Ready, ready};
    use std::task::{Context, Poll};

    use http::Response;
    use tonic::body::Body;
    use tonic::transport::Server;
    use tonic::transport::server::TcpIncoming;
    use tower_service::Service;
    use weigh_model::Nanos;

    use super::*;

    #[test]
    fn an_array_holds_the_bodies_as_they_are() {
        let piece = |text: &'static str| Piece {
            body: Bytes::from_static(text.as_bytes()),
            arrived: Nanos(0),
        };
        assert_eq!(array(&[piece("{}"), piece("7")]), Bytes::from_static(b"[{},7]"));
    }

    /// A gRPC server that has other services, as any of them answers for one that it has not.
    #[derive(Clone)]
    struct Others;

    impl Service<Request<Body>> for Others {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = Ready<Result<Response<Body>, Infallible>>;

        fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _request: Request<Body>) -> Self::Future {
            ready(Ok(Status::unimplemented("unknown service").into_http()))
        }
    }

    #[test]
    fn a_server_without_the_service_is_named() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let error = runtime.block_on(async {
            let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let endpoint = Endpoint::at("grpc", incoming.local_addr().unwrap());
            tokio::spawn(Server::builder().serve_with_incoming(Others, incoming));
            Store::connect(&endpoint).await.map(|_| ()).unwrap_err()
        });
        let text = error.to_string();
        assert!(
            text.contains("it has no service weigh.store.v1.Store (\"unknown service\")"),
            "{text}"
        );
    }
}
