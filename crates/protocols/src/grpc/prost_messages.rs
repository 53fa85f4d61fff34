//! The messages of `proto/store.proto` for the library prost: fields by number and type (Protocol
//! Buffers, "Encoding").

use bytes::Bytes;
use prost::Message;

/// A reading to keep.
#[derive(Clone, PartialEq, Message)]
pub struct AppendRequest {
    /// As it was sent.
    #[prost(bytes = "bytes", tag = "1")]
    pub reading: Bytes,
}

/// It is kept.
#[derive(Clone, PartialEq, Message)]
pub struct AppendReply {}

/// They are kept.
#[derive(Clone, PartialEq, Message)]
pub struct AppendBatchReply {
    /// Readings of this call.
    #[prost(uint64, tag = "1")]
    pub appended: u64,
}

/// Asks for readings.
#[derive(Clone, PartialEq, Message)]
pub struct ReadRequest {
    /// The cursor of an earlier answer, or 0.
    #[prost(uint64, tag = "1")]
    pub since: u64,
    /// Readings at most, or 0.
    #[prost(uint32, tag = "2")]
    pub limit: u32,
    /// Producer of the readings; empty for all producers.
    #[prost(string, tag = "3")]
    pub sensor: String,
}

/// Readings.
#[derive(Clone, PartialEq, Message)]
pub struct ReadReply {
    /// Oldest first.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub readings: Vec<Bytes>,
    /// The cursor after them.
    #[prost(uint64, tag = "2")]
    pub next: u64,
}

/// Asks for the count.
#[derive(Clone, PartialEq, Message)]
pub struct CountRequest {}

/// The count.
#[derive(Clone, PartialEq, Message)]
pub struct CountReply {
    /// Readings that were taken in.
    #[prost(uint64, tag = "1")]
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protocol Buffers, "Encoding": a tag is `number << 3 | type`, types 0 (varint) and 2 (length
    /// and bytes); what has its default is left out.
    #[test]
    fn messages_are_encoded_as_the_definition_says() {
        let reading = Bytes::from_static(b"hi");
        let append = AppendRequest { reading: reading.clone() };
        assert_eq!(append.encode_to_vec(), [0x0a, 2, b'h', b'i']);
        assert_eq!(AppendReply {}.encode_to_vec().len(), 0);
        assert_eq!(AppendBatchReply { appended: 300 }.encode_to_vec(), [0x08, 0xac, 0x02]);
        let request = ReadRequest { since: 1, limit: 2, sensor: String::new() };
        assert_eq!(request.encode_to_vec(), [0x08, 1, 0x10, 2]);
        let request = ReadRequest { since: 0, limit: 0, sensor: "a".to_owned() };
        assert_eq!(request.encode_to_vec(), [0x1a, 1, b'a']);
        let read = ReadReply { readings: vec![reading.clone(), Bytes::new()], next: 7 };
        assert_eq!(read.encode_to_vec(), [0x0a, 2, b'h', b'i', 0x0a, 0, 0x10, 7]);
        assert_eq!(CountRequest {}.encode_to_vec().len(), 0);
        assert_eq!(CountReply { count: 0 }.encode_to_vec().len(), 0);
    }
}
