//! Observes a target on another host through the agent there; and runs that agent.

use std::net::SocketAddr;
use std::time::Duration;

use weigh_model::lookout::AgentAddress;
use weigh_observe::ObserveError;
use weigh_observe::remote::{Agent, AgentWatch, Token, Visitor, Watched};
use weigh_observe::sampler::Recording;
use weigh_observe::subject::Subject;

use crate::exit::{Exit, Stop};
use crate::trial::news::{Since, SoFar};

/// A target that is observed through an agent.
pub struct Remote {
    watch: AgentWatch,
    what: String,
}

/// Results of an agent.
pub struct AgentReport {
    /// The observations, on the local clock.
    pub recording: Option<Recording>,
    /// Words for the record, by key.
    pub words: Vec<(String, String)>,
    /// Reason for which it ended early, if it did.
    pub failure: Option<String>,
}

/// Asks an agent for access; returns what it observes.
///
/// # Errors
/// An agent that cannot be reached or denies access.
pub fn visit(address: &AgentAddress) -> Result<String, Stop> {
    let visitor = Visitor::visit(address);
    let visitor = visitor
        .map_err(|error| Stop::new(Exit::Target, format!("--observe {address}: {error}")))?;
    Ok(visitor.what())
}

impl Remote {
    /// Starts to observe, every `period`.
    ///
    /// # Errors
    /// An agent that cannot be reached or denies access, in words.
    pub fn start(address: &AgentAddress, period: Duration) -> Result<Remote, String> {
        let visitor = Visitor::visit(address).map_err(|error| error.to_string())?;
        let what = visitor.what();
        let watch = AgentWatch::start(visitor, period).map_err(|error| error.to_string())?;
        Ok(Remote { watch, what })
    }

    /// Asks for a sample now, without waiting for it.
    pub fn poke(&self) {
        self.watch.poke();
    }

    /// Reads the samples so far.
    pub fn so_far(&self) -> Since {
        let so_far = self.watch.so_far();
        Box::new(move |from_ns| match so_far.since(from_ns) {
            Some(recording) => SoFar::Seen(recording),
            None if so_far.has_ended() => SoFar::Nothing,
            None => SoFar::NotYet,
        })
    }

    /// Stops.
    pub fn stop(self) -> AgentReport {
        let seen = self.watch.stop();
        let mut words = vec![("target.watched".to_owned(), self.what)];
        let bound = seen.clock_bound_ns.map(|bound| format!("{:.3}ms", bound as f64 / 1e6));
        words.extend(bound.map(|bound| ("target.watched.clock_bound".to_owned(), bound)));
        let share = seen.agent_share.map(|share| format!("{:.2}% of a core", 100.0 * share));
        words.extend(share.map(|share| ("target.watched.agent_cpu".to_owned(), share)));
        let failure = seen.failure.map(|failure| failure.to_string());
        AgentReport { recording: seen.recording, words, failure }
    }
}

/// An agent that answers in its own threads until the program ends.
pub struct HostAgent(Agent);

impl HostAgent {
    /// Starts to listen. Makes a token if none is given.
    ///
    /// # Errors
    /// An invalid token; an address on which it cannot listen.
    pub fn start(
        listen: SocketAddr,
        token: Option<&str>,
        what: String,
        begin: impl Fn() -> Result<Subject, ObserveError> + Send + Sync + 'static,
    ) -> Result<HostAgent, Stop> {
        let token = token.map_or_else(Token::make, Token::given).map_err(Stop::usage)?;
        let watched = Watched { what, begin: Box::new(begin) };
        Agent::start(listen, token, watched, env!("CARGO_PKG_VERSION"))
            .map(HostAgent)
            .map_err(|error| Stop::new(Exit::Target, error))
    }

    /// Its address, with the token.
    pub fn address(&self) -> AgentAddress {
        self.0.address()
    }

    /// Number of samples that it returned, and of clients that it rejected.
    pub fn counted(&self) -> (u64, u64) {
        let counted = self.0.counted();
        (counted.looks, counted.refused)
    }
}
