//! The stage `store`: the service of `store.proto` with tonic, in memory or SQLite. A reading is
//! confirmed when it is committed; readings that wait for a commit share the next one.

use std::convert::Infallible;
use std::future::{Ready as ReadyNow, ready};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use serde_json::{Value, json};
use tonic::body::Body;
use tonic::server::{ClientStreamingService, Grpc, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;
use tower_service::Service;
use weigh_model::Endpoint;
use weigh_model::hop::HopStage;
use weigh_protocols::grpc::codec::{
    APPEND, APPEND_BATCH, AppendBatchReply, AppendReply, AppendRequest, COUNT, CountReply,
    CountRequest, READ, READ_DEFAULT, ReadReply, ReadRequest, SERVICE,
};

use crate::clock;
use crate::failed::Failed;
use crate::hop_file::HopFile;
use crate::keeper::{Keeper, Place};
use crate::next::{Next, Untaken};
use crate::passing::{Counts, Passing, over};
use crate::queue::{Gathering, Piece};
use crate::running::{Ready, Running, listen, local, serve};

/// Settings of a store.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// Its address; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Where it stores readings.
    pub place: Place,
    /// True if each message with a mark is stored once.
    pub is_unique: bool,
    /// Readings that share a commit.
    pub gathering: Gathering,
    /// The file for its hops.
    pub hops: Option<PathBuf>,
}

impl StoreSettings {
    /// Starts it.
    ///
    /// # Errors
    /// A storage that cannot be opened; an address in use.
    pub fn start(self) -> Result<Running, Failed> {
        Running::start(move |stop| async move {
            let keeper = Keeper::open(&self.place, self.is_unique)?;
            let hops = HopFile::open(HopStage::Store, self.hops.as_deref())?;
            let urge = hops.urge();
            let listener = listen(self.listen).await?;
            let address = local(&listener)?;
            let next = Arc::new(Next::Keeper(keeper));
            let (passing, work) = Passing::new(next, self.gathering, hops);
            let counted = (Arc::clone(&passing.next), Arc::clone(&passing.counts));
            let names = (self.database(), self.durable());
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            Ok(Ready {
                first_line: format!("listening on {}", Endpoint::at("grpc", address)),
                settings_line: self.describe(),
                counts: Box::new(move || counts(&counted, &names)),
                hops: urge,
                work: Box::pin(serve(stop, work, move |stop| {
                    let service = StoreService { passing };
                    let stopped = async move {
                        let _ = stop.await;
                    };
                    Server::builder().serve_with_incoming_shutdown(service, incoming, stopped)
                })),
            })
        })
    }

    fn database(&self) -> String {
        match &self.place {
            Place::Memory { .. } => "memory".to_owned(),
            Place::Database { path, .. } => path.display().to_string(),
        }
    }

    /// The durability of SQLite; `None` in memory.
    fn durable(&self) -> Option<&'static str> {
        match &self.place {
            Place::Memory { .. } => None,
            Place::Database { durability, .. } => Some(durability.synchronous()),
        }
    }

    fn describe(&self) -> String {
        let place = match &self.place {
            Place::Memory { kept_max } => format!("memory, the newest {kept_max} readings"),
            Place::Database { path, durability } => {
                let synchronous = durability.synchronous();
                format!("database {}, WAL, synchronous={synchronous}", path.display())
            }
        };
        let once = if self.is_unique { ", each message once" } else { "" };
        format!("{place}{once}, at most {} readings in a commit", self.gathering.batch)
    }
}

/// Its counts and settings.
fn counts(
    (next, counts): &(Arc<Next>, Arc<Counts>),
    (database, synchronous): &(String, Option<&str>),
) -> Value {
    let rows = match &**next {
        Next::Keeper(keeper) => keeper.count().ok(),
        _ => None,
    };
    json!({
        "stage": "store",
        "database": database,
        "synchronous": synchronous,
        "received": counts.received.get(),
        "stored": counts.stored.get(),
        "repeated": counts.repeated.get(),
        "failed": counts.failed.get(),
        "batches": counts.batches.get(),
        "rows": rows,
    })
}

/// The service of a connection.
#[derive(Clone)]
struct StoreService {
    passing: Passing,
}

impl Service<Request<Body>> for StoreService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Soon<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(answer(request, self.passing.clone()))
    }
}

