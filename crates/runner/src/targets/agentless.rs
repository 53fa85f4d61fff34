//! In the place of agents where this program was built without TLS: asking for one is an error.

use std::net::SocketAddr;
use std::time::Duration;

use weigh_model::lookout::AgentAddress;
use weigh_observe::ObserveError;
use weigh_observe::sampler::Recording;
use weigh_observe::subject::Subject;

use crate::exit::Stop;
use crate::trial::news::Since;

/// There is none.
pub enum Remote {}

/// What came of it.
pub struct AgentReport {
    /// What was seen.
    pub recording: Option<Recording>,
    /// Words for the record, by key.
    pub words: Vec<(String, String)>,
    /// Why it ended early.
    pub failure: Option<String>,
}

/// Refuses.
pub fn visit(_address: &AgentAddress) -> Result<String, Stop> {
    Err(Stop::usage(REFUSED))
}

impl Remote {
    /// Refuses.
    pub fn start(_address: &AgentAddress, _period: Duration) -> Result<Remote, String> {
        Err(REFUSED.to_owned())
    }

    /// There is nobody.
    pub fn poke(&self) {
        match *self {}
    }

    /// There is nobody.
    pub fn so_far(&self) -> Since {
        match *self {}
    }

    /// There is nobody.
    pub fn stop(self) -> AgentReport {
        match self {}
    }
}

/// There is none.
pub enum Outpost {}

impl Outpost {
    /// Refuses.
    pub fn start(
        _listen: SocketAddr,
        _token: Option<&str>,
        _what: String,
        _begin: impl Fn() -> Result<Subject, ObserveError> + Send + Sync + 'static,
    ) -> Result<Outpost, Stop> {
        Err(Stop::usage(REFUSED))
    }

    /// There is nobody.
    pub fn address(&self) -> AgentAddress {
        match *self {}
    }

    /// There is nobody.
    pub fn counted(&self) -> (u64, u64) {
        match *self {}
    }
}

const REFUSED: &str =
    "weigh observe: this program was built without TLS; build it with --features tls";
