//! Messages of CoAP (RFC 7252, section 3): a datagram to its parts and back. Nothing is copied or
//! allocated, and no input causes a panic.

pub mod code;
mod flaw;
mod option;
mod token;

pub use code::Code;
pub use flaw::Flaw;
pub use option::{
    BLOCK_SZX_MAX, Block, CoapOption, OptionWriter, Options, PAYLOAD_MARKER, number, read_unsigned,
    split as split_body,
};
pub use token::{TOKEN_BYTES_MAX, Token};

/// Type of a message (section 3): what the receiver does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Must be acknowledged or rejected; its sender repeats it until then.
    Confirmable,
    /// Is not acknowledged.
    NonConfirmable,
    /// Acknowledges a confirmable message, and may carry the response to it.
    Acknowledgement,
    /// Reports that the receiver cannot handle a message.
    Reset,
}

/// A message, whose parts are in the datagram it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'m> {
    /// Type.
    pub kind: Kind,
    /// Method of a request, or result of a response.
    pub code: Code,
    /// Message ID: matches acknowledgements and finds duplicates.
    pub id: u16,
    /// Token: matches responses to requests.
    pub token: Token,
    /// The options.
    pub options: Options<'m>,
    /// The payload; empty if there is none.
    pub payload: &'m [u8],
}

impl Kind {
    fn from_bits(bits: u8) -> Kind {
        match bits & 3 {
            0 => Kind::Confirmable,
            1 => Kind::NonConfirmable,
            2 => Kind::Acknowledgement,
            _ => Kind::Reset,
        }
    }

    fn bits(self) -> u8 {
        match self {
            Kind::Confirmable => 0,
            Kind::NonConfirmable => 1,
            Kind::Acknowledgement => 2,
            Kind::Reset => 3,
        }
    }

    /// Its abbreviation in the specification: `CON`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Confirmable => "CON",
            Kind::NonConfirmable => "NON",
            Kind::Acknowledgement => "ACK",
            Kind::Reset => "RST",
        }
    }
}

/// Reads a datagram.
///
/// # Errors
/// If it is not a message of version 1.
pub fn parse(datagram: &[u8]) -> Result<Message<'_>, Flaw> {
    let (head, rest) = datagram.split_first_chunk::<HEAD_BYTES>().ok_or(Flaw::Short)?;
    let [first, code, high, low] = *head;
    if first >> 6 != VERSION {
        return Err(Flaw::Version(first >> 6));
    }
    let (kind, code) = (Kind::from_bits(first >> 4), Code(code));
    let token_bytes = first & 0xf;
    if usize::from(token_bytes) > TOKEN_BYTES_MAX {
        return Err(Flaw::TokenLength(token_bytes));
    }
    if code == code::EMPTY && (token_bytes > 0 || !rest.is_empty()) {
        return Err(Flaw::NotEmpty);
    }
    if matches!(code.class(), 1 | 6 | 7) {
        return Err(Flaw::Class(code.class()));
    }
    let (token, rest) = rest.split_at_checked(token_bytes.into()).ok_or(Flaw::TokenCut)?;
    let (options, payload) = option::split(rest)?;
    let id = u16::from_be_bytes([high, low]);
    Ok(Message { kind, code, id, token: Token::of(token), options, payload })
}

/// Returns the type and the message ID at the start of a datagram that [`parse`] refused, so that
/// it can be rejected (section 4.2); `None` if it is not of this protocol.
pub fn peek(datagram: &[u8]) -> Option<(Kind, u16)> {
    let [first, _, high, low] = *datagram.first_chunk::<HEAD_BYTES>()?;
    let is_known = first >> 6 == VERSION;
    is_known.then(|| (Kind::from_bits(first >> 4), u16::from_be_bytes([high, low])))
}

/// Appends header and token; options and payload follow.
pub fn put_head(out: &mut Vec<u8>, kind: Kind, code: Code, id: u16, token: Token) {
    let [high, low] = id.to_be_bytes();
    let first = VERSION << 6 | kind.bits() << 4 | token.len() as u8;
    out.extend_from_slice(&[first, code.0, high, low]);
    out.extend_from_slice(token.bytes());
}

/// Appends an empty message: an acknowledgement, a reset, or a confirmable one (section 4.3,
/// "CoAP ping").
pub fn put_empty(out: &mut Vec<u8>, kind: Kind, id: u16) {
    put_head(out, kind, code::EMPTY, id, Token::default());
}

/// Appends the payload with its marker; nothing if it is empty.
pub fn put_payload(out: &mut Vec<u8>, payload: &[u8]) {
    if !payload.is_empty() {
        out.push(PAYLOAD_MARKER);
        out.extend_from_slice(payload);
    }
}

/// Bytes of the header.
pub const HEAD_BYTES: usize = 4;

/// The version of RFC 7252.
const VERSION: u8 = 1;
