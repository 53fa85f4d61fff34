//! Entries of streams and their groups.

use weigh_model::server::Record;

use super::super::peer::{Peer, Words};
use super::super::place::{Refusal, Turn};
use super::super::stream::Entry;
use super::super::world::{World, id_ms};
use super::reads;
use super::refusals::{INVALID_ID, NO_GROUP, NO_KEY, NOT_A_NUMBER, SYNTAX};
use crate::redis::codec::{Id, put_array, put_bulk, put_integer, put_null, put_simple};

/// Limit of a stream's length.
#[derive(Clone, Copy)]
struct Limit {
    entries: usize,
    is_exact: bool,
}

/// XADD key [NOMKSTREAM] [MAXLEN [=|~] n [LIMIT n]] *|ID field value [field value ...].
pub(super) fn add(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let key = peer.key(words.at(1));
    let mut at = 2;
    let makes = !words.is(at, "NOMKSTREAM");
    at += usize::from(!makes);
    let limit = read_limit(words, &mut at)?;
    let (id_at, fields_at) = (at, at + 1);
    let fields = words.len().saturating_sub(fields_at);
    if fields < 2 || !fields.is_multiple_of(2) {
        return Err(Refusal::from("ERR wrong number of arguments for 'xadd' command"));
    }
    let bytes: usize = words.from(fields_at).map(<[u8]>::len).sum();
    world.check_memory(bytes)?;
    if !makes && world.stream(&key)?.is_none() {
        put_null(turn.out.stage(peer.place.connection), false, peer.is_resp3);
        return Ok(());
    }
    let stream = world.stream_or_new(&key)?;
    let before = stream.bytes();
    let id = new_id(words.at(id_at), stream.last, stream.next_id(id_ms(turn.now)))?;
    let mut text = Vec::new();
    id.put(&mut text);
    let mut encoded = Vec::with_capacity(bytes + 64);
    put_array(&mut encoded, 2);
    put_bulk(&mut encoded, &text);
    put_array(&mut encoded, fields);
    words.from(fields_at).for_each(|word| put_bulk(&mut encoded, word));
    stream.add(id, &encoded);
    let trimmed = limit.map(|limit| stream.trim(limit.entries, limit.is_exact));
    let after = stream.bytes();
    world.note_bytes(before, after);
    let body = words.at(words.len() - 1);
    world.census.note(body);
    world.census.note_dropped_many(TRIMMED, trimmed.map_or(0, |trimmed| trimmed.unread));
    turn.out.store(Record::Message { name: words.at(1), body });
    put_bulk(turn.out.stage(peer.place.connection), &text);
    reads::serve(world, &key, turn);
    Ok(())
}

fn new_id(text: &[u8], last: Id, next: Option<Id>) -> Result<Id, Refusal> {
    const SMALLER: &str = "ERR The ID specified in XADD is equal or smaller than the target stream \
                           top item";
    if text == b"*" {
        return next.ok_or_else(|| Refusal::from(SMALLER));
    }
    let id = match text.strip_suffix(b"-*") {
        Some(ms) => {
            let ms = Id::read(ms, 0).ok_or_else(|| Refusal::from(INVALID_ID))?.ms;
            let follows = last.next().filter(|next| next.ms == ms);
            follows.unwrap_or(Id { ms, sequence: u64::from(ms == 0) })
        }
        None => Id::read(text, 0).ok_or_else(|| Refusal::from(INVALID_ID))?,
    };
    match id > last {
        true => Ok(id),
        false if id == Id::MIN => {
            Err(Refusal::from("ERR The ID specified in XADD must be greater than 0-0"))
        }
        false => Err(Refusal::from(SMALLER)),
    }
}

/// Reads MAXLEN at a word, if it is there.
fn read_limit(words: Words<'_>, at: &mut usize) -> Result<Option<Limit>, Refusal> {
    if words.is(*at, "MINID") {
        return Err(Refusal::from("ERR MINID is not supported by this server"));
    }
    if !words.is(*at, "MAXLEN") {
        return Ok(None);
    }
    *at += 1;
    let is_exact = !words.is(*at, "~");
    *at += usize::from(!is_exact || words.is(*at, "="));
    let entries = words.number(*at).ok_or_else(|| Refusal::from(NOT_A_NUMBER))?;
    *at += 1;
    if words.is(*at, "LIMIT") {
        *at += 2;
    }
    Ok(Some(Limit { entries: usize::try_from(entries).unwrap_or(usize::MAX), is_exact }))
}

/// XTRIM key MAXLEN [=|~] n.
pub(super) fn trim(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let mut at = 2;
    let limit = read_limit(words, &mut at)?.ok_or_else(|| Refusal::from(SYNTAX))?;
    let mut removed = 0;
    if let Some(stream) = world.stream_mut(&peer.key(words.at(1)))? {
        let before = stream.bytes();
        let trimmed = stream.trim(limit.entries, limit.is_exact);
        let after = stream.bytes();
        removed = trimmed.entries;
        world.note_bytes(before, after);
        world.census.note_dropped_many(TRIMMED, trimmed.unread);
    }
    put_integer(turn.out.stage(peer.place.connection), removed as i64);
    Ok(())
}

/// XLEN key.
pub(super) fn length(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let length = world.stream(&peer.key(words.at(1)))?.map_or(0, |stream| stream.len());
    put_integer(turn.out.stage(peer.place.connection), length as i64);
    Ok(())
}

