//! Formats of foreign figures, recognised by a file's content and never by its name.

mod autocannon;
mod h2load;
mod jmeter;
mod jmeter_xml;
mod k6;
mod mqtt_stresser;
mod oha;
mod sheet;
mod wrk;

use serde_json::Value;

use crate::audit::figure::Evidence;
use crate::audit::series_csv;
use crate::audit::source::{Source, Unreadable};

/// The supported formats, for help and errors.
pub const FORMATS: &str = "CSV with the columns study,table,series,x,x_unit,y,y_unit; JSON of \
    autocannon, oha or k6; text of wrk, wrk2, h2load, oha, k6 or mqtt-stresser; JMeter's .jtl \
    (CSV or XML) or aggregate report (CSV); or a run of weigh";

/// The format of a file, and its figures.
///
/// # Errors
/// If the format is unknown, or the file is damaged.
pub fn read(source: &Source) -> Result<(&'static str, Vec<Evidence>), Unreadable> {
    let Source { name, text } = source;
    let text = text.trim_start_matches('\u{feff}');
    let start = text.trim_start();
    let one = |format: &'static str, evidence: Evidence| Ok((format, vec![evidence]));
    if start.is_empty() {
        return Err(Unreadable::new(name, "the file is empty", "name a file with figures"));
    }
    if start.starts_with('{') {
        let value: Value = serde_json::from_str(start).map_err(|error| {
            let line = error.line() as u64;
            Unreadable::at(name, line, format!("not valid JSON: {error}"), "write it again")
        })?;
        return match () {
            () if autocannon::fits(&value) => {
                one("autocannon JSON", autocannon::read(name, &value))
            }
            () if k6::fits(&value) => one("k6 summary JSON", k6::read_json(name, &value)),
            () if oha::fits(&value) => one("oha JSON", oha::read_json(name, &value)),
            () => Err(unknown(name, &keys_of(&value))),
        };
    }
    if start.starts_with('<') {
        return one("JMeter .jtl, XML", jmeter_xml::read(name, start)?);
    }
    let head = start.lines().next().unwrap_or_default();
    let columns: Vec<&str> =
        head.split(',').map(|column| column.trim().trim_matches('"')).collect();
    let has = |all: &[&str]| all.iter().all(|column| columns.contains(column));
    if has(&["table", "series"]) || has(&["study", "series"]) {
        return Ok(("CSV of figures", series_csv::read(name, text)?));
    }
    if has(&["timeStamp", "elapsed"]) {
        return one("JMeter .jtl, CSV", jmeter::read_samples(name, text)?);
    }
    if has(&["Label", "# Samples"]) || has(&["sampler_label", "aggregate_report_count"]) {
        return one("JMeter aggregate report, CSV", jmeter::read_aggregate(name, text)?);
    }
    match () {
        () if wrk::fits(text) => one("wrk text", wrk::read(name, text)),
        () if h2load::fits(text) => one("h2load text", h2load::read(name, text)),
        () if mqtt_stresser::fits(text) => {
            one("mqtt-stresser text", mqtt_stresser::read(name, text))
        }
        () if oha::fits_text(text) => one("oha text", oha::read_text(name, text)),
        () if k6::fits_text(text) => one("k6 text", k6::read_text(name, text)),
        () => {
            let start: String = head.chars().take(60).collect();
            Err(unknown(name, &format!("it begins with {start:?}")))
        }
    }
}

fn unknown(name: &str, seen: &str) -> Unreadable {
    let problem = format!("unknown format ({seen})");
    Unreadable::new(name, problem, format!("give one of these: {FORMATS}"))
}

fn keys_of(value: &Value) -> String {
    let keys = value.as_object().into_iter().flat_map(serde_json::Map::keys);
    let keys: Vec<&str> = keys.take(6).map(String::as_str).collect();
    format!("its keys are {}", keys.join(", "))
}
