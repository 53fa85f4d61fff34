//! The stream of bytes in the binary frames of one direction, read in pieces of any size. Nothing
//! is kept of a frame but its header and the payload of a control frame.

use crate::close::{self, Broken};
use crate::frame::{self, HEADER_BYTES_MAX, Header, Opcode, apply_mask};
use crate::messages::{Messages, Rules};

/// A control frame that came whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control<'c> {
    /// To be answered.
    Ping(&'c [u8]),
    /// An answer.
    Pong(&'c [u8]),
    /// The peer closes: its code, if it gave one, and why.
    Close(Option<u16>, &'c str),
}

/// Reads the frames of one direction.
#[derive(Clone, Debug)]
pub struct Decoder {
    expects_mask: bool,
    header: [u8; HEADER_BYTES_MAX],
    header_filled: usize,
    /// The frame whose payload comes in, and how many bytes of it came.
    frame: Option<(Header, u64)>,
    messages: Messages,
    control: Vec<u8>,
    has_closed: bool,
}

impl Decoder {
    /// Of what a client sends if it `expects_mask`, else of what a server sends.
    pub fn new(expects_mask: bool) -> Decoder {
        Decoder {
            expects_mask,
            header: [0; HEADER_BYTES_MAX],
            header_filled: 0,
            frame: None,
            messages: Messages::default(),
            control: Vec::new(),
            has_closed: false,
        }
    }

    /// Takes all of `input`: the payload of messages is appended to `plain`, whether the frame is
    /// whole or not, and control frames are handed over. What follows a close frame is ignored.
    ///
    /// # Errors
    /// What breaks the rules; nothing may be taken after that.
    pub fn take(
        &mut self,
        mut input: &[u8],
        plain: &mut Vec<u8>,
        control: &mut dyn FnMut(Control<'_>),
    ) -> Result<(), Broken> {
        while !self.has_closed {
            if self.frame.is_none() && !self.take_header(&mut input)? {
                return Ok(());
            }
            let Some((header, at)) = &mut self.frame else { return Ok(()) };
            let length = (header.length - *at).min(input.len() as u64) as usize;
            let (payload, rest) = input.split_at(length);
            let is_control = header.opcode.is_control();
            let into = if is_control { &mut self.control } else { &mut *plain };
            let start = into.len();
            into.extend_from_slice(payload);
            if let Some(key) = header.mask {
                apply_mask(&mut into[start..], key, *at);
            }
            *at += length as u64;
            input = rest;
            if *at < header.length {
                return Ok(());
            }
            let header = *header;
            self.frame = None;
            self.end_of_frame(&header, control)?;
        }
        Ok(())
    }

    /// True if a message or a frame is not whole.
    pub fn is_inside(&self) -> bool {
        self.messages.is_inside() || self.frame.is_some() || self.header_filled > 0
    }

    /// Takes what it can of a header; true once it is whole.
    fn take_header(&mut self, input: &mut &[u8]) -> Result<bool, Broken> {
        loop {
            let wanted = self.header_wanted();
            let count = (wanted - self.header_filled).min(input.len());
            let (taken, rest) = input.split_at(count);
            self.header[self.header_filled..self.header_filled + count].copy_from_slice(taken);
            self.header_filled += count;
            *input = rest;
            if self.header_filled < wanted {
                return Ok(false);
            }
            if self.header_filled == self.header_wanted() {
                break;
            }
        }
        let header = &self.header[..self.header_filled];
        let Some((header, _)) = Header::read(header, self.expects_mask)? else { return Ok(false) };
        self.messages.check(&header, &Rules::BYTES)?;
        if header.opcode.is_control() {
            self.control.clear();
        }
        self.header_filled = 0;
        self.frame = Some((header, 0));
        Ok(true)
    }

    /// The length of the header as far as it is known.
    fn header_wanted(&self) -> usize {
        if self.header_filled < 2 { 2 } else { frame::bytes(self.header[1]) }
    }

    fn end_of_frame(
        &mut self,
        header: &Header,
        control: &mut dyn FnMut(Control<'_>),
    ) -> Result<(), Broken> {
        self.messages.pass(header);
        match header.opcode {
            Opcode::Ping => control(Control::Ping(&self.control)),
            Opcode::Pong => control(Control::Pong(&self.control)),
            Opcode::Close => {
                let (code, why) = close::read(&self.control)?;
                self.has_closed = true;
                control(Control::Close(code, why));
            }
            Opcode::Continuation | Opcode::Text | Opcode::Binary => {}
        }
        Ok(())
    }
}
