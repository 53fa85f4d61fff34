//! A client of WebSocket that asks one thing after the other (RFC 6455). It speaks by the product's
//! codec, but is not the product's client: that one never offers an extension, and never breaks a
//! rule to see whether the server notices.

use std::time::Instant;

use weigh_engine::layer::websocket::frame::{put_frame, put_part};
use weigh_engine::layer::websocket::{Header, Opcode, close, upgrade};
use weigh_protocols::basic_authorization;

use crate::exchange::Exchange;
use crate::http_head::Head;
use crate::reach::{Reach, Trouble, random};

/// A connection that was upgraded.
pub(super) struct Line {
    line: Exchange,
    /// The answer to the upgrade.
    pub(super) head: Head,
}

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// A message, or a part of one: its bytes.
    Message(Vec<u8>),
    Pong(Vec<u8>),
    /// Code and reason.
    Close(Option<u16>, String),
    Ping(Vec<u8>),
}

impl Line {
    /// Asks for an upgrade with a subprotocol, unless it is empty, and further fields.
    pub(super) fn open(reach: &Reach, subprotocol: &str, fields: &str) -> Result<Line, Trouble> {
        let mut line = Exchange::open(reach)?;
        let mut fields = fields.to_owned();
        if let Some(value) = basic_authorization(&reach.endpoint) {
            fields.push_str(&format!("Authorization: {value}\r\n"));
        }
        let (host, key) = (reach.endpoint.authority(), random());
        let request = upgrade::request_with(&host, reach.path(), subprotocol, &fields, key);
        line.send(request.as_bytes())?;
        let head = Head::hear(&mut line)?;
        if head.status != SWITCHING {
            return Err(Trouble::Refused(format!("the upgrade was answered {}", head.words)));
        }
        let key = request.lines().find_map(|own| own.strip_prefix("Sec-WebSocket-Key: "));
        let due = upgrade::accept(key.unwrap_or_default());
        if head.field("sec-websocket-accept") != Some(&due) {
            let text = "its answer 101 belongs to another key (Sec-WebSocket-Accept)";
            return Err(Trouble::Foreign(text.to_owned()));
        }
        Ok(Line { line, head })
    }

    /// Sends a frame.
    pub(super) fn send(&mut self, kind: Opcode, payload: &[u8]) -> Result<(), Trouble> {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, kind, Some(random()), payload);
        self.line.send(&bytes)
    }

    /// Sends a message in two frames.
    pub(super) fn send_in_two(&mut self, kind: Opcode, payload: &[u8]) -> Result<(), Trouble> {
        let (mut bytes, half) = (Vec::new(), payload.len() / 2);
        put_part(&mut bytes, kind, Some(random()), &payload[..half], false);
        put_part(&mut bytes, Opcode::Continuation, Some(random()), &payload[half..], true);
        self.line.send(&bytes)
    }

    /// The next frame.
    pub(super) fn next(&mut self) -> Result<Came, Trouble> {
        self.line.hear(|input| {
            let read = Header::read(input, false);
            let read = read.map_err(|broken| Trouble::Foreign(broken.to_string()))?;
            let Some((header, head_bytes)) = read else { return Ok(None) };
            let length = usize::try_from(header.length).unwrap_or(usize::MAX);
            let Some(payload) = input[head_bytes..].get(..length) else { return Ok(None) };
            let came = match header.opcode {
                Opcode::Text | Opcode::Binary | Opcode::Continuation => {
                    Came::Message(payload.to_vec())
                }
                Opcode::Ping => Came::Ping(payload.to_vec()),
                Opcode::Pong => Came::Pong(payload.to_vec()),
                Opcode::Close => {
                    let (code, why) = close::read(payload)
                        .map_err(|broken| Trouble::Foreign(broken.to_string()))?;
                    Came::Close(code, why.to_owned())
                }
            };
            Ok(Some((came, head_bytes + length)))
        })
    }

    /// Waits for the pong of a ping behind everything that was sent; returns the messages that came
    /// before it. A close is a refusal.
    pub(super) fn pinged(&mut self) -> Result<Vec<Vec<u8>>, Trouble> {
        let own: [u8; 8] = random();
        let sent = self.send(Opcode::Ping, &own);
        let mut messages = Vec::new();
        loop {
            match self.next() {
                Ok(Came::Message(message)) => messages.push(message),
                Ok(Came::Pong(payload)) if payload == own => return Ok(messages),
                Ok(Came::Pong(_)) => {}
                Ok(Came::Ping(payload)) => self.send(Opcode::Pong, &payload)?,
                Ok(Came::Close(code, why)) => {
                    return Err(Trouble::Refused(close::words(code, &why)));
                }
                // A server that refuses something may close before it has read the ping.
                Err(trouble) => return sent.and(Err(trouble)),
            }
        }
    }

    /// Waits for the pong and then for silence: a library may answer a ping before the application
    /// has looked at the message. A close is a refusal.
    pub(super) fn settled(&mut self) -> Result<Vec<Vec<u8>>, Trouble> {
        let mut messages = self.pinged()?;
        let until = self.line.until()?;
        // A server may send messages of its own without end.
        while Instant::now() < until {
            match self.next() {
                Ok(Came::Message(message)) => messages.push(message),
                Ok(Came::Close(code, why)) => {
                    return Err(Trouble::Refused(close::words(code, &why)));
                }
                Ok(Came::Ping(payload)) => self.send(Opcode::Pong, &payload)?,
                Ok(Came::Pong(_)) => {}
                Err(Trouble::Silent(_)) => break,
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(messages)
    }

    /// Closes in order; returns the code of the server's close frame.
    pub(super) fn close(&mut self, code: u16) -> Result<Option<u16>, Trouble> {
        self.send(Opcode::Close, &close::payload(code, ""))?;
        loop {
            if let Came::Close(code, _) = self.next()? {
                return Ok(code);
            }
        }
    }
}

const SWITCHING: u16 = 101;
