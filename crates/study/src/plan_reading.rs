//! Reads the plan files of a study: every table is a plan in the language of `weigh run`, with
//! what it needs, what is shorter in quick runs, and what is searched.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use weigh_plan::keys::Keys;
use weigh_plan::keys::RELAY;
use weigh_plan::world::{PIPELINE, REFERENCE};
use weigh_plan::{Length, Problem, Problems, Resolved, World, tables};

use crate::plans::{NEEDS_CGROUP, NEEDS_WIRE, Planned, StudyPlan};
use crate::scale::{Scale, Way};
use crate::search::SearchAsked;
use crate::texts::{StudyProblems, StudyTexts};

/// A plan with the place of its name in its file.
pub(crate) type Placed = (StudyPlan, Range<usize>);

/// The plans of both files, as far as nothing is wrong with them.
pub(crate) fn read(
    texts: &StudyTexts,
    world: &dyn World,
    problems: &mut StudyProblems,
) -> Vec<Placed> {
    let keys = Keys::new(world.protocols());
    let mut plans = Vec::new();
    for way in Way::PLANS {
        let text = texts.text(way.file());
        let document = match tables::parse(text) {
            Ok(document) => document,
            Err(wrong) => {
                problems.add(way.file(), wrong);
                continue;
            }
        };
        let (shared, own, wrong) = split(&document);
        problems.add(way.file(), wrong);
        for (name, table) in own {
            let file = PlanTable { study: &texts.name, way, name, table, shared, world };
            match file.read(&keys) {
                Ok(plan) => plans.push((plan, name.span())),
                Err(wrong) => problems.add(way.file(), wrong),
            }
        }
    }
    plans
}

type Name<'d> = Spanned<Cow<'d, str>>;

/// What all plans of a file share, each plan, and what is neither.
fn split<'d>(
    document: &'d DeTable<'d>,
) -> (Option<&'d DeTable<'d>>, Vec<(&'d Name<'d>, &'d DeTable<'d>)>, Problems) {
    let mut shared = None;
    let mut plans = Vec::new();
    let mut problems = Problems::default();
    for (name, value) in document {
        match value.get_ref() {
            DeValue::Table(table) if name.get_ref() == SHARED => shared = Some(table),
            DeValue::Table(table) => plans.push((name, table)),
            _ => {
                let text = format!("{} is not in a plan", name.get_ref());
                let fix = "every plan is a table: write [NAME] above its keys, or [shared]";
                problems.add(Problem::at(name.span(), text, fix));
            }
        }
    }
    plans.sort_by_key(|(name, _)| name.span().start);
    (shared, plans, problems)
}

struct PlanTable<'t, 'd> {
    study: &'t str,
    way: Way,
    name: &'d Name<'d>,
    table: &'d DeTable<'d>,
    shared: Option<&'d DeTable<'d>>,
    world: &'t dyn World,
}

