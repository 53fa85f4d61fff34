//! An agent on the bus: registered as a NATS service, with a task for each kind of message.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::service::{Service, ServiceExt};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;

use super::desk::{Desk, Todo};
use super::part::PartRun;
use crate::bus::{Bus, publish};
use crate::error::FleetError;
use crate::messages::{Answer, read, written};
use crate::{monotonic, subjects};

/// Registers an agent. Parts that it is to run are sent to `parts`.
pub fn register(
    bus: &Arc<Bus>,
    desk: &Arc<Desk>,
    id: &str,
    metadata: HashMap<String, String>,
    parts: UnboundedSender<Arc<PartRun>>,
) -> Result<Service, FleetError> {
    let failed = |error: &dyn std::fmt::Display| {
        FleetError::Bus(format!("the bus does not accept the agent: {error}"))
    };
    let (fleet, client) = (bus.fleet(), bus.client());
    bus.wait(async {
        let clock = client.subscribe(subjects::clock(fleet, id)).await;
        let clock = clock.map_err(|error| failed(&error))?;
        let whole = client.subscribe(subjects::whole(fleet, "*")).await;
        let whole = whole.map_err(|error| failed(&error))?;
        bus.spawn(answer_clocks(bus.client().clone(), Arc::clone(desk), clock));
        bus.spawn(hear_whole(Arc::clone(desk), whole));
        // What registers last can be found, and then all the others work.
        let service = client
            .service_builder()
            .description("makes load for weigh")
            .metadata(metadata)
            .start(subjects::SERVICE, env!("CARGO_PKG_VERSION"))
            .await
            .map_err(|error| failed(&error))?;
        let asked = service.endpoint_builder().name("ask").add(subjects::ask(fleet, id)).await;
        let asked = asked.map_err(|error| failed(&error))?;
        bus.spawn(answer_asks(Arc::clone(desk), asked, parts));
        client.flush().await.map_err(|error| failed(&error))?;
        Ok(service)
    })
}

/// Answers with the arrival of the question and the time of the answer. Nothing here waits.
async fn answer_clocks(
    client: async_nats::Client,
    desk: Arc<Desk>,
    mut questions: async_nats::Subscriber,
) {
    while let Some(question) = questions.next().await {
        let reached = monotonic::now_ns();
        let Some(reply) = question.reply else { continue };
        let is_obeyed = desk.hear_clock(&question.payload);
        let mut answer = Vec::with_capacity(17);
        answer.extend_from_slice(&reached.to_le_bytes());
        answer.extend_from_slice(&monotonic::now_ns().to_le_bytes());
        answer.push(u8::from(is_obeyed));
        let _ = client.publish(reply, Bytes::from(answer)).await;
    }
}

async fn hear_whole(desk: Arc<Desk>, mut messages: async_nats::Subscriber) {
    while let Some(message) = messages.next().await {
        let session = message.subject.split('.').nth_back(1).unwrap_or_default();
        if let Some(whole) = read(&message.payload) {
            desk.hear(session, whole);
        }
    }
}

async fn answer_asks(
    desk: Arc<Desk>,
    mut requests: async_nats::service::endpoint::Endpoint,
    parts: UnboundedSender<Arc<PartRun>>,
) {
    while let Some(request) = requests.next().await {
        let (answer, todo) = match read(&request.message.payload) {
            Some(ask) => desk.answer(ask),
            None => (Answer::Refused(NOT_UNDERSTOOD.to_owned()), Todo::Nothing),
        };
        if let Todo::Run(part) = todo {
            // The agent listens for as long as it runs.
            let _ = parts.send(part);
        }
        let _ = request.respond(Ok(written(&answer).into())).await;
    }
}

/// Listens to the states of all agents of a trial whose coordinator is gone.
async fn hear_peers(client: async_nats::Client, subject: String, part: Arc<PartRun>) {
    let Ok(mut states) = client.subscribe(subject).await else { return };
    while let Some(message) = states.next().await {
        if let Some(state) = read(&message.payload) {
            part.meeting.hear_peer(state, part.now());
        }
    }
}

/// Publishes the state of a part and its reports: at every change, and ten times a second.
pub async fn publish_part(client: async_nats::Client, fleet: String, part: Arc<PartRun>) {
    let state = subjects::state(&fleet, &part.session);
    let report = subjects::report(&fleet, &part.session);
    let mut published: Option<Instant> = None;
    let mut peers: Option<JoinHandle<()>> = None;
    loop {
        part.meeting.check_start(part.now());
        let is_alone = part.meeting.is_alone();
        if is_alone && peers.is_none() {
            let heard = hear_peers(client.clone(), state.clone(), Arc::clone(&part));
            peers = Some(tokio::spawn(heard));
        }
        let is_last = part.is_forgotten();
        let is_due = published.is_none_or(|published| published.elapsed() >= EVERY);
        if part.meeting.take_change() || is_due || is_last {
            published = Some(Instant::now());
            // Without a coordinator they would be sent for ever.
            let reports = if is_alone { Vec::new() } else { part.reports() };
            for message in reports {
                publish(&client, report.clone(), message.into()).await;
            }
            publish(&client, state.clone(), written(&part.state()).into()).await;
        }
        if is_last {
            if let Some(peers) = peers {
                peers.abort();
            }
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

const NOT_UNDERSTOOD: &str = "it does not understand the request: it is of another version";
/// Shards cannot wake the thread of the bus, and note arrivals thousands of times a second.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const EVERY: Duration = Duration::from_millis(100);
