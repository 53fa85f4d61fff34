//! Requests and answers of consumer groups as the client writes and reads them, each in the version
//! that [`super::frame`] names.

use super::answers::OffsetOf;
use super::embedded::{CONSUMER, RANGE};
use super::flaw::Flaw;
use super::frame::{
    Api, FIND_COORDINATOR, HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, OFFSET_COMMIT, OFFSET_FETCH,
    SYNC_GROUP, begin_request, end_frame,
};
use super::put::{put_bytes, put_count, put_i8, put_i32, put_i64, put_null_string, put_string};
use super::reader::Reader;
use super::requests::FetchFrom;

/// FindCoordinator of a group, version 1.
pub fn put_find_coordinator(out: &mut Vec<u8>, correlation: i32, group: &[u8]) {
    let at = begin_request(out, FIND_COORDINATOR, correlation);
    put_string(out, group);
    put_i8(out, KEY_OF_GROUP);
    end_frame(out, at);
}

/// A wish to be a member of a group.
#[derive(Clone, Copy, Debug)]
pub struct Join<'a> {
    /// The group.
    pub group: &'a [u8],
    /// Id of the member; empty if the coordinator has given it none yet.
    pub member: &'a [u8],
    /// How long the member may be silent, in milliseconds.
    pub session_ms: i32,
    /// How long the coordinator waits for the members in a rebalance, in milliseconds.
    pub rebalance_ms: i32,
    /// Its subscription.
    pub subscription: &'a [u8],
}

/// JoinGroup with the strategy "range", version 4.
pub fn put_join_group(out: &mut Vec<u8>, correlation: i32, join: &Join<'_>) {
    let at = begin_request(out, JOIN_GROUP, correlation);
    put_string(out, join.group);
    put_i32(out, join.session_ms);
    put_i32(out, join.rebalance_ms);
    put_string(out, join.member);
    put_string(out, CONSUMER);
    put_count(out, 1);
    put_string(out, RANGE);
    put_bytes(out, join.subscription);
    end_frame(out, at);
}

/// A member of a generation of a group.
#[derive(Clone, Copy, Debug)]
pub struct MemberOf<'a> {
    /// The group.
    pub group: &'a [u8],
    /// Its generation.
    pub generation: i32,
    /// Id of the member.
    pub member: &'a [u8],
}

/// SyncGroup, version 1. The leader sends what each member gets; the others send nothing.
pub fn put_sync_group(
    out: &mut Vec<u8>,
    correlation: i32,
    own: &MemberOf<'_>,
    assignments: &[(Vec<u8>, Vec<u8>)],
) {
    let at = begin_of_member(out, SYNC_GROUP, correlation, own);
    put_count(out, assignments.len());
    for (member, assignment) in assignments {
        put_string(out, member);
        put_bytes(out, assignment);
    }
    end_frame(out, at);
}

/// Heartbeat, version 1.
pub fn put_heartbeat(out: &mut Vec<u8>, correlation: i32, own: &MemberOf<'_>) {
    let at = begin_of_member(out, HEARTBEAT, correlation, own);
    end_frame(out, at);
}

/// LeaveGroup, version 1.
pub fn put_leave_group(out: &mut Vec<u8>, correlation: i32, own: &MemberOf<'_>) {
    let at = begin_request(out, LEAVE_GROUP, correlation);
    put_string(out, own.group);
    put_string(out, own.member);
    end_frame(out, at);
}

/// OffsetCommit for some partitions of a topic, version 5: the next offset that each is read from.
pub fn put_offset_commit(
    out: &mut Vec<u8>,
    correlation: i32,
    own: &MemberOf<'_>,
    topic: &[u8],
    next: impl ExactSizeIterator<Item = FetchFrom>,
) {
    let at = begin_of_member(out, OFFSET_COMMIT, correlation, own);
    put_count(out, 1);
    put_string(out, topic);
    put_count(out, next.len());
    for FetchFrom { partition, offset } in next {
        put_i32(out, partition);
        put_i64(out, offset);
        put_null_string(out);
    }
    end_frame(out, at);
}

/// OffsetFetch for some partitions of a topic, version 3.
pub fn put_offset_fetch(
    out: &mut Vec<u8>,
    correlation: i32,
    group: &[u8],
    topic: &[u8],
    partitions: &[i32],
) {
    let at = begin_request(out, OFFSET_FETCH, correlation);
    put_string(out, group);
    put_count(out, 1);
    put_string(out, topic);
    put_count(out, partitions.len());
    partitions.iter().for_each(|own| put_i32(out, *own));
    end_frame(out, at);
}

