//! Reads a plan: from text to keys and values with their places. All errors of single values are
//! found at once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};
use weigh_model::condition::{Condition, Limit};
use weigh_model::modelled::EnergyAsked;
use weigh_model::plan::{Observe, Repeat, check_name};
use weigh_model::units::{Nanos, parse_duration};

use crate::background_keys::{BASELINE, STATE};
use crate::entries::{Entry, elements, entries, in_order};
use crate::keys::{EMULATE, Key, Keys};
use crate::kind::{Kind, Wrong};
use crate::problem::{Problem, Problems};
use crate::row::{Given, Row, spelt};
use crate::tables::Length;
use crate::{metrics, miniature, range};

/// Keys that vary together, one row after the other. A list in `[vary]` is an axis with rows of one
/// key; zipped keys share an axis, and so do all explicit cases.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) rows: Vec<Row>,
}

/// A stop rule: its axis, if it names one, and its conditions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StopRule {
    pub(crate) key: String,
    pub(crate) place: Range<usize>,
    pub(crate) conditions: Vec<Condition>,
}

/// The contents of a plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    pub(crate) name: Option<String>,
    pub(crate) question: Option<String>,
    pub(crate) seed: u64,
    pub(crate) thresholds: Vec<Condition>,
    pub(crate) fixed: Row,
    pub(crate) axes: Vec<Axis>,
    pub(crate) repeat: Repeat,
    pub(crate) stop: Vec<StopRule>,
    pub(crate) observe: Observe,
    /// Place of the list of emulated tools.
    pub(crate) emulate_place: Range<usize>,
    pub(crate) energy: Option<EnergyAsked>,
    /// True if cases with a background are measured without it too.
    pub(crate) has_baseline: bool,
}

/// Reads a plan from its table: its contents, and its errors.
pub(crate) fn read(table: &DeTable<'_>, keys: &Keys, length: Length) -> (Document, Problems) {
    let (problems, own, fixed) = (Problems::default(), BTreeMap::new(), Row::new());
    let mut reader = Reader { keys, length, problems, own, fixed };
    let mut axes = Axes::default();
    let mut stop = Vec::new();
    for (key, value) in in_order(table) {
        match (key.get_ref().as_ref(), value.get_ref()) {
            ("vary", DeValue::Table(table)) => axes.vary = reader.vary(table),
            ("stop", DeValue::Table(table)) => stop = reader.stop(table),
            ("case", DeValue::Array(list)) if !list.is_empty() => axes.cases = reader.cases(list),
            ("case", _) => reader.wrong(
                key.span(),
                Wrong::new("case is a list of tables", "write [[case]] above the keys of each"),
            ),
            ("zip", _) => axes.zip = Some(value),
            (STATE, DeValue::Array(_)) => reader.wrong(
                key.span(),
                Wrong::new("a plan has one background", "write [background] above its keys, once"),
            ),
            ("vary" | "stop", _) => {
                let text = format!("{} is a table", key.get_ref());
                let fix = format!("write [{}] above its keys", key.get_ref());
                reader.wrong(key.span(), Wrong::new(text, fix));
            }
            (name, plain) => reader.top(name, key.span(), plain, value.span()),
        }
    }
    let axes = axes.join(&mut reader);
    let mut document = reader.document(axes, stop);
    if length == Length::Miniature {
        miniature::shorten(&mut document.repeat, &mut document.fixed);
    }
    (document, reader.problems)
}

struct Reader<'k> {
    keys: &'k Keys,
    length: Length,
    problems: Problems,
    /// Keys of the run.
    own: BTreeMap<String, (Vec<Value>, Range<usize>)>,
    /// Keys of all cases.
    fixed: Row,
}

/// Axes before they are joined.
#[derive(Default)]
struct Axes<'d> {
    vary: Vec<(String, Range<usize>, Vec<Given>)>,
    cases: Vec<(Row, Range<usize>)>,
    zip: Option<&'d Spanned<DeValue<'d>>>,
}

