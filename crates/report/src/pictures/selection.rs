//! Names of pictures as files, by metric and pattern, and which of them are written unless others
//! are chosen.

use std::collections::{BTreeMap, BTreeSet};

use super::gallery::Gallery;
use super::picture::{Kind, Picture};
use crate::summary::{HEADLINES, Matrix, Summary};

/// A picture with its name as a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<'g> {
    /// Name without an extension: `response-time-p99-publish-by-case`.
    pub name: String,
    /// True if it is written unless others are chosen.
    pub is_default: bool,
    /// The picture.
    pub picture: &'g Picture,
}

impl Gallery {
    /// All pictures with their names, in the order of the page.
    pub fn named(&self, summary: &Summary) -> Vec<Named<'_>> {
        let names = Names::of(summary);
        let mut known: BTreeSet<String> = BTreeSet::new();
        let with_axis: BTreeSet<&str> = self
            .pictures
            .iter()
            .filter(|picture| picture.kind == Kind::Axis)
            .map(|picture| picture.subject.as_str())
            .collect();
        let mut curves: BTreeMap<&str, usize> = BTreeMap::new();
        for picture in self.pictures.iter().filter(|picture| picture.kind == Kind::Curve) {
            *curves.entry(picture.subject.as_str()).or_default() += 1;
        }
        let named = |picture| {
            let wanted = names.name(picture);
            let numbers = (2..).map(|number| format!("{wanted}-{number}"));
            let mut free = std::iter::once(wanted.clone()).chain(numbers);
            let name = free.find(|name| !known.contains(name)).unwrap_or_default();
            known.insert(name.clone());
            let is_repeated = curves.get(picture.subject.as_str()).is_some_and(|n| *n > CURVES_MAX)
                && picture.kind == Kind::Curve
                || repeats_response(picture, summary)
                || picture.kind == Kind::Dots && with_axis.contains(picture.subject.as_str());
            Named { name, is_default: !is_repeated && is_default(picture, summary), picture }
        };
        self.pictures.iter().map(named).collect()
    }
}

/// The pictures that `words` choose: a whole name or whole words of it (`response-time-p99`, `p99`,
/// `over-time`), or a metric (`response_time_ns.p99`); all pictures by `all`. Without words, those
/// that are written by default.
///
/// # Errors
/// The first word that chooses nothing.
pub fn chosen<'g>(all: Vec<Named<'g>>, words: &[String]) -> Result<Vec<Named<'g>>, String> {
    if words.is_empty() {
        return Ok(all.into_iter().filter(|named| named.is_default).collect());
    }
    let fits = |word: &str, name: &str| {
        let word = metric_name(word);
        word == ALL || (!word.is_empty() && format!("-{name}-").contains(&format!("-{word}-")))
    };
    let nothing = |word: &&String| !all.iter().any(|named| fits(word, &named.name));
    if let Some(word) = words.iter().find(nothing) {
        return Err(word.clone());
    }
    let is_chosen = |named: &Named<'_>| words.iter().any(|word| fits(word, &named.name));
    Ok(all.into_iter().filter(is_chosen).collect())
}

/// True for a service time whose response time is shown in every case: it is the second number.
fn repeats_response(picture: &Picture, summary: &Summary) -> bool {
    let Some(part) = picture.subject.strip_prefix("service_time_ns.") else { return false };
    let response = format!("response_time_ns.{part}");
    summary.cells.iter().all(|cell| cell.shown(&response).is_some())
}

/// True for pictures that answer a question of most readers. Those of single cases are too many in
/// a large run.
fn is_default(picture: &Picture, summary: &Summary) -> bool {
    let has_few_cells = summary.cells.len() <= CELLS_MAX;
    match picture.kind {
        Kind::Dots | Kind::Axis => HEADLINES.contains(&picture.subject.as_str()),
        // The trials of a search are steps, not results.
        Kind::OverTime => has_few_cells && summary.limits.is_empty(),
        Kind::Flow => {
            let cell = picture.subject.parse().ok().and_then(|cell: usize| summary.cells.get(cell));
            let is_whole = |cell: &crate::summary::Cell| {
                cell.ledger.lost.unwrap_or(0) + cell.ledger.late + cell.ledger.not_sent == 0
            };
            has_few_cells && cell.is_some_and(|cell| !is_whole(cell))
        }
        Kind::Histogram | Kind::Session => false,
        Kind::Curve
        | Kind::Cost
        | Kind::Modelled
        | Kind::Wire
        | Kind::Way
        | Kind::Search
        | Kind::Loads => true,
    }
}

/// What names are made of.
struct Names {
    labels: Vec<String>,
    /// The pattern of all cells with a hyphen before it; empty if they differ.
    pattern: String,
}

