//! Queue of the next step of a stage: everything that arrives during a step goes together in the
//! next one.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::time::{Instant, timeout_at};
use weigh_model::Nanos;

/// One reading.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The reading as received.
    pub(crate) body: Bytes,
    /// Time at which the stage had all of it.
    pub(crate) arrived: Nanos,
}

/// Readings that came together, and the receiver of their result.
pub(crate) struct Parcel<T> {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) ticket: T,
}

/// Size of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Gathering {
    /// Maximum number of readings, from 1; readings that came together are never divided.
    pub batch: usize,
    /// Time that the first one may wait for others; 0 takes what is queued.
    pub linger: Duration,
}

impl Gathering {
    /// Maximum number of queued readings: two batches, so that the next one fills while one is in
    /// progress, and few enough that the queue does not hide a slow stage.
    pub(crate) fn room(&self) -> usize {
        (2 * self.batch).max(ROOM_MIN)
    }
}

/// The parcels of the next step; `None` once all senders are gone.
pub(crate) async fn gather<T>(
    queue: &mut Receiver<Parcel<T>>,
    by: &Gathering,
) -> Option<Vec<Parcel<T>>> {
    let first = queue.recv().await?;
    let mut count = first.pieces.len();
    let mut parcels = vec![first];
    // There is one thread: other tasks can send only after a yield.
    tokio::task::yield_now().await;
    let until = Instant::now() + by.linger;
    while count < by.batch {
        let next = match queue.try_recv() {
            Ok(parcel) => Some(parcel),
            Err(TryRecvError::Empty) if !by.linger.is_zero() => {
                timeout_at(until, queue.recv()).await.ok().flatten()
            }
            Err(_) => None,
        };
        let Some(parcel) = next else { break };
        count += parcel.pieces.len();
        parcels.push(parcel);
    }
    Some(parcels)
}

const ROOM_MIN: usize = 64;

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::channel;

    use super::*;

    fn parcel(pieces: usize, ticket: u32) -> Parcel<u32> {
        let piece = Piece { body: Bytes::new(), arrived: Nanos(0) };
        Parcel { pieces: vec![piece; pieces], ticket }
    }

    fn run(work: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work);
    }

    #[test]
    fn what_is_there_goes_together_up_to_the_batch() {
        run(async {
            let (sender, mut queue) = channel(10);
            for (pieces, ticket) in [(1, 1), (2, 2), (1, 3), (5, 4)] {
                sender.send(parcel(pieces, ticket)).await.unwrap();
            }
            drop(sender);
            let by = Gathering { batch: 3, linger: Duration::ZERO };
            let mut groups = Vec::new();
            while let Some(parcels) = gather(&mut queue, &by).await {
                groups.push(parcels.iter().map(|parcel| parcel.ticket).collect::<Vec<_>>());
            }
            assert_eq!(groups, [vec![1, 2], vec![3, 4]]);
        });
    }

    /// The second comes only after the first was taken: with a linger they go together, without
    /// they do not.
    #[test]
    fn a_linger_waits_for_others() {
        for (linger, expected) in [(Duration::from_secs(60), 2), (Duration::ZERO, 1)] {
            run(async {
                let (sender, mut queue) = channel(10);
                sender.send(parcel(1, 1)).await.unwrap();
                let later = tokio::spawn(async move {
                    for _ in 0..20 {
                        tokio::task::yield_now().await;
                    }
                    let _ = sender.send(parcel(1, 2)).await;
                });
                let by = Gathering { batch: 2, linger };
                let parcels = gather(&mut queue, &by).await.unwrap();
                assert_eq!(parcels.len(), expected, "{linger:?}");
                later.await.unwrap();
            });
        }
    }
}
