//! A client of NATS that asks one thing after the other. It speaks by the product's codec, but is
//! not the product's client: that one hides INFO, headers and statuses.

use serde_json::Value;
use weigh_protocols::nats::codec::info::Connect;
use weigh_protocols::nats::codec::{
    self, FromServer, Limits, PING, PONG, Publish, Subscribe, headers, put_line,
};
use weigh_protocols::urls;

use crate::exchange::Exchange;
use crate::reach::{Reach, Trouble, unused_name};

/// A connection whose CONNECT was accepted.
pub(super) struct Line {
    line: Exchange,
    /// What the server announced.
    pub(super) info: Value,
    inbox: String,
}

/// What a client asks for besides messages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manner {
    /// Each line is to be answered.
    pub(super) is_verbose: bool,
    /// Its own messages are not to come back.
    pub(super) has_no_echo: bool,
}

/// A message that came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Came {
    pub(super) sid: Vec<u8>,
    pub(super) headers: Vec<u8>,
    pub(super) body: Vec<u8>,
}

/// What came until a PONG.
#[derive(Clone, Debug, Default)]
pub(super) struct Flushed {
    pub(super) messages: Vec<Came>,
    /// Lines `+OK`.
    pub(super) okays: u32,
}

/// A line that came.
enum Heard {
    Message(Came),
    Okay,
    Ping,
    Pong,
    Info,
}

impl Line {
    /// Opens a connection; the server has accepted it.
    pub(super) fn open(reach: &Reach, manner: Manner) -> Result<Line, Trouble> {
        let mut line = Exchange::open(reach)?;
        let info = line.hear(|input| match codec::read_server(input, &Limits::CLIENT) {
            Ok(Some((FromServer::Info(json), bytes))) => {
                let info = serde_json::from_slice(json);
                let info = info.map_err(|error| Trouble::Foreign(format!("INFO: {error}")))?;
                Ok(Some((info, bytes)))
            }
            Ok(Some((FromServer::Error(text), _))) => Err(refused(text)),
            Ok(None) => Ok(None),
            Ok(Some(_)) | Err(_) => {
                let start = input[..input.len().min(24)].escape_ascii();
                Err(Trouble::Foreign(format!("it begins with \"{start}\"")))
            }
        })?;
        let mut own = Line { line, info, inbox: format!("_INBOX.{}", unused_name()) };
        let mut hello = Vec::new();
        put_connect(reach, manner, &mut hello);
        own.line.send(&hello)?;
        own.flush()?;
        Ok(own)
    }

    pub(super) fn subscribe(
        &mut self,
        subject: &str,
        queue: &str,
        sid: &str,
    ) -> Result<(), Trouble> {
        let mut bytes = Vec::new();
        let [subject, queue, sid] = [subject, queue, sid].map(str::as_bytes);
        Subscribe { subject, queue, sid }.put(&mut bytes);
        self.line.send(&bytes)
    }

    pub(super) fn publish(&mut self, publish: &Publish<'_>) -> Result<(), Trouble> {
        let mut bytes = Vec::with_capacity(publish.body.len() + 256);
        publish.put(&mut bytes);
        self.line.send(&bytes)
    }

    /// What came before the answer to a PING: everything that was sent before has been read.
    pub(super) fn flush(&mut self) -> Result<Flushed, Trouble> {
        self.line.send(PING)?;
        let mut flushed = Flushed::default();
        loop {
            match self.next()? {
                Heard::Message(own) => flushed.messages.push(own),
                Heard::Okay => flushed.okays += 1,
                Heard::Pong => return Ok(flushed),
                Heard::Ping | Heard::Info => {}
            }
        }
    }

    /// Sends a request, and waits for its answer.
    pub(super) fn ask(&mut self, request: &Publish<'_>) -> Result<Came, Trouble> {
        let inbox = format!("{}.{}", self.inbox, unused_name());
        self.subscribe(&inbox, "", INBOX)?;
        self.publish(&Publish { reply: inbox.as_bytes(), ..*request })?;
        let answer = self.message(INBOX)?;
        self.line.send(format!("UNSUB {INBOX}\r\n").as_bytes())?;
        match headers::status(&answer.headers) {
            Some((NO_RESPONDERS, _)) => {
                Err(Trouble::Refused("status 503: nothing answers there".to_owned()))
            }
            _ => Ok(answer),
        }
    }

    /// The next message of a subscription.
    pub(super) fn message(&mut self, sid: &str) -> Result<Came, Trouble> {
        loop {
            if let Heard::Message(own) = self.next()?
                && own.sid == sid.as_bytes()
            {
                return Ok(own);
            }
        }
    }

    /// The next line; a PING is answered.
    fn next(&mut self) -> Result<Heard, Trouble> {
        let heard = self.line.hear(|input| {
            let read = codec::read_server(input, &Limits::CLIENT);
            let read = read.map_err(|flaw| Trouble::Foreign(flaw.to_string()))?;
            let Some((line, bytes)) = read else { return Ok(None) };
            let heard = match line {
                FromServer::Message(own) => Heard::Message(Came {
                    sid: own.sid.to_vec(),
                    headers: own.headers.to_vec(),
                    body: own.body.to_vec(),
                }),
                FromServer::Okay => Heard::Okay,
                FromServer::Ping => Heard::Ping,
                FromServer::Pong => Heard::Pong,
                FromServer::Info(_) => Heard::Info,
                FromServer::Error(text) => return Err(refused(text)),
            };
            Ok(Some((heard, bytes)))
        })?;
        if matches!(heard, Heard::Ping) {
            self.line.send(PONG)?;
        }
        Ok(heard)
    }
}

/// A user without a password is a token, as in the URLs of other clients.
fn put_connect(reach: &Reach, manner: Manner, out: &mut Vec<u8>) {
    let mut connect = Connect {
        verbose: manner.is_verbose,
        pedantic: false,
        tls_required: urls::is_secure(&reach.endpoint),
        name: "weigh-probe".to_owned(),
        lang: "rust".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: 1,
        echo: !manner.has_no_echo,
        headers: true,
        no_responders: true,
        ..Connect::default()
    };
    match &reach.endpoint.credentials {
        Some(own) if own.password.is_empty() => connect.auth_token = Some(own.user.clone()),
        Some(own) => {
            connect.user = Some(own.user.clone());
            connect.pass = Some(own.password.clone());
        }
        None => {}
    }
    put_line(out, "CONNECT", &serde_json::to_vec(&connect).unwrap_or_default());
}

fn refused(text: &[u8]) -> Trouble {
    Trouble::Refused(format!("-ERR {}", String::from_utf8_lossy(text)))
}

/// Identifier of the subscription to answers.
const INBOX: &str = "inbox";

/// Status of a request that no subscriber hears.
pub(super) const NO_RESPONDERS: u16 = 503;
