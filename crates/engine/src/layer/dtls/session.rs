//! One end of one DTLS session: datagrams in, datagrams and plain datagrams out.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use dimpl::{Dtls, Error, Output, ProtocolVersion};
use weigh_model::Nanos;
use weigh_model::connection::{Fault, Outbox};

use super::reasons;
use crate::layer::datagrams::{Clock, DatagramSession};
use crate::layer::tls::{Finished, Tally};

/// Judges the certificate of the peer, in DER.
pub(super) type Check = Arc<dyn Fn(&[u8]) -> Result<(), Fault> + Send + Sync>;

/// A session of either side.
pub(super) struct Session {
    dtls: Dtls,
    clock: Clock,
    began: Nanos,
    phase: Phase,
    /// When the library wants to be woken.
    wake: Option<Nanos>,
    check: Check,
    /// Bytes of the handshake, sent and received.
    handshake: (u64, u64),
    /// Bytes after it: in datagrams, and of the protocol inside.
    sent: (u64, u64),
    received: (u64, u64),
    has_peer_closed: bool,
    tally: Arc<Tally>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Shaking,
    Standing,
    Over,
}

/// Reason for which a session ended.
pub(super) enum Wrong {
    /// The library's.
    Library(Error),
    /// The peer's certificate was refused.
    Peer(Fault),
}

impl Session {
    pub(super) fn new(
        dtls: Dtls,
        clock: Clock,
        began: Nanos,
        check: Check,
        tally: Arc<Tally>,
    ) -> Session {
        Session {
            dtls,
            clock,
            began,
            phase: Phase::Shaking,
            wake: None,
            check,
            handshake: (0, 0),
            sent: (0, 0),
            received: (0, 0),
            has_peer_closed: false,
            tally,
        }
    }

    /// Calls the library; after an error the session is over.
    fn guarded(
        &mut self,
        call: impl FnOnce(&mut Dtls, Instant) -> Result<(), Error>,
        now: Nanos,
    ) -> Result<(), Wrong> {
        call(&mut self.dtls, self.clock.at(now)).map_err(|error| {
            self.phase = Phase::Over;
            self.wake = None;
            Wrong::Library(error)
        })
    }

    /// Takes everything that the library has to say.
    fn drain(&mut self, now: Nanos, plain: &mut Outbox, wire: &mut Outbox) -> Result<bool, Wrong> {
        let was_shaking = self.phase == Phase::Shaking;
        let mut buffer = BUFFER.take();
        buffer.resize(buffer.len().max(BUFFER_BYTES), 0);
        let result = self.poll(&mut buffer, now, was_shaking, plain, wire);
        BUFFER.set(buffer);
        if result.is_err() {
            self.phase = Phase::Over;
            self.wake = None;
        }
        result?;
        let stands = was_shaking && self.phase == Phase::Standing;
        if stands {
            self.tell(now);
        }
        Ok(stands)
    }

    fn poll(
        &mut self,
        buffer: &mut Vec<u8>,
        now: Nanos,
        was_shaking: bool,
        plain: &mut Outbox,
        wire: &mut Outbox,
    ) -> Result<(), Wrong> {
        let mut overdue = 0;
        loop {
            match self.dtls.poll_output(buffer) {
                Output::Packet(datagram) => {
                    wire.put(datagram);
                    wire.frame();
                    let bytes = datagram.len() as u64;
                    *(if was_shaking { &mut self.handshake.0 } else { &mut self.sent.0 }) += bytes;
                }
                Output::ApplicationData(datagram) => {
                    plain.put(datagram);
                    plain.frame();
                    self.received.1 += datagram.len() as u64;
                }
                Output::PeerCert(der) => (self.check)(der).map_err(Wrong::Peer)?,
                Output::Connected => self.phase = Phase::Standing,
                Output::CloseNotify => self.has_peer_closed = true,
                Output::BufferTooSmall { needed } => buffer.resize(needed, 0),
                Output::Timeout(at) => {
                    let at = self.clock.nanos(at);
                    let soonest = now + SOONEST;
                    self.wake = (at < now + NO_TIMER).then_some(at.max(soonest));
                    // A flight that has just begun asks to be told the time.
                    if at > now || overdue > OVERDUE_MAX {
                        return Ok(());
                    }
                    overdue += 1;
                    self.dtls.handle_timeout(self.clock.at(now)).map_err(Wrong::Library)?;
                }
                // Keys for SRTP, which nothing here uses.
                _ => {}
            }
        }
    }

