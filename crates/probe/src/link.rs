//! One connection: a socket that blocks, around the product's own connections and layers, which
//! turn bytes into signals.

use std::time::{Duration, Instant};

#[cfg(feature = "tls")]
use std::sync::Arc;

#[cfg(feature = "tls")]
use weigh_engine::layer::tls;
use weigh_engine::layer::websocket;
use weigh_model::Nanos;
use weigh_model::connection::{Connection, Emit, Fault, Op, Outbox, Reply, Signal, Ticket};
use weigh_model::protocol::{Dial, Lifetime, Role, Seat, Transport};
use weigh_protocols::urls;

#[cfg(feature = "quic")]
use crate::quic_wire;
use crate::reach::{Reach, Trouble, random};
use crate::wire::{Wire, closed};

/// A connection to the server, and what came on it that has not been read yet.
pub struct Link {
    wire: Wire,
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
        #[cfg(feature = "quic")]
        if urls::is_quic(&reach.endpoint) {
            return Link::in_quic(reach, dial);
        }
        let dial = match urls::is_websocket(&reach.endpoint) {
            true => in_websocket(reach, dial),
            false => dial,
        };
        #[cfg(feature = "tls")]
        if let Some(choice) = &reach.tls {
            let alpn = alpn.iter().map(|name| name.to_vec()).collect();
            let (choice, tally) = (tls::ClientChoice { alpn, ..choice.clone() }, Arc::default());
            let dial = match upgrades(reach) {
                true => tls::upgrade_dial(dial, &choice, &tally),
                false => tls::secure_dial(dial, &choice, &tally),
            };
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
        Link::over(Wire::Tcp(reach.connect()?), reach, dial)
    }

    /// Opens a connection on one stream of QUIC.
    #[cfg(feature = "quic")]
    fn in_quic(reach: &Reach, dial: Dial) -> Result<Link, Trouble> {
        let tally = Arc::default();
        let dial = quic_wire::secured(reach, dial, MQTT_ALPN, &tally)?;
        let wire = Wire::Udp(quic_wire::bound(reach)?);
        Ok(Link { tally, ..Link::over(wire, reach, &dial)? })
    }

    fn over(wire: Wire, reach: &Reach, dial: &Dial) -> Result<Link, Trouble> {
        let mut link = Link {
            wire,
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
        })?;
        // QUIC sends when it is woken, and what does not fit into its window after the server has
        // confirmed something.
        while self.wire.is_udp() && (self.is_due() || self.connection.room() == 0) {
            self.turn(until)?;
        }
        Ok(())
    }

    /// True if a connection that keeps its own time is to be woken now.
    fn is_due(&self) -> bool {
        self.connection.next_wake().is_some_and(|at| at <= self.now())
    }

    fn now(&self) -> Nanos {
        Nanos(self.opened.elapsed().as_nanos() as u64)
    }

    /// Time until the connection is to be woken; over TCP it is only woken to report a fault.
    fn until_wake(&self) -> Option<Duration> {
        let at = self.connection.next_wake()?;
        Some(Duration::from_nanos(at.0.saturating_sub(self.now().0)))
    }

    /// True inside QUIC, where a connection that is not read confirms nothing.
    pub(crate) fn keeps_its_own_time(&self) -> bool {
        self.wire.is_udp()
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
        let is_due = match self.wire.is_udp() {
            true => self.is_due(),
            // A fault of opening can be reported only now.
            false => self.connection.next_wake() == Some(Nanos(0)),
        };
        let turned = if is_due {
            self.reach.turn(until)?;
            self.step(until, |connection, now, out, emit| connection.wake(now, out, emit))
        } else {
            let mut chunk = vec![0; CHUNK_BYTES];
            let left = self.until_wake();
            match self.wire.read(&mut chunk, &self.reach, (until, left))? {
                None => Ok(()),
                Some(0) => self.end(until),
                Some(count) => self.step(until, |connection, now, out, emit| {
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
        let now = self.now();
        let Link { wire, connection, buffer, stands, ended, reach, .. } = self;
        let mut out = Outbox::default();
        let called = call(&mut **connection, now, &mut out, &mut |signal| match signal {
            Signal::Ready => *stands = true,
            Signal::Message { body, .. } => buffer.extend_from_slice(body),
            Signal::Closing => *ended = Some(closed()),
            _ => {}
        });
        let sent = wire.send(&mut out, reach, until);
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

    /// Versions, and the protocol that was agreed on, in the layer's words; `None` without TLS.
    pub(crate) fn negotiated(&self) -> Option<String> {
        #[cfg(feature = "tls")]
        let negotiated = self.tally.figures().negotiated;
        #[cfg(not(feature = "tls"))]
        let negotiated: Option<String> = None;
        negotiated
    }

    /// The protocol that was agreed on by ALPN, if any.
    pub(crate) fn alpn(&self) -> Option<String> {
        // Version, suite and protocol.
        self.negotiated()?.split(' ').nth(2).map(str::to_owned)
    }

    /// Ends the connection without a word, as a process that dies does. QUIC would keep it for its
    /// idle time, so there the stream is ended, once the server has everything that was sent.
    pub fn cut(&mut self) {
        self.wire.shut();
        let Ok(until) = self.reach.until() else { return };
        if self.wire.is_udp() {
            let closed = self.step(until, |connection, _, out, _| {
                connection.close(out);
                Ok(())
            });
            let mut goes_on = closed.is_ok();
            self.ended = None;
            while goes_on && self.connection.is_parting() {
                goes_on = self.turn(until).is_ok();
            }
        }
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

/// True if the protocol of the URL upgrades to TLS behind the first line of the server.
#[cfg(feature = "tls")]
fn upgrades(reach: &Reach) -> bool {
    let known = urls::find(&reach.endpoint.scheme);
    known.is_some_and(|(protocol, _)| protocol.properties().upgrades_to_tls)
}

/// ALPN of MQTT over QUIC.
#[cfg(feature = "quic")]
const MQTT_ALPN: &[u8] = b"mqtt";

const CHUNK_BYTES: usize = 64 * 1024;
