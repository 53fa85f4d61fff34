//! Publish and subscribe.

use std::sync::Arc;

use super::super::channels::Subscriber;
use super::super::peer::{Peer, Words};
use super::super::place::{Refusal, Turn};
use super::super::world::World;
use crate::redis::codec::{put_bulk, put_integer, put_null, put_push};

/// PUBLISH channel message. Answers with the number of receivers.
pub(super) fn publish(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let (channel, body) = (words.at(1), words.at(2));
    world.census.note(body);
    let subscribers = world.channels.of_name(channel).to_vec();
    let mut receivers = subscribers.len();
    let mut forwarded = 0;
    for is_resp3 in [false, true] {
        let mut of_version = subscribers.iter().filter(|one| one.is_resp3 == is_resp3).peekable();
        if of_version.peek().is_none() {
            continue;
        }
        let message = message(&[b"message", channel, body], is_resp3);
        for one in of_version {
            forwarded += u64::from(world.push(one.place, &message, turn));
        }
    }
    let by_pattern: Vec<(Box<[u8]>, Subscriber)> = world
        .channels
        .of_patterns(channel)
        .map(|(pattern, subscriber)| (pattern.into(), subscriber))
        .collect();
    receivers += by_pattern.len();
    for (pattern, one) in by_pattern {
        let message = message(&[b"pmessage", &pattern, channel, body], one.is_resp3);
        forwarded += u64::from(world.push(one.place, &message, turn));
    }
    world.census.note_forwarded(forwarded);
    put_integer(turn.out.stage(peer.place.connection), receivers as i64);
    Ok(())
}

fn message(words: &[&[u8]], is_resp3: bool) -> Arc<[u8]> {
    let mut out = Vec::new();
    put_push(&mut out, words.len(), is_resp3);
    words.iter().for_each(|word| put_bulk(&mut out, word));
    Arc::from(out)
}

/// SUBSCRIBE channel [channel ...], and PSUBSCRIBE pattern [pattern ...].
pub(super) fn subscribe(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
    is_pattern: bool,
) -> Result<(), Refusal> {
    let subscriber = Subscriber { place: peer.place, is_resp3: peer.is_resp3 };
    let kind: &[u8] = if is_pattern { b"psubscribe" } else { b"subscribe" };
    for name in words.from(1) {
        let count = world.channels.subscribe(subscriber, name, is_pattern);
        let count = count.ok_or_else(|| Refusal::from("ERR too many subscriptions"))?;
        put_change(peer, turn, kind, Some(name), count);
    }
    Ok(())
}

/// UNSUBSCRIBE [channel ...], and PUNSUBSCRIBE [pattern ...].
pub(super) fn unsubscribe(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
    is_pattern: bool,
) -> Result<(), Refusal> {
    let kind: &[u8] = if is_pattern { b"punsubscribe" } else { b"unsubscribe" };
    let names: Vec<Box<[u8]>> = match words.len() {
        1 => world.channels.names(peer.place, is_pattern),
        _ => words.from(1).map(Into::into).collect(),
    };
    if names.is_empty() {
        put_change(peer, turn, kind, None, world.channels.count(peer.place));
    }
    for name in names {
        let left = world.channels.unsubscribe(peer.place, &name, is_pattern);
        put_change(peer, turn, kind, Some(&name), left);
    }
    Ok(())
}

fn put_change(peer: &Peer, turn: &mut Turn<'_>, kind: &[u8], name: Option<&[u8]>, count: usize) {
    let out = turn.out.stage(peer.place.connection);
    put_push(out, 3, peer.is_resp3);
    put_bulk(out, kind);
    match name {
        Some(name) => put_bulk(out, name),
        None => put_null(out, false, peer.is_resp3),
    }
    put_integer(out, count as i64);
}
