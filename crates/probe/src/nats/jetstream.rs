//! What JetStream grants: its limits, kinds of storage, and what a confirmation means. Each
//! question has a stream of its own, which is deleted.

use serde_json::{Value, json};
use weigh_model::Durability;
use weigh_protocols::nats::codec::Publish;

use super::line::Line;
use super::scene::{BODY, Scene, message, new_subject};
use crate::abilities::{How, Status};
use crate::finding::{Found, Question, question};
use crate::reach::{Trouble, unused_name};

pub(super) const QUESTIONS: &[Question<Scene>] = &[
    question("jetstream", jetstream),
    question("jetstream_memory_bytes", |scene| limit(scene, "max_memory", "bytes")),
    question("jetstream_file_bytes", |scene| limit(scene, "max_storage", "bytes")),
    question("streams", |scene| limit(scene, "max_streams", "streams")),
    question("storage_file", |scene| storage(scene, "file")),
    question("storage_memory", |scene| storage(scene, "memory")),
    question("deduplication", deduplication),
    question("pull_consumers", pull_consumers),
    question("compression", compression),
    question("replicas", replicas),
    question("durability", durability),
];

/// A stream, and the connection on which it was made.
struct Made {
    line: Line,
    name: String,
    /// Subject of its messages.
    subject: String,
    /// The server's answer.
    answer: Value,
}

impl Scene {
    /// Creates a stream with these settings.
    fn stream(&mut self, settings: &Value) -> Result<Made, Trouble> {
        let (mut line, subject) = (self.line()?, new_subject());
        let name = format!("weigh-probe-{}", unused_name());
        let mut config = json!({
            "name": name, "subjects": [&subject], "retention": "limits", "max_consumers": -1,
            "max_msgs": -1, "max_bytes": -1, "max_age": LIFE_NS, "discard": "old",
            "storage": "file", "num_replicas": 1,
        });
        for (key, value) in settings.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        self.left.push(name.clone());
        match request(&mut line, &format!("STREAM.CREATE.{name}"), &config) {
            Ok(answer) => Ok(Made { line, name, subject, answer }),
            Err(refused @ Trouble::Refused(_)) => {
                self.left.pop();
                Err(refused)
            }
            Err(other) => Err(other),
        }
    }

    /// Deletes a stream.
    fn done(&mut self, mut made: Made) -> Result<(), Trouble> {
        delete(&mut made.line, &made.name)?;
        self.left.retain(|own| *own != made.name);
        Ok(())
    }
}

impl Made {
    /// Publishes a message, and waits until the stream has confirmed it.
    fn publish(&mut self, headers: &[u8]) -> Result<Value, Trouble> {
        let answer = self.line.ask(&Publish { headers, ..message(&self.subject, BODY) })?;
        read(&answer.body)
    }
}

/// Deletes a stream.
pub(super) fn delete(line: &mut Line, name: &str) -> Result<(), Trouble> {
    request(line, &format!("STREAM.DELETE.{name}"), &Value::Null).map(drop)
}

/// A request to the API; an error in its answer is a refusal.
fn request(line: &mut Line, what: &str, body: &Value) -> Result<Value, Trouble> {
    let subject = format!("$JS.API.{what}");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    read(&line.ask(&message(&subject, body.as_bytes()))?.body)
}

fn read(body: &[u8]) -> Result<Value, Trouble> {
    let answer: Value = serde_json::from_slice(body)
        .map_err(|error| Trouble::Foreign(format!("the answer is not JSON: {error}")))?;
    match &answer["error"] {
        Value::Null => Ok(answer),
        error => {
            let words = error["description"].as_str().unwrap_or("an error without words");
            let number = error["err_code"].as_u64().or(error["code"].as_u64()).unwrap_or(0);
            Err(Trouble::Refused(format!("{words} ({number})")))
        }
    }
}

fn account(scene: &Scene) -> Result<Value, Trouble> {
    request(&mut scene.line()?, "INFO", &Value::Null)
}

/// Tests whether this account has JetStream.
fn jetstream(scene: &mut Scene) -> Result<Found, Trouble> {
    let announced = scene.info["jetstream"] == Value::Bool(true);
    let words = if announced { "INFO announces it" } else { "INFO does not announce it" };
    Ok(match account(scene) {
        Ok(_) => Found::flag(true, format!("{words}; $JS.API.INFO was answered")),
        Err(Trouble::Refused(text)) => {
            Found::flag(false, format!("{words}; $JS.API.INFO: {text}")).with(Status::Refused)
        }
        Err(Trouble::Silent(_)) => {
            Found::flag(false, format!("{words}; $JS.API.INFO was not answered"))
        }
        Err(other) => return Err(other),
    })
}

/// Fails unless there is JetStream.
fn needs_jetstream(scene: &Scene) -> Result<(), Trouble> {
    let own = scene.found.iter().find(|own| own.name == "jetstream");
    match own.is_some_and(|own| own.status == Status::Yes) {
        true => Ok(()),
        false => Err(Trouble::Inapplicable("there is no JetStream".to_owned())),
    }
}

/// A limit of the account; below 0 there is none.
fn limit(scene: &mut Scene, name: &str, unit: &'static str) -> Result<Found, Trouble> {
    needs_jetstream(scene)?;
    let account = account(scene)?;
    let most = account["limits"][name].as_i64();
    let most = most.ok_or_else(|| Trouble::Inapplicable(format!("its limits have no {name}")))?;
    let evidence = format!("{name} of the account is {most}");
    Ok(match u64::try_from(most) {
        Ok(most) => Found::number(most, unit, How::Announced, evidence),
        Err(_) => Found::words("no limit", evidence).by(How::Announced),
    })
}

