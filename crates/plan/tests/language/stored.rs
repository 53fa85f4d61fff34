//! Plans as runs have stored them: what is written now is the same to the byte, and what was
//! written is read as the same cases.

use std::path::Path;

use weigh_model::plan::Plan;
use weigh_plan::{Case, background, matrix};

use crate::world::resolved;

const NAMES: [&str; 3] = ["everything", "patterns", "pipeline"];

fn stored(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language/stored");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn a_plan_is_written_as_it_was_stored() {
    for name in NAMES {
        let plan = resolved(&stored(&format!("{name}.plan.toml"))).plan;
        let written = stored(&format!("{name}.toml"));
        assert_eq!(toml::to_string(&plan).unwrap(), written, "{name}");
        assert_eq!(toml::from_str::<Plan>(&written).unwrap(), plan, "{name}");
        let journal = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&journal).unwrap(), plan, "{name}");
    }
}

#[test]
fn typed_cases_become_the_words_they_were_read_from() {
    for name in NAMES {
        let plan: Plan = toml::from_str(&stored(&format!("{name}.toml"))).unwrap();
        let cases: Result<Vec<Case>, _> =
            plan.cases.iter().map(|point| matrix::case_of(&plan, point)).collect();
        let cases = cases.unwrap();
        assert_eq!(matrix::matrix(&cases).unwrap(), (plan.load, plan.cases), "{name}");
        assert_eq!(background::shared(&cases).unwrap(), plan.background, "{name}");
    }
}

#[test]
fn what_a_case_does_not_take_is_refused_by_name() {
    let plan: Plan = toml::from_str(&stored("pipeline.toml")).unwrap();
    for (key, value, part) in [
        ("load.colour", "red", "colour"),
        ("load.size", "64", "64B"),
        ("offload", "maybe", "maybe"),
        ("target.cores", "two", "two"),
    ] {
        let mut point = plan.cases[0].clone();
        point.insert(key.to_owned(), value.into());
        let said = matrix::case_of(&plan, &point).unwrap_err().to_string();
        assert!(said.contains(part), "{key}: {said}");
    }
    let mut older = plan.cases[0].clone();
    older.insert("http1.of_an_older_version".to_owned(), true.into());
    let case = matrix::case_of(&plan, &older).unwrap();
    assert_eq!(matrix::matrix(&[case]).unwrap().1[0], older, "unknown keys are kept");
}
