//! The log of an external meter: a table (CSV) whose heading names a time, and a power, or a
//! current
//! with or without a voltage, each with its unit.

use std::fmt;
use std::time::Duration;
use weigh_model::numbers::seconds;

use super::accuracy::{Class, OUTSIDE};
use super::alignment::{Alignment, LOG_S_MAX, usual_step};
use super::power_supply::short;
use super::readings::{Facts, Reading, Value};
use super::track::Track;

/// A log.
#[derive(Clone, Debug, PartialEq)]
pub struct PowerLog {
    file: String,
    rows: Vec<Row>,
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    /// On the meter's own clock, nanoseconds.
    at_ns: i64,
    power_w: f64,
    voltage_v: Option<f64>,
    current_a: Option<f64>,
}

/// Error in a log: what is wrong, where, and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    /// Its file.
    pub file: String,
    /// The line, from 1; 0 for the whole file.
    pub line: u64,
    /// What is wrong there, and what to type.
    pub text: String,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.text),
            line => write!(f, "{}, line {line}: {}", self.file, self.text),
        }
    }
}

impl std::error::Error for LogError {}

impl PowerLog {
    /// Reads the text of a log; `voltage_v` is the supply's where the log has currents only.
    ///
    /// # Errors
    /// If a column or unit is missing, a row cannot be parsed, or the figures are impossible in
    /// their
    /// units.
    pub fn read(file: &str, text: &str, voltage_v: Option<f64>) -> Result<PowerLog, LogError> {
        let wrong = |line, text: String| LogError { file: file.to_owned(), line, text };
        let heading = text.lines().next().unwrap_or_default();
        let delimiter = if heading.contains(';') && !heading.contains(',') { b';' } else { b',' };
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        let heading = reader.headers().map_err(|error| wrong(1, error.to_string()))?.clone();
        let columns = Columns::of(&heading, voltage_v).map_err(|text| wrong(1, text))?;
        let mut rows: Vec<Row> = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| {
                let line = error.position().map_or(0, csv::Position::line);
                wrong(line, format!("{error}; every row has {} columns", heading.len()))
            })?;
            let line = record.position().map_or(0, csv::Position::line);
            let row = columns.row(&record, &heading).map_err(|text| wrong(line, text))?;
            check_time(&rows, row.at_ns).map_err(|text| wrong(line, text))?;
            rows.push(row);
        }
        let log = PowerLog { file: file.to_owned(), rows };
        log.check().map_err(|text| wrong(0, text))?;
        Ok(log)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True without rows, which [`PowerLog::read`] refuses.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Moments of the meter's own clock, nanoseconds, and watts.
    pub fn powers(&self) -> Vec<(i64, f64)> {
        self.rows.iter().map(|row| (row.at_ns, row.power_w)).collect()
    }

    /// Usual time between two rows.
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(usual_step(self.rows.iter().map(|row| row.at_ns)))
    }

    /// The rows on the run's clock, as readings of a meter; their gain and offset are unknown.
    pub fn track(&self, alignment: &Alignment) -> Track {
        let reading = |row: &Row| Reading {
            at_ns: alignment.to_run(row.at_ns),
            value: Value::Power {
                power_w: row.power_w,
                voltage_v: row.voltage_v,
                current_a: row.current_a,
            },
        };
        let readings: Vec<Reading> = self.rows.iter().map(reading).collect();
        let interval = self.interval();
        let facts = Facts {
            name: format!("log {}", self.file),
            covers: "the load behind the external meter".to_owned(),
            period: interval,
            domains: Vec::new(),
            accuracy: Class { refresh: interval, ..OUTSIDE }.with_offset(0.0),
            plausible_w: PLAUSIBLE_W,
        };
        Track::new(facts, &readings, None)
    }

    fn check(&self) -> Result<(), String> {
        if self.rows.len() < ROWS_MIN {
            return Err(format!("{} rows are too few for the log of a run", self.rows.len()));
        }
        let mean = |of: &dyn Fn(&Row) -> Option<f64>| {
            let values: Vec<f64> = self.rows.iter().filter_map(of).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let fix = "check the unit in its heading";
        let checks = [
            ("power", "W", mean(&|row| Some(row.power_w)), PLAUSIBLE_W),
            ("voltage", "V", mean(&|row| row.voltage_v), PLAUSIBLE_V),
        ];
        for (what, unit, value, (low, high)) in checks {
            let Some(value) = value.filter(|value| !(low..=high).contains(value)) else { continue };
            return Err(format!(
                "its mean {what} is {} {unit}; expected {low} to {high} \
                 {unit}: {fix}",
                short(value)
            ));
        }
        let product = mean(&|row| Some(row.voltage_v? * row.current_a?));
        if let (Some(product), Some(power)) = (product, mean(&|row| Some(row.power_w)))
            && !(1.0 / APART..=APART).contains(&(power / product))
        {
            return Err(format!(
                "its mean power is {} W, but voltage times current is {} W: {fix}",
                short(power),
                short(product)
            ));
        }
        Ok(())
    }
}

