//! The reference server: upgrades clients, answers the messages of producers, and hands each to the
//! subscribers of its channel, on this shard and on the others.

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::protocol::Invalid;
use weigh_model::server::{ById, ConnectionId, Outboxes, Record, Server, ServerReport};
use weigh_model::trial::Settings;
use weigh_websocket::frame::apply_mask;
use weigh_websocket::upgrade::{self, Asked, Upgrade};
use weigh_websocket::{Broken, Header, Messages, Opcode, close, put_frame};

use super::codec;
use super::plan;
use super::routes::{Route, Routes};
use super::settings::Confirm;
use crate::push_core::hub::Hub;
use crate::push_core::slow::Slow;
use crate::push_core::subscribers::{Form, Subscribers, Turn};
use crate::server_counts::ServerCounts;

/// Settings of all shards of one server.
pub(super) struct Rules {
    routes: Routes,
    frames: weigh_websocket::Rules,
    subprotocol: String,
    slow: Slow,
}

/// All connections of one shard.
pub(super) struct WebSocketServer {
    rules: Arc<Rules>,
    peers: ById<Box<Peer>>,
    subscribers: Subscribers,
    counts: ServerCounts,
    /// Payload of the frame that is being read, without its mask.
    payload: Vec<u8>,
}

struct Peer {
    stage: Stage,
    messages: Messages,
    /// A message in several frames so far.
    partial: Vec<u8>,
    is_held: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Upgrading,
    Open(Route),
    /// A close frame was sent, or the connection is over.
    Closed,
}

impl Rules {
    /// Reads the settings.
    ///
    /// # Errors
    /// Paths by which producers and subscribers cannot be distinguished.
    pub(super) fn read(settings: &Settings) -> Result<Rules, Invalid> {
        let routes = Routes::of(settings);
        if !routes.are_distinct() {
            return Err(Invalid::new(
                "websocket.subscribe_path",
                "the reference server distinguishes producers and subscribers by their paths",
                "type a path that differs from websocket.path",
            ));
        }
        let message_bytes_max = plan::message_bytes_max(settings);
        Ok(Rules {
            routes,
            frames: weigh_websocket::Rules { accepts_text: true, message_bytes_max },
            subprotocol: plan::subprotocol(settings)?.to_owned(),
            slow: Slow::read(settings),
        })
    }
}

impl WebSocketServer {
    pub(super) fn new(rules: Arc<Rules>, hub: Arc<Hub>, shard: u16) -> WebSocketServer {
        WebSocketServer {
            subscribers: Subscribers::new(hub, shard, rules.slow),
            rules,
            peers: ById::default(),
            counts: ServerCounts::default(),
            payload: Vec::new(),
        }
    }

    fn peer(&mut self, of: ConnectionId) -> Option<&mut Peer> {
        self.peers.get_mut(of).map(|own| &mut **own)
    }

    fn stage(&self, of: ConnectionId) -> Stage {
        let peer = self.peers.get(of);
        peer.map_or(Stage::Closed, |peer| peer.stage)
    }

    fn set_stage(&mut self, of: ConnectionId, stage: Stage) {
        let before = self.stage(of);
        if let Some(peer) = self.peer(of) {
            peer.stage = stage;
        }
        if let Stage::Open(Route::Subscribe(channel)) = before
            && stage == Stage::Closed
        {
            self.subscribers.remove(of, channel);
        }
    }

    /// Answers a request for an upgrade.
    fn enter(
        &mut self,
        of: ConnectionId,
        asked: &Asked,
        out: &mut dyn Outboxes,
    ) -> Result<(), Fault> {
        let rules = Arc::clone(&self.rules);
        let subprotocol = &*rules.subprotocol;
        let away = match rules.routes.find(&asked.target) {
            _ if !subprotocol.is_empty() && !asked.offers(subprotocol) => {
                upgrade::not_offered(subprotocol)
            }
            None => {
                let why = format!("nothing is at {}: {}", asked.target, rules.routes.words());
                upgrade::turned_away("404 Not Found", "", &why)
            }
            Some(route) => {
                out.stage(of).extend_from_slice(asked.accepted(subprotocol).as_bytes());
                self.set_stage(of, Stage::Open(route));
                if let Route::Subscribe(channel) = route {
                    let mut turn = Turn { out, counts: &mut self.counts };
                    self.subscribers.add(of, channel, Form::Plain, None, &mut turn);
                }
                return Ok(());
            }
        };
        Err(self.turn_away(of, away, out))
    }

