//! Client of an agent.

use std::io::{self, BufReader};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use crate::clocks::pair::Exchange;
use crate::cpu::monotonic_ns;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use weigh_model::lookout::AgentAddress;

use crate::remote::RemoteError;
use crate::remote::identity::{NAME, Pin, pinned};
use crate::remote::page::{self, Answer, PAGE, Question, Sight, Welcome};

/// A connection that an agent has accepted.
pub struct Visitor {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    welcome: Welcome,
}

/// A sample, with the times of request and answer on both clocks.
pub struct Looked {
    pub(crate) sight: Sight,
    pub(crate) exchange: Exchange,
}

impl Looked {
    /// Processor time of the subject since the connection, nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.sight.cpu_ns
    }
}

impl Visitor {
    /// Connects and sends the token.
    ///
    /// # Errors
    /// If no agent answers, if another server does, or if the agent refuses.
    pub fn visit(address: &AgentAddress) -> Result<Visitor, RemoteError> {
        let token = address.token.clone().ok_or(RemoteError::NoToken)?;
        let socket = connect(address)?;
        let (config, pin) = pinned(address.fingerprint)?;
        let name =
            ServerName::try_from(NAME).map_err(|error| RemoteError::Identity(error.to_string()))?;
        let connection = ClientConnection::new(config, name)
            .map_err(|error| RemoteError::Identity(error.to_string()))?;
        let mut stream = BufReader::new(StreamOwned::new(connection, socket));
        let hello = Question::Hello { page: PAGE, token };
        let answer = page::write(stream.get_mut(), &hello).and_then(|()| page::read(&mut stream));
        match answer.map_err(|error| unlike(error, &pin))? {
            Some(Answer::Welcome(welcome)) if welcome.page == PAGE => {
                Ok(Visitor { stream, welcome })
            }
            Some(Answer::Welcome(welcome)) => {
                let said = format!("it has version {} of the protocol", welcome.page);
                Err(RemoteError::Stranger(said))
            }
            Some(Answer::Refused(why)) => Err(RemoteError::Refused(why)),
            Some(Answer::Gone(why)) => Err(RemoteError::Gone(why)),
            Some(Answer::Seen(_)) => Err(RemoteError::Stranger("it sends a sample first".into())),
            None => Err(RemoteError::Refused("it closed the connection".to_owned())),
        }
    }

    /// Description of the subject, and version of the agent.
    pub fn what(&self) -> String {
        format!("{}, by weigh observe {}", self.welcome.what, self.welcome.version)
    }

    /// Cores that the subject may use.
    pub fn cores(&self) -> u32 {
        self.welcome.cores.max(1)
    }

    /// Requests a sample; `closely` with proportional memory.
    ///
    /// # Errors
    /// If the subject, the agent or the connection is gone.
    pub fn look(&mut self, closely: bool) -> Result<Looked, RemoteError> {
        let sent = monotonic_ns();
        page::write(self.stream.get_mut(), &Question::Look { closely }).map_err(silent)?;
        let answer: Option<Answer> = page::read(&mut self.stream).map_err(silent)?;
        let received = monotonic_ns();
        match answer {
            Some(Answer::Seen(sight)) => {
                let exchange = Exchange {
                    sent: sent as i64,
                    reached: sight.reached_ns as i64,
                    answered: sight.answered_ns as i64,
                    received: received as i64,
                };
                Ok(Looked { sight, exchange })
            }
            Some(Answer::Gone(why)) => Err(RemoteError::Gone(why)),
            Some(Answer::Refused(why)) => Err(RemoteError::Refused(why)),
            Some(Answer::Welcome(_)) => Err(RemoteError::Stranger("it greets again".to_owned())),
            None => Err(silent(io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

/// Error for an agent that closed the connection, in place of the library's words.
fn silent(error: io::Error) -> RemoteError {
    RemoteError::Silent(match error.kind() {
        kind @ io::ErrorKind::UnexpectedEof => io::Error::new(kind, "it closed the connection"),
        _ => error,
    })
}

/// Connects to the first of its addresses that accepts.
fn connect(address: &AgentAddress) -> Result<TcpStream, RemoteError> {
    let host = address.host.clone();
    let found = (&*address.host, address.port).to_socket_addrs();
    let found: Vec<SocketAddr> =
        found.map_err(|error| RemoteError::Unknown { host, error })?.collect();
    let mut failure: io::Error = io::ErrorKind::AddrNotAvailable.into();
    for own in found {
        match TcpStream::connect_timeout(&own, PATIENCE) {
            Ok(socket) => {
                let prepared = socket
                    .set_read_timeout(Some(PATIENCE))
                    .and_then(|()| socket.set_write_timeout(Some(PATIENCE)))
                    .and_then(|()| socket.set_nodelay(true));
                return prepared.map(|()| socket).map_err(RemoteError::Unreached);
            }
            Err(error) => failure = error,
        }
    }
    Err(RemoteError::Unreached(failure))
}

/// Why the first line did not arrive: what the server is, if known.
fn unlike(error: io::Error, pin: &Arc<Pin>) -> RemoteError {
    if pin.was_other() {
        return RemoteError::OtherCertificate;
    }
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            RemoteError::Stranger("it sends nothing".to_owned())
        }
        _ => RemoteError::Stranger(error.to_string()),
    }
}

/// Time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(5);
