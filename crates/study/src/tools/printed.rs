//! Reads the figures that programs print about their own load.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Prints;

/// Figures by name.
pub type Figures = BTreeMap<String, f64>;

/// The figures in what a program of this kind has printed.
///
/// # Errors
/// If the text has none: what was looked for.
pub fn figures_in(prints: Prints, text: &str) -> Result<Figures, String> {
    match prints {
        Prints::Nothing => Ok(Figures::new()),
        Prints::Autocannon => autocannon(text),
        Prints::MqttStresser => mqtt_stresser(text),
        Prints::Jmeter => jmeter(text),
    }
}

/// The object that `autocannon --json` prints on one line.
fn autocannon(text: &str) -> Result<Figures, String> {
    let missing = || "it printed no JSON result (autocannon --json)".to_owned();
    let objects = text.lines().filter_map(|line| serde_json::from_str::<Value>(line.trim()).ok());
    let result = objects.into_iter().find(|one| one["requests"].is_object()).ok_or_else(missing)?;
    let number = |path: &[&str]| {
        let found = path.iter().try_fold(&result, |value, key| value.get(key));
        found.and_then(Value::as_f64)
    };
    // Answers of every kind: `requests.total` counts those of whole seconds alone.
    let answers = ["1xx", "2xx", "3xx", "4xx", "5xx"].iter().filter_map(|kind| number(&[kind]));
    let failed = ["errors", "timeouts", "non2xx"].iter().filter_map(|kind| number(&[kind]));
    let (answers, failed): (f64, f64) = (answers.sum(), failed.sum());
    if answers == 0.0 || failed > 0.0 {
        return Err(format!(
            "it reports {answers} answers, and {failed} errors, timeouts and refusals"
        ));
    }
    let named = [
        ("reported_messages", Some(answers)),
        ("reported_time_s", number(&["duration"])),
        ("reported_per_s", number(&["requests", "average"])),
        ("reported_latency_ms_mean", number(&["latency", "average"])),
        ("reported_latency_ms_p50", number(&["latency", "p50"])),
        ("reported_latency_ms_max", number(&["latency", "max"])),
    ];
    Ok(known(named))
}

/// The lines of mqtt-stresser's report.
fn mqtt_stresser(text: &str) -> Result<Figures, String> {
    let count = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name))?;
        line.split_once(':')?.1.split_whitespace().next()?.parse::<f64>().ok()
    };
    let section = |heading: &str| {
        let at = text.lines().position(|line| line.starts_with(heading))?;
        let below = text.lines().skip(at + 1).take_while(|line| !line.starts_with('#'));
        let median = below.into_iter().find_map(|line| line.trim().strip_prefix("Median:"))?;
        median.split_whitespace().next()?.parse::<f64>().ok()
    };
    let (Some(published), Some(received)) =
        (count("Published Messages"), count("Received Messages"))
    else {
        return Err("it printed no \"Published Messages\" and \"Received Messages\"".to_owned());
    };
    let named = [
        ("reported_messages", Some(received)),
        ("reported_received_ratio", (published > 0.0).then(|| received / published)),
        ("reported_publish_per_s", section("# Publishing")),
        // The heading of the program is misspelt: its first word alone is looked for.
        ("reported_receive_per_s", section("# Receiving")),
    ];
    Ok(known(named))
}

/// The last line `summary =` of JMeter: of the whole test, where `summary +` is of a part of it.
fn jmeter(text: &str) -> Result<Figures, String> {
    let missing = || "it printed no line \"summary =\"".to_owned();
    let line = text.lines().rev().find(|line| line.starts_with("summary =")).ok_or_else(missing)?;
    let words: Vec<&str> = line.split_whitespace().collect();
    // summary =    400 in 00:00:02 =  200.1/s Avg:     3 Min:     0 Max:    40 Err:     0 (0.00%)
    let behind = |mark: &str| {
        let at = words.iter().position(|word| *word == mark)?;
        words.get(at + 1).copied()
    };
    let number = |word: Option<&str>| word?.trim_end_matches("/s").parse::<f64>().ok();
    let samples = number(words.get(2).copied()).filter(|samples| *samples > 0.0);
    let samples = samples.ok_or_else(|| format!("its summary has no samples: {line}"))?;
    let time = behind("in").and_then(seconds);
    let rate = words.iter().find(|word| word.ends_with("/s")).copied();
    let named = [
        ("reported_messages", Some(samples)),
        ("reported_time_s", time),
        ("reported_per_s", number(rate)),
        ("reported_latency_ms_mean", number(behind("Avg:"))),
        ("reported_latency_ms_max", number(behind("Max:"))),
        ("reported_errors_ratio", number(behind("Err:")).map(|errors| errors / samples)),
    ];
    Ok(known(named))
}

