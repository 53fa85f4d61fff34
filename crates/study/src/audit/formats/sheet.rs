//! The figures of one tool's output on their way into the form that the rules read.

use std::collections::BTreeMap;

use crate::audit::figure::{Evidence, Fact, Figure, Place, Quantity, Statistic};
use crate::audit::series_csv::half_digit;
use crate::audit::vocabulary::factor;

/// Collects figures of one output.
pub(super) struct Sheet {
    evidence: Evidence,
    file: String,
    table: String,
    keys: BTreeMap<String, String>,
}

/// A printed number: its value and its rounding in the unit of its quantity, and how it read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Printed {
    pub(super) value: f64,
    pub(super) rounding: f64,
    pub(super) text: String,
}

impl Sheet {
    /// The sheet of `tool`'s output in `file`.
    pub(super) fn new(file: &str, tool: &str) -> Sheet {
        let evidence = Evidence::of(file);
        let (file, table) = (file.to_owned(), tool.to_owned());
        Sheet { evidence, file, table, keys: BTreeMap::new() }
    }

    /// States something of all figures.
    pub(super) fn fact(&mut self, key: &str, value: impl Into<String>) {
        let (table, subject) = (Some(self.table.clone()), None);
        let (key, value) = (key.to_owned(), value.into());
        self.evidence.facts.push(Fact { table, subject, key, value, is_said: true });
    }

    /// The keys of the cell that the figures from here on belong to.
    pub(super) fn cell(&mut self, keys: &[(&str, &str)]) {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        self.keys = keys.iter().map(owned).collect();
    }

    /// Adds a figure; `line` is 0 where the output has none.
    pub(super) fn put(
        &mut self,
        line: u64,
        series: &str,
        quantity: Quantity,
        statistic: Statistic,
        printed: &Printed,
    ) {
        self.evidence.figures.push(Figure {
            place: Place {
                file: self.file.clone(),
                line,
                table: self.table.clone(),
                series: series.to_owned(),
            },
            subjects: Vec::new(),
            keys: self.keys.clone(),
            quantity,
            statistic,
            is_limit: false,
            is_claim: false,
            value: printed.value,
            rounding: printed.rounding,
            printed: printed.text.clone(),
        });
    }

    /// What was collected.
    pub(super) fn done(self) -> Evidence {
        self.evidence
    }
}

impl Printed {
    /// A number with its unit as tools write it: `52.57us`, `145.79k`, `1.02 m`, `0.00%`; `unit`
    /// is used if it has none. `None` if it is not a number.
    pub(super) fn read(text: &str, unit: &str) -> Option<Printed> {
        let text = text.trim().trim_end_matches([',', ';']);
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-');
        let (digits, own) = text.split_at(end.unwrap_or(text.len()));
        let own = own.trim();
        let scale = match own {
            "k" => 1e3,
            "M" => 1e6,
            "" => factor(unit),
            _ => factor(own),
        };
        let value: f64 = digits.parse().ok()?;
        let text = if own.is_empty() { format!("{digits} {unit}") } else { text.to_owned() };
        Some(Printed { value: value * scale, rounding: half_digit(digits) * scale, text })
    }

    /// An exact count.
    pub(super) fn count(number: u64) -> Printed {
        Printed { value: number as f64, rounding: 0.0, text: number.to_string() }
    }

    /// A number in `unit` as a machine wrote it, with all its digits.
    pub(super) fn exact(value: f64, unit: &str) -> Printed {
        let scale = factor(unit);
        let text = format!("{value} {unit}");
        Printed { value: value * scale, rounding: half_digit(&value.to_string()) * scale, text }
    }

    /// A share of counts.
    pub(super) fn share(part: u64, whole: u64) -> Printed {
        let value = part as f64 / whole.max(1) as f64;
        Printed { value, rounding: 0.0, text: format!("{part} of {whole}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_write_numbers_in_many_ways() {
        for (text, unit, value) in [
            ("52.57us", "", 52.57e-6),
            ("1.18ms,", "", 1.18e-3),
            ("1.02m", "", 61.2),
            ("145.79k", "", 145_790.0),
            ("0.0104", "s", 0.0104),
            ("99.50%", "", 0.995),
        ] {
            let printed = Printed::read(text, unit).unwrap();
            assert!((printed.value / value - 1.0f64).abs() < 1e-12, "{text}: {printed:?}");
        }
        assert!((Printed::read("52.57us", "").unwrap().rounding - 5e-9).abs() < 1e-15);
        assert_eq!(Printed::read("nothing", "s"), None);
    }
}
