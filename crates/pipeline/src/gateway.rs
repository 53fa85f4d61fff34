//! The stage `gateway`: forwards messages from a broker to the API or directly to the store. It
//! acknowledges to the broker only what the next stage has confirmed; while that accepts nothing,
//! the gateway stops reading, and the broker keeps the messages.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, UnboundedSender, channel, unbounded_channel};
use tokio::sync::watch;
use tokio::time::timeout;
use weigh_model::hop::HopStage;

use crate::clock;
use crate::failed::Failed;
use crate::gateway_settings::GatewaySettings;
use crate::hop_file::HopFile;
use crate::link::Counts;
use crate::link::{Link, Ticket};
use crate::next::{Api, Next, Store, Untaken};
use crate::queue::{Gathering, Parcel, Piece, gather};
use crate::reading::Reading;
use crate::running::{GRACE, Ready, Running};

impl GatewaySettings {
    /// Starts it; it has subscribed when this returns.
    ///
    /// # Errors
    /// A next stage or a broker that cannot be reached, or that refuses.
    pub fn start(self) -> Result<Running, Failed> {
        Running::start(move |stop| async move {
            let hops = HopFile::open(HopStage::Gateway, self.hops.as_deref())?;
            let urge = hops.urge();
            let next = match &*self.to.scheme {
                "http" => Next::Api(Box::new(Api::connect(&self.to).await?)),
                _ => Next::Store(Store::connect(&self.to).await?),
            };
            let counts = Arc::new(Counts::default());
            let (queue, waiting) = channel(self.gathering.room());
            let (confirm, confirmed) = unbounded_channel();
            let (over, is_over) = watch::channel(false);
            let forwarding =
                Forwarding { next, hops, counts: Arc::clone(&counts), confirm, is_over };
            let mut working = tokio::spawn(forwarding.run(waiting, self.gathering));
            let mut link = Link::new(&self, queue, confirmed, Arc::clone(&counts));
            let granted = link.subscribe().await?;
            let counted = Arc::clone(&counts);
            let wanted = &self.filter;
            Ok(Ready {
                first_line: format!("forwarding from {} to {}", self.broker, self.to),
                settings_line: format!(
                    "{wanted} at QoS {granted}, session {}, at most {} readings in a call",
                    self.client_id, self.gathering.batch
                ),
                counts: Box::new(move || said(&counted)),
                hops: urge,
                work: Box::pin(async move {
                    link.run(stop, over).await;
                    // A next stage that hangs answers no call; unconfirmed messages stay with the
                    // broker.
                    if timeout(GRACE, &mut working).await.is_err() {
                        working.abort();
                        let _ = working.await;
                    }
                }),
            })
        })
    }
}

fn said(counts: &Counts) -> Value {
    json!({
        "stage": "gateway",
        "received": counts.received.get(),
        "redelivered": counts.redelivered.get(),
        "known": counts.known.get(),
        "forwarded": counts.forwarded.get(),
        "refused": counts.refused.get(),
        "acknowledged": counts.acknowledged.get(),
        "batches": counts.batches.get(),
        "retries": counts.retries.get(),
        "reconnects": counts.reconnects.get(),
    })
}

/// Forwards messages from the queue to the next stage: one call at a time, so that they are
/// confirmed in the order in which they came (MQTT 3.1.1, section 4.6).
struct Forwarding {
    next: Next,
    hops: HopFile,
    counts: Arc<Counts>,
    /// Confirmations, for the broker's connection.
    confirm: UnboundedSender<Vec<Ticket>>,
    /// True once the gateway is stopping.
    is_over: watch::Receiver<bool>,
}

impl Forwarding {
    async fn run(mut self, mut waiting: Receiver<Parcel<Ticket>>, by: Gathering) {
        while let Some(parcels) = gather(&mut waiting, &by).await {
            let mut pieces = Vec::with_capacity(parcels.len());
            let mut tickets = Vec::with_capacity(parcels.len());
            for Parcel { pieces: mut of_it, ticket } in parcels {
                // An API takes arrays, and one invalid reading would make the array invalid.
                if matches!(self.next, Next::Api(_)) {
                    of_it.retain(|piece| self.is_reading(&piece.body));
                }
                pieces.append(&mut of_it);
                tickets.push(ticket);
            }
            if !pieces.is_empty() && !self.hand_on(&pieces).await {
                return;
            }
            if self.confirm.send(tickets).is_err() {
                return;
            }
        }
    }

    fn is_reading(&self, body: &Bytes) -> bool {
        match Reading::parse(body) {
            Ok(_) => true,
            Err(reason) => {
                self.throw_away(&reason);
                false
            }
        }
    }

    /// Forwards readings until the next stage has accepted or rejected all; false if the gateway
    /// stopped before.
    async fn hand_on(&mut self, pieces: &[Piece]) -> bool {
        match self.call(pieces).await {
            Some(Ok(())) => return true,
            None => return false,
            // It does not name the invalid one; single calls find it.
            Some(Err(_)) if pieces.len() > 1 => {}
            Some(Err(reason)) => {
                self.throw_away(&reason);
                return true;
            }
        }
        for piece in pieces {
            match self.call(std::slice::from_ref(piece)).await {
                Some(Ok(())) => {}
                Some(Err(reason)) => self.throw_away(&reason),
                None => return false,
            }
        }
        true
    }

    /// Repeats a call until it is answered: accepted, or rejected with a reason. `None` if the
    /// gateway stopped.
    async fn call(&mut self, pieces: &[Piece]) -> Option<Result<(), String>> {
        let mut pause = PAUSE_MIN;
        loop {
            match self.next.take(pieces).await {
                Ok(_) => {
                    let left = clock::now();
                    self.hops.note(pieces, left, |_| false);
                    self.counts.forwarded.add(pieces.len() as u64);
                    self.counts.batches.add(1);
                    return Some(Ok(()));
                }
                Err(Untaken::Refused(reason)) => return Some(Err(reason)),
                Err(Untaken::Away(reason)) => {
                    if pause == PAUSE_MIN {
                        eprintln!("weigh serve gateway: {reason}; it tries again");
                    }
                    self.counts.retries.add(1);
                    let over = self.is_over.wait_for(|is_over| *is_over);
                    if timeout(pause, over).await.is_ok() {
                        return None;
                    }
                    pause = (2 * pause).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Discards readings that no next stage will accept, so that they do not return.
    fn throw_away(&self, reason: &str) {
        if self.counts.refused.get() < REASONS_MAX {
            eprintln!("weigh serve gateway: discarded: {reason}");
        }
        self.counts.refused.add(1);
    }
}

const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Maximum number of reasons that are shown; later ones are only counted.
const REASONS_MAX: u64 = 10;
