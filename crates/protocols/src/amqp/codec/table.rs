//! Field tables (AMQP 0-9-1, section 4.2.5.5). Two sets of value types are in use: that of the
//! specification, and that of RabbitMQ and Qpid (the errata of the specification), in which `s` is
//! a signed 16-bit number. They agree in all types that are written here; `s` is read as the errata
//! say.

use super::field::{Cursor, Field, Long, Short};
use super::flaw::Flaw;

/// A table that was read and checked, or is to be written: its entries without their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table<'a>(&'a [u8]);

/// A value of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// `t`.
    Flag(bool),
    /// A whole number of any type: `b`, `B`, `s`, `U`, `u`, `I`, `i`, `l` and `L`.
    Number(i64),
    /// `T`: seconds since 1970.
    Time(u64),
    /// `f` and `d`.
    Real(f64),
    /// `D`: a number of decimal places, and the digits.
    Decimal(u8, u32),
    /// `S` and `x`.
    Text(&'a [u8]),
    /// `F`.
    Table(Table<'a>),
    /// `A`: values one after the other, without names.
    Array(&'a [u8]),
    /// `V`.
    Void,
}

/// A table that is being made.
#[derive(Clone, Debug, Default)]
pub struct TableWriter {
    entries: Vec<u8>,
}

impl<'a> Table<'a> {
    /// The table without entries.
    pub const EMPTY: Table<'static> = Table(&[]);

    /// All entries in their order.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> + use<'a> {
        let mut from = Cursor::new(self.0);
        std::iter::from_fn(move || entry(&mut from, DEPTH_MAX).ok())
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.entries().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// The text of `name`, if it is one in UTF-8.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        match self.get(name) {
            Some(Value::Text(text)) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    /// True if the table `of` inside this one has the flag `name` set.
    pub fn has_capability(&self, of: &str, name: &str) -> bool {
        match self.get(of) {
            Some(Value::Table(inner)) => inner.get(name) == Some(Value::Flag(true)),
            _ => false,
        }
    }
}

impl<'a> Field<'a> for Table<'a> {
    fn read(from: &mut Cursor<'a>) -> Result<Table<'a>, Flaw> {
        table(from, DEPTH_MAX)
    }

    fn put(&self, out: &mut Vec<u8>) {
        Long(self.0).put(out);
    }
}

/// Reads a table and all its values, so that later reading finds no flaw.
fn table<'a>(from: &mut Cursor<'a>, depth: u8) -> Result<Table<'a>, Flaw> {
    let Long(entries) = Long::read(from)?;
    let mut inner = Cursor::new(entries);
    while !inner.rest().is_empty() {
        entry(&mut inner, depth)?;
    }
    Ok(Table(entries))
}

fn entry<'a>(from: &mut Cursor<'a>, depth: u8) -> Result<(&'a str, Value<'a>), Flaw> {
    let Short(name) = Short::read(from)?;
    Ok((name, value(from, depth)?))
}

fn value<'a>(from: &mut Cursor<'a>, depth: u8) -> Result<Value<'a>, Flaw> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Flaw::syntax("tables are nested too deeply"));
    };
    Ok(match u8::read(from)? {
        b't' => Value::Flag(u8::read(from)? != 0),
        b'b' => Value::Number(i8::read(from)?.into()),
        b'B' => Value::Number(u8::read(from)?.into()),
        b's' | b'U' => Value::Number(i16::read(from)?.into()),
        b'u' => Value::Number(u16::read(from)?.into()),
        b'I' => Value::Number(i32::read(from)?.into()),
        b'i' => Value::Number(u32::read(from)?.into()),
        b'l' | b'L' => Value::Number(i64::read(from)?),
        b'f' => Value::Real(f32::read(from)?.into()),
        b'd' => Value::Real(f64::read(from)?),
        b'D' => Value::Decimal(u8::read(from)?, u32::read(from)?),
        b'S' | b'x' => Value::Text(Long::read(from)?.0),
        b'T' => Value::Time(u64::read(from)?),
        b'F' => Value::Table(table(from, depth)?),
        b'A' => {
            let Long(values) = Long::read(from)?;
            let mut inner = Cursor::new(values);
            while !inner.rest().is_empty() {
                value(&mut inner, depth)?;
            }
            Value::Array(values)
        }
        b'V' => Value::Void,
        _ => return Err(Flaw::syntax("a table has a value of an unknown type")),
    })
}

impl TableWriter {
    /// Adds a text.
    pub fn text(&mut self, name: &str, value: &str) -> &mut TableWriter {
        self.name(name, b'S');
        Long(value.as_bytes()).put(&mut self.entries);
        self
    }

    /// Adds a flag.
    pub fn flag(&mut self, name: &str, value: bool) -> &mut TableWriter {
        self.name(name, b't');
        self.entries.push(u8::from(value));
        self
    }

    /// Adds a number of 64 bits.
    pub fn number(&mut self, name: &str, value: i64) -> &mut TableWriter {
        self.name(name, b'l');
        value.put(&mut self.entries);
        self
    }

    /// Adds a table.
    pub fn table(&mut self, name: &str, value: Table<'_>) -> &mut TableWriter {
        self.name(name, b'F');
        value.put(&mut self.entries);
        self
    }

    /// The table so far.
    pub fn as_table(&self) -> Table<'_> {
        Table(&self.entries)
    }

    fn name(&mut self, name: &str, kind: u8) {
        Short(name).put(&mut self.entries);
        self.entries.push(kind);
    }
}

/// Tables in tables that are read: a limit for the stack.
const DEPTH_MAX: u8 = 16;