impl Reader<'_> {
    fn wrong(&mut self, place: Range<usize>, wrong: Wrong) {
        self.problems.add(Problem::at(place, wrong.text, wrong.fix));
    }

    /// Reads a key at the top level, or a table of keys.
    fn top(&mut self, name: &str, key: Range<usize>, value: &DeValue<'_>, place: Range<usize>) {
        let first = name.split('.').next().unwrap_or_default();
        if let Err(wrong) = self.keys.check_table(first) {
            return self.wrong(key, wrong);
        }
        match value {
            DeValue::Table(table) => {
                for entry in entries(name, table) {
                    self.fix(&entry);
                }
            }
            value => self.fix(&Entry { name: name.to_owned(), key, value, place }),
        }
    }

    /// Reads a key whose value holds for all cases, or for the run.
    fn fix(&mut self, entry: &Entry<'_>) {
        let key = match self.keys.find(&entry.name) {
            Ok(key) => key.clone(),
            Err(wrong) => return self.wrong(entry.key.clone(), wrong),
        };
        let is_there = self.fixed.contains_key(&key.name) || self.own.contains_key(&key.name);
        if is_there {
            let text = format!("{} was given before", key.name);
            return self.wrong(entry.key.clone(), Wrong::new(text, "leave one of them out"));
        }
        if key.is_varied {
            if let Some(given) = self.value(&key, entry.value, &entry.place) {
                self.fixed.insert(key.name, given);
            }
            return;
        }
        let values = match (key.is_list, elements(entry.value)) {
            (true, Some(list)) => {
                let read = |element: &Spanned<DeValue<'_>>| {
                    self.value(&key, element.get_ref(), &element.span()).map(|given| given.value)
                };
                list.iter().filter_map(read).collect()
            }
            _ => {
                let given = self.value(&key, entry.value, &entry.place);
                given.map(|given| given.value).into_iter().collect()
            }
        };
        self.own.insert(key.name, (values, entry.place.clone()));
    }

    /// Reads one value of a key.
    fn value(&mut self, key: &Key, value: &DeValue<'_>, place: &Range<usize>) -> Option<Given> {
        let is_list = matches!(value, DeValue::Array(_)) || range_of(key.kind, value).is_some();
        let read = if is_list && key.is_varied {
            Err(self.several(key, value))
        } else {
            key.kind.read(value)
        };
        let read = read.and_then(|value| checked(key.kind, value));
        let read = read.and_then(|value| of_key(&key.name, value));
        match read {
            Ok(value) => Some(Given { value, place: place.clone() }),
            Err(wrong) => {
                let text = format!("{}: {}", key.name, wrong.text);
                self.wrong(place.clone(), Wrong::new(text, wrong.fix));
                None
            }
        }
    }

    /// The error of a list, or a range, where one value is expected.
    fn several(&self, key: &Key, value: &DeValue<'_>) -> Wrong {
        let mut fix = format!("write it below [vary]: {} = ...", key.name);
        let mut what = "range";
        if let Some(list) = elements(value) {
            what = "list";
            if list.iter().any(|own| matches!(own.get_ref(), DeValue::Table(_))) {
                let name = &key.name;
                let fix = format!(
                    "for one value type {name} = VALUE; for several type {name} = [VALUE, VALUE] \
                     below [vary]"
                );
                return Wrong::new("a list of tables is not allowed here", fix);
            }
            if let [only] = list
                && let DeValue::String(word) = only.get_ref()
            {
                let word = &**word;
                let mut protocols = self.keys.protocols().iter();
                let is_protocol =
                    protocols.any(|own| own.name() == word || own.aliases().contains(&word));
                if is_protocol && key.name == "target" {
                    let text = format!("{word:?} is a protocol, not a target");
                    return Wrong::new(text, format!("type protocol = {word:?}"));
                }
                fix = format!("for one value type {} = {word:?}", key.name);
            }
        }
        Wrong::new(format!("a {what} is allowed only below [vary]"), fix)
    }

    fn vary(&mut self, table: &DeTable<'_>) -> Vec<(String, Range<usize>, Vec<Given>)> {
        let mut axes: Vec<(String, Range<usize>, Vec<Given>)> = Vec::new();
        for entry in entries("", table) {
            let Some(key) = self.varied(&entry) else { continue };
            if axes.iter().any(|(name, ..)| *name == key.name) {
                let text = format!("{} was given before", key.name);
                self.wrong(entry.key.clone(), Wrong::new(text, "leave one of them out"));
                continue;
            }
            let mut values = self.axis(&key, &entry);
            if self.length == Length::Miniature {
                miniature::ends(&mut values);
            }
            axes.push((key.name, entry.key.clone(), values));
        }
        axes
    }

    /// Checks that a key may differ from case to case.
    fn varied(&mut self, entry: &Entry<'_>) -> Option<Key> {
        match self.keys.find(&entry.name) {
            Ok(key) if key.is_varied => Some(key.clone()),
            Ok(key) => {
                let text = format!("{} is the same in all cases", key.name);
                self.wrong(entry.key.clone(), Wrong::new(text, "write it at the top of the plan"));
                None
            }
            Err(wrong) => {
                self.wrong(entry.key.clone(), wrong);
                None
            }
        }
    }

    fn axis(&mut self, key: &Key, entry: &Entry<'_>) -> Vec<Given> {
        match (elements(entry.value), range_of(key.kind, entry.value)) {
            (Some([]), _) => {
                let text = format!("{}: the axis is empty", key.name);
                let fix = "type a value in its list, or leave it out";
                self.wrong(entry.place.clone(), Wrong::new(text, fix));
                Vec::new()
            }
            (Some(list), _) => {
                list.iter().flat_map(|one| self.point(key, one.get_ref(), &one.span())).collect()
            }
            (None, Some(_)) => self.point(key, entry.value, &entry.place),
            (None, None) => {
                let example =
                    if key.kind.is_ordered() { ", or a range \"5..60 step 5\"" } else { "" };
                let text = format!("{}: an axis is a list", key.name);
                let fix = format!("type the values in brackets, [1, 2, 3]{example}");
                self.wrong(entry.place.clone(), Wrong::new(text, fix));
                Vec::new()
            }
        }
    }

    /// Reads one element of an axis: a value, or a range of them.
    fn point(&mut self, key: &Key, value: &DeValue<'_>, place: &Range<usize>) -> Vec<Given> {
        let Some(text) = range_of(key.kind, value) else {
            return self.value(key, value, place).into_iter().collect();
        };
        match range::values(key.kind, text) {
            Ok(values) => {
                values.into_iter().map(|value| Given { value, place: place.clone() }).collect()
            }
            Err(wrong) => {
                let text = format!("{}: {}", key.name, wrong.text);
                self.wrong(place.clone(), Wrong::new(text, wrong.fix));
                Vec::new()
            }
        }
    }

    fn cases(&mut self, list: &[Spanned<DeValue<'_>>]) -> Vec<(Row, Range<usize>)> {
        let mut cases: Vec<(Row, Range<usize>)> = Vec::new();
        let mut seen = BTreeSet::new();
        for element in list {
            let DeValue::Table(table) = element.get_ref() else {
                let wrong = Wrong::new("a case is a table", "write [[case]] above its keys");
                self.wrong(element.span(), wrong);
                continue;
            };
            let mut row = Row::new();
            for entry in entries("", table) {
                let Some(key) = self.varied(&entry) else { continue };
                let given = self.value(&key, entry.value, &entry.place);
                row.extend(given.map(|given| (key.name, given)));
            }
            if !seen.insert(spelt(&row)) {
                let fix = "leave one out; set repetitions in [repeat]";
                self.wrong(element.span(), Wrong::new("this case was given before", fix));
            }
            cases.push((row, element.span()));
        }
        cases
    }

    fn stop(&mut self, table: &DeTable<'_>) -> Vec<StopRule> {
        let mut rules = Vec::new();
        for entry in entries("", table) {
            let Some(key) = self.varied(&entry) else { continue };
            if !key.kind.is_ordered() {
                let text = format!("{}: its values have no order", key.name);
                let fix = "stop rules are for axes of numbers, sizes, durations and rates";
                self.wrong(entry.key.clone(), Wrong::new(text, fix));
                continue;
            }
            if elements(entry.value).is_some_and(|list| list.is_empty()) {
                let text = format!("{}: the rule has no condition", key.name);
                let fix = "type one, such as \"first loss\", or leave the rule out";
                self.wrong(entry.place.clone(), Wrong::new(text, fix));
                continue;
            }
            let condition = Key { kind: Kind::Condition, is_varied: false, ..key.clone() };
            let single = [(entry.value, entry.place.clone())];
            let values: Vec<(&DeValue<'_>, Range<usize>)> = match elements(entry.value) {
                Some(list) => list.iter().map(|one| (one.get_ref(), one.span())).collect(),
                None => single.to_vec(),
            };
            let conditions = values
                .into_iter()
                .filter_map(|(value, place)| self.value(&condition, value, &place))
                .filter_map(|given| given.value.as_str()?.parse().ok())
                .collect();
            rules.push(StopRule { key: key.name, place: entry.key.clone(), conditions });
        }
        rules
    }

    /// Assembles the settings of the run.
    fn document(&mut self, axes: Vec<Axis>, stop: Vec<StopRule>) -> Document {
        let (repeat, energy) = (self.repeat(), self.energy());
        let own = &self.own;
        let one = |name: &str| own.get(name).and_then(|(values, _)| values.first());
        let text = |name: &str| one(name).and_then(Value::as_str).map(str::to_owned);
        let flag = |name: &str| one(name).and_then(Value::as_bool).unwrap_or(false);
        let thresholds = own.get("thresholds").map_or(&[][..], |(values, _)| values);
        let lookouts = own.get("observe.target").map_or(&[][..], |(values, _)| values);
        let (emulated, emulate_place) = own.get(EMULATE).cloned().unwrap_or_default();
        let time = |name: &str| text(name).and_then(|text| parse_duration(&text).ok());
        Document {
            name: text("name"),
            question: text("question"),
            seed: one("seed").and_then(Value::as_integer).unwrap_or(1) as u64,
            thresholds: thresholds.iter().filter_map(|v| v.as_str()?.parse().ok()).collect(),
            fixed: std::mem::take(&mut self.fixed),
            axes,
            repeat,
            stop,
            observe: Observe {
                every: time("observe.every"),
                messages: flag("observe.messages"),
                wire: flag("observe.wire"),
                pcap: flag("observe.pcap"),
                meter: text("observe.meter").and_then(|text| text.parse().ok()),
                idle: time("observe.idle"),
                target: lookouts.iter().filter_map(|v| v.as_str()?.parse().ok()).collect(),
                emulate: emulated.iter().filter_map(|v| v.as_str()?.parse().ok()).collect(),
                sys: text("observe.sys").and_then(|text| text.parse().ok()).unwrap_or_default(),
            },
            emulate_place,
            energy,
            has_baseline: one(BASELINE).and_then(Value::as_bool).unwrap_or(true),
        }
    }

    /// The table `[energy]`, which requires a device.
    fn energy(&mut self) -> Option<EnergyAsked> {
        let mut table = Table::new();
        for (name, (values, place)) in &self.own {
            let Some(key) = name.strip_prefix("energy.") else { continue };
            if !self.own.contains_key("energy.device") {
                let text = format!("{name} has no effect without a device");
                let problem = Problem::at(place.clone(), text, "add energy.device = \"pi-2b\"");
                self.problems.add(problem);
                return None;
            }
            table.insert(key.to_owned(), values.first()?.clone());
        }
        table.try_into().ok()
    }

    fn repeat(&mut self) -> Repeat {
        let mut table = Table::new();
        for (name, (values, _)) in &self.own {
            let Some(key) = name.strip_prefix("repeat.") else { continue };
            let value = match key {
                "until" => Value::Array(values.clone()),
                _ => values.first().cloned().unwrap_or(Value::Integer(0)),
            };
            table.insert(key.to_owned(), value);
        }
        table.entry("at_least").or_insert(Value::Integer(REPETITIONS));
        let repeat = table.try_into().unwrap_or_else(|_| Repeat::exactly(REPETITIONS as u32));
        let place = |name: &str| self.own.get(name).map(|(_, place)| place.clone());
        let is_varying = self.own.contains_key("repeat.until");
        let wrong = match (repeat.at_most, is_varying) {
            (Some(most), _) if most < repeat.at_least => place("repeat.at_most").map(|place| {
                let text = format!("at_most is less than at_least, which is {}", repeat.at_least);
                (place, Wrong::new(text, "make at_most the larger one"))
            }),
            (None, true) => place("repeat.until").map(|place| {
                let text = "until needs a limit on repetitions";
                (place, Wrong::new(text, "add repeat.at_most = 20"))
            }),
            (Some(most), false) if most > repeat.at_least => place("repeat.at_most").map(|place| {
                let text = "at_most has no effect without until";
                (place, Wrong::new(text, "add repeat.until = [\"p99 within 5 %\"]"))
            }),
            _ => None,
        };
        if let Some((place, wrong)) = wrong {
            self.wrong(place, wrong);
        }
        repeat
    }
}

