//! Number of messages that a broker keeps for a subscriber that is disconnected, and for one that
//! has stopped reading: found by filling its queue.

use weigh_protocols::mqtt::codec::Qos;
use weigh_protocols::urls;

use super::client::{Came, Client, UNSPECIFIED};
use super::delivery::number;
use super::limits::SENDING_WINDOW;
use super::question;
use super::scene::Scene;
use crate::abilities::{How, Status};
use crate::finding::{Found, Question};
use crate::reach::Trouble;

pub(super) const QUESTIONS: &[Question<Scene>] =
    &[question("queue_offline", queue_offline), question("queue_stalled", queue_stalled)];

/// Messages of QoS 1 that are kept for a session whose client is away.
fn queue_offline(scene: &mut Scene) -> Result<Found, Trouble> {
    let (topic, client_id) = (scene.topic(), scene.client_id());
    let mut client = scene.lasting(&client_id)?;
    client.subscribed(&topic, Qos::AtLeastOnce)?;
    client.leave();
    let filled = fill(scene, &topic)?;
    let mut again = scene.lasting(&client_id)?;
    let came = drain(scene, &mut again, filled.acknowledged)?;
    again.leave();
    Ok(told(&filled, &came))
}

/// Messages of QoS 1 that are kept for a client that stays connected and reads nothing.
fn queue_stalled(scene: &mut Scene) -> Result<Found, Trouble> {
    if urls::is_quic(&scene.reach.endpoint) {
        let why = "inside QUIC a client that reads nothing confirms no datagram either";
        return Err(Trouble::Inapplicable(why.to_owned()));
    }
    let topic = scene.topic();
    let mut client = scene.client()?;
    client.subscribed(&topic, Qos::AtLeastOnce)?;
    let filled = fill(scene, &topic)?;
    let came = drain(scene, &mut client, filled.acknowledged)?;
    client.leave();
    Ok(told(&filled, &came))
}

/// Messages that the broker took.
#[derive(Debug, Default, PartialEq, Eq)]
struct Filled {
    /// Messages that were tried.
    tried: u64,
    /// Confirmed without an error.
    acknowledged: u64,
    /// Confirmed with a reason code that is an error.
    refused: u64,
    /// It stopped confirming, as if it wanted its publishers to wait.
    held_up: bool,
}

/// Messages that came out of it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Drained {
    /// Different messages.
    count: u64,
    first: Option<u32>,
    last: Option<u32>,
    /// End of the connection, if it ended.
    ended: Option<String>,
}

/// Publishes as many numbers as the bounds allow.
fn fill(scene: &mut Scene, topic: &str) -> Result<Filled, Trouble> {
    let mut sender = scene.client()?;
    let mut filled = Filled { tried: scene.bounds.queue_messages, ..Filled::default() };
    let window = (Qos::AtLeastOnce, scene.window(SENDING_WINDOW));
    let sent = sender.publish_numbers(topic, filled.tried, window, &mut |came| {
        match came {
            Came::Sent(_) => {}
            Came::Reason(UNSPECIFIED..) => filled.refused += 1,
            Came::Reason(_) => filled.acknowledged += 1,
        }
        Ok(())
    });
    match sent {
        Ok(()) => sender.leave(),
        // Cut, so that what it has not taken is not taken later.
        Err(Trouble::Silent(_)) => {
            filled.held_up = true;
            sender.cut();
        }
        Err(other) => return Err(other),
    }
    Ok(filled)
}

/// Reads and acknowledges until nothing more comes.
fn drain(scene: &Scene, client: &mut Client, most: u64) -> Result<Drained, Trouble> {
    let (mut drained, mut seen) = (Drained::default(), std::collections::BTreeSet::new());
    while (seen.len() as u64) < most {
        scene.reach.until()?;
        match client.message(scene.reach.patience) {
            Ok(Some(message)) => seen.extend(number(&message)),
            Ok(None) => break,
            Err(Trouble::Closed(text)) => {
                drained.ended = Some(text);
                break;
            }
            Err(other) => return Err(other),
        }
    }
    drained.count = seen.len() as u64;
    (drained.first, drained.last) = (seen.first().copied(), seen.last().copied());
    Ok(drained)
}

fn told(filled: &Filled, came: &Drained) -> Found {
    let Filled { tried, acknowledged, refused, held_up } = *filled;
    let mut evidence = match (came.first, came.last) {
        (Some(first), Some(last)) => format!(
            "{acknowledged} of {tried} were acknowledged, {} came: {first} to {last}",
            came.count
        ),
        _ => format!("{acknowledged} of {tried} were acknowledged, and none came"),
    };
    if refused > 0 {
        evidence.push_str(&format!("; {refused} were refused"));
    }
    if held_up {
        evidence.push_str("; the publisher was held up");
    }
    if let Some(text) = &came.ended {
        evidence.push_str(&format!("; the subscriber was closed: {text}"));
    }
    let is_whole = came.count == acknowledged && acknowledged == tried;
    if is_whole {
        evidence.push_str(", the most that was tried");
    }
    let found = Found::number(came.count, "messages", How::FoundBySearch, evidence);
    if is_whole { found } else { found.with(Status::Less) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(acknowledged: u64, refused: u64, held_up: bool) -> Filled {
        Filled { tried: 100, acknowledged, refused, held_up }
    }

    #[test]
    fn what_is_kept_is_told_with_its_place() {
        let came =
            Drained { count: 10, first: Some(0), last: Some(9), ended: Some("reset".to_owned()) };
        let found = told(&filled(100, 0, false), &came);
        assert_eq!(found.status, Status::Less);
        assert!(found.evidence.contains("10 came: 0 to 9"), "{}", found.evidence);
        assert!(found.evidence.contains("closed: reset"), "{}", found.evidence);
        let whole = Drained { count: 100, first: Some(0), last: Some(99), ended: None };
        assert_eq!(told(&filled(100, 0, false), &whole).status, Status::Yes);
        let held = told(&filled(40, 7, true), &Drained::default());
        assert_eq!(held.status, Status::Less);
        for part in ["40 of 100", "none came", "7 were refused", "held up"] {
            assert!(held.evidence.contains(part), "{}", held.evidence);
        }
    }
}
