//! Which agents there are: those that answer as the NATS service, whatever coordinator they obey.

use std::time::Duration;

use async_nats::service::Info;
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::{Instant, timeout_at};

use crate::bus::Bus;
use crate::messages::read;
use crate::subjects;

/// An agent that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its own name.
    pub id: String,
    /// Its rank, if it has one of its own.
    pub rank: Option<u32>,
    /// Name of its host.
    pub host: String,
    /// Its version and commit.
    pub version: String,
}

/// Asks for all agents of the fleet, and takes what answers within a moment; by their names.
pub fn discover(bus: &Bus) -> Vec<Found> {
    bus.wait(async {
        let client = bus.client();
        let inbox = client.new_inbox();
        let Ok(mut answers) = client.subscribe(inbox.clone()).await else { return Vec::new() };
        let question = format!("$SRV.INFO.{}", subjects::SERVICE);
        if client.publish_with_reply(question, inbox, Bytes::new()).await.is_err() {
            return Vec::new();
        }
        let (until, mut found) = (Instant::now() + MOMENT, Vec::new());
        while let Ok(Some(answer)) = timeout_at(until, answers.next()).await {
            found.extend(read::<Info>(&answer.payload).and_then(|info| of(&info, bus.fleet())));
        }
        found.sort_by(|a: &Found, b: &Found| a.id.cmp(&b.id));
        found.dedup();
        found
    })
}

/// The agent that the answer is from; `None` if it is of another fleet.
fn of(info: &Info, fleet: &str) -> Option<Found> {
    let known = |key: &str| info.metadata.get(key).cloned();
    if known("fleet")? != fleet {
        return None;
    }
    Some(Found {
        id: known("id")?,
        rank: known("rank").and_then(|rank| rank.parse().ok()),
        host: known("host")?,
        version: known("version")?,
    })
}

const MOMENT: Duration = Duration::from_millis(300);
