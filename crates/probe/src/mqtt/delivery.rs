//! Delivery of a message: its QoS, its order, its receivers, and whether it is kept.

use weigh_protocols::mqtt::codec::{Id, Options, Properties, Qos, Section};
use weigh_protocols::urls;

use super::announced::qos_max;
use super::client::{Came, Message, accepted, draft};
use super::limits::QUIET;
use super::question;
use super::scene::Scene;
use crate::abilities::{How, Status};
use crate::finding::{Found, Question};
use crate::reach::Trouble;

pub(super) const QUESTIONS: &[Question<Scene>] = &[
    question("qos_0", |scene| qos(scene, Qos::AtMostOnce)),
    question("qos_1", |scene| qos(scene, Qos::AtLeastOnce)),
    question("qos_2", |scene| qos(scene, Qos::ExactlyOnce)),
    question("qos_max", qos_max),
    question("order_qos_0", |scene| order(scene, Qos::AtMostOnce)),
    question("order_qos_1", |scene| order(scene, Qos::AtLeastOnce)),
    question("order_qos_2", |scene| order(scene, Qos::ExactlyOnce)),
    question("wildcard_one_level", |scene| wildcard(scene, "+", "a")),
    question("wildcard_many_levels", |scene| wildcard(scene, "#", "a/b")),
    question("shared_subscriptions", shared_subscriptions),
    question("no_local", no_local),
    question("subscription_identifiers", subscription_identifiers),
    question("retain", |scene| retain(scene, false)),
    question("retain_wildcard", |scene| retain(scene, true)),
    question("retain_clear", retain_clear),
];

/// Tests which QoS is granted, and with which a message arrives.
fn qos(scene: &mut Scene, asked: Qos) -> Result<Found, Trouble> {
    let topic = scene.topic();
    let mut listener = scene.client()?;
    let granted = listener.subscribed(&topic, asked)? as u8;
    let mut sender = scene.client()?;
    sender.publish(&draft(&topic, b"hello", asked))?;
    let came = listener.message(scene.reach.patience)?;
    sender.leave();
    listener.leave();
    let asked = asked as u8;
    Ok(match came {
        None => Found::flag(false, format!("QoS {granted} was granted, and nothing arrived")),
        Some(message) => {
            let arrived = message.qos as u8;
            let evidence = format!("granted {granted}, arrived with QoS {arrived}");
            let found = Found::number(arrived.into(), "", How::Tried, evidence);
            if granted < asked || arrived < asked { found.with(Status::Less) } else { found }
        }
    })
}

/// Tests whether messages arrive in the order in which they were published (section 4.6).
fn order(scene: &mut Scene, qos: Qos) -> Result<Found, Trouble> {
    if qos == Qos::AtMostOnce && urls::is_quic(&scene.reach.endpoint) {
        let why = "inside QUIC messages that nothing confirms outrun a listener that is read later";
        return Err(Trouble::Inapplicable(why.to_owned()));
    }
    let topic = scene.topic();
    let mut listener = scene.client()?;
    listener.subscribed(&topic, qos)?;
    let mut sender = scene.client()?;
    let (mut refused, window) = (0, scene.window(ORDER_WINDOW));
    sender.publish_numbers(&topic, ORDER_MESSAGES, (qos, window), &mut |came| match came {
        Came::Sent(number) if number % KEEP_UP_EVERY == 0 => listener.keep_up(),
        Came::Sent(_) => Ok(()),
        Came::Reason(reason) => {
            refused += u64::from(accepted(reason).is_err());
            Ok(())
        }
    })?;
    let mut came = Vec::new();
    while (came.len() as u64) < ORDER_MESSAGES
        && let Some(message) = listener.message(scene.reach.patience)?
    {
        came.extend(number(&message));
    }
    sender.leave();
    listener.leave();
    let Line { distinct, twice, overtaken } = line(&came);
    let mut evidence = format!(
        "{distinct} of {ORDER_MESSAGES} arrived, {overtaken} after a later one, {twice} twice"
    );
    if refused > 0 {
        evidence.push_str(&format!("; {refused} were refused"));
    }
    let found = Found::flag(overtaken == 0 && distinct > 0, evidence);
    let is_whole = distinct == ORDER_MESSAGES && twice == 0;
    Ok(if found.status == Status::Yes && !is_whole { found.with(Status::Less) } else { found })
}

