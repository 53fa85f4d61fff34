//! A case, typed: who is asked for what, over which path, with which share of the machine. Plans
//! and journals hold it as words, see [`crate::matrix`].

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weigh_model::background::Background;
use weigh_model::protocol::{Invalid, Setting, SettingKind};
use weigh_model::trial::Point;
use weigh_model::units::Bytes;
use weigh_model::{Load, Nanos, Pattern};

/// A case of a plan, decided. But for the load and what lies beneath it, it is written as it is
/// read: by plan keys with dots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The registry's name of the protocol.
    pub protocol: String,
    /// `reference`, the name of a managed target, or a URL without its secrets.
    pub target: String,
    /// Whether a relay stands between generator and target.
    #[serde(rename = "target.relay", default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<bool>,
    /// Whether packets may be larger than a wire's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offload: Option<Offload>,
    /// The file with what the target can do. It is heeded when the case is made, and not written:
    /// without it the case is the same.
    #[serde(rename = "target.abilities", default, skip_serializing)]
    pub abilities: Option<String>,
    /// What the target is given of the machine.
    #[serde(flatten)]
    pub share: Share,
    /// What is said of the pipeline.
    #[serde(flatten)]
    pub stages: Stages,
    /// The words of the path and of the protocol, whose values they themselves know: `path`,
    /// `path.delay`, `mqtt.qos`.
    #[serde(flatten)]
    pub words: Point,
    /// The load, complete.
    #[serde(skip, default = "unsaid")]
    pub load: Load,
    /// What lies beneath it.
    #[serde(skip)]
    pub background: Beneath,
}

impl Case {
    /// A case of which nothing else is said.
    pub fn new(protocol: impl Into<String>, target: impl Into<String>, load: Load) -> Case {
        Case {
            protocol: protocol.into(),
            target: target.into(),
            relay: None,
            offload: None,
            abilities: None,
            share: Share::default(),
            stages: Stages::default(),
            words: Point::new(),
            load,
            background: Beneath::default(),
        }
    }

    /// A case by its words, but for its load and what lies beneath it.
    ///
    /// # Errors
    /// If a key has a value that it does not take.
    pub fn of_words(words: Map<String, Value>) -> Result<Case, Invalid> {
        serde_json::from_value(Value::Object(words)).map_err(|error| {
            Invalid::new("case", error.to_string(), "write the case as `weigh` itself writes it")
        })
    }

    /// The settings of its protocol that are given, without the protocol's name, as texts.
    pub fn settings(&self) -> impl Iterator<Item = (&str, String)> {
        self.words.iter().filter_map(|(key, value)| {
            let key = key.strip_prefix(&self.protocol)?.strip_prefix('.')?;
            Some((key, setting_text(value)?))
        })
    }
}

/// Whether the kernel cuts and joins packets where nobody sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offload {
    /// Every packet is one that a wire would carry.
    Off,
    /// It does, and the wire is counted as captured.
    On,
}

/// What a target that we start is given of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// How many cores; one where nothing is said.
    #[serde(rename = "target.cores", default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// How much memory; all where nothing is said.
    #[serde(rename = "target.memory", default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
}

/// What is said of the pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stages {
    /// Which stages there are, in words.
    #[serde(rename = "target.stages", default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<String>,
    /// Where the last one keeps readings: `sqlite` or `memory`.
    #[serde(rename = "target.store", default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// Whether the database survives a power cut.
    #[serde(rename = "target.durable", default, skip_serializing_if = "Option::is_none")]
    pub durable: Option<bool>,
    /// The broker before the gateway.
    #[serde(rename = "target.broker", default, skip_serializing_if = "Option::is_none")]
    pub broker: Option<String>,
    /// Readings in one call of a stage that gathers, at most.
    #[serde(rename = "target.batch", default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u32>,
    /// How long such a stage waits for its batch to fill.
    #[serde(rename = "target.linger", default, skip_serializing_if = "Option::is_none")]
    pub linger: Option<Nanos>,
}

/// Whether a second workload lies beneath a case.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Beneath {
    /// The plan has none.
    #[default]
    Unasked,
    /// The case is weighed without it: the baseline.
    Off,
    /// It does.
    On(Box<Background>),
}

/// A setting's text as the value of a plan: numbers and flags as such.
pub fn setting_value(setting: &Setting, text: &str) -> Value {
    let number = || text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    match (setting.kind, text) {
        (SettingKind::Flag, "true" | "false") => Value::Bool(text == "true"),
        (SettingKind::Integer(..) | SettingKind::Choice(_), _) => {
            number().map_or_else(|| text.into(), Value::from)
        }
        _ => text.into(),
    }
}

/// The text of a setting's value in a plan; `None` for a list or a table.
pub fn setting_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A value of a plan's text as cases have it.
pub fn word(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(flag) => (*flag).into(),
        other => other.to_string().into(),
    }
}

/// What is written of `value`, key by key.
pub(crate) fn map(
    value: &impl Serialize,
    place: &'static str,
) -> Result<Map<String, Value>, Invalid> {
    let wrong = |said: String| Invalid::new(place, said, "leave it out");
    match serde_json::to_value(value).map_err(|error| wrong(error.to_string()))? {
        Value::Object(map) => Ok(map),
        other => Err(wrong(format!("{other} is no table"))),
    }
}

/// A load that is to be replaced by that of the case.
fn unsaid() -> Load {
    Load::closed(Pattern::Request, 0)
}
