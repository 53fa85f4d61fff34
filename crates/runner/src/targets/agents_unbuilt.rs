//! Replaces agents in a build without TLS: asking for one is an error.

use std::net::SocketAddr;
use std::time::Duration;

use weigh_model::lookout::AgentAddress;
use weigh_observe::ObserveError;
use weigh_observe::sampler::Recording;
use weigh_observe::subject::Subject;

use crate::exit::Stop;
use crate::trial::news::Since;

/// An agent, which this build does not have.
pub enum Remote {}

/// Results of an agent.
pub struct AgentReport {
    /// The observations.
    pub recording: Option<Recording>,
    /// Words for the record, by key.
    pub words: Vec<(String, String)>,
    /// Reason for which it ended early.
    pub failure: Option<String>,
}

/// Returns the error of a build without TLS.
///
/// # Errors
/// Always.
pub fn visit(_address: &AgentAddress) -> Result<String, Stop> {
    Err(Stop::usage(REFUSED))
}

impl Remote {
    /// Returns the error of a build without TLS.
    ///
    /// # Errors
    /// Always.
    pub fn start(_address: &AgentAddress, _period: Duration) -> Result<Remote, String> {
        Err(REFUSED.to_owned())
    }

    /// Never called: there is no agent.
    pub fn poke(&self) {
        match *self {}
    }

    /// Never called: there is no agent.
    pub fn so_far(&self) -> Since {
        match *self {}
    }

    /// Never called: there is no agent.
    pub fn stop(self) -> AgentReport {
        match self {}
    }
}

/// An agent, which this build does not have.
pub enum HostAgent {}

impl HostAgent {
    /// Returns the error of a build without TLS.
    ///
    /// # Errors
    /// Always.
    pub fn start(
        _listen: SocketAddr,
        _token: Option<&str>,
        _what: String,
        _begin: impl Fn() -> Result<Subject, ObserveError> + Send + Sync + 'static,
    ) -> Result<HostAgent, Stop> {
        Err(Stop::usage(REFUSED))
    }

    /// Never called: there is no agent.
    pub fn address(&self) -> AgentAddress {
        match *self {}
    }

    /// Never called: there is no agent.
    pub fn counted(&self) -> (u64, u64) {
        match *self {}
    }
}

const REFUSED: &str =
    "weigh observe: this program was built without TLS; build it with --features tls";
