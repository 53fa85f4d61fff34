//! JetStream at the reference server: the streams, and the part of its API that clients need.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use weigh_model::Nanos;
use weigh_model::server::Record;

use super::api::{ACK, API, ConsumerConfig, CreateConsumer, Next, StreamConfig, number};
use super::codec::info::from_json;
use super::codec::{Publish, decimal, subject};
use super::consumer::{self, Consumer};
use super::router::Router;
use super::stream::{Stored, Stream};
use crate::broker_core::Turn;

/// All streams.
#[derive(Debug)]
pub(super) struct JetStream {
    streams: Vec<Stream>,
    /// When [`JetStream::wake`] is to be called.
    pub(super) due: Nanos,
}

/// An error of the API.
struct Refusal {
    code: u16,
    number: u16,
    description: String,
}

type Answer = Result<Value, Refusal>;

impl JetStream {
    pub(super) fn new() -> JetStream {
        JetStream { streams: Vec::new(), due: Nanos::NEVER }
    }

    /// Keeps a message in the stream that has its subject, and confirms it; false if there is none.
    pub(super) fn capture(
        &mut self,
        message: &Publish<'_>,
        router: &mut Router,
        turn: &mut Turn<'_>,
    ) -> bool {
        let Some(stream) = self.streams.iter_mut().find(|own| own.takes(message.subject)) else {
            return false;
        };
        let stored = stream.keep(message, turn.now);
        if let Stored::New(_) = stored
            && !message.reply.is_empty()
            && stream.config.storage != "memory"
        {
            turn.out.store(Record::Message { name: message.subject, body: message.body });
        }
        if !message.reply.is_empty() {
            let name = &stream.config.name;
            let body = match stored {
                Stored::New(number) => format!("{{\"stream\":\"{name}\", \"seq\":{number}}}"),
                Stored::Duplicate(number) => {
                    format!("{{\"stream\":\"{name}\", \"seq\":{number},\"duplicate\": true}}")
                }
            };
            say(message.reply, body.as_bytes(), router, turn);
        }
        let Stream { consumers, log, .. } = stream;
        for consumer in consumers {
            self.due = self.due.min(consumer.pump(log, router, turn));
        }
        true
    }

    /// A subscription was made: consumers that deliver there may begin.
    pub(super) fn subscribed(&mut self, to: &[u8], router: &mut Router, turn: &mut Turn<'_>) {
        for Stream { consumers, log, .. } in &mut self.streams {
            for consumer in consumers {
                if consumer.is_push()
                    && subject::matches(to, consumer.config.deliver_subject.as_bytes())
                {
                    self.due = self.due.min(consumer.pump(log, router, turn));
                }
            }
        }
    }

    /// Handles what time brings: redeliveries, and requests that are over.
    pub(super) fn wake(&mut self, router: &mut Router, turn: &mut Turn<'_>) {
        self.due = Nanos::NEVER;
        for stream in &mut self.streams {
            stream.trim(turn.now);
            let Stream { consumers, log, .. } = stream;
            for consumer in consumers {
                self.due = self.due.min(consumer.wake(log, router, turn));
            }
        }
    }

    /// An acknowledgement: `$JS.ACK.stream.consumer.deliveries.number.…`.
    pub(super) fn acknowledged(
        &mut self,
        message: &Publish<'_>,
        router: &mut Router,
        turn: &mut Turn<'_>,
    ) {
        let mut tokens = message.subject[ACK.len()..].split(|byte| *byte == b'.');
        let (Some(stream), Some(name)) = (tokens.next(), tokens.next()) else { return };
        let Some(number) = tokens.nth(1).and_then(decimal) else { return };
        let found = self.streams.iter_mut().find(|own| own.config.name.as_bytes() == stream);
        let Some(Stream { consumers, log, .. }) = found else { return };
        let found = consumers.iter_mut().find(|own| own.name.as_bytes() == name);
        let Some(consumer) = found else { return };
        consumer.acknowledged(number, consumer::verdict(message.body), turn.now);
        if !message.reply.is_empty() {
            say(message.reply, b"", router, turn);
        }
        self.due = self.due.min(consumer.pump(log, router, turn));
    }

