//! One end of one QUIC connection: datagrams in; datagrams and pieces of streams out.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::HandshakeData;
use quinn_proto::{
    ConnectError, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Endpoint, Event,
    Incoming, Side,
};
use weigh_model::Nanos;
use weigh_model::connection::{Fault, Outbox};
use weigh_model::streams::{self, Piece};

use super::credit::Credit;
use super::line::{Line, var_int};
use super::reasons;
use crate::layer::datagrams::{Clock, DatagramSession};
use crate::layer::tls::{Finished, Tally};

/// A connection of either side.
pub(super) struct Session {
    endpoint: Endpoint,
    /// `None` at a server until a client begins a handshake.
    line: Option<Line>,
    side: Side,
    clock: Clock,
    began: Nanos,
    phase: Phase,
    /// When the library wants to be woken.
    timer: Option<Nanos>,
    /// True if the library may have datagrams to send.
    has_news: bool,
    /// Reason for which it never began.
    broken: Option<ConnectError>,
    peer_closed: Option<String>,
    /// Reason for which a standing connection was lost: the next wake returns it.
    lost: Option<ConnectionError>,
    /// When the handshake ended, until its bytes are reported.
    stood_at: Option<Nanos>,
    /// The code with which this end closes.
    close_code: u64,
    /// True for a client whose protocol is on one stream: only QUIC confirms what it says last.
    is_on_one_stream: bool,
    counts: Counts,
    tally: Arc<Tally>,
}

/// Bytes sent and received.
#[derive(Default)]
struct Counts {
    handshake: (u64, u64),
    /// After it: in datagrams, and of the protocol inside.
    sent: (u64, u64),
    received: (u64, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Shaking,
    Standing,
    /// Closed by this end, which waits until the peer has all of its stream.
    Parting,
    Over,
}

/// Reason for which a session ended.
pub(super) enum Wrong {
    /// The connection was lost; true if it stood.
    Lost(ConnectionError, bool),
    /// It could not begin.
    Never(ConnectError),
    /// The protocol inside used a stream that the peer does not allow.
    Stream(u64),
}

impl Session {
    /// A client's, whose handshake begins when it is first woken.
    pub(super) fn client(
        endpoint: Endpoint,
        line: Result<(ConnectionHandle, Connection), ConnectError>,
        clock: Clock,
        began: Nanos,
        tally: Arc<Tally>,
    ) -> Session {
        let mut session = Session::new(endpoint, Side::Client, clock, began, tally);
        match line {
            Ok((handle, connection)) => session.line = Some(Line::new(handle, connection)),
            Err(error) => session.broken = Some(error),
        }
        session
    }

    /// The same for a protocol on one stream.
    pub(super) fn on_one_stream(mut self) -> Session {
        self.is_on_one_stream = true;
        if let Some(line) = &mut self.line {
            line.credit = Credit::of_one();
        }
        self
    }

    /// A server's, for one peer.
    pub(super) fn server(
        endpoint: Endpoint,
        clock: Clock,
        began: Nanos,
        tally: Arc<Tally>,
    ) -> Session {
        let mut session = Session::new(endpoint, Side::Server, clock, began, tally);
        session.timer = Some(began + BEGIN_TIME);
        session
    }

    fn new(
        endpoint: Endpoint,
        side: Side,
        clock: Clock,
        began: Nanos,
        tally: Arc<Tally>,
    ) -> Session {
        Session {
            endpoint,
            line: None,
            side,
            clock,
            began,
            phase: Phase::Shaking,
            timer: None,
            has_news: side.is_client(),
            broken: None,
            peer_closed: None,
            lost: None,
            stood_at: None,
            close_code: 0,
            is_on_one_stream: false,
            counts: Counts::default(),
            tally,
        }
    }

    /// A client begins a handshake: the first of this peer is taken, others are ignored.
    fn accept(&mut self, incoming: Incoming, at: Instant, wire: &mut Outbox) {
        if self.line.is_some() || self.side.is_client() {
            return self.endpoint.ignore(incoming);
        }
        let mut answer = Vec::new();
        match self.endpoint.accept(incoming, at, &mut answer, None) {
            Ok((handle, connection)) => self.line = Some(Line::new(handle, connection)),
            Err(error) => {
                if let Some(transmit) = error.response {
                    put(wire, &answer[..transmit.size]);
                }
            }
        }
    }

