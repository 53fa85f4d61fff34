//! Ends of a link: source and target (part 3, section 3.5).

use super::composite::{Fields, Symbols};
use super::flaw::Flaw;
use super::value::{Described, Value};
use super::writer::{List, put_sized};

/// A source or a target. What is not here is read over and not written: filters, outcomes,
/// properties of dynamic nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terminus<'a> {
    /// Name of the node.
    pub address: Option<&'a str>,
    /// What of it survives: 0 nothing, 1 its configuration, 2 the state of deliveries too.
    pub durable: u32,
    /// When it ends, such as `session-end`, the default, or `never`.
    pub expiry_policy: Option<&'a str>,
    /// Seconds that it lives after that.
    pub timeout_s: u32,
    /// The peer makes a node.
    pub dynamic: bool,
    /// What it can do, such as `queue` or `topic`; one symbol is written.
    pub capabilities: Symbols<'a>,
    /// True for the coordinator of transactions, which has none of the above.
    pub is_coordinator: bool,
    /// True for a source that asks for a filter.
    pub is_filtered: bool,
}

impl<'a> Terminus<'a> {
    pub(super) fn read(described: Described<'a>, is_source: bool) -> Result<Terminus<'a>, Flaw> {
        let mut fields = Fields::of(described)?;
        match described.code()? {
            SOURCE if is_source => {}
            TARGET if !is_source => {}
            COORDINATOR if !is_source => {
                fields.finish()?;
                return Ok(Terminus { is_coordinator: true, ..Terminus::default() });
            }
            _ => return Err(Flaw::decode("neither a source nor a target")),
        }
        let mut terminus = Terminus {
            address: fields.text()?,
            durable: fields.uint()?.unwrap_or(0),
            expiry_policy: fields.symbol()?,
            timeout_s: fields.uint()?.unwrap_or(0),
            dynamic: fields.boolean()?.unwrap_or(false),
            ..Terminus::default()
        };
        fields.skip()?;
        if is_source {
            fields.skip()?;
            terminus.is_filtered = fields.value()? != Value::Null;
            fields.skip()?;
            fields.skip()?;
        }
        terminus.capabilities = fields.symbols()?;
        fields.finish()?;
        Ok(terminus)
    }

    pub(super) fn put(&self, is_source: bool, out: &mut Vec<u8>) {
        if self.is_coordinator {
            return List::begin(COORDINATOR as u8, out).end(out);
        }
        let mut list = List::begin(if is_source { SOURCE } else { TARGET } as u8, out);
        list.optional_text(self.address, out);
        list.optional_uint((self.durable > 0).then_some(self.durable), out);
        match self.expiry_policy {
            Some(policy) => list.symbol(policy, out),
            None => list.null(),
        }
        list.optional_uint((self.timeout_s > 0).then_some(self.timeout_s), out);
        list.flag(self.dynamic, out);
        list.null();
        if is_source {
            (0..4).for_each(|_| list.null());
        }
        match self.capabilities.iter().next() {
            // RabbitMQ's plugin and others expect an array, although one symbol may stand alone.
            Some(name) => list.value(out, |out| put_array(name, out)),
            None => list.null(),
        }
        list.end(out);
    }
}

/// An array of one symbol (part 1, section 1.6.24).
fn put_array(name: &str, out: &mut Vec<u8>) {
    let mut items = vec![1, 0xA3, name.len() as u8];
    items.extend_from_slice(name.as_bytes());
    put_sized(0xE0, &items, out);
}

const SOURCE: u64 = 0x28;
const TARGET: u64 = 0x29;
const COORDINATOR: u64 = 0x30;
