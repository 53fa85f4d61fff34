//! Observes a target on another host: an agent there that only answers requests for samples, and
//! its client here.
//!
//! They exchange lines of JSON (`page`) inside TLS 1.3. The agent makes a certificate when it
//! starts and prints its fingerprint with a token. The client accepts only that certificate, and
//! the agent only that token. No request can change anything there.

mod agent;
mod identity;
mod page;
mod visitor;
mod watch;

pub use agent::{Agent, Counted, Watched};
pub use identity::Token;
pub use visitor::{Looked, Visitor};
pub use watch::{AgentWatch, Seen, SoFar};

/// Errors between agent and client.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The agent cannot listen.
    #[error("cannot listen on {address}: {error}: choose another address or port")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The system's error.
        error: std::io::Error,
    },
    /// Certificate or token cannot be made.
    #[error("cannot make certificate and token: {0}")]
    Identity(String),
    /// The token could be guessed.
    #[error("invalid token: use {TOKEN_LETTERS_MIN} to {TOKEN_LETTERS_MAX} visible characters")]
    WeakToken,
    /// The agent's host cannot be resolved.
    #[error("unknown host {host}: {error}: check its name")]
    Unknown {
        /// Its name.
        host: String,
        /// The resolver's error.
        error: std::io::Error,
    },
    /// No agent answers.
    #[error("no agent answers: {0}: start weigh observe there, and allow TCP in the firewall")]
    Unreached(std::io::Error),
    /// The address has no token.
    #[error(
        "the token is missing: type all that weigh observe printed, including the part after #, \
        or set WEIGH_OBSERVE_TOKEN"
    )]
    NoToken,
    /// The agent presents another certificate.
    #[error(
        "its certificate does not match the given fingerprint: another agent answers, or the \
        agent was restarted; type what it prints now"
    )]
    OtherCertificate,
    /// The other side is not an agent.
    #[error("the server there is not weigh observe: {0}; type the address that it printed")]
    Stranger(String),
    /// The agent refuses.
    #[error("the agent refuses: {0}")]
    Refused(String),
    /// The subject is gone.
    #[error("{0}")]
    Gone(String),
    /// The connection broke, or no answer came in time.
    #[error("no answer from the agent: {0}; start weigh observe there again")]
    Silent(std::io::Error),
}

/// A token has at least 64 bits in hexadecimal digits.
pub(crate) const TOKEN_LETTERS_MIN: usize = 16;

/// A token fits into one line of the protocol.
pub(crate) const TOKEN_LETTERS_MAX: usize = 128;