    /// A request to the API: `$JS.API.…`.
    pub(super) fn request(
        &mut self,
        message: &Publish<'_>,
        router: &mut Router,
        turn: &mut Turn<'_>,
    ) {
        let Ok(what) = std::str::from_utf8(&message.subject[API.len()..]) else { return };
        let tokens: Vec<&str> = what.split('.').collect();
        if let ["CONSUMER", "MSG", "NEXT", stream, consumer] = *tokens {
            self.next(stream, consumer, message, router, turn);
            return;
        }
        let (kind, answer) = self.answer(&tokens, message.body);
        if message.reply.is_empty() {
            return;
        }
        let mut body = match answer {
            Ok(body) => body,
            Err(Refusal { code, number, description }) => {
                let error = json!({"code": code, "err_code": number, "description": description});
                json!({"error": error})
            }
        };
        body["type"] = json!(format!("io.nats.jetstream.api.v1.{kind}_response"));
        say(message.reply, body.to_string().as_bytes(), router, turn);
        if let ["CONSUMER", "CREATE" | "DURABLE", ..] = *tokens {
            self.pump_all(router, turn);
        }
    }

    fn pump_all(&mut self, router: &mut Router, turn: &mut Turn<'_>) {
        for Stream { consumers, log, .. } in &mut self.streams {
            for consumer in consumers {
                self.due = self.due.min(consumer.pump(log, router, turn));
            }
        }
    }

    fn next(
        &mut self,
        stream: &str,
        name: &str,
        message: &Publish<'_>,
        router: &mut Router,
        turn: &mut Turn<'_>,
    ) {
        let found = self.streams.iter_mut().find(|own| own.config.name == stream);
        let Some(Stream { consumers, log, .. }) = found else { return };
        let Some(consumer) = consumers.iter_mut().find(|own| own.name == name) else {
            consumer::answer(message.reply, (404, "Consumer Not Found"), &[], router, turn);
            return;
        };
        let next = match (message.body, decimal(message.body)) {
            (b"", _) => Next { batch: 1, ..Next::default() },
            (_, Some(batch)) => Next { batch, ..Next::default() },
            (json, None) => match from_json(json) {
                Ok(next) => next,
                Err(_) => {
                    consumer::answer(message.reply, (400, "Bad Request"), &[], router, turn);
                    return;
                }
            },
        };
        let due = consumer.request(&next, message.reply, log, router, turn);
        self.due = self.due.min(due);
    }

    fn answer(&mut self, tokens: &[&str], body: &[u8]) -> (&'static str, Answer) {
        match *tokens {
            ["INFO"] => ("account_info", Ok(self.account())),
            ["STREAM", "CREATE", name] => ("stream_create", self.create_stream(name, body)),
            ["STREAM", "UPDATE", name] => ("stream_update", self.update_stream(name, body)),
            ["STREAM", "INFO", name] => ("stream_info", self.stream(name).map(|own| info(own))),
            ["STREAM", "DELETE", name] => ("stream_delete", self.delete_stream(name)),
            ["STREAM", "PURGE", name] => (
                "stream_purge",
                self.stream(name).map(|own| json!({"success": true, "purged": own.purge()})),
            ),
            ["STREAM", "NAMES"] => ("stream_names", Ok(self.stream_names(body))),
            ["STREAM", "LIST"] => ("stream_list", Ok(self.stream_list())),
            ["CONSUMER", "CREATE", stream]
            | ["CONSUMER", "CREATE", stream, _]
            | ["CONSUMER", "DURABLE", "CREATE", stream, _] => {
                ("consumer_create", self.create_consumer(stream, body))
            }
            ["CONSUMER", "CREATE", stream, _, ..] => {
                ("consumer_create", self.create_consumer(stream, body))
            }
            ["CONSUMER", "INFO", stream, name] => {
                ("consumer_info", self.consumer_info(stream, name))
            }
            ["CONSUMER", "DELETE", stream, name] => {
                ("consumer_delete", self.delete_consumer(stream, name))
            }
            ["CONSUMER", "NAMES", stream] => ("consumer_names", self.consumer_names(stream)),
            _ => ("error", Err(bad_request("the reference server does not have this request"))),
        }
    }

