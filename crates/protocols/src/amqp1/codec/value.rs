//! The type system (part 1): constructors and values, read without copies.

use super::flaw::Flaw;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `boolean`.
    Bool(bool),
    /// `ubyte`.
    Ubyte(u8),
    /// `ushort`.
    Ushort(u16),
    /// `uint`.
    Uint(u32),
    /// `ulong`.
    Ulong(u64),
    /// `byte`.
    Byte(i8),
    /// `short`.
    Short(i16),
    /// `int`.
    Int(i32),
    /// `long`.
    Long(i64),
    /// `float`.
    Float(f32),
    /// `double`.
    Double(f64),
    /// `decimal32`, `decimal64` or `decimal128`, as its bytes.
    Decimal(&'a [u8]),
    /// `char`: UTF-32 in big-endian order.
    Char(u32),
    /// `timestamp`: milliseconds since 1970.
    Timestamp(i64),
    /// `uuid`.
    Uuid(&'a [u8]),
    /// `binary`.
    Binary(&'a [u8]),
    /// `string`.
    Text(&'a str),
    /// `symbol`: ASCII.
    Symbol(&'a str),
    /// `list`.
    List(Compound<'a>),
    /// `map`: keys and values in turn.
    Map(Compound<'a>),
    /// `array`.
    Array(Array<'a>),
    /// A value with a descriptor before it.
    Described(Described<'a>),
}

/// Items of a list or a map, not read yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compound<'a> {
    /// Number of items.
    pub count: u32,
    /// Their bytes.
    pub items: &'a [u8],
}

/// Items of an array, not read yet: all have one constructor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array<'a> {
    /// Number of items.
    pub count: u32,
    /// Their constructor.
    pub code: u8,
    /// Their bytes.
    pub items: &'a [u8],
}

/// A described value, not read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described<'a> {
    /// Bytes of the descriptor.
    pub descriptor: &'a [u8],
    /// Bytes of the value.
    pub value: &'a [u8],
}

/// Reads values one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Reads `bytes` from their beginning.
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    /// Returns what has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// True if everything is read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads the next value.
    ///
    /// # Errors
    /// Bytes that are not a value, or that end within one.
    pub fn value(&mut self) -> Result<Value<'a>, Flaw> {
        let [code] = self.fixed()?;
        if code != DESCRIBED {
            return self.value_of(code);
        }
        let descriptor = self.raw()?;
        let value = self.raw()?;
        Ok(Value::Described(Described { descriptor, value }))
    }

    /// Reads over the next value, however deep it is, and returns its bytes.
    ///
    /// # Errors
    /// Bytes that are not a value, or that end within one.
    pub fn raw(&mut self) -> Result<&'a [u8], Flaw> {
        let before = self.rest;
        // A described value is two: its descriptor and itself. This counts them, since a recursion
        // would be as deep as the input asks for.
        let mut due = 1usize;
        while due > 0 {
            let [code] = self.fixed()?;
            due = match code {
                DESCRIBED => due + 1,
                code => {
                    self.skip(code)?;
                    due - 1
                }
            };
        }
        Ok(&before[..before.len() - self.rest.len()])
    }

    /// Reads the value of a constructor.
    fn value_of(&mut self, code: u8) -> Result<Value<'a>, Flaw> {
        Ok(match code {
            0x40 => Value::Null,
            0x41 => Value::Bool(true),
            0x42 => Value::Bool(false),
            0x43 => Value::Uint(0),
            0x44 => Value::Ulong(0),
            0x45 => Value::List(Compound::default()),
            0x50 => Value::Ubyte(u8::from_be_bytes(self.fixed()?)),
            0x51 => Value::Byte(i8::from_be_bytes(self.fixed()?)),
            0x52 => Value::Uint(u8::from_be_bytes(self.fixed()?).into()),
            0x53 => Value::Ulong(u8::from_be_bytes(self.fixed()?).into()),
            0x54 => Value::Int(i8::from_be_bytes(self.fixed()?).into()),
            0x55 => Value::Long(i8::from_be_bytes(self.fixed()?).into()),
            0x56 => match self.fixed()? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                _ => return Err(Flaw::decode("a boolean other than 0 and 1")),
            },
            0x60 => Value::Ushort(u16::from_be_bytes(self.fixed()?)),
            0x61 => Value::Short(i16::from_be_bytes(self.fixed()?)),
            0x70 => Value::Uint(u32::from_be_bytes(self.fixed()?)),
            0x71 => Value::Int(i32::from_be_bytes(self.fixed()?)),
            0x72 => Value::Float(f32::from_be_bytes(self.fixed()?)),
            0x73 => Value::Char(u32::from_be_bytes(self.fixed()?)),
            0x74 => Value::Decimal(self.take(4)?),
            0x80 => Value::Ulong(u64::from_be_bytes(self.fixed()?)),
            0x81 => Value::Long(i64::from_be_bytes(self.fixed()?)),
            0x82 => Value::Double(f64::from_be_bytes(self.fixed()?)),
            0x83 => Value::Timestamp(i64::from_be_bytes(self.fixed()?)),
            0x84 => Value::Decimal(self.take(8)?),
            0x94 => Value::Decimal(self.take(16)?),
            0x98 => Value::Uuid(self.take(16)?),
            0xA0 | 0xB0 => Value::Binary(self.sized(code)?),
            0xA1 | 0xB1 => Value::Text(text(self.sized(code)?)?),
            0xA3 | 0xB3 => Value::Symbol(symbol(self.sized(code)?)?),
            0xC0 | 0xD0 => Value::List(self.compound(code)?),
            0xC1 | 0xD1 => Value::Map(self.map(code)?),
            0xE0 | 0xF0 => Value::Array(self.array(code)?),
            _ => return Err(UNKNOWN),
        })
    }

    /// Reads over the value of a constructor: its first digit says how it is laid out (part 1,
    /// section 1.2), so that unknown types are read over too.
    fn skip(&mut self, code: u8) -> Result<(), Flaw> {
        match code >> 4 {
            4 => Ok(()),
            5 => self.take(1).map(drop),
            6 => self.take(2).map(drop),
            7 => self.take(4).map(drop),
            8 => self.take(8).map(drop),
            9 => self.take(16).map(drop),
            0xA..=0xF => self.sized(code).map(drop),
            _ => Err(UNKNOWN),
        }
    }

    fn compound(&mut self, code: u8) -> Result<Compound<'a>, Flaw> {
        let mut inner = Cursor::new(self.sized(code)?);
        let count = inner.count(code)?;
        if count as usize > inner.rest.len() {
            return Err(Flaw::decode("a list with more items than bytes"));
        }
        Ok(Compound { count, items: inner.rest })
    }

    fn map(&mut self, code: u8) -> Result<Compound<'a>, Flaw> {
        match self.compound(code)? {
            map if map.count % 2 == 0 => Ok(map),
            _ => Err(Flaw::decode("a map with a key and no value")),
        }
    }

    fn array(&mut self, code: u8) -> Result<Array<'a>, Flaw> {
        let mut inner = Cursor::new(self.sized(code)?);
        let count = inner.count(code)?;
        let [mut item] = inner.fixed()?;
        // What describes all items is read over: no array that is used here has one.
        if item == DESCRIBED {
            inner.raw()?;
            [item] = inner.fixed()?;
        }
        Ok(Array { count, code: item, items: inner.rest })
    }

    /// A size of one or four bytes, and as many bytes.
    fn sized(&mut self, code: u8) -> Result<&'a [u8], Flaw> {
        let size = self.count(code)?;
        self.take(size as usize)
    }

    /// A number of one byte, or of four where the constructor's first digit is odd.
    fn count(&mut self, code: u8) -> Result<u32, Flaw> {
        Ok(match code >> 4 & 1 {
            0 => u8::from_be_bytes(self.fixed()?).into(),
            _ => u32::from_be_bytes(self.fixed()?),
        })
    }

    fn take(&mut self, size: usize) -> Result<&'a [u8], Flaw> {
        let (taken, rest) = self.rest.split_at_checked(size).ok_or(SHORT)?;
        self.rest = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Flaw> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(SHORT)?;
        self.rest = rest;
        Ok(*taken)
    }
}