impl Names {
    fn of(summary: &Summary) -> Names {
        let own = summary.run.plan.load.pattern.to_string();
        let is_other = |cell: &crate::summary::Cell| {
            cell.point.get("load.pattern").is_some_and(|pattern| *pattern != own.as_str())
        };
        let pattern = match summary.cells.iter().any(is_other) {
            true => String::new(),
            false => format!("-{own}"),
        };
        Names { labels: Matrix::new(&summary.cells).labels, pattern }
    }

    fn name(&self, picture: &Picture) -> String {
        let case = || {
            let cell: Option<usize> = picture.subject.parse().ok();
            cell.and_then(|cell| self.labels.get(cell)).map_or_else(String::new, |l| file_name(l))
        };
        let metric = metric_name(&picture.subject);
        let pattern = &self.pattern;
        // A part of a picture has its number at the end of the picture's name.
        let number = picture.name.rsplit_once('-').filter(|_| !picture.part.is_empty());
        let number = number.map_or_else(String::new, |(_, number)| format!("-{number}"));
        match picture.kind {
            Kind::Dots => format!("{metric}{pattern}-by-case{number}"),
            Kind::Axis => {
                let key = picture.about["x"].as_str().unwrap_or_default();
                format!("{metric}{pattern}-by-{}{number}", file_name(key))
            }
            Kind::Curve => {
                let group = file_name(picture.about["group"].as_str().unwrap_or_default());
                let group = if group.is_empty() { group } else { format!("-{group}") };
                format!("{metric}{pattern}-percentiles{group}{number}")
            }
            Kind::Histogram => {
                let time = picture.name.rsplit('-').next().unwrap_or_default();
                format!("{}{pattern}-histogram-{}", metric_name(time), case())
            }
            Kind::OverTime => format!("over-time{pattern}-{}", case()),
            Kind::Flow => format!("messages{pattern}-{}", case()),
            Kind::Cost => format!("cpu-time{pattern}-by-case{number}"),
            Kind::Session => format!("session{pattern}-{}", case()),
            Kind::Modelled | Kind::Wire | Kind::Way | Kind::Search | Kind::Loads => {
                file_name(&picture.name)
            }
        }
    }
}

/// `response_time_ns.p99` as `response-time-p99`: the axis of the picture has the unit.
fn metric_name(metric: &str) -> String {
    let mut parts = metric.split('.').map(|part| part.trim_end_matches("_ns"));
    file_name(&parts.by_ref().collect::<Vec<_>>().join("-"))
}

/// Letters and digits in lower case, one hyphen for everything else.
fn file_name(text: &str) -> String {
    let mut name = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            name.push(character.to_ascii_lowercase());
        } else if !name.ends_with('-') && !name.is_empty() {
            name.push('-');
        }
    }
    name.trim_end_matches('-').to_owned()
}

/// Chooses every picture.
const ALL: &str = "all";

/// Groups of curves up to which all are written by default.
const CURVES_MAX: usize = 4;

/// Cells up to which each has pictures of its own by default.
const CELLS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn names_are_words_with_hyphens() {
        assert_eq!(metric_name("response_time_ns.p99"), "response-time-p99");
        assert_eq!(metric_name("target_cpu_us_per_message"), "target-cpu-us-per-message");
        assert_eq!(file_name("mqtt qos=1 on mosquitto"), "mqtt-qos-1-on-mosquitto");
        assert_eq!(file_name(" connections=100 "), "connections-100");
    }

    fn picture() -> Picture {
        Picture {
            name: "x".to_owned(),
            kind: Kind::Dots,
            subject: String::new(),
            part: String::new(),
            title: String::new(),
            note: String::new(),
            height: 0,
            about: Value::Null,
            option: Value::Null,
        }
    }

    #[test]
    fn a_word_chooses_a_name_or_its_beginning() {
        let picture = picture();
        let names = ["over-time-tcp", "over-time-http", "response-time-p99-by-case", "overhead"];
        let all = || -> Vec<Named<'_>> {
            let named = |(index, name): (usize, &&str)| Named {
                name: (*name).to_owned(),
                is_default: index == 2,
                picture: &picture,
            };
            names.iter().enumerate().map(named).collect()
        };
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            chosen(all(), &words).map(|all| all.into_iter().map(|own| own.name).collect::<Vec<_>>())
        };
        assert_eq!(of(&[]).unwrap(), [names[2]]);
        assert_eq!(of(&["over-time"]).unwrap(), names[..2]);
        assert_eq!(of(&["overhead", "over-time-tcp"]).unwrap(), [names[0], names[3]]);
        assert_eq!(of(&["all"]).unwrap().len(), 4);
        assert_eq!(of(&["p99"]).unwrap(), [names[2]]);
        assert_eq!(of(&["response_time_ns.p99"]).unwrap(), [names[2]]);
        assert_eq!(of(&["ove"]).unwrap_err(), "ove");
    }
}
