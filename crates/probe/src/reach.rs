//! How a server is reached: connections of the probe's own, every wait with an end.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weigh_protocols::urls;

#[cfg(feature = "tls")]
use weigh_engine::layer::tls::ClientChoice;
use weigh_engine::layer::websocket::codec::{self, Control, Decoder, Opcode};
use weigh_engine::layer::websocket::upgrade::{self, Refusal, Upgrade};
use weigh_model::endpoint::Endpoint;

/// Who is probed, and how long anything may take.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The URL: scheme, host and path, and who we are.
    pub endpoint: Endpoint,
    /// What its host resolved to.
    pub address: SocketAddr,
    /// How TLS is spoken, where the scheme says so.
    #[cfg(feature = "tls")]
    pub tls: Option<ClientChoice>,
    /// How long a single answer is awaited.
    pub patience: Duration,
    /// When everything is over.
    pub end: Instant,
    /// Set to true, it is over now.
    pub stop: Arc<AtomicBool>,
}

/// Why something could not be found out.
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
    /// What came was not what is spoken here.
    #[error("{0}")]
    Foreign(String),
    /// What it takes to ask is not there.
    #[error("{0}")]
    Inapplicable(String),
    /// The time of the whole probe is over.
    #[error("the time of the probe was over")]
    OutOfTime,
}

impl Reach {
    /// When a wait that begins now must be over.
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