impl<'a> Array<'a> {
    /// Returns the items in turn; a last one that cannot be read is an error.
    pub fn iter(self) -> impl Iterator<Item = Result<Value<'a>, Flaw>> {
        let mut cursor = Cursor::new(self.items);
        let mut left = self.count;
        std::iter::from_fn(move || {
            // Items of no bytes, such as `true`, would last as long as the count says.
            if left == 0 || (cursor.is_empty() && self.code >> 4 != 4) {
                return match std::mem::take(&mut left) {
                    0 => None,
                    _ => Some(Err(SHORT)),
                };
            }
            left = if self.code >> 4 == 4 { 0 } else { left - 1 };
            let item = cursor.value_of(self.code);
            if item.is_err() {
                left = 0;
            }
            Some(item)
        })
    }
}

impl<'a> Described<'a> {
    /// Returns the number of the descriptor, also where it is a symbol of this specification.
    ///
    /// # Errors
    /// A descriptor that is neither a number nor such a symbol.
    pub fn code(&self) -> Result<u64, Flaw> {
        match Cursor::new(self.descriptor).value()? {
            Value::Ulong(code) => Ok(code),
            Value::Symbol(name) => {
                let known = SYMBOLS.iter().find(|(own, _)| *own == name);
                known.map(|(_, code)| *code).ok_or(Flaw::decode("an unknown descriptor"))
            }
            _ => Err(Flaw::decode("a descriptor that is neither ulong nor symbol")),
        }
    }
}