impl<'d> PlanTable<'_, 'd> {
    fn read(&self, keys: &Keys) -> Result<StudyPlan, Problems> {
        let mut problems = Problems::default();
        let mut needs = self.needs(&mut problems);
        for (part, table) in [(self.table, self.name)].into_iter().chain(self.parts()) {
            check_searched(part, table, self.search_key(), keys, &mut problems);
        }
        let mut scales = BTreeMap::new();
        // The whole first: what is wrong with it is wrong with all of it.
        for scale in [Scale::Full, Scale::Quick, Scale::Mini] {
            match self.planned(scale) {
                Ok(planned) => drop(scales.insert(scale, planned)),
                Err(wrong) => {
                    wrong.iter().for_each(|one| problems.add(self.at_scale(one, scale)));
                    break;
                }
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        for planned in scales.values() {
            derive_needs(&planned.resolved, &mut needs);
        }
        let table = self.name.get_ref().to_string();
        Ok(StudyPlan { name: format!("{}/{table}", self.way), way: self.way, table, needs, scales })
    }

    /// A problem with its place, and the scale where it is not one of the whole plan.
    fn at_scale(&self, problem: &Problem, scale: Scale) -> Problem {
        let place = problem.place.clone().or_else(|| Some(self.name.span()));
        let text = match (scale, problem.place.is_some()) {
            (Scale::Full, true) => problem.text.clone(),
            (Scale::Full, false) => format!("{}: {}", self.name.get_ref(), problem.text),
            (scale, _) => format!("{} at scale {scale}: {}", self.name.get_ref(), problem.text),
        };
        Problem { place, text, fix: problem.fix.clone() }
    }

    fn planned(&self, scale: Scale) -> Result<Planned, Problems> {
        let own = self.below(self.table, scale);
        let shared = self.shared.map(|shared| self.below(shared, scale)).unwrap_or_default();
        let has_mini = self.part(MINI).is_some();
        let is_cut = scale == Scale::Mini && !has_mini;
        let search = self.search(scale)?.map(|search| match is_cut {
            true => search.shortened(),
            false => search,
        });
        // What a plan says of itself goes before what all of them share, also in a quick run.
        let mut layers: Vec<DeTable<'_>> = Vec::new();
        for (shared, own) in shared.into_iter().zip(own) {
            layers.extend(shared.map(|table| without(table, &PARTS)));
            layers.extend(own.map(|table| without(table, &PARTS)));
        }
        let smallest = search.as_ref().map(|search| search.smallest_load() + ONCE);
        let smallest = smallest.as_deref().map(tables::parse).transpose()?;
        layers.extend(smallest.map(|table| placed(&table, &self.limit_place())));
        let layers: Vec<&DeTable<'_>> = layers.iter().collect();
        let length = if is_cut { Length::Miniature } else { Length::Whole };
        let draft = weigh_plan::read_tables(&layers, length, self.world)?;
        let resolved = draft.resolve(&format!("{}-{}", self.study, self.name.get_ref()))?;
        Ok(Planned { resolved, search })
    }

    /// A table, and what it says of this scale and of those that this one is on top of.
    fn below(&self, table: &'d DeTable<'d>, scale: Scale) -> Layers<'d> {
        let part = |name: &str| table.get(name).and_then(as_table);
        match scale {
            Scale::Full => [Some(table), None, None],
            Scale::Quick => [Some(table), part(QUICK), None],
            Scale::Mini => [Some(table), part(QUICK), part(MINI)],
        }
    }

    fn part(&self, name: &str) -> Option<&'d DeTable<'d>> {
        self.table.get(name).and_then(as_table)
    }

    fn parts(&self) -> Vec<(&'d DeTable<'d>, &'d Name<'d>)> {
        let named = |name: &&str| Some((self.part(name)?, self.table.get_key_value(*name)?.0));
        [QUICK, MINI].iter().filter_map(named).collect()
    }

    fn limit_place(&self) -> Range<usize> {
        let found = self.table.get_key_value(LIMIT);
        found.map_or(self.name.span(), |(key, _)| key.span())
    }

    fn search(&self, scale: Scale) -> Result<Option<SearchAsked>, Problems> {
        let limits: Vec<&DeTable<'_>> = self
            .below(self.table, scale)
            .into_iter()
            .flatten()
            .filter_map(|table| table.get(LIMIT).and_then(as_table))
            .collect();
        match limits.is_empty() {
            true => Ok(None),
            false => SearchAsked::read(&limits, self.limit_place()).map(Some),
        }
    }

    /// The key that a search takes for itself; `None` where nothing is searched.
    fn search_key(&self) -> Option<&'static str> {
        Some(self.search(Scale::Full).ok()??.key())
    }

    /// What the plan says it needs.
    fn needs(&self, problems: &mut Problems) -> Vec<String> {
        for (part, name) in [(QUICK, "table"), (MINI, "table"), (LIMIT, "table")] {
            if let Some((key, value)) = self.table.get_key_value(part)
                && as_table(value).is_none()
            {
                let text = format!("{part} is a {name}");
                let fix = format!("write [{}.{part}] above its keys", self.name.get_ref());
                problems.add(Problem::at(key.span(), text, fix));
            }
        }
        let Some(value) = self.table.get(NEEDS) else { return Vec::new() };
        let DeValue::Array(list) = value.get_ref() else {
            let fix = "type for example needs = [\"mosquitto\", \"wire\"]";
            problems.add(Problem::at(value.span(), "needs must be a list of names", fix));
            return Vec::new();
        };
        let mut needs = Vec::new();
        for element in list {
            let word = element.get_ref().as_str().unwrap_or_default();
            let is_probe = [NEEDS_WIRE, NEEDS_CGROUP].contains(&word);
            if !is_probe && self.world.target(word).is_err() {
                let names = self.world.target_names();
                let text = format!("{word:?} is not a possible need of a plan");
                let fix = format!("type one of: wire, cgroup, {}", names.join(", "));
                problems.add(Problem::at(element.span(), text, fix));
            }
            needs.push(word.to_owned());
        }
        needs
    }
}

