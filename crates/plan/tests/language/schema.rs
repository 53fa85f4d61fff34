//! The schema for editors.

use serde_json::Value;
use weigh_plan::keys::Keys;
use weigh_plan::schema::json_schema;

#[test]
fn the_schema_in_the_repository_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/plan.schema.json");
    let current = json_schema(weigh_protocols::PROTOCOLS);
    if std::env::var_os("WEIGH_WRITE_SCHEMAS").is_some() {
        std::fs::write(path, &current).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(stored == current, "run this test once with WEIGH_WRITE_SCHEMAS=1 set");
}

#[test]
fn every_key_is_in_it_with_its_meaning() {
    let schema: Value = serde_json::from_str(&json_schema(weigh_protocols::PROTOCOLS)).unwrap();
    let keys = Keys::new(weigh_protocols::PROTOCOLS);
    for key in keys.iter() {
        for written in keys.written(&key.name) {
            let place = place(&written);
            let reference = schema.pointer(&place).and_then(|found| found["$ref"].as_str());
            let reference = reference.unwrap_or_else(|| panic!("{place} is not there"));
            let found = schema.pointer(reference.trim_start_matches('#'));
            let told = found.and_then(|found| found["description"].as_str());
            assert_eq!(told, Some(key.doc.as_str()), "{place}");
        }
    }
}

/// Where a key stands in the schema. What is a value, or a table of more, has two forms.
fn place(written: &str) -> String {
    let (mut place, mut name) = (String::new(), String::new());
    let parts: Vec<&str> = written.split('.').collect();
    for (index, part) in parts.iter().enumerate() {
        name = if name.is_empty() { (*part).to_owned() } else { format!("{name}.{part}") };
        place += &format!("/properties/{part}");
        let plain = name.strip_prefix("background.").unwrap_or(&name);
        let has_two_forms = match plain {
            "load.body" => true,
            "target" | "path" | "background" => plain == name,
            _ => false,
        };
        if has_two_forms {
            place += if index + 1 == parts.len() { "/anyOf/0" } else { "/anyOf/1" };
        }
    }
    place
}