/// Evaluation of a row of numbers that arrived.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    distinct: u64,
    twice: u64,
    /// Came for the first time, and after a larger one.
    overtaken: u64,
}

fn line(came: &[u32]) -> Line {
    let mut seen = std::collections::BTreeSet::new();
    let mut line = Line { distinct: 0, twice: 0, overtaken: 0 };
    for number in came {
        let is_late = seen.last().is_some_and(|last| last > number);
        if seen.insert(*number) {
            line.distinct += 1;
            line.overtaken += u64::from(is_late);
        } else {
            line.twice += 1;
        }
    }
    line
}

/// The number that a message carries.
pub(super) fn number(message: &Message) -> Option<u32> {
    Some(u32::from_be_bytes(message.body.as_slice().try_into().ok()?))
}

/// Tests whether a filter with a wildcard gets a topic (section 4.7.1).
fn wildcard(scene: &mut Scene, end: &str, below: &str) -> Result<Found, Trouble> {
    let topic = scene.topic();
    let mut listener = scene.client()?;
    let filter = format!("{topic}/{end}");
    listener.subscribed(&filter, Qos::AtLeastOnce)?;
    scene.publish(&format!("{topic}/{below}"), b"hello")?;
    let came = listener.message(scene.reach.patience)?.is_some();
    listener.leave();
    let verb = if came { "arrived" } else { "did not arrive" };
    Ok(Found::flag(came, format!("a message to .../{below} {verb} at .../{end}")))
}

/// Tests whether the members of a group share messages (section 4.8.2).
fn shared_subscriptions(scene: &mut Scene) -> Result<Found, Trouble> {
    let topic = scene.topic();
    let filter = format!("$share/weigh/{topic}");
    let said = match scene.announced(Id::SharedSubscriptionAvailable) {
        Some(0) => "; Shared Subscription Available is 0",
        Some(_) => "; Shared Subscription Available is 1",
        None => "",
    };
    let mut members = [scene.client()?, scene.client()?];
    for member in &mut members {
        member.subscribed(&filter, Qos::AtLeastOnce)?;
    }
    let mut sender = scene.client()?;
    let window = (Qos::AtLeastOnce, scene.window(ORDER_WINDOW));
    sender.publish_numbers(&topic, SHARED_MESSAGES, window, &mut |_| Ok(()))?;
    sender.leave();
    let (mut counts, mut total) = ([0; 2], 0);
    for (member, count) in members.iter_mut().zip(&mut counts) {
        while total < SHARED_MESSAGES && member.message(scene.reach.patience / 2)?.is_some() {
            *count += 1;
            total += 1;
        }
        // A member that is given everything twice has one more than there should be.
        while member.message(QUIET)?.is_some() {
            *count += 1;
            total += 1;
        }
    }
    members.into_iter().for_each(super::client::Client::leave);
    let [one, other] = counts;
    let evidence = format!("{SHARED_MESSAGES} messages: {one} to one member, {other} to the other");
    Ok(Found::flag(total == SHARED_MESSAGES, evidence + said))
}

/// Tests whether a client is spared its own messages (section 3.8.3.1).
fn no_local(scene: &mut Scene) -> Result<Found, Trouble> {
    scene.needs_v5()?;
    let topic = scene.topic();
    let mut client = scene.client()?;
    let options = Options { no_local: true, ..Options::plain(Qos::AtLeastOnce) };
    client.subscribe(&topic, options, Properties::NONE)?;
    client.publish(&draft(&topic, b"own", Qos::AtLeastOnce))?;
    let came = scene.heard(&mut client, &topic)?;
    client.leave();
    let verb = if came.is_empty() { "did not come" } else { "came" };
    Ok(Found::flag(came.is_empty(), format!("its own message {verb} back")))
}

