//! One end of one WebSocket connection.

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::content::{Phase as Part, StreamCounts};
use weigh_stats::random::Random;
use weigh_websocket::close::{self, GOING_AWAY, NORMAL};
use weigh_websocket::upgrade::{self, Refusal, Upgrade};
use weigh_websocket::{Broken, Control, Decoder, Opcode, put_frame};

use super::tally::{Figures, Tally};
use crate::layer::session::Session as Layer;

/// Choices for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientChoice {
    /// The host of the URL, with its port where that is not the scheme's own.
    pub host: String,
    /// The path of the URL, beginning with a slash.
    pub path: String,
    /// The subprotocol, which the server must take (MQTT 5.0, section 6: `mqtt`).
    pub subprotocol: String,
    /// Seed of keys and masks. A seed gives the same bytes again.
    pub seed: u64,
}

/// End of the connection.
pub(super) enum Side {
    /// It asks for the upgrade, and masks.
    Client { request: String, key: [u8; 16], subprotocol: String, random: Random },
    /// It answers.
    Server { subprotocol: String },
}

impl Side {
    pub(super) fn client(choice: &ClientChoice, mut random: Random) -> Side {
        let mut key = [0; 16];
        for half in key.chunks_mut(8) {
            half.copy_from_slice(&random.next_u64().to_be_bytes());
        }
        let ClientChoice { host, path, subprotocol, .. } = choice;
        let request = upgrade::request(host, path, subprotocol, key);
        Side::Client { request, key, subprotocol: subprotocol.clone(), random }
    }

    pub(super) fn server(subprotocol: &str) -> Side {
        Side::Server { subprotocol: subprotocol.to_owned() }
    }

