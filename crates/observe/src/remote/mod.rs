//! What a target on another host uses: an agent there that answers looks and nothing else, and
//! whoever asks it from here.
//!
//! The two speak lines of JSON (`page`) inside TLS 1.3. The agent makes a certificate when it
//! starts and prints its fingerprint with a token; the asker accepts that certificate and no other,
//! and the agent that token and no other. Nothing that is asked can change anything there.

mod agent;
mod identity;
mod page;
mod visitor;
mod watch;

pub use agent::{Agent, Counted, Watched};
pub use identity::Token;
pub use visitor::{Looked, Visitor};
pub use watch::{AgentWatch, Seen, SoFar};

/// What can keep two from speaking.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The agent cannot listen.
    #[error("cannot listen on {address}: {error}; choose another address or port")]
    Listen {
        /// Where.
        address: std::net::SocketAddr,
        /// Why.
        error: std::io::Error,
    },
    /// Certificate or token cannot be made.
    #[error("certificate and token cannot be made: {0}")]
    Identity(String),
    /// A token that somebody could guess.
    #[error("a token has {TOKEN_LETTERS_MIN} to {TOKEN_LETTERS_MAX} visible characters")]
    WeakToken,
    /// The host of an agent is not known.
    #[error("the host {host} is unknown: {error}; check its name")]
    Unknown {
        /// Its name.
        host: String,
        /// What the resolver says.
        error: std::io::Error,
    },
    /// Nobody answers.
    #[error("nobody is there: {0}; start weigh observe there, and let TCP through")]
    Unreached(std::io::Error),
    /// The address has no token.
    #[error(
        "the token is missing: type the whole of what weigh observe printed, with what stands \
         behind #, or set WEIGH_OBSERVE_TOKEN"
    )]
    NoToken,
    /// It shows another certificate.
    #[error(
        "it shows another certificate than the one whose fingerprint was given: that is not the \
         agent that printed it, or it was started anew; type what it prints now"
    )]
    OtherCertificate,
    /// Whoever is there speaks something else.
    #[error("whoever is there is no weigh observe: {0}")]
    Stranger(String),
    /// The agent says no.
    #[error("the agent refuses: {0}")]
    Refused(String),
    /// What it watched is gone.
    #[error("{0}")]
    Gone(String),
    /// The connection broke, or nothing came in time.
    #[error("the agent fell silent: {0}")]
    Silent(std::io::Error),
}

/// A token has at least 64 bits in hexadecimal digits.
pub(crate) const TOKEN_LETTERS_MIN: usize = 16;

/// A token fits into one line of the page.
pub(crate) const TOKEN_LETTERS_MAX: usize = 128;
