//! XREAD and XREADGROUP: answers at once if there is something, and later where the client waits.

use weigh_model::Nanos;

use super::super::blocked::{After, By, Read, Wanted};
use super::super::peer::{Peer, Words};
use super::super::place::{Key, Place, Refusal, Turn};
use super::super::world::World;
use super::refusals::{INVALID_ID, NO_GROUP, NOT_A_NUMBER, SYNTAX};
use crate::redis::codec::{Id, put_array, put_bulk, put_error, put_map, put_null};

/// XREAD [COUNT n] [BLOCK ms] STREAMS key [key ...] ID [ID ...].
pub(super) fn read(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    answer(words, 1, By::Plain, peer, world, turn)
}

/// XREADGROUP GROUP group consumer [COUNT n] [BLOCK ms] [NOACK] STREAMS key [key ...] ID|> ...
pub(super) fn read_group(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    if !words.is(1, "GROUP") {
        return Err(Refusal::from(SYNTAX));
    }
    let (group, consumer) = (words.at(2).into(), words.at(3).into());
    answer(words, 4, By::Group { group, consumer, acknowledges: true }, peer, world, turn)
}

fn answer(
    words: Words<'_>,
    first: usize,
    by: By,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let Asked { mut read, wait_ms } = parse(words, first, by, peer)?;
    for wanted in &mut read.streams {
        let stream = world.stream(&wanted.key)?;
        if wanted.after == After::Id(Id::MAX) {
            // The client wants what comes after now (`$`).
            wanted.after = After::Id(stream.map_or(Id::MIN, |stream| stream.last));
        }
        if let By::Group { group, .. } = &read.by
            && stream.is_none_or(|stream| stream.group(group).is_none())
        {
            return Err(Refusal::from(NO_GROUP));
        }
    }
    let mut reply = Vec::new();
    if put_read(world, &read, &mut reply) {
        turn.out.stage(peer.place.connection).extend_from_slice(&reply);
        return Ok(());
    }
    let Some(wait_ms) = wait_ms else {
        put_nothing(turn.out.stage(peer.place.connection), peer.is_resp3);
        return Ok(());
    };
    let until = match wait_ms {
        0 => Nanos::NEVER,
        wait_ms => turn.now + Nanos(wait_ms.saturating_mul(1_000_000).min(WAIT_NS_MAX)),
    };
    peer.blocked_until = Some(until);
    world.block(read);
    Ok(())
}

/// The answer to a read that found nothing.
pub(in super::super) fn put_nothing(out: &mut Vec<u8>, is_resp3: bool) {
    put_null(out, true, is_resp3);
}

/// A read, and how long it may wait.
struct Asked {
    read: Read,
    wait_ms: Option<u64>,
}

fn parse(words: Words<'_>, first: usize, mut by: By, peer: &Peer) -> Result<Asked, Refusal> {
    let (mut at, mut count, mut wait_ms) = (first, usize::MAX, None);
    let number = |at| words.number(at).ok_or_else(|| Refusal::from(NOT_A_NUMBER));
    while !words.is(at, "STREAMS") {
        if words.is(at, "COUNT") {
            count = usize::try_from(number(at + 1)?).unwrap_or(usize::MAX);
            at += 2;
        } else if words.is(at, "BLOCK") {
            wait_ms = Some(number(at + 1)?);
            at += 2;
        } else if let (true, By::Group { acknowledges, .. }) = (words.is(at, "NOACK"), &mut by) {
            *acknowledges = false;
            at += 1;
        } else {
            return Err(Refusal::from(SYNTAX));
        }
    }
    let names = at + 1;
    let streams = words.len().saturating_sub(names);
    if streams == 0 || !streams.is_multiple_of(2) || streams > 2 * STREAMS_MAX {
        return Err(Refusal::from(
            "ERR Unbalanced list of streams: for each stream key an ID, '$' or '>' must be \
             specified.",
        ));
    }
    let is_group = matches!(by, By::Group { .. });
    let wanted = (0..streams / 2).map(|stream| {
        let text = words.at(names + streams / 2 + stream);
        let after = match text {
            b">" if is_group => After::New,
            b"$" if !is_group => After::Id(Id::MAX),
            _ => After::Id(Id::read(text, 0).ok_or_else(|| Refusal::from(INVALID_ID))?),
        };
        Ok(Wanted { key: peer.key(words.at(names + stream)), after })
    });
    let streams = wanted.collect::<Result<Vec<_>, Refusal>>()?;
    // COUNT 0 sets no limit.
    let count = if count == 0 { usize::MAX } else { count };
    let read = Read { place: peer.place, is_resp3: peer.is_resp3, by, count, streams };
    Ok(Asked { read, wait_ms })
}

