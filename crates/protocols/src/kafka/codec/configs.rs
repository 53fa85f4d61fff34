//! DescribeConfigs, version 1: settings of a broker or a topic. Kafka 1.1 to 4.x have it; the
//! reference server does not, and no client of a load asks for it.

use super::flaw::Flaw;
use super::frame::{Api, begin_request, end_frame};
use super::put::{put_count, put_i8, put_i32, put_string};
use super::reader::Reader;

/// The API. The reference server answers no version of it.
pub const DESCRIBE_CONFIGS: Api =
    Api { key: 32, name: "DescribeConfigs", version: 1, served: (1, 0) };

/// A setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name, such as `min.insync.replicas`.
    pub name: String,
    /// Value; none if it has none, or if the broker keeps it secret.
    pub value: Option<String>,
}

/// Settings of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// Error, 0 if there is none.
    pub error: i16,
    /// Words of the broker.
    pub words: String,
    /// The settings.
    pub configs: Vec<Config>,
}

/// Asks a broker for some of its settings. Only the broker of this number answers.
pub fn put_describe_broker(out: &mut Vec<u8>, correlation: i32, broker: i32, names: &[&str]) {
    let at = begin_request(out, DESCRIBE_CONFIGS, correlation);
    put_count(out, 1);
    put_i8(out, BROKER);
    put_string(out, broker.to_string().as_bytes());
    put_i32(out, names.len() as i32);
    names.iter().for_each(|name| put_string(out, name.as_bytes()));
    put_i8(out, 0);
    end_frame(out, at);
}

/// The answer about one resource.
///
/// # Errors
/// Bytes that are not such an answer.
pub fn read_describe(fields: &[u8]) -> Result<Described, Flaw> {
    let mut reader = Reader::new(fields);
    reader.i32()?;
    if reader.count(9)? != 1 {
        return Err(Flaw::Count);
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut described = Described {
        error: reader.i16()?,
        words: reader.nullable_string()?.map(text).unwrap_or_default(),
        configs: Vec::new(),
    };
    reader.i8()?;
    reader.string()?;
    for _ in 0..reader.count(11)? {
        let (name, value) = (text(reader.string()?), reader.nullable_string()?.map(text));
        // Whether it is read-only, where it is from, and whether it is secret.
        reader.take(3)?;
        for _ in 0..reader.count(5)? {
            reader.string()?;
            reader.nullable_string()?;
            reader.i8()?;
        }
        described.configs.push(Config { name, value });
    }
    reader.finish()?;
    Ok(described)
}

/// Type of a resource that is a broker.
const BROKER: i8 = 4;
