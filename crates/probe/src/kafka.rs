//! Probes a broker of Kafka: what it announces (ApiVersions, Metadata), what it does when it is
//! asked, and the settings that it shows (DescribeConfigs). No topic is made.

use weigh_model::units::Nanos;
use weigh_model::{Durability, Protocol};
use weigh_protocols::kafka::Kafka;
use weigh_protocols::kafka::codec::answers::{self, Broker, Versions};
use weigh_protocols::kafka::codec::configs::{
    Config, DESCRIBE_CONFIGS, Described, put_describe_broker, read_describe,
};
use weigh_protocols::kafka::codec::frame::{APIS, Api, CREATE_TOPICS, INIT_PRODUCER_ID};
use weigh_protocols::kafka::codec::{Flaw, frame, groups, requests};

use crate::abilities::{Ability, How, Status};
use crate::exchange::Exchange;
use crate::finding::{Asking, Found, Question, ask_all, question};
use crate::mqtt::Bounds;
use crate::reach::{Reach, Trouble, unused_name};

/// Asks everything.
///
/// # Errors
/// If it is not a broker of Kafka.
pub(crate) fn probe(
    reach: &Reach,
    _bounds: Bounds,
    tell: &mut dyn FnMut(&Ability),
) -> Result<Vec<Ability>, Trouble> {
    let mut scene = Scene {
        reach: reach.clone(),
        versions: Vec::new(),
        brokers: Vec::new(),
        configs: None,
        found: Vec::new(),
    };
    let versions = scene.exchange(requests::put_api_versions)?;
    let (error, versions) = answers::read_api_versions(&versions).map_err(foreign)?;
    if error != 0 {
        return Err(Trouble::Refused(format!("ApiVersions: {}", name(error))));
    }
    scene.versions = versions;
    ask_all(&mut scene, QUESTIONS, tell);
    Ok(scene.found)
}

const QUESTIONS: &[Question<Scene>] = &[
    question("apis", apis),
    question("versions", versions),
    question("brokers", brokers),
    question("topic_creation", topic_creation),
    question("idempotent_producers", idempotent_producers),
    question("consumer_groups", consumer_groups),
    question("topic_auto_creation", topic_auto_creation),
    question("batch_bytes", |scene| number(scene, "message.max.bytes", "bytes")),
    question("partitions", |scene| number(scene, "num.partitions", "partitions")),
    question("replicas", |scene| number(scene, REPLICAS, "replicas")),
    question("in_sync_replicas", |scene| number(scene, IN_SYNC, "replicas")),
    question("durability", durability),
];

/// A broker that is asked.
struct Scene {
    reach: Reach,
    versions: Vec<Versions>,
    brokers: Vec<Broker>,
    /// Its settings, once they were asked for.
    configs: Option<Result<Vec<Config>, Trouble>>,
    found: Vec<Ability>,
}

impl Asking for Scene {
    fn found(&mut self) -> &mut Vec<Ability> {
        &mut self.found
    }

    fn is_over(&self) -> bool {
        self.reach.until().is_err()
    }
}

impl Scene {
    /// One request on a connection of its own; returns the fields of its answer.
    fn exchange(&self, put: impl FnOnce(&mut Vec<u8>, i32)) -> Result<Vec<u8>, Trouble> {
        let mut request = Vec::new();
        put(&mut request, CORRELATION);
        Exchange::open(&self.reach)?.ask(&request, |input| {
            let Some((content, bytes)) =
                frame::read_frame(input, ANSWER_BYTES_MAX).map_err(foreign)?
            else {
                return Ok(None);
            };
            let (correlation, fields) = answers::read_head(content).map_err(foreign)?;
            match correlation {
                CORRELATION => Ok(Some((fields.to_vec(), bytes))),
                other => Err(foreign(Flaw::Correlation(other))),
            }
        })
    }

    fn speaks(&self, api: Api) -> bool {
        let has = |own: &&Versions| own.key == api.key;
        let own = self.versions.iter().find(has);
        own.is_some_and(|own| (own.lowest..=own.highest).contains(&api.version))
    }

