//! Facts from outside the language: available protocols and targets.

use weigh_model::protocol::Invalid;
use weigh_model::{Durability, Load, Pattern, Protocol};

use crate::case::Case;
use crate::keys::OF_BROKER;
use crate::patience::Patience;

/// Available protocols and targets.
///
/// # Examples
///
/// The built-in protocols, and no targets except the reference servers:
///
/// ```
/// use weigh_model::Protocol;
/// use weigh_model::protocol::Invalid;
/// use weigh_plan::Case;
/// use weigh_plan::world::{REFERENCE, TargetWord, World};
///
/// struct ReferenceServers;
///
/// impl World for ReferenceServers {
///     fn protocols(&self) -> &'static [&'static dyn Protocol] {
///         weigh_protocols::PROTOCOLS
///     }
///
///     fn target(&self, word: &str) -> Result<TargetWord, String> {
///         match word {
///             REFERENCE => Ok(TargetWord { name: word.to_owned(), speaks: None }),
///             _ => Err(format!("unknown target {word:?}: type {REFERENCE}")),
///         }
///     }
///
///     fn target_names(&self) -> Vec<String> {
///         vec![REFERENCE.to_owned()]
///     }
///
///     fn is_secret(&self, _key: &str, _value: &str) -> bool {
///         false
///     }
///
///     fn check(&self, _case: &Case) -> Result<(), Invalid> {
///         Ok(())
///     }
/// }
///
/// let plan = "protocol = \"tcp\"\ntarget = \"mosquitto\"";
/// assert!(weigh_plan::read(plan, &ReferenceServers).is_err());
/// ```
pub trait World {
    /// Every protocol, with its keys and its patterns.
    fn protocols(&self) -> &'static [&'static dyn Protocol];

    /// Finds the target that a plan names by `word`.
    ///
    /// # Errors
    /// An unknown name: what is wrong, a colon, and what to type instead.
    fn target(&self, word: &str) -> Result<TargetWord, String>;

    /// Names of targets, for suggestions.
    fn target_names(&self) -> Vec<String>;

    /// Patterns of a protocol at a target; the first is the default.
    fn patterns(&self, protocol: &dyn Protocol, _target: &str) -> Vec<Pattern> {
        protocol.patterns().to_vec()
    }

    /// True if a pipeline with this protocol's entry has a stage that uses its key `key`
    /// (`target.batch`). Deliveries need a broker.
    fn is_used_by_entry(&self, protocol: &dyn Protocol, key: &str) -> bool {
        protocol.patterns().contains(&Pattern::Deliver) || !OF_BROKER.contains(&key)
    }

    /// Default settings of a protocol at a target; `given` are the keys in the plan.
    fn usual(
        &self,
        _protocol: &dyn Protocol,
        _target: &str,
        _load: &Load,
        _given: &[&str],
    ) -> Vec<(&'static str, serde_json::Value)> {
        Vec::new()
    }

    /// What a confirmation means in this case, if it is set, stated or known of the target.
    fn durability(&self, case: &Case) -> Option<Durability> {
        case.durability
    }

    /// True for a key (`mqtt.broker_password`) whose value must not be recorded, or not this value.
    fn is_secret(&self, key: &str, value: &str) -> bool;

    /// Time that messages of a case need on its path; `None` if it is unknown or there is no path.
    fn patience(&self, _case: &Case) -> Option<Patience> {
        None
    }

    /// Checks a whole case without starting anything.
    ///
    /// # Errors
    /// A case that the protocol cannot run; the place is a plan key.
    fn check(&self, case: &Case) -> Result<(), Invalid>;
}

/// A target, as a plan names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetWord {
    /// Its name in plans and journals: a URL is without its secrets.
    pub name: String,
    /// The protocols that it supports; `None` if it supports all, like the reference servers.
    pub speaks: Option<Vec<String>>,
}

/// The name of the built-in reference servers, one per protocol.
pub const REFERENCE: &str = "reference";

/// The name of the pipeline, a target of several stages that stores messages.
pub const PIPELINE: &str = "pipeline";