/// Tests whether a stream of this storage confirms a message.
fn storage(scene: &mut Scene, kind: &str) -> Result<Found, Trouble> {
    needs_jetstream(scene)?;
    let mut made = scene.stream(&json!({"storage": kind}))?;
    let confirmed = made.publish(b"")?;
    let granted = made.answer["config"]["storage"].as_str().unwrap_or("none").to_owned();
    let number = confirmed["seq"].as_u64();
    scene.done(made)?;
    let evidence = format!("a stream of storage {granted} was created, and a message confirmed");
    Ok(Found::flag(granted == kind && number == Some(1), evidence))
}

/// Tests whether a message with a known Nats-Msg-Id is confirmed as a duplicate.
fn deduplication(scene: &mut Scene) -> Result<Found, Trouble> {
    needs_jetstream(scene)?;
    let mut made = scene.stream(&json!({}))?;
    let headers = b"NATS/1.0\r\nNats-Msg-Id: 1\r\n\r\n";
    made.publish(headers)?;
    let second = made.publish(headers)?;
    scene.done(made)?;
    let is_known = second["duplicate"] == Value::Bool(true);
    let words = if is_known { "as a duplicate" } else { "as a new message" };
    Ok(Found::flag(is_known, format!("a message with the same Nats-Msg-Id was confirmed {words}")))
}

/// Tests whether a consumer can ask for a message.
fn pull_consumers(scene: &mut Scene) -> Result<Found, Trouble> {
    needs_jetstream(scene)?;
    let mut made = scene.stream(&json!({}))?;
    made.publish(b"")?;
    let consumer = json!({
        "stream_name": made.name,
        "config": {
            "durable_name": "weigh", "ack_policy": "explicit", "deliver_policy": "all",
            "replay_policy": "instant", "max_deliver": -1,
        },
    });
    request(&mut made.line, &format!("CONSUMER.DURABLE.CREATE.{}.weigh", made.name), &consumer)?;
    let next = format!("$JS.API.CONSUMER.MSG.NEXT.{}.weigh", made.name);
    let came = made.line.ask(&message(&next, b"1"))?;
    scene.done(made)?;
    let is_it = came.body == BODY;
    let words = if is_it { "got the message" } else { "got something else" };
    Ok(Found::flag(is_it, format!("a request for the next message {words}")))
}

/// Tests whether files of a stream are compressed (from 2.10 on); servers before ignore the field.
fn compression(scene: &mut Scene) -> Result<Found, Trouble> {
    needs_jetstream(scene)?;
    let made = scene.stream(&json!({"compression": "s2"}))?;
    let granted = made.answer["config"]["compression"].as_str().unwrap_or("none").to_owned();
    scene.done(made)?;
    let evidence = format!("compression s2 was asked for, and {granted} is in the answer");
    Ok(Found::flag(granted == "s2", evidence))
}

/// Tests whether a stream can be on three servers; a number without servers is none.
fn replicas(scene: &mut Scene) -> Result<Found, Trouble> {
    needs_jetstream(scene)?;
    let made = scene.stream(&json!({"num_replicas": 3}))?;
    let others = made.answer["cluster"]["replicas"].as_array().map_or(0, Vec::len);
    scene.done(made)?;
    let evidence = format!("a stream of 3 replicas was created, on {others} further servers");
    Ok(Found::flag(others == 2, evidence))
}

/// What the confirmation of a stream of one replica means. A file counts only if the account's
/// bytes in files grow by the message; when files are synced (`sync_interval`) is not announced.
fn durability(scene: &mut Scene) -> Result<Found, Trouble> {
    needs_jetstream(scene)?;
    let mut made = match scene.stream(&json!({"storage": "file"})) {
        Ok(made) => made,
        Err(Trouble::Refused(text)) => {
            let own = scene.found.iter().find(|own| own.name == "storage_memory");
            if own.is_none_or(|own| own.status != Status::Yes) {
                return Err(Trouble::Refused(text));
            }
            let evidence = format!("streams are in memory; of storage file: {text}");
            return Ok(Found::words(Durability::Memory.to_string(), evidence));
        }
        Err(other) => return Err(other),
    };
    let before = account(scene)?;
    made.publish(b"")?;
    let after = account(scene)?;
    let state = request(&mut made.line, &format!("STREAM.INFO.{}", made.name), &Value::Null)?;
    scene.done(made)?;
    let bytes = state["state"]["bytes"].as_u64().unwrap_or(0);
    let grown = |name: &str| {
        let [before, after] = [&before, &after].map(|own| own[name].as_u64().unwrap_or(0));
        after.saturating_sub(before)
    };
    let (file, memory) = (grown("storage"), grown("memory"));
    if bytes == 0 || file < bytes {
        return Err(Trouble::Inapplicable(format!(
            "a stream of storage file has {bytes} bytes, and the account counts {file} more in \
             files and {memory} more in memory"
        )));
    }
    let evidence = format!(
        "a confirmed message of a stream of storage file has {bytes} bytes, and the account counts \
         {file} more in files; when they are synced is not announced"
    );
    Ok(Found::words(Durability::PageCache.to_string(), evidence))
}

/// Messages of a stream that could not be deleted do not stay.
const LIFE_NS: u64 = 60_000_000_000;