/// `00:01:02`, or `2s` and `1.5s` of older versions, in seconds.
fn seconds(text: &str) -> Option<f64> {
    if let Some(plain) = text.strip_suffix('s') {
        return plain.parse().ok();
    }
    text.split(':').try_fold(0.0, |sum, part| Some(60.0 * sum + part.parse::<f64>().ok()?))
}

fn known<const N: usize>(named: [(&str, Option<f64>); N]) -> Figures {
    let known = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    known.filter(|(_, value)| value.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(prints: Prints, text: &str) -> Vec<(String, f64)> {
        let figures = figures_in(prints, text).unwrap();
        let reported = prints.reported();
        assert!(figures.keys().all(|name| reported.contains(&name.as_str())), "{figures:?}");
        figures.into_iter().collect()
    }

    fn get(found: &[(String, f64)], name: &str) -> f64 {
        found.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no {name}")).1
    }

    /// A line of autocannon 9.0.0, shortened to what is read.
    #[test]
    fn the_json_of_autocannon_is_read() {
        let line = r#"{"url":"http://127.0.0.1:18998/","connections":2,"duration":1.01,"errors":0,
            "timeouts":0,"non2xx":0,"1xx":0,"2xx":200,"3xx":0,"4xx":0,"5xx":0,
            "latency":{"average":29.06,"p50":29,"max":54},
            "requests":{"average":200,"total":200,"sent":200}}"#;
        let found = all(Prints::Autocannon, &format!("a warning\n{}\n", line.replace('\n', " ")));
        assert_eq!(get(&found, "reported_messages"), 200.0);
        assert_eq!(get(&found, "reported_latency_ms_p50"), 29.0);
        assert_eq!((get(&found, "reported_time_s"), found.len()), (1.01, 6));
        let refused = line.replace("\"non2xx\":0", "\"non2xx\":200").replace('\n', " ");
        let said = figures_in(Prints::Autocannon, &refused).unwrap_err();
        assert!(said.contains("200 errors, timeouts and refusals"), "{said}");
        assert!(figures_in(Prints::Autocannon, "Running 10s test").is_err());
    }

    /// As the source of mqtt-stresser writes it (report.go, commit 6fd0ab6).
    #[test]
    fn the_report_of_mqtt_stresser_is_read() {
        let text = "2 worker started\n\n# Configuration\nConcurrent Clients: 2\n\
                    Messages / Client:  100\n\n# Results\nPublished Messages: 200 (100%)\n\
                    Received Messages:  190 (95%)\nCompleted:          1 (50%)\n\
                    Errors:             1 (50%)\n\n# Publishing Throughput\n\
                    Fastest: 30000 msg/sec\nSlowest: 20000 msg/sec\nMedian: 25000 msg/sec\n\n  \
                    < 21000 msg/sec  50%\n\n# Receiving Througput\nFastest: 9000 msg/sec\n\
                    Slowest: 7000 msg/sec\nMedian: 8000 msg/sec\n";
        let found = all(Prints::MqttStresser, text);
        assert_eq!(get(&found, "reported_received_ratio"), 0.95);
        assert_eq!(get(&found, "reported_publish_per_s"), 25_000.0);
        assert_eq!(get(&found, "reported_receive_per_s"), 8_000.0);
        assert!(figures_in(Prints::MqttStresser, "Error: no broker").is_err());
    }

    #[test]
    fn the_summary_of_jmeter_is_read() {
        let text = "Creating summariser <summary>\n\
                    summary +    100 in 00:00:01 =  100.0/s Avg:     9 Min:     1 Max:    19 \
                    Err:     0 (0.00%)\n\
                    summary =    400 in 00:01:02 =  200.1/s Avg:     3 Min:     0 Max:    40 \
                    Err:     4 (1.00%)\nTidying up ...\n... end of run\n";
        let found = all(Prints::Jmeter, text);
        assert_eq!(get(&found, "reported_messages"), 400.0);
        assert_eq!((get(&found, "reported_time_s"), get(&found, "reported_per_s")), (62.0, 200.1));
        assert_eq!(get(&found, "reported_latency_ms_max"), 40.0);
        assert_eq!(get(&found, "reported_errors_ratio"), 0.01);
        let empty =
            "summary =      0 in 00:00:00 = ******/s Avg:     0 Min:     0 Max:     0 Err: 0";
        assert!(figures_in(Prints::Jmeter, empty).unwrap_err().contains("no samples"));
        assert!(figures_in(Prints::Jmeter, "Error in NonGUIDriver").is_err());
        assert_eq!((seconds("2.5s"), seconds("01:00:00")), (Some(2.5), Some(3600.0)));
    }
}