    fn tell(&mut self, now: Nanos) {
        let version = match self.dtls.protocol_version() {
            Some(ProtocolVersion::DTLS1_2) => "DTLSv1_2",
            Some(ProtocolVersion::DTLS1_3) => "DTLSv1_3",
            _ => "DTLS",
        };
        self.tally.finished(Finished {
            resumed: false,
            time: now - self.began,
            now,
            sent_bytes: self.handshake.0,
            received_bytes: self.handshake.1,
            negotiated: version.to_owned(),
        });
    }
}

impl DatagramSession for Session {
    type Wrong = Wrong;

    /// Datagrams that are not of the session are ignored.
    fn feed(
        &mut self,
        datagram: &[u8],
        now: Nanos,
        plain: &mut Outbox,
        wire: &mut Outbox,
    ) -> Result<bool, Wrong> {
        match self.phase {
            Phase::Shaking => self.handshake.1 += datagram.len() as u64,
            Phase::Standing => self.received.0 += datagram.len() as u64,
            Phase::Over => return Ok(false),
        }
        // Timers are armed at the time of the last call that names one.
        self.guarded(
            |dtls, at| {
                dtls.handle_timeout(at)?;
                dtls.handle_packet(datagram)
            },
            now,
        )?;
        self.drain(now, plain, wire)
    }

    fn wake(&mut self, now: Nanos, plain: &mut Outbox, wire: &mut Outbox) -> Result<bool, Wrong> {
        if self.phase == Phase::Over {
            return Ok(false);
        }
        self.guarded(Dtls::handle_timeout, now)?;
        self.drain(now, plain, wire)
    }

    fn say(&mut self, plain: &[u8], now: Nanos, wire: &mut Outbox) -> Result<(), Wrong> {
        if self.phase != Phase::Standing || plain.is_empty() {
            return Ok(());
        }
        self.sent.1 += plain.len() as u64;
        self.guarded(|dtls, _| dtls.send_application_data(plain).map(drop), now)?;
        let mut unread = Outbox::default();
        self.drain(now, &mut unread, wire).map(|_| ())
    }

    /// Sends the close notice.
    fn goodbye(&mut self, now: Nanos, wire: &mut Outbox) {
        if self.phase == Phase::Standing && self.dtls.close().is_ok() {
            let mut unread = Outbox::default();
            // Where it cannot be said any more, the peer will forget the session.
            let _ = self.drain(now, &mut unread, wire);
        }
        self.phase = Phase::Over;
        self.wake = None;
    }

    fn stands(&self) -> bool {
        self.phase == Phase::Standing
    }

    fn peer_closed(&self) -> Option<String> {
        self.has_peer_closed.then(|| "it closed the DTLS session".to_owned())
    }

    fn next_wake(&self) -> Option<Nanos> {
        self.wake
    }

    fn fault_of_client(wrong: Wrong) -> Fault {
        match wrong {
            Wrong::Library(error) => reasons::of_client(&error),
            Wrong::Peer(fault) => fault,
        }
    }

    fn fault_of_server(wrong: Wrong) -> Fault {
        match wrong {
            Wrong::Library(error) => reasons::of_server(&error),
            Wrong::Peer(fault) => fault,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.tally.moved(self.sent, self.received);
    }
}

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The first size of the buffer into which the library writes.
const BUFFER_BYTES: usize = 2_048;

/// The library names a time in ten years if there is no timer.
const NO_TIMER: Nanos = Nanos::from_secs(365 * 24 * 3_600);

/// A session is not woken twice at one moment.
const SOONEST: Nanos = Nanos::from_millis(1);

/// How often one call gives the library the time again.
const OVERDUE_MAX: u32 = 4;
