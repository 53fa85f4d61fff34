//! The middle of the store and of the api: what waits is gathered, handed on, and answered once
//! the next stage has it.

use std::sync::Arc;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

use crate::clock;
use crate::hop_file::HopFile;
use crate::next::{Next, Untaken};
use crate::queue::{Gathering, Parcel, Piece, gather};
use crate::running::Count;

/// Told to whoever brought readings.
pub(crate) type Outcome = Result<(), Untaken>;

/// What all of a stage's connections share.
#[derive(Clone)]
pub(crate) struct Passing {
    queue: Sender<Parcel<oneshot::Sender<Outcome>>>,
    pub(crate) next: Arc<Next>,
    pub(crate) counts: Arc<Counts>,
}

/// What became of the readings that came.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Whole ones that were taken from a connection.
    pub(crate) received: Count,
    /// Kept, and answered so.
    pub(crate) stored: Count,
    /// Of those, kept already.
    pub(crate) repeated: Count,
    /// Requests with what is no reading.
    pub(crate) refused: Count,
    /// Readings that were answered with a failure.
    pub(crate) failed: Count,
    /// Steps that the readings went on in.
    pub(crate) batches: Count,
}

impl Passing {
    /// The middle, and the task that does its work.
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

    /// Hands readings on, and returns when they are the next stage's.
    pub(crate) async fn take(&self, pieces: Vec<Piece>) -> Outcome {
        let answered = self.put(pieces).await;
        answered.await.unwrap_or_else(|_| Err(over()))
    }

    /// Hands readings on; what became of them comes later.
    pub(crate) async fn put(&self, pieces: Vec<Piece>) -> oneshot::Receiver<Outcome> {
        self.counts.received.add(pieces.len() as u64);
        let (ticket, answered) = oneshot::channel();
        // Nobody listens any more: the ticket goes with the parcel, and the receiver sees that.
        let _ = self.queue.send(Parcel { pieces, ticket }).await;
        answered
    }
}

/// The stage is ending.
pub(crate) fn over() -> Untaken {
    Untaken::Away("this stage is ending".to_owned())
}

async fn pass(
    mut waiting: Receiver<Parcel<oneshot::Sender<Outcome>>>,
    next: Arc<Next>,
    by: Gathering,
    hops: HopFile,
    counts: Arc<Counts>,
) {
    while let Some(parcels) = gather(&mut waiting, &by).await {
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
                // First: whoever reads that it is stored finds its hop.
                hops.note(&pieces, left, |number| kept.is_repeated(number));
                counts.stored.add(readings);
                counts.repeated.add(kept.repeats());
            }
            Err(_) => counts.failed.add(readings),
        }
        let outcome = outcome.map(|_| ());
        for ticket in tickets {
            // Whoever asked may be gone.
            let _ = ticket.send(outcome.clone());
        }
    }
}