/// XRANGE key start end [COUNT n].
pub(super) fn range(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let (from, to) = (bound(words.at(2), 0)?, bound(words.at(3), u64::MAX)?);
    let count = read_count(words)?;
    let found = world.stream(&peer.key(words.at(1)))?;
    let entries = found.into_iter().flat_map(|stream| stream.range(from, to)).take(count);
    put_entries(turn.out.stage(peer.place.connection), entries);
    Ok(())
}

/// XREVRANGE key end start [COUNT n].
pub(super) fn range_back(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let (to, from) = (bound(words.at(2), u64::MAX)?, bound(words.at(3), 0)?);
    let count = read_count(words)?;
    let found = world.stream(&peer.key(words.at(1)))?;
    let entries = found.into_iter().flat_map(|stream| stream.range(from, to).rev()).take(count);
    put_entries(turn.out.stage(peer.place.connection), entries);
    Ok(())
}

fn put_entries<'e>(out: &mut Vec<u8>, entries: impl Iterator<Item = &'e Entry>) {
    let entries: Vec<&Entry> = entries.collect();
    put_array(out, entries.len());
    entries.iter().for_each(|entry| out.extend_from_slice(&entry.encoded));
}

/// COUNT of a range; all entries without it.
fn read_count(words: Words<'_>) -> Result<usize, Refusal> {
    match words.len() {
        4 => Ok(usize::MAX),
        6 if words.is(4, "COUNT") => {
            let count = words.number(5).ok_or_else(|| Refusal::from(NOT_A_NUMBER))?;
            Ok(usize::try_from(count).unwrap_or(usize::MAX))
        }
        _ => Err(Refusal::from(SYNTAX)),
    }
}

fn bound(text: &[u8], missing: u64) -> Result<Id, Refusal> {
    let id = match text {
        b"-" => Some(Id::MIN),
        b"+" => Some(Id::MAX),
        _ => Id::read(text, missing),
    };
    id.ok_or_else(|| Refusal::from(INVALID_ID))
}

/// XGROUP CREATE key group ID|$ [MKSTREAM], XGROUP DESTROY key group, and CREATECONSUMER.
pub(super) fn group(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let (key, name) = (peer.key(words.at(2)), words.at(3));
    let makes = words.is(1, "CREATE") && words.is(5, "MKSTREAM");
    if makes {
        world.check_memory(0)?;
        world.stream_or_new(&key)?;
    }
    let stream = world.stream_mut(&key)?.ok_or_else(|| Refusal::from(NO_KEY))?;
    let before = stream.bytes();
    if words.is(1, "CREATE") && words.len() >= 5 {
        let last = match words.at(4) {
            b"$" => stream.last,
            text => bound(text, 0)?,
        };
        if !stream.create_group(name, last) {
            return Err(Refusal::from("BUSYGROUP Consumer Group name already exists"));
        }
        put_simple(turn.out.stage(peer.place.connection), "OK");
    } else if words.is(1, "DESTROY") && words.len() == 4 {
        let was_there = stream.destroy_group(name);
        put_integer(turn.out.stage(peer.place.connection), was_there.into());
    } else if words.is(1, "CREATECONSUMER") && words.len() == 5 {
        // Consumers exist from their first read on.
        put_integer(turn.out.stage(peer.place.connection), 1);
    } else {
        return Err(Refusal::from(
            "ERR unknown subcommand or wrong number of arguments for XGROUP",
        ));
    }
    let after = stream.bytes();
    world.note_bytes(before, after);
    if words.is(1, "DESTROY") {
        reads::refuse_waiting(world, &key, Some(name), NO_GROUP, turn);
    }
    Ok(())
}

/// XACK key group ID [ID ...].
pub(super) fn acknowledge(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let ids: Option<Vec<Id>> = words.from(3).map(|text| Id::read(text, 0)).collect();
    let ids = ids.ok_or_else(|| Refusal::from(INVALID_ID))?;
    let mut acknowledged = 0;
    if let Some(stream) = world.stream_mut(&peer.key(words.at(1)))? {
        let before = stream.bytes();
        let group = words.at(2);
        acknowledged = ids.iter().filter(|id| stream.acknowledge(group, **id)).count();
        let after = stream.bytes();
        world.note_bytes(before, after);
    }
    put_integer(turn.out.stage(peer.place.connection), acknowledged as i64);
    Ok(())
}

/// XPENDING key group: how many entries are pending, the lowest and the highest ID.
pub(super) fn pending(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let stream = world.stream(&peer.key(words.at(1)))?;
    let group = stream.and_then(|stream| stream.group(words.at(2)));
    let pending = &group.ok_or_else(|| Refusal::from(NO_GROUP))?.pending;
    let out = turn.out.stage(peer.place.connection);
    put_array(out, 4);
    put_integer(out, pending.len() as i64);
    for id in [pending.keys().next(), pending.keys().next_back()] {
        let mut text = Vec::new();
        match id {
            Some(id) => {
                id.put(&mut text);
                put_bulk(out, &text);
            }
            None => put_null(out, false, peer.is_resp3),
        }
    }
    // Numbers by consumer are left out.
    put_null(out, true, peer.is_resp3);
    Ok(())
}

/// Cause of entries that were trimmed before a group read them.
const TRIMMED: &str = "trimmed";
