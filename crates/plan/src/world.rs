//! What the language must be told from outside: which protocols and targets there are.

use weigh_model::protocol::Invalid;
use weigh_model::{Load, Pattern, Protocol};

use crate::case::Case;
use crate::keys::OF_BROKER;
use crate::patience::Patience;

/// What there is to weigh.
pub trait World {
    /// Every protocol, with its keys and its patterns.
    fn protocols(&self) -> &'static [&'static dyn Protocol];

    /// The target that a plan names by `word`.
    ///
    /// # Errors
    /// If there is none: what is wrong, a colon, and what to type instead.
    fn target(&self, word: &str) -> Result<TargetWord, String>;

    /// The names of targets, for whoever mistypes one.
    fn target_names(&self) -> Vec<String>;

    /// What a protocol can carry at a target; the first is what it carries if nothing is said.
    fn patterns(&self, protocol: &dyn Protocol, _target: &str) -> Vec<Pattern> {
        protocol.patterns().to_vec()
    }

    /// True if a pipeline with this protocol's entry has a stage that uses its key `key`
    /// (`target.batch`). Where messages can be delivered there is a broker.
    fn is_used_by_entry(&self, protocol: &dyn Protocol, key: &str) -> bool {
        protocol.patterns().contains(&Pattern::Deliver) || !OF_BROKER.contains(&key)
    }

    /// Settings of a protocol that hold at a target where a plan says nothing of them; `given` are
    /// the keys that it gives.
    fn usual(
        &self,
        _protocol: &dyn Protocol,
        _target: &str,
        _load: &Load,
        _given: &[&str],
    ) -> Vec<(&'static str, serde_json::Value)> {
        Vec::new()
    }

    /// True for a key (`mqtt.broker_password`) whose value must not be recorded, or must not where
    /// it is this one.
    fn is_secret(&self, key: &str, value: &str) -> bool;

    /// How long messages of a case need on its path; `None` where that is not known, or no path
    /// was named.
    fn patience(&self, _case: &Case) -> Option<Patience> {
        None
    }

    /// Looks at a whole case as whoever carries it out does, without starting anything.
    ///
    /// # Errors
    /// If the protocol cannot do it; the place is a plan key.
    fn check(&self, case: &Case) -> Result<(), Invalid>;
}

/// A target, as a plan names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetWord {
    /// Its name in plans and journals: that of a URL is without its secrets.
    pub name: String,
    /// The protocols that it speaks; `None` where it speaks every one: the reference servers.
    pub speaks: Option<Vec<String>>,
}

/// The name of the target that Weighbridge carries, one for each protocol.
pub const REFERENCE: &str = "reference";

/// The name of the target that stores what it is sent, by several stages.
pub const PIPELINE: &str = "pipeline";
