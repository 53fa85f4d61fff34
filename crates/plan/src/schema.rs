//! The JSON Schema of plans, for editors that complete and check while one types. Made from the
//! same table of keys that reads them.

use serde_json::{Map, Value, json};
use weigh_model::{Pattern, Protocol};

use crate::keys::{Key, Keys};
use crate::kind::Kind;

/// The schema of a plan over these protocols.
pub fn json_schema(protocols: &'static [&'static dyn Protocol]) -> String {
    let keys = Keys::new(protocols);
    let mut top = Map::new();
    for key in keys.iter() {
        insert(&mut top, &key.name, documented(key, fixed(key)));
    }
    top.insert(
        "vary".to_owned(),
        described(table(&keys, axis), "Every list is an axis; the matrix is their product."),
    );
    let case = table(&keys, |key| one(key.kind));
    let cases = json!({ "type": "array", "minItems": 1, "items": case });
    top.insert("case".to_owned(), described(cases, "Cases one by one; axes multiply them."));
    let group = json!({ "type": "array", "minItems": 2, "items": { "type": "string" } });
    let zip = json!({ "type": "array", "items": group });
    top.insert("zip".to_owned(), described(zip, "Axes of [vary] that advance together."));
    let ordered = |key: &Key| key.kind.is_ordered().then(|| several(Kind::Condition));
    let stop = chosen(&keys, ordered);
    let doc = "Conditions after which the larger values of an axis are not weighed any more.";
    top.insert("stop".to_owned(), described(stop, doc));
    for protocol in protocols {
        for alias in protocol.aliases() {
            let own = top.get(protocol.name()).cloned().unwrap_or_default();
            top.insert((*alias).to_owned(), own);
        }
    }
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "weigh/plan/1",
        "description": "A plan of Weighbridge: what `weigh run` weighs.",
        "type": "object",
        "properties": top,
        "additionalProperties": false,
    });
    format!("{schema:#}\n")
}

/// A table whose keys are those of the cases.
fn table(keys: &Keys, schema: impl Fn(&Key) -> Value) -> Value {
    chosen(keys, |key| Some(schema(key)))
}

fn chosen(keys: &Keys, schema: impl Fn(&Key) -> Option<Value>) -> Value {
    let mut properties = Map::new();
    for key in keys.iter().filter(|key| key.is_varied) {
        let Some(schema) = schema(key) else { continue };
        let schema = documented(key, schema);
        insert(&mut properties, &key.name, schema.clone());
        // Resolved plans write the same keys in quotation marks.
        if key.name.contains('.') {
            properties.insert(key.name.clone(), schema);
        }
    }
    object(properties)
}

/// Puts a key at its place: `load.size` into the table `load`.
fn insert(properties: &mut Map<String, Value>, name: &str, schema: Value) {
    if name == "target" || name == "target.overload" {
        return target(properties, name, schema);
    }
    let Some((first, rest)) = name.split_once('.') else {
        properties.insert(name.to_owned(), schema);
        return;
    };
    let entry = properties.entry(first).or_insert_with(|| object(Map::new()));
    if name == "load.connections" {
        entry["properties"]["publishers"] = schema.clone();
    }
    entry["properties"][rest] = schema;
}

/// A target is a name, or a table of a name and what else is said of it.
fn target(properties: &mut Map<String, Value>, name: &str, schema: Value) {
    let mut inner = Map::new();
    let key = if name == "target" { "name" } else { "overload" };
    match properties.remove("target") {
        Some(Value::Object(mut before)) => {
            let choices = before.remove("anyOf").unwrap_or_default();
            let plain = choices[0].clone();
            let mut table = choices[1].clone();
            table["properties"][key] = schema;
            properties.insert("target".to_owned(), json!({ "anyOf": [plain, table] }));
        }
        _ => {
            inner.insert(key.to_owned(), schema.clone());
            let choices = json!({ "anyOf": [schema, object(inner)] });
            properties.insert("target".to_owned(), choices);
        }
    }
}

fn object(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn documented(key: &Key, schema: Value) -> Value {
    described(schema, &key.doc)
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
        Kind::Count(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
        Kind::Size => text(r"^[0-9.]+ *([kKMGT]i?)?[bB]$"),
        Kind::Duration => text(r"^([0-9]+ *[a-zµ]+ *)+$"),
        Kind::Rate => text(r"^[0-9.]+[kM]?/[0-9]*[a-z]+(/client)?$"),
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
        Kind::Arrival => {
            text(r"^(closed|burst|constant|poisson|periodic|ramp:.+|steps:.+|trace:.+)$")
        }
        Kind::Body => text(r"^(readings|filler|(text|template):.*|(lines|file):.+)$"),
        Kind::Condition => text(r"^(first loss|.+(<|>|=).+)$"),
        Kind::Precision => text(r"^.+ within .+%$"),
        Kind::Text => json!({ "type": "string" }),
    }
}
