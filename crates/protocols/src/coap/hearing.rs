//! What a client does with every datagram before it looks for the request: refuse what is not CoAP,
//! reject what it does not expect, and acknowledge what it does (RFC 7252, sections 4.2 and 5.2.2).

use weigh_model::Nanos;
use weigh_model::connection::{Fault, Outbox};

use super::codec::{self, Kind, Message};
use super::seen::{Known, Seen};

/// The receiving side of a client.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    has_heard: bool,
    /// Confirmable messages of the server that were acknowledged.
    seen: Seen,
}

impl Hearing {
    /// Reads a datagram; `None` if it is to be ignored. A malformed confirmable one is rejected.
    ///
    /// # Errors
    /// If the very first datagram is not of CoAP: the server speaks another protocol.
    pub(super) fn read<'m>(
        &mut self,
        datagram: &'m [u8],
        out: &mut Outbox,
    ) -> Result<Option<Message<'m>>, Fault> {
        match codec::parse(datagram) {
            Ok(message) => {
                self.has_heard = true;
                Ok(Some(message))
            }
            Err(flaw) if !self.has_heard => {
                let start = &datagram[..datagram.len().min(SHOWN_BYTES_MAX)];
                let text = format!("{flaw}; it starts with \"{}\"", start.escape_ascii());
                Err(Fault::OtherProtocol(text))
            }
            Err(_) => {
                if let Some((Kind::Confirmable, id)) = codec::peek(datagram) {
                    codec::put_empty(out.buffer(), Kind::Reset, id);
                    out.frame();
                }
                Ok(None)
            }
        }
    }

    /// Acknowledges a confirmable message that does not verify: it stays unanswered otherwise, and
    /// ends nothing (RFC 8613, section 8.4).
    pub(super) fn confirm_unverified(&mut self, message: &Message<'_>, out: &mut Outbox) {
        if message.kind == Kind::Confirmable {
            codec::put_empty(out.buffer(), Kind::Acknowledgement, message.id);
            out.frame();
        }
    }

    /// Acknowledges a confirmable message if `is_known` or if it was acknowledged before, else
    /// rejects it; true if it is new and expected.
    pub(super) fn confirm(
        &mut self,
        message: &Message<'_>,
        is_known: bool,
        now: Nanos,
        lifetime: Nanos,
        out: &mut Outbox,
    ) -> bool {
        let Message { id, token, code, .. } = *message;
        let is_again = self.seen.known(id, token, now, lifetime).is_some();
        let is_new = is_known && code.is_response() && !is_again;
        let answer = if is_new || is_again { Kind::Acknowledgement } else { Kind::Reset };
        codec::put_empty(out.buffer(), answer, id);
        out.frame();
        if is_new {
            self.seen.note(id, token, Known { code, partial_iv: 0 }, now, lifetime);
        }
        is_new
    }
}

/// Bytes of a foreign datagram that an error shows.
const SHOWN_BYTES_MAX: usize = 16;
