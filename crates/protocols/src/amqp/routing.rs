//! Who gets which message: exchange, routing keys, queues and bindings, from topology and settings.
//!
//! | | exchange | routing key | queues |
//! |---|---|---|---|
//! | no consumers, and `shared` | the default one | the queue's name | one |
//! | `fan-in`, `fan-out` | `amq.direct` | `weigh.%t` | one for each consumer |
//! | `pairs` | `amq.direct` | `weigh.%t.%i` | one for each consumer |
//! | `exchange_type = topic` | `amq.topic` | `weigh.%t.%i` | as above, bound by `weigh.%t.*` |

use weigh_model::protocol::{Invalid, ProducerOf, Role, Seat};
use weigh_model::{Topology, Trial};

use super::settings::check_short;

/// The routing of a trial.
#[derive(Clone, Debug)]
pub(super) struct Routing {
    /// Empty for the default exchange.
    pub(super) exchange: String,
    /// `direct` or `topic`.
    pub(super) kind: Kind,
    /// True if a plan names the exchange, so that it is declared.
    pub(super) is_own_exchange: bool,
    topology: Topology,
    has_consumers: bool,
    /// Routing key; `%i` is the producer.
    key: String,
    /// Name of the queue, or its beginning.
    queue: String,
}

/// Type of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Direct,
    Topic,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Direct => "direct",
            Kind::Topic => "topic",
        }
    }
}

impl Routing {
    pub(super) fn read(trial: &Trial) -> Result<Routing, Invalid> {
        let (settings, load) = (&trial.settings, &trial.load);
        let kind = match settings.text("exchange_type") {
            "topic" => Kind::Topic,
            _ => Kind::Direct,
        };
        let has_consumers = load.delivers();
        let is_one_queue = !has_consumers || load.topology == Topology::Shared;
        let is_pairs = has_consumers && load.topology == Topology::Pairs;
        let tag = trial.tag().to_string();
        let fill = |text: &str| text.replace("%t", &tag).replace("{client}", INDEX);
        let queue = fill(settings.text("queue"));
        let named = fill(settings.text("exchange"));
        let is_own_exchange = !named.is_empty();
        let uses_default = is_one_queue && kind == Kind::Direct && !is_own_exchange;
        let given = settings.text("routing_key");
        let key = match given {
            _ if uses_default => queue.clone(),
            "" if kind == Kind::Topic || is_pairs => format!("weigh.{tag}.{INDEX}"),
            "" => format!("weigh.{tag}"),
            given => fill(given),
        };
        let routing = Routing {
            exchange: match (is_own_exchange, kind) {
                (true, _) => named,
                _ if uses_default => String::new(),
                (_, Kind::Direct) => "amq.direct".to_owned(),
                (_, Kind::Topic) => "amq.topic".to_owned(),
            },
            kind,
            is_own_exchange: is_own_exchange && settings.flag("declare"),
            topology: load.topology,
            has_consumers,
            key,
            queue,
        };
        routing.check(trial, uses_default && !given.is_empty())?;
        Ok(routing)
    }

    fn check(&self, trial: &Trial, has_useless_key: bool) -> Result<(), Invalid> {
        let wrong = |key: &str, problem: String, fix: &str| {
            Err(Invalid::new(format!("amqp.{key}"), problem, fix.to_owned()))
        };
        if has_useless_key {
            let problem = "the default exchange routes by the name of the queue".to_owned();
            return wrong("routing_key", problem, "leave it out, or name an exchange");
        }
        if self.queue.is_empty() || self.queue.contains(INDEX) {
            let problem = "a queue needs a name, and consumers have an index anyway".to_owned();
            return wrong("queue", problem, "type a name without %i");
        }
        let is_wide = self.has_consumers && self.topology != Topology::Pairs;
        if self.kind == Kind::Direct && self.key.contains(INDEX) && (is_wide || self.is_one()) {
            let problem = "a direct exchange has no wildcard for {client}".to_owned();
            return wrong("routing_key", problem, "remove it, or type amqp.exchange_type=topic");
        }
        if self.kind == Kind::Topic && self.key.split('.').any(|word| word.contains(['*', '#'])) {
            let problem = "* and # are for bindings".to_owned();
            return wrong("routing_key", problem, "type a key without them");
        }
        let load = &trial.load;
        let last = load.connections.max(load.subscribers).saturating_sub(1);
        let seat = Seat { index: last, role: Role::Consumer };
        check_short("amqp.routing_key", &self.key(last))?;
        check_short("amqp.queue", &self.queue(seat))?;
        check_short("amqp.exchange", &self.exchange)
    }

