//! Offsets that groups commit: kept in memory, as the logs are.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::group::Committed;
use super::groups::read_membership;
use super::place::{Outcome, Place, Turn};
use super::world::World;
use crate::kafka::codec::frame::{RequestHead, begin_answer, end_frame};
use crate::kafka::codec::{
    Flaw, Reader, put_count, put_i16, put_i32, put_i64, put_null_string, put_string,
};
use crate::kafka::errors;

/// OffsetCommit, versions 5 to 7.
pub(super) fn commit(
    head: &RequestHead<'_>,
    mut reader: Reader<'_>,
    place: Place,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<Outcome, Flaw> {
    let (name, generation, member) = read_membership(head, 7, &mut reader)?;
    check_commit(head, reader)?;
    let now = turn.now;
    let allowed = match (generation < 0, world.known_group(name).is_some()) {
        // A program that assigns itself its partitions may have a group for its offsets only.
        (false, false) => Err(errors::UNKNOWN_MEMBER_ID),
        _ => match world.group(name) {
            None => Err(errors::INVALID_GROUP_ID),
            Some(group) => group.may_commit(member, generation, now),
        },
    };
    world.wake_group(name, turn);
    let out = turn.out.stage(place.connection);
    let at = begin_answer(out, head.correlation);
    put_i32(out, 0);
    let topics = reader.count(6)?;
    put_count(out, topics);
    for _ in 0..topics {
        let topic = reader.string()?;
        put_string(out, topic);
        let partitions = reader.count(14)?;
        put_count(out, partitions);
        for _ in 0..partitions {
            let (partition, committed) = read_committed(head, &mut reader)?;
            let kept = allowed.and_then(|()| keep(name, topic, partition, committed, world));
            put_i32(out, partition);
            put_i16(out, kept.err().unwrap_or(errors::NONE));
        }
    }
    end_frame(out, at);
    Ok(Outcome::Answered)
}

/// Reads the request to its end, so that nothing of a damaged one is kept.
fn check_commit(head: &RequestHead<'_>, mut reader: Reader<'_>) -> Result<(), Flaw> {
    for _ in 0..reader.count(6)? {
        reader.string()?;
        for _ in 0..reader.count(14)? {
            read_committed(head, &mut reader)?;
        }
    }
    reader.finish()
}

fn read_committed(
    head: &RequestHead<'_>,
    reader: &mut Reader<'_>,
) -> Result<(i32, Committed), Flaw> {
    let (partition, offset) = (reader.i32()?, reader.i64()?);
    if head.version >= 6 {
        reader.i32()?;
    }
    let words = reader.nullable_string()?.map(Box::from);
    Ok((partition, Committed { offset, words }))
}

fn keep(
    group: &[u8],
    topic: &[u8],
    partition: i32,
    committed: Committed,
    world: &mut World,
) -> Result<(), i16> {
    if committed.words.as_ref().is_some_and(|words| words.len() > WORDS_BYTES_MAX) {
        return Err(OFFSET_METADATA_TOO_LARGE);
    }
    let is_there = world.log(topic, partition).is_some();
    let Some((topic, _)) = world.topics.get_key_value(topic).filter(|_| is_there) else {
        return Err(errors::UNKNOWN_TOPIC_OR_PARTITION);
    };
    let key = (topic.clone(), partition);
    let group = world.group(group).ok_or(errors::INVALID_GROUP_ID)?;
    if group.offsets.len() >= OFFSETS_MAX && !group.offsets.contains_key(&key) {
        return Err(errors::KAFKA_STORAGE_ERROR);
    }
    group.offsets.insert(key, committed);
    Ok(())
}

/// OffsetFetch, versions 3 to 5. A null array asks for all offsets of the group.
pub(super) fn fetch(
    head: &RequestHead<'_>,
    mut reader: Reader<'_>,
    world: &mut World,
    out: &mut Vec<u8>,
) -> Result<(), Flaw> {
    let name = reader.string()?;
    let is_all = reader.rest().starts_with(&NULL);
    let mut wanted: BTreeMap<&[u8], Vec<i32>> = BTreeMap::new();
    for _ in 0..reader.count(6)? {
        let partitions = wanted.entry(reader.string()?).or_default();
        for _ in 0..reader.count(4)? {
            partitions.push(reader.i32()?);
        }
    }
    reader.finish()?;
    let offsets = world.known_group(name).map(|group| &group.offsets);
    let none = BTreeMap::new();
    let offsets = offsets.unwrap_or(&none);
    if is_all {
        for (topic, partition) in offsets.keys() {
            wanted.entry(topic).or_default().push(*partition);
        }
    }
    let at = begin_answer(out, head.correlation);
    put_i32(out, 0);
    put_count(out, wanted.len());
    for (topic, partitions) in &wanted {
        put_string(out, topic);
        put_count(out, partitions.len());
        let topic: Arc<[u8]> = (*topic).into();
        for partition in partitions {
            put_committed(head, *partition, offsets.get(&(topic.clone(), *partition)), out);
        }
    }
    put_i16(out, errors::NONE);
    end_frame(out, at);
    Ok(())
}

fn put_committed(
    head: &RequestHead<'_>,
    partition: i32,
    committed: Option<&Committed>,
    out: &mut Vec<u8>,
) {
    put_i32(out, partition);
    put_i64(out, committed.map_or(-1, |own| own.offset));
    if head.version >= 5 {
        put_i32(out, -1);
    }
    match committed.map(|own| own.words.as_deref()) {
        Some(None) => put_null_string(out),
        Some(Some(words)) => put_string(out, words),
        None => put_string(out, b""),
    }
    put_i16(out, errors::NONE);
}

/// Partitions of which a group may keep offsets.
const OFFSETS_MAX: usize = 10_000;

/// `offset.metadata.max.bytes`.
const WORDS_BYTES_MAX: usize = 4096;

const OFFSET_METADATA_TOO_LARGE: i16 = 12;

/// The number of elements of an array that is null.
const NULL: [u8; 4] = [0xff; 4];
