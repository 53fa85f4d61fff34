//! Requests of consumer groups: the coordinator, memberships, and signs of life.

use weigh_model::Nanos;

use super::group::{Entry, Group, Id, Wish};
use super::place::{Outcome, Place, Turn};
use super::topics::BROKER;
use super::world::World;
use crate::kafka::codec::frame::{self, JOIN_GROUP, RequestHead, begin_answer, end_frame};
use crate::kafka::codec::groups::KEY_OF_GROUP;
use crate::kafka::codec::{
    Flaw, Reader, put_bytes, put_count, put_i16, put_i32, put_null_string, put_string,
};
use crate::kafka::errors;

/// FindCoordinator, versions 1 and 2: this server coordinates all groups, and no transactions.
pub(super) fn find_coordinator(
    head: &RequestHead<'_>,
    mut reader: Reader<'_>,
    world: &World,
    out: &mut Vec<u8>,
) -> Result<(), Flaw> {
    reader.string()?;
    let kind = reader.i8()?;
    reader.finish()?;
    let is_group = kind == KEY_OF_GROUP;
    let at = begin_answer(out, head.correlation);
    put_i32(out, 0);
    put_i16(out, if is_group { errors::NONE } else { errors::INVALID_REQUEST });
    put_null_string(out);
    put_i32(out, if is_group { BROKER } else { -1 });
    put_string(out, if is_group { world.rules.host.as_bytes() } else { b"" });
    put_i32(out, if is_group { world.rules.port } else { -1 });
    end_frame(out, at);
    Ok(())
}

/// A request to join.
struct Join<'a> {
    group: &'a [u8],
    member: &'a [u8],
    wish: Wish,
}

/// Ids of static members (KIP-345) are read and have no effect.
fn read_join<'a>(head: &RequestHead<'_>, mut reader: Reader<'a>) -> Result<Join<'a>, Flaw> {
    let group = reader.string()?;
    let (session, rebalance) = (reader.i32()?, reader.i32()?);
    let member = reader.string()?;
    if head.version >= 5 {
        reader.nullable_string()?;
    }
    let kind = reader.string()?.into();
    let count = reader.count(6)?;
    let mut protocols = Vec::with_capacity(count);
    for _ in 0..count {
        let name = reader.string()?.into();
        protocols.push((name, reader.nullable_bytes()?.unwrap_or_default().into()));
    }
    reader.finish()?;
    let time = |ms: i32| Nanos::from_millis(ms.clamp(1, TIME_MS_MAX) as u64);
    let wish = Wish { session: time(session), rebalance: time(rebalance), kind, protocols };
    Ok(Join { group, member, wish })
}

/// JoinGroup, versions 2 to 5; `is_again` if the request waits. From 4 on a member gets an id and
/// asks with it again (KIP-394).
pub(super) fn join(
    head: &RequestHead<'_>,
    reader: Reader<'_>,
    place: Place,
    is_again: bool,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<Outcome, Flaw> {
    let Join { group: name, member, wish } = read_join(head, reader)?;
    let now = turn.now;
    let is_new = member.is_empty() && !is_again;
    let id: Id = match is_new {
        true => world.next_member(head.client.unwrap_or_default()),
        false => member.into(),
    };
    let entered = match world.group(name) {
        None => Err(errors::INVALID_GROUP_ID),
        Some(group) if is_again => group.joined(place, now),
        Some(group) => {
            let announced = match is_new {
                true => group.announce(&id, now + wish.session),
                false => Ok(()),
            };
            announced.and_then(|()| match is_new && head.version >= ID_REQUIRED_FROM {
                true => Err(errors::MEMBER_ID_REQUIRED),
                false => group.join(&id, wish, place, now),
            })
        }
    };
    if let Some(waits) = waits(&entered, name, world, turn) {
        return Ok(waits);
    }
    put_joined(head, &id, entered, (name, place), world, turn);
    Ok(Outcome::Answered)
}

/// Wakes whom a request concerns; the outcome of one that has to wait itself.
fn waits(
    entered: &Result<Entry, i16>,
    name: &[u8],
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Option<Outcome> {
    world.wake_group(name, turn);
    match entered {
        Ok(Entry::Waits(until)) => Some(Outcome::Waits(*until)),
        _ => None,
    }
}

/// Answers a request to join; an error has the id that the member is to ask with.
fn put_joined(
    head: &RequestHead<'_>,
    asked: &[u8],
    entered: Result<Entry, i16>,
    (name, place): (&[u8], Place),
    world: &mut World,
    turn: &mut Turn<'_>,
) {
    let out = turn.out.stage(place.connection);
    let at = begin_answer(out, head.correlation);
    put_i32(out, 0);
    match (entered, world.group(name)) {
        (Ok(Entry::Ready(id)), Some(group)) => {
            put_i16(out, errors::NONE);
            put_i32(out, group.generation);
            put_string(out, &group.protocol);
            put_string(out, group.leader());
            put_string(out, &id);
            put_fellows(head, &id, group, out);
        }
        (entered, _) => {
            put_i16(out, entered.err().unwrap_or(errors::INVALID_GROUP_ID));
            put_i32(out, -1);
            put_string(out, b"");
            put_string(out, b"");
            put_string(out, asked);
            put_count(out, 0);
        }
    }
    end_frame(out, at);
}

/// The leader gets all members and their subscriptions.
fn put_fellows(head: &RequestHead<'_>, id: &[u8], group: &Group, out: &mut Vec<u8>) {
    if group.leader() != id {
        put_count(out, 0);
        return;
    }
    let all = group.subscriptions();
    put_count(out, all.len());
    for (member, subscription) in all {
        put_string(out, member);
        if head.version >= 5 {
            put_null_string(out);
        }
        put_bytes(out, subscription);
    }
}

/// A request for an assignment.
struct Sync<'a> {
    group: &'a [u8],
    generation: i32,
    member: &'a [u8],
    assignments: Vec<(&'a [u8], &'a [u8])>,
}

fn read_sync<'a>(head: &RequestHead<'_>, mut reader: Reader<'a>) -> Result<Sync<'a>, Flaw> {
    let (group, generation, member) = read_membership(head, 3, &mut reader)?;
    let count = reader.count(6)?;
    let mut assignments = Vec::with_capacity(count);
    for _ in 0..count {
        let own = reader.string()?;
        assignments.push((own, reader.nullable_bytes()?.unwrap_or_default()));
    }
    reader.finish()?;
    Ok(Sync { group, generation, member, assignments })
}

/// Group, generation and member; the id of a static member follows from a version on.
pub(super) fn read_membership<'a>(
    head: &RequestHead<'_>,
    has_instance_from: i16,
    reader: &mut Reader<'a>,
) -> Result<(&'a [u8], i32, &'a [u8]), Flaw> {
    let found = (reader.string()?, reader.i32()?, reader.string()?);
    if head.version >= has_instance_from {
        reader.nullable_string()?;
    }
    Ok(found)
}

