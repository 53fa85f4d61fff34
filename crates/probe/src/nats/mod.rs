//! Probes a server of NATS: what it announces in INFO, what its core does, and what JetStream
//! grants. Subjects and streams have names that are used nowhere else, and streams are deleted.

mod jetstream;
mod line;
mod scene;

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use weigh_protocols::nats::codec::{Publish, headers};

use crate::abilities::{Ability, How};
use crate::finding::{Found, Question, ask_all, question};
use crate::mqtt::Bounds;
use crate::reach::{Reach, Trouble};
use crate::search::largest_passing;
use line::{Line, Manner, NO_RESPONDERS};
use scene::{BODY, Scene, message, new_subject};

/// Asks everything.
///
/// # Errors
/// If it is not a server of NATS, or refuses every client.
pub(crate) fn probe(
    reach: &Reach,
    bounds: Bounds,
    tell: &mut dyn FnMut(&Ability),
) -> Result<Vec<Ability>, Trouble> {
    let info = Line::open(reach, Manner::default())?.info;
    let mut scene =
        Scene { reach: reach.clone(), bounds, info, left: Vec::new(), found: Vec::new() };
    for questions in [QUESTIONS, jetstream::QUESTIONS, OF_NAMES] {
        ask_all(&mut scene, questions, tell);
    }
    tidy(&mut scene);
    Ok(scene.found)
}

const QUESTIONS: &[Question<Scene>] = &[
    question("version", version),
    question("payload_bytes", payload_bytes),
    question("tls", tls),
    question("publish", |scene| delivered(scene, "%", "")),
    question("wildcard_one_level", |scene| delivered(scene, "%.*", ".a")),
    question("wildcard_many_levels", |scene| delivered(scene, "%.>", ".a.b")),
    question("queue_groups", queue_groups),
    question("headers", has_headers),
    question("no_responders", no_responders),
    question("verbose", verbose),
    question("no_echo", no_echo),
];

/// Asked last: long names are dangerous.
const OF_NAMES: &[Question<Scene>] = &[question("subject_bytes", subject_bytes)];

/// Deletes what an interrupted question left.
fn tidy(scene: &mut Scene) {
    if scene.left.is_empty() {
        return;
    }
    // The time of the questions may be over; that of putting things away begins.
    scene.reach.end = scene.reach.end.max(Instant::now() + 2 * scene.reach.patience);
    scene.reach.stop = Arc::default();
    for stream in std::mem::take(&mut scene.left) {
        let _ = scene.line().and_then(|mut line| jetstream::delete(&mut line, &stream));
    }
}

fn version(scene: &mut Scene) -> Result<Found, Trouble> {
    let version = scene.info["version"].as_str().ok_or_else(|| missing("version"))?;
    Ok(Found::words(version, "version of INFO").by(How::Announced))
}

fn payload_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let most = scene.info["max_payload"].as_u64().ok_or_else(|| missing("max_payload"))?;
    Ok(Found::number(most, "bytes", How::Announced, "max_payload of INFO"))
}

fn missing(name: &str) -> Trouble {
    Trouble::Inapplicable(format!("INFO has no {name}"))
}

/// Tests whether clients may or must upgrade to TLS.
fn tls(scene: &mut Scene) -> Result<Found, Trouble> {
    let says = |name: &str| scene.info[name] == Value::Bool(true);
    let (is_required, is_available) = (says("tls_required"), says("tls_available"));
    let evidence = format!("tls_required {is_required}, tls_available {is_available} in INFO");
    Ok(Found::flag(is_required || is_available, evidence).by(How::Announced))
}

/// Tests whether a message arrives at a subscription; `%` stands for a new subject, below which
/// `end` is.
fn delivered(scene: &mut Scene, filter: &str, end: &str) -> Result<Found, Trouble> {
    let (mut line, root) = (scene.line()?, new_subject());
    line.subscribe(&filter.replace('%', &root), "", "1")?;
    line.publish(&message(&format!("{root}{end}"), BODY))?;
    let came = line.flush()?.messages;
    let is_it = came.len() == 1 && came[0].body == BODY;
    let evidence = format!("{} of 1 message came to a subscription", came.len());
    Ok(Found::flag(is_it, evidence))
}

