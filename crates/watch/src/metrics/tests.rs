//! The text is read back by a strict reader of OpenMetrics 1.0.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use weigh_model::event::{Event, Interval};
use weigh_model::live::{Quantiles, Second, TrialStanding};

use super::*;

const STORED: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/stored/compare/2026-11-23T03-55-39-compare");

/// Samples by name and labels. Refuses what the specification forbids: a sample without a family, a
/// family twice or without samples, a unit that is not the name's end, a suffix of another type, a
/// sample twice, and anything behind `# EOF`.
fn strictly(text: &str) -> BTreeMap<String, f64> {
    let content = text.strip_suffix("# EOF\n").expect("the end is marked");
    let (mut samples, mut families) = (BTreeMap::new(), BTreeSet::new());
    let mut family = (String::new(), String::new());
    for line in content.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "TYPE", name, kind] => {
                assert!(families.insert(name.to_owned()), "{name} twice");
                family = (name.to_owned(), kind.to_owned());
            }
            ["#", "UNIT", name, unit] => {
                assert!(name == family.0 && name.ends_with(&format!("_{unit}")), "{line}");
            }
            ["#", "HELP", name, about] => assert!(name == family.0 && about.ends_with('.')),
            _ => {
                let (sample, value) = line.rsplit_once(' ').expect(line);
                let name = sample.split('{').next().unwrap();
                let suffix = match family.1.as_str() {
                    "gauge" | "summary" => "",
                    "counter" => "_total",
                    "info" => "_info",
                    other => panic!("{other}"),
                };
                assert_eq!(name, format!("{}{suffix}", family.0), "{line}");
                let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
                assert!(name.chars().all(is_letter), "{name}");
                let value: f64 = value.parse().expect(line);
                assert!(family.1 != "counter" || value >= 0.0, "{line}");
                assert!(samples.insert(sample.to_owned(), value).is_none(), "{sample} twice");
            }
        }
    }
    for name in families {
        assert!(samples.keys().any(|sample| sample.starts_with(&name)), "{name} has no sample");
    }
    samples
}

/// The stored run has 12 trials of 60 messages, and lost none.
#[test]
fn a_stored_run_has_its_ledger_and_nothing_of_the_moment() {
    let text = Exposed::new(Subject::at(Path::new(STORED))).text();
    let samples = strictly(&text);
    assert_eq!(samples["weigh_watch_up"], 1.0);
    assert_eq!(samples["weigh_run_recording"], 0.0);
    assert_eq!(samples["weigh_run_trials{outcome=\"done\"}"], 12.0);
    assert_eq!(samples["weigh_ledger_messages_total{term=\"sent\"}"], 720.0);
    assert_eq!(samples["weigh_ledger_messages_total{term=\"lost\"}"], 0.0);
    let info = samples.keys().find(|name| name.starts_with("weigh_run_info")).unwrap();
    assert!(info.contains("run=\"2026-11-23T03-55-39-compare\"") && info.contains("version="));
    assert!(!text.contains("weigh_live"), "{text}");
}

#[test]
fn a_run_that_is_gone_is_down() {
    let folder = tempfile::tempdir().unwrap();
    let mut exposed = Exposed::new(Subject::at(folder.path()));
    assert_eq!(strictly(&exposed.text())["weigh_watch_up"], 0.0);
    std::fs::copy(Path::new(STORED).join("journal.jsonl"), folder.path().join("journal.jsonl"))
        .unwrap();
    assert_eq!(strictly(&exposed.text())["weigh_watch_up"], 1.0, "it is opened again");
    std::fs::remove_file(folder.path().join("journal.jsonl")).unwrap();
    let samples = strictly(&exposed.text());
    assert_eq!((samples["weigh_watch_up"], samples.len()), (0.0, 1));
}

