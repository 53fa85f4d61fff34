//! One file of `devices/` or `radios/`: its coefficients, each with a source, and the published
//! cases that the model must reproduce with them.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};
use weigh_model::Nanos;
use weigh_model::battery::Battery;
use weigh_model::modelled::{Coefficient, EnergyPart};
use weigh_model::nearest::nearest;
use weigh_model::units::Bytes;

use crate::keys::{Dimension, Kind};

/// A file, read.
#[derive(Clone, Debug, PartialEq)]
pub struct PartFile {
    /// The device or the radio.
    pub part: EnergyPart,
    /// Published results that the model must reproduce.
    pub closes: Vec<Closes>,
}

/// A published result, and its inputs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closes {
    /// Description of the case.
    pub case: String,
    /// The device, for a case with a battery.
    pub device: Option<String>,
    /// The battery.
    pub battery: Option<Battery>,
    /// Interval between messages.
    pub every: Option<Nanos>,
    /// True if each message has its own connection.
    #[serde(default)]
    pub is_fresh: bool,
    /// Bytes sent.
    pub up: Option<Bytes>,
    /// Bytes received.
    pub down: Option<Bytes>,
    /// Days that a charge lasts, as published.
    pub days: Option<f64>,
    /// Joules of a message after a pause, as published.
    pub joules: Option<f64>,
    /// Source of the publication.
    pub source: String,
}

/// What is wrong with a file: the file, the line, the column, and what to type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {text}")]
pub struct PartError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong, and how to fix it.
    pub text: String,
}

impl PartFile {
    /// Reads a file of this kind.
    ///
    /// # Errors
    /// If it is not valid TOML, has an unknown key, or a coefficient without value, unit,
    /// uncertainty, source or verification.
    pub fn parse(kind: Kind, file: &str, text: &str) -> Result<PartFile, PartError> {
        let reader = Reader { kind, file, text };
        let parsed = DeTable::parse(text).map_err(|error| {
            reader.wrong(error.span().unwrap_or(0..0), error.message().to_owned())
        })?;
        let places = reader.places(parsed.get_ref())?;
        let whole = toml::from_str::<Table>(text);
        let whole = whole.map_err(|error| reader.wrong(0..0, error.message().to_owned()))?;
        reader.file(whole, &places)
    }
}

/// The plain keys of a file.
#[derive(Deserialize)]
struct Head {
    name: String,
    title: String,
    about: String,
    volts: f64,
    #[serde(default = "one")]
    cores: u32,
    correlation: f64,
    path: Option<String>,
    message_bytes_max: Option<u64>,
    has_none: Option<String>,
    #[serde(default)]
    closes: Vec<Closes>,
}

fn one() -> u32 {
    1
}

/// A coefficient as written.
#[derive(Deserialize)]
struct Written {
    value: f64,
    unit: String,
    uncertainty: String,
    basis: String,
    source: String,
    verification: String,
    row: Option<String>,
}

struct Reader<'f> {
    kind: Kind,
    file: &'f str,
    text: &'f str,
}

/// The bytes of each key of the file.
type Places = BTreeMap<String, Range<usize>>;