/// SyncGroup, versions 1 to 3; `is_again` if the request waits.
pub(super) fn sync(
    head: &RequestHead<'_>,
    reader: Reader<'_>,
    place: Place,
    is_again: bool,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<Outcome, Flaw> {
    let Sync { group: name, generation, member, assignments } = read_sync(head, reader)?;
    let now = turn.now;
    let entered = match world.known_group(name) {
        None => Err(errors::UNKNOWN_MEMBER_ID),
        Some(group) if is_again => group.synced(place, now),
        Some(group) => group.sync(member, generation, &assignments, place, now),
    };
    if let Some(waits) = waits(&entered, name, world, turn) {
        return Ok(waits);
    }
    let out = turn.out.stage(place.connection);
    let at = begin_answer(out, head.correlation);
    put_i32(out, 0);
    put_i16(out, entered.as_ref().err().copied().unwrap_or(errors::NONE));
    match (entered, world.known_group(name)) {
        (Ok(_), Some(group)) => put_bytes(out, group.assignment(member)),
        _ => put_bytes(out, b""),
    }
    end_frame(out, at);
    Ok(Outcome::Answered)
}

/// Heartbeat, versions 1 to 3.
pub(super) fn heartbeat(
    head: &RequestHead<'_>,
    mut reader: Reader<'_>,
    place: Place,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<Outcome, Flaw> {
    let (name, generation, member) = read_membership(head, 3, &mut reader)?;
    reader.finish()?;
    let now = turn.now;
    let alive = world.known_group(name).map(|group| group.heartbeat(member, generation, now));
    put_result(head, name, alive, place, world, turn);
    Ok(Outcome::Answered)
}

/// LeaveGroup, versions 1 and 2.
pub(super) fn leave(
    head: &RequestHead<'_>,
    mut reader: Reader<'_>,
    place: Place,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<Outcome, Flaw> {
    let (name, member) = (reader.string()?, reader.string()?);
    reader.finish()?;
    let now = turn.now;
    let left = world.known_group(name).map(|group| group.leave(member, now));
    put_result(head, name, left, place, world, turn);
    Ok(Outcome::Answered)
}

/// Answers with what a group of this name said, if it is known, and wakes whom that concerns.
fn put_result(
    head: &RequestHead<'_>,
    name: &[u8],
    said: Option<Result<(), i16>>,
    place: Place,
    world: &mut World,
    turn: &mut Turn<'_>,
) {
    world.wake_group(name, turn);
    let result = said.unwrap_or(Err(errors::UNKNOWN_MEMBER_ID));
    let out = turn.out.stage(place.connection);
    let at = begin_answer(out, head.correlation);
    put_i32(out, 0);
    put_i16(out, result.err().unwrap_or(errors::NONE));
    end_frame(out, at);
}

/// A connection is gone: no request of it waits.
pub(super) fn forget(request: &[u8], place: Place, world: &mut World) {
    let mut reader = Reader::new(request);
    let Ok(head) = frame::read_request_head(&mut reader) else { return };
    let name = match head.api == JOIN_GROUP.key {
        true => read_join(&head, reader).map(|own| own.group),
        false => read_sync(&head, reader).map(|own| own.group),
    };
    if let Ok(Some(group)) = name.map(|name| world.known_group(name)) {
        group.forget(place);
    }
}

/// First version of JoinGroup in which a member needs an id.
const ID_REQUIRED_FROM: i16 = 4;

/// Longest session and rebalance: `group.max.session.timeout.ms`.
const TIME_MS_MAX: i32 = 1_800_000;
