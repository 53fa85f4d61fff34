//! Tables for papers and tidy tables of the repetitions: what is in them, and that they are whole.

use std::collections::{BTreeMap, BTreeSet};

use weigh_report::Summary;
use weigh_report::exports::{column_names, latex, markdown, repetitions};

use crate::story::run;

fn summary() -> Summary {
    Summary::from_events(&run()).unwrap()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The rows of a CSV, by the names of its heading.
fn rows(bytes: &[u8]) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(bytes);
    reader.deserialize().collect::<Result<_, _>>().unwrap()
}

fn wide() -> Vec<BTreeMap<String, String>> {
    let mut bytes = Vec::new();
    repetitions::wide(&mut bytes, &summary(), &run()).unwrap();
    rows(&bytes)
}

#[test]
fn every_repetition_is_a_row_and_their_mean_is_the_figure() {
    let (rows, summary) = (wide(), summary());
    let trials: u32 = summary.cells.iter().map(|cell| cell.repetitions).sum();
    assert_eq!(rows.len(), trials as usize);
    for cell in &summary.cells {
        let own: Vec<_> = rows.iter().filter(|row| row["cell"] == cell.name).collect();
        let numbers: BTreeSet<&str> = own.iter().map(|row| row["repetition"].as_str()).collect();
        assert_eq!(numbers.len(), cell.repetitions as usize, "{}", cell.name);
        for (name, metric) in &cell.metrics {
            let values: Vec<f64> = own.iter().filter_map(|row| row[name].parse().ok()).collect();
            assert_eq!(values.len(), metric.n as usize, "{} {name}", cell.name);
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            match metric.value {
                Some(value) => assert!((mean - value).abs() <= 1e-9 * value.abs(), "{name}"),
                None => assert!(mean.is_infinite(), "{name}: {mean}"),
            }
        }
        let lost: u64 = own.iter().filter_map(|row| row["ledger.lost"].parse::<u64>().ok()).sum();
        assert_eq!(lost, cell.ledger.lost.unwrap_or(0), "{}", cell.name);
        assert!(own.iter().all(|row| row["valid"] == cell.valid.to_string()), "{}", cell.name);
        assert!(own.iter().all(|row| row["point.protocol"] == cell.point["protocol"]));
    }
    let http = rows.iter().find(|row| row["cell"] == "http1 on reference").unwrap();
    assert_eq!(http["delivery_time_ns.p50"], "", "not measured is empty");
}

#[test]
fn the_long_form_has_the_same_values() {
    let mut bytes = Vec::new();
    repetitions::long(&mut bytes, &summary(), &run()).unwrap();
    let long = rows(&bytes);
    let wide = wide();
    let by_trial: BTreeMap<&str, &BTreeMap<String, String>> =
        wide.iter().map(|row| (row["trial"].as_str(), row)).collect();
    assert!(long.iter().all(|row| by_trial[row["trial"].as_str()][&row["metric"]] == row["value"]));
    let summary = summary();
    let metrics = column_names(&summary);
    let filled: usize = wide
        .iter()
        .map(|row| {
            metrics.iter().filter(|name| row.get(**name).is_some_and(|v| !v.is_empty())).count()
        })
        .sum();
    assert_eq!(long.len(), filled);
    let p50 = long.iter().find(|row| row["metric"] == "response_time_ns.p50").unwrap();
    assert_eq!((p50["unit"].as_str(), p50["value"].as_str()), ("ns", "200000"));
}

/// Every environment that begins ends, every group in braces is closed, and every row has as many
/// columns as the table.
#[test]
fn the_latex_table_is_whole() {
    for metrics in [vec![], names(&["response_time_ns.p99", "lost", "target_cpu_percent.mean"])] {
        let text = latex::table(&summary(), &metrics);
        let (_, tabular) = text.split_once("\\begin{tabular}{").unwrap();
        let (columns, body) = tabular.split_once("}\n").unwrap();
        let (body, _) = body.split_once("\\end{tabular}").unwrap();
        let rows = body.lines().filter(|line| line.ends_with("\\\\"));
        for row in rows {
            let is_title = row.starts_with("\\multicolumn");
            let cells = row.replace("\\&", "").matches('&').count() + 1;
            assert_eq!(cells, if is_title { 1 } else { columns.len() }, "{row}");
            assert!(!is_title || row.contains(&format!("{{{}}}", columns.len())), "{row}");
        }
        for rule in ["\\toprule", "\\midrule", "\\bottomrule"] {
            assert_eq!(body.matches(rule).count(), 1, "{text}");
        }
        assert_eq!(depth(&text), 0, "{text}");
        assert_eq!(text.replace("\\$", "").matches('$').count() % 2, 0, "{text}");
        let commented = |line: &&str| !line.starts_with('%');
        for line in text.lines().filter(commented) {
            let plain = line.replace("\\%", "").replace("\\_", "");
            assert!(!plain.contains(['%', '±', '≤', '∞', 'µ']), "{line}");
        }
        assert_eq!(text.matches("\\quad ").count(), summary().cells.len());
    }
}

/// Open braces at the end, escaped ones left out.
fn depth(text: &str) -> i32 {
    let plain = text.replace("\\{", "").replace("\\}", "");
    plain.chars().map(|c| i32::from(c == '{') - i32::from(c == '}')).sum()
}

#[test]
fn the_markdown_table_is_whole_and_its_groups_are_seen() {
    let text = markdown::table(&summary(), &names(&["response_time_ns.p50", "lost"]));
    let [title, answer, table, notes] = text.split("\n\n").collect::<Vec<_>>()[..] else {
        panic!("title, answer, table and notes: {text}")
    };
    assert!(title.starts_with("**HTTP/1.1 and MQTT compared: "), "{title}");
    assert!((2..=6).contains(&answer.lines().count()), "{answer}");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "| protocol, target | response p50 | lost |");
    assert_eq!(lines[1], "| :--- | ---: | ---: |");
    assert!(lines.iter().all(|line| line.matches('|').count() == 4), "{table}");
    assert!(
        table.contains("\n| **at least once, reference** |  |  |\n| &emsp;http1 | 200 ± 2 µs |")
    );
    assert!(table.contains("| &emsp;! mqtt qos=1 on mosquitto | 310 µs | 280 |"), "{table}");
    assert!(table.contains("1.23 ± 0.00 ms d"), "{table}");
    assert!(notes.lines().all(|line| line.starts_with("- ")), "{notes}");
    for part in
        ["over 1 to 5 repetitions", "±: ", "!  invalid", "d  delivery time", "none of n lost"]
    {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert!(!notes.contains("s  service time"), "only signs that are there: {notes}");
}

#[test]
fn columns_are_metrics_of_the_run_and_terms_of_the_ledger() {
    let summary = summary();
    let names = column_names(&summary);
    for name in ["response_time_ns.p99", "scheduled", "delivered", "late", "lost", "dup"] {
        assert!(names.contains(name), "{names:?}");
    }
    assert!(!names.contains("wire.bytes_per_message"), "{names:?}");
}
