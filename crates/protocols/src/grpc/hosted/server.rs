//! The reference server: the store of `proto/store.proto` in memory.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};

use crate::adapter::http2;
use crate::adapter::server::{Kept, Service};
use crate::adapter::stream::{Stream, lock};
use crate::adapter::tasks::{Soon, Tasks};
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use tonic::body::Body;
use tonic::server::{ClientStreamingService, Grpc, UnaryService};
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;
use weigh_model::connection::Fault;
use weigh_model::server::ServerReport;
use weigh_model::trial::Settings;

use crate::grpc::codec::{
    APPEND, APPEND_BATCH, AppendBatchReply, AppendReply, AppendRequest, COUNT, CountReply,
    CountRequest, READ, READ_DEFAULT, ReadReply, ReadRequest, SERVICE,
};
use crate::grpc::messages::Shelf;
use crate::server_counts::ServerCounts;

/// State shared by all shards of one server.
pub(super) struct Rules {
    message_bytes_max: usize,
    shelf: Mutex<Shelf>,
}

/// One shard.
pub(super) struct StoreService {
    store: Store,
}

/// The store, as one shard's calls see it.
#[derive(Clone)]
struct Store {
    rules: Arc<Rules>,
    /// Its connections are polled by one thread, so that no call ever waits for it.
    census: Arc<Mutex<ServerCounts>>,
    kept: Kept,
}

impl Rules {
    pub(super) fn new(settings: &Settings) -> Rules {
        Rules {
            message_bytes_max: settings.integer("message_bytes_max") as usize,
            shelf: Mutex::new(Shelf::new(settings.integer("store") as usize)),
        }
    }
}

impl StoreService {
    pub(super) fn new(rules: Arc<Rules>) -> StoreService {
        StoreService { store: Store { rules, census: Arc::default(), kept: Kept::default() } }
    }
}

impl Service for StoreService {
    fn serve(&mut self, stream: Stream, tasks: &Tasks) -> Soon<Result<(), Fault>> {
        lock(&self.store.census).note_connection();
        let store = self.store.clone();
        http2::serve(stream, tasks, service_fn(move |request| answer(request, store.clone())))
    }

    fn kept(&self) -> &Kept {
        &self.store.kept
    }

    fn report(&self) -> ServerReport {
        lock(&self.store.census).report()
    }
}

/// Finds the method of a call by its path, and makes it.
async fn answer(request: Request<Incoming>, store: Store) -> Result<Response<Body>, Infallible> {
    let bytes_max = store.rules.message_bytes_max;
    Ok(match request.uri().path() {
        APPEND => {
            let mut grpc = Grpc::new(ProstCodec::<AppendReply, AppendRequest>::default())
                .max_decoding_message_size(bytes_max);
            grpc.unary(Append(store), request).await
        }
        APPEND_BATCH => {
            let mut grpc = Grpc::new(ProstCodec::<AppendBatchReply, AppendRequest>::default())
                .max_decoding_message_size(bytes_max);
            grpc.client_streaming(AppendBatch(store), request).await
        }
        READ => {
            let mut grpc = Grpc::new(ProstCodec::<ReadReply, ReadRequest>::default())
                .max_decoding_message_size(bytes_max);
            grpc.unary(Read(store), request).await
        }
        COUNT => {
            let mut grpc = Grpc::new(ProstCodec::<CountReply, CountRequest>::default())
                .max_decoding_message_size(bytes_max);
            grpc.unary(Count(store), request).await
        }
        other => {
            let reason = format!("there is no {other} here; the service is {SERVICE}");
            Status::unimplemented(reason).into_http()
        }
    })
}

struct Append(Store);
struct AppendBatch(Store);
struct Read(Store);
struct Count(Store);

impl UnaryService<AppendRequest> for Append {
    type Response = AppendReply;
    type Future = Ready<Result<tonic::Response<AppendReply>, Status>>;

    fn call(&mut self, request: tonic::Request<AppendRequest>) -> Self::Future {
        self.0.append(request.into_inner().reading);
        ready(Ok(tonic::Response::new(AppendReply {})))
    }
}

impl ClientStreamingService<AppendRequest> for AppendBatch {
    type Response = AppendBatchReply;
    type Future = Soon<Result<tonic::Response<AppendBatchReply>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<AppendRequest>>) -> Self::Future {
        let (store, mut readings) = (self.0.clone(), request.into_inner());
        Box::pin(async move {
            let mut appended = 0;
            while let Some(message) = readings.message().await? {
                store.append(message.reading);
                appended += 1;
            }
            Ok(tonic::Response::new(AppendBatchReply { appended }))
        })
    }
}

impl UnaryService<ReadRequest> for Read {
    type Response = ReadReply;
    type Future = Ready<Result<tonic::Response<ReadReply>, Status>>;

    fn call(&mut self, request: tonic::Request<ReadRequest>) -> Self::Future {
        let ReadRequest { since, limit, sensor } = request.into_inner();
        if !sensor.is_empty() {
            let reason = "the reference server looks into no reading: leave sensor out";
            return ready(Err(Status::invalid_argument(reason)));
        }
        let limit = if limit == 0 { READ_DEFAULT } else { limit as usize };
        let (readings, next) = lock(&self.0.rules.shelf).read(since, limit, |_| true);
        ready(Ok(tonic::Response::new(ReadReply { readings, next })))
    }
}

impl UnaryService<CountRequest> for Count {
    type Response = CountReply;
    type Future = Ready<Result<tonic::Response<CountReply>, Status>>;

    fn call(&mut self, _request: tonic::Request<CountRequest>) -> Self::Future {
        let count = lock(&self.0.rules.shelf).count();
        ready(Ok(tonic::Response::new(CountReply { count })))
    }
}

impl Store {
    fn append(&self, reading: Bytes) {
        lock(&self.census).note(&reading);
        self.kept.put(&reading);
        lock(&self.rules.shelf).put(&reading);
    }
}
