//! Batches of producers: checked, appended, stored and confirmed.

use weigh_model::server::Record;

use super::log::Order;
use super::place::{Outcome, Place, Turn};
use super::world::World;
use crate::kafka::codec::batch::{self, Batch};
use crate::kafka::codec::frame::{RequestHead, begin_answer, end_frame};
use crate::kafka::codec::{Flaw, Reader, put_count, put_i16, put_i32, put_i64, put_string};
use crate::kafka::errors;

/// Produce, versions 3 to 7.
pub(super) fn produce(
    head: &RequestHead<'_>,
    mut reader: Reader<'_>,
    place: Place,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<Outcome, Flaw> {
    check(reader)?;
    let is_transactional = reader.nullable_string()?.is_some();
    let acks = reader.i16()?;
    reader.i32()?;
    // The answer is written beside the outbox, since storing needs it too.
    let mut answer = std::mem::take(turn.out.stage(place.connection));
    let start = answer.len();
    let at = begin_answer(&mut answer, head.correlation);
    let topics = reader.count(6)?;
    put_count(&mut answer, topics);
    let mut has_failed = false;
    for _ in 0..topics {
        let topic = reader.string()?;
        put_string(&mut answer, topic);
        let partitions = reader.count(8)?;
        put_count(&mut answer, partitions);
        for _ in 0..partitions {
            let (partition, records) = (reader.i32()?, reader.nullable_bytes()?);
            let appended = match (acks, is_transactional) {
                (-1..=1, false) => {
                    append(topic, partition, records.unwrap_or_default(), acks, world, turn)
                }
                (-1..=1, true) => Err(errors::INVALID_REQUEST),
                _ => Err(INVALID_REQUIRED_ACKS),
            };
            has_failed |= appended.is_err();
            put_i32(&mut answer, partition);
            put_i16(&mut answer, appended.err().unwrap_or(errors::NONE));
            put_i64(&mut answer, appended.unwrap_or(-1));
            put_i64(&mut answer, -1);
            if head.version >= 5 {
                let start = world.log(topic, partition).map_or(-1, |log| log.start);
                put_i64(&mut answer, start);
            }
        }
    }
    put_i32(&mut answer, 0);
    end_frame(&mut answer, at);
    if acks == 0 {
        answer.truncate(start);
    }
    *turn.out.stage(place.connection) = answer;
    // Without an answer the end of the connection is the only sign of a failure, as in Kafka.
    Ok(if acks == 0 && has_failed { Outcome::Ends } else { Outcome::Answered })
}

/// Reads the request to its end, so that nothing of a damaged one is appended.
fn check(mut reader: Reader<'_>) -> Result<(), Flaw> {
    reader.nullable_string()?;
    reader.i16()?;
    reader.i32()?;
    for _ in 0..reader.count(6)? {
        reader.string()?;
        for _ in 0..reader.count(8)? {
            reader.i32()?;
            reader.nullable_bytes()?;
        }
    }
    reader.finish()
}

/// Appends a batch; returns the offset of its first message, or a code of Kafka.
fn append(
    topic: &[u8],
    partition: i32,
    records: &[u8],
    acks: i16,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<i64, i16> {
    let bytes_max = world.rules.batch_bytes_max;
    let log = world.log(topic, partition).ok_or(errors::UNKNOWN_TOPIC_OR_PARTITION)?;
    if records.len() > bytes_max {
        return Err(errors::MESSAGE_TOO_LARGE);
    }
    let found = whole(records)?;
    match log.order(found.producer, found.count) {
        Order::Next => {}
        Order::Known(offset) => return Ok(offset),
        Order::Gap => return Err(errors::OUT_OF_ORDER_SEQUENCE_NUMBER),
        Order::OldEpoch => return Err(INVALID_PRODUCER_EPOCH),
    }
    if !world.make_room(topic, partition, records.len()) {
        return Err(errors::KAFKA_STORAGE_ERROR);
    }
    let log = world.log(topic, partition).ok_or(errors::UNKNOWN_TOPIC_OR_PARTITION)?;
    let offset = log.append(&found);
    let stores = acks != 0 && turn.out.stores();
    for record in found.records().into_iter().flatten().flatten() {
        let body = record.value.unwrap_or_default();
        world.census.note(body);
        if stores {
            turn.out.store(Record::Message { name: topic, body });
        }
    }
    world.wake(topic, partition, turn);
    Ok(offset)
}

/// The batch that these bytes are, every record of which can be read (`LogValidator`).
fn whole(records: &[u8]) -> Result<Batch<'_>, i16> {
    let found = match batch::read(records) {
        Ok(Some(found)) if found.bytes.len() == records.len() => found,
        Ok(_) => return Err(errors::INVALID_RECORD),
        Err(Flaw::Magic(_)) => return Err(UNSUPPORTED_FOR_MESSAGE_FORMAT),
        Err(_) => return Err(errors::CORRUPT_MESSAGE),
    };
    let each = found.records().map_err(|_| errors::UNSUPPORTED_COMPRESSION_TYPE)?;
    let mut next = 0;
    for record in each {
        match record {
            Ok(record) if record.offset_delta == next => next += 1,
            _ => return Err(errors::INVALID_RECORD),
        }
    }
    let is_numbered = found.producer.id < 0 || found.producer.sequence >= 0;
    match next > 0 && next == found.last_offset_delta + 1 && is_numbered && !found.is_control() {
        true => Ok(found),
        false => Err(errors::INVALID_RECORD),
    }
}

/// InitProducerId, versions 0 and 1.
pub(super) fn init_producer_id(
    head: &RequestHead<'_>,
    mut reader: Reader<'_>,
    world: &mut World,
    out: &mut Vec<u8>,
) -> Result<(), Flaw> {
    let is_transactional = reader.nullable_string()?.is_some();
    reader.i32()?;
    reader.finish()?;
    let at = begin_answer(out, head.correlation);
    put_i32(out, 0);
    let (error, id, epoch) = match is_transactional {
        true => (errors::INVALID_REQUEST, -1, -1),
        false => (errors::NONE, world.next_producer(), 0),
    };
    put_i16(out, error);
    put_i64(out, id);
    put_i16(out, epoch);
    end_frame(out, at);
    Ok(())
}

const INVALID_REQUIRED_ACKS: i16 = 21;
const UNSUPPORTED_FOR_MESSAGE_FORMAT: i16 = 43;
const INVALID_PRODUCER_EPOCH: i16 = 47;