fn text(bytes: &[u8]) -> Result<&str, Flaw> {
    std::str::from_utf8(bytes).map_err(|_| Flaw::decode("a string that is not UTF-8"))
}

fn symbol(bytes: &[u8]) -> Result<&str, Flaw> {
    match text(bytes) {
        Ok(text) if text.is_ascii() => Ok(text),
        _ => Err(Flaw::decode("a symbol that is not ASCII")),
    }
}

/// Before a described value.
pub(super) const DESCRIBED: u8 = 0x00;

const SHORT: Flaw = Flaw::decode("a value that ends too early");
const UNKNOWN: Flaw = Flaw::decode("an unknown constructor");

/// Symbolic descriptors.
const SYMBOLS: [(&str, u64); 32] = [
    ("amqp:open:list", 0x10),
    ("amqp:begin:list", 0x11),
    ("amqp:attach:list", 0x12),
    ("amqp:flow:list", 0x13),
    ("amqp:transfer:list", 0x14),
    ("amqp:disposition:list", 0x15),
    ("amqp:detach:list", 0x16),
    ("amqp:end:list", 0x17),
    ("amqp:close:list", 0x18),
    ("amqp:error:list", 0x1D),
    ("amqp:received:list", 0x23),
    ("amqp:accepted:list", 0x24),
    ("amqp:rejected:list", 0x25),
    ("amqp:released:list", 0x26),
    ("amqp:modified:list", 0x27),
    ("amqp:source:list", 0x28),
    ("amqp:target:list", 0x29),
    ("amqp:coordinator:list", 0x30),
    ("amqp:sasl-mechanisms:list", 0x40),
    ("amqp:sasl-init:list", 0x41),
    ("amqp:sasl-challenge:list", 0x42),
    ("amqp:sasl-response:list", 0x43),
    ("amqp:sasl-outcome:list", 0x44),
    ("amqp:header:list", 0x70),
    ("amqp:delivery-annotations:map", 0x71),
    ("amqp:message-annotations:map", 0x72),
    ("amqp:properties:list", 0x73),
    ("amqp:application-properties:map", 0x74),
    ("amqp:data:binary", 0x75),
    ("amqp:amqp-sequence:list", 0x76),
    ("amqp:amqp-value:*", 0x77),
    ("amqp:footer:map", 0x78),
];
