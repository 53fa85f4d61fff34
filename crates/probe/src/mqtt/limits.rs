//! Limits of size and number: payloads, topics, levels, identifiers, and messages in flight.

use std::time::{Duration, Instant};

use weigh_protocols::mqtt::codec::{Id, Qos};

use super::client::{Came, Client, Hello, UNSPECIFIED, draft};
use super::question;
use super::scene::Scene;
use crate::abilities::{How, Status};
use crate::finding::{Found, Question};
use crate::reach::Trouble;
use crate::search::largest_passing;

pub(super) const QUESTIONS: &[Question<Scene>] = &[
    question("payload_bytes", payload_bytes),
    question("topic_levels", topic_levels),
    question("unacknowledged", unacknowledged),
    question("beyond_receive_maximum", beyond_receive_maximum),
];

/// Asked when all else is known: there are servers that die of long names.
pub(super) const OF_NAMES: &[Question<Scene>] =
    &[question("client_id_bytes", client_id_bytes), question("topic_bytes", topic_bytes)];

/// The largest payload that arrives.
fn payload_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let most = scene.bounds.payload_bytes.max(1);
    // One topic for all sizes: limits of packets count it, too.
    let topic = scene.topic();
    let (edge, why) = largest_passing((1, most), |bytes| {
        let payload = vec![b'w'; bytes as usize];
        arrives(scene, &topic, &topic, &payload)
    })?;
    let packet = |bytes: u64| {
        let payload = vec![0; bytes as usize];
        draft(&topic, &payload, Qos::AtLeastOnce).size(scene.version)
    };
    let whole = edge.passed.map_or(0, packet);
    let more = format!(" (PUBLISH of {whole} bytes)");
    Ok(Found::edge(edge, "bytes", &more, why.as_ref()))
}

/// The longest topic that arrives.
fn topic_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let root = scene.topic();
    let (low, high) = longest(root.len() as u64 + 2, scene);
    let (edge, why) = largest_passing((low, high), |bytes| {
        let rest = bytes as usize - root.len() - 1;
        let topic = format!("{root}/{}", "t".repeat(rest));
        arrives(scene, &format!("{root}/#"), &topic, b"hello")
    })?;
    Ok(Found::edge(edge, "bytes", "", why.as_ref()))
}

/// The most levels of a topic that arrives; each is one character long.
fn topic_levels(scene: &mut Scene) -> Result<Found, Trouble> {
    let root = scene.topic();
    let own = root.split('/').count() as u64;
    let (edge, why) = largest_passing((own + 1, LEVELS_MAX), |levels| {
        let topic = format!("{root}{}", "/t".repeat((levels - own) as usize));
        arrives(scene, &format!("{root}/#"), &topic, b"hello")
    })?;
    Ok(Found::edge(edge, "levels", "", why.as_ref()))
}

/// The longest client identifier that is let in.
fn client_id_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let start = scene.client_id();
    let (low, high) = longest(start.len() as u64, scene);
    let (edge, why) = largest_passing((low, high), |bytes| {
        let client_id = format!("{start}{}", "x".repeat(bytes as usize - start.len()));
        Client::open(&scene.reach, &Hello::new(scene.version, &client_id)).map(Client::leave)
    })?;
    Ok(Found::edge(edge, "bytes", "", why.as_ref()))
}

/// Lengths of names from `low` on.
fn longest(low: u64, scene: &Scene) -> (u64, u64) {
    (low, scene.bounds.name_bytes.min(u16::MAX.into()).max(low))
}

/// Publishes at QoS 1, and waits until it has arrived at a subscriber of the filter.
fn arrives(scene: &mut Scene, filter: &str, topic: &str, payload: &[u8]) -> Result<(), Trouble> {
    let mut listener = scene.client()?;
    listener.subscribed(filter, Qos::AtLeastOnce)?;
    let mut sender = scene.client()?;
    sender.publish(&draft(topic, payload, Qos::AtLeastOnce))?;
    let until = scene.reach.until()?;
    let outcome = loop {
        let left = until.saturating_duration_since(Instant::now());
        match listener.message(left) {
            Ok(Some(message)) if message.body == payload && message.topic == topic => break Ok(()),
            // One of an earlier size, which was too slow.
            Ok(Some(_)) => {}
            // It was acknowledged, and did not arrive.
            Ok(None) => break Err(Trouble::Silent(scene.reach.patience)),
            Err(trouble) => break Err(trouble),
        }
    };
    sender.leave();
    listener.leave();
    outcome
}

/// Tests how many messages a subscriber is sent before it has acknowledged the first.
fn unacknowledged(scene: &mut Scene) -> Result<Found, Trouble> {
    let topic = scene.topic();
    let mut listener = scene.client()?;
    listener.subscribed(&topic, Qos::AtLeastOnce)?;
    listener.acknowledges = false;
    let mut sender = scene.client()?;
    let window = (Qos::AtLeastOnce, scene.window(SENDING_WINDOW));
    let mut taken = 0;
    let sent = sender.publish_numbers(&topic, UNACKNOWLEDGED_MAX, window, &mut |came| {
        taken += u64::from(matches!(came, Came::Reason(..UNSPECIFIED)));
        Ok(())
    });
    // A broker may hold publishers up instead; what it took before is enough to see.
    if !matches!(sent, Ok(()) | Err(Trouble::Silent(_))) {
        sent?;
    }
    let mut came = 0;
    while came < UNACKNOWLEDGED_MAX && listener.message(QUIET)?.is_some() {
        came += 1;
    }
    sender.leave();
    listener.cut();
    let evidence = format!("of {taken} messages {came} arrived while none was acknowledged");
    let found = Found::number(came, "messages", How::Tried, evidence);
    Ok(if came < taken { found.with(Status::Less) } else { found })
}

/// Tests what happens to a client that has one message more in flight than it may (section 4.9).
fn beyond_receive_maximum(scene: &mut Scene) -> Result<Found, Trouble> {
    scene.needs_v5()?;
    let most = scene.announced(Id::ReceiveMaximum).unwrap_or(u32::from(u16::MAX));
    if most > BEYOND_MAX {
        let text = format!("{most} may be on their way, and at most {BEYOND_MAX} are tried");
        return Err(Trouble::Inapplicable(text));
    }
    let topic = scene.topic();
    let mut client = scene.client()?;
    let mut outcome = Ok(());
    for _ in 0..=most {
        let message = draft(&topic, b"one of too many", Qos::ExactlyOnce);
        outcome = client.send_message(&message).map(|_| ());
        if outcome.is_err() {
            break;
        }
    }
    let outcome = outcome.and_then(|()| client.ping());
    client.cut();
    let sent = u64::from(most) + 1;
    let evidence = format!("{sent} messages of QoS 2 without a PUBREL, and a ping");
    Ok(match outcome {
        Ok(()) => Found::words("taken", evidence),
        Err(Trouble::Closed(text) | Trouble::Refused(text)) => {
            let short = text.split(',').next().unwrap_or_default().to_owned();
            Found::words(short, format!("{evidence}: {text}"))
        }
        Err(other) => return Err(other),
    })
}

/// More levels than any application uses.
const LEVELS_MAX: u64 = 1_000;

/// Messages on their way to a broker while a queue or a window is filled.
pub(super) const SENDING_WINDOW: u64 = 20;

/// More than brokers send before they are answered, by default.
const UNACKNOWLEDGED_MAX: u64 = 1_000;

/// A larger Receive Maximum is not exceeded: it would be a load.
const BEYOND_MAX: u32 = 2_000;

/// After so long nothing more is on its way.
pub(super) const QUIET: Duration = Duration::from_millis(300);
