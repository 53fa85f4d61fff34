//! A typed case: protocol, target, path, share of the machine and load. Plans and journals hold it
//! as words, see [`crate::matrix`].

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weigh_model::background::Background;
use weigh_model::protocol::{Invalid, Setting, SettingKind};
use weigh_model::trial::Point;
use weigh_model::units::Bytes;
use weigh_model::{Durability, Load, Nanos, Pattern};

/// A resolved case of a plan. Except for the load and the background, it is written as it is read:
/// by plan keys with dots.
///
/// # Examples
///
/// ```
/// use weigh_model::{Load, Pattern};
/// use weigh_plan::Case;
///
/// let mut case = Case::new("mqtt", "reference", Load::closed(Pattern::Publish, 2));
/// case.words.insert("mqtt.qos".to_owned(), 1.into());
/// let settings: Vec<_> = case.settings().collect();
/// assert_eq!(settings, [("qos", "1".to_owned())]);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Name of the protocol in the registry.
    pub protocol: String,
    /// `reference`, the name of a managed target, or a URL without its secrets.
    pub target: String,
    /// True if a relay is between generator and target.
    #[serde(rename = "target.relay", default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<bool>,
    /// What a confirmation means on a reference server, or is said to mean on a target given by
    /// URL.
    #[serde(rename = "target.durability", default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// Segmentation offloads, if the case sets them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offload: Option<Offload>,
    /// The file with the target's abilities. It is used when the case is made, and not written: the
    /// durability that it states is.
    #[serde(rename = "target.abilities", default, skip_serializing)]
    pub abilities: Option<String>,
    /// Cores and memory of the target.
    #[serde(flatten)]
    pub share: Share,
    /// Keys of the pipeline.
    #[serde(flatten)]
    pub stages: Stages,
    /// Words of the path and of the protocol, which define their values: `path`, `path.delay`,
    /// `mqtt.qos`.
    #[serde(flatten)]
    pub words: Point,
    /// The complete load.
    #[serde(skip, default = "unsaid")]
    pub load: Load,
    /// Its background.
    #[serde(skip)]
    pub background: BackgroundChoice,
}

impl Case {
    /// Makes a case with defaults.
    pub fn new(protocol: impl Into<String>, target: impl Into<String>, load: Load) -> Case {
        Case {
            protocol: protocol.into(),
            target: target.into(),
            relay: None,
            durability: None,
            offload: None,
            abilities: None,
            share: Share::default(),
            stages: Stages::default(),
            words: Point::new(),
            load,
            background: BackgroundChoice::default(),
        }
    }

    /// Parses the words of a case, without its load and background.
    ///
    /// # Errors
    /// An invalid value of a key.
    pub fn of_words(words: Map<String, Value>) -> Result<Case, Invalid> {
        serde_json::from_value(Value::Object(words)).map_err(|error| {
            Invalid::new("case", error.to_string(), "write the case as `weigh` itself writes it")
        })
    }

    /// The given settings of its protocol, without the protocol's name, as texts.
    pub fn settings(&self) -> impl Iterator<Item = (&str, String)> {
        self.words.iter().filter_map(|(key, value)| {
            let key = key.strip_prefix(&self.protocol)?.strip_prefix('.')?;
            Some((key, setting_text(value)?))
        })
    }
}

/// Segmentation offloads of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offload {
    /// Off: every packet is one that a wire would carry.
    Off,
    /// On: the wire is counted as captured.
    On,
}

/// Share of the machine for a target that Weighbridge starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Number of cores; one by default.
    #[serde(rename = "target.cores", default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Processor time in percent of one core; all of its cores by default.
    #[serde(rename = "target.cpu_percent", default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<u32>,
    /// Memory; unlimited by default.
    #[serde(rename = "target.memory", default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
}

/// Keys of the pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stages {
    /// Names of the stages.
    #[serde(rename = "target.stages", default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<String>,
    /// Store of the last stage: `sqlite` or `memory`.
    #[serde(rename = "target.store", default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// True if the database survives a power cut.
    #[serde(rename = "target.durable", default, skip_serializing_if = "Option::is_none")]
    pub durable: Option<bool>,
    /// The broker in front of the gateway.
    #[serde(rename = "target.broker", default, skip_serializing_if = "Option::is_none")]
    pub broker: Option<String>,
    /// Maximum number of readings in one call of a stage that batches.
    #[serde(rename = "target.batch", default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u32>,
    /// Time that such a stage waits for its batch to fill.
    #[serde(rename = "target.linger", default, skip_serializing_if = "Option::is_none")]
    pub linger: Option<Nanos>,
}

/// The background of a case.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum BackgroundChoice {
    /// The plan has no background.
    #[default]
    Unasked,
    /// The case is measured without it: the baseline.
    Off,
    /// The case is measured with it.
    On(Box<Background>),
}

/// Converts the text of a setting to the value of a plan: numbers and flags keep their type.
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

/// Converts a value of a plan's text to that of a case.
pub fn word(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(flag) => (*flag).into(),
        other => other.to_string().into(),
    }
}

/// The keys of `value` as written.
pub(crate) fn map(
    value: &impl Serialize,
    place: &'static str,
) -> Result<Map<String, Value>, Invalid> {
    let wrong = |said: String| Invalid::new(place, said, "leave it out");
    match serde_json::to_value(value).map_err(|error| wrong(error.to_string()))? {
        Value::Object(map) => Ok(map),
        other => Err(wrong(format!("{other} is not a table"))),
    }
}

/// A placeholder that the case's load replaces.
fn unsaid() -> Load {
    Load::closed(Pattern::Request, 0)
}
