//! What a confirmation means on the target of a lane: set for a reference server, written in the
//! file of a real one, stated by the user for one given by URL, and otherwise unknown.

use std::collections::BTreeMap;

use weigh_engine::storage::StorePolicy;
use weigh_model::Durability;
use weigh_model::protocol::{Guarantee, Invalid};
use weigh_plan::keys::DURABILITY;
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::pipeline::Keeping;

use crate::case::lanes::{Against, Lane};
use crate::case::pipeline::Entry;

impl Lane {
    /// Sets the durability of a reference server, or states that of a target given by URL.
    ///
    /// # Errors
    /// A durability that the reference server does not have, and any for other targets.
    pub fn stating(mut self, durability: Option<Durability>) -> Result<Lane, Invalid> {
        let wrong =
            |problem: String, fix: &str| Err(Invalid::new(DURABILITY, problem, fix.to_owned()));
        match (durability, &self.against) {
            (Some(asked), Against::Reference) => {
                if let Err(said) = StorePolicy::of(asked) {
                    let (problem, fix) = said.split_once(": ").unwrap_or((&said, ""));
                    return wrong(problem.to_owned(), fix);
                }
            }
            (Some(asked), Against::Managed(name)) => {
                let problem = format!("{asked}: {name} has the durability of its profile");
                return wrong(problem, "leave it out, or choose another profile");
            }
            (Some(asked), Against::Pipeline(_)) => {
                let problem = format!("{asked}: the pipeline has a key of its own");
                return wrong(problem, "type target.durable = true or false");
            }
            (Some(_), Against::Foreign(_)) | (None, _) => {}
        }
        self.durability = durability;
        Ok(self)
    }

    /// True if its durability can be set or stated.
    pub fn takes_durability(&self) -> bool {
        matches!(self.against, Against::Reference | Against::Foreign(_))
    }

    /// True if its messages are confirmed.
    pub fn is_confirmed(&self) -> bool {
        self.protocol.guarantee(&self.settings) != Guarantee::AtMostOnce
    }

    /// What a confirmation means on its target: `none` if nothing is confirmed.
    pub fn durability(&self, catalogue: &Catalogue) -> Durability {
        if !self.is_confirmed() {
            return Durability::Nothing;
        }
        let own = self.of_target(catalogue);
        match self.protocol.durability_limit(&self.settings) {
            Some(limit) if own.is_at_least(limit) == Some(true) => limit,
            _ => own,
        }
    }

    /// What the target can do.
    fn of_target(&self, catalogue: &Catalogue) -> Durability {
        match &self.against {
            Against::Reference => self.durability.unwrap_or(Durability::Memory),
            Against::Foreign(_) => self.durability.unwrap_or(Durability::Unknown),
            Against::Managed(word) => of_profile(word, catalogue),
            // An answer of its api or store means stored; a broker answers before that.
            Against::Pipeline(pipeline) => match Entry::of(self.protocol.name()) {
                Ok(Entry::Broker) => match &pipeline.assembly.broker {
                    Some(word) => of_profile(word, catalogue),
                    None => Durability::Memory,
                },
                _ if pipeline.assembly.keeping == Keeping::Memory => Durability::Memory,
                _ if pipeline.assembly.is_durable => Durability::Synced,
                // A commit with synchronous=NORMAL survives the process, not a power cut.
                _ => Durability::PageCache,
            },
        }
    }
}

fn of_profile(word: &str, catalogue: &Catalogue) -> Durability {
    let known = catalogue.choose(word).ok();
    let known = known.and_then(|choice| choice.target.durability(choice.profile));
    known.map_or(Durability::Unknown, |known| known.value)
}

/// Checks that one target given by URL is said to have one durability.
///
/// # Errors
/// Two statements about one URL.
pub fn check_statements<'l>(lanes: impl Iterator<Item = &'l Lane>) -> Result<(), Invalid> {
    let mut stated = BTreeMap::new();
    for lane in lanes.filter(|lane| lane.is_foreign()) {
        let url = lane.against.name();
        let own = lane.durability;
        let first = *stated.entry(url.clone()).or_insert(own);
        if first != own {
            let words = |own: Option<Durability>| own.unwrap_or(Durability::Unknown).to_string();
            let problem = format!("{url} cannot be both {} and {}", words(first), words(own));
            let fix = "a server given by URL has one durability: state it once";
            return Err(Invalid::new(DURABILITY, problem, fix));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use weigh_protocols as registry;

    use super::*;
    use crate::case::secrets::{Secrets, against};

    fn lane(protocol: &str, target: &str, given: &[(&str, &str)]) -> Lane {
        let catalogue = Catalogue::load(None).unwrap();
        let target = against(target, &catalogue, &Secrets::default()).unwrap();
        let given = given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Lane::new(registry::find(protocol).unwrap(), target, given.collect()).unwrap()
    }

    fn durability(lane: &Lane) -> String {
        lane.durability(&Catalogue::load(None).unwrap()).to_string()
    }

    #[test]
    fn it_is_known_where_somebody_could_know_it() {
        let qos = |qos| [("qos", qos)];
        assert_eq!(durability(&lane("mqtt", "reference", &qos("1"))), "memory");
        assert_eq!(durability(&lane("mqtt", "reference", &qos("0"))), "none");
        assert_eq!(durability(&lane("mqtt", "mosquitto", &qos("1"))), "memory");
        assert_eq!(durability(&lane("mqtt", "mosquitto", &qos("0"))), "none");
        assert_eq!(durability(&lane("mqtt", "nats-mqtt", &qos("1"))), "fsync=2m");
        let jetstream = [("confirm", "jetstream")];
        assert_eq!(durability(&lane("nats", "nats-server", &jetstream)), "fsync=2m");
        assert_eq!(durability(&lane("nats", "nats-server@memory", &jetstream)), "memory");
        assert_eq!(durability(&lane("nats", "nats-server", &[("confirm", "ok")])), "none");
        assert_eq!(durability(&lane("mqtt", "artemis@memory", &qos("1"))), "memory");
        assert_eq!(durability(&lane("http1", "nginx", &[])), "memory");
        assert_eq!(durability(&lane("mqtt", "mqtt://localhost", &qos("1"))), "unknown");
    }

    #[test]
    fn it_is_set_for_reference_servers_and_stated_for_urls() {
        let read = |text: &str| Some(text.parse::<Durability>().unwrap());
        let reference = lane("http1", "reference", &[]).stating(read("fsync")).unwrap();
        assert_eq!(durability(&reference), "fsync");
        let url = lane("http1", "http://localhost:80", &[]);
        assert_eq!(durability(&url.stating(read("replicated=3")).unwrap()), "replicated=3");
        for (target, value) in [("reference", "replicated=3"), ("nginx", "memory")] {
            let error = lane("http1", target, &[]).stating(read(value)).err().unwrap();
            assert_eq!(error.place, DURABILITY);
        }
    }
}
