//! The stage `api`: accepts readings by HTTP and JSON, with axum. It stores them or passes them to
//! a store, and answers when they are stored.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use weigh_model::Endpoint;
use weigh_model::hop::HopStage;

use crate::clock;
use crate::failed::Failed;
use crate::hop_file::HopFile;
use crate::keeper::{Keeper, Place};
use crate::kept::Page;
use crate::next::{Next, Store, Untaken};
use crate::passing::{Counts, Passing};
use crate::queue::{Gathering, Piece};
use crate::reading;
use crate::running::{Ready, Running, listen, local, serve};

/// Settings of an API.
#[derive(Clone, Debug)]
pub struct ApiSettings {
    /// Its address; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Destination of readings.
    pub holding: Holding,
    /// Batches of readings for the store.
    pub gathering: Gathering,
    /// The file for its hops.
    pub hops: Option<PathBuf>,
}

/// Destination of an API's readings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holding {
    /// Its memory, which keeps the newest ones.
    Memory {
        /// Maximum number of readings in memory.
        kept_max: usize,
    },
    /// A store, by gRPC.
    Store(Endpoint),
}

impl ApiSettings {
    /// Starts it.
    ///
    /// # Errors
    /// A store that cannot be reached; an address in use.
    pub fn start(self) -> Result<Running, Failed> {
        Running::start(move |stop| async move {
            let (next, place) = match &self.holding {
                Holding::Memory { kept_max } => {
                    let place = Place::Memory { kept_max: *kept_max };
                    let text = format!("memory, the newest {kept_max} readings");
                    (Next::Keeper(Keeper::open(&place, false)?), text)
                }
                Holding::Store(endpoint) => {
                    let batch = self.gathering.batch;
                    let text = format!("{endpoint}, at most {batch} readings in a call");
                    (Next::Store(Store::connect(endpoint).await?), text)
                }
            };
            let hops = HopFile::open(HopStage::Api, self.hops.as_deref())?;
            let urge = hops.urge();
            let listener = listen(self.listen).await?;
            let address = local(&listener)?;
            let (passing, work) = Passing::new(Arc::new(next), self.gathering, hops);
            let counted = Arc::clone(&passing.counts);
            let listener = listener.tap_io(|stream| {
                // Answers must not wait for more data; without the option they may.
                let _ = stream.set_nodelay(true);
            });
            Ok(Ready {
                first_line: format!("listening on {}", Endpoint::at("http", address)),
                settings_line: format!("readings go to {place}"),
                counts: Box::new(move || counts(&counted)),
                hops: urge,
                work: Box::pin(serve(stop, work, move |stop| {
                    let stopped = async move {
                        let _ = stop.await;
                    };
                    let serving = axum::serve(listener, routes(passing));
                    serving.with_graceful_shutdown(stopped).into_future()
                })),
            })
        })
    }
}

fn counts(counts: &Counts) -> Value {
    json!({
        "stage": "api",
        "received": counts.received.get(),
        "stored": counts.stored.get(),
        "refused": counts.refused.get(),
        "failed": counts.failed.get(),
        "batches": counts.batches.get(),
    })
}

/// The routes of the API.
fn routes(passing: Passing) -> Router {
    Router::new()
        .route("/readings", post(take).get(list))
        .route("/readings/{*sensor}", get(of_sensor))
        .route("/healthz", get(health))
        .fallback(elsewhere)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(passing)
}

/// `POST /readings`: one reading, or an array of them.
async fn take(State(passing): State<Passing>, body: Bytes) -> Response {
    let arrived = clock::now();
    let bodies = match reading::split(&body) {
        Ok(bodies) => bodies,
        Err(reason) => {
            passing.counts.refused.add(1);
            return refuse(StatusCode::BAD_REQUEST, &reason);
        }
    };
    let stored = bodies.len();
    let pieces = bodies.into_iter().map(|body| Piece { body, arrived }).collect();
    match passing.take(pieces).await {
        Ok(()) => answer(StatusCode::CREATED, format!("{{\"stored\":{stored}}}")),
        Err(Untaken::Refused(reason)) => refuse(StatusCode::BAD_REQUEST, &reason),
        Err(Untaken::Away(reason)) => refuse(StatusCode::SERVICE_UNAVAILABLE, &reason),
    }
}

