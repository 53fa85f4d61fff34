//! The agent: accepts connections inside TLS, checks the token, and answers requests for samples
//! of one subject, at a limited rate.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::ObserveError;
use crate::cpu::{monotonic_ns, own_process_ns};
use crate::subject::{Look, Subject};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use weigh_model::lookout::AgentAddress;

use crate::remote::RemoteError;
use crate::remote::identity::{Token, agent_identity};
use crate::remote::page::{self, Answer, PAGE, Question, Sight, Welcome};

/// The subject: in words, and how to start a sampler of it.
pub struct Watched {
    /// Description of the subject, sent to clients.
    pub what: String,
    /// Starts a sampler of it, for each client.
    pub begin: Box<dyn Fn() -> Result<Subject, ObserveError> + Send + Sync>,
}

/// Counts of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Samples that it sent.
    pub looks: u64,
    /// Clients that it rejected.
    pub refused: u64,
}

/// A listening agent.
pub struct Agent {
    address: SocketAddr,
    fingerprint: [u8; 32],
    token: Token,
    desk: Arc<Desk>,
}

/// State shared by all connections.
struct Desk {
    config: Arc<ServerConfig>,
    token: Token,
    watched: Watched,
    version: &'static str,
    visitors: AtomicUsize,
    looks: AtomicU64,
    refused: AtomicU64,
}

impl Agent {
    /// Listens, and answers in its own threads from now on.
    ///
    /// # Errors
    /// If the address is in use, or certificate and threads cannot be made.
    pub fn start(
        listen: SocketAddr,
        token: Token,
        watched: Watched,
        version: &'static str,
    ) -> Result<Agent, RemoteError> {
        let (config, fingerprint) = agent_identity()?;
        let failed = |error| RemoteError::Listen { address: listen, error };
        let listener = TcpListener::bind(listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let desk = Arc::new(Desk {
            config,
            token: token.clone(),
            watched,
            version,
            visitors: AtomicUsize::new(0),
            looks: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        let own = Arc::clone(&desk);
        let accept = move || take_in(&own, &listener);
        let started = std::thread::Builder::new().name("weigh-observe".to_owned()).spawn(accept);
        started.map_err(|error| RemoteError::Identity(error.to_string()))?;
        Ok(Agent { address, fingerprint, token, desk })
    }

    /// Its address, certificate and token.
    pub fn address(&self) -> AgentAddress {
        AgentAddress {
            host: self.address.ip().to_string(),
            port: self.address.port(),
            fingerprint: self.fingerprint,
            token: Some(self.token.text().to_owned()),
        }
    }

    /// Counts up to now.
    pub fn counted(&self) -> Counted {
        Counted {
            looks: self.desk.looks.load(Ordering::Relaxed),
            refused: self.desk.refused.load(Ordering::Relaxed),
        }
    }
}

fn take_in(desk: &Arc<Desk>, listener: &TcpListener) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Without descriptors the next accept would fail as well, at once.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        if desk.visitors.fetch_add(1, Ordering::Relaxed) >= VISITORS_MAX {
            desk.leave(true);
            continue;
        }
        let own = Arc::clone(desk);
        let visit = move || {
            let is_refused = own.serve(stream).is_err();
            own.leave(is_refused);
        };
        if std::thread::Builder::new().name("weigh-visitor".to_owned()).spawn(visit).is_err() {
            desk.leave(true);
        }
    }
}

type Stream = BufReader<StreamOwned<ServerConnection, Timed>>;

/// A socket whose client has a limited time for all reads and writes together.
struct Timed {
    socket: TcpStream,
    /// `None`: each read may take [`IDLE_MAX`], each write [`HELLO_WITHIN`].
    end: Option<Instant>,
}

impl Timed {
    /// How long the socket may block now.
    fn left(&self, each: Duration) -> io::Result<Duration> {
        let Some(end) = self.end else { return Ok(each) };
        match end.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(left),
        }
    }
}

impl Read for Timed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(self.left(IDLE_MAX)?))?;
        self.socket.read(bytes)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.left(HELLO_WITHIN)?))?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

