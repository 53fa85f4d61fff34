//! One fully decided trial: a point of the matrix, a repetition, a seed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::endpoint::Endpoint;
use crate::load::Load;
pub use crate::settings::Settings;

/// A point of the matrix: plan keys with dots, and their values.
pub type Point = BTreeMap<String, serde_json::Value>;

/// One fully decided trial.
///
/// # Examples
///
/// ```
/// use std::collections::BTreeMap;
/// use weigh_model::trial::Settings;
/// use weigh_model::{Load, Pattern, Trial};
///
/// let trial = Trial {
///     id: "example".to_owned(),
///     point: BTreeMap::new(),
///     repetition: 0,
///     seed: 7,
///     protocol: "tcp".to_owned(),
///     target: "reference".to_owned(),
///     endpoint: None,
///     load: Load { messages: Some(1000), ..Load::closed(Pattern::Request, 2) },
///     settings: Settings::default(),
/// };
/// assert_eq!(trial.tag(), 7);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Names the trial in the run: a hash of everything else in it.
    pub id: String,
    /// Its point in the matrix.
    pub point: Point,
    /// The repetition of its cell, from 0.
    pub repetition: u32,
    /// The seed of all its random numbers.
    pub seed: u64,
    /// The registry's name of the protocol.
    pub protocol: String,
    /// `reference`, the name of a managed target, or a URL.
    pub target: String,
    /// Address of the target; known once it is ready.
    #[serde(skip)]
    pub endpoint: Option<Endpoint>,
    /// The load.
    pub load: Load,
    /// The protocol's own table.
    pub settings: Settings,
}

impl Trial {
    /// Distinguishes the messages of this trial from those of any other.
    pub fn tag(&self) -> u16 {
        (self.seed ^ self.seed >> 16 ^ self.seed >> 32 ^ self.seed >> 48) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Setting, SettingKind};

    const KNOWN: &[Setting] = &[
        Setting { key: "qos", kind: SettingKind::Integer(0, 2), default: "0", doc: "" },
        Setting { key: "clean", kind: SettingKind::Flag, default: "true", doc: "" },
    ];

    #[test]
    fn defaults_stand_until_changed() {
        let settings = Settings::new("mqtt", KNOWN, [("qos", "2")]).unwrap();
        assert_eq!(settings.integer("qos"), 2);
        assert!(settings.flag("clean"));
    }

    #[test]
    fn wrong_keys_and_values_are_named_with_the_fix() {
        let error = Settings::new("mqtt", KNOWN, [("qso", "2")]).unwrap_err().to_string();
        assert!(error.contains("mqtt.qso") && error.contains("did you mean mqtt.qos?"), "{error}");
        let error = Settings::new("mqtt", KNOWN, [("colour", "2")]).unwrap_err().to_string();
        assert!(error.contains("qos, clean"), "{error}");
        let error = Settings::new("mqtt", KNOWN, [("qos", "3")]).unwrap_err().to_string();
        assert!(error.contains("from 0 to 2"), "{error}");
    }
}