/// Appends what a read gets; false, and nothing appended, if that is nothing.
fn put_read(world: &mut World, read: &Read, out: &mut Vec<u8>) -> bool {
    let (mut streams, mut body) = (0, Vec::new());
    for wanted in &read.streams {
        streams += usize::from(put_stream(world, read, wanted, &mut body));
    }
    if streams > 0 {
        match read.is_resp3 {
            true => put_map(out, streams, true),
            false => put_array(out, streams),
        }
        out.append(&mut body);
    }
    streams > 0
}

fn put_stream(world: &mut World, read: &Read, wanted: &Wanted, out: &mut Vec<u8>) -> bool {
    let Ok(Some(stream)) = world.stream_mut(&wanted.key) else { return false };
    let before = stream.bytes();
    let head = |out: &mut Vec<u8>, entries: usize| {
        if !read.is_resp3 {
            put_array(out, 2);
        }
        put_bulk(out, &wanted.key.name);
        put_array(out, entries);
    };
    let forwarded = match (&read.by, wanted.after) {
        (By::Group { group, consumer, acknowledges }, After::New) => {
            let ids = stream.deliver(group, consumer, read.count, *acknowledges);
            let (Some(from), Some(to)) = (ids.first(), ids.last()) else { return false };
            head(out, ids.len());
            stream.range(*from, *to).for_each(|entry| out.extend_from_slice(&entry.encoded));
            ids.len()
        }
        (By::Group { group, consumer, .. }, After::Id(after)) => {
            let pending = stream.group(group).into_iter().flat_map(|group| &group.pending);
            let own = pending.filter(|(id, owner)| **id > after && *owner == consumer);
            let ids: Vec<Id> = own.map(|(id, _)| *id).take(read.count).collect();
            head(out, ids.len());
            for id in ids {
                match stream.entry(id) {
                    Some(entry) => out.extend_from_slice(&entry.encoded),
                    None => put_trimmed(out, id, read.is_resp3),
                }
            }
            0
        }
        (By::Plain, After::Id(after)) => {
            let entries = stream.after(after).take(read.count).count();
            if entries == 0 {
                return false;
            }
            head(out, entries);
            let found = stream.after(after).take(read.count);
            found.for_each(|entry| out.extend_from_slice(&entry.encoded));
            entries
        }
        (By::Plain, After::New) => return false,
    };
    let after = stream.bytes();
    world.note_bytes(before, after);
    world.census.note_forwarded(forwarded as u64);
    true
}

/// A pending entry that was trimmed has no fields.
fn put_trimmed(out: &mut Vec<u8>, id: Id, is_resp3: bool) {
    let mut text = Vec::new();
    id.put(&mut text);
    put_array(out, 2);
    put_bulk(out, &text);
    put_null(out, true, is_resp3);
}

/// Answers the reads that wait for a key, now that it has one more entry.
pub(super) fn serve(world: &mut World, key: &Key, turn: &mut Turn<'_>) {
    for place in world.blocked.of(key) {
        if !has_something(world, place, key) {
            continue;
        }
        let Some(read) = world.blocked.remove(place) else { continue };
        let mut reply = Vec::new();
        match put_read(world, &read, &mut reply) {
            true => world.answer(place, &reply, turn),
            false => world.block(read),
        }
    }
}

fn has_something(world: &World, place: Place, key: &Key) -> bool {
    let Some(read) = world.blocked.read(place) else { return false };
    let Ok(Some(stream)) = world.stream(key) else { return false };
    let wanted = read.streams.iter().filter(|wanted| wanted.key == *key);
    let mut afters = wanted.map(|wanted| match (&read.by, wanted.after) {
        (By::Group { group, .. }, After::New) => {
            stream.group(group).map_or(Id::MAX, |group| group.last)
        }
        (_, After::Id(after)) => after,
        (By::Plain, After::New) => Id::MAX,
    });
    afters.any(|after| stream.last > after)
}

/// Refuses reads that wait for a key that is gone, or for one group of it.
pub(super) fn refuse_waiting(
    world: &mut World,
    key: &Key,
    group: Option<&[u8]>,
    text: &str,
    turn: &mut Turn<'_>,
) {
    for place in world.blocked.of(key) {
        let is_concerned = world.blocked.read(place).is_some_and(|read| match (&read.by, group) {
            (By::Group { group: own, .. }, Some(group)) => **own == *group,
            (By::Group { .. }, None) => true,
            (By::Plain, _) => false,
        });
        if is_concerned && world.blocked.remove(place).is_some() {
            let mut reply = Vec::new();
            put_error(&mut reply, text);
            world.answer(place, &reply, turn);
        }
    }
}

/// A year: longer waits are as long.
const WAIT_NS_MAX: u64 = 365 * 86_400 * 1_000_000_000;

/// Streams of one read.
const STREAMS_MAX: usize = 1_000;
