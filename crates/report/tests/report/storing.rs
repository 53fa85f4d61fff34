//! Rule L21: only equal durability is compared, unless it is the question; the unknown is compared
//! with a warning; tables name it where it matters.

use weigh_model::Durability;
use weigh_model::event::Event;
use weigh_report::summary::Verdict;
use weigh_report::table::render;
use weigh_report::{Style, Summary};

use crate::story::{Told, started};

/// Five repetitions of each lane: protocol, target, durability, and the stated one in its point.
fn summary(lanes: &[(&'static str, &'static str, Option<&str>, bool)]) -> Summary {
    let mut events = vec![started("constant")];
    for (protocol, target, durability, is_stated) in lanes {
        for repetition in 0..5 {
            let metrics = &[("target_cpu_us_per_message", 5.0)];
            let told = Told { repetition, metrics, ..Told::new(protocol, None, target) };
            events.extend(told.events().into_iter().map(|event| match event {
                Event::TrialFinished(mut trial) => {
                    trial.durability = durability.map(|own| own.parse::<Durability>().unwrap());
                    if let Some(own) = durability.filter(|_| *is_stated) {
                        trial.point.insert("target.durability".into(), own.into());
                    }
                    Event::TrialFinished(trial)
                }
                other => other,
            }));
        }
    }
    Summary::from_events(&events).unwrap()
}

fn reasons(summary: &Summary) -> Vec<String> {
    let refused = summary.comparisons.iter().filter(|own| own.verdict == Verdict::Refused);
    refused.filter_map(|own| own.reason.clone()).collect()
}

fn is_warned(summary: &Summary) -> bool {
    summary.cells.iter().any(|cell| cell.warnings.iter().any(|own| own.code == "L21"))
}

#[test]
fn unequal_durability_is_refused_whichever_side_is_left() {
    for (one, other) in [("memory", "fsync"), ("fsync", "memory")] {
        let summary =
            summary(&[("http1", "nginx", Some(one), false), ("mqtt", "nats", Some(other), false)]);
        let reasons = reasons(&summary);
        assert!(!reasons.is_empty());
        let expected = "durability differs: memory and fsync of each (L21)";
        assert!(reasons.iter().all(|reason| reason == expected), "{reasons:?}");
    }
}

#[test]
fn equal_and_unrecorded_durability_is_compared() {
    for (one, other) in [(Some("fsync=1s"), Some("fsync=1s")), (None, Some("fsync")), (None, None)]
    {
        let summary = summary(&[("http1", "nginx", one, false), ("mqtt", "nats", other, false)]);
        assert_eq!(reasons(&summary), [""; 0]);
        assert!(!is_warned(&summary));
    }
}

#[test]
fn durability_is_compared_where_it_is_the_question() {
    let swept =
        [("http1", "reference", Some("memory"), true), ("http1", "reference", Some("fsync"), true)];
    assert_eq!(reasons(&summary(&swept)), [""; 0]);
    let profiles = [
        ("mqtt", "artemis@defaults", Some("fsync"), false),
        ("mqtt", "artemis@memory", Some("memory"), false),
    ];
    assert_eq!(reasons(&summary(&profiles)), [""; 0]);
    let servers = [
        ("mqtt", "artemis@defaults", Some("fsync"), false),
        ("mqtt", "mosquitto@defaults", Some("memory"), false),
    ];
    assert_ne!(reasons(&summary(&servers)), [""; 0]);
}

#[test]
fn the_unknown_is_compared_with_a_warning_that_names_what_to_type() {
    let url = "http://10.0.0.1:80";
    let both = summary(&[
        ("http1", "reference", Some("memory"), false),
        ("http1", url, Some("unknown"), false),
    ]);
    assert_eq!(reasons(&both), [""; 0]);
    let warned: Vec<_> = both.cells.iter().flat_map(|cell| &cell.warnings).collect();
    let own = warned.iter().find(|own| own.code == "L21").expect("a warning");
    assert!(own.text.contains("memory on the other"), "{}", own.text);
    assert!(own.advice.contains("--durability memory"), "{}", own.advice);
    let alone = summary(&[("http1", url, Some("unknown"), false)]);
    assert!(!is_warned(&alone), "nothing is compared");
}

#[test]
fn tables_name_it_where_it_differs_or_is_more_than_memory() {
    let text = |lanes: &[(&'static str, &'static str, Option<&str>, bool)]| {
        let table = render(&summary(lanes), Style { is_ascii: true, ..Style::plain(80) });
        table.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    };
    let plain = text(&[("http1", "nginx", Some("memory"), false)]);
    assert!(plain.contains("at least once, real\n"), "{plain}");
    let durable = text(&[("http1", "nginx", Some("fsync=100ms"), false)]);
    assert!(durable.contains("at least once, fsync=100ms, real\n"), "{durable}");
    let unlike = text(&[
        ("http1", "nginx", Some("memory"), false),
        ("mqtt", "mqtt://10.0.0.1:1883", Some("unknown"), false),
    ]);
    assert!(unlike.contains("at least once, memory, real\n"), "{unlike}");
    assert!(unlike.contains("at least once, durability unknown, real\n"), "{unlike}");
}
