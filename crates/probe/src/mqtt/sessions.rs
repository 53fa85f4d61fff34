//! State that outlives a client: its session, its will; and the messages in which a broker
//! describes itself.

use std::time::Duration;

use weigh_protocols::mqtt::codec::{Id, Publish, Qos, Section};

use super::client::{Client, Hello, draft};
use super::limits::QUIET;
use super::question;
use super::scene::Scene;
use crate::abilities::{How, Status};
use crate::finding::{Found, Question};
use crate::reach::Trouble;

pub(super) const QUESTIONS: &[Question<Scene>] = &[
    question("session", session),
    question("message_expiry", message_expiry),
    question("will", will),
    question("sys_topics", sys_topics),
];

/// Tests whether a session outlives its connection, with the messages that arrive in the meantime
/// (section 4.1).
fn session(scene: &mut Scene) -> Result<Found, Trouble> {
    let (topic, client_id) = (scene.topic(), scene.client_id());
    let mut client = scene.lasting(&client_id)?;
    client.subscribed(&topic, Qos::AtLeastOnce)?;
    client.leave();
    scene.publish(&topic, b"meanwhile")?;
    let mut again = scene.lasting(&client_id)?;
    let is_present = again.granted.session_present;
    let came = again.message(scene.reach.patience)?.is_some();
    again.leave();
    let word = |is: bool| if is { "" } else { " not" };
    let evidence = format!(
        "session present was{} said, a message from meanwhile did{} come",
        word(is_present),
        word(came)
    );
    let found = Found::flag(came, evidence);
    Ok(if came && !is_present { found.with(Status::Less) } else { found })
}

/// Tests whether a message that is too old is discarded (section 3.3.2.3.3).
fn message_expiry(scene: &mut Scene) -> Result<Found, Trouble> {
    scene.needs_v5()?;
    let (topic, client_id) = (scene.topic(), scene.client_id());
    let mut client = scene.lasting(&client_id)?;
    client.subscribed(&topic, Qos::AtLeastOnce)?;
    client.leave();
    let mut sender = scene.client()?;
    for expiry_s in [1, 60] {
        let mut section = Section::default();
        section.number(Id::MessageExpiryInterval, expiry_s);
        let properties = section.properties();
        let body = expiry_s.to_string();
        let message = draft(&topic, body.as_bytes(), Qos::AtLeastOnce);
        sender.publish(&Publish { properties, ..message })?;
    }
    sender.leave();
    scene.reach.pause(EXPIRED_AFTER)?;
    let mut again = scene.lasting(&client_id)?;
    let mut came = Vec::new();
    let mut patience = scene.reach.patience;
    while let Some(message) = again.message(patience)? {
        came.push(message.body);
        patience = QUIET;
    }
    again.leave();
    let has = |body: &[u8]| came.iter().any(|own| own == body);
    Ok(match (has(b"1"), has(b"60")) {
        (false, true) => Found::flag(true, "of 1 s and 60 s only the second came after 2.5 s"),
        (true, _) => Found::flag(false, "a message of 1 s still came after 2.5 s"),
        (false, false) => Found::flag(false, "neither a message of 1 s nor one of 60 s came"),
    })
}

/// Tests whether a will is published for a client that is cut off (section 3.1.2.5).
fn will(scene: &mut Scene) -> Result<Found, Trouble> {
    let (topic, client_id) = (scene.topic(), scene.client_id());
    let mut listener = scene.client()?;
    listener.subscribed(&topic, Qos::AtLeastOnce)?;
    let hello = Hello { will: Some((&topic, b"gone")), ..Hello::new(scene.version, &client_id) };
    Client::open(&scene.reach, &hello)?.cut();
    let came = listener.message(scene.reach.patience)?.is_some();
    listener.leave();
    let verb = if came { "came" } else { "did not come" };
    Ok(Found::flag(came, format!("the will of a client that was cut off {verb}")))
}

/// Tests in how many topics the broker describes itself (a custom of brokers, not of the standard).
fn sys_topics(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut client = scene.client()?;
    client.subscribed("$SYS/#", Qos::AtMostOnce)?;
    let mut topics = std::collections::BTreeSet::new();
    let mut patience = scene.reach.patience;
    while let Some(message) = client.message(patience)? {
        if !topics.insert(message.topic) {
            break;
        }
        patience = QUIET;
    }
    client.leave();
    let count = topics.len() as u64;
    let mut example = topics.into_iter();
    Ok(match example.next() {
        None => Found::flag(false, "nothing came below $SYS"),
        Some(first) => {
            let evidence = format!("topics that came, such as {first}");
            Found::number(count, "topics", How::Tried, evidence)
        }
    })
}

/// Longer than a message of one second lives, by as much as brokers that look once a second need.
const EXPIRED_AFTER: Duration = Duration::from_millis(2_500);