/// A state in its second trial, and the second that it shows.
fn running() -> RunState {
    let mut state = RunState::default();
    let stored = std::fs::read_to_string(Path::new(STORED).join("journal.jsonl")).unwrap();
    stored.lines().take(8).for_each(|line| state.add_line(line.as_bytes()));
    let trial = state.trials[1].id.clone();
    assert_eq!(state.current, Some(1));
    let counts = Interval {
        trial,
        at_ns: 3_000_000_000,
        sent: 500,
        delivered: 499,
        length_ns: Some(1_000_000_000),
        generator_cpu_percent: Some(25.0),
        ..Interval::default()
    };
    let interval = Interval {
        at_ns: 2_500_000_000,
        length_ns: Some(100_000_000),
        target_cpu_percent: Some(50.0),
        ..counts.clone()
    };
    state.add_line(&serde_json::to_vec(&Event::Interval(interval)).unwrap());
    let quantiles = Quantiles {
        values: 499,
        response_ns: [Some(250_000), None, None, None, Some(2_000_000), None],
        ..Quantiles::default()
    };
    let standing = TrialStanding {
        number: 2,
        of: [12, 12],
        left_ns: [9_000_000_000, 20_000_000_000],
        passed_ns: 4_000_000_000,
        offered_per_s: Some(500.0),
        ..TrialStanding::default()
    };
    state.add_seconds(vec![Second {
        number: 1,
        unix_ms: 100_000,
        standing,
        counts: Some(counts),
        quantiles: Some(quantiles),
        end: 1,
        ..Second::default()
    }]);
    state
}

#[test]
fn the_current_second_is_exposed_in_base_units_until_it_is_old() {
    let state = running();
    let resources =
        Resources { open_files: Some(40), open_files_max: Some(1024), ..Resources::default() };
    let at = |unix_ms, is_recorded| {
        strictly(&text(Some(&Seen { state: &state, is_recorded, resources, unix_ms })))
    };
    let now = at(105_000, true);
    for (name, expected) in [
        ("weigh_run_trial", 2.0),
        ("weigh_run_planned_trials{bound=\"at most\"}", 12.0),
        ("weigh_run_left_seconds{bound=\"at least\"}", 5.0),
        ("weigh_live_offered_per_second", 500.0),
        ("weigh_live_sent_per_second", 500.0),
        ("weigh_live_delivered_per_second", 499.0),
        ("weigh_live_response_time_seconds{quantile=\"0.5\"}", 0.000_25),
        ("weigh_live_response_time_seconds{quantile=\"0.99\"}", 0.002),
        ("weigh_live_target_cpu_ratio", 0.5),
        ("weigh_live_generator_cpu_ratio", 0.25),
        ("weigh_generator_open_files", 40.0),
        ("weigh_generator_open_files_max", 1024.0),
    ] {
        assert_eq!(now.get(name), Some(&expected), "{name}");
    }
    assert!(!now.contains_key("weigh_live_response_time_seconds{quantile=\"0.9\"}"));
    for old in [at(105_001, true), at(100_000, false)] {
        assert!(!old.keys().any(|name| name.starts_with("weigh_live")), "{old:?}");
        assert_eq!(old["weigh_ledger_messages_total{term=\"sent\"}"], 60.0);
    }
}

/// A name that is misspelt in the dashboard would show an empty panel.
#[test]
fn the_dashboard_asks_only_for_what_is_exposed() {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/grafana/weighbridge.json");
    let dashboard = std::fs::read_to_string(place).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let mut state = running();
    let run = state.run.as_mut().unwrap();
    run.thresholds = vec!["p99 < 50ms".parse().unwrap()];
    let lost = state.ledger.as_mut().unwrap();
    lost.causes.insert(weigh_model::ledger::Cause::Timeout, 1);
    let mut second = state.seconds.pop_back().unwrap();
    let quantiles = second.quantiles.as_mut().unwrap();
    quantiles.send_lag_ns = [Some(1_000); 6];
    state.seconds.push_back(second);
    let interval = Interval {
        trial: state.trials[1].id.clone(),
        at_ns: 2_600_000_000,
        target_cpu_percent: Some(50.0),
        target_memory_bytes: Some(1),
        ..Interval::default()
    };
    state.add_line(&serde_json::to_vec(&Event::Interval(interval)).unwrap());
    let resources = Resources {
        open_files: Some(40),
        open_files_max: Some(1024),
        ports_max: Some(28_232),
        memory_bytes: Some(1 << 20),
        cpu_s: Some(1.5),
    };
    let seen = Seen { state: &state, is_recorded: true, resources, unix_ms: 100_000 };
    let samples = strictly(&text(Some(&seen)));
    let exposed: BTreeSet<&str> =
        samples.keys().map(|sample| sample.split('{').next().unwrap()).collect();
    let mut asked = BTreeSet::new();
    for target in dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| {
        assert!(panel["title"].is_string());
        panel["targets"].as_array().unwrap()
    }) {
        let expression = target["expr"].as_str().unwrap();
        let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        asked.extend(words.filter(|word| word.starts_with("weigh_")));
    }
    assert!(asked.len() > 15, "{asked:?}");
    let missing: Vec<_> = asked.difference(&exposed).collect();
    assert!(missing.is_empty(), "{missing:?} of {exposed:?}");
}
