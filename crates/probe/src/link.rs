//! One connection: a socket that blocks, around the product's own connections and layers, which
//! turn bytes into signals.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

#[cfg(feature = "tls")]
use std::sync::Arc;

#[cfg(feature = "tls")]
use weigh_engine::layer::tls;
use weigh_engine::layer::websocket;
use weigh_model::Nanos;
use weigh_model::connection::{Connection, Emit, Fault, Op, Outbox, Reply, Signal, Ticket};
use weigh_model::protocol::{Dial, Lifetime, Role, Seat, Transport};
use weigh_protocols::urls;

use crate::reach::{Reach, SHORTEST, Trouble, random};

/// A connection to the server, and what came on it that has not been read yet.
pub struct Link {
    socket: TcpStream,
    connection: Box<dyn Connection>,
    /// Bytes of the protocol inside the layers.
    pub buffer: Vec<u8>,
    pub(crate) reach: Reach,
    opened: Instant,
    /// True once the layers stand.
    stands: bool,
    /// Reason for which nothing more will come.
    ended: Option<Trouble>,
    #[cfg(feature = "tls")]
    tally: Arc<tls::Tally>,
}

/// Makes connections without a protocol: what they send are bytes, and messages are the bytes that
/// came.
pub(crate) fn raw() -> Dial {
    Dial {
        transport: Transport::Stream,
        lifetime: Lifetime::Kept,
        confirms: false,
        is_answered: false,
        producer_of: None,
        make: Box::new(|_| Box::new(RawConnection)),
    }
}

impl Reach {
    /// Opens a connection inside the layers that the scheme names.
    ///
    /// # Errors
    /// Whatever prevents it.
    pub fn open(&self) -> Result<Link, Trouble> {
        Link::open(self, raw(), &[])
    }
}

impl Link {
    /// Opens a connection inside the layers that the scheme names. With TLS it offers `alpn`.
    ///
    /// # Errors
    /// Whatever prevents it.
    pub(crate) fn open(reach: &Reach, dial: Dial, alpn: &[&[u8]]) -> Result<Link, Trouble> {
        let dial = match urls::is_websocket(&reach.endpoint) {
            true => in_websocket(reach, dial),
            false => dial,
        };
        #[cfg(feature = "tls")]
        if let Some(choice) = &reach.tls {
            let alpn = alpn.iter().map(|name| name.to_vec()).collect();
            let (choice, tally) = (tls::ClientChoice { alpn, ..choice.clone() }, Arc::default());
            let dial = tls::secure_dial(dial, &choice, &tally);
            let dial = dial.map_err(|error| no_tls(&error.to_string()))?;
            return Ok(Link { tally, ..Link::bare(reach, &dial)? });
        }
        let _ = alpn;
        Link::bare(reach, &dial)
    }

    /// Opens a connection without layers.
    ///
    /// # Errors
    /// If the server does not accept it, or the connection cannot begin.
    pub(crate) fn bare(reach: &Reach, dial: &Dial) -> Result<Link, Trouble> {
        let mut link = Link {
            socket: reach.connect()?,
            connection: (dial.make)(Seat { index: 0, role: Role::Producer }),
            buffer: Vec::new(),
            reach: reach.clone(),
            opened: Instant::now(),
            stands: false,
            ended: None,
            #[cfg(feature = "tls")]
            tally: Arc::default(),
        };
        let until = reach.until()?;
        link.step(until, |connection, now, out, emit| {
            connection.open(now, out, emit);
            Ok(())
        })?;
        while !link.stands {
            link.turn(until)?;
        }
        Ok(link)
    }

    /// Sends all of `bytes`.
    ///
    /// # Errors
    /// If the server closed the connection, or does not take them before `until`.
    pub fn send(&mut self, bytes: &[u8], until: Instant) -> Result<(), Trouble> {
        self.step(until, |connection, now, out, _| {
            connection.send(&Op { ticket: Ticket(0), body: bytes }, now, out);
            Ok(())
        })
    }

    /// Waits for more bytes of the protocol inside, which are appended to the buffer.
    ///
    /// # Errors
    /// [`Trouble::Silent`] if none came before `until`; [`Trouble::Closed`] at the end.
    pub fn read(&mut self, until: Instant) -> Result<(), Trouble> {
        let before = self.buffer.len();
        while self.buffer.len() == before {
            self.turn(until)?;
        }
        Ok(())
    }

