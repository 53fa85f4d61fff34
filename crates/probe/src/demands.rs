//! Compares what a trial asks of its target with what the target can do: a plan that cannot succeed
//! is refused before anything starts.

use weigh_model::protocol::Invalid;
use weigh_model::{Pattern, Topology, Trial};

use crate::abilities::{Abilities, Status};

/// Returns the first thing that the trial asks and the target cannot do, at the plan key that asks
/// for it. Abilities of another protocol are not used.
pub fn refusal(abilities: &Abilities, trial: &Trial) -> Option<Invalid> {
    let rules = match trial.protocol.as_str() {
        own if own != abilities.protocol => return None,
        "mqtt" => MQTT,
        "http1" => HTTP1,
        "http2" => HTTP2,
        "grpc" => GRPC,
        "coap" => COAP,
        "http3" => HTTP3,
        "amqp1" => AMQP1,
        "amqp" => AMQP,
        "nats" => NATS,
        "websocket" => WEBSOCKET,
        "sse" => SSE,
        "kafka" => KAFKA,
        "redis" => REDIS,
        _ => return None,
    };
    rules.iter().find_map(|rule| rule(abilities, trial))
}

type Rule = fn(&Abilities, &Trial) -> Option<Invalid>;

const MQTT: &[Rule] = &[
    |own, trial| {
        let version = format!("version_{}", trial.settings.text("version").replace('.', "_"));
        let other = if version == "version_5" { "3.1.1" } else { "5" };
        lacks(own, &version, "mqtt.version", &format!("choose {other}"))
    },
    qos,
    |own, trial| asked(trial, "retain", "true", "leave it out").and_then(missing(own, "retain")),
    |own, trial| {
        let asked = trial.load.delivers() && trial.load.topology == Topology::Shared;
        let fix = "give fan-in, fan-out or pairs";
        asked.then(|| lacks(own, "shared_subscriptions", "load.topology", fix)).flatten()
    },
    |own, trial| {
        asked(trial, "topic_alias", "true", "leave it out")
            .and_then(missing(own, "topic_alias_maximum"))
    },
    |own, trial| asked(trial, "clean", "false", "leave it out").and_then(missing(own, "session")),
    |own, trial| {
        let is_asked = trial.settings.duration("message_expiry").0 > 0;
        let asked = is_asked.then(|| ("mqtt.message_expiry".to_owned(), "leave it out"));
        asked.and_then(missing(own, "message_expiry"))
    },
    |own, trial| {
        let is_asked = !trial.settings.text("will_topic").is_empty();
        let asked = is_asked.then(|| ("mqtt.will_topic".to_owned(), "leave it out"));
        asked.and_then(missing(own, "will"))
    },
    |own, trial| {
        let levels = trial.settings.text("topic").split('/').count() as u64;
        exceeds(own, "topic_levels", levels, "mqtt.topic")
    },
    |own, trial| size(own, trial, "payload_bytes"),
];

const HTTP1: &[Rule] = &[
    |own, trial| {
        let method = trial.settings.text("method");
        let name = format!("method_{}", method.to_lowercase());
        let is_refused = own.get(&name)?.status == Status::Refused;
        is_refused.then(|| lacks(own, &name, "http1.method", "choose another")).flatten()
    },
    |own, trial| {
        asked(trial, "keep_alive", "true", "give false").and_then(missing(own, "keep_alive"))
    },
    |own, trial| {
        let is_asked = trial.settings.integer("pipeline") > 1;
        let asked = is_asked.then(|| ("http1.pipeline".to_owned(), "leave it out"));
        asked.and_then(missing(own, "pipelining"))
    },
    |own, trial| {
        asked(trial, "chunked", "true", "leave it out").and_then(missing(own, "chunked_request"))
    },
    |own, trial| {
        asked(trial, "expect", "true", "leave it out").and_then(missing(own, "continue_100"))
    },
    |own, trial| size(own, trial, "body_bytes"),
];

const HTTP2: &[Rule] = &[|own, trial| size(own, trial, "body_bytes")];

const GRPC: &[Rule] = &[
    |own, _| lacks(own, "service", "target", "give a server of proto/store.proto"),
    |own, trial| size(own, trial, "message_bytes"),
];

