//! What a peer says about itself in `open` beyond what a connection uses (part 2, section 2.7.1).

use super::composite::{Fields, Symbols};
use super::flaw::Flaw;
use super::value::{Cursor, Value};

/// Capabilities and properties of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Offers<'a> {
    /// Extensions that it offers.
    pub capabilities: Symbols<'a>,
    /// Its name, by the property `product`.
    pub product: Option<&'a str>,
    /// Its version, by the property `version`.
    pub version: Option<&'a str>,
}

impl<'a> Offers<'a> {
    /// Reads the body of a frame that begins with `open`.
    ///
    /// # Errors
    /// A body that is none.
    pub fn read(body: &'a [u8]) -> Result<Offers<'a>, Flaw> {
        let Value::Described(described) = Cursor::new(body).value()? else {
            return Err(Flaw::decode("a frame that does not begin with a performative"));
        };
        let mut fields = Fields::of(described)?;
        // The container, the host, three limits, and two lists of locales.
        for _ in 0..7 {
            fields.skip()?;
        }
        let mut offers = Offers { capabilities: fields.symbols()?, ..Offers::default() };
        fields.skip()?;
        let Value::Map(map) = fields.value()? else { return Ok(offers) };
        let mut items = Cursor::new(map.items);
        for _ in 0..map.count / 2 {
            let value = match (items.value()?, items.value()?) {
                (Value::Symbol(name), Value::Text(value) | Value::Symbol(value)) => (name, value),
                _ => continue,
            };
            match value {
                ("product", product) => offers.product = Some(product),
                ("version", version) => offers.version = Some(version),
                _ => {}
            }
        }
        Ok(offers)
    }
}
