//! An agent that obeys this coordinator, and how it is asked for something.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;

use super::clock_watch::ClockWatch;
use super::trial_clocks::Clocked;
use crate::bus::{Bus, Unanswered, request};
use crate::clock::Estimate;
use crate::facts::AgentFacts;
use crate::messages::{Answer, Ask, What, read, written};
use crate::subjects;

/// An agent that obeys.
#[derive(Clone)]
pub struct Hand {
    /// Its rank.
    pub rank: u32,
    /// What it reported.
    pub facts: AgentFacts,
    /// Its clock.
    pub clock: Arc<ClockWatch>,
    /// How to reach it.
    pub line: Line,
    /// True once a trial was lost with it: it must show that it is there before the next.
    pub is_missed: bool,
}

/// How to reach an agent.
#[derive(Clone)]
pub struct Line {
    client: Client,
    subject: String,
    session: String,
}

/// Why an agent has not done something, to be read after its name.
pub enum NotDone {
    /// It does not want to, and would not the next time.
    Refused(String),
    /// It is not there, or not ready.
    Lost(String),
}

/// What an agent says that does not obey.
pub const STRANGER: &str = "it obeys another coordinator, or none";

impl Clocked for Hand {
    fn clock_at(&self, own_ns: i64) -> Option<Estimate> {
        self.clock.at(own_ns)
    }

    fn name(&self) -> String {
        format!("agent {} ({})", self.rank, self.facts.name)
    }
}

impl Line {
    /// The way from this session to an agent.
    pub fn new(bus: &Bus, agent: &str, session: &str) -> Line {
        Line {
            client: bus.client().clone(),
            subject: subjects::ask(bus.fleet(), agent),
            session: session.to_owned(),
        }
    }

    /// Asks once.
    pub async fn ask(&self, what: What, patience: Duration) -> Result<Answer, Unanswered> {
        let ask = Ask { session: self.session.clone(), what };
        let payload = written(&ask).into();
        let answer = request(&self.client, self.subject.clone(), payload, patience).await?;
        let foreign = "its answer is not understood: it is of another version".to_owned();
        Ok(read(&answer).unwrap_or(Answer::Refused(foreign)))
    }

    /// Asks again until the agent has done it, or `patience` is over. Every request may come
    /// twice, so one without an answer is repeated.
    ///
    /// # Errors
    /// Why it was not done.
    pub async fn insist(&self, what: What, patience: Duration) -> Result<(), NotDone> {
        let until = tokio::time::Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let last = match self.ask(what.clone(), left.min(ONCE)).await {
                Ok(Answer::Refused(reason)) => return Err(NotDone::Refused(reason)),
                Ok(Answer::Stranger) => return Err(NotDone::Lost(STRANGER.to_owned())),
                Ok(Answer::Later) => "it still ends the trial before".to_owned(),
                Ok(_) => return Ok(()),
                Err(Unanswered::Absent) => "it is not on the bus".to_owned(),
                Err(Unanswered::Silent) => "it does not answer".to_owned(),
            };
            if tokio::time::Instant::now() >= until {
                return Err(NotDone::Lost(last));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}

const ONCE: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(50);