fn begin_of_member(out: &mut Vec<u8>, api: Api, correlation: i32, own: &MemberOf<'_>) -> usize {
    let at = begin_request(out, api, correlation);
    put_string(out, own.group);
    put_i32(out, own.generation);
    put_string(out, own.member);
    at
}

/// The broker that coordinates a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coordinator {
    /// Error, 0 if there is none.
    pub error: i16,
    /// Its number in the cluster.
    pub node: i32,
    /// Name or address at which clients reach it.
    pub host: String,
    /// Port.
    pub port: i32,
}

/// FindCoordinator, version 1.
///
/// # Errors
/// Bytes that are not such an answer, as with all others.
pub fn read_find_coordinator(fields: &[u8]) -> Result<Coordinator, Flaw> {
    let mut reader = Reader::new(fields);
    reader.i32()?;
    let error = reader.i16()?;
    reader.nullable_string()?;
    let node = reader.i32()?;
    let host = String::from_utf8_lossy(reader.string()?).into_owned();
    let port = reader.i32()?;
    reader.finish()?;
    Ok(Coordinator { error, node, host, port })
}

/// A member as the leader of its group sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fellow<'a> {
    /// Its id.
    pub member: &'a [u8],
    /// Its subscription.
    pub subscription: &'a [u8],
}

/// What the coordinator answers to a member that joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined<'a> {
    /// Error, 0 if there is none.
    pub error: i16,
    /// The generation.
    pub generation: i32,
    /// Id of its leader.
    pub leader: &'a [u8],
    /// Id of the member that joined.
    pub member: &'a [u8],
    /// All members, if that is the leader.
    pub fellows: Vec<Fellow<'a>>,
}

/// JoinGroup, version 4.
///
/// # Errors
/// Bytes that are not such an answer.
pub fn read_join_group(fields: &[u8]) -> Result<Joined<'_>, Flaw> {
    let mut reader = Reader::new(fields);
    reader.i32()?;
    let (error, generation) = (reader.i16()?, reader.i32()?);
    reader.nullable_string()?;
    let (leader, member) = (reader.string()?, reader.string()?);
    let count = reader.count(6)?;
    let mut fellows = Vec::with_capacity(count);
    for _ in 0..count {
        let member = reader.string()?;
        let subscription = reader.nullable_bytes()?.unwrap_or_default();
        fellows.push(Fellow { member, subscription });
    }
    reader.finish()?;
    Ok(Joined { error, generation, leader, member, fellows })
}

/// SyncGroup, version 1: the error and the assignment.
///
/// # Errors
/// Bytes that are not such an answer.
pub fn read_sync_group(fields: &[u8]) -> Result<(i16, &[u8]), Flaw> {
    let mut reader = Reader::new(fields);
    reader.i32()?;
    let error = reader.i16()?;
    let assignment = reader.nullable_bytes()?.unwrap_or_default();
    reader.finish()?;
    Ok((error, assignment))
}

/// Heartbeat, version 1: the error.
///
/// # Errors
/// Bytes that are not such an answer.
pub fn read_heartbeat(fields: &[u8]) -> Result<i16, Flaw> {
    let mut reader = Reader::new(fields);
    reader.i32()?;
    let error = reader.i16()?;
    reader.finish()?;
    Ok(error)
}

/// OffsetCommit, version 5: the first error, 0 if there is none.
///
/// # Errors
/// Bytes that are not such an answer.
pub fn read_offset_commit(fields: &[u8]) -> Result<i16, Flaw> {
    let mut reader = Reader::new(fields);
    let mut first = 0;
    reader.i32()?;
    for _ in 0..reader.count(6)? {
        reader.string()?;
        for _ in 0..reader.count(6)? {
            reader.i32()?;
            let error = reader.i16()?;
            if first == 0 {
                first = error;
            }
        }
    }
    reader.finish()?;
    Ok(first)
}

/// OffsetFetch, version 3: the error of the group, and the offset of each partition, -1 if none was
/// committed.
///
/// # Errors
/// Bytes that are not such an answer.
pub fn read_offset_fetch(fields: &[u8]) -> Result<(i16, Vec<OffsetOf>), Flaw> {
    let mut reader = Reader::new(fields);
    let mut all = Vec::new();
    reader.i32()?;
    for _ in 0..reader.count(6)? {
        reader.string()?;
        for _ in 0..reader.count(16)? {
            let (partition, offset) = (reader.i32()?, reader.i64()?);
            reader.nullable_string()?;
            all.push(OffsetOf { partition, error: reader.i16()?, offset });
        }
    }
    let error = reader.i16()?;
    reader.finish()?;
    Ok((error, all))
}

/// The type of a key in FindCoordinator that names a group.
pub const KEY_OF_GROUP: i8 = 0;