type Soon<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Finds the method of a call by its path, and calls it.
async fn answer(request: Request<Body>, passing: Passing) -> Result<Response<Body>, Infallible> {
    Ok(match request.uri().path() {
        APPEND => {
            let mut grpc = Grpc::new(ProstCodec::<AppendReply, AppendRequest>::default())
                .max_decoding_message_size(READING_BYTES_MAX);
            grpc.unary(Append(passing), request).await
        }
        APPEND_BATCH => {
            let mut grpc = Grpc::new(ProstCodec::<AppendBatchReply, AppendRequest>::default())
                .max_decoding_message_size(READING_BYTES_MAX);
            grpc.client_streaming(AppendBatch(passing), request).await
        }
        READ => {
            let mut grpc = Grpc::new(ProstCodec::<ReadReply, ReadRequest>::default());
            grpc.unary(Read(passing), request).await
        }
        COUNT => {
            let mut grpc = Grpc::new(ProstCodec::<CountReply, CountRequest>::default());
            grpc.unary(Count(passing), request).await
        }
        other => {
            let reason = format!("unknown method {other}; the service is {SERVICE}");
            Status::unimplemented(reason).into_http()
        }
    })
}

struct Append(Passing);
struct AppendBatch(Passing);
struct Read(Passing);
struct Count(Passing);

impl UnaryService<AppendRequest> for Append {
    type Response = AppendReply;
    type Future = Soon<Result<tonic::Response<AppendReply>, Status>>;

    fn call(&mut self, request: tonic::Request<AppendRequest>) -> Self::Future {
        let arrived = clock::now();
        let passing = self.0.clone();
        Box::pin(async move {
            let piece = Piece { body: request.into_inner().reading, arrived };
            passing.take(vec![piece]).await.map_err(status)?;
            Ok(tonic::Response::new(AppendReply {}))
        })
    }
}

impl ClientStreamingService<AppendRequest> for AppendBatch {
    type Response = AppendBatchReply;
    type Future = Soon<Result<tonic::Response<AppendBatchReply>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<AppendRequest>>) -> Self::Future {
        let (passing, mut readings) = (self.0.clone(), request.into_inner());
        Box::pin(async move {
            let mut answers = Vec::new();
            let mut pieces = Vec::new();
            let mut appended = 0;
            while let Some(AppendRequest { reading }) = readings.message().await? {
                pieces.push(Piece { body: reading, arrived: clock::now() });
                appended += 1;
                // A stream may be endless, so it is stored as it comes.
                if pieces.len() == PIECES_MAX {
                    answers.push(passing.put(std::mem::take(&mut pieces)).await);
                }
            }
            if !pieces.is_empty() {
                answers.push(passing.put(pieces).await);
            }
            for answered in answers {
                answered.await.unwrap_or_else(|_| Err(over())).map_err(status)?;
            }
            Ok(tonic::Response::new(AppendBatchReply { appended }))
        })
    }
}

impl UnaryService<ReadRequest> for Read {
    type Response = ReadReply;
    type Future = Soon<Result<tonic::Response<ReadReply>, Status>>;

    fn call(&mut self, request: tonic::Request<ReadRequest>) -> Self::Future {
        let next = Arc::clone(&self.0.next);
        Box::pin(async move {
            let ReadRequest { since, limit, sensor } = request.into_inner();
            let limit = if limit == 0 { READ_DEFAULT } else { limit as usize };
            let sensor = (!sensor.is_empty()).then_some(sensor);
            let page = next.read(since, limit, sensor).await.map_err(Status::internal)?;
            Ok(tonic::Response::new(ReadReply { readings: page.readings, next: page.next }))
        })
    }
}

impl UnaryService<CountRequest> for Count {
    type Response = CountReply;
    type Future = ReadyNow<Result<tonic::Response<CountReply>, Status>>;

    fn call(&mut self, _request: tonic::Request<CountRequest>) -> Self::Future {
        let count = match &*self.0.next {
            Next::Keeper(keeper) => keeper.count(),
            _ => Err("a store keeps readings itself".to_owned()),
        };
        ready(
            count.map(|count| tonic::Response::new(CountReply { count })).map_err(Status::internal),
        )
    }
}

fn status(untaken: Untaken) -> Status {
    match untaken {
        Untaken::Refused(reason) => Status::invalid_argument(reason),
        Untaken::Away(reason) => Status::unavailable(reason),
    }
}

/// Maximum size of a reading.
const READING_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Readings of a stream that are passed on together.
const PIECES_MAX: usize = 1_000;