/// Query of a request for readings.
#[derive(Deserialize)]
struct Wish {
    since: Option<String>,
    limit: Option<String>,
}

/// `GET /readings`.
async fn list(State(passing): State<Passing>, Query(wish): Query<Wish>) -> Response {
    page(&passing, &wish, None).await
}

/// `GET /readings/{sensor}`; a sensor's name may have slashes.
async fn of_sensor(
    State(passing): State<Passing>,
    Path(sensor): Path<String>,
    Query(wish): Query<Wish>,
) -> Response {
    page(&passing, &wish, Some(sensor)).await
}

async fn page(passing: &Passing, wish: &Wish, sensor: Option<String>) -> Response {
    let since = match wish.since.as_deref().map_or(Ok(0), str::parse::<u64>) {
        Ok(since) => since,
        Err(_) => {
            let reason = "since is not a cursor: copy it from \"next\" of an earlier answer";
            return refuse(StatusCode::BAD_REQUEST, reason);
        }
    };
    let limit = wish.limit.as_deref().map_or(Ok(LIMIT_DEFAULT), str::parse::<usize>);
    let Some(limit) = limit.ok().filter(|limit| (1..=LIMIT_MAX).contains(limit)) else {
        let reason = format!("limit is not from 1 to {LIMIT_MAX}");
        return refuse(StatusCode::BAD_REQUEST, &reason);
    };
    match passing.next.read(since, limit, sensor).await {
        Ok(page) => answer(StatusCode::OK, listing(&page)),
        Err(reason) => refuse(StatusCode::SERVICE_UNAVAILABLE, &reason),
    }
}

/// The readings as received; a body that is not JSON, which a store may have, as a string.
fn listing(page: &Page) -> String {
    let mut text = String::from("{\"readings\":[");
    for (number, body) in page.readings.iter().enumerate() {
        if number > 0 {
            text.push(',');
        }
        match serde_json::from_slice::<&RawValue>(body) {
            Ok(raw) => text.push_str(raw.get()),
            Err(_) => text.push_str(&Value::from(String::from_utf8_lossy(body)).to_string()),
        }
    }
    text.push_str(&format!("],\"next\":\"{}\"}}", page.next));
    text
}

/// `GET /healthz`: healthy if the next stage answers.
async fn health(State(passing): State<Passing>) -> Response {
    match passing.next.count().await {
        Ok(count) => answer(StatusCode::OK, json!({"status": "ok", "readings": count}).to_string()),
        Err(reason) => refuse(StatusCode::SERVICE_UNAVAILABLE, &reason),
    }
}

async fn elsewhere() -> Response {
    let reason = "there are POST /readings, GET /readings, GET /readings/{sensor}, GET /healthz";
    refuse(StatusCode::NOT_FOUND, reason)
}

fn refuse(status: StatusCode, reason: &str) -> Response {
    answer(status, json!({"error": reason}).to_string())
}

fn answer(status: StatusCode, json: String) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], json).into_response()
}

/// Maximum size of a request's body: a batch of a gateway with its largest messages.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Default number of readings in an answer.
const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_json_whatever_it_lists() {
        let readings = [&b"{\"a\": 1.50}"[..], b"no \"JSON\"", b"\xff"];
        let readings = readings.iter().map(|body| Bytes::copy_from_slice(body)).collect();
        let text = listing(&Page { readings, next: 7 });
        assert!(text.starts_with("{\"readings\":[{\"a\": 1.50},"), "{text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["readings"][1], "no \"JSON\"");
        assert_eq!(value["next"], "7");
    }
}