    fn wait(&self) -> Wait {
        Wait { patience: self.patience, end: self.end, stop: Arc::clone(&self.stop) }
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

    /// A connection, inside the layers that the scheme names.
    ///
    /// # Errors
    /// Whatever is in the way.
    pub fn open(&self) -> Result<Link, Trouble> {
        self.open_with(&[])
    }

    /// The same, offering these protocols by ALPN (RFC 7301) where there is TLS.
    ///
    /// # Errors
    /// Whatever is in the way.
    pub fn open_with(&self, alpn: &[&[u8]]) -> Result<Link, Trouble> {
        let socket = self.open_plain()?;
        let carrier = self.secure(socket, alpn)?;
        let mut link = Link { carrier, websocket: None, buffer: Vec::new(), wait: self.wait() };
        if urls::is_websocket(&self.endpoint) {
            link.upgrade(self)?;
        }
        Ok(link)
    }

    /// A connection without layers.
    ///
    /// # Errors
    /// If nobody takes it.
    pub fn open_plain(&self) -> Result<TcpStream, Trouble> {
        let left = self.until()?.saturating_duration_since(Instant::now());
        let socket = TcpStream::connect_timeout(&self.address, left.max(SHORTEST));
        let socket = socket.map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused => Trouble::Unreachable(format!(
                "nobody listens on {}: the connection was refused; check host and port",
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

    #[cfg(feature = "tls")]
    fn secure(&self, socket: TcpStream, alpn: &[&[u8]]) -> Result<Carrier, Trouble> {
        let Some(choice) = &self.tls else { return Ok(Carrier::Plain(socket)) };
        let wrong = |error: &dyn std::fmt::Display| {
            Trouble::Foreign(format!("TLS did not come about: {error}"))
        };
        let alpn = alpn.iter().map(|name| name.to_vec()).collect();
        let choice = ClientChoice { alpn, ..choice.clone() };
        let (config, name) = choice.config(&Default::default()).map_err(|error| wrong(&error))?;
        let session = rustls::ClientConnection::new(config, name).map_err(|error| wrong(&error))?;
        let mut stream = rustls::StreamOwned::new(session, socket);
        let (wait, until) = (self.wait(), self.until()?);
        while stream.conn.is_handshaking() || stream.conn.wants_write() {
            let left = wait.turn(until)?;
            let _ = stream.sock.set_read_timeout(Some(left));
            let _ = stream.sock.set_write_timeout(Some(left));
            match shake_hands(&mut stream) {
                Err(error) if is_unfinished(&error) => {}
                done => done.map_err(|error| wrong(&error))?,
            }
        }
        Ok(Carrier::Tls(Box::new(stream)))
    }

    #[cfg(not(feature = "tls"))]
    fn secure(&self, socket: TcpStream, _alpn: &[&[u8]]) -> Result<Carrier, Trouble> {
        Ok(Carrier::Plain(socket))
    }

    /// The host as requests name it (RFC 9110, section 7.2).
    pub fn authority(&self) -> String {
        let Endpoint { host, port, .. } = &self.endpoint;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        format!("{host}:{port}")
    }

    /// The path of the URL, at least a slash.
    pub fn path(&self) -> &str {
        if self.endpoint.path.is_empty() { "/" } else { &self.endpoint.path }
    }
}

/// One connection, and what came on it that nobody has read yet.
pub struct Link {
    carrier: Carrier,
    websocket: Option<Decoder>,
    /// Bytes of the protocol inside.
    pub buffer: Vec<u8>,
    wait: Wait,
}

/// When waiting is over, and why.
struct Wait {
    patience: Duration,
    end: Instant,
    stop: Arc<AtomicBool>,
}

impl Wait {
    /// How long a socket may block now: briefly, so that a stop is seen soon, and whoever sends or
    /// takes one byte after the other holds nobody beyond `until`.
    fn turn(&self, until: Instant) -> Result<Duration, Trouble> {
        let now = Instant::now();
        if now >= self.end || self.stop.load(Ordering::Relaxed) {
            return Err(Trouble::OutOfTime);
        }
        match until.saturating_duration_since(now) {
            Duration::ZERO => Err(Trouble::Silent(self.patience)),
            left => Ok(left.clamp(SHORTEST, TURN_MAX)),
        }
    }
}

/// What bytes go through.
enum Carrier {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream>),
}

#[cfg(feature = "tls")]
type TlsStream = rustls::StreamOwned<rustls::ClientConnection, TcpStream>;

impl Link {
    /// Sends all of `bytes`.
    ///
    /// # Errors
    /// If the server closed the connection, or does not take them before `until`.
    pub fn send(&mut self, bytes: &[u8], until: Instant) -> Result<(), Trouble> {
        if self.websocket.is_none() {
            return self.send_raw(bytes, until);
        }
        let mut frame = Vec::new();
        codec::put_frame(&mut frame, Opcode::Binary, Some(random()), bytes);
        self.send_raw(&frame, until)
    }

    fn send_raw(&mut self, bytes: &[u8], until: Instant) -> Result<(), Trouble> {
        // What answers something that came at the last moment may still leave.
        let until = until.max(Instant::now() + SHORTEST);
        let mut rest = bytes;
        while !rest.is_empty() || self.has_unsent() {
            let left = self.wait.turn(until)?;
            let _ = self.socket().set_write_timeout(Some(left));
            match self.send_some(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if is_unfinished(&error) => {}
                Err(error) => return Err(trouble(&error)),
            }
        }
        Ok(())
    }

    /// Whether TLS holds records that have not left yet.
    fn has_unsent(&self) -> bool {
        match &self.carrier {
            Carrier::Plain(_) => false,
            #[cfg(feature = "tls")]
            Carrier::Tls(stream) => stream.conn.wants_write(),
        }
    }

    /// One write; how much of `bytes` it took.
    fn send_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = match &mut self.carrier {
            Carrier::Plain(socket) => socket.write(bytes)?,
            #[cfg(feature = "tls")]
            Carrier::Tls(stream) if stream.conn.wants_write() => {
                return match stream.conn.write_tls(&mut stream.sock)? {
                    0 => Err(ErrorKind::BrokenPipe.into()),
                    _ => Ok(0),
                };
            }
            #[cfg(feature = "tls")]
            Carrier::Tls(stream) => stream.conn.writer().write(bytes)?,
        };
        if count == 0 { Err(ErrorKind::BrokenPipe.into()) } else { Ok(count) }
    }

    /// Waits for more bytes of the protocol inside, which are appended to the buffer.
    ///
    /// # Errors
    /// [`Trouble::Silent`] if none came before `until`; [`Trouble::Closed`] at the end.
    pub fn read(&mut self, until: Instant) -> Result<(), Trouble> {
        let before = self.buffer.len();
        while self.buffer.len() == before {
            let mut chunk = [0; CHUNK_BYTES];
            let count = self.read_raw(&mut chunk, until)?;
            if count == 0 {
                return Err(Trouble::Closed("the server closed the connection".to_owned()));
            }
            self.take(&chunk[..count], until)?;
        }
        Ok(())
    }

    fn read_raw(&mut self, chunk: &mut [u8], until: Instant) -> Result<usize, Trouble> {
        loop {
            let left = self.wait.turn(until)?;
            let _ = self.socket().set_read_timeout(Some(left));
            match self.try_read(chunk) {
                Ok(count) => return Ok(count),
                Err(error) if is_unfinished(&error) => {}
                Err(error) => return Err(trouble(&error)),
            }
        }
    }

    /// Hands over what came, without what WebSocket puts around it.
    fn take(&mut self, bytes: &[u8], until: Instant) -> Result<(), Trouble> {
        let Some(decoder) = &mut self.websocket else {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        };
        let (mut answer, mut closed) = (Vec::new(), None);
        let taken = decoder.take(bytes, &mut self.buffer, &mut |control| match control {
            Control::Ping(payload) => {
                codec::put_frame(&mut answer, Opcode::Pong, Some(random()), payload);
            }
            Control::Pong(_) => {}
            Control::Close(code, why) => {
                let code = code.map_or(String::new(), |code| format!(" with code {code}"));
                closed = Some(format!("the server closed the WebSocket{code}: {why}"));
            }
        });
        taken.map_err(|error| Trouble::Foreign(error.to_string()))?;
        self.send_raw(&answer, until)?;
        match closed {
            Some(text) if self.buffer.is_empty() => Err(Trouble::Closed(text)),
            _ => Ok(()),
        }
    }

    fn upgrade(&mut self, reach: &Reach) -> Result<(), Trouble> {
        let (key, until) = (random(), reach.until()?);
        let request = upgrade::request(&reach.authority(), reach.path(), SUBPROTOCOL, key);
        self.send(request.as_bytes(), until)?;
        loop {
            self.read(until)?;
            match upgrade::read_answer(&self.buffer, key, SUBPROTOCOL) {
                Ok(Upgrade::Unfinished) => {}
                Ok(Upgrade::Done(length, ())) => {
                    let rest = self.buffer.split_off(length);
                    self.buffer.clear();
                    self.websocket = Some(Decoder::new(false));
                    return self.take(&rest, until);
                }
                Err(Refusal::Status(status, reason)) => {
                    let text = format!("the upgrade to WebSocket was answered {status} {reason}");
                    return Err(Trouble::Refused(text));
                }
                Err(Refusal::OtherProtocol(text) | Refusal::Malformed(text)) => {
                    return Err(Trouble::Foreign(text));
                }
            }
        }
    }

    /// The protocol that was agreed on by ALPN, if any.
    pub fn alpn(&self) -> Option<Vec<u8>> {
        match &self.carrier {
            Carrier::Plain(_) => None,
            #[cfg(feature = "tls")]
            Carrier::Tls(stream) => stream.conn.alpn_protocol().map(<[u8]>::to_vec),
        }
    }

    /// What one read of the socket brings, without waiting where it is told not to;
    /// [`ErrorKind::WouldBlock`] also where that is a part of a record of TLS only.
    pub(crate) fn try_read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        match &mut self.carrier {
            Carrier::Plain(socket) => socket.read(chunk),
            #[cfg(feature = "tls")]
            Carrier::Tls(stream) => match read_record(stream, chunk) {
                // Without a goodbye of TLS; the messages inside say whether something is missing.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(0),
                read => read,
            },
        }
    }

    /// From now on nothing waits.
    #[cfg(feature = "library")]
    pub(crate) fn set_nonblocking(&self) -> io::Result<()> {
        self.socket().set_nonblocking(true)
    }

    /// Sends what can be sent without waiting; how much that was.
    #[cfg(feature = "library")]
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.carrier {
            Carrier::Plain(socket) => socket.write(bytes),
            #[cfg(feature = "tls")]
            Carrier::Tls(stream) => stream.write(bytes),
        }
    }