const COAP: &[Rule] = &[
    |own, trial| {
        let asked = asked(trial, "method", "POST", "choose PUT")?;
        lacks(own, "method_post", &asked.0, asked.1)
    },
    |own, trial| {
        let asked = asked(trial, "method", "PUT", "choose POST")?;
        lacks(own, "method_put", &asked.0, asked.1)
    },
    |own, trial| {
        let observes = trial.load.delivers() && trial.load.polling().is_none();
        observes.then(|| lacks(own, "observe", "load.pattern", "choose publish")).flatten()
    },
    |own, trial| {
        asked(trial, "no_response", "true", "leave it out").and_then(missing(own, "no_response"))
    },
    |own, trial| size(own, trial, "body_bytes"),
];

const HTTP3: &[Rule] = &[|own, trial| size(own, trial, "body_bytes")];

const AMQP1: &[Rule] = &[|own, trial| announced(own, trial, "message_bytes")];

const AMQP: &[Rule] = &[
    |own, trial| {
        asked(trial, "queue_type", "quorum", "type classic").and_then(missing(own, "quorum_queues"))
    },
    |own, trial| {
        asked(trial, "confirms", "true", "type false").and_then(missing(own, "publisher_confirms"))
    },
    |own, trial| {
        asked(trial, "durable", "true", "type false").and_then(missing(own, "durable_queues"))
    },
    |own, trial| {
        let is_asked = trial.settings.integer("max_length") > 0;
        let asked = is_asked.then(|| ("amqp.max_length".to_owned(), "leave it out"));
        asked.and_then(missing(own, "max_length"))
    },
    |own, trial| {
        let asked = asked(trial, "overflow", "reject-publish", "type drop-head")?;
        lacks(own, "reject_publish", &asked.0, asked.1)
    },
    |own, trial| size(own, trial, "message_bytes"),
];

const NATS: &[Rule] = &[
    |own, trial| {
        let fix = "type none, ok or flush";
        asked(trial, "confirm", "jetstream", fix).and_then(missing(own, "jetstream"))
    },
    |own, trial| {
        let name = format!("storage_{}", trial.settings.text("storage"));
        let is_asked = trial.settings.text("confirm") == "jetstream";
        is_asked.then(|| lacks(own, &name, "nats.storage", "choose the other one")).flatten()
    },
    |own, trial| {
        asked(trial, "consume", "pull", "type push").and_then(missing(own, "pull_consumers"))
    },
    |own, trial| {
        asked(trial, "message_id", "true", "leave it out").and_then(missing(own, "deduplication"))
    },
    |own, trial| {
        let asked = trial.load.delivers() && trial.load.topology == Topology::Shared;
        let fix = "give fan-in, fan-out or pairs";
        asked.then(|| lacks(own, "queue_groups", "load.topology", fix)).flatten()
    },
    |own, trial| announced(own, trial, "payload_bytes"),
];

const WEBSOCKET: &[Rule] = &[
    |own, trial| asked(trial, "kind", "binary", "type text").and_then(missing(own, "binary")),
    |own, trial| asked(trial, "kind", "text", "type binary").and_then(missing(own, "text")),
    |own, trial| asked(trial, "confirm", "pong", "type reply").and_then(missing(own, "ping")),
    |own, trial| {
        let bytes = trial.settings.integer("fragment_bytes");
        let is_asked = bytes > 0 && trial.load.size.is_some_and(|size| size.0 > bytes);
        let asked = is_asked.then(|| ("websocket.fragment_bytes".to_owned(), "leave it out"));
        asked.and_then(missing(own, "fragments"))
    },
    |own, trial| {
        let is_asked = trial.settings.text("subprotocol").is_empty();
        let fix = "name one that the server takes";
        let asked = is_asked.then(|| ("websocket.subprotocol".to_owned(), fix));
        asked.and_then(missing(own, "without_subprotocol"))
    },
    |own, trial| size(own, trial, "message_bytes"),
];

const SSE: &[Rule] = &[
    |own, trial| {
        // With a path of their own, producers post elsewhere.
        let is_asked = trial.settings.text("publish_path").is_empty();
        let is_asked = is_asked && trial.load.pattern != Pattern::Hold;
        is_asked.then(|| lacks(own, "publish", "target", "name the path that takes POST")).flatten()
    },
    |own, trial| size(own, trial, "event_bytes"),
];