/// Tests whether one member of a queue group gets each message.
fn queue_groups(scene: &mut Scene) -> Result<Found, Trouble> {
    let (mut line, subject) = (scene.line()?, new_subject());
    line.subscribe(&subject, "weigh-probe", "1")?;
    line.subscribe(&subject, "weigh-probe", "2")?;
    for _ in 0..MESSAGES {
        line.publish(&message(&subject, BODY))?;
    }
    let came = line.flush()?.messages.len();
    let evidence = format!("two members of a group got {came} copies of {MESSAGES} messages");
    Ok(Found::flag(came == MESSAGES, evidence))
}

/// Tests whether a message arrives with its headers (ADR-4).
fn has_headers(scene: &mut Scene) -> Result<Found, Trouble> {
    let announced = scene.info["headers"] == Value::Bool(true);
    if !announced {
        return Ok(Found::flag(false, "headers of INFO is not true").by(How::Announced));
    }
    let (mut line, subject) = (scene.line()?, new_subject());
    line.subscribe(&subject, "", "1")?;
    let block = b"NATS/1.0\r\nWeigh-Probe: 1\r\n\r\n";
    line.publish(&Publish { headers: block, ..message(&subject, BODY) })?;
    let came = line.flush()?.messages;
    let value = came.first().and_then(|own| headers::value(&own.headers, "Weigh-Probe"));
    let evidence = "INFO announces them; a message with one was published, and it";
    Ok(match value {
        Some(b"1") => Found::flag(true, format!("{evidence} came with the message")),
        _ => Found::flag(false, format!("{evidence} did not come")),
    })
}

/// Tests whether a request that nothing answers is answered with status 503.
fn no_responders(scene: &mut Scene) -> Result<Found, Trouble> {
    let (mut line, subject) = (scene.line()?, new_subject());
    let inbox = format!("{subject}.inbox");
    line.subscribe(&inbox, "", "1")?;
    line.publish(&Publish { reply: inbox.as_bytes(), ..message(&subject, BODY) })?;
    let came = line.flush()?.messages;
    let status = came.first().and_then(|own| headers::status(&own.headers));
    Ok(match status {
        Some((NO_RESPONDERS, _)) => Found::flag(true, "a request that nothing hears got 503"),
        _ => Found::flag(false, "a request that nothing hears got no answer"),
    })
}

/// Tests whether each line of a client that asks for it is answered with `+OK`.
fn verbose(scene: &mut Scene) -> Result<Found, Trouble> {
    let manner = Manner { is_verbose: true, ..Manner::default() };
    let mut line = Line::open(&scene.reach, manner)?;
    line.publish(&message(&new_subject(), BODY))?;
    let okays = line.flush()?.okays;
    let evidence = format!("a message of a verbose client was answered with {okays} of 1 +OK");
    Ok(Found::flag(okays >= 1, evidence))
}

/// Tests whether a client may ask that its own messages do not come back.
fn no_echo(scene: &mut Scene) -> Result<Found, Trouble> {
    let manner = Manner { has_no_echo: true, ..Manner::default() };
    let (mut line, subject) = (Line::open(&scene.reach, manner)?, new_subject());
    line.subscribe(&subject, "", "1")?;
    line.publish(&message(&subject, BODY))?;
    let came = line.flush()?.messages.len();
    let evidence = format!("with echo false {came} of 1 message came back to its sender");
    Ok(Found::flag(came == 0, evidence))
}

/// The longest subject that arrives: a control line has a limit.
fn subject_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let root = format!("{}.", new_subject());
    let low = root.len() as u64 + 1;
    let (edge, why) = largest_passing((low, scene.bounds.name_bytes.max(low)), |bytes| {
        let subject = format!("{root}{}", "x".repeat(bytes as usize - root.len()));
        let mut line = scene.line()?;
        line.subscribe(&subject, "", "1")?;
        line.publish(&message(&subject, BODY))?;
        match line.flush()?.messages.len() {
            1 => Ok(()),
            _ => Err(Trouble::Foreign("a message on it did not come".to_owned())),
        }
    })?;
    Ok(Found::edge(edge, "bytes", " bytes", why.as_ref()))
}

/// Messages to a queue group.
const MESSAGES: usize = 8;