    /// Fails unless the broker has the version of an API that is spoken here.
    fn needs(&self, api: Api) -> Result<(), Trouble> {
        match self.speaks(api) {
            true => Ok(()),
            false => {
                let why = format!("it does not announce {} in version {}", api.name, api.version);
                Err(Trouble::Inapplicable(why))
            }
        }
    }

    /// A setting of the broker.
    fn config(&mut self, name: &str) -> Result<Option<String>, Trouble> {
        if self.configs.is_none() {
            self.configs = Some(self.describe());
        }
        let configs = match &self.configs {
            Some(Ok(configs)) => configs,
            Some(Err(trouble)) => return Err(trouble.clone()),
            None => return Ok(None),
        };
        Ok(configs.iter().find(|own| own.name == name).and_then(|own| own.value.clone()))
    }

    /// Which number the broker has that answers here is not known, and the others refuse.
    fn describe(&self) -> Result<Vec<Config>, Trouble> {
        self.needs(DESCRIBE_CONFIGS)?;
        let mut last = Described::default();
        for broker in self.brokers.iter().take(BROKERS_MAX) {
            let fields = self.exchange(|out, number| {
                put_describe_broker(out, number, broker.id, CONFIGS);
            })?;
            last = read_describe(&fields).map_err(foreign)?;
            if last.error == 0 {
                return Ok(last.configs);
            }
        }
        let (name, words) = (name(last.error), last.words);
        Err(Trouble::Refused(format!("DescribeConfigs: {name} {words}").trim_end().to_owned()))
    }
}

/// The number of APIs that it announces.
fn apis(scene: &mut Scene) -> Result<Found, Trouble> {
    let many = scene.versions.len() as u64;
    Ok(Found::number(many, "APIs", How::Announced, "ApiVersions lists them"))
}

/// Tests whether it speaks the versions of Weighbridge's client.
fn versions(scene: &mut Scene) -> Result<Found, Trouble> {
    let missing: Vec<String> = APIS
        .into_iter()
        .filter(|api| !scene.speaks(*api))
        .map(|api| format!("{} {}", api.name, api.version))
        .collect();
    let evidence = match &missing[..] {
        [] => "it announces the version of every request that Weighbridge sends".to_owned(),
        _ => format!("it does not announce {}", missing.join(", ")),
    };
    Ok(Found::flag(missing.is_empty(), evidence).by(How::Announced))
}

fn brokers(scene: &mut Scene) -> Result<Found, Trouble> {
    let fields = scene.exchange(requests::put_cluster)?;
    scene.brokers = answers::read_metadata(&fields).map_err(foreign)?.brokers;
    let places = scene.brokers.iter().map(|own| format!("{}:{}", own.host, own.port));
    let places = places.collect::<Vec<String>>().join(", ");
    let many = scene.brokers.len() as u64;
    Ok(Found::number(many, "brokers", How::Announced, format!("Metadata lists {places}")))
}

/// Tests whether this user may create a topic.
fn topic_creation(scene: &mut Scene) -> Result<Found, Trouble> {
    scene.needs(CREATE_TOPICS)?;
    let topic = format!("weigh-probe-{}", unused_name());
    let fields = scene.exchange(|out, number| {
        requests::put_validate_topic(out, number, topic.as_bytes());
    })?;
    let (error, words) = answers::read_create_topic(&fields).map_err(foreign)?;
    Ok(by_error(error, "CreateTopics, only validated,", &words))
}

fn idempotent_producers(scene: &mut Scene) -> Result<Found, Trouble> {
    scene.needs(INIT_PRODUCER_ID)?;
    let fields = scene.exchange(requests::put_init_producer_id)?;
    let (error, ..) = answers::read_init_producer_id(&fields).map_err(foreign)?;
    Ok(by_error(error, "InitProducerId", ""))
}

