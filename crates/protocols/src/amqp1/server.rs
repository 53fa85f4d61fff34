//! The reference server: the connections of one shard, their frames, and their end.

mod delivering;
mod greeting;
mod linking;
mod publishing;

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::server::{ConnectionId, Outboxes, Server, ServerReport};

use super::codec::{
    Begin, Detach, Frame, FrameKind, Performative, condition, put_empty, read_frame,
};
use super::hub::{Hub, Mail};
use super::peer::{End, Peer, Session, Stage};
use super::plan::WINDOW;
use super::refusal::{Ends, Refusal};
use crate::broker_core::{Peers, Place, Shared, Turn};

/// One shard of the server.
pub(super) struct Broker {
    hub: Shared<Hub>,
    peers: Peers<Box<Peer>>,
    /// Time of the last look at silence and unused queues, and time until the next one.
    woken: Nanos,
    wake_every: Nanos,
    /// Scratch space for the queues of a message.
    routes: Vec<u32>,
}

impl Broker {
    pub(super) fn new(hub: Shared<Hub>, shard: u16) -> Broker {
        Broker {
            hub,
            peers: Peers::new(shard),
            woken: Nanos(0),
            wake_every: WAKE_EVERY,
            routes: Vec::new(),
        }
    }

    fn peer(&mut self, id: ConnectionId) -> Option<&mut Peer> {
        self.peers.get(id).map(|peer| &mut **peer)
    }

    fn session(&mut self, id: ConnectionId, channel: u16) -> Option<&mut Session> {
        self.peer(id)?.session(channel)
    }

    /// Appends a performative to what a connection gets.
    fn say(
        &mut self,
        id: ConnectionId,
        channel: u16,
        performative: &Performative<'_>,
        turn: &mut Turn<'_>,
    ) {
        if let Some(peer) = self.peer(id) {
            peer.last_sent = turn.now;
            performative.put(channel, turn.out.stage(id));
        }
    }

