//! Frames of RFC 6455, section 5: written whole, read in pieces of any size. Nothing is kept of a
//! frame but its header and the payload of a control frame.

/// Kind of a frame (RFC 6455, section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// More of the message before it.
    Continuation,
    /// A message of text.
    Text,
    /// A message of bytes.
    Binary,
    /// The end.
    Close,
    /// To be answered by a pong with the same payload.
    Ping,
    /// An answer to a ping.
    Pong,
}

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

/// Violation of the rules, and the code to close with (RFC 6455, section 7.4.1).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Broken {
    /// 1002 for a violated rule, 1003 for text, 1007 for bytes that are not UTF-8.
    pub code: u16,
    /// The violated rule.
    pub what: String,
}

impl Broken {
    fn rule(what: impl Into<String>) -> Broken {
        Broken { code: CODE_RULE, what: what.into() }
    }
}

/// Appends a whole frame. Clients mask (RFC 6455, section 5.3), servers never do.
pub fn put_frame(out: &mut Vec<u8>, opcode: Opcode, mask: Option<[u8; 4]>, payload: &[u8]) {
    out.reserve(payload.len() + HEADER_BYTES_MAX);
    out.push(FIN | bits(opcode));
    let masked = if mask.is_some() { MASKED } else { 0 };
    match payload.len() {
        length @ 0..=125 => out.push(masked | length as u8),
        length @ 126..=0xFFFF => {
            out.push(masked | LENGTH_16);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(masked | LENGTH_64);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    if let Some(key) = mask {
        out.extend_from_slice(&key);
    }
    let start = out.len();
    out.extend_from_slice(payload);
    if let Some(key) = mask {
        apply_mask(&mut out[start..], key, 0);
    }
}

/// Returns the length of the header of a frame with `payload` bytes: 2, and 2 or 8 for a length
/// above 125 or 65,535, and 4 for the mask (RFC 6455, section 5.2).
pub fn header_bytes(payload: u64, is_masked: bool) -> u64 {
    let length = match payload {
        0..=125 => 0,
        126..=0xFFFF => 2,
        _ => 8,
    };
    2 + length + if is_masked { 4 } else { 0 }
}

/// Reads the frames of one direction.
#[derive(Clone, Debug)]
pub struct Decoder {
    expects_mask: bool,
    header: [u8; HEADER_BYTES_MAX],
    header_filled: usize,
    frame: Option<Frame>,
    /// A message has begun and its last frame has not come.
    is_inside_message: bool,
    control: Vec<u8>,
    has_closed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: Opcode,
    key: [u8; 4],
    /// Bytes of payload that came.
    at: u64,
    length: u64,
}

impl Decoder {
    /// Of what a client sends if it `expects_mask`, else of what a server sends.
    pub fn new(expects_mask: bool) -> Decoder {
        Decoder {
            expects_mask,
            header: [0; HEADER_BYTES_MAX],
            header_filled: 0,
            frame: None,
            is_inside_message: false,
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
            let Some(frame) = &mut self.frame else { return Ok(()) };
            let length = (frame.length - frame.at).min(input.len() as u64) as usize;
            let (payload, rest) = input.split_at(length);
            let into = if is_control(frame.opcode) { &mut self.control } else { &mut *plain };
            let start = into.len();
            into.extend_from_slice(payload);
            if self.expects_mask {
                apply_mask(&mut into[start..], frame.key, frame.at);
            }
            frame.at += length as u64;
            input = rest;
            if frame.at < frame.length {
                return Ok(());
            }
            let opcode = frame.opcode;
            self.frame = None;
            self.end_of_frame(opcode, control)?;
        }
        Ok(())
    }

    /// True if a message or a frame is not whole.
    pub fn is_inside(&self) -> bool {
        self.is_inside_message || self.frame.is_some() || self.header_filled > 0
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
        self.begin_frame()?;
        Ok(true)
    }

    /// The length of the header as far as it is known.
    fn header_wanted(&self) -> usize {
        if self.header_filled < 2 {
            return 2;
        }
        let length = match self.header[1] & !MASKED {
            LENGTH_16 => 2,
            LENGTH_64 => 8,
            _ => 0,
        };
        2 + length + if self.header[1] & MASKED != 0 { 4 } else { 0 }
    }

    fn begin_frame(&mut self) -> Result<(), Broken> {
        let header = &self.header[..self.header_filled];
        let (first, second) = (header[0], header[1]);
        let is_masked = second & MASKED != 0;
        if first & RESERVED != 0 {
            return Err(Broken::rule("reserved bits are set, and no extension was agreed on"));
        }
        let opcode = opcode(first & 0x0F)
            .ok_or_else(|| Broken::rule(format!("there is no opcode {}", first & 0x0F)))?;
        if is_masked != self.expects_mask {
            let which = if is_masked { "a server's frame is" } else { "a client's frame is not" };
            return Err(Broken::rule(format!("{which} masked")));
        }
        let (length, least) = match second & !MASKED {
            LENGTH_16 => (u64::from(u16::from_be_bytes([header[2], header[3]])), 126),
            LENGTH_64 => {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&header[2..10]);
                (u64::from_be_bytes(bytes), 0x1_0000)
            }
            length => (u64::from(length), 0),
        };
        if length < least || length > i64::MAX as u64 {
            return Err(Broken::rule(format!("a length of {length} is not written so")));
        }
        let is_last = first & FIN != 0;
        if is_control(opcode) && (!is_last || length > CONTROL_BYTES_MAX) {
            return Err(Broken::rule("a control frame is in pieces or longer than 125 bytes"));
        }
        match opcode {
            Opcode::Text => {
                let what = "text came, where the protocol inside is bytes".to_owned();
                return Err(Broken { code: CODE_TEXT, what });
            }
            Opcode::Continuation if !self.is_inside_message => {
                return Err(Broken::rule("a continuation of nothing"));
            }
            Opcode::Binary if self.is_inside_message => {
                return Err(Broken::rule("a message begins inside another"));
            }
            Opcode::Binary | Opcode::Continuation => self.is_inside_message = !is_last,
            Opcode::Close | Opcode::Ping | Opcode::Pong => self.control.clear(),
        }
        let mut key = [0; 4];
        if is_masked {
            key.copy_from_slice(&header[header.len() - 4..]);
        }
        self.header_filled = 0;
        self.frame = Some(Frame { opcode, key, at: 0, length });
        Ok(())
    }

    fn end_of_frame(
        &mut self,
        opcode: Opcode,
        control: &mut dyn FnMut(Control<'_>),
    ) -> Result<(), Broken> {
        match opcode {
            Opcode::Ping => control(Control::Ping(&self.control)),
            Opcode::Pong => control(Control::Pong(&self.control)),
            Opcode::Close => {
                let (code, why) = closing(&self.control)?;
                self.has_closed = true;
                control(Control::Close(code, why));
            }
            Opcode::Continuation | Opcode::Text | Opcode::Binary => {}
        }
        Ok(())
    }
}

/// Code and reason of a close frame (RFC 6455, section 5.5.1).
fn closing(payload: &[u8]) -> Result<(Option<u16>, &str), Broken> {
    let Some((code, why)) = payload.split_first_chunk::<2>() else {
        let is_empty = payload.is_empty();
        return if is_empty { Ok((None, "")) } else { Err(Broken::rule("half a close code")) };
    };
    let code = u16::from_be_bytes(*code);
    // Section 7.4: 1004 to 1006 and 1015 are never sent, nor is what is below 1000.
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(Broken::rule(format!("{code} is not a close code")));
    }
    let why = std::str::from_utf8(why)
        .map_err(|_| Broken { code: CODE_ENCODING, what: "a reason that is not UTF-8".into() })?;
    Ok((Some(code), why))
}

/// XOR with the key, as if `at` bytes had come before (RFC 6455, section 5.3).
fn apply_mask(bytes: &mut [u8], key: [u8; 4], at: u64) {
    let mut turned = key;
    turned.rotate_left((at % 4) as usize);
    let wide = u64::from_ne_bytes([
        turned[0], turned[1], turned[2], turned[3], turned[0], turned[1], turned[2], turned[3],
    ]);
    let (chunks, rest) = bytes.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(turned.iter().cycle()) {
        *byte ^= key;
    }
}

fn is_control(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Close | Opcode::Ping | Opcode::Pong)
}

fn bits(opcode: Opcode) -> u8 {
    match opcode {
        Opcode::Continuation => 0,
        Opcode::Text => 1,
        Opcode::Binary => 2,
        Opcode::Close => 8,
        Opcode::Ping => 9,
        Opcode::Pong => 10,
    }
}

fn opcode(bits: u8) -> Option<Opcode> {
    Some(match bits {
        0 => Opcode::Continuation,
        1 => Opcode::Text,
        2 => Opcode::Binary,
        8 => Opcode::Close,
        9 => Opcode::Ping,
        10 => Opcode::Pong,
        _ => return None,
    })
}

/// The usual end (RFC 6455, section 7.4.1).
pub const CODE_NORMAL: u16 = 1000;

// RFC 6455, sections 5.2, 5.5 and 7.4.1.
const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;
const CONTROL_BYTES_MAX: u64 = 125;
const HEADER_BYTES_MAX: usize = 14;
const CODE_RULE: u16 = 1002;
const CODE_TEXT: u16 = 1003;
const CODE_ENCODING: u16 = 1007;
