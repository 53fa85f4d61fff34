//! The pipeline as a target: what a plan asks of its stages, by the entry of a protocol.

use weigh_model::hop::HopStage;
use weigh_model::mark::MARK_BYTES;
use weigh_model::protocol::Invalid;
use weigh_model::{Pattern, Protocol};
use weigh_plan::case::Stages;
use weigh_plan::world::{PIPELINE, REFERENCE};
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::pipeline::{Assembly, Keeping};

use crate::exit::FULL_BUILD;

/// The pipeline, as the target of a lane.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// Stages as given.
    pub given: Stages,
    /// Stages as resolved.
    pub assembly: Assembly,
}

impl Pipeline {
    /// Resolves the pipeline that `protocol` enters.
    ///
    /// # Errors
    /// A protocol without an entry; keys that contradict each other.
    pub fn of(
        protocol: &dyn Protocol,
        given: &Stages,
        catalogue: &Catalogue,
    ) -> Result<Pipeline, Invalid> {
        let entry = Entry::of(protocol.name())?;
        let stages = entry.stages(given.stages.as_deref())?;
        let keeps_itself = stages.last() != Some(&HopStage::Store);
        let keeping = match (given.store.as_deref(), keeps_itself) {
            (Some("sqlite"), true) => {
                let problem = "an api without a store behind it keeps readings in memory";
                return Err(Invalid::new(STORE, problem, "add the store to target.stages"));
            }
            (_, true) => Keeping::Memory,
            (Some("memory"), false) => Keeping::Memory,
            _ => Keeping::Database,
        };
        if given.durable.is_some() && keeping == Keeping::Memory {
            let problem = "the in-memory store is lost on exit";
            return Err(Invalid::new(DURABLE, problem, "leave it out, or type store = \"sqlite\""));
        }
        let has_gateway = stages.contains(&HopStage::Gateway);
        if !has_gateway && given.broker.is_some() {
            let problem = format!("{} does not enter by the gateway", protocol.name());
            return Err(Invalid::new(BROKER, problem, "leave it out, or type protocol = \"mqtt\""));
        }
        let broker = given.broker.as_deref().unwrap_or(REFERENCE);
        if broker != REFERENCE {
            check_broker(broker, catalogue)?;
        }
        let assembly = Assembly {
            stages,
            entry: entry.stage(),
            keeping,
            is_durable: given.durable.unwrap_or(true),
            broker: has_gateway.then(|| broker.to_owned()).filter(|name| name != REFERENCE),
            batch: given.batch,
            linger: given.linger,
        };
        let gathers = assembly.stages.iter().any(|stage| assembly.gathers(*stage));
        if let Some(key) = of_calls(given).filter(|_| !gathers) {
            let problem = "no stage here batches readings for the next one";
            let fix = "leave it out; only a gateway, or an api with a store, batches";
            return Err(Invalid::new(key, problem, fix));
        }
        Ok(Pipeline { given: given.clone(), assembly })
    }
}

/// The stage that receives a protocol's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The broker in front of the gateway.
    Broker,
    /// The API.
    Api,
    /// The store.
    Store,
}

impl Entry {
    /// Entry of the protocol of this name.
    ///
    /// # Errors
    /// A protocol without an entry.
    pub fn of(protocol: &str) -> Result<Entry, Invalid> {
        let found = SPOKEN.into_iter().find(|(name, _)| *name == protocol);
        found.map(|(_, entry)| entry).ok_or_else(|| {
            let problem = format!("{protocol} enters no stage of the pipeline");
            let names: Vec<&str> = SPOKEN.iter().map(|(name, _)| *name).collect();
            Invalid::new("target", problem, format!("type one of {}", names.join(", ")))
        })
    }