impl Axes<'_> {
    /// Joins axes: one for the cases, one for zipped keys, one for each other list, in the order of
    /// the file.
    fn join(self, reader: &mut Reader<'_>) -> Vec<Axis> {
        let mut axes = Vec::new();
        if !self.cases.is_empty() {
            for (key, place, _) in &self.vary {
                if self.cases.iter().any(|(row, _)| row.contains_key(key)) {
                    let text = format!("{key} is in a case and below [vary]");
                    reader.wrong(place.clone(), Wrong::new(text, "leave one of them out"));
                }
            }
            axes.push(Axis { rows: self.cases.into_iter().map(|(row, _)| row).collect() });
        }
        for (key, place, _) in &self.vary {
            if reader.fixed.contains_key(key) {
                let text = format!("{key} has a value above and an axis here");
                reader.wrong(place.clone(), Wrong::new(text, "leave one of them out"));
            }
        }
        let groups = self.zip.map_or_else(Vec::new, |zip| groups(zip, reader));
        let mut zipped: BTreeSet<String> = BTreeSet::new();
        for (key, _, values) in &self.vary {
            if zipped.contains(key) {
                continue;
            }
            let group = groups.iter().find(|(names, _)| names.contains(key));
            let single = vec![key.clone()];
            let names = group.map_or(&single, |(names, _)| names);
            let mut rows = vec![Row::new(); values.len()];
            for name in names {
                let Some((.., values)) = self.vary.iter().find(|(known, ..)| known == name) else {
                    continue;
                };
                if values.len() != rows.len() {
                    let (own, other) = (rows.len(), values.len());
                    let text =
                        format!("zip needs equal lengths: {key} has {own} values, {name} {other}");
                    let place = group.map_or(0..0, |(_, place)| place.clone());
                    reader.wrong(place, Wrong::new(text, "make the lists equally long"));
                }
                for (row, given) in rows.iter_mut().zip(values) {
                    row.insert(name.clone(), given.clone());
                }
            }
            zipped.extend(names.iter().cloned());
            check_rows(&rows, reader);
            axes.push(Axis { rows });
        }
        for (names, place) in &groups {
            for name in names.iter().filter(|name| !self.vary.iter().any(|(key, ..)| key == *name))
            {
                let text = format!("zip names {name}, which is not an axis");
                reader.wrong(place.clone(), Wrong::new(text, "add its list below [vary]"));
            }
        }
        axes
    }
}