    /// Sends what is left of what was taken before.
    #[cfg(feature = "library")]
    pub(crate) fn try_flush(&mut self) -> io::Result<()> {
        match &mut self.carrier {
            Carrier::Plain(socket) => socket.flush(),
            #[cfg(feature = "tls")]
            Carrier::Tls(stream) => stream.flush(),
        }
    }

    /// Ends the connection without a word, as a process that dies does.
    pub fn cut(&mut self) {
        let _ = self.socket().shutdown(Shutdown::Both);
    }

    fn socket(&self) -> &TcpStream {
        match &self.carrier {
            Carrier::Plain(socket) => socket,
            #[cfg(feature = "tls")]
            Carrier::Tls(stream) => &stream.sock,
        }
    }
}

/// One write or one read of a handshake of TLS.
#[cfg(feature = "tls")]
fn shake_hands(stream: &mut TlsStream) -> io::Result<()> {
    let rustls::StreamOwned { conn, sock } = stream;
    if conn.wants_write() {
        return conn.write_tls(sock).map(|_| ());
    }
    if conn.read_tls(sock)? == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    process(conn, sock)
}

/// What is there of the protocol inside TLS, after one read of the socket at most.
#[cfg(feature = "tls")]
fn read_record(stream: &mut TlsStream, chunk: &mut [u8]) -> io::Result<usize> {
    let rustls::StreamOwned { conn, sock } = stream;
    match conn.reader().read(chunk) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        read => return read,
    }
    if conn.wants_write() {
        // What it does not take now leaves with the next turn.
        conn.write_tls(sock).or_else(|error| match is_unfinished(&error) {
            true => Ok(0),
            false => Err(error),
        })?;
    }
    conn.read_tls(sock)?;
    process(conn, sock)?;
    conn.reader().read(chunk)
}

