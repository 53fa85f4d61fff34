//! The examples are plans, and say why they are there.

use std::path::{Path, PathBuf};

use weigh_plan::forecast::{Expected, forecast};
use weigh_plan::matrix;

use crate::world::resolved;

#[test]
fn every_example_resolves_and_begins_with_three_lines_of_why() {
    let examples = examples();
    assert!(examples.len() >= 6, "{examples:?}");
    for path in examples {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().take(4).collect();
        assert!(lines[..3].iter().all(|line| line.starts_with("# ")), "{path:?}");
        assert!(lines[0].starts_with("# Why: "), "{path:?}");
        assert_eq!(lines[3], "#:schema ../schemas/plan.schema.json", "{path:?}");
        let plan = resolved(&text).plan;
        assert!(plan.question.is_some(), "{path:?} has no question");
        let loads: Vec<_> =
            plan.cases.iter().map(|case| matrix::case_of(&plan, case).unwrap().load).collect();
        let overhead = weigh_model::Nanos::from_millis(100);
        let cases: Vec<_> =
            loads.iter().map(|load| Expected { load, path: None, overhead }).collect();
        let seconds = forecast(&plan, &cases).time_least.as_secs_f64();
        assert!(seconds <= 60.0, "{path:?} takes {seconds} s, too long for a check");
    }
}

#[test]
fn one_of_them_answers_the_question() {
    let path = folder().join("mqtt-or-http.toml");
    let plan = resolved(&std::fs::read_to_string(path).unwrap()).plan;
    let question = plan.question.unwrap();
    assert!(question.contains("MQTT QoS 1") && question.contains("HTTP"), "{question}");
    assert_eq!(plan.load.size.map(|size| size.0), Some(120));
    let connections = |protocol: &str| -> Vec<i64> {
        let of = plan.cases.iter().filter(|case| case["protocol"].as_str() == Some(protocol));
        of.filter_map(|case| case["load.connections"].as_i64()).collect()
    };
    assert_eq!(connections("mqtt"), connections("http1"), "like is compared with like");
    let all = connections("mqtt");
    assert_eq!((all.first(), all.last()), (Some(&20), Some(&200)));
    assert!(plan.repeat.at_least >= 5);
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn examples() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    paths
}