    /// Patterns that can enter here: those whose messages reach the last stage.
    pub fn patterns(self) -> &'static [Pattern] {
        match self {
            Entry::Broker => &[Pattern::Publish, Pattern::Session],
            Entry::Api | Entry::Store => {
                &[Pattern::Publish, Pattern::Request, Pattern::Session, Pattern::Batch]
            }
        }
    }

    /// Default settings of a protocol at this entry.
    pub fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Entry::Broker | Entry::Store => &[],
            Entry::Api => &[("path", "/readings"), ("batch_path", "/readings")],
        }
    }

    /// Settings of the lane of `weigh compare pipeline` at this entry; they give every entry the
    /// same guarantee.
    pub fn lane(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Entry::Broker => &[("qos", "1")],
            Entry::Api | Entry::Store => &[],
        }
    }

    /// True if a pipeline with this entry has a stage that uses the pipeline's key `key`. The store
    /// calls no other stage.
    pub fn uses(self, key: &str) -> bool {
        match key {
            BROKER => self == Entry::Broker,
            BATCH | LINGER => self != Entry::Store,
            _ => true,
        }
    }

    /// The stage that receives its messages first.
    fn stage(self) -> HopStage {
        match self {
            Entry::Broker => HopStage::Gateway,
            Entry::Api => HopStage::Api,
            Entry::Store => HopStage::Store,
        }
    }

    /// Name of its protocol.
    fn word(self) -> &'static str {
        SPOKEN.iter().find(|(_, entry)| *entry == self).map_or("", |(name, _)| name)
    }

    /// Stages behind it: all of them, or those that are named.
    fn stages(self, named: Option<&str>) -> Result<Vec<HopStage>, Invalid> {
        let first = self.stage();
        let all = &HopStage::ALL[first as usize..];
        let Some(named) = named else { return Ok(all.to_vec()) };
        let is_named = |stage: &&HopStage| named.split(',').any(|name| name.trim() == stage.name());
        let stages: Vec<HopStage> = HopStage::ALL.iter().filter(is_named).copied().collect();
        // A background may enter the pipeline before this stage.
        if stages.contains(&first) {
            return Ok(stages);
        }
        let all: Vec<&str> = all.iter().map(|stage| stage.name()).collect();
        let problem =
            format!("{named:?} is without the {}, where {} comes in", first.name(), self.word());
        Err(Invalid::new(STAGES, problem, format!("type {:?}, or leave it out", all.join(","))))
    }
}

/// Protocols that the pipeline accepts, and their entries.
pub const SPOKEN: [(&str, Entry); 3] =
    [("mqtt", Entry::Broker), ("http1", Entry::Api), ("grpc", Entry::Store)];

/// True for the name of the pipeline.
pub fn is_pipeline(target: &str) -> bool {
    target == PIPELINE
}

/// True if this build has the services of the pipeline.
pub const IS_BUILT: bool = cfg!(feature = "pipeline");

/// Checks that a build has the services of the pipeline.
///
/// # Errors
/// A build without them, and how to get them.
pub fn check_built(is_built: bool) -> Result<(), Invalid> {
    if is_built {
        return Ok(());
    }
    let problem = "this build of weigh has no services of the pipeline";
    Err(Invalid::new("target", problem, FULL_BUILD))
}

/// Checks that bodies have room for a mark; others cannot be traced.
///
/// # Errors
/// Bodies that are too small.
pub fn check_marked(is_marked: bool) -> Result<(), Invalid> {
    if is_marked {
        return Ok(());
    }
    let problem = "bodies without room for a mark cannot be traced through stages";
    Err(Invalid::new("load.size", problem, format!("type at least {MARK_BYTES}B")))
}

fn check_broker(name: &str, catalogue: &Catalogue) -> Result<(), Invalid> {
    let wrong = |said: String| {
        Invalid::new(BROKER, said, "type reference, mosquitto, or another broker of weigh targets")
    };
    let choice = catalogue.choose(name).map_err(|error| wrong(error.to_string()))?;
    let speaks = choice.target.speaks.iter().any(|speaks| speaks.protocol == "mqtt");
    if speaks { Ok(()) } else { Err(wrong(format!("{name} is not an MQTT broker"))) }
}