    fn turn_away(
        &mut self,
        of: ConnectionId,
        away: upgrade::TurnedAway,
        out: &mut dyn Outboxes,
    ) -> Fault {
        out.stage(of).extend_from_slice(away.answer.as_bytes());
        self.set_stage(of, Stage::Closed);
        Fault::Malformed(format!("WebSocket: {}", away.why))
    }

    /// Closes with the violated rule.
    fn broken(&mut self, of: ConnectionId, broken: &Broken, out: &mut dyn Outboxes) -> Fault {
        let payload = close::payload(broken.code, &broken.what);
        put_frame(out.stage(of), Opcode::Close, None, &payload);
        self.set_stage(of, Stage::Closed);
        Fault::Malformed(format!("WebSocket: {broken}"))
    }

    /// Takes the frame at the start of `input`; `None` if it is not all there.
    fn take_frame(
        &mut self,
        of: ConnectionId,
        input: &[u8],
        out: &mut dyn Outboxes,
    ) -> Result<Option<usize>, Fault> {
        let (header, head_bytes) = match Header::read(input, true) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(broken) => return Err(self.broken(of, &broken, out)),
        };
        let rules = self.rules.frames;
        let Some(peer) = self.peer(of) else { return Ok(None) };
        if let Err(broken) = peer.messages.check(&header, &rules) {
            return Err(self.broken(of, &broken, out));
        }
        let length = usize::try_from(header.length).unwrap_or(usize::MAX);
        let bytes = head_bytes.saturating_add(length);
        let Some(masked) = input.get(head_bytes..bytes) else { return Ok(None) };
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        payload.extend_from_slice(masked);
        apply_mask(&mut payload, header.mask.unwrap_or_default(), 0);
        let result = self.take_payload(of, &header, &payload, out);
        payload.shrink_to(PAYLOAD_BYTES_KEPT);
        self.payload = payload;
        result.map(|()| Some(bytes))
    }

    fn take_payload(
        &mut self,
        of: ConnectionId,
        header: &Header,
        payload: &[u8],
        out: &mut dyn Outboxes,
    ) -> Result<(), Fault> {
        match header.opcode {
            Opcode::Ping => {
                put_frame(out.stage(of), Opcode::Pong, None, payload);
                self.hold_if_behind(of, out);
                return Ok(());
            }
            Opcode::Pong => return Ok(()),
            Opcode::Close => return self.closed_by_client(of, payload, out),
            Opcode::Text | Opcode::Binary | Opcode::Continuation => {}
        }
        let Some(peer) = self.peer(of) else { return Ok(()) };
        let kind = peer.messages.pass(header);
        if !peer.partial.is_empty() || kind.is_none() {
            peer.partial.extend_from_slice(payload);
        }
        let Some(kind) = kind else { return Ok(()) };
        let whole = std::mem::take(&mut peer.partial);
        let body = if whole.is_empty() { payload } else { &whole[..] };
        if kind == Opcode::Text && std::str::from_utf8(body).is_err() {
            let what = "a text message that is not UTF-8".to_owned();
            return Err(self.broken(of, &Broken { code: close::ENCODING, what }, out));
        }
        self.take_message(of, kind, body, out)
    }

    fn take_message(
        &mut self,
        of: ConnectionId,
        kind: Opcode,
        body: &[u8],
        out: &mut dyn Outboxes,
    ) -> Result<(), Fault> {
        let Stage::Open(Route::Publish(channel, confirm)) = self.stage(of) else {
            let what = format!("a subscriber sends no messages: {}", self.rules.routes.words());
            return Err(self.broken(of, &Broken { code: close::POLICY, what }, out));
        };
        self.counts.note(body);
        if confirm != Confirm::Nothing {
            out.store(Record::Message { name: b"", body });
        }
        let mut turn = Turn { out: &mut *out, counts: &mut self.counts };
        let receivers = self.subscribers.publish(channel, &mut turn, |_, bytes| {
            put_frame(bytes, kind, None, body);
        });
        match confirm {
            Confirm::Reply => {
                let answer = codec::answer(receivers);
                put_frame(out.stage(of), Opcode::Text, None, answer.as_bytes());
            }
            Confirm::Echo => put_frame(out.stage(of), kind, None, body),
            Confirm::Nothing | Confirm::Pong => {}
        }
        self.hold_if_behind(of, out);
        Ok(())
    }

    /// Reads nothing more from a client that does not read its answers.
    fn hold_if_behind(&mut self, of: ConnectionId, out: &mut dyn Outboxes) {
        let is_behind = out.pending_bytes(of) > ANSWER_BYTES_MAX;
        if let Some(peer) = self.peer(of).filter(|peer| is_behind && !peer.is_held) {
            peer.is_held = true;
            out.hold(of);
            out.notify_drained(of);
        }
    }

    fn closed_by_client(
        &mut self,
        of: ConnectionId,
        payload: &[u8],
        out: &mut dyn Outboxes,
    ) -> Result<(), Fault> {
        match close::read(payload) {
            Ok((code, _)) => {
                // The echo of the code (RFC 6455, section 5.5.1).
                let payload = code.map(u16::to_be_bytes);
                let payload = payload.as_ref().map_or(&[][..], |bytes| &bytes[..]);
                put_frame(out.stage(of), Opcode::Close, None, payload);
                self.set_stage(of, Stage::Closed);
                out.close(of);
                Ok(())
            }
            Err(broken) => Err(self.broken(of, &broken, out)),
        }
    }
}

