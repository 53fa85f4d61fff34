//! One UDP socket to a server of CoAP: requests one after the other, repeated until they are
//! answered.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use weigh_protocols::coap::codec::{
    self, Block, Code, Kind, OptionWriter, Token, code, number, put_payload,
};

use crate::reach::{Reach, Trouble, random};

/// The socket, which is one endpoint with its own message IDs.
pub(crate) struct Line {
    socket: UdpSocket,
    reach: Reach,
    next_id: u16,
    next_token: u32,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request<'r> {
    pub(crate) kind: Kind,
    pub(crate) code: Code,
    /// Options in rising order of their numbers.
    pub(crate) options: Vec<(u16, Vec<u8>)>,
    pub(crate) payload: &'r [u8],
}

/// A response, or a notification.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) kind: Kind,
    pub(crate) code: Code,
    pub(crate) options: Vec<(u16, Vec<u8>)>,
    pub(crate) payload: Vec<u8>,
    pub(crate) token: Token,
    /// True if an empty acknowledgement came before it.
    pub(crate) was_acknowledged: bool,
}

impl Answer {
    /// The value of an option.
    pub(crate) fn option(&self, number: u16) -> Option<&[u8]> {
        self.options.iter().find(|(own, _)| *own == number).map(|(_, value)| &value[..])
    }

    /// The block that an option names.
    pub(crate) fn block(&self, number: u16) -> Option<Block> {
        self.option(number).and_then(Block::read)
    }

    /// Code and name: `4.05 Method Not Allowed`.
    pub(crate) fn words(&self) -> String {
        match self.code.name() {
            Some(name) => format!("{} {name}", self.code),
            None => self.code.to_string(),
        }
    }
}

