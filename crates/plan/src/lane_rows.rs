//! Protocols and targets of a plan, and the keys that apply to each: an axis of one protocol does
//! not multiply the cases of another.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::Value;
use weigh_model::Protocol;

use crate::background_keys::STATE;
use crate::document::{Axis, Document};
use crate::keys::{ABILITIES, DURABILITY, Keys, OFFLOAD, PIPELINE as PIPELINE_KEYS, RELAY, SHARE};
use crate::kind::nearest;
use crate::problem::{Problem, Problems};
use crate::row::{Row, spelt};
use crate::world::{PIPELINE, REFERENCE, TargetWord, World};

/// A protocol and its target, with the keys of all its cases.
pub(crate) struct LaneRows {
    pub(crate) protocol: &'static dyn Protocol,
    pub(crate) target: String,
    /// Keys of the pipeline that do not apply to it.
    unused: Vec<&'static str>,
    /// Places of protocol and target, for their errors.
    pub(crate) named: Row,
    /// Keys of all its cases.
    pub(crate) fixed: Row,
    /// Its axes.
    pub(crate) axes: Vec<Axis>,
}

impl LaneRows {
    /// Number of its cases.
    pub(crate) fn count(&self) -> u64 {
        let lengths = self.axes.iter().map(|axis| axis.rows.len() as u64);
        lengths.fold(1, u64::saturating_mul)
    }

    /// The rows of all its cases, the last axis changing fastest.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        (0..self.count()).map(|number| {
            let mut rest = number;
            let mut row = self.fixed.clone();
            for axis in self.axes.iter().rev() {
                let length = axis.rows.len() as u64;
                row.extend(axis.rows[(rest % length) as usize].clone());
                rest /= length;
            }
            row
        })
    }

    /// The keys of `row` that apply to this lane.
    fn own(&self, row: &Row) -> Row {
        let own = |key: &str| self.own_name(key);
        row.iter().filter_map(|(key, given)| Some((own(key)?, given.clone()))).collect()
    }

    /// The name of `key` in this lane; `None` if it does not apply.
    fn own_name(&self, key: &str) -> Option<String> {
        let (protocol, target) = (self.protocol, self.target.as_str());
        if key == OVERLOAD {
            let has = protocol.settings().iter().any(|setting| setting.key == "overload");
            return (has && target == REFERENCE).then(|| format!("{}.overload", protocol.name()));
        }
        if key == RELAY || key == ABILITIES {
            return Some(key.to_owned());
        }
        if key == DURABILITY {
            // The profile of a server that Weighbridge starts has its own.
            return (target == REFERENCE || target.contains("://")).then(|| key.to_owned());
        }
        if SHARE.contains(&key) {
            // Weighbridge cannot limit an external server.
            return (!target.contains("://")).then(|| key.to_owned());
        }
        if PIPELINE_KEYS.contains(&key) {
            return (target == PIPELINE && !self.unused.contains(&key)).then(|| key.to_owned());
        }
        let first = key.split('.').next().unwrap_or_default();
        let is_of_all = ["load", "path", OFFLOAD, STATE].contains(&first);
        (is_of_all || first == protocol.name()).then(|| key.to_owned())
    }
}

/// The lanes of a plan, in the order of the file.
pub(crate) fn lanes(
    document: &Document,
    keys: &Keys,
    world: &dyn World,
) -> Result<Vec<LaneRows>, Problems> {
    let mut choice = Choice { keys, world, problems: Problems::default(), used: BTreeSet::new() };
    let chooses = |axis: &&Axis| {
        axis.rows.iter().any(|row| row.contains_key(PROTOCOL) || row.contains_key(TARGET))
    };
    let (choosing, others): (Vec<&Axis>, Vec<&Axis>) = document.axes.iter().partition(chooses);
    let picks = LaneRows {
        protocol: keys.protocols()[0],
        target: String::new(),
        unused: Vec::new(),
        named: Row::new(),
        fixed: Row::new(),
        axes: choosing.into_iter().cloned().collect(),
    };
    let mut lanes = Vec::new();
    if picks.count() > CASES_MAX {
        choice.problems.add(too_many(picks.count()));
        return Err(choice.problems);
    }
    for picked in picks.rows() {
        lanes.extend(choice.lane(document, &picked, &others));
    }
    if choice.problems.is_empty() {
        choice.check_used(document, &lanes);
    }
    choice.problems.or(lanes)
}