impl Reader<'_> {
    fn wrong(&self, place: Range<usize>, text: String) -> PartError {
        let before = &self.text[..place.start.min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        PartError { file: self.file.to_owned(), line, column, text }
    }

    /// The position of each key, once all of them are known to exist.
    fn places(&self, table: &DeTable<'_>) -> Result<Places, PartError> {
        let mut places = Places::new();
        let coefficients: Vec<&str> = self.kind.keys().map(|key| key.name).collect();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let is_coefficient = coefficients.contains(&name);
            if !is_coefficient && !HEAD.contains(&name) {
                let known = HEAD.iter().copied().chain(coefficients.iter().copied());
                return Err(self.wrong(key.span(), unknown(name, known)));
            }
            places.insert(name.to_owned(), key.span());
            let DeValue::Table(inner) = value.get_ref() else { continue };
            for (field, _) in inner {
                let written = field.get_ref().as_ref();
                if !FIELDS.contains(&written) {
                    return Err(self.wrong(field.span(), unknown(written, FIELDS.into_iter())));
                }
                places.insert(format!("{name}.{written}"), field.span());
            }
        }
        Ok(places)
    }

    fn file(&self, whole: Table, places: &Places) -> Result<PartFile, PartError> {
        let mut whole = whole;
        let mut found = Vec::new();
        for key in self.kind.keys() {
            found.extend(whole.remove(key.name).map(|value| (key, value)));
        }
        let place = |key: &str| places.get(key).cloned().unwrap_or(0..0);
        let head: Head = Value::Table(whole)
            .try_into()
            .map_err(|error: toml::de::Error| self.wrong(0..0, error.message().to_owned()))?;
        let is_positive = |number: f64| number.is_finite() && number > 0.0;
        if !is_positive(head.volts) {
            let text = "volts is the supply voltage: type for example volts = 5.0".to_owned();
            return Err(self.wrong(place("volts"), text));
        }
        if !(0.0..=1.0).contains(&head.correlation) {
            let text = "correlation is not from 0 to 1: type for example 0.5".to_owned();
            return Err(self.wrong(place("correlation"), text));
        }
        if head.cores == 0 {
            let text = "cores must be at least 1: type for example cores = 4".to_owned();
            return Err(self.wrong(place("cores"), text));
        }
        if found.is_empty() && head.has_none.is_none() {
            let text = "it has no coefficient: add one, or has_none = \"REASON\"".to_owned();
            return Err(self.wrong(0..0, text));
        }
        let mut coefficients = BTreeMap::new();
        for (key, value) in found {
            let read = self.coefficient(key.name, key.dimension, head.volts, value, places)?;
            coefficients.insert(key.name.to_owned(), read);
        }
        let Head { name, title, about, volts, cores, correlation, closes, .. } = head;
        let (path, message_bytes_max) = (head.path, head.message_bytes_max);
        let has_none = head.has_none;
        let part = EnergyPart {
            name,
            title,
            about,
            volts,
            cores,
            correlation,
            path,
            message_bytes_max,
            has_none,
            coefficients,
        };
        Ok(PartFile { part, closes })
    }

    fn coefficient(
        &self,
        name: &str,
        dimension: Dimension,
        volts: f64,
        value: Value,
        places: &Places,
    ) -> Result<Coefficient, PartError> {
        let place = |field: &str| {
            let of_field = places.get(&format!("{name}.{field}"));
            of_field.or(places.get(name)).cloned().unwrap_or(0..0)
        };
        let is_told = |field: &str| {
            let text = value.get(field).and_then(Value::as_str);
            text.is_some_and(|text| !text.trim().is_empty())
        };
        for (field, fix) in TOLD {
            if !is_told(field) {
                let text = format!("{name} has no {field}: {fix}");
                return Err(self.wrong(place(field), text));
            }
        }
        let written: Written = value.try_into().map_err(|error: toml::de::Error| {
            self.wrong(place("value"), format!("{name}: {}", error.message()))
        })?;
        if !(written.value.is_finite() && written.value >= 0.0) {
            let text = format!("{name}: {} is not a valid quantity: type 0 or more", written.value);
            return Err(self.wrong(place("value"), text));
        }
        let units = dimension.units(volts);
        let unit = units.iter().find(|(unit, _)| *unit == written.unit);
        let Some((_, factor)) = unit else {
            let known: Vec<&str> = units.iter().map(|(unit, _)| *unit).collect();
            let text = format!("{name}: {:?} is not its unit: type {}", written.unit, all(&known));
            return Err(self.wrong(place("unit"), text));
        };
        let spread = spread(&written.uncertainty).ok_or_else(|| {
            let text = format!(
                "{name}: {:?} is not an uncertainty: type half the width at 95 % such as \"10 \
                 %\", or a factor such as \"x2\"",
                written.uncertainty
            );
            self.wrong(place("uncertainty"), text)
        })?;
        Ok(Coefficient {
            value: written.value * factor,
            published: format!("{} {}", written.value, written.unit),
            uncertainty: written.uncertainty,
            factor: spread,
            basis: written.basis,
            source: written.source,
            verification: written.verification,
            row: written.row,
        })
    }
}