/// The first given key that applies only to a stage that batches readings for the next one.
fn of_calls(given: &Stages) -> Option<&'static str> {
    given.batch.map(|_| BATCH).or(given.linger.map(|_| LINGER))
}

const STAGES: &str = "target.stages";
const STORE: &str = "target.store";
const DURABLE: &str = "target.durable";
const BROKER: &str = "target.broker";
const BATCH: &str = "target.batch";
const LINGER: &str = "target.linger";

#[cfg(test)]
#[cfg(feature = "library")]
mod tests {
    use super::*;
    use weigh_protocols as registry;

    fn of(protocol: &str, text: &str) -> Result<Pipeline, Invalid> {
        let keys: toml::Table = text.parse().unwrap();
        let keys = keys.into_iter().map(|(key, value)| (format!("target.{key}"), value));
        let given: Stages = keys.collect::<toml::Table>().try_into().unwrap();
        let catalogue = Catalogue::load(None).unwrap();
        Pipeline::of(registry::find(protocol).unwrap(), &given, &catalogue)
    }

    #[test]
    fn each_protocol_enters_where_it_is_spoken() {
        for (protocol, stages) in [
            ("mqtt", &HopStage::ALL[..]),
            ("http1", &HopStage::ALL[1..]),
            ("grpc", &HopStage::ALL[2..]),
        ] {
            let pipeline = of(protocol, "").unwrap();
            assert_eq!(pipeline.assembly.stages, stages, "{protocol}");
            assert_eq!(pipeline.assembly.keeping, Keeping::Database);
            assert!(pipeline.assembly.is_durable);
        }
        let direct = of("mqtt", "stages = 'gateway,store'\nbroker = 'mosquitto'").unwrap().assembly;
        assert_eq!(direct.stages, [HopStage::Gateway, HopStage::Store]);
        assert_eq!(direct.broker.as_deref(), Some("mosquitto"));
        let alone = of("http1", "stages = 'api'").unwrap().assembly;
        assert_eq!((alone.stages, alone.keeping), (vec![HopStage::Api], Keeping::Memory));
    }

    /// The gateway, and an api that messages come in by and that has a store behind it.
    #[test]
    fn the_batch_reaches_the_stages_that_gather() {
        for (protocol, text, gathering) in [
            ("mqtt", "batch = 1", &[HopStage::Gateway][..]),
            ("http1", "batch = 1", &[HopStage::Api]),
            ("http1", "stages = 'gateway,api,store'\nbatch = 1", &HopStage::ALL[..2]),
            ("http1", "stages = 'api'", &[]),
            ("grpc", "", &[]),
        ] {
            let assembly = of(protocol, text).unwrap().assembly;
            let gathers = |stage: &HopStage| assembly.gathers(*stage);
            let found: Vec<HopStage> = HopStage::ALL.into_iter().filter(gathers).collect();
            assert_eq!(found, gathering, "{protocol} {text}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_named_with_the_fix() {
        for (protocol, text, place, says) in [
            ("tcp", "", "target", "enters no stage"),
            ("http1", "stages = 'gateway,store'", "target.stages", "type \"api,store\""),
            ("mqtt", "stages = 'store'", "target.stages", "is without the gateway"),
            ("http1", "stages = 'api'\nstore = 'sqlite'", "target.store", "in memory"),
            ("grpc", "store = 'memory'\ndurable = true", "target.durable", "lost on exit"),
            ("http1", "broker = 'mosquitto'", "target.broker", "does not enter by the gateway"),
            ("http1", "stages = 'api'\nbatch = 10", "target.batch", "no stage here batches"),
            ("grpc", "linger = '1ms'", "target.linger", "no stage here batches"),
            ("mqtt", "broker = 'nginx'", "target.broker", "not an MQTT broker"),
            ("mqtt", "broker = 'mosquito'", "target.broker", "mosquito"),
        ] {
            let error = of(protocol, text).unwrap_err();
            assert_eq!(error.place, place, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