    /// One call from the engine, with the hub locked.
    fn turn<T>(
        &mut self,
        now: Nanos,
        out: &mut dyn Outboxes,
        act: impl FnOnce(&mut Broker, &mut Hub, &mut Turn<'_>) -> T,
    ) -> T {
        let (hub, shard) = (self.hub.clone(), self.peers.shard);
        act(self, &mut hub.lock(), &mut Turn::new(out, now, shard))
    }

    fn take_all(
        &mut self,
        id: ConnectionId,
        input: &[u8],
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<usize, Fault> {
        let mut used = 0;
        loop {
            let Some(peer) = self.peer(id) else { return Ok(input.len()) };
            let rest = &input[used..];
            match peer.stage {
                Stage::Over => return Ok(input.len()),
                Stage::Header | Stage::LoggedIn => match self.take_header(id, rest, hub, turn)? {
                    0 => return Ok(used),
                    size => used += size,
                },
                _ => match read_frame(rest, hub.rules.frame_max) {
                    Ok(None) => return Ok(used),
                    Ok(Some((frame, size))) => {
                        used += size;
                        if let Err(refusal) = self.take(id, &frame, hub, turn) {
                            self.refuse(id, frame.channel, &refusal, hub, turn);
                        }
                    }
                    Err(flaw) => {
                        let refusal = Refusal::from(flaw);
                        self.refuse(id, 0, &refusal, hub, turn);
                        // Where the next frame begins is not known.
                        self.end(id, turn);
                    }
                },
            }
        }
    }

    fn take(
        &mut self,
        id: ConnectionId,
        frame: &Frame<'_>,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let Some(peer) = self.peer(id) else { return Ok(()) };
        match (peer.stage, frame.kind) {
            (Stage::Mechanisms, FrameKind::Sasl) => return self.log_in(id, frame, hub, turn),
            (Stage::Mechanisms, _) | (_, FrameKind::Sasl) => {
                return Err(Refusal::unexpected("a frame of another type"));
            }
            _ if frame.body.is_empty() => return Ok(()),
            _ => {}
        }
        let (performative, payload) = Performative::read(frame.body)?;
        match (peer.stage, performative) {
            (Stage::Greeted, Performative::Open(open)) => {
                self.opened(id, &open, hub, turn);
                Ok(())
            }
            (Stage::Closing, Performative::Close(_)) => {
                self.end(id, turn);
                Ok(())
            }
            (Stage::Closing, _) => Ok(()),
            (Stage::Open, Performative::Close(_)) => {
                self.say(id, 0, &Performative::Close(None), turn);
                self.leave(id, hub, turn);
                self.end(id, turn);
                Ok(())
            }
            (Stage::Open, Performative::Begin(begin)) => {
                self.begin(id, frame.channel, &begin, turn)
            }
            (Stage::Open, own) => self.take_in_session(id, frame.channel, &own, payload, hub, turn),
            (_, own) => Err(Refusal::unexpected(own.name())),
        }
    }

    fn begin(
        &mut self,
        id: ConnectionId,
        channel: u16,
        begin: &Begin,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let Some(peer) = self.peer(id) else { return Ok(()) };
        if channel > CHANNEL_MAX {
            let text = format!("channel {channel} is above {CHANNEL_MAX}");
            return Err(Refusal::connection(condition::NOT_ALLOWED, text));
        }
        if peer.session(channel).is_some() {
            let text = format!("channel {channel} has a session");
            return Err(Refusal::connection(condition::ILLEGAL_STATE, text));
        }
        peer.sessions.push(Session::new(channel, begin.next_outgoing_id, begin.incoming_window));
        let answer = Begin {
            remote_channel: Some(channel),
            next_outgoing_id: 0,
            incoming_window: WINDOW,
            outgoing_window: WINDOW,
            handle_max: HANDLE_MAX,
        };
        self.say(id, channel, &Performative::Begin(answer), turn);
        Ok(())
    }

    fn take_in_session(
        &mut self,
        id: ConnectionId,
        channel: u16,
        performative: &Performative<'_>,
        payload: &[u8],
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let Some(peer) = self.peer(id) else { return Ok(()) };
        let Some(session) = peer.session(channel) else {
            let text = format!("{} on a channel without a session", performative.name());
            return Err(Refusal::connection(condition::NOT_ALLOWED, text));
        };
        if session.is_ending {
            if let Performative::End(_) = performative {
                peer.sessions.retain(|session| session.channel != channel);
            }
            return Ok(());
        }
        match performative {
            Performative::Attach(own) => self.attach(id, channel, own, hub, turn),
            Performative::Detach(own) => self.detached(id, channel, own, hub, turn),
            Performative::Transfer(own) => {
                session.windows.received();
                self.take_transfer(id, channel, own, payload, hub, turn)
            }
            Performative::Flow(own) => self.take_flow(id, channel, own, hub, turn),
            Performative::Disposition(own) => {
                self.take_disposition(id, channel, own, hub, turn);
                Ok(())
            }
            Performative::End(_) => {
                self.end_session(id, channel, hub, turn);
                if let Some(peer) = self.peer(id) {
                    peer.sessions.retain(|session| session.channel != channel);
                }
                self.say(id, channel, &Performative::End(None), turn);
                Ok(())
            }
            other => Err(Refusal::unexpected(other.name())),
        }
    }

    /// Ends the link, the session or the connection of what was refused.
    fn refuse(
        &mut self,
        id: ConnectionId,
        channel: u16,
        refusal: &Refusal,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) {
        let error = Some(refusal.problem());
        let stage = self.peer(id).map_or(Stage::Over, |peer| peer.stage);
        if matches!(stage, Stage::Closing | Stage::Over) {
            return self.end(id, turn);
        }
        match refusal.ends {
            Ends::Link(handle) => {
                self.end_link(id, channel, handle, hub, turn);
                let link = self.session(id, channel).and_then(|session| session.link(handle));
                if let Some(link) = link {
                    link.is_detaching = true;
                }
                let detach = Detach { handle, closed: true, error };
                self.say(id, channel, &Performative::Detach(detach), turn);
            }
            Ends::Session => {
                self.end_session(id, channel, hub, turn);
                if let Some(session) = self.session(id, channel) {
                    session.is_ending = true;
                }
                self.say(id, channel, &Performative::End(error), turn);
            }
            Ends::Connection => {
                // Nothing of AMQP may be said inside SASL.
                if stage == Stage::Mechanisms {
                    return self.end(id, turn);
                }
                if stage == Stage::Greeted {
                    self.put_open(id, hub, turn);
                }
                self.say(id, 0, &Performative::Close(error), turn);
                self.leave(id, hub, turn);
                if let Some(peer) = self.peer(id) {
                    peer.stage = Stage::Closing;
                }
            }
        }
    }

    /// Ends what a session has: its links.
    fn end_session(&mut self, id: ConnectionId, channel: u16, hub: &mut Hub, turn: &mut Turn<'_>) {
        let Some(session) = self.session(id, channel) else { return };
        let handles: Vec<u32> = session.links.iter().map(|link| link.handle).collect();
        session.held = None;
        for handle in handles {
            self.end_link(id, channel, handle, hub, turn);
        }
        if let Some(session) = self.session(id, channel) {
            session.links.clear();
        }
    }

    /// Ends what a connection has.
    fn leave(&mut self, id: ConnectionId, hub: &mut Hub, turn: &mut Turn<'_>) {
        let Some(peer) = self.peer(id) else { return };
        let place = peer.place;
        let channels: Vec<u16> = peer.sessions.iter().map(|session| session.channel).collect();
        for channel in channels {
            self.end_session(id, channel, hub, turn);
        }
        if let Some(peer) = self.peer(id) {
            peer.sessions.clear();
        }
        hub.memory.forget(place);
    }

    /// Closes a connection once its output is sent, and ignores its later input.
    fn end(&mut self, id: ConnectionId, turn: &mut Turn<'_>) {
        if let Some(peer) = self.peer(id) {
            peer.stage = Stage::Over;
        }
        turn.out.close(id);
    }

    /// Lets producers continue for whom there is memory again.
    fn settle(&mut self, hub: &mut Hub, turn: &mut Turn<'_>) {
        for place in hub.memory.take_unblocked() {
            match place.shard == turn.shard {
                true => self.unblock(place, hub, turn),
                false => hub.mail.post(place.shard, Mail::Unblocked(place), turn.out),
            }
        }
    }

    fn unblock(&mut self, place: Place, hub: &mut Hub, turn: &mut Turn<'_>) {
        let id = place.connection;
        let Some(peer) = self.peer(id).filter(|peer| peer.place == place) else { return };
        peer.is_blocked = false;
        if std::mem::replace(&mut peer.is_held, false) {
            // What it sent meanwhile was not read.
            peer.last_received = turn.now;
            if !peer.is_behind {
                turn.out.release(id);
            }
        }
        let mut links = Vec::new();
        for session in &peer.sessions {
            let producers =
                session.links.iter().filter(|link| matches!(link.end, End::Producer(_)));
            links.extend(producers.map(|link| (session.channel, link.handle)));
        }
        for (channel, handle) in links {
            self.renew_credit(id, channel, handle, hub, turn);
        }
    }

    /// Lets a peer wait that does not read its answers.
    fn check_behind(&mut self, id: ConnectionId, turn: &mut Turn<'_>) {
        if turn.out.pending_bytes(id) < ANSWER_BYTES_MAX {
            return;
        }
        if let Some(peer) = self.peer(id).filter(|peer| !peer.is_behind) {
            peer.is_behind = true;
            turn.out.hold(id);
            turn.out.notify_drained(id);
        }
    }

    /// Looks at silence often enough for empty frames that are due after `beat` (0: never).
    fn keep_pace(&mut self, beat: Nanos) {
        if beat.0 > 0 {
            self.wake_every = self.wake_every.min(Nanos(beat.0 / 2).max(WAKE_EVERY_MIN));
        }
    }

    /// Sends empty frames, and ends connections that have been silent for too long.
    fn beat(&mut self, hub: &mut Hub, turn: &mut Turn<'_>) {
        (self.woken, self.wake_every) = (turn.now, WAKE_EVERY);
        for id in self.peers.ids() {
            let idle = hub.rules.idle;
            let Some(peer) = self.peer(id) else { continue };
            if turn.now >= peer.deadline(idle) {
                self.leave(id, hub, turn);
                self.end(id, turn);
            } else if peer.stage == Stage::Open {
                let beat = peer.beat;
                if beat.0 > 0 && turn.now >= peer.last_sent + beat {
                    peer.last_sent = turn.now;
                    put_empty(turn.out.stage(id));
                }
                self.keep_pace(beat);
            }
        }
    }
}

impl Server for Broker {
    fn accepted(&mut self, connection: ConnectionId, now: Nanos, _out: &mut dyn Outboxes) {
        self.hub.lock().census.note_connection();
        self.peers.accept(connection, |place| Box::new(Peer::new(place, now)));
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        if let Some(peer) = self.peer(connection) {
            peer.last_received = now;
        }
        self.turn(now, out, |own, hub, turn| {
            let used = own.take_all(connection, input, hub, turn);
            own.settle(hub, turn);
            own.check_behind(connection, turn);
            used
        })
    }

    fn drained(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.turn(now, out, |own, hub, turn| {
            let Some(peer) = own.peer(connection) else { return };
            if std::mem::replace(&mut peer.is_behind, false) && !peer.is_held {
                turn.out.release(connection);
            }
            for consumer in own.consumers_of(connection) {
                own.serve(consumer, hub, turn);
            }
            own.settle(hub, turn);
        });
    }

    fn closed(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.turn(now, out, |own, hub, turn| {
            own.leave(connection, hub, turn);
            own.peers.remove(connection);
            own.settle(hub, turn);
        });
    }

    fn wake(&mut self, now: Nanos, out: &mut dyn Outboxes) -> Option<Nanos> {
        self.turn(now, out, |own, hub, turn| {
            own.beat(hub, turn);
            hub.expire(now);
            own.settle(hub, turn);
        });
        self.next_wake()
    }

    /// A client that opens may need its empty frames sooner than the others.
    fn next_wake(&self) -> Option<Nanos> {
        Some(self.woken + self.wake_every)
    }

    fn notified(&mut self, now: Nanos, out: &mut dyn Outboxes) {
        self.turn(now, out, |own, hub, turn| {
            for mail in hub.mail.take(own.peers.shard) {
                match mail {
                    Mail::Deliver(consumer) => own.serve(consumer, hub, turn),
                    Mail::Unblocked(place) => own.unblock(place, hub, turn),
                }
            }
            own.settle(hub, turn);
        });
    }

    /// Everything is common and reported by shard 0 only, so that reports add up.
    fn report(&self) -> ServerReport {
        match self.peers.shard {
            0 => self.hub.lock().report(),
            _ => ServerReport::default(),
        }
    }
}

/// With this many bytes of answers in its socket's way, a peer is not read from.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Silence and unused queues are looked at after this time, or after half of the shortest time to
/// an empty frame.
const WAKE_EVERY: Nanos = Nanos::from_secs(1);

/// They are looked at after this time at the earliest, whatever a client announces.
const WAKE_EVERY_MIN: Nanos = Nanos::from_millis(1);

/// Sessions of a connection, and links of a session, less one.
const CHANNEL_MAX: u16 = 15;
const HANDLE_MAX: u32 = 255;
