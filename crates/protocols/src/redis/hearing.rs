//! What every client does first with the bytes of a server: take whole replies, count them, and
//! recognise another protocol.

use weigh_model::connection::Fault;
use weigh_model::content::{Meter, Phase};

use super::codec::{self, Flaw, Reply};

/// The receiving side of a client.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    /// Whole replies so far.
    replies: u32,
    pub(super) meter: Meter,
}

impl Hearing {
    /// Reads the reply at the start of `input`, and its number of bytes; `None` if it is
    /// incomplete.
    ///
    /// # Errors
    /// Bytes that are not RESP.
    pub(super) fn reply<'i>(
        &mut self,
        input: &'i [u8],
        bytes_max: usize,
    ) -> Result<Option<(Reply<'i>, usize)>, Fault> {
        match codec::read_reply(input, bytes_max) {
            Ok(found) => {
                self.replies = self.replies.saturating_add(u32::from(found.is_some()));
                Ok(found)
            }
            Err(flaw) => Err(self.fault(flaw, input)),
        }
    }

    fn fault(&self, flaw: Flaw, input: &[u8]) -> Fault {
        let shown = input[..input.len().min(SHOWN_BYTES_MAX)].escape_ascii();
        match flaw {
            flaw if flaw.is_of_another_protocol() && self.replies == 0 => {
                Fault::OtherProtocol(format!("it starts with \"{shown}\""))
            }
            Flaw::BulkLength | Flaw::Bytes => {
                Fault::Malformed(format!("{flaw} at \"{shown}\": raise redis.bulk_bytes_max"))
            }
            flaw => Fault::Malformed(format!("{flaw} at \"{shown}\"")),
        }
    }

    /// A reply that no command asked for: a server that talks first, or an error of the session.
    pub(super) fn unasked(&self, reply: &Reply<'_>) -> Fault {
        match reply.head {
            codec::Token::Error(text) => super::errors::refused(text),
            head if self.replies == 1 => {
                Fault::OtherProtocol(format!("it talks first, with {}", head.kind()))
            }
            head => Fault::Malformed(format!("{} without a request", head.kind())),
        }
    }

    /// Counts a reply whose bodies have `payload` bytes.
    pub(super) fn count(&mut self, phase: Phase, bytes: usize, payload: usize) {
        self.meter.read(phase, bytes, payload);
    }
}

/// Bytes of a foreign server that an error shows.
const SHOWN_BYTES_MAX: usize = 24;