/// Whether a row may follow these: later, and not by a very long time, which would be a row of
/// another clock (a first time of 0 before those of a calendar) or of another run.
fn check_time(rows: &[Row], at_ns: i64) -> Result<(), String> {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(()) };
    if last.at_ns >= at_ns {
        return Err("its time is not after that of the row before: sort the rows by time".into());
    }
    // The difference of two i64 may not fit one.
    let since = |earlier_ns: i64| at_ns.abs_diff(earlier_ns) as f64 / 1e9;
    if since(last.at_ns) > GAP_S_MAX {
        return Err(format!(
            "its time is {} after that of the row before: remove the rows of another clock or of \
             another run",
            seconds(since(last.at_ns))
        ));
    }
    if since(first.at_ns) > LOG_S_MAX {
        return Err(format!(
            "the log is {} long here, and a run at most {}: cut the log to the run (or check the \
             unit of its times)",
            seconds(since(first.at_ns)),
            seconds(LOG_S_MAX)
        ));
    }
    Ok(())
}

/// Columns of the log, and factors to the units used here.
#[derive(Clone, Debug, Default, PartialEq)]
struct Columns {
    /// Factor to nanoseconds.
    time: (usize, f64),
    power: Option<(usize, f64)>,
    voltage: Option<(usize, f64)>,
    current: Option<(usize, f64)>,
    /// Voltage of the supply, if the log has none.
    voltage_v: Option<f64>,
}

impl Columns {
    fn of(heading: &csv::StringRecord, voltage_v: Option<f64>) -> Result<Columns, String> {
        let mut found: [Option<(usize, f64)>; 4] = [None; 4];
        let mut nameless = Vec::new();
        for (place, name) in heading.iter().enumerate() {
            let Some((quantity, scale)) = unit(name) else {
                nameless.push(format!("{name:?}"));
                continue;
            };
            let slot = &mut found[quantity as usize];
            if slot.is_some() {
                return Err(format!(
                    "two columns of {}, the second is {name:?}: remove all but one",
                    quantity.name()
                ));
            }
            *slot = Some((place, scale));
        }
        let [time, power, voltage, current] = found;
        let without_unit = match nameless.is_empty() {
            true => String::new(),
            false => format!(" ({} has no known unit)", nameless.join(", ")),
        };
        let time = time.ok_or_else(|| {
            format!("no column of time with a unit: write time_s or time_ms{without_unit}")
        })?;
        let has_power = power.is_some() || (current.is_some() && voltage.is_some());
        match (has_power, current) {
            (true, _) => Ok(Columns { time, power, voltage, current, voltage_v: None }),
            (false, Some(_)) if voltage_v.is_some() => {
                Ok(Columns { time, power, voltage, current, voltage_v })
            }
            (false, Some(_)) => Err(format!(
                "no column of voltage for the currents: type --meter csv:FILE@5V for a supply of 5 \
                 V{without_unit}"
            )),
            (false, None) => Err(format!(
                "no column of power with a unit: write power_W, or voltage_V and current_A, or \
                 current_mA{without_unit}"
            )),
        }
    }

    fn row(&self, record: &csv::StringRecord, heading: &csv::StringRecord) -> Result<Row, String> {
        let read = |(place, scale): (usize, f64)| {
            let text = record.get(place).unwrap_or_default();
            match text.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(value * scale),
                _ => Err(format!(
                    "{text:?} in the column {:?} is not a number: write it with a decimal point",
                    heading.get(place).unwrap_or_default()
                )),
            }
        };
        let voltage_v = self.voltage.map(read).transpose()?.or(self.voltage_v);
        let current_a = self.current.map(read).transpose()?;
        let product = voltage_v.zip(current_a).map(|(volts, amperes)| volts * amperes);
        let power_w = self.power.map(read).transpose()?.or(product).unwrap_or(0.0);
        let at_ns = read(self.time)?.round() as i64;
        Ok(Row { at_ns, power_w, voltage_v, current_a })
    }
}

/// Quantity of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Time,
    Power,
    Voltage,
    Current,
}

impl Quantity {
    fn name(self) -> &'static str {
        match self {
            Quantity::Time => "time",
            Quantity::Power => "power",
            Quantity::Voltage => "voltage",
            Quantity::Current => "current",
        }
    }
}

/// The quantity of a column and the factor to nanoseconds, watts, volts or amperes, from the unit
/// that its name ends with: `time_ms`, `Current (mA)`, `Voltage [V]`, `P/W`.
fn unit(name: &str) -> Option<(Quantity, f64)> {
    let name = name.trim().trim_end_matches([')', ']']);
    let end = name.rsplit(['_', '(', '[', '/', ' ']).next()?.trim();
    if end.len() == name.len() {
        return None;
    }
    let end = end.replace(['µ', 'μ'], "u").to_ascii_lowercase();
    UNITS.iter().find(|(unit, ..)| *unit == end).map(|(_, quantity, scale)| (*quantity, *scale))
}

