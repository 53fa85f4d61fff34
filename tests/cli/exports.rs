//! A run in the formats of other tools. What those tools make of it is for `tests/exports/run`.

use std::collections::BTreeMap;

use crate::rig::{Ended, Place};

/// The rows of a CSV without quotes, by the names of its heading.
pub fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let heading: Vec<String> = lines.next().expect("a heading").collect();
    lines.map(|line| heading.iter().cloned().zip(line).collect()).collect()
}

pub fn export(place: &Place, format: &str) -> String {
    let run = place.run();
    let Ended { code, stdout, stderr } =
        place.weigh(&["export", &run.to_string_lossy(), "--format", format]);
    assert_eq!(code, Some(0), "{stderr}");
    stdout
}

/// A window of a second still makes a series, with everything that a chart needs. How many
/// intervals there are is up to the machine: one that stands still joins some.
#[test]
fn intervals_make_a_series() {
    let place = Place::new("intervals");
    let ended = place.compare(&["http", "-d", "1s", "--warmup", "300ms", "-R", "2k/s"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let rows = rows(&export(&place, "intervals"));
    assert!((4..=15).contains(&rows.len()), "{rows:?}");
    let sum = |key: &str, warmup: &str| -> u64 {
        let of = rows.iter().filter(|row| row["warmup"] == warmup);
        of.map(|row| row[key].parse::<u64>().unwrap()).sum()
    };
    assert_eq!(sum("sent", "false") + sum("sent", "true"), 2600);
    assert!(sum("sent", "true") > 0);
    for key in [
        "length_ns",
        "response_time_ns_p50",
        "response_time_ns_p99",
        "send_lag_ns_p99",
        "target_cpu_percent",
        "target_memory_bytes",
        "generator_cpu_percent",
    ] {
        let known = rows.iter().filter(|row| !row[key].is_empty()).count();
        assert!(2 * known > rows.len(), "{key}: {rows:?}");
    }
}

#[test]
fn metrics_end_with_their_end() {
    let place = Place::new("openmetrics");
    let ended = place.compare(&["mqtt", "-q", "1", "-n", "300"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let run = place.run();
    let out = place.folder().join("metrics.txt");
    let arguments = ["export", &run.to_string_lossy(), "--format", "openmetrics", "-o"];
    let ended = place.weigh(&[&arguments[..], &[&out.to_string_lossy()]].concat());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
    let text = std::fs::read_to_string(out).unwrap();
    assert!(text.ends_with("\n# EOF\n"));
    assert!(text.contains("# TYPE weigh_response_time_seconds histogram\n"), "{text}");
    let last = text
        .lines()
        .find(|l| l.starts_with("weigh_response_time_seconds_bucket") && l.contains("le=\"+Inf\""));
    assert!(last.unwrap().ends_with("} 300"), "{last:?}");
    let csv = export(&place, "csv");
    assert_eq!(csv, std::fs::read_to_string(run.join("cells.csv")).unwrap());
}