    fn stream(&mut self, name: &str) -> Result<&mut Stream, Refusal> {
        self.streams.iter_mut().find(|own| own.config.name == name).ok_or_else(|| Refusal {
            code: 404,
            number: number::STREAM_NOT_FOUND,
            description: "stream not found".to_owned(),
        })
    }

    fn create_stream(&mut self, name: &str, body: &[u8]) -> Answer {
        let config: StreamConfig = read(body)?;
        if config.name != name || name.is_empty() {
            return Err(bad_request("the stream's name is not that of the subject"));
        }
        let config = StreamConfig {
            subjects: match config.subjects.is_empty() {
                true => vec![name.to_owned()],
                false => config.subjects,
            },
            // As nats-server: without a value it is two minutes.
            duplicate_window: match config.duplicate_window {
                0 => StreamConfig::default().duplicate_window,
                given => given,
            },
            ..config
        };
        if !config.subjects.iter().all(|filter| subject::is_valid(filter.as_bytes())) {
            return Err(bad_request("a subject of the stream is not valid"));
        }
        if let Some(known) = self.streams.iter().find(|own| own.config.name == name) {
            return match known.is(&config) {
                true => Ok(with(info(known), "did_create", json!(false))),
                false => Err(Refusal {
                    code: 400,
                    number: number::STREAM_NAME_IN_USE,
                    description: "stream name already in use with a different configuration".into(),
                }),
            };
        }
        let of_others = self.streams.iter().flat_map(|own| &own.config.subjects);
        let mut overlaps =
            of_others.flat_map(|other| config.subjects.iter().map(move |own| (own, other)));
        if overlaps.any(|(own, other)| subject::overlap(own.as_bytes(), other.as_bytes())) {
            return Err(Refusal {
                code: 400,
                number: number::SUBJECTS_OVERLAP,
                description: "subjects overlap with an existing stream".into(),
            });
        }
        let stream = Stream::new(config);
        let answer = with(info(&stream), "did_create", json!(true));
        self.streams.push(stream);
        Ok(answer)
    }

    fn update_stream(&mut self, name: &str, body: &[u8]) -> Answer {
        let config: StreamConfig = read(body)?;
        let stream = self.stream(name)?;
        stream.config = StreamConfig { name: name.to_owned(), ..config };
        Ok(info(stream))
    }

    fn delete_stream(&mut self, name: &str) -> Answer {
        self.stream(name)?;
        self.streams.retain(|own| own.config.name != name);
        Ok(json!({"success": true}))
    }

    fn stream_names(&self, body: &[u8]) -> Value {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let wanted = request["subject"].as_str().unwrap_or_default().as_bytes();
        let has = |own: &&Stream| {
            let mut filters = own.config.subjects.iter();
            wanted.is_empty() || filters.any(|own| subject::overlap(own.as_bytes(), wanted))
        };
        let names: Vec<&str> =
            self.streams.iter().filter(has).map(|own| own.config.name.as_str()).collect();
        json!({"total": names.len(), "offset": 0, "limit": 1024, "streams": names})
    }

    fn stream_list(&self) -> Value {
        let all: Vec<Value> = self.streams.iter().map(info).collect();
        json!({"total": all.len(), "offset": 0, "limit": 256, "streams": all})
    }

    fn account(&self) -> Value {
        let consumers: usize = self.streams.iter().map(|own| own.consumers.len()).sum();
        let bytes: u64 = self.streams.iter().map(|own| own.log.bytes()).sum();
        json!({
            "memory": bytes, "storage": 0, "streams": self.streams.len(), "consumers": consumers,
            "limits": {
                "max_memory": -1, "max_storage": -1, "max_streams": -1, "max_consumers": -1,
                "max_ack_pending": -1, "memory_max_stream_bytes": -1,
                "storage_max_stream_bytes": -1, "max_bytes_required": false,
            },
            "api": {"total": 0, "errors": 0},
        })
    }

