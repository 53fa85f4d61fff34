//! Abilities of a server, as data: read by people, by plans and by targets' files.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the format; a change of meaning makes it another one.
pub const SCHEMA: &str = "weigh/abilities/1";

/// Abilities of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("$id" = "urn:weigh:schema:abilities:1"))]
pub struct Abilities {
    /// `weigh/abilities/1`.
    pub schema: String,
    /// Server that was probed: `mosquitto@defaults`, `reference`, or a URL without its secrets.
    pub target: String,
    /// The server's name and version, where it is known: `Mosquitto 2.0.11`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub title: Option<String>,
    /// The registry's name of the protocol: `mqtt`.
    pub protocol: String,
    /// Time of the probe, as RFC 3339 in UTC.
    pub probed_at: String,
    /// The version of the program that asked.
    pub weigh: String,
    /// Abilities, in the order in which they were tested.
    pub abilities: Vec<Ability>,
}

/// One thing that a server can do, or cannot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ability {
    /// Name of the ability: `payload_bytes`.
    pub name: String,
    /// Status of the ability.
    pub status: Status,
    /// Value of the ability; absent if nothing is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub value: Option<Value>,
    /// Unit of the value; absent if it counts nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<String>,
    /// Source of the finding.
    pub how: How,
    /// Observation behind the finding.
    pub evidence: String,
}

/// Status of an ability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As asked for.
    Yes,
    /// It is not there, and the server reported no error: it did something else, or nothing.
    No,
    /// Less was granted than was asked for.
    Less,
    /// The server said no, or closed the connection.
    Refused,
    /// The server said nothing within the time that an answer was given.
    NoAnswer,
    /// It was not tried: there was no time left, or what it needs is not there.
    Untried,
}

/// Value of an ability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// It is there or not.
    Flag(bool),
    /// Number in the ability's unit.
    Number(u64),
    /// In words.
    Text(String),
}

/// Source of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum How {
    /// The server said so.
    #[serde(rename = "announced")]
    Announced,
    /// It was done.
    #[serde(rename = "tried")]
    Tried,
    /// The largest that passed, with the smallest that did not.
    #[serde(rename = "found by search")]
    FoundBySearch,
}

/// A file that holds no abilities.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct NoAbilities {
    file: String,
    problem: String,
}

impl Abilities {
    /// Reads a file as it was written by `weigh probe -o`: TOML, or JSON if its name ends
    /// so. `file` is named in errors.
    ///
    /// # Errors
    /// Text of another form, with the place in it, and formats of another version.
    pub fn read(file: &str, text: &str) -> Result<Abilities, NoAbilities> {
        let wrong = |problem: String| NoAbilities { file: file.to_owned(), problem };
        let read: Abilities = if file.ends_with(".json") {
            serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?
        } else {
            toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?
        };
        match read.schema.as_str() {
            SCHEMA => Ok(read),
            other => Err(wrong(format!(
                "its schema is {other:?} and not {SCHEMA:?}; probe the target again"
            ))),
        }
    }

    /// The text of a file with this name: JSON if it ends so, else TOML.
    pub fn write(&self, file: &str) -> String {
        match file.ends_with(".json") {
            true => self.to_json(),
            false => toml::to_string(self).unwrap_or_default(),
        }
    }

    /// As one JSON document, with a line's end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The ability of this name.
    pub fn get(&self, name: &str) -> Option<&Ability> {
        self.abilities.iter().find(|ability| ability.name == name)
    }

    /// The number of the ability of this name, where it has one.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.get(name)?.value {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        }
    }

    /// The JSON Schema of these documents.
    pub fn schema() -> String {
        let schema = schemars::schema_for!(Abilities);
        let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
        text.push('\n');
        text
    }
}

impl Ability {
    /// True where it was tried or announced that this is not to be had.
    pub fn is_missing(&self) -> bool {
        matches!(self.status, Status::No | Status::Refused | Status::NoAnswer)
    }
}

impl Status {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Status::Yes => "yes",
            Status::No => "no",
            Status::Less => "granted less",
            Status::Refused => "refused",
            Status::NoAnswer => "no answer",
            Status::Untried => "not tried",
        }
    }
}

impl How {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            How::Announced => "announced",
            How::Tried => "tried",
            How::FoundBySearch => "found by search",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(true) => f.write_str("yes"),
            Value::Flag(false) => f.write_str("no"),
            Value::Number(number) => write!(f, "{number}"),
            Value::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Abilities {
        let ability = |name: &str, value, unit: Option<&str>| Ability {
            name: name.to_owned(),
            status: Status::Yes,
            value,
            unit: unit.map(str::to_owned),
            how: How::FoundBySearch,
            evidence: "\"two\" lines\nof it".to_owned(),
        };
        Abilities {
            schema: SCHEMA.to_owned(),
            target: "mosquitto@defaults".to_owned(),
            title: None,
            protocol: "mqtt".to_owned(),
            probed_at: "2026-11-21T12:00:00Z".to_owned(),
            weigh: "0.1.0".to_owned(),
            abilities: vec![
                ability("qos_max", Some(Value::Number(2)), None),
                ability("beyond", Some(Value::Text("closed".to_owned())), Some("word")),
                ability("retain", Some(Value::Flag(true)), None),
                ability("sys", None, None),
            ],
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        for file in ["a.toml", "a.json"] {
            let text = sample().write(file);
            assert_eq!(Abilities::read(file, &text).unwrap(), sample(), "{text}");
        }
        assert_eq!(sample().number("qos_max"), Some(2));
        assert_eq!((sample().number("retain"), sample().number("none")), (None, None));
    }

    #[test]
    fn what_is_no_abilities_is_named_with_its_place() {
        let error = Abilities::read("x.toml", "schema = 7").unwrap_err().to_string();
        assert!(error.contains("x.toml") && error.contains("line 1"), "{error}");
        let other = sample().write("x.json").replace("abilities/1", "abilities/9");
        let error = Abilities::read("x.json", &other).unwrap_err().to_string();
        assert!(error.contains("abilities/9") && error.contains("probe"), "{error}");
        let unknown = sample().write("x.toml").replace("probed_at", "probed_on");
        let error = Abilities::read("x.toml", &unknown).unwrap_err().to_string();
        assert!(error.contains("probed_on"), "{error}");
    }

    /// `schemas/abilities.schema.json` is what people and editors read.
    #[test]
    fn the_schema_that_is_kept_is_the_schema_that_is_written() {
        let path = format!("{}/../../schemas/abilities.schema.json", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("WEIGH_WRITE_SCHEMAS").is_some() {
            std::fs::write(&path, Abilities::schema()).unwrap();
        }
        let stored = std::fs::read_to_string(path).unwrap_or_default();
        let is_kept = stored == Abilities::schema();
        assert!(is_kept, "run this test once with WEIGH_WRITE_SCHEMAS=1 set");
    }
}
