//! Requests of clients: each by its API and version.

use weigh_model::Nanos;
use weigh_model::connection::Fault;

use super::place::{Outcome, Place, Turn};
use super::world::World;
use super::{fetching, groups, offsets, producing, topics};
use crate::kafka::codec::frame::{self, RequestHead};
use crate::kafka::codec::{Flaw, Reader};

/// Executes a request.
///
/// # Errors
/// A request that the server does not know; Kafka closes the connection too.
pub(super) fn execute(
    content: &[u8],
    place: Place,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<Outcome, Fault> {
    let mut reader = Reader::new(content);
    let head = frame::read_request_head(&mut reader)?;
    let Some(api) = frame::find(head.api) else {
        return Err(Fault::Malformed(format!("a request of the unknown API {}", head.api)));
    };
    let (lowest, highest) = api.served;
    let is_served = (lowest..=highest).contains(&head.version);
    if api == frame::API_VERSIONS {
        let out = turn.out.stage(place.connection);
        topics::api_versions(&head, is_served, out);
        return Ok(Outcome::Answered);
    }
    if !is_served {
        let RequestHead { version, .. } = head;
        return Err(Fault::Malformed(format!(
            "{} in version {version}; versions {lowest} to {highest} are served",
            api.name
        )));
    }
    match api {
        frame::PRODUCE => return Ok(producing::produce(&head, reader, place, world, turn)?),
        frame::FETCH => return Ok(fetching::fetch(&head, reader, place, world, turn)?),
        frame::JOIN_GROUP => return Ok(groups::join(&head, reader, place, false, world, turn)?),
        frame::SYNC_GROUP => return Ok(groups::sync(&head, reader, place, false, world, turn)?),
        frame::HEARTBEAT => return Ok(groups::heartbeat(&head, reader, place, world, turn)?),
        frame::LEAVE_GROUP => return Ok(groups::leave(&head, reader, place, world, turn)?),
        frame::OFFSET_COMMIT => return Ok(offsets::commit(&head, reader, place, world, turn)?),
        _ => {}
    }
    let out = turn.out.stage(place.connection);
    let at = out.len();
    let written: Result<(), Flaw> = match api {
        frame::METADATA => topics::metadata(&head, reader, world, out),
        frame::CREATE_TOPICS => topics::create(&head, reader, world, out),
        frame::LIST_OFFSETS => topics::list_offsets(&head, reader, world, out),
        frame::FIND_COORDINATOR => groups::find_coordinator(&head, reader, world, out),
        frame::OFFSET_FETCH => offsets::fetch(&head, reader, world, out),
        _ => producing::init_producer_id(&head, reader, world, out),
    };
    if written.is_err() {
        out.truncate(at);
    }
    written?;
    Ok(Outcome::Answered)
}

/// Tries a request again that waits until then. If it `is_last`, its time is over.
pub(super) fn again(
    request: &[u8],
    place: Place,
    (is_last, until): (bool, Nanos),
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Outcome {
    let mut reader = Reader::new(request);
    let tried = frame::read_request_head(&mut reader).and_then(|head| match head.api {
        JOIN => groups::join(&head, reader, place, true, world, turn),
        SYNC => groups::sync(&head, reader, place, true, world, turn),
        _ => fetching::again(&head, reader, place, (is_last, until), world, turn),
    });
    // It was read before, so that there is no flaw in it.
    tried.unwrap_or(Outcome::Answered)
}

/// A connection is gone: nothing waits for it.
pub(super) fn forget(request: &[u8], place: Place, world: &mut World) {
    match frame::read_request_head(&mut Reader::new(request)).map(|head| head.api) {
        Ok(JOIN | SYNC) => groups::forget(request, place, world),
        _ => fetching::forget(request, place, world),
    }
}

const JOIN: i16 = frame::JOIN_GROUP.key;
const SYNC: i16 = frame::SYNC_GROUP.key;
