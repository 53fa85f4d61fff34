//! Answers as the client reads them, each in the version that [`super::frame`] names.

use super::flaw::Flaw;
use super::reader::Reader;

/// Splits an answer into its correlation and its fields.
///
/// # Errors
/// If there are too few bytes.
pub fn read_head(content: &[u8]) -> Result<(i32, &[u8]), Flaw> {
    let mut reader = Reader::new(content);
    Ok((reader.i32()?, reader.rest()))
}

/// Versions of an API: key, lowest, highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Key of the API.
    pub key: i16,
    /// Lowest version.
    pub lowest: i16,
    /// Highest version.
    pub highest: i16,
}

/// ApiVersions, version 0: the error, and the versions of each API.
///
/// # Errors
/// Bytes that are not such an answer, as with all others.
pub fn read_api_versions(fields: &[u8]) -> Result<(i16, Vec<Versions>), Flaw> {
    let mut reader = Reader::new(fields);
    let error = reader.i16()?;
    let count = reader.count(6)?;
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        let (key, lowest, highest) = (reader.i16()?, reader.i16()?, reader.i16()?);
        all.push(Versions { key, lowest, highest });
    }
    reader.finish()?;
    Ok((error, all))
}

/// A broker of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Number in the cluster.
    pub id: i32,
    /// Name or address at which clients reach it.
    pub host: String,
    /// Port.
    pub port: i32,
}

/// A partition of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Error, 0 if there is none.
    pub error: i16,
    /// Number in its topic.
    pub index: i32,
    /// The broker that leads it; -1 if there is none.
    pub leader: i32,
    /// Number of its replicas.
    pub replicas: u32,
}

/// What Metadata says about one topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// All brokers.
    pub brokers: Vec<Broker>,
    /// Error of the topic, 0 if there is none.
    pub error: i16,
    /// Its partitions.
    pub partitions: Vec<Partition>,
}

/// Metadata, version 4, of one topic.
///
/// # Errors
/// Bytes that are not such an answer.
pub fn read_metadata(fields: &[u8]) -> Result<Metadata, Flaw> {
    let mut reader = Reader::new(fields);
    let mut metadata = Metadata::default();
    reader.i32()?;
    for _ in 0..reader.count(12)? {
        let id = reader.i32()?;
        let host = String::from_utf8_lossy(reader.string()?).into_owned();
        let port = reader.i32()?;
        reader.nullable_string()?;
        metadata.brokers.push(Broker { id, host, port });
    }
    reader.nullable_string()?;
    reader.i32()?;
    for _ in 0..reader.count(9)? {
        metadata.error = reader.i16()?;
        reader.string()?;
        reader.i8()?;
        for _ in 0..reader.count(18)? {
            let (error, index, leader) = (reader.i16()?, reader.i32()?, reader.i32()?);
            let replicas = reader.count(4)?;
            reader.take(4 * replicas)?;
            let in_sync = reader.count(4)?;
            reader.take(4 * in_sync)?;
            let replicas = replicas as u32;
            metadata.partitions.push(Partition { error, index, leader, replicas });
        }
    }
    reader.finish()?;
    metadata.partitions.sort_unstable_by_key(|partition| partition.index);
    Ok(metadata)
}

/// CreateTopics, version 2, of one topic: its error, and the words of the broker.
///
/// # Errors
/// Bytes that are not such an answer.
pub fn read_create_topic(fields: &[u8]) -> Result<(i16, String), Flaw> {
    let mut reader = Reader::new(fields);
    reader.i32()?;
    if reader.count(6)? != 1 {
        return Err(Flaw::Count);
    }
    reader.string()?;
    let error = reader.i16()?;
    let words = reader.nullable_string()?.unwrap_or_default();
    reader.finish()?;
    Ok((error, String::from_utf8_lossy(words).into_owned()))
}

/// InitProducerId, version 0: the error, the number of the producer, and its epoch.
///
/// # Errors
/// Bytes that are not such an answer.
pub fn read_init_producer_id(fields: &[u8]) -> Result<(i16, i64, i16), Flaw> {
    let mut reader = Reader::new(fields);
    reader.i32()?;
    let found = (reader.i16()?, reader.i64()?, reader.i16()?);
    reader.finish()?;
    Ok(found)
}

/// Offset of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetOf {
    /// Partition.
    pub partition: i32,
    /// Error, 0 if there is none.
    pub error: i16,
    /// The offset.
    pub offset: i64,
}

/// ListOffsets, version 1, of one topic.
///
/// # Errors
/// Bytes that are not such an answer.
pub fn read_list_offsets(fields: &[u8]) -> Result<Vec<OffsetOf>, Flaw> {
    let mut reader = Reader::new(fields);
    let mut all = Vec::new();
    for _ in 0..reader.count(6)? {
        reader.string()?;
        for _ in 0..reader.count(22)? {
            let (partition, error) = (reader.i32()?, reader.i16()?);
            reader.i64()?;
            all.push(OffsetOf { partition, error, offset: reader.i64()? });
        }
    }
    reader.finish()?;
    Ok(all)
}

/// Produce, version 5, of one batch: its error, and the offset of its first record.
///
/// # Errors
/// Bytes that are not such an answer.
pub fn read_produce(fields: &[u8]) -> Result<(i16, i64), Flaw> {
    let mut reader = Reader::new(fields);
    if reader.count(6)? != 1 {
        return Err(Flaw::Count);
    }
    reader.string()?;
    if reader.count(30)? != 1 {
        return Err(Flaw::Count);
    }
    reader.i32()?;
    let (error, offset) = (reader.i16()?, reader.i64()?);
    reader.i64()?;
    reader.i64()?;
    reader.i32()?;
    reader.finish()?;
    Ok((error, offset))
}

/// One partition of an answer to Fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched<'a> {
    /// Partition.
    pub partition: i32,
    /// Error, 0 if there is none.
    pub error: i16,
    /// Its batches, the last perhaps incomplete.
    pub records: &'a [u8],
}

/// Fetch, version 4: passes each partition to `take`.
///
/// # Errors
/// Bytes that are not such an answer, and what `take` returns.
pub fn read_fetch<E: From<Flaw>>(
    fields: &[u8],
    mut take: impl FnMut(Fetched<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut reader = Reader::new(fields);
    reader.i32()?;
    for _ in 0..reader.count(6)? {
        reader.string()?;
        for _ in 0..reader.count(30)? {
            let (partition, error) = (reader.i32()?, reader.i16()?);
            reader.i64()?;
            reader.i64()?;
            let aborted = reader.count(16)?;
            reader.take(16 * aborted)?;
            let records = reader.nullable_bytes()?.unwrap_or_default();
            take(Fetched { partition, error, records })?;
        }
    }
    reader.finish()?;
    Ok(())
}
