//! What editors are told.

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
            let place = match written.as_str() {
                "target" => "/properties/target/anyOf/0".to_owned(),
                "target.name" => "/properties/target/anyOf/1/properties/name".to_owned(),
                "target.overload" => "/properties/target/anyOf/1/properties/overload".to_owned(),
                name => format!("/properties/{}", name.replace('.', "/properties/")),
            };
            let reference = schema.pointer(&place).and_then(|found| found["$ref"].as_str());
            let reference = reference.unwrap_or_else(|| panic!("{place} is not there"));
            let found = schema.pointer(reference.trim_start_matches('#'));
            let told = found.and_then(|found| found["description"].as_str());
            assert_eq!(told, Some(key.doc.as_str()), "{place}");
        }
    }
}