    /// Does what follows from a datagram or a timer: events, streams that can be read.
    fn settle(&mut self, now: Nanos, plain: &mut Outbox) -> Result<bool, Wrong> {
        let was_shaking = self.phase == Phase::Shaking;
        let Some(line) = &mut self.line else { return Ok(false) };
        self.has_news = true;
        while let Some(event) = line.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(line.handle, event) {
                line.connection.handle_event(event);
            }
        }
        let mut lost = None;
        while let Some(event) = line.connection.poll() {
            match event {
                Event::Connected => self.phase = Phase::Standing,
                Event::ConnectionLost { reason } => lost = Some(reason),
                Event::Stream(event) => line.note(event, plain),
                _ => {}
            }
        }
        let has_begun = was_shaking && self.phase == Phase::Standing;
        if has_begun {
            self.stood_at = Some(now);
        }
        let Some(line) = &mut self.line else { return Ok(has_begun) };
        if std::mem::take(&mut line.has_room) {
            line.waiting.resume(&mut line.connection);
        }
        if self.phase == Phase::Standing {
            if self.side.is_client() {
                line.credit.top_up(&mut line.connection, plain);
            }
            self.counts.received.1 += line.read(plain);
        }
        match lost {
            None | Some(ConnectionError::LocallyClosed) => {}
            // However it ends: nothing more could be done.
            Some(_) if self.phase == Phase::Parting => self.phase = Phase::Over,
            Some(ConnectionError::ApplicationClosed(close)) if self.phase == Phase::Standing => {
                let code = close.error_code.into_inner();
                let why = String::from_utf8_lossy(&close.reason).into_owned();
                let why = if why.is_empty() { why } else { format!(": {why}") };
                self.peer_closed =
                    Some(format!("it closed the QUIC connection (code {code:#x}){why}"));
            }
            // What was read with it is passed on first.
            Some(reason) if self.phase == Phase::Standing => self.lost = Some(reason),
            Some(reason) => {
                self.phase = Phase::Over;
                return Err(Wrong::Lost(reason, false));
            }
        }
        Ok(has_begun)
    }

    /// Sends what there is.
    fn transmit(&mut self, now: Nanos, wire: &mut Outbox) {
        self.has_news = false;
        let Some(line) = &mut self.line else { return };
        let (at, mut buffer) = (self.clock.at(now), BUFFER.take());
        loop {
            buffer.clear();
            let Some(transmit) = line.connection.poll_transmit(at, 1, &mut buffer) else { break };
            let datagram = &buffer[..transmit.size];
            put(wire, datagram);
            // Datagrams of the handshake begin with a long header (RFC 9000, section 17.2). The
            // last ones of a client leave when it stands.
            let sent = match datagram.first().is_some_and(|first| first & LONG_HEADER != 0) {
                true => &mut self.counts.handshake.0,
                false => &mut self.counts.sent.0,
            };
            *sent += datagram.len() as u64;
        }
        BUFFER.set(buffer);
        self.note_timer();
        if let Some(at) = self.stood_at.take() {
            self.tell(at);
        }
    }

    /// Closes the connection.
    fn close(&mut self, now: Nanos, wire: &mut Outbox) {
        if self.phase != Phase::Over
            && let Some(line) = &mut self.line
        {
            let (at, code) = (self.clock.at(now), var_int(self.close_code));
            line.connection.close(at, code, Bytes::new());
            self.transmit(now, wire);
        }
        self.phase = Phase::Over;
    }

    /// True while the peer may not have all of a stream that this end has ended.
    fn awaits_confirmation(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.is_ending)
    }

    fn note_timer(&mut self) {
        if let Some(line) = &mut self.line {
            let timer = line.connection.poll_timeout();
            self.timer = timer.map(|at| self.clock.nanos(at));
        }
    }

    fn tell(&mut self, now: Nanos) {
        let Some(line) = &self.line else { return };
        let data = line.connection.crypto_session().handshake_data();
        let data = data.and_then(|data| data.downcast::<HandshakeData>().ok());
        let alpn = data.and_then(|data| data.protocol).unwrap_or_default();
        self.tally.finished(Finished {
            resumed: false,
            time: now - self.began,
            now,
            sent_bytes: self.counts.handshake.0,
            received_bytes: self.counts.handshake.1,
            negotiated: format!("QUICv1 TLSv1_3 {}", String::from_utf8_lossy(&alpn)),
        });
    }
}

impl DatagramSession for Session {
    type Wrong = Wrong;

    const HOLDS: bool = true;

    const TIMES_ITS_HANDSHAKE: bool = true;

    fn feed(
        &mut self,
        datagram: &[u8],
        now: Nanos,
        plain: &mut Outbox,
        wire: &mut Outbox,
    ) -> Result<bool, Wrong> {
        match self.phase {
            Phase::Shaking => self.counts.handshake.1 += datagram.len() as u64,
            Phase::Standing | Phase::Parting => self.counts.received.0 += datagram.len() as u64,
            Phase::Over => return Ok(false),
        }
        let (at, mut answer) = (self.clock.at(now), Vec::new());
        let bytes = BytesMut::from(datagram);
        match self.endpoint.handle(at, PEER, None, None, bytes, &mut answer) {
            None => return Ok(false),
            Some(DatagramEvent::Response(transmit)) => {
                put(wire, &answer[..transmit.size]);
                return Ok(false);
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(incoming, at, wire),
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some(line) = &mut self.line {
                    line.connection.handle_event(event);
                }
            }
        }
        let settled = self.settle(now, plain);
        if settled.is_err() {
            // What went wrong is for the peer, if its socket is still written to.
            self.transmit(now, wire);
        }
        settled
    }

