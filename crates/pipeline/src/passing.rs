//! Core of the store and the API: queued readings are batched, passed on, and answered when the
//! next stage has them.

use std::sync::Arc;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::clock;
use crate::hop_file::HopFile;
use crate::next::{Next, Untaken};
use crate::queue::{Gathering, Parcel, Piece, gather};
use crate::running::Count;

/// The result for a client that sent readings.
pub(crate) type Outcome = Result<(), Untaken>;

/// Shared state of a stage's connections.
#[derive(Clone)]
pub(crate) struct Passing {
    queue: Sender<Parcel<oneshot::Sender<Outcome>>>,
    pub(crate) next: Arc<Next>,
    pub(crate) counts: Arc<Counts>,
}

/// Counts of readings.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Complete ones received from connections.
    pub(crate) received: Count,
    /// Stored and confirmed.
    pub(crate) stored: Count,
    /// Of those, already stored before.
    pub(crate) repeated: Count,
    /// Requests with invalid readings.
    pub(crate) refused: Count,
    /// Readings that were answered with an error.
    pub(crate) failed: Count,
    /// Batches of readings.
    pub(crate) batches: Count,
}

impl Passing {
    /// Makes the core, and the task that does its work.
    pub(crate) fn new(
        next: Arc<Next>,
        by: Gathering,
        hops: HopFile,
    ) -> (Passing, impl Future<Output = ()> + Send + 'static) {
        let (queue, waiting) = channel(by.room());
        let counts = Arc::new(Counts::default());
        let work = pass(waiting, Arc::clone(&next), by, hops, Arc::clone(&counts));
        (Passing { queue, next, counts }, work)
    }

    /// Passes readings on, and returns when the next stage has them.
    pub(crate) async fn take(&self, pieces: Vec<Piece>) -> Outcome {
        let answered = self.put(pieces).await;
        answered.await.unwrap_or_else(|_| Err(over()))
    }

    /// Passes readings on; the result comes later.
    pub(crate) async fn put(&self, pieces: Vec<Piece>) -> oneshot::Receiver<Outcome> {
        self.counts.received.add(pieces.len() as u64);
        let (ticket, answered) = oneshot::channel();
        // After the stage has stopped, the ticket is dropped with the parcel, and the receiver
        // notices.
        let _ = self.queue.send(Parcel { pieces, ticket }).await;
        answered
    }
}

/// The result of a stage that is stopping.
pub(crate) fn over() -> Untaken {
    Untaken::Away("this stage is stopping".to_owned())
}

/// Batches queued readings and passes them on, until all senders are gone and all readings are
/// answered.
async fn pass(
    mut waiting: Receiver<Parcel<oneshot::Sender<Outcome>>>,
    next: Arc<Next>,
    by: Gathering,
    hops: HopFile,
    counts: Arc<Counts>,
) {
    let calls_max = calls_at_once(&next, &by);
    let step = Arc::new(Step { next, hops, counts });
    let mut calls = JoinSet::new();
    while let Some(parcels) = gather(&mut waiting, &by).await {
        if calls_max == 1 {
            step.make(parcels).await;
            continue;
        }
        while calls.try_join_next().is_some() {}
        while calls.len() >= calls_max {
            calls.join_next().await;
        }
        let step = Arc::clone(&step);
        calls.spawn(async move { step.make(parcels).await });
    }
    while calls.join_next().await.is_some() {}
}

/// Number of concurrent calls. A batch has one, and others wait for the next; if a store is called
/// for each request (`--batch 1`), no request waits for the answer of another.
fn calls_at_once(next: &Next, by: &Gathering) -> usize {
    match next {
        Next::Store(_) if by.batch == 1 => CALLS_MAX,
        _ => 1,
    }
}

/// State of a step.
struct Step {
    next: Arc<Next>,
    hops: HopFile,
    counts: Arc<Counts>,
}