impl Server for WebSocketServer {
    fn accepted(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        self.peers.put(
            connection,
            Box::new(Peer {
                stage: Stage::Upgrading,
                messages: Messages::default(),
                partial: Vec::new(),
                is_held: false,
            }),
        );
        self.counts.note_connection();
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        _now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        loop {
            let rest = &input[taken..];
            match self.stage(connection) {
                Stage::Closed => return Ok(input.len()),
                Stage::Upgrading => match upgrade::read_any_request(rest) {
                    Ok(Upgrade::Unfinished) => return Ok(taken),
                    Ok(Upgrade::Done(length, asked)) => {
                        taken += length;
                        self.enter(connection, &asked, out)?;
                    }
                    Err(away) => return Err(self.turn_away(connection, away, out)),
                },
                Stage::Open(_) => match self.take_frame(connection, rest, out)? {
                    Some(bytes) => taken += bytes,
                    None => return Ok(taken),
                },
            }
        }
    }

    fn drained(&mut self, connection: ConnectionId, _now: Nanos, out: &mut dyn Outboxes) {
        if let Some(peer) = self.peer(connection).filter(|peer| peer.is_held) {
            peer.is_held = false;
            out.release(connection);
        }
    }

    fn closed(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        self.set_stage(connection, Stage::Closed);
        self.peers.remove(connection);
    }

    fn notified(&mut self, _now: Nanos, out: &mut dyn Outboxes) {
        let mut turn = Turn { out, counts: &mut self.counts };
        self.subscribers.deliver_mail(&mut turn);
    }

    fn report(&self) -> ServerReport {
        let disconnects = self.subscribers.disconnects();
        ServerReport { disconnects, ..self.counts.report() }
    }
}

/// Bytes of answers that may wait for a client before nothing more is read from it.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Memory for the next payload.
const PAYLOAD_BYTES_KEPT: usize = 1 << 20;
