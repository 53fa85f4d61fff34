//! The JSON Schema of plans, for editors that complete and check. Generated from the table of keys
//! that the reader uses.

use serde_json::{Map, Value, json};
use weigh_model::metering::SHUNT_CHIPS;
use weigh_model::path::PRESETS;
use weigh_model::{Pattern, Protocol};

use crate::keys::{Key, Keys};
use crate::kind::Kind;

/// The schema of plans with these protocols.
pub fn json_schema(protocols: &'static [&'static dyn Protocol]) -> String {
    let keys = Keys::new(protocols);
    let mut schema = Schema { keys: &keys, definitions: Map::new() };
    let mut top = schema.places("value", |_| true, fixed);
    let vary = object(schema.table("axis", |key| key.is_varied, axis));
    let case = object(schema.table("value", |key| key.is_varied, fixed));
    let stop = |key: &Key| key.is_varied && key.kind.is_ordered();
    let stop = object(schema.table("stop", stop, |_| several(Kind::Condition)));
    let cases = json!({ "type": "array", "minItems": 1, "items": case });
    let group = json!({ "type": "array", "minItems": 2, "items": { "type": "string" } });
    let zip = json!({ "type": "array", "items": group });
    for (name, table, doc) in [
        ("vary", vary, "Every list is an axis; the matrix is their product."),
        ("case", cases, "Cases one by one; axes multiply them."),
        ("zip", zip, "Axes of [vary] that advance together."),
        ("stop", stop, "Conditions after which the larger values of an axis are not measured."),
    ] {
        top.insert(name.to_owned(), described(table, doc));
    }
    let document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:weigh:schema:plan:1",
        "title": "weigh/plan/1",
        "description": "A plan of Weighbridge, for `weigh run`.",
        "type": "object",
        "properties": top,
        "additionalProperties": false,
        "$defs": schema.definitions,
    });
    format!("{document:#}\n")
}

/// A schema in progress: each key is defined once, under its name.
struct Schema<'k> {
    keys: &'k Keys,
    definitions: Map<String, Value>,
}

impl Schema<'_> {
    /// The keys at their places: `load.size` in the table `load`.
    fn places(
        &mut self,
        kind: &str,
        is_meant: impl Fn(&Key) -> bool,
        schema: impl Fn(&Key) -> Value,
    ) -> Map<String, Value> {
        let mut properties = Map::new();
        for key in self.keys.iter().filter(|key| is_meant(key)) {
            let name = format!("{kind}-{}", key.name);
            let reference = json!({ "$ref": format!("#/$defs/{name}") });
            self.definitions.insert(name, described(schema(key), &key.doc));
            for written in self.keys.written(&key.name) {
                insert(&mut properties, &written, reference.clone());
            }
        }
        properties
    }

    /// The keys at their places, and also as resolved plans write them: in quotation marks, with
    /// dots.
    fn table(
        &mut self,
        kind: &str,
        is_meant: impl Fn(&Key) -> bool,
        schema: impl Fn(&Key) -> Value,
    ) -> Map<String, Value> {
        let mut properties = self.places(kind, &is_meant, schema);
        for key in self.keys.iter().filter(|key| is_meant(key) && key.name.contains('.')) {
            let reference = json!({ "$ref": format!("#/$defs/{kind}-{}", key.name) });
            for written in self.keys.written(&key.name) {
                properties.insert(written, reference.clone());
            }
        }
        properties
    }
}

/// Puts a key at its place.
fn insert(properties: &mut Map<String, Value>, name: &str, schema: Value) {
    let Some((first, rest)) = name.split_once('.') else {
        properties.insert(name.to_owned(), schema);
        return;
    };
    let entry = properties.entry(first).or_insert_with(|| object(Map::new()));
    if entry.get("properties").is_none() && entry.get("anyOf").is_none() {
        // A target is a name, or a table of a name and other keys.
        *entry = json!({ "anyOf": [entry.clone(), object(Map::new())] });
    }
    let table = if entry.get("anyOf").is_some() { &mut entry["anyOf"][1] } else { entry };
    if let Some(properties) = table["properties"].as_object_mut() {
        insert(properties, rest, schema);
    }
}