impl Step {
    /// Passes parcels on together, and answers them.
    async fn make(&self, parcels: Vec<Parcel<oneshot::Sender<Outcome>>>) {
        let Step { next, hops, counts } = self;
        let mut pieces = Vec::new();
        let mut tickets = Vec::with_capacity(parcels.len());
        for mut parcel in parcels {
            pieces.append(&mut parcel.pieces);
            tickets.push(parcel.ticket);
        }
        let outcome = next.take(&pieces).await;
        let left = clock::now();
        let readings = pieces.len() as u64;
        counts.batches.add(1);
        match &outcome {
            Ok(kept) => {
                // First, so that a client that sees its reading stored finds its hop.
                hops.note(&pieces, left, |number| kept.is_repeated(number));
                counts.stored.add(readings);
                counts.repeated.add(kept.repeats());
            }
            Err(_) => counts.failed.add(readings),
        }
        let outcome = outcome.map(|_| ());
        for ticket in tickets {
            // The client may be gone.
            let _ = ticket.send(outcome.clone());
        }
    }
}

/// Maximum number of concurrent calls for single requests: what an HTTP/2 server should allow at
/// least on one connection (RFC 9113, section 6.5.2).
const CALLS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use bytes::Bytes;
    use http::{Request, Response};
    use tokio::sync::Barrier;
    use tonic::Status;
    use tonic::body::Body;
    use tonic::server::{Grpc, UnaryService};
    use tonic::transport::Server;
    use tonic::transport::server::TcpIncoming;
    use tonic_prost::ProstCodec;
    use tower_service::Service;
    use weigh_model::hop::HopStage;
    use weigh_model::{Endpoint, Nanos};
    use weigh_protocols::grpc::codec::{
        APPEND, AppendReply, AppendRequest, CountReply, CountRequest,
    };

    use super::*;
    use crate::next::Store;

    /// A store that answers a call of a single reading only when all that are expected are there.
    #[derive(Clone)]
    struct Together(Arc<Barrier>);

    type Soon<T> = Pin<Box<dyn Future<Output = T> + Send>>;

    impl Service<Request<Body>> for Together {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = Soon<Result<Response<Body>, Infallible>>;

        fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Body>) -> Self::Future {
            let own = self.clone();
            Box::pin(async move {
                Ok(if request.uri().path() == APPEND {
                    let codec = ProstCodec::<AppendReply, AppendRequest>::default();
                    Grpc::new(codec).unary(own, request).await
                } else {
                    let codec = ProstCodec::<CountReply, CountRequest>::default();
                    Grpc::new(codec).unary(own, request).await
                })
            })
        }
    }

    impl UnaryService<AppendRequest> for Together {
        type Response = AppendReply;
        type Future = Soon<Result<tonic::Response<AppendReply>, Status>>;

        fn call(&mut self, _request: tonic::Request<AppendRequest>) -> Self::Future {
            let all = Arc::clone(&self.0);
            Box::pin(async move {
                all.wait().await;
                Ok(tonic::Response::new(AppendReply {}))
            })
        }
    }

    impl UnaryService<CountRequest> for Together {
        type Response = CountReply;
        type Future = Soon<Result<tonic::Response<CountReply>, Status>>;

        fn call(&mut self, _request: tonic::Request<CountRequest>) -> Self::Future {
            Box::pin(async { Ok(tonic::Response::new(CountReply { count: 0 })) })
        }
    }

    /// One after the other they would wait for each other until the call fails. What is under way
    /// when no more can come is still answered.
    #[test]
    fn calls_of_single_requests_are_under_way_together() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let endpoint = Endpoint::at("grpc", incoming.local_addr().unwrap());
            let store = Together(Arc::new(Barrier::new(CALLS_MAX)));
            tokio::spawn(Server::builder().serve_with_incoming(store, incoming));
            let next = Arc::new(Next::Store(Store::connect(&endpoint).await.unwrap()));
            let by = Gathering { batch: 1, linger: Duration::ZERO };
            let hops = HopFile::open(HopStage::Api, None).unwrap();
            let (passing, work) = Passing::new(next, by, hops);
            let work = tokio::spawn(work);
            let mut answers = Vec::new();
            for _ in 0..CALLS_MAX {
                let piece = Piece { body: Bytes::from_static(b"{}"), arrived: Nanos(0) };
                answers.push(passing.put(vec![piece]).await);
            }
            let counts = Arc::clone(&passing.counts);
            drop(passing);
            work.await.unwrap();
            for answer in answers {
                assert_eq!(answer.await.unwrap(), Ok(()));
            }
            let calls = CALLS_MAX as u64;
            assert_eq!((counts.stored.get(), counts.batches.get()), (calls, calls));
        });
    }
}
