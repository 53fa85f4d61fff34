//! Who gets which message: addresses of queues and topics, from topology and settings.
//!
//! | | node | address |
//! |---|---|---|
//! | no consumers, and `shared` | a queue | `queue` |
//! | `fan-in`, `fan-out` | a topic | `topic` |
//! | `pairs` | a topic for each pair | `topic`, and its index |

use weigh_model::protocol::{Invalid, ProducerOf};
use weigh_model::{Topology, Trial};

/// The nodes of a trial.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    /// Each message goes to one consumer, and not to all.
    pub(super) is_queue: bool,
    /// Address; `%i` is the index of producer and consumer.
    address: String,
}

impl Nodes {
    pub(super) fn read(trial: &Trial) -> Result<Nodes, Invalid> {
        let (settings, load) = (&trial.settings, &trial.load);
        let is_queue = !load.delivers() || load.topology == Topology::Shared;
        let is_pairs = load.delivers() && load.topology == Topology::Pairs;
        let key = if is_queue { "queue" } else { "topic" };
        let tag = trial.tag().to_string();
        let mut address = settings.text(key).replace("%t", &tag).replace("{client}", INDEX);
        let place = format!("amqp1.{key}");
        if address.is_empty() {
            return Err(Invalid::new(place, "a link needs an address", "type a name, such as a"));
        }
        if address.contains(INDEX) && !is_pairs {
            let problem = "the clients of this topology share one address";
            return Err(Invalid::new(place, problem, "remove {client}, or type --topology pairs"));
        }
        if is_pairs && !address.contains(INDEX) {
            address = format!("{address}.{INDEX}");
        }
        let nodes = Nodes { is_queue, address };
        check_length(&place, &nodes.address(load.connections.max(load.subscribers)))?;
        Ok(nodes)
    }

    /// Address of the link of a client.
    pub(super) fn address(&self, index: u32) -> String {
        self.address.replace(INDEX, &index.to_string())
    }

    /// The capability that names the type of the node.
    pub(super) fn capability(&self) -> &'static str {
        if self.is_queue { QUEUE } else { TOPIC }
    }

    /// Finds the producer of a message by the address of the consumer; `None` if it is not in it.
    pub(super) fn producer_of(&self) -> Option<ProducerOf> {
        let (before, after) = self.address.split_once(INDEX)?;
        let (before, after) = (before.as_bytes().to_vec(), after.as_bytes().to_vec());
        Some(Box::new(move |address: &[u8]| {
            let digits = address.strip_prefix(&*before)?.strip_suffix(&*after)?;
            std::str::from_utf8(digits).ok()?.parse().ok()
        }))
    }
}

/// Everything of a client's `open` and `attach` is in frames of 512 bytes, since they leave before
/// the server said what it takes (section 2.4.1).
pub(super) fn check_length(place: &str, text: &str) -> Result<(), Invalid> {
    match text.len() > NAME_BYTES_MAX {
        true => {
            let problem = format!("it has {} bytes", text.len());
            Err(Invalid::new(place, problem, "type at most 200 bytes"))
        }
        false => Ok(()),
    }
}

/// Capability of a node that gives each message to one consumer.
pub(super) const QUEUE: &str = "queue";

/// Capability of a node that gives each message to all consumers.
pub(super) const TOPIC: &str = "topic";

/// The place of a client's index.
const INDEX: &str = "%i";

const NAME_BYTES_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use weigh_model::trial::Settings;
    use weigh_model::{Load, Pattern};

    use super::super::settings::SETTINGS;
    use super::*;

    fn nodes(topology: Topology, given: &[(&str, &str)]) -> Result<Nodes, Invalid> {
        let load = Load { topology, subscribers: 3, ..Load::closed(Pattern::Deliver, 3) };
        let settings = Settings::new("amqp1", SETTINGS, given.iter().copied())?;
        Nodes::read(&Trial {
            id: String::new(),
            point: std::collections::BTreeMap::new(),
            repetition: 0,
            seed: 7,
            protocol: "amqp1".to_owned(),
            target: "reference".to_owned(),
            endpoint: None,
            load,
            settings,
        })
    }

    #[test]
    fn each_topology_has_its_addresses() {
        let all = nodes(Topology::FanOut, &[]).unwrap();
        assert_eq!((all.capability(), &*all.address(2)), ("topic", "weigh.7"));
        assert!(all.producer_of().is_none());
        let pairs = nodes(Topology::Pairs, &[]).unwrap();
        assert_eq!((pairs.capability(), &*pairs.address(2)), ("topic", "weigh.7.2"));
        assert_eq!(pairs.producer_of().unwrap()(b"weigh.7.12"), Some(12));
        let own = nodes(Topology::Pairs, &[("topic", "/topic/{client}/x")]).unwrap();
        assert_eq!(own.address(3), "/topic/3/x");
        let shared = nodes(Topology::Shared, &[("queue", "/queue/q")]).unwrap();
        assert_eq!((shared.capability(), &*shared.address(2)), ("queue", "/queue/q"));
    }

    #[test]
    fn what_cannot_be_addressed_is_refused() {
        let long = "x".repeat(201);
        for (topology, given, fix) in [
            (Topology::FanIn, ("topic", "a.{client}"), "--topology pairs"),
            (Topology::Shared, ("queue", ""), "type a name"),
            (Topology::Shared, ("queue", &*long), "at most 200 bytes"),
        ] {
            let error = nodes(topology, &[given]).unwrap_err();
            assert!(error.fix.contains(fix), "{error}");
        }
    }
}
