//! The order of frames in one direction (RFC 6455, section 5.4): messages in one frame or several,
//! control frames in between.

use crate::close::{Broken, TEXT, TOO_BIG};
use crate::frame::{Header, Opcode};

/// What a receiver accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// True if messages may be text.
    pub accepts_text: bool,
    /// Largest message in bytes.
    pub message_bytes_max: u64,
}

impl Rules {
    /// Bytes of any number: for a protocol inside WebSocket that has limits of its own.
    pub const BYTES: Rules = Rules { accepts_text: false, message_bytes_max: u64::MAX };
}

/// State of the message that is being received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Kind of the message that began and has not ended.
    open: Option<Opcode>,
    /// Its bytes so far.
    bytes: u64,
}

impl Messages {
    /// True between the first and the last frame of a message.
    pub fn is_inside(&self) -> bool {
        self.open.is_some()
    }

    /// Checks whether a frame with this header may come now. Changes nothing, so that a header may
    /// be checked again while its payload arrives.
    ///
    /// # Errors
    /// The violated rule.
    pub fn check(&self, header: &Header, rules: &Rules) -> Result<(), Broken> {
        match header.opcode {
            Opcode::Text if !rules.accepts_text => {
                let what = "text came, where the protocol inside is bytes".to_owned();
                Err(Broken { code: TEXT, what })
            }
            Opcode::Continuation if self.open.is_none() => {
                Err(Broken::rule("a continuation of nothing"))
            }
            Opcode::Binary | Opcode::Text if self.open.is_some() => {
                Err(Broken::rule("a message begins inside another"))
            }
            Opcode::Close | Opcode::Ping | Opcode::Pong => Ok(()),
            _ => {
                let bytes = self.bytes.saturating_add(header.length);
                let most = rules.message_bytes_max;
                if bytes <= most {
                    return Ok(());
                }
                let what = format!("a message of {bytes} bytes, and at most {most} are accepted");
                Err(Broken { code: TOO_BIG, what })
            }
        }
    }

    /// Goes past a frame that was checked. Returns the kind of the message that it ends: text or
    /// binary; `None` for a control frame, or if more frames follow.
    pub fn pass(&mut self, header: &Header) -> Option<Opcode> {
        if header.opcode.is_control() {
            return None;
        }
        let kind = *self.open.get_or_insert(header.opcode);
        self.bytes = self.bytes.saturating_add(header.length);
        if !header.is_last {
            return None;
        }
        *self = Messages::default();
        Some(kind)
    }
}