    fn create_consumer(&mut self, stream: &str, body: &[u8]) -> Answer {
        let request: CreateConsumer = read(body)?;
        let mut config = request.config;
        let stream = self.stream(stream)?;
        let given = [&config.durable_name, &config.name];
        let name = given.into_iter().find(|name| !name.is_empty()).cloned();
        let name = name.unwrap_or_else(|| format!("ephemeral-{}", stream.consumers.len() + 1));
        config.name.clone_from(&name);
        if config.ack_policy != "none" && config.max_ack_pending == 0 {
            config.max_ack_pending = MAX_ACK_PENDING;
        }
        if let Some(known) = stream.consumers.iter_mut().find(|own| own.name == name) {
            if known.config.filter_subject != config.filter_subject
                || known.config.ack_policy != config.ack_policy
                || known.is_push() == config.deliver_subject.is_empty()
            {
                return Err(Refusal {
                    code: 400,
                    number: number::CONSUMER_CREATE,
                    description: "consumer already exists with another configuration".into(),
                });
            }
            known.config = config;
        } else {
            let made = Consumer::new(&stream.config.name, &name, config, &stream.log);
            stream.consumers.push(made);
        }
        let stream_name = stream.config.name.clone();
        self.consumer_info(&stream_name, &name)
    }

    fn consumer_info(&mut self, stream: &str, name: &str) -> Answer {
        let stream = self.stream(stream)?;
        let found = stream.consumers.iter().find(|own| own.name == name);
        let consumer = found.ok_or_else(consumer_not_found)?;
        let (delivered, unacknowledged, pending) = consumer.counts(&stream.log);
        let position = json!({"consumer_seq": delivered, "stream_seq": consumer.position()});
        Ok(json!({
            "stream_name": stream.config.name, "name": name, "created": CREATED,
            "config": config_of(&consumer.config), "delivered": position, "ack_floor": position,
            "num_ack_pending": unacknowledged, "num_redelivered": 0, "num_waiting": 0,
            "num_pending": pending, "push_bound": consumer.is_push(),
        }))
    }

    fn delete_consumer(&mut self, stream: &str, name: &str) -> Answer {
        let stream = self.stream(stream)?;
        let before = stream.consumers.len();
        stream.consumers.retain(|own| own.name != name);
        match stream.consumers.len() < before {
            true => Ok(json!({"success": true})),
            false => Err(consumer_not_found()),
        }
    }

    fn consumer_names(&mut self, stream: &str) -> Answer {
        let names: Vec<String> =
            self.stream(stream)?.consumers.iter().map(|own| own.name.clone()).collect();
        Ok(json!({"total": names.len(), "offset": 0, "limit": 1024, "consumers": names}))
    }
}

fn say(to: &[u8], body: &[u8], router: &mut Router, turn: &mut Turn<'_>) {
    router.send(to, &Publish { subject: to, reply: b"", headers: b"", body }, None, turn);
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    from_json(body).map_err(|error| Refusal {
        code: 400,
        number: number::INVALID_JSON,
        description: format!("invalid JSON: {error}"),
    })
}

fn info(stream: &Stream) -> Value {
    let log = &stream.log;
    let state = json!({
        "messages": log.len(), "bytes": log.bytes(), "first_seq": log.first(),
        "first_ts": CREATED, "last_seq": log.next() - 1, "last_ts": CREATED,
        "consumer_count": stream.consumers.len(),
    });
    json!({"config": stream.config, "created": CREATED, "state": state})
}

fn config_of(config: &ConsumerConfig) -> Value {
    serde_json::to_value(config).unwrap_or_default()
}

fn with(mut value: Value, key: &str, of: Value) -> Value {
    value[key] = of;
    value
}

fn bad_request(description: &str) -> Refusal {
    Refusal { code: 400, number: number::BAD_REQUEST, description: description.to_owned() }
}

fn consumer_not_found() -> Refusal {
    Refusal {
        code: 404,
        number: number::CONSUMER_NOT_FOUND,
        description: "consumer not found".to_owned(),
    }
}

/// Default of nats-server.
const MAX_ACK_PENDING: i64 = 1000;

/// The server has no clock: time is handed to it.
const CREATED: &str = "1970-01-01T00:00:00Z";
