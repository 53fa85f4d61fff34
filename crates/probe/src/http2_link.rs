//! Requests of HTTP/2 over the product's own connection, with everything that an answer holds.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use weigh_model::Pattern;
use weigh_protocols::adapter::client::{Answer, Client, Library};
use weigh_protocols::adapter::http2::{Requests, connect, recognise, unanswered};
use weigh_protocols::adapter::tasks::Soon;

use crate::link::Link;
use crate::reach::{Reach, Trouble};

/// A connection that speaks HTTP/2.
pub(crate) struct Session {
    link: Link,
    exchange: Arc<Mutex<Exchange>>,
}

/// Input and output of the connection.
#[derive(Default)]
struct Exchange {
    request: Option<Request<Full<Bytes>>>,
    reply: Option<Result<Reply, Trouble>>,
}

/// Answer to a request.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// Fields before the body, and those behind it.
    fields: HeaderMap,
    trailers: HeaderMap,
    /// Bytes of the body.
    pub(crate) body_bytes: usize,
    /// Number of streams that the server allows at once (`SETTINGS_MAX_CONCURRENT_STREAMS`); `None`
    /// if it sets no limit.
    pub(crate) streams: Option<u64>,
}

impl Reply {
    /// A field, wherever it stands; those behind the body come first.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let found = self.trailers.get(name).or_else(|| self.fields.get(name))?;
        found.to_str().ok()
    }
}

impl Session {
    /// Connects, by prior knowledge or, inside TLS, by ALPN, and waits for the server's SETTINGS.
    pub(crate) fn open(reach: &Reach) -> Result<Session, Trouble> {
        let exchange = Arc::<Mutex<Exchange>>::default();
        let own = Arc::clone(&exchange);
        let library = Library {
            recognise,
            connect: Box::new(move |stream, tasks| {
                let exchange = Arc::clone(&own);
                Box::pin(async move {
                    let requests = connect(stream, tasks).await?;
                    Ok(Box::new(Caller { requests, exchange }) as Box<dyn Client>)
                })
            }),
        };
        let opened = Link::open(reach, library.dial(Pattern::Request), &[b"h2"]);
        let link = opened.map_err(|trouble| match trouble {
            Trouble::Foreign(text) => Trouble::Foreign(format!("its answer is not HTTP/2: {text}")),
            other => other,
        })?;
        Ok(Session { link, exchange })
    }

    /// Sends a request with its whole body, and reads the answer whole.
    pub(crate) fn send(&mut self, request: Request<Bytes>) -> Result<Reply, Trouble> {
        let until = self.link.reach.until()?;
        lock(&self.exchange).request = Some(request.map(Full::new));
        self.link.send(b"", until)?;
        loop {
            let turned = self.link.turn(until);
            if let Some(reply) = lock(&self.exchange).reply.take() {
                return reply;
            }
            turned?;
        }
    }
}

/// Makes the call that is in the exchange.
struct Caller {
    requests: Requests<Full<Bytes>>,
    exchange: Arc<Mutex<Exchange>>,
}

impl Client for Caller {
    fn room(&self) -> u32 {
        self.is_open().into()
    }

    fn is_open(&self) -> bool {
        self.requests.is_open()
    }

    fn call(&mut self, _body: &[u8]) -> Soon<Answer> {
        let (exchange, mut requests) = (Arc::clone(&self.exchange), self.requests.clone());
        Box::pin(async move {
            let request = lock(&exchange).request.take().unwrap_or_default();
            let reply = answer(&mut requests, request).await;
            lock(&exchange).reply = Some(reply.map_err(|error| trouble(&error)));
            Answer::Done
        })
    }
}

async fn answer(
    requests: &mut Requests<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> hyper::Result<Reply> {
    let (head, mut body) = requests.send(request).await?.into_parts();
    let (mut body_bytes, mut trailers) = (0, HeaderMap::new());
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(piece) => body_bytes += piece.len(),
            Err(frame) => trailers.extend(frame.into_trailers().unwrap_or_default()),
        }
    }
    let streams = requests.announced().map(|(_, most)| most);
    Ok(Reply { status: head.status, fields: head.headers, trailers, body_bytes, streams })
}

fn trouble(error: &hyper::Error) -> Trouble {
    // The last cause is that of HTTP/2.
    let text = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    match unanswered(error) {
        Answer::Refused(_) => Trouble::Refused(text),
        _ => Trouble::Closed(format!("the server closed the connection: {text}")),
    }
}

fn lock(exchange: &Mutex<Exchange>) -> std::sync::MutexGuard<'_, Exchange> {
    exchange.lock().unwrap_or_else(PoisonError::into_inner)
}
