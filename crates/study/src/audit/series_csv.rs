//! Tables of published figures: CSV with the columns study, table, series, x, x_unit, y, y_unit;
//! the series is `key=value;key=value`, and `stat` among them names the statistic.

use std::collections::BTreeMap;

use crate::audit::figure::{Evidence, Fact, Figure, Place};
use crate::audit::source::Unreadable;
use crate::audit::vocabulary::{
    factor, is_known, is_limit, is_subject, key, quantity, statistic, words_of,
};

/// The columns that must be there; further ones are left alone.
pub const COLUMNS: [&str; 7] = ["study", "table", "series", "x", "x_unit", "y", "y_unit"];

/// One body of evidence for each study in the file, with the study's name.
///
/// # Errors
/// If a column is missing, or a row is damaged.
pub fn read(name: &str, text: &str) -> Result<Vec<Evidence>, Unreadable> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| broken(name, &error))?.clone();
    let mut at = [0; COLUMNS.len()];
    for (index, column) in COLUMNS.iter().enumerate() {
        at[index] =
            headers.iter().position(|header| header.trim() == *column).ok_or_else(|| {
                let problem = format!("missing column {column}");
                Unreadable::at(name, 1, problem, format!("the columns are {}", COLUMNS.join(",")))
            })?;
    }
    let mut studies: Vec<Evidence> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| broken(name, &error))?;
        let line = record.position().map_or(0, csv::Position::line);
        let cells = at.map(|index| record.get(index).unwrap_or_default().trim());
        if record.len() < headers.len() {
            let problem = format!("found {} columns, expected {}", record.len(), headers.len());
            return Err(Unreadable::at(name, line, problem, "write empty columns as ,,"));
        }
        let study = match studies.iter_mut().position(|study| study.name == cells[0]) {
            Some(index) => &mut studies[index],
            None => {
                studies.push(Evidence::of(cells[0]));
                studies.last_mut().expect("one was just put there")
            }
        };
        read_row(name, line, &cells, study)?;
    }
    Ok(studies)
}

fn broken(name: &str, error: &csv::Error) -> Unreadable {
    let line = error.position().map_or(1, csv::Position::line);
    Unreadable::at(name, line, error.to_string(), "write it as CSV, with quotes around commas")
}

fn read_row(
    name: &str,
    line: u64,
    cells: &[&str; COLUMNS.len()],
    study: &mut Evidence,
) -> Result<(), Unreadable> {
    let [_, table, series, x, x_unit, y, y_unit] = *cells;
    let value = y.replace(',', "").parse::<f64>().ok().filter(|value| value.is_finite());
    let value = value.ok_or_else(|| {
        let problem = format!("expected a number in y, found {y:?}");
        Unreadable::at(name, line, problem, "write numbers with a decimal point")
    })?;
    let row = Row::of(series);
    if let Some(parameter) = row.parameter() {
        let key = key(parameter).to_owned();
        // Repetitions are stated once, for all that follows; other parameters for their table.
        let is_wide = key == "repetitions";
        let table = (!is_wide).then(|| table.to_owned());
        let value = format!("{y} {y_unit}");
        let mut subjects: Vec<_> = row.subjects.into_iter().map(Some).collect();
        if subjects.is_empty() {
            subjects.push(None);
        }
        study.facts.extend(subjects.into_iter().map(|subject| {
            let (table, key, value) = (table.clone(), key.clone(), value.clone());
            Fact { table, subject, key, value, is_said: true }
        }));
        return Ok(());
    }
    let mut keys = row.keys;
    if !x.is_empty() {
        let key = match key(x_unit) {
            "1/s" => "rate",
            "B" => "payload",
            other => other,
        };
        keys.insert(key.to_owned(), x.to_owned());
    }
    let mut words = words_of(row.claim.as_deref().unwrap_or(&row.stat));
    if words.is_empty() {
        words = words_of(series);
    }
    let is_claim = row.claim.is_some();
    let subjects = if is_claim { subjects_of_claim(&words) } else { row.subjects };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let by = factor(y_unit);
    study.figures.push(Figure {
        place: Place {
            file: name.to_owned(),
            line,
            table: table.to_owned(),
            series: series.to_owned(),
        },
        subjects,
        keys,
        quantity: quantity(&words, y_unit),
        statistic: statistic(&words),
        is_limit: is_limit(&words),
        is_claim,
        value: value * by,
        rounding: half_digit(y) * by,
        printed: format!("{y}{}", sign(y_unit)),
    });
    Ok(())
}