const KAFKA: &[Rule] = &[
    |own, trial| {
        let asked = asked(trial, "acks", "idempotent", "type all")?;
        lacks(own, "idempotent_producers", &asked.0, asked.1)
    },
    |own, trial| {
        let is_asked = !trial.settings.text("group").is_empty();
        let asked = is_asked.then(|| ("kafka.group".to_owned(), "leave it out"));
        asked.and_then(missing(own, "consumer_groups"))
    },
    |own, trial| {
        asked(trial, "create", "true", "type false, and name a topic that is there")
            .and_then(missing(own, "topic_creation"))
    },
    |own, trial| announced(own, trial, "batch_bytes"),
];

const REDIS: &[Rule] = &[
    |own, trial| {
        asked(trial, "command", "xadd", "type publish or set").and_then(missing(own, "streams"))
    },
    |own, trial| asked(trial, "resp", "3", "type 2").and_then(missing(own, "resp3")),
    |own, trial| {
        let is_read = trial.load.delivers() && trial.settings.text("command") == "xadd";
        let asked = asked(trial, "read", "group", "type plain").filter(|_| is_read);
        asked.and_then(missing(own, "consumer_groups"))
    },
    |own, trial| size(own, trial, "value_bytes"),
];

/// The highest QoS that arrives as it was published.
fn qos(own: &Abilities, trial: &Trial) -> Option<Invalid> {
    let most = own.number("qos_max")?;
    let problem = format!("{} grants at most {most} ({})", own.name(), own.origin());
    let is_beyond = trial.settings.integer("qos") > most;
    is_beyond.then(|| Invalid::new("mqtt.qos", problem, format!("choose {most}")))
}

/// The plan key of a setting that has this value, and the fix.
fn asked(
    trial: &Trial,
    key: &str,
    value: &str,
    fix: &'static str,
) -> Option<(String, &'static str)> {
    let is_so = trial.settings.text(key) == value;
    is_so.then(|| (format!("{}.{key}", trial.protocol), fix))
}

/// Refuses what was asked for where this ability is missing.
fn missing<'o>(
    own: &'o Abilities,
    name: &'o str,
) -> impl Fn((String, &'static str)) -> Option<Invalid> + 'o {
    move |(place, fix)| lacks(own, name, &place, fix)
}

fn lacks(own: &Abilities, name: &str, place: &str, fix: &str) -> Option<Invalid> {
    let ability = own.get(name).filter(|ability| ability.is_missing())?;
    let problem = format!("{} lacks {name} ({}: {})", own.name(), own.origin(), ability.evidence);
    Some(Invalid::new(place, problem, fix))
}

/// A limit that was found counts; the most that was tried is none.
fn exceeds(own: &Abilities, name: &str, asked: u64, place: &str) -> Option<Invalid> {
    let is_limit = own.get(name)?.status == Status::Less;
    let most = own.number(name).filter(|most| is_limit && asked > *most)?;
    let problem = format!("{} takes at most {most}, not {asked} ({})", own.name(), own.origin());
    Some(Invalid::new(place, problem, format!("give at most {most}")))
}

/// A limit that a server announced, of a body with what is around it.
fn announced(own: &Abilities, trial: &Trial, name: &str) -> Option<Invalid> {
    let (most, size) = (own.number(name)?, trial.load.size?.0);
    let problem = format!("{} announces {name} {most} ({})", own.name(), own.origin());
    let fix = format!("give at most {most}B");
    (size > most).then(|| Invalid::new("load.size", problem, fix))
}

fn size(own: &Abilities, trial: &Trial, name: &str) -> Option<Invalid> {
    let refused = exceeds(own, name, trial.load.size?.0, "load.size")?;
    Some(Invalid { fix: format!("{}B", refused.fix), ..refused })
}

impl Abilities {
    /// Returns the short name of the server that was probed.
    fn name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.target)
    }

    fn origin(&self) -> String {
        format!("probed {}", self.probed_at.get(..10).unwrap_or(&self.probed_at))
    }
}