    fn is_one(&self) -> bool {
        !self.has_consumers || self.topology == Topology::Shared
    }

    /// True if something consumes the messages.
    pub(super) fn has_consumers(&self) -> bool {
        self.has_consumers
    }

    /// True if no other client uses the queue of this one.
    pub(super) fn has_own_queue(&self, seat: Seat) -> bool {
        seat.role == Role::Consumer && !self.is_one()
    }

    /// The queue of a client.
    pub(super) fn queue(&self, seat: Seat) -> String {
        match self.has_own_queue(seat) {
            true => format!("{}.{}", self.queue, seat.index),
            false => self.queue.clone(),
        }
    }

    /// Routing key of a producer.
    pub(super) fn key(&self, producer: u32) -> String {
        self.key.replace(INDEX, &producer.to_string())
    }

    /// Key by which the queue of a client is bound; `None` for the default exchange, to which every
    /// queue is bound by its name.
    pub(super) fn binding(&self, seat: Seat) -> Option<String> {
        if self.exchange.is_empty() {
            return None;
        }
        let is_pair = self.has_consumers && self.topology == Topology::Pairs;
        Some(match is_pair {
            true => self.key(seat.index),
            false => self.key.replace(INDEX, "*"),
        })
    }

    /// Finds the producer of a message by its routing key; `None` if keys do not name it.
    pub(super) fn producer_of(&self) -> Option<ProducerOf> {
        let (before, after) = self.key.split_once(INDEX)?;
        let (before, after) = (before.as_bytes().to_vec(), after.as_bytes().to_vec());
        Some(Box::new(move |key: &[u8]| {
            let digits = key.strip_prefix(&*before)?.strip_suffix(&*after)?;
            std::str::from_utf8(digits).ok()?.parse().ok()
        }))
    }
}

/// The place of a producer's index.
const INDEX: &str = "%i";

#[cfg(test)]
mod tests {
    use weigh_model::trial::Settings;
    use weigh_model::{Load, Pattern};

    use super::super::settings::SETTINGS;
    use super::*;

    fn routing(topology: Topology, given: &[(&str, &str)]) -> Result<Routing, Invalid> {
        let load = Load { topology, subscribers: 3, ..Load::closed(Pattern::Deliver, 3) };
        let settings = Settings::new("amqp", SETTINGS, given.iter().copied())?;
        Routing::read(&Trial {
            id: String::new(),
            point: std::collections::BTreeMap::new(),
            repetition: 0,
            seed: 7,
            protocol: "amqp".to_owned(),
            target: "reference".to_owned(),
            endpoint: None,
            load,
            settings,
        })
    }

    fn consumer(index: u32) -> Seat {
        Seat { index, role: Role::Consumer }
    }

    #[test]
    fn each_topology_has_its_queues_and_keys() {
        let all = routing(Topology::FanOut, &[]).unwrap();
        assert_eq!((&*all.exchange, &*all.key(2)), ("amq.direct", "weigh.7"));
        assert_eq!(all.queue(consumer(1)), "weigh.7.1");
        assert_eq!(all.binding(consumer(1)).as_deref(), Some("weigh.7"));
        let pairs = routing(Topology::Pairs, &[]).unwrap();
        assert_eq!(pairs.binding(consumer(1)), Some(pairs.key(1)));
        assert_eq!(pairs.producer_of().unwrap()(b"weigh.7.12"), Some(12));
        let shared = routing(Topology::Shared, &[]).unwrap();
        assert_eq!((&*shared.exchange, &*shared.key(2)), ("", "weigh.7"));
        assert_eq!(
            (shared.queue(consumer(2)), shared.binding(consumer(2))),
            ("weigh.7".into(), None)
        );
        let topic = routing(Topology::FanIn, &[("exchange_type", "topic")]).unwrap();
        assert_eq!((&*topic.exchange, &*topic.key(2)), ("amq.topic", "weigh.7.2"));
        assert_eq!(topic.binding(consumer(0)).as_deref(), Some("weigh.7.*"));
    }

    #[test]
    fn what_cannot_be_routed_is_refused() {
        for (topology, given, fix) in [
            (Topology::FanIn, ("routing_key", "a.{client}"), "exchange_type=topic"),
            (Topology::Shared, ("routing_key", "a"), "name an exchange"),
            (Topology::FanIn, ("queue", ""), "without %i"),
        ] {
            let error = routing(topology, &[given]).unwrap_err();
            assert!(error.fix.contains(fix), "{error}");
        }
        let long = "x".repeat(300);
        let error = routing(Topology::FanIn, &[("exchange", long.as_str())]).unwrap_err();
        assert!(error.fix.contains("255 bytes"), "{error}");
    }
}
