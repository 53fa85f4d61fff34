//! What members of a consumer group say to each other through its coordinator, which passes it on
//! unread: the subscription of a member, and the partitions that the leader assigns it (the message
//! definitions `ConsumerProtocolSubscription` and `ConsumerProtocolAssignment`, version 0).

use super::flaw::Flaw;
use super::put::{put_bytes, put_count, put_i16, put_i32, put_null_bytes, put_string};
use super::reader::Reader;

/// Type of the groups that consumers form.
pub const CONSUMER: &[u8] = b"consumer";

/// Name of the strategy by which the leader divides the partitions.
pub const RANGE: &[u8] = b"range";

/// Appends the subscription to one topic.
pub fn put_subscription(out: &mut Vec<u8>, topic: &[u8]) {
    put_i16(out, VERSION);
    put_count(out, 1);
    put_string(out, topic);
    put_null_bytes(out);
}

/// True if a subscription names this topic. Versions from 1 on have more fields behind, which are
/// not read.
///
/// # Errors
/// Bytes that are not a subscription.
pub fn subscribes(subscription: &[u8], topic: &[u8]) -> Result<bool, Flaw> {
    let mut reader = Reader::new(subscription);
    read_version(&mut reader)?;
    let mut is_named = false;
    for _ in 0..reader.count(2)? {
        is_named |= reader.string()? == topic;
    }
    reader.nullable_bytes()?;
    Ok(is_named)
}

/// What a leader gives to a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// Partitions of the topic that was asked for, in rising order.
    pub partitions: Vec<i32>,
    /// Number of members of the generation, which leaders of Weighbridge add as user data; other
    /// leaders leave it out.
    pub members: Option<u32>,
}

/// Appends the assignment of partitions of one topic.
pub fn put_assignment(out: &mut Vec<u8>, topic: &[u8], partitions: &[i32], members: u32) {
    put_i16(out, VERSION);
    put_count(out, usize::from(!partitions.is_empty()));
    if !partitions.is_empty() {
        put_string(out, topic);
        put_count(out, partitions.len());
        partitions.iter().for_each(|own| put_i32(out, *own));
    }
    put_bytes(out, &members.to_be_bytes());
}

/// Reads the assignment of partitions of this topic. No bytes at all are an assignment of nothing:
/// the leader did not name the member.
///
/// # Errors
/// Bytes that are not an assignment, or partitions of another topic.
pub fn read_assignment(bytes: &[u8], topic: &[u8]) -> Result<Assignment, Flaw> {
    let mut assignment = Assignment::default();
    if bytes.is_empty() {
        return Ok(assignment);
    }
    let mut reader = Reader::new(bytes);
    read_version(&mut reader)?;
    for _ in 0..reader.count(6)? {
        if reader.string()? != topic {
            return Err(Flaw::Assignment);
        }
        for _ in 0..reader.count(4)? {
            assignment.partitions.push(reader.i32()?);
        }
    }
    let user_data = reader.nullable_bytes()?.unwrap_or_default();
    assignment.members = <[u8; 4]>::try_from(user_data).ok().map(u32::from_be_bytes);
    assignment.partitions.sort_unstable();
    assignment.partitions.dedup();
    Ok(assignment)
}

/// Divides partitions among members as the strategy "range" does: consecutive ones to each member,
/// in the order of the ids, and one more to the first ones if they cannot be divided evenly.
/// Returns the share of the member at this place, from 0.
pub fn share_of(partitions: &[i32], place: usize, members: usize) -> &[i32] {
    let (each, more) = (partitions.len() / members.max(1), partitions.len() % members.max(1));
    let from = place * each + place.min(more);
    let to = from + each + usize::from(place < more);
    partitions.get(from..to).unwrap_or_default()
}

/// Later versions only add fields behind.
fn read_version(reader: &mut Reader<'_>) -> Result<(), Flaw> {
    match reader.i16()? {
        0.. => Ok(()),
        _ => Err(Flaw::Assignment),
    }
}

const VERSION: i16 = 0;
