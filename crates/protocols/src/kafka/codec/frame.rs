//! Requests and answers as a whole: their length, their head, and the numbers of the APIs.

use super::flaw::Flaw;
use super::put::{put_i16, put_i32, put_string, set_i32};
use super::reader::Reader;

/// An API: its key, its name, the version that the client speaks, and the versions that the
/// reference server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Api {
    /// Key in requests.
    pub key: i16,
    /// Name in the protocol guide.
    pub name: &'static str,
    /// Version of the client's requests; Kafka 1.0 to 4.x have all of them, and those of groups are
    /// in 2.2 to 4.x.
    pub version: i16,
    /// Lowest and highest version that the reference server answers.
    pub served: (i16, i16),
}

const fn api(key: i16, name: &'static str, version: i16, served: (i16, i16)) -> Api {
    Api { key, name, version, served }
}

/// Messages of a producer. Version 7, which Kafka has since 2.1, has the same bytes.
pub const PRODUCE: Api = api(0, "Produce", 5, (3, 7));
/// Messages for a consumer.
pub const FETCH: Api = api(1, "Fetch", 4, (4, 11));
/// First and last offsets.
pub const LIST_OFFSETS: Api = api(2, "ListOffsets", 1, (1, 3));
/// Brokers, topics and leaders.
pub const METADATA: Api = api(3, "Metadata", 4, (1, 5));
/// Offsets that a group has read to.
pub const OFFSET_COMMIT: Api = api(8, "OffsetCommit", 5, (5, 7));
/// Offsets that a group has committed.
pub const OFFSET_FETCH: Api = api(9, "OffsetFetch", 3, (3, 5));
/// The broker that coordinates a group.
pub const FIND_COORDINATOR: Api = api(10, "FindCoordinator", 1, (1, 2));
/// Membership in a group. Version 4, which Kafka has since 2.2, gives the member an id first.
pub const JOIN_GROUP: Api = api(11, "JoinGroup", 4, (2, 5));
/// Signs of life of a member.
pub const HEARTBEAT: Api = api(12, "Heartbeat", 1, (1, 3));
/// The end of a membership.
pub const LEAVE_GROUP: Api = api(13, "LeaveGroup", 1, (1, 2));
/// The assignment of a member.
pub const SYNC_GROUP: Api = api(14, "SyncGroup", 1, (1, 3));
/// Versions that the broker speaks.
pub const API_VERSIONS: Api = api(18, "ApiVersions", 0, (0, 3));
/// Creation of topics.
pub const CREATE_TOPICS: Api = api(19, "CreateTopics", 2, (2, 4));
/// An identity for idempotent producers.
pub const INIT_PRODUCER_ID: Api = api(22, "InitProducerId", 0, (0, 1));

/// All of them.
pub const APIS: [Api; 14] = [
    PRODUCE,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    FIND_COORDINATOR,
    JOIN_GROUP,
    HEARTBEAT,
    LEAVE_GROUP,
    SYNC_GROUP,
    API_VERSIONS,
    CREATE_TOPICS,
    INIT_PRODUCER_ID,
];

/// The API with this key.
pub fn find(key: i16) -> Option<Api> {
    APIS.into_iter().find(|api| api.key == key)
}

/// First version of ApiVersions whose header and body have tagged fields.
pub const FLEXIBLE_API_VERSIONS: i16 = 3;

/// The first request or answer in `input` without its length, and how many bytes it takes with it;
/// `None` if it is incomplete.
///
/// # Errors
/// If its length is negative or above `bytes_max`.
pub fn read_frame(input: &[u8], bytes_max: usize) -> Result<Option<(&[u8], usize)>, Flaw> {
    let Some((length, rest)) = input.split_first_chunk::<4>() else { return Ok(None) };
    let length = i32::from_be_bytes(*length);
    match usize::try_from(length) {
        Ok(bytes) if bytes <= bytes_max => {
            Ok(rest.get(..bytes).map(|content| (content, 4 + bytes)))
        }
        _ => Err(Flaw::FrameLength(length.into())),
    }
}

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// Key of the API.
    pub api: i16,
    /// Version of the request.
    pub version: i16,
    /// Number that its answer repeats.
    pub correlation: i32,
    /// Name that the client gives itself.
    pub client: Option<&'a [u8]>,
}

/// Reads the head of a request. The tagged fields of a flexible head are skipped where the
/// reference server knows that they are there: in ApiVersions.
///
/// # Errors
/// If there are too few bytes.
pub fn read_request_head<'a>(reader: &mut Reader<'a>) -> Result<RequestHead<'a>, Flaw> {
    let (api, version, correlation) = (reader.i16()?, reader.i16()?, reader.i32()?);
    let client = reader.nullable_string()?;
    if api == API_VERSIONS.key && version >= FLEXIBLE_API_VERSIONS {
        reader.tags()?;
    }
    Ok(RequestHead { api, version, correlation, client })
}

/// Begins a request in the client's version; returns its place for [`end_frame`].
pub fn begin_request(out: &mut Vec<u8>, api: Api, correlation: i32) -> usize {
    let at = out.len();
    put_i32(out, 0);
    put_i16(out, api.key);
    put_i16(out, api.version);
    put_i32(out, correlation);
    put_string(out, CLIENT_ID);
    at
}

/// Begins an answer; returns its place for [`end_frame`].
pub fn begin_answer(out: &mut Vec<u8>, correlation: i32) -> usize {
    let at = out.len();
    put_i32(out, 0);
    put_i32(out, correlation);
    at
}

/// Ends the request or answer that begins at this place: it gets its length.
pub fn end_frame(out: &mut [u8], at: usize) {
    let bytes = out.len().saturating_sub(at + 4);
    set_i32(out, at, bytes as i32);
}

/// The name that the client gives itself.
pub const CLIENT_ID: &[u8] = b"weigh";
