//! Cases with their complete loads, and the resolved plan they are written as: what all of them
//! share stands once in the plan's load, what differs stands in the case.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};
use weigh_model::plan::Plan;
use weigh_model::protocol::{Invalid, Setting, SettingKind};
use weigh_model::trial::Point;
use weigh_model::{Load, Pattern};

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
    /// The load, complete.
    pub load: Load,
}

/// The load that `cases` share, and the keys of each.
///
/// # Errors
/// If a number is too large for TOML.
pub fn matrix(cases: &[Decided]) -> Result<(Load, Vec<Keys>), Invalid> {
    let loads = cases.iter().map(|case| table(&case.load)).collect::<Result<Vec<_>, _>>()?;
    let all: BTreeSet<&String> = loads.iter().flat_map(Table::keys).collect();
    let is_shared = |key: &str| {
        let mut values = loads.iter().map(|load| load.get(key));
        let first = values.next();
        values.all(|value| Some(value) == first)
    };
    let varying: Vec<&String> = all.into_iter().filter(|key| !is_shared(key)).collect();
    let mut base = loads.first().cloned().unwrap_or_default();
    // A key that some cases are without cannot be taken away by a case: it stands in none.
    base.retain(|key, _| loads.iter().all(|load| load.contains_key(key)));
    // Nobody asks how many subscribers a request has: cases without them need not tell it.
    let without = cases.iter().position(|case| case.load.pattern != Pattern::Deliver);
    for key in OF_DELIVER {
        let value = without.and_then(|index| loads[index].get(key));
        base.extend(value.map(|value| (key.to_owned(), value.clone())));
    }
    let keys = cases.iter().zip(&loads).map(|(case, load)| keys(case, load, &varying)).collect();
    Ok((load(base)?, keys))
}

/// The complete load of a case of a resolved plan.
///
/// # Errors
/// If the case has a key of `load` that there is not, or a value that the key does not take.
pub fn load_of(plan: &Plan, case: &Keys) -> Result<Load, Invalid> {
    let mut merged = table(&plan.load)?;
    for (key, value) in case {
        if let Some(key) = key.strip_prefix(LOAD) {
            merged.insert(key.to_owned(), value.clone());
        }
    }
    load(merged)
}

/// The case as journals and reports have it.
pub fn point_of(case: &Keys) -> Point {
    case.iter().map(|(key, value)| (key.clone(), json(value))).collect()
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

fn keys(case: &Decided, load: &Table, varying: &[&String]) -> Keys {
    let mut keys = Keys::new();
    keys.insert("protocol".to_owned(), case.protocol.as_str().into());
    keys.insert("target".to_owned(), case.target.as_str().into());
    for (key, value) in load {
        let delivers = case.load.pattern == Pattern::Deliver;
        let is_told = if OF_DELIVER.contains(&key.as_str()) {
            delivers && (key == "subscribers" || varying.contains(&key))
        } else {
            ALWAYS_TOLD.contains(&key.as_str()) || varying.contains(&key)
        };
        if is_told {
            keys.insert(format!("{LOAD}{key}"), value.clone());
        }
    }
    for (key, value) in &case.settings {
        keys.insert(format!("{}.{key}", case.protocol), value.clone());
    }
    keys
}

fn table(load: &Load) -> Result<Table, Invalid> {
    Table::try_from(load)
        .map_err(|error| Invalid::new("load", error.to_string(), "give whole numbers below 2^63"))
}

fn load(table: Table) -> Result<Load, Invalid> {
    table.try_into().map_err(|error: toml::de::Error| {
        Invalid::new("load", error.message(), "write the load as `weigh` itself writes it")
    })
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Boolean(flag) => (*flag).into(),
        other => other.to_string().into(),
    }
}

/// What the keys of a load begin with.
const LOAD: &str = "load.";

/// Keys of the load that every point has, so that points of different runs can be put side by
/// side.
const ALWAYS_TOLD: [&str; 4] = ["pattern", "connections", "arrival", "rate"];

/// Keys that mean something in the pattern `deliver` only.
pub const OF_DELIVER: [&str; 2] = ["subscribers", "topology"];
