//! The reference server: takes bodies in and counts them.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use crate::adapter::http2;
use crate::adapter::server::{Kept, Service};
use crate::adapter::stream::Stream;
use crate::adapter::tasks::{Soon, Tasks};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use weigh_model::connection::Fault;
use weigh_model::protocol::Invalid;
use weigh_model::server::ServerReport;
use weigh_model::trial::Settings;

use super::request;
use crate::requests;
use crate::server_counts::ServerCounts;

/// Common settings of all shards of one server.
pub(super) struct Rules {
    /// Path that stores messages.
    path: String,
    /// True if a POST at any other path is stored too: no path was chosen.
    stores_anywhere: bool,
    body_bytes_max: usize,
}

/// One shard.
pub(super) struct Http2Service {
    rules: Arc<Rules>,
    /// One thread polls its connections, so that no request ever waits for it.
    census: Arc<Mutex<ServerCounts>>,
    kept: Kept,
}

impl Rules {
    pub(super) fn new(settings: &Settings) -> Result<Rules, Invalid> {
        let path = request::stored_at(settings.text("path"))?;
        let stores_anywhere = settings.text("path") == requests::PATH.default;
        let body_bytes_max = settings.integer("body_bytes_max");
        let body_bytes_max = usize::try_from(body_bytes_max).unwrap_or(usize::MAX);
        Ok(Rules { path, stores_anywhere, body_bytes_max })
    }

    fn stores(&self, path: &str) -> bool {
        path == self.path || self.stores_anywhere && path != "/healthz"
    }
}

impl Http2Service {
    pub(super) fn new(rules: Arc<Rules>) -> Http2Service {
        Http2Service { rules, census: Arc::default(), kept: Kept::default() }
    }
}

impl Service for Http2Service {
    fn serve(&mut self, stream: Stream, tasks: &Tasks) -> Soon<Result<(), Fault>> {
        counting(&self.census, ServerCounts::note_connection);
        let (rules, census) = (Arc::clone(&self.rules), Arc::clone(&self.census));
        let kept = self.kept.clone();
        let service = service_fn(move |request| {
            answer(request, Arc::clone(&rules), Arc::clone(&census), kept.clone())
        });
        http2::serve(stream, tasks, service)
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }

    fn report(&self) -> ServerReport {
        counting(&self.census, |census| census.report())
    }
}

async fn answer(
    request: Request<Incoming>,
    rules: Arc<Rules>,
    census: Arc<Mutex<ServerCounts>>,
    kept: Kept,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    // Of a request that is refused too: the library resets a stream whose body nobody read, and a
    // client that still sends it may take that for an error.
    let read = Limited::new(body, rules.body_bytes_max).collect().await;
    let (status, text) = match (head.uri.path(), &head.method) {
        (path, &Method::POST) if rules.stores(path) => {
            match read {
                Ok(body) => {
                    let body = body.to_bytes();
                    counting(&census, |census| census.note(&body));
                    kept.put(&body);
                    (StatusCode::CREATED, "")
                }
                Err(error) if error.is::<LengthLimitError>() => {
                    (StatusCode::PAYLOAD_TOO_LARGE, "the body is too long\n")
                }
                // The client reset its stream: nobody hears the answer.
                Err(_) => (StatusCode::BAD_REQUEST, "the body is incomplete\n"),
            }
        }
        (path, _) if path == rules.path => {
            (StatusCode::METHOD_NOT_ALLOWED, "use POST to send messages\n")
        }
        ("/healthz" | "/", &Method::GET | &Method::HEAD) => (StatusCode::OK, "ok\n"),
        ("/healthz", _) => (StatusCode::METHOD_NOT_ALLOWED, "use GET or HEAD here\n"),
        _ => (StatusCode::NOT_FOUND, "not found\n"),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    Ok(response)
}

fn counting<T>(census: &Mutex<ServerCounts>, count: impl FnOnce(&mut ServerCounts) -> T) -> T {
    count(&mut census.lock().unwrap_or_else(PoisonError::into_inner))
}
