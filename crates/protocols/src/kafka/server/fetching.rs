//! Fetches of consumers: answered once they have enough, or once their time is over.

use weigh_model::Nanos;

use super::log::Taken;
use super::place::{Outcome, Place, Turn};
use super::world::World;
use crate::kafka::codec::frame::{self, RequestHead, begin_answer, end_frame};
use crate::kafka::codec::{
    Flaw, Reader, put_count, put_i16, put_i32, put_i64, put_string, set_i32,
};
use crate::kafka::errors;

/// The head of a fetch, without its topics.
#[derive(Clone, Copy, Debug)]
struct Fetch {
    wait: Nanos,
    bytes_min: usize,
    bytes_max: usize,
    session: i32,
}

/// A partition of a fetch.
#[derive(Clone, Copy, Debug)]
struct Wanted<'a> {
    topic: &'a [u8],
    partition: i32,
    offset: i64,
    bytes_max: usize,
}

/// Fetch, versions 4 to 11. Sessions (KIP-227) are not offered: every fetch names its partitions.
pub(super) fn fetch(
    head: &RequestHead<'_>,
    reader: Reader<'_>,
    place: Place,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<Outcome, Flaw> {
    let (fetch, topics) = read_head(head.version, reader)?;
    let until = turn.now + fetch.wait;
    let has_enough = fetch.wait.0 == 0 || has_enough(head.version, &fetch, topics, world)?;
    if has_enough {
        answer(head, &fetch, topics, place, world, turn)?;
        return Ok(Outcome::Answered);
    }
    each(head.version, topics, |wanted| {
        if let Some(log) = world.log(wanted.topic, wanted.partition) {
            log.waiting.insert(place);
        }
    })?;
    Ok(Outcome::Waits(until))
}

/// Tries a fetch again that waits until then. If it `is_last`, it is answered.
pub(super) fn again(
    head: &RequestHead<'_>,
    reader: Reader<'_>,
    place: Place,
    (is_last, until): (bool, Nanos),
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<Outcome, Flaw> {
    let (fetch, topics) = read_head(head.version, reader)?;
    if is_last || has_enough(head.version, &fetch, topics, world)? {
        answer(head, &fetch, topics, place, world, turn)?;
        leave(head.version, topics, place, world)?;
        return Ok(Outcome::Answered);
    }
    each(head.version, topics, |wanted| {
        if let Some(log) = world.log(wanted.topic, wanted.partition) {
            log.waiting.insert(place);
        }
    })?;
    Ok(Outcome::Waits(until))
}

/// A connection is gone: nothing waits for it.
pub(super) fn forget(request: &[u8], place: Place, world: &mut World) {
    let mut reader = Reader::new(request);
    let Ok(head) = frame::read_request_head(&mut reader) else { return };
    let Ok((_, topics)) = read_head(head.version, reader) else { return };
    // It was read before, so that there is no flaw in it.
    let _ = leave(head.version, topics, place, world);
}

/// Removes a connection from those that wait in the logs of its fetch.
fn leave(version: i16, topics: Reader<'_>, place: Place, world: &mut World) -> Result<(), Flaw> {
    each(version, topics, |wanted| {
        if let Some(log) = world.log(wanted.topic, wanted.partition) {
            log.waiting.remove(&place);
        }
    })
}

fn read_head(version: i16, mut reader: Reader<'_>) -> Result<(Fetch, Reader<'_>), Flaw> {
    reader.i32()?;
    let wait_ms = reader.i32()?.max(0) as u64;
    let bytes_min = reader.i32()?.max(0) as usize;
    let bytes_max = reader.i32()?.max(0) as usize;
    reader.i8()?;
    let mut session = 0;
    if version >= 7 {
        session = reader.i32()?;
        reader.i32()?;
    }
    let wait = Nanos::from_millis(wait_ms.min(WAIT_MS_MAX));
    Ok((Fetch { wait, bytes_min, bytes_max: bytes_max.min(BYTES_MAX), session }, reader))
}

/// Passes each partition of a fetch to `take`, and reads it to its end.
fn each<'a>(
    version: i16,
    mut reader: Reader<'a>,
    mut take: impl FnMut(Wanted<'a>),
) -> Result<(), Flaw> {
    for _ in 0..reader.count(6)? {
        let topic = reader.string()?;
        for _ in 0..reader.count(16)? {
            take(read_wanted(version, topic, &mut reader)?);
        }
    }
    if version >= 7 {
        for _ in 0..reader.count(6)? {
            reader.string()?;
            let partitions = reader.count(4)?;
            reader.take(4 * partitions)?;
        }
    }
    if version >= 11 {
        reader.nullable_string()?;
    }
    reader.finish()
}

fn read_wanted<'a>(
    version: i16,
    topic: &'a [u8],
    reader: &mut Reader<'a>,
) -> Result<Wanted<'a>, Flaw> {
    let partition = reader.i32()?;
    if version >= 9 {
        reader.i32()?;
    }
    let offset = reader.i64()?;
    if version >= 5 {
        reader.i64()?;
    }
    let bytes_max = reader.i32()?.max(0) as usize;
    Ok(Wanted { topic, partition, offset, bytes_max })
}