fn unknown<'n>(name: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("unknown key {name:?}: did you mean {near}?"),
        None => format!("unknown key {name:?}: type {}", all(&known.collect::<Vec<_>>())),
    }
}

/// `a, b or c`.
fn all(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.join(""),
    }
}

/// The factor of an uncertainty: 1.1 for `10 %`, 2 for `x2`. At most a thousand.
fn spread(text: &str) -> Option<f64> {
    let text = text.trim();
    let factor = match (text.strip_suffix('%'), text.strip_prefix('x')) {
        (Some(percent), _) => 1.0 + percent.trim().parse::<f64>().ok()? / 100.0,
        (None, Some(factor)) => factor.trim().parse().ok()?,
        (None, None) => return None,
    };
    (1.0..=1000.0).contains(&factor).then_some(factor)
}

/// Keys of a file besides its coefficients.
const HEAD: [&str; 10] = [
    "name",
    "title",
    "about",
    "volts",
    "cores",
    "correlation",
    "path",
    "message_bytes_max",
    "has_none",
    "closes",
];

/// Keys of a coefficient.
const FIELDS: [&str; 7] =
    ["value", "unit", "uncertainty", "basis", "source", "verification", "row"];

/// Required texts of a coefficient, and what to type.
const TOLD: [(&str, &str); 5] = [
    ("source", "a number without one is refused: type where it was published"),
    ("verification", "type who verified it or measured it again, or \"not verified yet\""),
    ("unit", "type for example unit = \"W\""),
    ("uncertainty", "type for example uncertainty = \"10 %\""),
    ("basis", "type where the uncertainty comes from, such as \"as published\""),
];

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = \"mine\"\ntitle = \"Mine\"\nabout = \"A board.\"\nvolts = 5.0\n\
        correlation = 0.5\n\n[idle]\nvalue = 220\nunit = \"mA\"\nuncertainty = \"10 %\"\n\
        basis = \"as published\"\nsource = \"a bench\"\nverification = \"not verified yet\"\n";

    fn refusal(text: &str) -> String {
        PartFile::parse(Kind::Device, "mine.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_coefficient_is_turned_into_the_units_of_the_model() {
        let file = PartFile::parse(Kind::Device, "mine.toml", GOOD).unwrap();
        let idle = &file.part.coefficients["idle"];
        assert!((idle.value - 1.1).abs() < 1e-12, "{idle:?}");
        assert_eq!((idle.published.as_str(), idle.factor), ("220 mA", 1.1));
    }

    #[test]
    fn a_typo_is_named_with_its_place_and_the_nearest_key() {
        let said = refusal(&GOOD.replace("[idle]", "[idel]"));
        assert!(
            said.starts_with("mine.toml:7:2: ") && said.ends_with("did you mean idle?"),
            "{said}"
        );
        let said = refusal(&GOOD.replace("source", "sorce"));
        assert!(said.starts_with("mine.toml:12:1: ") && said.contains("mean source?"), "{said}");
        let said = refusal(&GOOD.replace("volts", "voltage"));
        assert!(said.starts_with("mine.toml:4:1: "), "{said}");
    }

    #[test]
    fn a_coefficient_without_a_source_is_refused() {
        for text in [GOOD.replace("source = \"a bench\"\n", ""), GOOD.replace("a bench", " ")] {
            let said = refusal(&text);
            assert!(said.contains("idle has no source"), "{said}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_told_what_to_type() {
        for (from, to, part) in [
            ("\"mA\"", "\"J\"", "type W, mW, mA, uA or mC/h"),
            ("value = 220", "value = -1", "type 0 or more"),
            ("value = 220", "value = nan", "type 0 or more"),
            ("value = 220", "value = \"220\"", "idle: "),
            ("10 %", "some", "such as \"10 %\""),
            ("10 %", "-5 %", "such as \"10 %\""),
            ("volts = 5.0", "volts = 0.0", "type for example volts"),
            ("correlation = 0.5", "correlation = 2.0", "from 0 to 1"),
            ("[idle]", "[idle", "mine.toml:7:"),
        ] {
            let said = refusal(&GOOD.replace(from, to));
            assert!(said.contains(part), "{from} -> {to}: {said}");
        }
    }
}