/// Takes in what was read; where that is no TLS, the server is told, if it listens.
#[cfg(feature = "tls")]
fn process(conn: &mut rustls::ClientConnection, sock: &mut TcpStream) -> io::Result<()> {
    conn.process_new_packets().map(|_| ()).map_err(|error| {
        let _ = conn.write_tls(sock);
        io::Error::new(ErrorKind::InvalidData, error)
    })
}

/// Whether there was nothing to do yet: the socket was not ready, or a signal came that did not
/// end the probe (one that does is seen before the next turn).
fn is_unfinished(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn trouble(error: &io::Error) -> Trouble {
    match error.kind() {
        ErrorKind::ConnectionReset => Trouble::Closed("the server reset the connection".to_owned()),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => {
            Trouble::Closed("the server closed the connection".to_owned())
        }
        _ => Trouble::Closed(format!("the connection failed: {error}")),
    }
}

/// Bytes by chance: keys of WebSocket, names that nobody else has.
pub fn random<const BYTES: usize>() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    // Without chance names are only less surely our own.
    let _ = getrandom::fill(&mut bytes);
    bytes
}

/// The subprotocol of MQTT (MQTT 5.0, section 6).
const SUBPROTOCOL: &str = "mqtt";

/// The shortest timeout that a socket takes.
const SHORTEST: Duration = Duration::from_millis(1);

/// A stop is seen after so long at the latest.
const TURN_MAX: Duration = Duration::from_millis(50);

const CHUNK_BYTES: usize = 64 * 1024;