/// Adds errors in the names of protocols and targets to the other errors.
pub(crate) fn check_words(
    document: &Document,
    keys: &Keys,
    world: &dyn World,
    problems: Problems,
) -> Problems {
    let mut choice = Choice { keys, world, problems, used: BTreeSet::new() };
    let rows = document.axes.iter().flat_map(|axis| &axis.rows);
    for (key, given) in std::iter::once(&document.fixed).chain(rows).flatten() {
        let word = given.value.as_str().unwrap_or_default();
        match key.as_str() {
            PROTOCOL => drop(choice.protocol(word, &given.place)),
            TARGET => drop(choice.target(word, &given.place)),
            _ => {}
        }
    }
    choice.problems
}

/// The error for more cases than a plan may have.
pub(crate) fn too_many(cases: u64) -> Problem {
    Problem::missing(
        format!("the plan has {cases} cases, and at most {CASES_MAX} can be kept in one run"),
        "take larger steps, zip axes that belong together, or split the plan",
    )
}

struct Choice<'c> {
    keys: &'c Keys,
    world: &'c dyn World,
    problems: Problems,
    /// Places of the protocols and targets that a lane uses.
    used: BTreeSet<(usize, usize)>,
}

impl Choice<'_> {
    fn lane(&mut self, document: &Document, picked: &Row, others: &[&Axis]) -> Option<LaneRows> {
        let mut row = document.fixed.clone();
        row.extend(picked.clone());
        let (asked, named) = (row.remove(PROTOCOL), row.remove(TARGET));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let target = match &named {
            None => TargetWord { name: REFERENCE.to_owned(), speaks: None },
            Some(given) => self.target(&text(&given.value), &given.place)?,
        };
        let protocol = match (&asked, &target.speaks) {
            (Some(given), _) => self.protocol(&text(&given.value), &given.place)?,
            (None, Some(speaks)) => self.protocol(speaks.first()?, &named.as_ref()?.place)?,
            (None, None) => {
                let text = "the plan has no protocol";
                let fix = "add protocol = \"mqtt\" at the top, or a list of them below [vary]";
                let place = named.map(|given| given.place);
                self.problems.add(Problem { place, text: text.into(), fix: fix.into() });
                return None;
            }
        };
        let speaks = |speaks: &Vec<String>| speaks.iter().any(|name| name == protocol.name());
        if !target.speaks.as_ref().is_none_or(speaks) {
            // Of a product, pairs that do not fit are left out; a pair in one row is an error.
            let both = |row: &Row| row.contains_key(PROTOCOL) && row.contains_key(TARGET);
            if both(picked) && document.axes.len() == 1 || both(&document.fixed) {
                self.problems.add(Problem::at(
                    named?.place,
                    format!("{} does not speak {}", target.name, protocol.name()),
                    format!("it speaks {}", target.speaks.unwrap_or_default().join(", ")),
                ));
            }
            return None;
        }
        let both = [(PROTOCOL, asked), (TARGET, named)];
        let named = both.into_iter().filter_map(|(key, given)| Some((key.to_owned(), given?)));
        let named: Row = named.collect();
        self.used.extend(named.values().map(|given| (given.place.start, given.place.end)));
        let (target, fixed, axes) = (target.name, Row::new(), Vec::new());
        let is_unused = |key: &&str| !self.world.is_used_by_entry(protocol, key);
        let unused = PIPELINE_KEYS.into_iter().filter(is_unused).collect();
        let mut lane = LaneRows { protocol, target, unused, named, fixed, axes };
        lane.fixed = lane.own(&row);
        lane.axes = others.iter().map(|axis| narrowed(axis, &lane)).collect();
        Some(lane)
    }

    fn target(&mut self, word: &str, place: &Range<usize>) -> Option<TargetWord> {
        let found = self.world.target(word);
        found
            .map_err(|said| {
                let (wrong, fix) = said.split_once(": ").unwrap_or((&said, ""));
                self.problems.add(Problem::at(place.clone(), wrong, fix));
            })
            .ok()
    }

    fn protocol(&mut self, word: &str, place: &Range<usize>) -> Option<&'static dyn Protocol> {
        let wanted = word.to_ascii_lowercase();
        let protocols = self.keys.protocols();
        let is_it = |protocol: &&&'static dyn Protocol| {
            protocol.name() == wanted || protocol.aliases().contains(&wanted.as_str())
        };
        let found = protocols.iter().find(is_it).copied();
        if found.is_none() {
            let names: Vec<&str> = protocols.iter().map(|protocol| protocol.name()).collect();
            let targets = self.world.target_names();
            let fix = if targets.contains(&wanted) {
                format!("{word} is a target: type target = {word:?}")
            } else {
                let aliases = protocols.iter().flat_map(|protocol| protocol.aliases()).copied();
                let near = nearest(word, names.iter().copied().chain(aliases));
                let near = near.map_or(String::new(), |near| format!("did you mean {near}? "));
                format!("{near}There are: {}", names.join(", "))
            };
            let text = format!("unknown protocol {word:?}");
            self.problems.add(Problem::at(place.clone(), text, fix));
        }
        found
    }

    /// Checks that every key applies to some lane.
    fn check_used(&mut self, document: &Document, lanes: &[LaneRows]) {
        let rows = document.axes.iter().flat_map(|axis| &axis.rows);
        let mut told = BTreeSet::new();
        for row in std::iter::once(&document.fixed).chain(rows) {
            for (key, given) in row {
                if key == PROTOCOL || key == TARGET {
                    if !self.used.contains(&(given.place.start, given.place.end)) {
                        let (word, text) = (&given.value, "fits nothing else in this plan");
                        let fix = "leave it out, or add a protocol or target that fits";
                        let text = format!("{word} {text}");
                        self.problems.add(Problem::at(given.place.clone(), text, fix));
                    }
                    continue;
                }
                let means = |lane: &LaneRows| lane.own_name(key).is_some();
                if lanes.iter().any(means) || !told.insert(key) {
                    continue;
                }
                let first = key.split('.').next().unwrap_or_default();
                let (text, fix) = if key == OVERLOAD {
                    let text = "no reference server in this plan has an overload policy";
                    (text.to_owned(), "leave it out, or add a reference broker".to_owned())
                } else if key == DURABILITY {
                    let text = "no target in this plan is a reference server or a URL, and others \
                                have the durability of their profile";
                    let fix = "leave it out, choose another profile such as artemis@memory, or \
                               add a reference server";
                    (text.to_owned(), fix.to_owned())
                } else if SHARE.contains(&key.as_str()) {
                    let text = "no target in this plan is started by weigh, and no other can be \
                                given a share of the machine";
                    (text.to_owned(), "leave it out, or add a server that weigh starts".into())
                } else if PIPELINE_KEYS.contains(&key.as_str()) {
                    let text = format!("{key}: no pipeline in this plan uses it");
                    let fix = "leave it out, or type target = \"pipeline\"; broker belongs to \
                                its entry by mqtt, batch and linger to those by mqtt and http1";
                    (text, fix.to_owned())
                } else {
                    (
                        format!("{key}: {first} is not in this plan"),
                        format!("leave it out, or add {first} to the protocols"),
                    )
                };
                self.problems.add(Problem::at(given.place.clone(), text, fix));
            }
        }
    }
}

/// The axis for `lane`, with equal rows merged.
fn narrowed(axis: &Axis, lane: &LaneRows) -> Axis {
    let own: Vec<Row> = axis.rows.iter().map(|row| lane.own(row)).collect();
    let is_whole = own.iter().zip(&axis.rows).all(|(own, all)| own.len() == all.len());
    if is_whole {
        return Axis { rows: own };
    }
    let mut seen = BTreeSet::new();
    Axis { rows: own.into_iter().filter(|row| seen.insert(spelt(row))).collect() }
}

/// The key of the protocol.
pub(crate) const PROTOCOL: &str = "protocol";

/// The key of the target.
pub(crate) const TARGET: &str = "target";

/// The key of a broker's overload policy, whichever broker it is.
const OVERLOAD: &str = "target.overload";

/// Maximum number of cases in one run: their points are in its plan, its journal and its report.
pub(crate) const CASES_MAX: u64 = 100_000;
