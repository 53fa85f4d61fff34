//! One fully decided experiment: a point of the matrix, a repetition, a seed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::endpoint::Endpoint;
use crate::load::Load;
use crate::protocol::{Invalid, Setting, SettingKind};
use crate::units::{Nanos, parse_duration};

/// A point of the matrix: plan keys with dots, and their values.
pub type Point = BTreeMap<String, serde_json::Value>;

/// One fully decided experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Names the trial in the run: a hash of everything else in it.
    pub id: String,
    /// Where it stands in the matrix.
    pub point: Point,
    /// Which repetition of its cell, from 0.
    pub repetition: u32,
    /// The seed of all its chance.
    pub seed: u64,
    /// The registry's name of the protocol.
    pub protocol: String,
    /// `reference`, the name of a managed target, or a URL.
    pub target: String,
    /// Where the target listens; known once it is ready.
    #[serde(skip)]
    pub endpoint: Option<Endpoint>,
    /// What is asked of the target.
    pub load: Load,
    /// The protocol's own table.
    pub settings: Settings,
}

impl Trial {
    /// Tells the messages of this trial from those of any other.
    pub fn tag(&self) -> u16 {
        (self.seed ^ self.seed >> 16 ^ self.seed >> 32 ^ self.seed >> 48) as u16
    }
}

/// The values of a protocol's own table, complete and checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings(pub BTreeMap<String, String>);

impl Settings {
    /// The defaults of `known`, changed by `given`. `protocol` is for the messages.
    pub fn new<'a>(
        protocol: &str,
        known: &[Setting],
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Settings, Invalid> {
        let mut values: BTreeMap<String, String> = known
            .iter()
            .map(|setting| (setting.key.to_owned(), setting.default.to_owned()))
            .collect();
        for (key, value) in given {
            let setting = known.iter().find(|setting| setting.key == key).ok_or_else(|| {
                let keys: Vec<&str> = known.iter().map(|setting| setting.key).collect();
                Invalid::new(
                    format!("{protocol}.{key}"),
                    "there is no such key",
                    format!("the keys of {protocol} are: {}", keys.join(", ")),
                )
            })?;
            check(protocol, setting, value)?;
            values.insert(key.to_owned(), value.to_owned());
        }
        Ok(Settings(values))
    }

    /// The text of `key`; empty if there is no such key.
    pub fn text(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    /// The flag `key`.
    pub fn flag(&self, key: &str) -> bool {
        self.text(key) == "true"
    }

    /// The number `key`; 0 if it is not set.
    pub fn integer(&self, key: &str) -> u64 {
        self.text(key).parse().unwrap_or(0)
    }

    /// The duration `key`; 0 if it is not set.
    pub fn duration(&self, key: &str) -> Nanos {
        parse_duration(self.text(key)).unwrap_or_default()
    }
}

fn check(protocol: &str, setting: &Setting, value: &str) -> Result<(), Invalid> {
    let wrong = |mend: String| {
        let place = format!("{protocol}.{}", setting.key);
        Err(Invalid::new(place, format!("{value:?} is not a value it takes"), mend))
    };
    match setting.kind {
        SettingKind::Flag if value == "true" || value == "false" => Ok(()),
        SettingKind::Flag => wrong("type true or false".to_owned()),
        SettingKind::Integer(low, high) => match value.parse::<u64>() {
            Ok(number) if (low..=high).contains(&number) => Ok(()),
            _ => wrong(format!("type a whole number from {low} to {high}")),
        },
        SettingKind::Choice(words) if words.contains(&value) => Ok(()),
        SettingKind::Choice(words) => wrong(format!("type one of {}", words.join(", "))),
        SettingKind::Text => Ok(()),
        SettingKind::Duration => match parse_duration(value) {
            Ok(_) => Ok(()),
            Err(error) => wrong(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn wrong_keys_and_values_are_named_with_the_mend() {
        let error = Settings::new("mqtt", KNOWN, [("qso", "2")]).unwrap_err().to_string();
        assert!(error.contains("mqtt.qso") && error.contains("qos, clean"), "{error}");
        let error = Settings::new("mqtt", KNOWN, [("qos", "3")]).unwrap_err().to_string();
        assert!(error.contains("from 0 to 2"), "{error}");
    }
}