fn consumer_groups(scene: &mut Scene) -> Result<Found, Trouble> {
    scene.needs(frame::FIND_COORDINATOR)?;
    let group = format!("weigh-probe-{}", unused_name());
    let fields = scene.exchange(|out, number| {
        groups::put_find_coordinator(out, number, group.as_bytes());
    })?;
    let found = groups::read_find_coordinator(&fields).map_err(foreign)?;
    let place = format!("{}:{}", found.host, found.port);
    Ok(by_error(found.error, "FindCoordinator", if found.error == 0 { &place } else { "" }))
}

fn by_error(error: i16, request: &str, words: &str) -> Found {
    let answer = if error == 0 { "no error".to_owned() } else { name(error) };
    let evidence = format!("{request} was answered with {answer} {words}");
    let found = Found::flag(error == 0, evidence.trim_end());
    if error == 0 { found } else { found.with(Status::Refused) }
}

fn topic_auto_creation(scene: &mut Scene) -> Result<Found, Trouble> {
    let key = "auto.create.topics.enable";
    let value = scene.config(key)?.ok_or_else(|| missing(key))?;
    Ok(Found::flag(value == "true", format!("{key} is {value}")).by(How::Announced))
}

fn number(scene: &mut Scene, key: &str, unit: &'static str) -> Result<Found, Trouble> {
    let value = scene.config(key)?.ok_or_else(|| missing(key))?;
    let number = value.parse().map_err(|_| missing(key))?;
    Ok(Found::number(number, unit, How::Announced, format!("{key} is {value}")))
}

/// What a confirmation means for a topic with one replica, as `kafka.replicas` makes it by default.
/// Further replicas do the same each.
fn durability(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut setting = |key: &str| Ok(scene.config(key)?.unwrap_or_else(|| "none".to_owned()));
    let (messages, interval) = (setting(FLUSH_MESSAGES)?, setting(FLUSH_MS)?);
    let known = known(&messages, &interval);
    let evidence =
        format!("of each replica: {FLUSH_MESSAGES} is {messages}, {FLUSH_MS} {interval}");
    Ok(Found::words(known.to_string(), evidence).by(How::Announced))
}

fn known(messages: &str, interval: &str) -> Durability {
    match (messages, interval.parse::<u64>()) {
        ("1", _) => Durability::Synced,
        // What was never set is as long as a number can be.
        (_, Ok(time)) if (1..DAY_MS).contains(&time) => {
            Durability::SyncedEvery(Nanos(time * 1_000_000))
        }
        _ => Durability::PageCache,
    }
}

fn missing(key: &str) -> Trouble {
    Trouble::Inapplicable(format!("the broker does not show {key}"))
}

fn name(error: i16) -> String {
    Kafka.error(error as u16).name
}

fn foreign(flaw: Flaw) -> Trouble {
    Trouble::Foreign(flaw.to_string())
}

const REPLICAS: &str = "default.replication.factor";
const IN_SYNC: &str = "min.insync.replicas";
const FLUSH_MESSAGES: &str = "log.flush.interval.messages";
const FLUSH_MS: &str = "log.flush.interval.ms";

/// Settings that are asked for.
const CONFIGS: &[&str] = &[
    "auto.create.topics.enable",
    "message.max.bytes",
    "num.partitions",
    REPLICAS,
    IN_SYNC,
    FLUSH_MESSAGES,
    FLUSH_MS,
];

/// Number of the only request of a connection.
const CORRELATION: i32 = 7;

const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Brokers that are asked for the settings of the one that answers here.
const BROKERS_MAX: usize = 9;

/// An interval that is longer is none.
const DAY_MS: u64 = 86_400_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_is_that_of_the_settings() {
        let never = i64::MAX.to_string();
        for (messages, interval, due) in [
            (&*never, "none", "page-cache"),
            ("1", "none", "fsync"),
            ("1", "500", "fsync"),
            (&*never, "500", "fsync=500ms"),
            (&*never, &*never, "page-cache"),
        ] {
            assert_eq!(known(messages, interval).to_string(), due);
        }
    }
}