/// Rejects duplicate rows, except for single values of zipped keys.
fn check_rows(rows: &[Row], reader: &mut Reader<'_>) {
    let mut seen = BTreeSet::new();
    for row in rows.iter().filter(|row| !row.is_empty()) {
        if seen.insert(spelt(row)) {
            continue;
        }
        let told: Vec<String> =
            row.iter().map(|(key, given)| format!("{key} = {}", given.value)).collect();
        let place = row.values().map(|given| given.place.clone()).next().unwrap_or(0..0);
        let text = format!("{} is on this axis twice", told.join(", "));
        let fix = "leave one out; set repetitions in [repeat]";
        reader.wrong(place, Wrong::new(text, fix));
    }
}

/// The groups of zipped keys, with their places.
fn groups(zip: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Vec<(Vec<String>, Range<usize>)> {
    let wrong = Wrong::new(
        "zip is a list of lists of keys",
        "type for example zip = [[\"load.connections\", \"load.rate\"]]",
    );
    let Some(list) = elements(zip.get_ref()) else {
        reader.wrong(zip.span(), wrong);
        return Vec::new();
    };
    let mut groups: Vec<(Vec<String>, Range<usize>)> = Vec::new();
    for group in list {
        let Some(members) = elements(group.get_ref()).filter(|members| members.len() > 1) else {
            reader.wrong(group.span(), wrong.clone());
            continue;
        };
        let mut names = Vec::new();
        for member in members {
            let written = member.get_ref().as_str().unwrap_or_default();
            match reader.keys.find(written) {
                Ok(key) if groups.iter().any(|(other, _)| other.contains(&key.name)) => {
                    let text = format!("{written} is zipped twice");
                    reader.wrong(member.span(), Wrong::new(text, "name it once"));
                }
                Ok(key) => names.push(key.name.clone()),
                Err(wrong) => reader.wrong(member.span(), wrong),
            }
        }
        groups.push((names, group.span()));
    }
    groups
}

/// The text of a range, if the key's values can be stepped through.
fn range_of<'v>(kind: Kind, value: &'v DeValue<'_>) -> Option<&'v str> {
    value.as_str().filter(|text| kind.is_ordered() && range::is_range(text))
}

/// Rejects values that have the right kind and are invalid for the key.
fn of_key(key: &str, value: Value) -> Result<Value, Wrong> {
    let text = value.as_str().unwrap_or_default();
    match key {
        "thresholds" if text == "first loss" => {
            let text = "a threshold states what must hold, and this one would require losses";
            Err(Wrong::new(text, "type \"loss == 0\""))
        }
        "observe.every" if parse_duration(text) == Ok(Nanos(0)) => {
            let fix = "type \"500ms\", or leave it out: then it fits the length of the trial";
            Err(Wrong::new("an interval must be longer than 0", fix))
        }
        "energy.every" if parse_duration(text) == Ok(Nanos(0)) => {
            Err(Wrong::new("the time between messages must be longer than 0", "type \"1m\""))
        }
        "name" => check_name(text).map(|()| value).map_err(|said| Wrong::split(&said)),
        _ => Ok(value),
    }
}

/// Checks that a condition's figure exists, and that it does not compare with another run.
fn checked(kind: Kind, value: Value) -> Result<Value, Wrong> {
    let text = value.as_str().unwrap_or_default();
    match kind {
        Kind::Condition => {
            let Ok(condition) = text.parse::<Condition>() else { return Ok(value) };
            if let Limit::Change(_) = condition.limit {
                let text = format!("{text:?} compares with another run, and a plan has only one");
                let fix = "type a value with its unit, or use `weigh diff --fail-if`";
                return Err(Wrong::new(text, fix));
            }
            metrics::check(&condition.metric)?;
        }
        Kind::Precision => {
            if let Ok(precision) = text.parse::<weigh_model::plan::Precision>() {
                metrics::check(&precision.metric)?;
            }
        }
        _ => {}
    }
    Ok(value)
}

/// Default number of repetitions, as in `weigh compare`.
const REPETITIONS: i64 = 3;