/// Tests whether messages name the subscription by which they come (section 3.3.2.3.8).
fn subscription_identifiers(scene: &mut Scene) -> Result<Found, Trouble> {
    scene.needs_v5()?;
    let topic = scene.topic();
    let mut client = scene.client()?;
    let mut section = Section::default();
    section.number(Id::SubscriptionIdentifier, 7);
    let options = Options::plain(Qos::AtLeastOnce);
    client.subscribe(&topic, options, section.properties())?;
    scene.publish(&topic, b"hello")?;
    let came = client.message(scene.reach.patience)?;
    client.leave();
    Ok(match came {
        None => Found::flag(false, "the message did not arrive"),
        Some(message) if message.has_subscription_id => Found::flag(true, "it came with its own"),
        Some(_) => Found::flag(false, "the message came without it"),
    })
}

/// Tests whether a retained message reaches a client that subscribes later (section 3.3.1.3).
fn retain(scene: &mut Scene, by_wildcard: bool) -> Result<Found, Trouble> {
    let topic = scene.topic();
    scene.retain(&format!("{topic}/kept"), b"kept")?;
    let mut client = scene.client()?;
    let filter = if by_wildcard { format!("{topic}/+") } else { format!("{topic}/kept") };
    client.subscribed(&filter, Qos::AtLeastOnce)?;
    let came = scene.heard(&mut client, &format!("{topic}/kept"))?;
    client.leave();
    Ok(match came.iter().find(|message| message.body == b"kept") {
        Some(message) if message.retain => Found::flag(true, "it came, marked as retained"),
        Some(_) => Found::flag(true, "it came without the mark RETAIN").with(Status::Less),
        None => Found::flag(false, "it did not come to a later subscriber"),
    })
}

/// Tests whether an empty message deletes the retained one.
fn retain_clear(scene: &mut Scene) -> Result<Found, Trouble> {
    let topic = scene.topic();
    scene.retain(&topic, b"kept")?;
    let mut before = scene.client()?;
    before.subscribed(&topic, Qos::AtLeastOnce)?;
    let was_kept = !scene.heard(&mut before, &topic)?.is_empty();
    before.leave();
    if !was_kept {
        return Err(Trouble::Inapplicable("nothing was retained".to_owned()));
    }
    scene.clear(&topic)?;
    let mut after = scene.client()?;
    after.subscribed(&topic, Qos::AtLeastOnce)?;
    let is_gone = scene.heard(&mut after, &topic)?.is_empty();
    after.leave();
    let verb = if is_gone { "did not come" } else { "still came" };
    Ok(Found::flag(is_gone, format!("after an empty message it {verb}")))
}

/// Enough for a broker to lose or swap some, and few enough for its queues.
const ORDER_MESSAGES: u64 = 300;

/// Messages after which their listener is looked at inside QUIC.
const KEEP_UP_EVERY: u64 = 10;

/// Unacknowledged messages on their way; HiveMQ CE takes 10.
const ORDER_WINDOW: u64 = 10;

const SHARED_MESSAGES: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_late_and_the_double_are_counted() {
        assert_eq!(line(&[0, 1, 2]), Line { distinct: 3, twice: 0, overtaken: 0 });
        assert_eq!(line(&[0, 2, 1, 1, 3]), Line { distinct: 4, twice: 1, overtaken: 1 });
        assert_eq!(line(&[5, 4, 3]), Line { distinct: 3, twice: 0, overtaken: 2 });
        assert_eq!(line(&[]), Line { distinct: 0, twice: 0, overtaken: 0 });
    }
}
