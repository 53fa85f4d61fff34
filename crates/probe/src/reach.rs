//! Access to a server, with time limits: every wait has an end.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[cfg(feature = "tls")]
use weigh_engine::layer::tls::ClientChoice;
use weigh_model::endpoint::Endpoint;

/// Server that is probed, and the time limits.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The URL: scheme, host and path, and who we are.
    pub endpoint: Endpoint,
    /// Address of its host.
    pub address: SocketAddr,
    /// Choices for TLS, if the scheme requires it.
    #[cfg(feature = "tls")]
    pub tls: Option<ClientChoice>,
    /// Time limit of a single answer.
    pub patience: Duration,
    /// Time limit of the whole probe.
    pub end: Instant,
    /// Set to true, it is over now.
    pub stop: Arc<AtomicBool>,
}

/// Reason for which something could not be found out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// No connection came about.
    #[error("{0}")]
    Unreachable(String),
    /// The server said no.
    #[error("{0}")]
    Refused(String),
    /// The server closed the connection, with its reason where it gave one.
    #[error("{0}")]
    Closed(String),
    /// Nothing came in time.
    #[error("no answer came within {} ms", .0.as_millis())]
    Silent(Duration),
    /// The answer is not in the expected protocol.
    #[error("{0}")]
    Foreign(String),
    /// A precondition of the question is missing.
    #[error("{0}")]
    Inapplicable(String),
    /// The time of the whole probe is over.
    #[error("the time of the probe was over")]
    OutOfTime,
}

impl Reach {
    /// A server that is asked over connections which bring their own layers: each answer within
    /// `patience`, all of them within four times that.
    pub fn of_layered(endpoint: Endpoint, address: SocketAddr, patience: Duration) -> Reach {
        Reach {
            endpoint,
            address,
            #[cfg(feature = "tls")]
            tls: None,
            patience,
            end: Instant::now() + 4 * patience,
            stop: Arc::default(),
        }
    }

    /// Returns the end of a wait that begins now.
    ///
    /// # Errors
    /// [`Trouble::OutOfTime`] once the whole probe is.
    pub fn until(&self) -> Result<Instant, Trouble> {
        let now = Instant::now();
        if now >= self.end || self.stop.load(Ordering::Relaxed) {
            return Err(Trouble::OutOfTime);
        }
        Ok(self.end.min(now + self.patience))
    }

    /// Returns how long a socket may block now: briefly, so that a stop is seen soon, and a server
    /// that sends or takes one byte after the other cannot hold the probe beyond `until`.
    ///
    /// # Errors
    /// [`Trouble::Silent`] from `until` on, [`Trouble::OutOfTime`] once the whole probe is over.
    pub(crate) fn turn(&self, until: Instant) -> Result<Duration, Trouble> {
        self.until()?;
        match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(Trouble::Silent(self.patience)),
            left => Ok(left.clamp(SHORTEST, TURN_MAX)),
        }
    }

    /// Pauses for a time that something at the server takes.
    ///
    /// # Errors
    /// [`Trouble::OutOfTime`] if it would not end in time.
    pub fn pause(&self, time: Duration) -> Result<(), Trouble> {
        let until = Instant::now() + time;
        if until >= self.end {
            return Err(Trouble::OutOfTime);
        }
        while !until.saturating_duration_since(Instant::now()).is_zero() {
            self.until()?;
            std::thread::sleep(until.saturating_duration_since(Instant::now()).min(TURN_MAX));
        }
        Ok(())
    }

    /// Connects a socket.
    ///
    /// # Errors
    /// If the server does not accept it.
    pub(crate) fn connect(&self) -> Result<TcpStream, Trouble> {
        let left = self.until()?.saturating_duration_since(Instant::now());
        let socket = TcpStream::connect_timeout(&self.address, left.max(SHORTEST));
        let socket = socket.map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused => Trouble::Unreachable(format!(
                "no process listens on {}: the connection was refused; check host and port",
                self.address
            )),
            ErrorKind::TimedOut | ErrorKind::WouldBlock => Trouble::Unreachable(format!(
                "{} did not take a connection within {} ms; check host and port",
                self.address,
                self.patience.as_millis()
            )),
            _ => Trouble::Unreachable(format!("{}: {error}; check host and port", self.address)),
        })?;
        socket.set_nodelay(true).map_err(|error| Trouble::Unreachable(error.to_string()))?;
        Ok(socket)
    }

    /// The path of the URL, at least a slash.
    pub fn path(&self) -> &str {
        if self.endpoint.path.is_empty() { "/" } else { &self.endpoint.path }
    }
}

/// A name that is not in use anywhere else.
pub fn unused_name() -> String {
    random::<4>().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns random bytes: keys of WebSocket, names that no other client has.
pub fn random<const BYTES: usize>() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    // Without chance names are only less surely our own.
    let _ = getrandom::fill(&mut bytes);
    bytes
}

/// The shortest timeout that a socket takes.
pub(crate) const SHORTEST: Duration = Duration::from_millis(1);

/// A stop is seen after so long at the latest.
const TURN_MAX: Duration = Duration::from_millis(50);
