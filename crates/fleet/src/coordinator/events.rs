//! What a trial of the coordinator waits for: messages of agents, and what its own requests gave.

use std::sync::mpsc::Sender;

use async_nats::Client;
use futures_util::StreamExt;

use super::hand::NotDone;
use crate::bus::Bus;
use crate::error::FleetError;
use crate::messages::{Answer, State, read};
use crate::subjects;

/// Something that happened.
pub enum Event {
    /// An agent's state.
    State(Box<State>),
    /// A report of a shard, as it came.
    Report(bytes::Bytes),
    /// An agent took its part, or not.
    Taken(Replied<Result<(), NotDone>>),
    /// An agent answered whether it can start at the moment that was named.
    Named(Replied<Result<Answer, String>>),
    /// An agent heard that all can, or not.
    Confirmed(Replied<Result<Answer, String>>),
    /// The trial is asked to stop.
    Stop,
}

/// What an agent replied in a trial.
pub struct Replied<T> {
    /// The trial.
    pub turn: u64,
    /// The agent.
    pub rank: u32,
    /// The reply.
    pub reply: T,
}

/// Forwards what the agents of a session publish, for as long as the bus is there.
///
/// # Errors
/// [`FleetError::Bus`] if the bus does not accept the subscription.
pub fn forward(bus: &Bus, session: &str, to: &Sender<Event>) -> Result<(), FleetError> {
    let state: fn(bytes::Bytes) -> Option<Event> =
        |bytes| Some(Event::State(Box::new(read(&bytes)?)));
    let report: fn(bytes::Bytes) -> Option<Event> = |bytes| Some(Event::Report(bytes));
    let all = [
        (subjects::state(bus.fleet(), session), state),
        (subjects::report(bus.fleet(), session), report),
    ];
    for (subject, event) in all {
        let client: &Client = bus.client();
        let heard = bus.wait(client.subscribe(subject));
        let failed =
            |error| FleetError::Bus(format!("the bus does not let agents be heard: {error}"));
        let mut heard = heard.map_err(failed)?;
        let to = to.clone();
        bus.spawn(async move {
            while let Some(message) = heard.next().await {
                // Nothing else ends it: the fleet holds the other end.
                if event(message.payload).is_some_and(|event| to.send(event).is_err()) {
                    return;
                }
            }
        });
    }
    Ok(())
}