/// True if there are enough bytes, or there is an error to be reported.
fn has_enough(
    version: i16,
    fetch: &Fetch,
    topics: Reader<'_>,
    world: &mut World,
) -> Result<bool, Flaw> {
    let (mut bytes, mut has_error) = (0, fetch.session != 0);
    each(version, topics, |wanted| match world.log(wanted.topic, wanted.partition) {
        Some(log) if (log.start..=log.next).contains(&wanted.offset) => {
            if bytes < fetch.bytes_min.max(1) {
                let most = wanted.bytes_max.min(fetch.bytes_max);
                bytes += log.read(wanted.offset, most, true, None).bytes;
            }
        }
        _ => has_error = true,
    })?;
    Ok(has_error || bytes >= fetch.bytes_min.max(1))
}

fn answer(
    head: &RequestHead<'_>,
    fetch: &Fetch,
    mut topics: Reader<'_>,
    place: Place,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Flaw> {
    // The whole request is legal before anything of its answer is staged.
    each(head.version, topics, |_| {})?;
    let out = turn.out.stage(place.connection);
    let at = begin_answer(out, head.correlation);
    put_i32(out, 0);
    if head.version >= 7 {
        put_i16(out, if fetch.session == 0 { errors::NONE } else { FETCH_SESSION_ID_NOT_FOUND });
        put_i32(out, 0);
    }
    if fetch.session != 0 {
        put_count(out, 0);
        end_frame(out, at);
        return Ok(());
    }
    let mut left = fetch.bytes_max;
    let mut messages = 0;
    let mut is_first = true;
    let count = topics.count(6)?;
    put_count(out, count);
    for _ in 0..count {
        let topic = topics.string()?;
        put_string(out, topic);
        let partitions = topics.count(16)?;
        put_count(out, partitions);
        for _ in 0..partitions {
            let mut wanted = read_wanted(head.version, topic, &mut topics)?;
            wanted.bytes_max = wanted.bytes_max.min(left);
            let taken = put_partition(head.version, &wanted, is_first, world, out);
            is_first &= taken.bytes == 0;
            left = left.saturating_sub(taken.bytes);
            messages += taken.messages;
        }
    }
    end_frame(out, at);
    world.census.note_forwarded(messages);
    Ok(())
}

fn put_partition(
    version: i16,
    wanted: &Wanted<'_>,
    takes_first: bool,
    world: &mut World,
    out: &mut Vec<u8>,
) -> Taken {
    let log = world.log(wanted.topic, wanted.partition);
    let (error, start, next) = match &log {
        None => (errors::UNKNOWN_TOPIC_OR_PARTITION, -1, -1),
        Some(log) if (log.start..=log.next).contains(&wanted.offset) => {
            (errors::NONE, log.start, log.next)
        }
        Some(log) => (errors::OFFSET_OUT_OF_RANGE, log.start, log.next),
    };
    put_i32(out, wanted.partition);
    put_i16(out, error);
    put_i64(out, next);
    put_i64(out, next);
    if version >= 5 {
        put_i64(out, start);
    }
    put_count(out, 0);
    if version >= 11 {
        put_i32(out, -1);
    }
    let length_at = out.len();
    put_i32(out, 0);
    let taken = match log {
        Some(log) if error == errors::NONE => {
            log.read(wanted.offset, wanted.bytes_max, takes_first, Some(out))
        }
        _ => Taken::default(),
    };
    set_i32(out, length_at, taken.bytes as i32);
    taken
}

/// Longest wait, in milliseconds.
const WAIT_MS_MAX: u64 = 300_000;

/// Most bytes in an answer, as `fetch.max.bytes` of a broker.
const BYTES_MAX: usize = 55 << 20;

const FETCH_SESSION_ID_NOT_FOUND: i16 = 70;