    fn wake(&mut self, now: Nanos, plain: &mut Outbox, wire: &mut Outbox) -> Result<bool, Wrong> {
        if self.phase == Phase::Over {
            return Ok(false);
        }
        if let Some(error) = self.broken.take() {
            self.phase = Phase::Over;
            return Err(Wrong::Never(error));
        }
        if let Some(reason) = self.lost.take() {
            self.transmit(now, wire);
            self.phase = Phase::Over;
            return Err(Wrong::Lost(reason, true));
        }
        if self.timer.is_some_and(|timer| timer <= now) {
            let Some(line) = &mut self.line else {
                self.phase = Phase::Over;
                return Err(Wrong::Lost(ConnectionError::TimedOut, false));
            };
            line.connection.handle_timeout(self.clock.at(now));
        }
        let settled = self.settle(now, plain);
        self.transmit(now, wire);
        if self.phase == Phase::Parting && !self.awaits_confirmation() {
            self.close(now, wire);
        }
        settled
    }

    fn say(&mut self, plain: &[u8], _now: Nanos, _wire: &mut Outbox) -> Result<(), Wrong> {
        let (Phase::Standing, Some(line)) = (self.phase, &mut self.line) else { return Ok(()) };
        let mut rest = plain;
        while let Some((piece, bytes)) = streams::next(rest) {
            rest = &rest[bytes..];
            match piece {
                Piece::Close(code) => self.close_code = code,
                Piece::Bytes { bytes, .. } => self.counts.sent.1 += bytes.len() as u64,
                _ => {}
            }
            if !line.take(piece, self.side) {
                let (Piece::Bytes { stream, .. }
                | Piece::Reset { stream, .. }
                | Piece::Stop { stream, .. }) = piece
                else {
                    continue;
                };
                return Err(Wrong::Stream(stream));
            }
        }
        self.has_news = true;
        Ok(())
    }

    fn goodbye(&mut self, now: Nanos, wire: &mut Outbox) {
        // What was said before is sent, as far as congestion control allows.
        if self.phase != Phase::Over {
            self.transmit(now, wire);
        }
        let is_lost = self.peer_closed.is_some() || self.lost.is_some();
        match self.phase {
            Phase::Standing if self.is_on_one_stream && !is_lost && self.awaits_confirmation() => {
                self.phase = Phase::Parting;
            }
            _ => self.close(now, wire),
        }
    }

    fn is_parting(&self) -> bool {
        self.phase == Phase::Parting
    }

    fn is_full(&self) -> bool {
        self.is_on_one_stream && self.waiting_bytes() > 0
    }

    fn stands(&self) -> bool {
        self.phase == Phase::Standing
    }

    fn peer_closed(&self) -> Option<String> {
        self.peer_closed.clone()
    }

    fn next_wake(&self) -> Option<Nanos> {
        if self.phase == Phase::Over {
            return None;
        }
        let can_read =
            self.line.as_ref().is_some_and(|line| !line.is_held && !line.readable.is_empty())
                && self.phase == Phase::Standing;
        if self.has_news || can_read || self.broken.is_some() || self.lost.is_some() {
            return Some(Nanos(0));
        }
        self.timer
    }

    fn hold(&mut self, is_held: bool) {
        if let Some(line) = &mut self.line {
            line.is_held = is_held;
        }
    }

    fn waiting_bytes(&self) -> usize {
        self.line.as_ref().map_or(0, |line| line.waiting.bytes())
    }

    fn fault_of_client(wrong: Wrong) -> Fault {
        match wrong {
            Wrong::Lost(error, stood) => reasons::of_client(&error, stood),
            Wrong::Never(error) => Fault::Untrusted(format!("QUIC: {error}")),
            Wrong::Stream(stream) => {
                let text = format!("it does not allow stream {stream}, which the protocol needs");
                Fault::Malformed(format!("QUIC: {text}"))
            }
        }
    }

    fn fault_of_server(wrong: Wrong) -> Fault {
        match wrong {
            Wrong::Lost(error, _) => reasons::of_server(&error),
            Wrong::Never(error) => Fault::Malformed(format!("QUIC: {error}")),
            Wrong::Stream(stream) => {
                Fault::Malformed(format!("QUIC: a client does not allow stream {stream}"))
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.tally.moved(self.counts.sent, self.counts.received);
    }
}

/// Appends a datagram.
fn put(wire: &mut Outbox, datagram: &[u8]) {
    wire.put(datagram);
    wire.frame();
}

/// The library wants an address for each end; the sockets are the loop's.
pub(super) const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 443);

/// The bit of a packet's first byte that says that its header is a long one.
const LONG_HEADER: u8 = 0x80;

/// Time in which a peer of a server has to begin a handshake, before it is forgotten.
const BEGIN_TIME: Nanos = Nanos::from_secs(30);

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}