/// A table and what lies over it, at most two.
type Layers<'d> = [Option<&'d DeTable<'d>>; 3];

/// Adds what the cases of a plan need, whether it says so or not.
pub(crate) fn derive_needs(resolved: &Resolved, needs: &mut Vec<String>) {
    let mut add = |need: &str| {
        if !needs.iter().any(|known| known == need) {
            needs.push(need.to_owned());
        }
    };
    let observe = &resolved.plan.observe;
    if observe.wire || observe.pcap {
        add(NEEDS_WIRE);
    }
    for case in &resolved.plan.cases {
        for key in ["target", "target.broker"] {
            let target = case.get(key).and_then(|value| value.as_str()).unwrap_or(REFERENCE);
            if target != REFERENCE && target != PIPELINE {
                add(target);
            }
        }
        if case.keys().any(|key| key == "offload" || key.split('.').next() == Some("path")) {
            add(NEEDS_WIRE);
        }
        let is_relayed = case.get(RELAY).and_then(|value| value.as_bool()) == Some(true);
        if is_relayed && observe.wire {
            add(NEEDS_WIRE);
        }
    }
}

/// Says no to keys of a plan that the search sets.
fn check_searched(
    table: &DeTable<'_>,
    name: &Name<'_>,
    searched: Option<&'static str>,
    keys: &Keys,
    problems: &mut Problems,
) {
    let Some(searched) = searched else { return };
    let own = without(table, &PARTS);
    for (key, fix) in [
        (searched, "remove it: limit.from and limit.to are its ends"),
        ("load.duration", "remove it: limit.trial is the length of its trials"),
        ("load.messages", "remove it, or search a burst: limit.axis = \"burst\""),
    ] {
        if let Some(place) = tables::place_of(&own, key, keys) {
            let text = format!("{}: {key} is set by the search", name.get_ref());
            problems.add(Problem::at(place, text, fix));
        }
    }
}

fn as_table<'d>(value: &'d Spanned<DeValue<'d>>) -> Option<&'d DeTable<'d>> {
    match value.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

/// A table without these keys.
fn without<'d>(table: &DeTable<'d>, names: &[&str]) -> DeTable<'d> {
    let mut rest = table.clone();
    names.iter().for_each(|name| drop(rest.remove(*name)));
    rest
}

/// A table all of whose keys and values stand at one place.
pub(crate) fn placed<'d>(table: &DeTable<'d>, place: &Range<usize>) -> DeTable<'d> {
    let mut moved = DeTable::new();
    for (key, value) in table {
        let value = match value.get_ref() {
            DeValue::Table(inner) => DeValue::Table(placed(inner, place)),
            plain => plain.clone(),
        };
        let key = Spanned::new(place.clone(), key.get_ref().clone());
        moved.insert(key, Spanned::new(place.clone(), value));
    }
    moved
}

const SHARED: &str = "shared";
const NEEDS: &str = "needs";
const LIMIT: &str = "limit";
const QUICK: &str = "quick";
const MINI: &str = "mini";
const PARTS: [&str; 4] = [NEEDS, LIMIT, QUICK, MINI];

/// A lane of a search stands in its plan once.
const ONCE: &str = "repeat.at_least = 1\n";