impl Desk {
    fn leave(&self, is_refused: bool) {
        self.visitors.fetch_sub(1, Ordering::Relaxed);
        self.refused.fetch_add(u64::from(is_refused), Ordering::Relaxed);
    }

    /// Serves one client to the end. An error is a client that was rejected.
    fn serve(&self, socket: TcpStream) -> io::Result<()> {
        let end = Some(Instant::now() + HELLO_WITHIN);
        socket.set_nodelay(true)?;
        let connection =
            ServerConnection::new(Arc::clone(&self.config)).map_err(io::Error::other)?;
        let mut stream = BufReader::new(StreamOwned::new(connection, Timed { socket, end }));
        let hello: Option<Question> = page::read(&mut stream)?;
        if let Err(reason) = self.admit(hello) {
            // Each wrong token delays the next attempt.
            std::thread::sleep(REFUSED_AFTER);
            say(&mut stream, &Answer::Refused(reason.to_owned()))?;
            return Err(io::Error::other(reason));
        }
        stream.get_mut().sock.end = None;
        let mut subject = match (self.watched.begin)() {
            Ok(subject) => subject,
            Err(error) => return say(&mut stream, &Answer::Gone(error.to_string())),
        };
        let welcome = Welcome {
            page: PAGE,
            version: self.version.to_owned(),
            what: self.watched.what.clone(),
            cores: subject.cores(),
        };
        say(&mut stream, &Answer::Welcome(welcome))?;
        let mut free = Instant::now();
        // Data after a correct greeting is not counted as an attempt.
        while let Ok(Some(question)) = page::read::<Question>(&mut stream) {
            let Question::Look { closely } = question else { break };
            let reached_ns = monotonic_ns();
            std::thread::sleep(free.saturating_duration_since(Instant::now()));
            free = Instant::now() + BETWEEN_LOOKS;
            let at_ns = monotonic_ns();
            let look = subject.look(closely);
            if look.is_gone {
                let gone = format!("{} has ended", self.watched.what);
                return say(&mut stream, &Answer::Gone(gone));
            }
            self.looks.fetch_add(1, Ordering::Relaxed);
            say(&mut stream, &Answer::Seen(sight(&look, reached_ns, at_ns)))?;
        }
        Ok(())
    }

    fn admit(&self, hello: Option<Question>) -> Result<(), &'static str> {
        match hello {
            Some(Question::Hello { page, .. }) if page != PAGE => {
                Err("it has another version of the protocol: use one version of weigh on both")
            }
            Some(Question::Hello { token, .. }) if self.token.is(&token) => Ok(()),
            Some(Question::Hello { .. }) => Err("wrong token: type the one it printed"),
            _ => Err("the first line must be a hello"),
        }
    }
}

fn sight(look: &Look, reached_ns: u64, at_ns: u64) -> Sight {
    Sight {
        reached_ns,
        at_ns,
        cpu_ns: look.reading.cpu_ns,
        processes: look.reading.processes,
        threads: look.reading.threads,
        rss_bytes: look.memory.rss_bytes,
        pss_bytes: look.memory.pss_bytes,
        accounting: look.reading.accounting,
        host: crate::cpu::HostCpu::read().unwrap_or_default(),
        own_cpu_ns: own_process_ns(),
        answered_ns: monotonic_ns(),
    }
}

fn say(stream: &mut Stream, answer: &Answer) -> io::Result<()> {
    page::write(stream.get_mut(), answer)
}

/// Connections at the same time: a generator has one or two.
const VISITORS_MAX: usize = 8;

/// At most 200 samples a second for each client.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Time for handshake and token together, which take some round trips.
const HELLO_WITHIN: Duration = Duration::from_secs(5);

/// A client that sends nothing for this time has gone.
const IDLE_MAX: Duration = Duration::from_secs(120);

/// With eight clients at once, at most sixteen guesses a second, of 128 bits.
const REFUSED_AFTER: Duration = Duration::from_millis(500);
