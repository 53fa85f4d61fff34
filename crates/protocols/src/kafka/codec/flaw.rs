//! What can be wrong with bytes of Kafka's protocol.

use std::fmt;

use weigh_model::connection::Fault;

/// Why bytes are not what the protocol allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A request or an answer with a length that is negative or above the limit.
    FrameLength(i64),
    /// A field ends behind the end of its request or answer.
    Short,
    /// A length or a number of elements that does not fit.
    Count,
    /// A variable-length number of more than 10 bytes, or one that does not fit.
    Varint,
    /// Bytes behind the last field.
    Behind,
    /// A record batch with another magic byte than 2.
    Magic(i8),
    /// A record batch whose CRC-32C is not that of its bytes.
    Checksum,
    /// A compressed record batch, with the number of its codec.
    Compressed(i16),
    /// A subscription or an assignment of a group that is none, or for another topic.
    Assignment,
    /// An answer that belongs to another request.
    Correlation(i32),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::FrameLength(bytes) => write!(f, "a length of {bytes} bytes"),
            Flaw::Short => f.write_str("a field that ends behind its message"),
            Flaw::Count => f.write_str("a number of elements that does not fit"),
            Flaw::Varint => f.write_str("a variable-length number that is too long"),
            Flaw::Behind => f.write_str("bytes behind the last field"),
            Flaw::Magic(magic) => {
                write!(f, "a record batch of format {magic}; only format 2 is read (Kafka 0.11)")
            }
            Flaw::Checksum => f.write_str("a record batch with a wrong CRC-32C"),
            Flaw::Compressed(codec) => write!(
                f,
                "a batch compressed with {}; compression is not read: set compression.type to \
                 uncompressed for the topic",
                compression(*codec)
            ),
            Flaw::Assignment => f.write_str("an assignment of other partitions than was asked for"),
            Flaw::Correlation(number) => write!(f, "an answer to request {number}"),
        }
    }
}

impl From<Flaw> for Fault {
    fn from(flaw: Flaw) -> Fault {
        Fault::Malformed(flaw.to_string())
    }
}

/// The name of a compression codec (KIP-98, attributes of a batch).
fn compression(codec: i16) -> &'static str {
    match codec {
        1 => "gzip",
        2 => "snappy",
        3 => "lz4",
        4 => "zstd",
        _ => "an unknown codec",
    }
}
