//! An agent: registers on the bus, obeys one coordinator at a time, makes its part of the load.

mod desk;
mod options;
mod outbox;
mod part;
mod service;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::unbounded_channel;

use crate::bus::Bus;
use crate::error::FleetError;
use crate::fresh_name::fresh_name;
use desk::Desk;
pub use options::{AgentOptions, Material, Workshop, scheduled_rank};
use part::PartRun;

/// An agent that is connected to the bus.
pub struct Agent {
    bus: Arc<Bus>,
    options: Arc<AgentOptions>,
    rank: Option<u32>,
    workshop: Arc<dyn Workshop>,
}

/// Why an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentEnd {
    /// It was asked to stop.
    Stopped,
    /// It was to take part in one run, which is over.
    RunOver,
}

impl Agent {
    /// Connects to the bus.
    ///
    /// # Errors
    /// Those of [`Bus::connect`](crate::Bus::connect); [`FleetError::Options`] if the scheduler's
    /// rank is not a number.
    pub fn new(options: AgentOptions, workshop: Arc<dyn Workshop>) -> Result<Agent, FleetError> {
        let rank = match options.rank {
            Some(rank) => Some(rank),
            None => scheduled_rank()?,
        };
        let bus = Bus::connect(&options.bus)?;
        Ok(Agent { bus, options: Arc::new(options), rank, workshop })
    }

    /// Registers, and runs parts of trials until `stop` is set, or until the first run is over if
    /// that was asked for; returns which of the two it was. `say` gets a sentence about everything
    /// that happens. A part that runs when `stop` is set fails.
    ///
    /// # Errors
    /// If the bus does not accept the registration.
    pub fn run(
        &self,
        stop: &AtomicBool,
        say: &(dyn Fn(&str) + Sync),
    ) -> Result<AgentEnd, FleetError> {
        let (news, heard) = channel();
        let (parts, mut taken) = unbounded_channel();
        let AgentOptions { facts, version, .. } = &*self.options;
        let desk = Desk::new(version.clone(), facts.clone(), self.bus.is_private(), news);
        let id = fresh_name();
        let service = service::register(&self.bus, &desk, &id, self.metadata(&id), parts)?;
        say(&format!("registered as {id} with fleet {}; free", self.bus.fleet()));
        let mut running: Vec<JoinHandle<()>> = Vec::new();
        let mut closing = None;
        let end = loop {
            while let Ok(part) = taken.try_recv() {
                running.extend(self.start(part));
            }
            heard.try_iter().for_each(|text| say(&text));
            running.retain(|thread| !thread.is_finished());
            desk.look_around();
            if stop.load(Ordering::SeqCst) {
                let since = *closing.get_or_insert_with(Instant::now);
                // The coordinator is to hear of it.
                if desk.close() || since.elapsed() > CLOSE_PATIENCE {
                    break AgentEnd::Stopped;
                }
            } else if self.options.once && desk.has_served() {
                break AgentEnd::RunOver;
            }
            thread::sleep(LOOK_EVERY);
        };
        // State of the part that failed, and the goodbye, leave before the connection ends.
        self.bus.wait(async {
            tokio::time::sleep(CLOSE_DELAY).await;
            let _ = service.stop().await;
        });
        heard.try_iter().for_each(|text| say(&text));
        Ok(end)
    }

    /// Starts a part in a thread of its own.
    fn start(&self, part: Arc<PartRun>) -> Option<JoinHandle<()>> {
        let (client, fleet) = (self.bus.client().clone(), self.bus.fleet().to_owned());
        self.bus.spawn(service::publish_part(client, fleet, Arc::clone(&part)));
        let (bus, options) = (Arc::clone(&self.bus), Arc::clone(&self.options));
        let (workshop, run) = (Arc::clone(&self.workshop), Arc::clone(&part));
        let started = thread::Builder::new()
            .name("weigh-part".to_owned())
            .spawn(move || run.run(&bus, &options, &workshop));
        match started {
            Ok(thread) => Some(thread),
            Err(error) => {
                part.fail_unstarted(&format!("no thread for a part: {error}"));
                None
            }
        }
    }

    /// What a coordinator, or `nats micro info`, sees of an agent that is registered.
    fn metadata(&self, id: &str) -> HashMap<String, String> {
        let AgentOptions { facts, version, allow, .. } = &*self.options;
        let rank = self.rank.map(|rank| rank.to_string()).unwrap_or_default();
        let known = [
            ("fleet", self.bus.fleet().to_owned()),
            ("id", id.to_owned()),
            ("rank", rank),
            ("host", facts.name.clone()),
            ("version", version.clone()),
            ("cores", facts.host.cores.to_string()),
            ("memory_bytes", facts.host.memory_bytes.to_string()),
            ("descriptors", facts.descriptors.to_string()),
            ("ports", facts.ports.to_string()),
            ("baseline_per_s", facts.baseline_per_s.map_or_else(String::new, whole)),
            ("findings", facts.findings.join("; ")),
            ("may_load", allow.to_string()),
        ];
        known.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// A rate without decimal places.
fn whole(rate: f64) -> String {
    format!("{rate:.0}")
}

const LOOK_EVERY: Duration = Duration::from_millis(20);
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);
const CLOSE_DELAY: Duration = Duration::from_millis(150);
