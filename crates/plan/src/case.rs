//! A case whose load is decided.

use std::collections::BTreeMap;

use toml::Value;
use weigh_model::Load;
use weigh_model::background::Background;
use weigh_model::protocol::{Setting, SettingKind};

/// A case's keys with dots, and their values.
pub type Keys = BTreeMap<String, Value>;

/// A point of the matrix whose load is decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// The registry's name of the protocol.
    pub protocol: String,
    /// `reference`, the name of a managed target, or a URL without its secrets.
    pub target: String,
    /// The keys of the protocol's table that were given, without its name.
    pub settings: Keys,
    /// The keys of path and wire that were given: `path`, `path.delay`, `offload`.
    pub path: Keys,
    /// The keys of the target's share of the machine, and of what is known of it, that were given:
    /// `target.cores`, `target.abilities`.
    pub share: Keys,
    /// The keys of the pipeline that were given: `target.store`.
    pub stages: Keys,
    /// The load, complete.
    pub load: Load,
    /// What lies beneath it.
    pub background: Beneath,
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
        (SettingKind::Flag, "true" | "false") => Value::Boolean(text == "true"),
        (SettingKind::Integer(..) | SettingKind::Choice(_), _) => {
            number().map_or_else(|| text.into(), Value::Integer)
        }
        _ => text.into(),
    }
}

/// The text of a setting's value in a plan; `None` for a list, a table, a time of day.
pub fn setting_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(flag) => Some(flag.to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    }
}
