//! Requests as the client writes them, each in the version that [`super::frame`] names.

use super::batch::{self, Producer};
use super::frame::{
    API_VERSIONS, CREATE_TOPICS, FETCH, INIT_PRODUCER_ID, LIST_OFFSETS, METADATA, PRODUCE,
    begin_request, end_frame,
};
use super::put::{
    put_count, put_i8, put_i16, put_i32, put_i64, put_null_string, put_string, set_i32,
};

/// ApiVersions, version 0.
pub fn put_api_versions(out: &mut Vec<u8>, correlation: i32) {
    let at = begin_request(out, API_VERSIONS, correlation);
    end_frame(out, at);
}

/// Metadata of one topic, version 4. It is not created by asking for it.
pub fn put_metadata(out: &mut Vec<u8>, correlation: i32, topic: &[u8]) {
    let at = begin_request(out, METADATA, correlation);
    put_count(out, 1);
    put_string(out, topic);
    put_i8(out, 0);
    end_frame(out, at);
}

/// Metadata of the cluster without its topics, version 4.
pub fn put_cluster(out: &mut Vec<u8>, correlation: i32) {
    let at = begin_request(out, METADATA, correlation);
    put_count(out, 0);
    put_i8(out, 0);
    end_frame(out, at);
}

/// CreateTopics for one topic, version 2.
pub fn put_create_topic(
    out: &mut Vec<u8>,
    correlation: i32,
    topic: &[u8],
    partitions: i32,
    replicas: i16,
) {
    let at = begin_request(out, CREATE_TOPICS, correlation);
    put_count(out, 1);
    put_string(out, topic);
    put_i32(out, partitions);
    put_i16(out, replicas);
    put_count(out, 0);
    put_count(out, 0);
    put_i32(out, TIMEOUT_MS);
    put_i8(out, 0);
    end_frame(out, at);
}

/// The question whether a broker would create a topic of one partition and one replica, version 2:
/// CreateTopics that only validates.
pub fn put_validate_topic(out: &mut Vec<u8>, correlation: i32, topic: &[u8]) {
    let at = out.len();
    put_create_topic(out, correlation, topic, 1, 1);
    if let [.., last] = &mut out[at..] {
        *last = 1;
    }
}

/// InitProducerId without transactions, version 0.
pub fn put_init_producer_id(out: &mut Vec<u8>, correlation: i32) {
    let at = begin_request(out, INIT_PRODUCER_ID, correlation);
    put_null_string(out);
    put_i32(out, i32::MAX);
    end_frame(out, at);
}

/// ListOffsets for some partitions of a topic, version 1: the offset behind the last message.
pub fn put_list_offsets(out: &mut Vec<u8>, correlation: i32, topic: &[u8], partitions: &[i32]) {
    let at = begin_request(out, LIST_OFFSETS, correlation);
    put_i32(out, CONSUMER);
    put_count(out, 1);
    put_string(out, topic);
    put_count(out, partitions.len());
    for partition in partitions {
        put_i32(out, *partition);
        put_i64(out, LATEST);
    }
    end_frame(out, at);
}

/// One batch for one partition.
#[derive(Clone, Copy, Debug)]
pub struct Produce<'a> {
    /// Topic.
    pub topic: &'a [u8],
    /// Partition.
    pub partition: i32,
    /// 0, 1, or -1 for all replicas in sync.
    pub acks: i16,
    /// Who produces it.
    pub producer: Producer,
    /// Number of records.
    pub count: i32,
    /// The records, by [`batch::put_record`].
    pub records: &'a [u8],
}

/// Produce, version 5.
pub fn put_produce(out: &mut Vec<u8>, correlation: i32, produce: &Produce<'_>) {
    let at = begin_request(out, PRODUCE, correlation);
    put_null_string(out);
    put_i16(out, produce.acks);
    put_i32(out, TIMEOUT_MS);
    put_count(out, 1);
    put_string(out, produce.topic);
    put_count(out, 1);
    put_i32(out, produce.partition);
    let length_at = out.len();
    put_i32(out, 0);
    batch::put(out, produce.producer, produce.count, produce.records);
    let bytes = out.len() - length_at - 4;
    set_i32(out, length_at, bytes as i32);
    end_frame(out, at);
}

/// Limits of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// How long the broker may wait for `bytes_min`, in milliseconds.
    pub wait_ms: i32,
    /// Bytes below which it waits.
    pub bytes_min: i32,
    /// Bytes of an answer.
    pub bytes_max: i32,
    /// Bytes of one partition in it.
    pub partition_bytes_max: i32,
}

/// A partition of a fetch: its number, and the offset from which on messages are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchFrom {
    /// Partition.
    pub partition: i32,
    /// Offset of the first message.
    pub offset: i64,
}

/// Fetch from some partitions of a topic, version 4.
pub fn put_fetch(
    out: &mut Vec<u8>,
    correlation: i32,
    limits: &FetchLimits,
    topic: &[u8],
    from: impl ExactSizeIterator<Item = FetchFrom>,
) {
    let at = begin_request(out, FETCH, correlation);
    put_i32(out, CONSUMER);
    put_i32(out, limits.wait_ms);
    put_i32(out, limits.bytes_min);
    put_i32(out, limits.bytes_max);
    put_i8(out, READ_UNCOMMITTED);
    put_count(out, 1);
    put_string(out, topic);
    put_count(out, from.len());
    for FetchFrom { partition, offset } in from {
        put_i32(out, partition);
        put_i64(out, offset);
        put_i32(out, limits.partition_bytes_max);
    }
    end_frame(out, at);
}

/// Time that the broker has for a request, in milliseconds: `request.timeout.ms` of a producer.
const TIMEOUT_MS: i32 = 30_000;

/// The replica of a request that comes from no replica.
const CONSUMER: i32 = -1;

/// The timestamp in ListOffsets that means the end of the log.
pub const LATEST: i64 = -1;

/// The timestamp in ListOffsets that means the beginning of the log.
pub const EARLIEST: i64 = -2;

const READ_UNCOMMITTED: i8 = 0;
