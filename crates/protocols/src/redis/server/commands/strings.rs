//! Keys and their removal; values that are texts.

use weigh_model::server::Record;

use super::super::peer::{Peer, Words};
use super::super::place::{Refusal, Turn};
use super::super::world::{Value, WRONG_TYPE, World};
use super::reads;
use super::refusals::{GONE, SYNTAX};
use crate::redis::codec::{put_bulk, put_integer, put_null, put_simple};

/// SET key value.
pub(super) fn set(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    if words.len() > 3 {
        return Err(Refusal::from(SYNTAX));
    }
    let (name, value) = (words.at(1), words.at(2));
    world.check_memory(name.len() + value.len())?;
    world.census.note(value);
    turn.out.store(Record::Message { name, body: value });
    world.set(peer.key(name), value);
    put_simple(turn.out.stage(peer.place.connection), "OK");
    Ok(())
}

/// GET key.
pub(super) fn get(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let out = turn.out.stage(peer.place.connection);
    match world.keys.get(&peer.key(words.at(1))) {
        Some(Value::Text(text)) => put_bulk(out, text),
        Some(Value::Stream(_)) => return Err(Refusal::from(WRONG_TYPE)),
        None => put_null(out, false, peer.is_resp3),
    }
    Ok(())
}

/// DEL key [key ...].
pub(super) fn delete(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let mut removed = 0;
    for name in words.from(1) {
        let key = peer.key(name);
        if world.remove(&key) {
            removed += 1;
            reads::refuse_waiting(world, &key, None, GONE, turn);
        }
    }
    put_integer(turn.out.stage(peer.place.connection), removed);
    Ok(())
}

/// EXISTS key [key ...].
pub(super) fn exists(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let there = words.from(1).filter(|name| world.keys.contains_key(&peer.key(name)));
    put_integer(turn.out.stage(peer.place.connection), there.count() as i64);
    Ok(())
}

/// DBSIZE.
pub(super) fn size(
    _words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let own = world.keys.keys().filter(|key| key.db == peer.db);
    put_integer(turn.out.stage(peer.place.connection), own.count() as i64);
    Ok(())
}

/// FLUSHALL.
pub(super) fn flush(
    _words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let keys: Vec<_> = world.keys.keys().cloned().collect();
    for key in keys {
        world.remove(&key);
        reads::refuse_waiting(world, &key, None, GONE, turn);
    }
    put_simple(turn.out.stage(peer.place.connection), "OK");
    Ok(())
}