impl Line {
    /// Makes a socket of its own, so that no question depends on the ones before it.
    pub(crate) fn open(reach: &Reach) -> Result<Line, Trouble> {
        let any = if reach.address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).and_then(|socket| {
            socket.connect(reach.address)?;
            Ok(socket)
        });
        let socket = socket.map_err(|error| Trouble::Unreachable(error.to_string()))?;
        let [high, low, rest @ ..] = random::<6>();
        Ok(Line {
            socket,
            reach: reach.clone(),
            next_id: u16::from_be_bytes([high, low]),
            next_token: u32::from_be_bytes(rest),
        })
    }

    /// Sends a request and waits for its response. A confirmable one is repeated.
    ///
    /// # Errors
    /// If it is rejected, or no response comes.
    pub(crate) fn ask(&mut self, request: &Request<'_>) -> Result<Answer, Trouble> {
        let (id, token) = self.name();
        let message = composed(request, id, token);
        let until = self.reach.until()?;
        self.exchange(&message, request.kind == Kind::Confirmable, (id, token), until)
    }

    /// Sends a request once; a response is not awaited. Returns its token.
    pub(crate) fn send(&mut self, request: &Request<'_>) -> Result<Token, Trouble> {
        let (id, token) = self.name();
        self.put(&composed(request, id, token))?;
        Ok(token)
    }

    /// An empty confirmable message (RFC 7252, section 4.3); true if it is answered by a reset.
    pub(crate) fn ping(&mut self) -> Result<bool, Trouble> {
        let id = self.name().0;
        let mut message = Vec::new();
        codec::put_empty(&mut message, Kind::Confirmable, id);
        let until = self.reach.until()?;
        match self.exchange(&message, true, (id, Token::default()), until) {
            Err(Trouble::Refused(_)) => Ok(true),
            Ok(_) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Waits for a message with this token that is not an answer to a request of the call.
    pub(crate) fn hear(&mut self, token: Token, until: Instant) -> Result<Answer, Trouble> {
        loop {
            if let Some(answer) = self.read(until)?
                && answer.token == token
            {
                return Ok(answer);
            }
        }
    }

    fn name(&mut self) -> (u16, Token) {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_token = self.next_token.wrapping_add(1);
        (self.next_id, Token::of(&self.next_token.to_be_bytes()))
    }

    fn exchange(
        &mut self,
        message: &[u8],
        is_repeated: bool,
        (id, token): (u16, Token),
        until: Instant,
    ) -> Result<Answer, Trouble> {
        self.put(message)?;
        let mut repeat = Instant::now() + REPEATED_AFTER;
        let mut was_acknowledged = false;
        loop {
            let next = until.min(repeat);
            let datagram = match self.datagram(next) {
                Ok(datagram) => datagram,
                Err(Trouble::Silent(_)) if next < until => {
                    repeat += REPEATED_AFTER;
                    if is_repeated && !was_acknowledged {
                        self.put(message)?;
                    }
                    continue;
                }
                Err(other) => return Err(other),
            };
            let heard = codec::parse(&datagram)
                .map_err(|flaw| Trouble::Foreign(format!("its answer is not CoAP: {flaw}")))?;
            match heard.kind {
                Kind::Reset if heard.id == id => {
                    return Err(Trouble::Refused("it was rejected (RST)".to_owned()));
                }
                Kind::Acknowledgement if heard.id == id && heard.code == code::EMPTY => {
                    was_acknowledged = true;
                }
                _ if heard.token == token && heard.code.is_response() => {
                    self.confirm(&heard)?;
                    return Ok(owned(&heard, was_acknowledged));
                }
                _ => {}
            }
        }
    }

    /// Reads one message; `None` for one that is not a response.
    fn read(&mut self, until: Instant) -> Result<Option<Answer>, Trouble> {
        let datagram = self.datagram(until)?;
        let Ok(heard) = codec::parse(&datagram) else { return Ok(None) };
        if !heard.code.is_response() {
            return Ok(None);
        }
        self.confirm(&heard)?;
        Ok(Some(owned(&heard, false)))
    }

    /// Acknowledges a confirmable message.
    fn confirm(&self, heard: &codec::Message<'_>) -> Result<(), Trouble> {
        if heard.kind != Kind::Confirmable {
            return Ok(());
        }
        let mut empty = Vec::new();
        codec::put_empty(&mut empty, Kind::Acknowledgement, heard.id);
        self.put(&empty)
    }

    fn put(&self, message: &[u8]) -> Result<(), Trouble> {
        self.socket.send(message).map(drop).map_err(|error| self.trouble(&error))
    }

    fn datagram(&self, until: Instant) -> Result<Vec<u8>, Trouble> {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        loop {
            let turn = self.reach.turn(until)?;
            self.socket.set_read_timeout(Some(turn)).map_err(|error| self.trouble(&error))?;
            match self.socket.recv(&mut buffer) {
                Ok(bytes) => {
                    buffer.truncate(bytes);
                    return Ok(buffer);
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(self.trouble(&error)),
            }
        }
    }

    fn trouble(&self, error: &std::io::Error) -> Trouble {
        let address = self.reach.address;
        match error.kind() {
            ErrorKind::ConnectionRefused => Trouble::Unreachable(format!(
                "no process listens on {address}: it was refused; check host and port"
            )),
            _ => Trouble::Unreachable(format!("{address}: {error}; check host and port")),
        }
    }
}

fn composed(request: &Request<'_>, id: u16, token: Token) -> Vec<u8> {
    let mut message = Vec::new();
    codec::put_head(&mut message, request.kind, request.code, id, token);
    let mut writer = OptionWriter::default();
    for (number, value) in &request.options {
        writer.put(&mut message, *number, value);
    }
    put_payload(&mut message, request.payload);
    message
}

fn owned(heard: &codec::Message<'_>, was_acknowledged: bool) -> Answer {
    Answer {
        kind: heard.kind,
        code: heard.code,
        options: heard.options.iter().map(|own| (own.number, own.value.to_vec())).collect(),
        payload: heard.payload.to_vec(),
        token: heard.token,
        was_acknowledged,
    }
}

/// The value of an option that is a number, without leading zeros.
pub(crate) fn unsigned(value: u32) -> Vec<u8> {
    let mut option = Vec::new();
    OptionWriter::default().put_unsigned(&mut option, number::OBSERVE, value);
    option.split_off(1)
}

/// A message that is not answered is sent again: nothing is timed here, so the parameters of the
/// specification are not needed.
const REPEATED_AFTER: Duration = Duration::from_millis(400);

const DATAGRAM_BYTES_MAX: usize = 65_536;