    /// Reads the socket once, and lets the connection answer.
    ///
    /// # Errors
    /// Why nothing came, or will come.
    pub(crate) fn turn(&mut self, until: Instant) -> Result<(), Trouble> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone());
        }
        let before = self.buffer.len();
        let turned = if self.connection.next_wake() == Some(Nanos(0)) {
            // A fault of opening can be reported only now.
            self.step(until, |connection, now, out, emit| connection.wake(now, out, emit))
        } else {
            let mut chunk = vec![0; CHUNK_BYTES];
            match self.read_socket(&mut chunk, until)? {
                0 => self.end(until),
                count => self.step(until, |connection, now, out, emit| {
                    connection.receive(&chunk[..count], now, out, emit).map(|_| ())
                }),
            }
        };
        match turned {
            Err(trouble) if self.buffer.len() > before => self.ended = Some(trouble),
            turned => turned?,
        }
        Ok(())
    }

    fn end(&mut self, until: Instant) -> Result<(), Trouble> {
        match self.step(until, |connection, _, _, emit| connection.end(&[], emit)) {
            Err(trouble) if !self.stands => Err(trouble),
            // There is no close_notify of TLS; the messages inside show whether something is
            // missing.
            _ => Err(closed()),
        }
    }

    /// One call of the connection: its signals are taken, and what it said is sent.
    fn step(
        &mut self,
        until: Instant,
        call: impl FnOnce(&mut dyn Connection, Nanos, &mut Outbox, Emit<'_>) -> Result<(), Fault>,
    ) -> Result<(), Trouble> {
        let Link { connection, buffer, stands, ended, .. } = self;
        let now = Nanos(self.opened.elapsed().as_nanos() as u64);
        let mut out = Outbox::default();
        let called = call(&mut **connection, now, &mut out, &mut |signal| match signal {
            Signal::Ready => *stands = true,
            Signal::Message { body, .. } => buffer.extend_from_slice(body),
            Signal::Closing => *ended = Some(closed()),
            _ => {}
        });
        let sent = self.write_socket(out.bytes(), until);
        called.map_err(|fault| self.trouble(fault)).and(sent)
    }

    fn trouble(&self, fault: Fault) -> Trouble {
        #[cfg(feature = "tls")]
        let has_tls = self.reach.tls.is_some();
        #[cfg(not(feature = "tls"))]
        let has_tls = false;
        match fault {
            Fault::Untrusted(text) if !self.stands => no_tls(&text),
            Fault::Ended(text) if !self.stands && has_tls => no_tls(&text),
            Fault::Ended(text) => Trouble::Closed(text),
            Fault::Untrusted(_) => Trouble::Closed(format!("the connection failed: {fault}")),
            Fault::Refused { reason, .. } => {
                // What follows is advice for a trial.
                Trouble::Refused(reason.split(';').next().unwrap_or_default().to_owned())
            }
            Fault::OtherProtocol(text) | Fault::Malformed(text) => Trouble::Foreign(text),
        }
    }

    fn write_socket(&mut self, bytes: &[u8], until: Instant) -> Result<(), Trouble> {
        // What answers something that came at the last moment may still leave.
        let until = until.max(Instant::now() + SHORTEST);
        let mut rest = bytes;
        while !rest.is_empty() {
            let _ = self.socket.set_write_timeout(Some(self.reach.turn(until)?));
            match self.socket.write(rest) {
                Ok(0) => return Err(closed()),
                Ok(count) => rest = &rest[count..],
                Err(error) if is_unfinished(&error) => {}
                Err(error) => return Err(broken(&error)),
            }
        }
        Ok(())
    }

    fn read_socket(&mut self, chunk: &mut [u8], until: Instant) -> Result<usize, Trouble> {
        loop {
            let _ = self.socket.set_read_timeout(Some(self.reach.turn(until)?));
            match self.socket.read(chunk) {
                Err(error) if is_unfinished(&error) => {}
                read => return read.map_err(|error| broken(&error)),
            }
        }
    }

    /// The protocol that was agreed on by ALPN, if any.
    pub(crate) fn alpn(&self) -> Option<String> {
        #[cfg(feature = "tls")]
        let negotiated = self.tally.figures().negotiated;
        #[cfg(not(feature = "tls"))]
        let negotiated: Option<String> = None;
        // Version, suite and protocol.
        negotiated?.split(' ').nth(2).map(str::to_owned)
    }

    /// Ends the connection without a word, as a process that dies does.
    pub fn cut(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// See [`raw`].
struct RawConnection;

impl Connection for RawConnection {
    fn open(&mut self, _now: Nanos, _out: &mut Outbox, emit: Emit<'_>) {
        emit(Signal::Ready);
    }

    fn room(&self) -> u32 {
        1
    }

    fn send(&mut self, op: &Op<'_>, _now: Nanos, out: &mut Outbox) -> Reply {
        out.put(op.body);
        Reply::None
    }

    fn receive(
        &mut self,
        input: &[u8],
        _now: Nanos,
        _out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        emit(Signal::Message { topic: b"", body: input });
        Ok(input.len())
    }

    fn end(&mut self, _rest: &[u8], emit: Emit<'_>) -> Result<(), Fault> {
        emit(Signal::Closing);
        Ok(())
    }
}

/// MQTT 5.0, section 6, names the subprotocol.
fn in_websocket(reach: &Reach, dial: Dial) -> Dial {
    let choice = websocket::ClientChoice {
        host: reach.endpoint.authority(),
        path: reach.path().to_owned(),
        subprotocol: "mqtt".to_owned(),
        seed: u64::from_be_bytes(random()),
    };
    websocket::wrap_dial(dial, &choice, &Default::default())
}

fn no_tls(why: &str) -> Trouble {
    Trouble::Foreign(format!("TLS did not come about: {why}"))
}

fn closed() -> Trouble {
    Trouble::Closed("the server closed the connection".to_owned())
}

/// Returns true if there was nothing to do yet: the socket was not ready, or a signal came that did
/// not end the probe (one that does is seen before the next turn).
fn is_unfinished(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn broken(error: &io::Error) -> Trouble {
    match error.kind() {
        ErrorKind::ConnectionReset => Trouble::Closed("the server reset the connection".to_owned()),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => closed(),
        _ => Trouble::Closed(format!("the connection failed: {error}")),
    }
}

const CHUNK_BYTES: usize = 64 * 1024;
