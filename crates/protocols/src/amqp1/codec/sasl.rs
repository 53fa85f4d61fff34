//! Frames of SASL (part 5, section 5.3.3).

use super::composite::{Fields, Symbols};
use super::flaw::Flaw;
use super::frame::{FrameKind, begin_frame, end_frame};
use super::value::{Array, Cursor, Value};
use super::writer::{List, put_sized};

/// A frame of SASL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sasl<'a> {
    /// Mechanisms of the server. [`MECHANISMS`] is what is written, or only PLAIN.
    Mechanisms(Symbols<'a>),
    /// The client's choice.
    Init {
        /// Its mechanism.
        mechanism: &'a str,
        /// The first response.
        response: Option<&'a [u8]>,
        /// Name of the host.
        hostname: Option<&'a str>,
    },
    /// The server asks for more.
    Challenge,
    /// The client's answer to that.
    Response,
    /// The result: its code.
    Outcome(u8),
}

/// Codes of an outcome (section 5.3.3.6).
#[derive(Clone, Copy, Debug)]
pub struct Outcome;

impl Outcome {
    /// It is as it should be.
    pub const OK: u8 = 0;
    /// User or password are wrong.
    pub const AUTH: u8 = 1;
}

impl<'a> Sasl<'a> {
    /// Reads the body of a frame.
    ///
    /// # Errors
    /// A body that is none of these.
    pub fn read(body: &'a [u8]) -> Result<Sasl<'a>, Flaw> {
        let Value::Described(described) = Cursor::new(body).value()? else {
            return Err(Flaw::decode("a frame of SASL that does not begin with one of its types"));
        };
        let code = described.code()?;
        let mut fields = Fields::of(described)?;
        let sasl = match code {
            0x40 => Sasl::Mechanisms(fields.symbols()?),
            0x41 => Sasl::Init {
                mechanism: fields.symbol()?.ok_or(MANDATORY)?,
                response: fields.binary()?,
                hostname: fields.text()?,
            },
            0x42 => Sasl::Challenge,
            0x43 => Sasl::Response,
            0x44 => Sasl::Outcome(fields.ubyte()?.ok_or(MANDATORY)?),
            _ => return Err(Flaw::decode("an unknown frame of SASL")),
        };
        fields.finish()?;
        Ok(sasl)
    }

    /// Writes it as a frame.
    pub fn put(&self, out: &mut Vec<u8>) {
        let at = begin_frame(FrameKind::Sasl, 0, out);
        match self {
            Sasl::Mechanisms(own) => {
                let mut list = List::begin(0x40, out);
                list.value(out, |out| put_symbols(*own, out));
                list.end(out);
            }
            Sasl::Init { mechanism, response, hostname } => {
                let mut list = List::begin(0x41, out);
                list.symbol(mechanism, out);
                match response {
                    Some(response) => list.binary(response, out),
                    None => list.null(),
                }
                list.optional_text(*hostname, out);
                list.end(out);
            }
            Sasl::Challenge | Sasl::Response => {
                let code = if *self == Sasl::Challenge { 0x42 } else { 0x43 };
                let mut list = List::begin(code, out);
                list.binary(b"", out);
                list.end(out);
            }
            Sasl::Outcome(code) => {
                let mut list = List::begin(0x44, out);
                list.ubyte(*code, out);
                list.end(out);
            }
        }
        end_frame(at, out);
    }

    /// Its name in the specification.
    pub fn name(&self) -> &'static str {
        match self {
            Sasl::Mechanisms(_) => "sasl-mechanisms",
            Sasl::Init { .. } => "sasl-init",
            Sasl::Challenge => "sasl-challenge",
            Sasl::Response => "sasl-response",
            Sasl::Outcome(_) => "sasl-outcome",
        }
    }
}

/// An array of symbols, at least one: each with a size of one byte.
fn put_symbols(symbols: Symbols<'_>, out: &mut Vec<u8>) {
    let mut items = vec![symbols.iter().count() as u8, 0xA3];
    for name in symbols.iter() {
        items.push(name.len() as u8);
        items.extend_from_slice(name.as_bytes());
    }
    put_sized(0xE0, &items, out);
}

/// Mechanisms that a reference server has without a login of its own.
pub const MECHANISMS: Symbols<'static> =
    Symbols::Many(Array { count: 2, code: 0xA3, items: b"\x05PLAIN\x09ANONYMOUS" });

const MANDATORY: Flaw = Flaw::decode("a mandatory field that is null");
