//! Reads composite values: the fields of a described list, of which the last may be missing.

use super::flaw::Flaw;
use super::value::{Array, Cursor, Described, Value};

/// Fields of a list, in the order of the specification.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    cursor: Cursor<'a>,
    left: u32,
}

impl<'a> Fields<'a> {
    /// Fields of a described list.
    ///
    /// # Errors
    /// A described value that is not a list.
    pub fn of(described: Described<'a>) -> Result<Fields<'a>, Flaw> {
        match Cursor::new(described.value).value()? {
            Value::List(list) => Ok(Fields { cursor: Cursor::new(list.items), left: list.count }),
            _ => Err(Flaw::decode("a composite that is not a list")),
        }
    }

    /// The next field; null if it is missing.
    ///
    /// # Errors
    /// Bytes that are not a value.
    pub fn value(&mut self) -> Result<Value<'a>, Flaw> {
        match self.left {
            0 => Ok(Value::Null),
            _ => {
                self.left -= 1;
                self.cursor.value()
            }
        }
    }

    /// Reads over the next field.
    pub(super) fn skip(&mut self) -> Result<(), Flaw> {
        if self.left > 0 {
            self.left -= 1;
            self.cursor.raw()?;
        }
        Ok(())
    }

    /// Checks that the fields which are not used can be read.
    pub(super) fn finish(mut self) -> Result<(), Flaw> {
        while self.left > 0 {
            self.skip()?;
        }
        match self.cursor.is_empty() {
            true => Ok(()),
            false => Err(Flaw::decode("a list with more bytes than items")),
        }
    }

    pub(super) fn boolean(&mut self) -> Result<Option<bool>, Flaw> {
        self.typed(|value| match value {
            Value::Bool(own) => Some(own),
            _ => None,
        })
    }

    pub(super) fn ubyte(&mut self) -> Result<Option<u8>, Flaw> {
        self.typed(|value| match value {
            Value::Ubyte(own) => Some(own),
            _ => None,
        })
    }

    pub(super) fn ushort(&mut self) -> Result<Option<u16>, Flaw> {
        self.typed(|value| match value {
            Value::Ushort(own) => Some(own),
            _ => None,
        })
    }

    pub(super) fn uint(&mut self) -> Result<Option<u32>, Flaw> {
        self.typed(|value| match value {
            Value::Uint(own) => Some(own),
            _ => None,
        })
    }

    pub(super) fn ulong(&mut self) -> Result<Option<u64>, Flaw> {
        self.typed(|value| match value {
            Value::Ulong(own) => Some(own),
            _ => None,
        })
    }

    pub(super) fn text(&mut self) -> Result<Option<&'a str>, Flaw> {
        self.typed(|value| match value {
            Value::Text(own) => Some(own),
            _ => None,
        })
    }

    pub(super) fn symbol(&mut self) -> Result<Option<&'a str>, Flaw> {
        self.typed(|value| match value {
            Value::Symbol(own) => Some(own),
            _ => None,
        })
    }

    pub(super) fn binary(&mut self) -> Result<Option<&'a [u8]>, Flaw> {
        self.typed(|value| match value {
            Value::Binary(own) => Some(own),
            _ => None,
        })
    }

    pub(super) fn described(&mut self) -> Result<Option<Described<'a>>, Flaw> {
        self.typed(|value| match value {
            Value::Described(own) => Some(own),
            _ => None,
        })
    }

    /// One symbol, or an array of them (`multiple`).
    pub(super) fn symbols(&mut self) -> Result<Symbols<'a>, Flaw> {
        let symbols = self.typed(|value| match value {
            Value::Symbol(own) => Some(Symbols::One(own)),
            Value::Array(own) => Some(Symbols::Many(own)),
            _ => None,
        });
        Ok(symbols?.unwrap_or_default())
    }

    fn typed<T>(&mut self, of: impl FnOnce(Value<'a>) -> Option<T>) -> Result<Option<T>, Flaw> {
        match self.value()? {
            Value::Null => Ok(None),
            value => of(value).map(Some).ok_or(Flaw::decode("a field of another type")),
        }
    }
}

/// Symbols of a field that may have several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Symbols<'a> {
    /// No symbol.
    #[default]
    None,
    /// One symbol without an array around it.
    One(&'a str),
    /// An array.
    Many(Array<'a>),
}

impl<'a> Symbols<'a> {
    /// Returns the symbols in turn, as far as they can be read.
    pub fn iter(self) -> impl Iterator<Item = &'a str> {
        let (one, many) = match self {
            Symbols::None => (None, None),
            Symbols::One(one) => (Some(one), None),
            Symbols::Many(many) => (None, Some(many)),
        };
        let many = many.into_iter().flat_map(Array::iter).filter_map(|item| match item {
            Ok(Value::Symbol(own)) => Some(own),
            _ => None,
        });
        one.into_iter().chain(many)
    }

    /// True if `name` is one of them.
    pub fn contains(self, name: &str) -> bool {
        self.iter().any(|own| own == name)
    }
}