/// A unit as it stands behind a figure: ` %`, `/s`, ` ms`.
fn sign(unit: &str) -> String {
    match unit.strip_prefix("1/") {
        Some(each) => format!("/{each}"),
        None if unit == "percent" => " %".to_owned(),
        None => format!(" {unit}"),
    }
}

/// A series, taken apart.
#[derive(Default)]
struct Row {
    subjects: Vec<String>,
    keys: BTreeMap<String, String>,
    stat: String,
    claim: Option<String>,
    parameter: Option<String>,
    last_bare: Option<String>,
}

impl Row {
    fn of(series: &str) -> Row {
        let mut row = Row::default();
        for part in series.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (word, value) = part.split_once('=').unwrap_or((part, ""));
            match word {
                "stat" => row.stat = value.to_owned(),
                "claim" => row.claim = Some(value.to_owned()),
                "parameter" | "factor" | "criterion" => row.parameter = Some(value.to_owned()),
                _ if is_subject(word) => {
                    row.subjects.extend(value.split(',').map(|one| one.trim().to_owned()));
                }
                _ => {
                    if value.is_empty() {
                        row.last_bare = Some(word.to_owned());
                    }
                    row.keys.insert(key(word).to_owned(), value.to_owned());
                }
            }
        }
        let bare = row.last_bare.as_ref().filter(|_| row.stat.is_empty() && row.claim.is_none());
        if let Some(bare) = bare {
            row.stat.clone_from(bare);
            row.keys.remove(key(bare));
        }
        row
    }

    /// The parameter that the row states instead of a result.
    fn parameter(&self) -> Option<&str> {
        let bare = self.last_bare.as_deref().filter(|bare| is_known(key(bare)));
        self.parameter.as_deref().or(bare.filter(|_| self.claim.is_none()))
    }
}

/// The two sides of a claim: `time_ratio_http_over_mqtt` is about http and mqtt.
fn subjects_of_claim(words: &[String]) -> Vec<String> {
    let Some(over) = words.iter().position(|word| word == "over") else { return Vec::new() };
    let sides = [over.checked_sub(1), Some(over + 1)];
    sides.iter().flatten().filter_map(|at| words.get(*at).cloned()).collect()
}

/// Half of the last printed digit.
pub(crate) fn half_digit(text: &str) -> f64 {
    let decimals = text.split_once('.').map_or(0, |(_, part)| part.len());
    0.5 / 10f64.powi(decimals as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::figure::{Quantity, Statistic};

    const HEAD: &str = "study,table,series,x,x_unit,y,y_unit\n";

    #[test]
    fn the_same_cell_is_the_same_whichever_key_is_the_axis() {
        let text = format!(
            "{HEAD}s,A,protocol=HTTP;payloads=10000;stat=max_cpu,60,clients,95.3,percent\n\
             s,B,protocol=HTTP;clients=60;stat=average_cpu,10000,messages,97,percent\n\
             s,B,parameter=ramp,,,50,s\ns,C,repetitions,,,10,runs\n\
             s,C,claim=time_ratio_http_over_mqtt,,,20,ratio\n"
        );
        let studies = read("t.csv", &text).unwrap();
        let [a, b, claim] = &studies[0].figures[..] else { panic!("{studies:?}") };
        assert_eq!(a.keys, b.keys);
        assert_eq!((a.quantity, a.statistic), (Quantity::Cpu, Statistic::Max));
        assert!((b.rounding - 0.005).abs() < 1e-12 && (a.value - 0.953).abs() < 1e-12);
        assert_eq!(claim.subjects, ["http", "mqtt"]);
        let known = |key| studies[0].known(b, key).map(|known| known.value);
        assert_eq!((known("ramp"), known("repetitions")), (Some("50 s"), Some("10 runs")));
        assert_eq!(studies[0].known(a, "ramp"), None);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let error = read("t.csv", &format!("{HEAD}s,A,stat=mean,,,fast,ms\n")).unwrap_err();
        assert!(error.to_string().contains("line 2") && error.to_string().contains("fast"));
        let error = read("t.csv", "study,table,series\n").unwrap_err().to_string();
        assert!(error.contains("column x"), "{error}");
        assert!(read("t.csv", &format!("{HEAD}s,A,stat=mean\n")).is_err());
    }
}