fn object(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn described(mut schema: Value, doc: &str) -> Value {
    schema["description"] = doc.into();
    schema
}

fn fixed(key: &Key) -> Value {
    if key.is_list { several(key.kind) } else { one(key.kind) }
}

fn several(kind: Kind) -> Value {
    json!({ "anyOf": [one(kind), { "type": "array", "items": one(kind) }] })
}

fn axis(key: &Key) -> Value {
    let range = json!({ "type": "string", "pattern": r"^.+\.\..+ (step|times) .+$" });
    let list = |items: Value| -> Value {
        json!({ "type": "array", "minItems": 1, "uniqueItems": true, "items": items })
    };
    if key.kind.is_ordered() {
        json!({ "anyOf": [list(json!({ "anyOf": [one(key.kind), range] })), range] })
    } else {
        list(one(key.kind))
    }
}

/// One value of a kind.
fn one(kind: Kind) -> Value {
    let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    match kind {
        Kind::Count(low, high) => json!({
            "type": ["integer", "string"], "minimum": low, "maximum": high,
            "pattern": r"^[0-9.]+(e[0-9]+|[kKmM])$",
        }),
        Kind::Size => text(r"^[0-9.]+(e[0-9]+)? *([kKMGT]i?[bB]?|[bB])$"),
        Kind::Duration => text(r"^([0-9.]+(e[0-9]+)? *[a-zµ]+ *)+$"),
        Kind::Rate => text(r"^[0-9.]+(e[0-9]+|[kKmM])?/[0-9]*[a-z]+(/client)?$"),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Choice(words) => {
            let numbers = words.iter().filter_map(|word| word.parse::<i64>().ok());
            let words = words.iter().map(|word| Value::from(*word));
            let all: Vec<Value> = words.chain(numbers.map(Value::from)).collect();
            json!({ "enum": all })
        }
        Kind::Pattern => json!({ "enum": Pattern::ALL.map(Pattern::name) }),
        Kind::Topology => json!({ "enum": ["fan-in", "fan-out", "pairs", "shared"] }),
        Kind::Split => json!({ "enum": ["exact", "ceil"] }),
        Kind::TargetLife => json!({ "enum": ["fresh", "kept"] }),
        Kind::Durability => {
            text(r"^(unknown|none|memory|page-cache|fsync(=[0-9.]+[a-zµ]+)?|replicated=[0-9]+)$")
        }
        Kind::Path => {
            let mut presets: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
            presets.push(r".+\.toml");
            text(&format!("^({})$", presets.join("|")))
        }
        Kind::Share => text(r"^[0-9.]+ *%$"),
        Kind::Loss => text(r"^([0-9.]+ *%|gilbert-elliott(:[0-9.]+ *%){4})$"),
        Kind::Jitter => {
            text(r"^(none|((uniform|normal|exponential):)?[0-9.]+ *[a-zµ]+|pareto:.+:.+:.+)$")
        }
        Kind::Reorder => text(r"^[0-9.]+ *%: *[0-9.]+ *[a-zµ]+$"),
        Kind::Steps => {
            text(r"^[0-9.]+ *[a-zµ]+( +[a-z_]+=[^ ;]+)+(; *[0-9.]+ *[a-zµ]+( +[a-z_]+=[^ ;]+)+)*$")
        }
        Kind::BitRate => text(r"^[0-9.]+ *[kMG]?bit(/s)?$"),
        Kind::Battery => text(r"^[0-9.]+ *m?(Ah|Wh) *@ *[0-9.]+ *m?V$"),
        Kind::Arrival => {
            text(r"^(closed|burst|constant|poisson|periodic|each-second|(ramp|steps|trace):.+)$")
        }
        Kind::Join => text(r"^[0-9]+ every +[0-9.]+ *[a-zµ]+$"),
        Kind::Body => text(
            r"^(sealed[^:]*:)?(readings|filler|(text|template):.*|(lines|file):.+)$|^sealed[^:]*$",
        ),
        Kind::Condition => text(r"^(first loss|.+(<|>|=).+)$"),
        Kind::Precision => text(r"^.+ within .+%$"),
        Kind::Meter => {
            let chips = SHUNT_CHIPS.join("|");
            text(&format!("^(auto|none|pmic|(rapl|battery|ina2xx|{chips})(:.+)?|csv:.+)$"))
        }
        Kind::Lookout => {
            text(r"^(.+=)?(pid:[0-9]+|port:[0-9]+|container:.+|cgroup:.+|weigh-observe://.+)$")
        }
        Kind::Text => json!({ "type": "string" }),
    }
}
