//! Settings of a protocol: the known keys, and the values of a trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::nearest::nearest;
use crate::units::{Nanos, parse_duration};

/// One key of a protocol's own table.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The key, without the protocol's name.
    pub key: &'static str,
    /// Type of its values.
    pub kind: SettingKind,
    /// The default value, as text.
    pub default: &'static str,
    /// One sentence for the help.
    pub doc: &'static str,
}

impl Setting {
    /// A setting of any text.
    pub const fn text(key: &'static str, default: &'static str, doc: &'static str) -> Setting {
        Setting { key, kind: SettingKind::Text, default, doc }
    }

    /// A setting that is `true` or `false`.
    pub const fn flag(key: &'static str, default: &'static str, doc: &'static str) -> Setting {
        Setting { key, kind: SettingKind::Flag, default, doc }
    }

    /// A setting of one of these words.
    pub const fn choice(
        key: &'static str,
        words: &'static [&'static str],
        default: &'static str,
        doc: &'static str,
    ) -> Setting {
        Setting { key, kind: SettingKind::Choice(words), default, doc }
    }

    /// A setting of a duration with its unit.
    pub const fn duration(key: &'static str, default: &'static str, doc: &'static str) -> Setting {
        Setting { key, kind: SettingKind::Duration, default, doc }
    }

    /// A setting of a whole number within `range`, both ends included.
    pub const fn integer(
        key: &'static str,
        range: (u64, u64),
        default: &'static str,
        doc: &'static str,
    ) -> Setting {
        Setting { key, kind: SettingKind::Integer(range.0, range.1), default, doc }
    }
}

/// Type of a setting's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// `true` or `false`.
    Flag,
    /// A whole number between the two, both included.
    Integer(u64, u64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// A duration with its unit.
    Duration,
}

/// A trial that this protocol cannot do: what is wrong, where, and what to type instead.
///
/// # Examples
///
/// ```
/// use weigh_model::protocol::Invalid;
///
/// let invalid = Invalid::new("mqtt.qos", "3 is not a QoS", "type 0, 1 or 2");
/// assert_eq!(invalid.to_string(), "mqtt.qos: 3 is not a QoS; type 0, 1 or 2");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}{}{fix}", if fix.is_empty() { "" } else { "; " })]
pub struct Invalid {
    /// The plan key or option.
    pub place: String,
    /// The problem.
    pub problem: String,
    /// What to type instead.
    pub fix: String,
}

impl Invalid {
    /// An error at `place`.
    pub fn new(
        place: impl Into<String>,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) -> Invalid {
        Invalid { place: place.into(), problem: problem.into(), fix: fix.into() }
    }
}

/// The values of a protocol's own table, complete and checked.
///
/// # Examples
///
/// ```
/// use weigh_model::protocol::{Setting, SettingKind};
/// use weigh_model::trial::Settings;
///
/// const KNOWN: &[Setting] =
///     &[Setting { key: "qos", kind: SettingKind::Integer(0, 2), default: "0", doc: "" }];
/// let settings = Settings::new("mqtt", KNOWN, [("qos", "1")])?;
/// assert_eq!(settings.integer("qos"), 1);
/// assert!(Settings::new("mqtt", KNOWN, [("qos", "3")]).is_err());
/// # Ok::<(), weigh_model::protocol::Invalid>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings(pub BTreeMap<String, String>);

impl Settings {
    /// The defaults of `known`, changed by `given`. `protocol` is for the messages.
    ///
    /// # Errors
    /// If a key is unknown or a value is not one that it takes.
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
                if key == "tls" {
                    let problem = format!("{protocol} has no TLS in Weighbridge");
                    return Invalid::new(format!("{protocol}.tls"), problem, "leave out --tls");
                }
                let keys: Vec<&str> = known.iter().map(|setting| setting.key).collect();
                let fix = match nearest(key, keys.iter().copied()) {
                    Some(near) => format!("did you mean {protocol}.{near}?"),
                    None => format!("the keys of {protocol} are: {}", keys.join(", ")),
                };
                Invalid::new(format!("{protocol}.{key}"), "there is no such key", fix)
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

    /// The number `key`, or `default` if it is not set.
    pub fn integer_or(&self, key: &str, default: u64) -> u64 {
        if self.text(key).is_empty() { default } else { self.integer(key) }
    }

    /// The duration `key`, or `default` if it is not set.
    pub fn duration_or(&self, key: &str, default: Nanos) -> Nanos {
        if self.text(key).is_empty() { default } else { self.duration(key) }
    }

    /// The duration `key`; 0 if it is not set.
    pub fn duration(&self, key: &str) -> Nanos {
        parse_duration(self.text(key)).unwrap_or_default()
    }
}

pub(crate) fn check(protocol: &str, setting: &Setting, value: &str) -> Result<(), Invalid> {
    let wrong = |fix: String| {
        let place = format!("{protocol}.{}", setting.key);
        Err(Invalid::new(place, format!("{value:?} is not a valid value"), fix))
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
