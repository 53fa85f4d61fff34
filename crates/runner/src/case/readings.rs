//! The built-in readings in the form of the pipeline: sensor, time, values.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use weigh_report::journal::rfc3339;

/// The data set as readings of the pipeline, one a line. Its lines are four tanks in turn, every
/// ten minutes from six in the morning (`data/README.md`); the date is made up.
pub fn of_stages(lines: &str) -> String {
    let reading = |(number, line): (usize, &str)| {
        let mut values: Map<String, Value> = serde_json::from_str(line).unwrap_or_default();
        let tank = values.remove("id").unwrap_or_default();
        let since = Duration::from_secs(number as u64 / TANKS * EVERY_S);
        let time = rfc3339(SystemTime::UNIX_EPOCH + FIRST + since);
        let reading =
            json!({ "sensor": format!("farm1/tank{tank}"), "time": time, "values": values });
        format!("{reading}\n")
    };
    lines.lines().enumerate().map(reading).collect()
}

const TANKS: u64 = 4;
const EVERY_S: u64 = 600;

/// 2026-06-01T06:00:00Z.
const FIRST: Duration = Duration::from_secs(1_780_293_600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_have_sensor_time_and_values() {
        let lines: String =
            (0..5).map(|n| format!("{{\"id\":{},\"ph\":6.1}}\n", n % 4 + 1)).collect();
        let text = of_stages(&lines);
        let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let (sensor, time) = ("farm1/tank1", "2026-06-01T06:00:00Z");
        let first = json!({ "sensor": sensor, "time": time, "values": { "ph": 6.1 } });
        assert_eq!(lines[0], first);
        assert_eq!(lines[3]["sensor"], "farm1/tank4");
        assert_eq!(lines[4]["time"], "2026-06-01T06:10:00Z");
    }
}