const UNITS: &[(&str, Quantity, f64)] = &[
    ("s", Quantity::Time, 1e9),
    ("sec", Quantity::Time, 1e9),
    ("ms", Quantity::Time, 1e6),
    ("us", Quantity::Time, 1e3),
    ("ns", Quantity::Time, 1.0),
    ("min", Quantity::Time, 60e9),
    ("w", Quantity::Power, 1.0),
    ("mw", Quantity::Power, 1e-3),
    ("uw", Quantity::Power, 1e-6),
    ("v", Quantity::Voltage, 1.0),
    ("mv", Quantity::Voltage, 1e-3),
    ("uv", Quantity::Voltage, 1e-6),
    ("a", Quantity::Current, 1.0),
    ("ma", Quantity::Current, 1e-3),
    ("ua", Quantity::Current, 1e-6),
    ("na", Quantity::Current, 1e-9),
];

/// Range from a sleeping node to a server, watts.
const PLAUSIBLE_W: (f64, f64) = (1e-5, 5_000.0);

/// Range from one cell to a rack's direct current, volts.
const PLAUSIBLE_V: (f64, f64) = (0.5, 400.0);

/// Allowed difference of a power and the product of its parts.
const APART: f64 = 30.0;

/// Longest time between two rows of one log, seconds: an hour, far longer than a logging meter
/// is silent.
const GAP_S_MAX: f64 = 3_600.0;

/// Fewer rows cannot contain the pulses and a run.
const ROWS_MIN: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(heading: &str, row: &str) -> String {
        let of = |at: u32| row.replace('T', &at.to_string());
        format!("{heading}\n{}\n", (0..12).map(of).collect::<Vec<_>>().join("\n"))
    }

    fn first(heading: &str, row: &str, voltage: Option<f64>) -> Result<Row, String> {
        let log = PowerLog::read("p.csv", &rows(heading, row), voltage);
        log.map(|log| log.rows[1]).map_err(|error| error.to_string())
    }

    #[test]
    fn units_stand_in_the_heading_in_many_ways() {
        for (heading, row) in [
            ("time_s,power_W", "T,2.5"),
            ("Time (s),Power (mW)", "T,2500"),
            ("t [s];P [W]", "T;2.5"),
            ("time_s,voltage_V,current_mA", "T,5,500"),
            ("current_uA,bus_mV,t/s", "500000,5000,T"),
            ("time_s,state,power_W", "T,on,2.5"),
        ] {
            let row = first(heading, row, None).unwrap();
            assert!((row.power_w - 2.5).abs() < 1e-12 && row.at_ns == 1_000_000_000, "{heading}");
        }
        let row = first("time_ms,current_mA", "T,500", Some(5.0)).unwrap();
        assert_eq!((row.power_w, row.at_ns), (2.5, 1_000_000));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (heading, row, words) in [
            ("time_s,power", "T,1", ["line 1", "power_W"]),
            ("time,power_W", "T,1", ["line 1", "time_s"]),
            ("time_s,current_mA", "T,1", ["@5V", "no column of voltage"]),
            ("time_s,power_W,power_mW", "T,1,1", ["two columns of power", "line 1"]),
            ("time_s,power_W", "T,x", ["line 2", "\"x\""]),
            ("time_s,power_W", "7,1", ["line 3", "sort"]),
            ("time_s,power_W", "T,1,2", ["line 2", "2 columns"]),
            ("time_s,voltage_mV,current_A", "T,5,0.5", ["0.005 V", "unit"]),
            ("time_s,power_W,voltage_V,current_A", "T,2500,5,0.5", ["2.5 W", "unit"]),
            ("time_s,power_W", "T,2500000", ["2500000 W", "unit"]),
        ] {
            let said = first(heading, row, None).unwrap_err();
            assert!(words.iter().all(|word| said.contains(word)), "{heading}: {said}");
        }
    }

    #[test]
    fn a_log_far_longer_than_a_run_is_refused_at_the_row_where_it_becomes_so() {
        let said = |times: &mut dyn Iterator<Item = String>| {
            let rows: Vec<String> = times.map(|time| format!("{time},2.5")).collect();
            let text = format!("time_s,power_W\n{}\n", rows.join("\n"));
            PowerLog::read("p.csv", &text, None).unwrap_err().to_string()
        };
        let calendar = |row: u64| (1_800_000_000 + row).to_string();
        let zero = said(&mut std::iter::once("0".to_owned()).chain((0..20).map(calendar)));
        assert!(zero.contains("line 3") && zero.contains("another clock"), "{zero}");
        for times in [["-9e9", "9e9"], ["-1e300", "1e300"]] {
            let ages = said(&mut times.iter().map(ToString::to_string));
            assert!(ages.contains("line 3") && ages.contains("another clock"), "{ages}");
        }
        // Four days with a row each half hour: row 145 is the first after three days.
        let days = said(&mut (0..192u64).map(|row| (row * 1_800).to_string()));
        assert!(days.contains("line 147") && days.contains("cut the log"), "{days}");
    }
}