    fn mask(&mut self) -> Option<[u8; 4]> {
        match self {
            Side::Client { random, .. } => Some((random.next_u64() as u32).to_be_bytes()),
            Side::Server { .. } => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Fresh,
    Upgrading,
    Standing,
    Failed,
}

/// A connection of either side.
pub(super) struct Session {
    side: Side,
    phase: Phase,
    /// Bytes of the peer's head so far.
    head: Vec<u8>,
    decoder: Decoder,
    has_peer_closed: bool,
    has_closed: bool,
    counted: Figures,
    tally: Arc<Tally>,
}

impl Session {
    pub(super) fn new(side: Side, _now: Nanos, tally: Arc<Tally>) -> Session {
        let decoder = Decoder::new(matches!(side, Side::Server { .. }));
        Session {
            side,
            phase: Phase::Fresh,
            head: Vec::new(),
            decoder,
            has_peer_closed: false,
            has_closed: false,
            counted: Figures::default(),
            tally,
        }
    }

    /// Reads the head; how many bytes of it were the head, once it is whole.
    fn upgrade(&mut self, out: &mut Vec<u8>) -> Result<Option<usize>, Fault> {
        match &self.side {
            Side::Client { key, subprotocol, .. } => {
                match upgrade::read_answer(&self.head, *key, subprotocol).map_err(refused)? {
                    Upgrade::Unfinished => Ok(None),
                    Upgrade::Done(length, ()) => {
                        self.counted.upgrade_received_bytes += length as u64;
                        Ok(Some(length))
                    }
                }
            }
            Side::Server { subprotocol } => match upgrade::read_request(&self.head, subprotocol) {
                Ok(Upgrade::Unfinished) => Ok(None),
                Ok(Upgrade::Done(length, answer)) => {
                    out.extend_from_slice(answer.as_bytes());
                    self.counted.upgrade_received_bytes += length as u64;
                    self.counted.upgrade_sent_bytes += answer.len() as u64;
                    Ok(Some(length))
                }
                Err(away) => {
                    out.extend_from_slice(away.answer.as_bytes());
                    Err(Fault::Malformed(format!("WebSocket: {}", away.why)))
                }
            },
        }
    }

    /// Reads frames, and answers those that want an answer.
    fn read(&mut self, input: &[u8], plain: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let before = plain.len();
        let (side, counted) = (&mut self.side, &mut self.counted);
        let has_closed = &mut self.has_closed;
        let mut closed = None;
        let read = self.decoder.take(input, plain, &mut |control| match control {
            Control::Ping(payload) => {
                let start = out.len();
                put_frame(out, Opcode::Pong, side.mask(), payload);
                counted.frame_sent_bytes += (out.len() - start) as u64;
            }
            Control::Pong(_) => {}
            Control::Close(code, why) => {
                if !*has_closed {
                    // The echo of the code (RFC 6455, section 5.5.1).
                    let start = out.len();
                    let payload = code.map(u16::to_be_bytes);
                    let payload = payload.as_ref().map_or(&[][..], |bytes| &bytes[..]);
                    put_frame(out, Opcode::Close, side.mask(), payload);
                    counted.frame_sent_bytes += (out.len() - start) as u64;
                    *has_closed = true;
                }
                closed = Some((code, why.to_owned()));
            }
        });
        self.counted.frame_received_bytes += (input.len() - (plain.len() - before)) as u64;
        if let Err(broken) = read {
            return Err(self.fail(&broken, out));
        }
        if let Some((code, why)) = closed {
            self.has_peer_closed = true;
            if code.is_some_and(|code| !matches!(code, NORMAL | GOING_AWAY)) {
                return Err(Fault::Ended(close::words(code, &why)));
            }
        }
        Ok(())
    }

    /// Sends the violated rule, and nothing afterwards.
    fn fail(&mut self, broken: &Broken, out: &mut Vec<u8>) -> Fault {
        self.phase = Phase::Failed;
        if !self.has_closed {
            self.close_with(broken.code, out);
        }
        Fault::Malformed(format!("WebSocket: {broken}"))
    }

    fn close_with(&mut self, code: u16, out: &mut Vec<u8>) {
        let start = out.len();
        put_frame(out, Opcode::Close, self.side.mask(), &code.to_be_bytes());
        self.counted.frame_sent_bytes += (out.len() - start) as u64;
        self.has_closed = true;
    }
}

impl Layer for Session {
    fn feed(
        &mut self,
        input: &[u8],
        _now: Nanos,
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Fault> {
        if self.phase == Phase::Fresh {
            self.phase = Phase::Upgrading;
            if let Side::Client { request, .. } = &self.side {
                out.extend_from_slice(request.as_bytes());
                self.counted.upgrade_sent_bytes += request.len() as u64;
            }
        }
        match self.phase {
            Phase::Upgrading if !input.is_empty() => {
                self.head.extend_from_slice(input);
                let done = self.upgrade(out).inspect_err(|_| self.phase = Phase::Failed)?;
                let Some(length) = done else { return Ok(false) };
                self.phase = Phase::Standing;
                self.counted.upgrades += 1;
                let head = std::mem::take(&mut self.head);
                self.read(&head[length..], plain, out)?;
                Ok(true)
            }
            Phase::Standing => self.read(input, plain, out).map(|()| false),
            Phase::Fresh | Phase::Upgrading | Phase::Failed => Ok(false),
        }
    }

    fn say(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        if !plain.is_empty() && self.stands() && !self.has_closed {
            let start = out.len();
            put_frame(out, Opcode::Binary, self.side.mask(), plain);
            self.counted.frame_sent_bytes += (out.len() - start - plain.len()) as u64;
        }
        Ok(())
    }

    fn goodbye(&mut self, out: &mut Vec<u8>) {
        if self.stands() && !self.has_closed {
            self.close_with(NORMAL, out);
        }
    }

    fn stands(&self) -> bool {
        self.phase == Phase::Standing
    }

    fn has_peer_closed(&self) -> bool {
        self.has_peer_closed
    }

    /// Upgrades are set-up. Frames are messages, those of the first and the last packet too: what
    /// is in a frame only the protocol inside knows.
    fn added(&self) -> StreamCounts {
        let (counted, mut added) = (&self.counted, StreamCounts::default());
        added.sent.add(Part::SetUp, counted.upgrade_sent_bytes as usize, 0);
        added.sent.add(Part::Messages, counted.frame_sent_bytes as usize, 0);
        added.received.add(Part::SetUp, counted.upgrade_received_bytes as usize, 0);
        added.received.add(Part::Messages, counted.frame_received_bytes as usize, 0);
        added
    }

    fn cut_off(&self) -> Fault {
        Fault::Ended(match self.phase {
            Phase::Standing if self.decoder.is_inside() => {
                "in the middle of a WebSocket message".to_owned()
            }
            Phase::Standing => "without a WebSocket close frame".to_owned(),
            _ => "without an answer to the WebSocket upgrade; check port and path, and whether \
                  it speaks WebSocket there"
                .to_owned(),
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.tally.add(self.counted);
    }
}

fn refused(refusal: Refusal) -> Fault {
    match refusal {
        Refusal::OtherProtocol(saw) => Fault::OtherProtocol(format!(
            "no answer to the WebSocket upgrade ({saw}); check the port, or leave WebSocket out"
        )),
        Refusal::Status(status, reason) => {
            let fix = match status {
                401 | 403 => "it wants credentials or another origin before the upgrade",
                404 => "check the path of the URL (websocket_path)",
                _ => "check port and path, and whether it speaks WebSocket there",
            };
            let reason = format!("WebSocket upgrade answered {status} {reason}; {fix}");
            Fault::Refused { code: status, reason }
        }
        Refusal::Malformed(what) => Fault::Malformed(format!("WebSocket upgrade: {what}")),
    }
}
