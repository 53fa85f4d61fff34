//! Delivery states (part 3, section 3.4) and errors (part 2, section 2.8.14).

use super::composite::Fields;
use super::flaw::Flaw;
use super::value::{Compound, Cursor, Described, Value};
use super::writer::List;

/// State of a delivery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State<'a> {
    /// Part of it arrived; it is not an outcome.
    Received,
    /// The receiver has it.
    Accepted,
    /// It is invalid.
    Rejected(Option<Problem<'a>>),
    /// It was not processed, and may go elsewhere.
    Released,
    /// It was not processed, with changes.
    Modified {
        /// An attempt to deliver it failed.
        failed: bool,
        /// It must not come to this link again.
        undeliverable: bool,
    },
    /// A state of another specification, such as one of a transaction.
    Other(u64),
}

/// An error: a condition, and a text for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem<'a> {
    /// Its condition.
    pub condition: &'a str,
    /// What happened.
    pub description: Option<&'a str>,
    /// More about it, such as the place of a redirection; it is not written.
    pub info: Option<Compound<'a>>,
}

impl<'a> State<'a> {
    /// True if it ends the delivery.
    pub fn is_outcome(&self) -> bool {
        !matches!(self, State::Received | State::Other(_))
    }

    pub(super) fn read(described: Described<'a>) -> Result<State<'a>, Flaw> {
        let code = described.code()?;
        let mut fields = Fields::of(described)?;
        let state = match code {
            0x23 => State::Received,
            0x24 => State::Accepted,
            0x25 => State::Rejected(Problem::read(&mut fields)?),
            0x26 => State::Released,
            0x27 => State::Modified {
                failed: fields.boolean()?.unwrap_or(false),
                undeliverable: fields.boolean()?.unwrap_or(false),
            },
            other => State::Other(other),
        };
        fields.finish()?;
        Ok(state)
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let code = match self {
            State::Received => 0x23,
            State::Accepted => 0x24,
            State::Rejected(_) => 0x25,
            State::Released => 0x26,
            State::Modified { .. } => 0x27,
            State::Other(code) => *code as u8,
        };
        let mut list = List::begin(code, out);
        match self {
            State::Received => {
                list.uint(0, out);
                list.ulong(0, out);
            }
            State::Rejected(Some(problem)) => list.value(out, |out| problem.put(out)),
            State::Modified { failed, undeliverable } => {
                list.flag(*failed, out);
                list.flag(*undeliverable, out);
            }
            _ => {}
        }
        list.end(out);
    }
}

impl<'a> Problem<'a> {
    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Option<Problem<'a>>, Flaw> {
        let described = match fields.value()? {
            Value::Null => return Ok(None),
            Value::Described(described) if described.code()? == ERROR => described,
            _ => return Err(Flaw::decode("an error that is not one")),
        };
        let mut fields = Fields::of(described)?;
        let condition = fields.symbol()?.ok_or(Flaw::decode("an error without a condition"))?;
        let description = fields.text()?;
        let info = match fields.value()? {
            Value::Map(map) => Some(map),
            Value::Null => None,
            _ => return Err(Flaw::decode("the info of an error that is not a map")),
        };
        fields.finish()?;
        Ok(Some(Problem { condition, description, info }))
    }

    /// The place that a redirection names, as far as it does (part 2, section 2.8.16 and 2.8.18):
    /// host, port and address of a node.
    pub fn place(&self) -> Option<String> {
        let map = self.info?;
        let (mut host, mut port, mut address) = (None, None, None);
        let mut items = Cursor::new(map.items);
        for _ in 0..map.count / 2 {
            match (items.value().ok()?, items.value().ok()?) {
                (Value::Symbol("network-host"), Value::Text(own) | Value::Symbol(own)) => {
                    host = Some(own);
                }
                (Value::Symbol("port"), Value::Ushort(own)) => port = Some(u32::from(own)),
                (Value::Symbol("port"), Value::Uint(own)) => port = Some(own),
                (Value::Symbol("address"), Value::Text(own) | Value::Symbol(own)) => {
                    address = Some(own);
                }
                _ => {}
            }
        }
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        let address = address.map_or(String::new(), |address| format!("/{address}"));
        host.map(|host| format!("{host}{port}{address}"))
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let mut list = List::begin(ERROR as u8, out);
        list.symbol(self.condition, out);
        list.optional_text(self.description, out);
        list.end(out);
    }
}

const ERROR: u64 = 0x1D;
