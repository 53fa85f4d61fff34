//! Requests about versions, topics and offsets.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::world::World;
use crate::kafka::codec::frame::{
    API_VERSIONS, APIS, FLEXIBLE_API_VERSIONS, RequestHead, begin_answer, end_frame,
};
use crate::kafka::codec::requests::{EARLIEST, LATEST};
use crate::kafka::codec::{
    Flaw, Reader, put_count, put_i8, put_i16, put_i32, put_i64, put_null_string, put_string,
    put_unsigned_varint,
};
use crate::kafka::errors;

/// ApiVersions. A version that is not known is answered in version 0 (KIP-511).
pub(super) fn api_versions(head: &RequestHead<'_>, is_served: bool, out: &mut Vec<u8>) {
    let version = if is_served { head.version } else { API_VERSIONS.served.0 };
    let is_flexible = version >= FLEXIBLE_API_VERSIONS;
    let at = begin_answer(out, head.correlation);
    put_i16(out, if is_served { errors::NONE } else { errors::UNSUPPORTED_VERSION });
    match is_flexible {
        true => put_unsigned_varint(out, APIS.len() as u64 + 1),
        false => put_count(out, APIS.len()),
    }
    for api in APIS {
        put_i16(out, api.key);
        put_i16(out, api.served.0);
        put_i16(out, api.served.1);
        if is_flexible {
            put_unsigned_varint(out, 0);
        }
    }
    if version >= 1 {
        put_i32(out, 0);
    }
    if is_flexible {
        put_unsigned_varint(out, 0);
    }
    end_frame(out, at);
}

/// Metadata, versions 1 to 5. A topic that is named several times is answered once, so that an
/// answer has at most the partitions of the server.
pub(super) fn metadata(
    head: &RequestHead<'_>,
    mut reader: Reader<'_>,
    world: &mut World,
    out: &mut Vec<u8>,
) -> Result<(), Flaw> {
    let version = head.version;
    let is_all = reader.rest().starts_with(&NULL);
    let mut names: BTreeSet<Arc<[u8]>> = BTreeSet::new();
    for _ in 0..reader.count(2)? {
        names.insert(reader.string()?.into());
    }
    let creates = if version >= 4 { reader.i8()? != 0 } else { true };
    reader.finish()?;
    if is_all {
        names = world.topics.keys().cloned().collect();
    }
    let at = begin_answer(out, head.correlation);
    if version >= 3 {
        put_i32(out, 0);
    }
    put_count(out, 1);
    put_i32(out, BROKER);
    put_string(out, world.rules.host.as_bytes());
    put_i32(out, world.rules.port);
    put_null_string(out);
    if version >= 2 {
        put_string(out, b"weighbridge");
    }
    put_i32(out, BROKER);
    put_count(out, names.len());
    for name in &names {
        let mut error = errors::NONE;
        if !world.topics.contains_key(name) {
            let partitions = world.rules.partitions;
            error = match creates {
                true => world.create(name, partitions).err().unwrap_or(errors::NONE),
                false => errors::UNKNOWN_TOPIC_OR_PARTITION,
            };
        }
        put_i16(out, error);
        put_string(out, name);
        put_i8(out, 0);
        let partitions = world.topics.get(name).map_or(0, Vec::len);
        put_count(out, partitions);
        for partition in 0..partitions {
            put_i16(out, errors::NONE);
            put_i32(out, partition as i32);
            put_i32(out, BROKER);
            for _ in ["replicas", "in sync"] {
                put_count(out, 1);
                put_i32(out, BROKER);
            }
            if version >= 5 {
                put_count(out, 0);
            }
        }
    }
    end_frame(out, at);
    Ok(())
}

/// CreateTopics, versions 2 to 4. Settings of topics are read and have no effect.
pub(super) fn create(
    head: &RequestHead<'_>,
    mut reader: Reader<'_>,
    world: &mut World,
    out: &mut Vec<u8>,
) -> Result<(), Flaw> {
    let at = begin_answer(out, head.correlation);
    put_i32(out, 0);
    let count = reader.count(12)?;
    put_count(out, count);
    let mut after = reader;
    for _ in 0..count {
        read_creatable(&mut after)?;
    }
    after.i32()?;
    let only_checks = after.i8()? != 0;
    after.finish()?;
    for _ in 0..count {
        let (name, partitions, replicas) = read_creatable(&mut reader)?;
        let partitions = if partitions == -1 { world.rules.partitions } else { partitions };
        let created = match (replicas, only_checks) {
            (-1 | 1, false) => world.create(name, partitions),
            (-1 | 1, true) if world.topics.contains_key(name) => Err(errors::TOPIC_ALREADY_EXISTS),
            (-1 | 1, true) => Ok(()),
            _ => Err(errors::INVALID_REPLICATION_FACTOR),
        };
        put_string(out, name);
        put_i16(out, created.err().unwrap_or(errors::NONE));
        put_null_string(out);
    }
    end_frame(out, at);
    Ok(())
}

/// A topic of CreateTopics: its name, its partitions, its replicas.
fn read_creatable<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8], i32, i16), Flaw> {
    let found = (reader.string()?, reader.i32()?, reader.i16()?);
    for _ in 0..reader.count(8)? {
        reader.i32()?;
        let brokers = reader.count(4)?;
        reader.take(4 * brokers)?;
    }
    for _ in 0..reader.count(4)? {
        reader.string()?;
        reader.nullable_string()?;
    }
    Ok(found)
}

/// ListOffsets, versions 1 to 3. Messages have no timestamps, so none is found by one.
pub(super) fn list_offsets(
    head: &RequestHead<'_>,
    mut reader: Reader<'_>,
    world: &mut World,
    out: &mut Vec<u8>,
) -> Result<(), Flaw> {
    reader.i32()?;
    if head.version >= 2 {
        reader.i8()?;
    }
    let at = begin_answer(out, head.correlation);
    if head.version >= 2 {
        put_i32(out, 0);
    }
    let topics = reader.count(6)?;
    put_count(out, topics);
    for _ in 0..topics {
        let name = reader.string()?;
        put_string(out, name);
        let partitions = reader.count(12)?;
        put_count(out, partitions);
        for _ in 0..partitions {
            let (partition, timestamp) = (reader.i32()?, reader.i64()?);
            let (error, offset) = match (world.log(name, partition), timestamp) {
                (None, _) => (errors::UNKNOWN_TOPIC_OR_PARTITION, -1),
                (Some(log), LATEST) => (errors::NONE, log.next),
                (Some(log), EARLIEST) => (errors::NONE, log.start),
                (Some(_), _) => (errors::NONE, -1),
            };
            put_i32(out, partition);
            put_i16(out, error);
            put_i64(out, -1);
            put_i64(out, offset);
        }
    }
    reader.finish()?;
    end_frame(out, at);
    Ok(())
}

/// The only broker.
pub(super) const BROKER: i32 = 1;

/// The number of elements of an array that is null.
const NULL: [u8; 4] = [0xff; 4];
