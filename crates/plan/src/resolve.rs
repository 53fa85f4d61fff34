//! Turns the contents of a plan into the resolved plan: every case with its complete load, checked.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Map;
use toml::de::DeTable;
use weigh_model::plan::Plan;
use weigh_model::trial::Point;

use crate::background;
use crate::background_keys::is_own;
use crate::case::{Case, word};
use crate::document::{self, Document};
use crate::emulated;
use crate::keys::Keys;
use crate::lane_rows::{CASES_MAX, LaneRows, check_words, lanes, too_many};
use crate::load::LoadWords;
use crate::matrix;
use crate::overrides::{self, Origin};
use crate::patience;
use crate::problem::{Problem, Problems};
use crate::row::{Given, Row, anything, below, told};
use crate::tables::{self, Length};
use crate::world::World;

/// A plan whose cases can be counted, before they are made.
///
/// # Examples
///
/// ```
/// # use weigh_model::protocol::Invalid;
/// # use weigh_plan::world::{REFERENCE, TargetWord, World};
/// # struct Servers;
/// # impl World for Servers {
/// #     fn protocols(&self) -> &'static [&'static dyn weigh_model::Protocol] {
/// #         weigh_protocols::PROTOCOLS
/// #     }
/// #     fn target(&self, word: &str) -> Result<TargetWord, String> {
/// #         Ok(TargetWord { name: word.to_owned(), speaks: None })
/// #     }
/// #     fn target_names(&self) -> Vec<String> {
/// #         vec![REFERENCE.to_owned()]
/// #     }
/// #     fn is_secret(&self, _key: &str, _value: &str) -> bool {
/// #         false
/// #     }
/// #     fn check(&self, _case: &weigh_plan::Case) -> Result<(), Invalid> {
/// #         Ok(())
/// #     }
/// # }
/// let text = "vary.protocol = [\"tcp\", \"mqtt\"]\nload.messages = 1000";
/// let draft = weigh_plan::read(text, &Servers).map_err(|wrong| wrong.render("x", text, false))?;
/// let resolved = draft.resolve("two-cases").map_err(|wrong| wrong.render("x", text, false))?;
/// assert_eq!(resolved.plan.cases.len(), 2);
/// # Ok::<(), String>(())
/// ```
pub struct Draft<'w> {
    document: Document,
    lanes: Vec<LaneRows>,
    world: &'w dyn World,
    origin: Origin,
}

/// A complete plan.
///
/// # Examples
///
/// The resolved plan has every default:
///
/// ```
/// # use weigh_model::protocol::Invalid;
/// # use weigh_plan::world::{REFERENCE, TargetWord, World};
/// # struct Servers;
/// # impl World for Servers {
/// #     fn protocols(&self) -> &'static [&'static dyn weigh_model::Protocol] {
/// #         weigh_protocols::PROTOCOLS
/// #     }
/// #     fn target(&self, word: &str) -> Result<TargetWord, String> {
/// #         Ok(TargetWord { name: word.to_owned(), speaks: None })
/// #     }
/// #     fn target_names(&self) -> Vec<String> {
/// #         vec![REFERENCE.to_owned()]
/// #     }
/// #     fn is_secret(&self, _key: &str, _value: &str) -> bool {
/// #         false
/// #     }
/// #     fn check(&self, _case: &weigh_plan::Case) -> Result<(), Invalid> {
/// #         Ok(())
/// #     }
/// # }
/// let text = "protocol = \"tcp\"";
/// let resolved = weigh_plan::read(text, &Servers).and_then(|draft| draft.resolve("plain"));
/// let resolved = resolved.map_err(|wrong| wrong.render("plain.toml", text, false))?;
/// assert_eq!(resolved.plan.load.connections, weigh_plan::load::CONNECTIONS);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The part that may be written to files.
    pub plan: Plan,
    /// Values of secret keys, which may not be written.
    pub secrets: BTreeMap<String, String>,
}

/// Reads the text of a plan.
///
/// # Errors
/// All errors that can be found without making its cases.
pub fn read<'w>(text: &str, world: &'w dyn World) -> Result<Draft<'w>, Problems> {
    let table = tables::parse(text)?;
    draft(&table, &Keys::new(world.protocols()), Length::Whole, world)
}

/// Reads the text of a plan in which `sets` replace values.
///
/// # Errors
/// All errors that can be found without making its cases.
pub fn read_set<'w>(
    text: &str,
    sets: &overrides::Sets,
    world: &'w dyn World,
) -> Result<Draft<'w>, Problems> {
    if sets.is_empty() {
        return read(text, world);
    }
    let keys = Keys::new(world.protocols());
    let own = tables::parse(text)?;
    let layer = overrides::layer(text, sets, &keys)?;
    let set = tables::parse(&layer)?;
    let table = tables::over_each_other(&[&own, &set], &keys)?;
    let (mut document, problems) = document::read(&table, &keys, Length::Whole);
    overrides::apply(&mut document, sets, &keys);
    let origin = Origin::of(&layer, sets);
    match drafted((document, problems), &keys, world) {
        Ok(draft) => Ok(Draft { origin, ..draft }),
        Err(problems) => Err(origin.told(problems)),
    }
}

/// Reads a plan from several tables of a document: a later one replaces the keys of an earlier one.
/// Places are those of the document.
///
/// # Errors
/// All errors that can be found without making its cases.
pub fn read_tables<'w>(
    layers: &[&DeTable<'_>],
    length: Length,
    world: &'w dyn World,
) -> Result<Draft<'w>, Problems> {
    let keys = Keys::new(world.protocols());
    draft(&tables::over_each_other(layers, &keys)?, &keys, length, world)
}

fn draft<'w>(
    table: &DeTable<'_>,
    keys: &Keys,
    length: Length,
    world: &'w dyn World,
) -> Result<Draft<'w>, Problems> {
    drafted(document::read(table, keys, length), keys, world)
}

fn drafted<'w>(
    (document, problems): (Document, Problems),
    keys: &Keys,
    world: &'w dyn World,
) -> Result<Draft<'w>, Problems> {
    if !problems.is_empty() {
        return Err(check_words(&document, keys, world, problems));
    }
    let lanes = lanes(&document, keys, world)?;
    Ok(Draft { document, lanes, world, origin: Origin::default() })
}

impl Draft<'_> {
    /// Number of its cases.
    pub fn cases(&self) -> u64 {
        self.lanes.iter().map(LaneRows::count).fold(0, u64::saturating_add)
    }

    /// Maximum number of its trials.
    pub fn trials_max(&self) -> u64 {
        let Document { fixed, axes, has_baseline, repeat, .. } = &self.document;
        let rows = std::iter::once(fixed).chain(axes.iter().flat_map(|axis| &axis.rows));
        let states = 1 + u64::from(*has_baseline && background::is_asked(rows));
        self.cases().saturating_mul(states).saturating_mul(u64::from(repeat.most()))
    }

    /// Makes the cases. `name` is the default name of the run.
    ///
    /// # Errors
    /// All errors of single cases, and rules about axes that do not exist.
    pub fn resolve(self, name: &str) -> Result<Resolved, Problems> {
        let origin = self.origin.clone();
        self.resolved(name).map_err(|problems| origin.told(problems))
    }

    fn resolved(self, name: &str) -> Result<Resolved, Problems> {
        let mut problems = Problems::default();
        if self.cases() > CASES_MAX {
            problems.add(too_many(self.cases()));
            return Err(problems);
        }
        let secrets = self.secrets(&mut problems);
        problems = problems.or(()).map(|()| Problems::default())?;
        let (mut cases, mut has_timeout) = (Vec::new(), Vec::new());
        let mut seen = BTreeSet::new();
        for lane in &self.lanes {
            let states = |row| background::states(row, self.document.has_baseline);
            for (row, is_baseline) in lane.rows().flat_map(states) {
                let Some(case) = self.case(lane, &row, &mut problems) else { continue };
                if seen.insert(format!("{case:?}")) {
                    has_timeout.push(row.contains_key(TIMEOUT));
                    cases.push(case);
                } else if !is_baseline {
                    problems.add(repeated(&row));
                }
            }
        }
        if cases.is_empty() && problems.is_empty() {
            problems.add(Problem::missing("the plan has no case", "name a protocol"));
        }
        if cases.is_empty() {
            // Without cases there is no load, and only their errors are reported.
            self.check_stop(&[], &mut problems);
            return Err(problems);
        }
        let patience = |case: &_| self.world.patience(case);
        patience::lengthen(&mut cases, |index| has_timeout[index], patience);
        let background = background::shared(&cases);
        emulated::check(&self.document, &cases, &mut problems);
        let written = matrix::matrix(&cases).and_then(|written| Ok((written, background?)));
        let ((load, cases), background) = match written {
            Ok(written) => written,
            Err(invalid) => {
                problems.add(Problem::missing(invalid.problem, invalid.fix));
                return Err(problems);
            }
        };
        self.check_stop(&cases, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let Document { question, seed, thresholds, repeat, stop, observe, energy, .. } =
            self.document;
        let own = self.document.name;
        let name = own.unwrap_or_else(|| name.to_owned());
        let stop = stop.into_iter().map(|rule| (rule.key, rule.conditions)).collect();
        Ok(Resolved {
            plan: Plan {
                name,
                question,
                seed,
                thresholds,
                load,
                repeat,
                stop,
                observe,
                energy,
                background,
                cases,
            },
            secrets,
        })
    }

    fn case(&self, lane: &LaneRows, row: &Row, problems: &mut Problems) -> Option<Case> {
        let words: LoadWords = match below(row, "load.").try_into() {
            Ok(words) => words,
            Err(error) => {
                problems.add(Problem::missing(error.to_string(), "change the load"));
                return None;
            }
        };
        let protocol = lane.protocol;
        let patterns = self.world.patterns(protocol, &lane.target);
        let load = match words.decide(protocol.name(), &patterns) {
            Ok(load) => load,
            Err(wrong) => {
                let mut row = row.clone();
                row.extend(lane.named.clone());
                wrong.iter().for_each(|one| problems.add(told(one, &row, "")));
                return None;
            }
        };
        let given: Vec<&str> = row.keys().map(String::as_str).collect();
        let party = (protocol, lane.target.as_str());
        let background = background::decide(row, party, self.world, problems)?;
        let mut words = Map::new();
        words.insert("protocol".to_owned(), protocol.name().into());
        words.insert("target".to_owned(), lane.target.as_str().into());
        for (key, value) in self.world.usual(protocol, &lane.target, &load, &given) {
            words.insert(format!("{}.{key}", protocol.name()), value);
        }
        let is_meant = |key: &str| !key.starts_with("load.") && !is_own(key);
        let own = row.iter().filter(|(key, given)| is_meant(key) && !self.is_secret(key, given));
        words.extend(own.map(|(key, given)| (key.clone(), word(&given.value))));
        let case = match Case::of_words(words) {
            Ok(case) => {
                let durability = self.world.durability(&case);
                Case { load, background, durability, ..case }
            }
            Err(invalid) => {
                problems.add(Problem::missing(invalid.problem, invalid.fix));
                return None;
            }
        };
        if let Err(invalid) = self.world.check(&case) {
            let key = invalid.place.as_str();
            // A missing size is an error of the body.
            let body = row.get("load.body").filter(|_| key == "load.size");
            // Errors of settings may have keys without their protocol; errors without a key of the
            // load are about protocol or target.
            let own = row.get(&format!("{}.{key}", case.protocol));
            let named = lane.named.get(key).or_else(|| lane.named.get("target"));
            let given = row.get(key).or(own).or(body).or(named);
            problems.add(Problem {
                place: given.map(|given| given.place.clone()).or_else(|| anything(row)),
                text: format!("{key}: {}", invalid.problem),
                fix: invalid.fix,
            });
            return None;
        }
        Some(case)
    }

    /// Values that no file may hold. They are the same for all cases, so that they can be given
    /// again for a resumption.
    fn secrets(&self, problems: &mut Problems) -> BTreeMap<String, String> {
        let rows = self.document.axes.iter().flat_map(|axis| &axis.rows);
        for (key, given) in rows.flatten().filter(|(key, given)| self.is_secret(key, given)) {
            problems.add(Problem::at(
                given.place.clone(),
                format!("{key} is never recorded, so cases cannot differ in it"),
                "write it once, above the cases",
            ));
        }
        let fixed = self.document.fixed.iter();
        let fixed = fixed.filter(|(key, given)| self.is_secret(key, given));
        fixed.map(|(key, given)| (key.clone(), given.text())).collect()
    }

    fn is_secret(&self, key: &str, given: &Given) -> bool {
        self.world.is_secret(key, &given.text())
    }

    /// Checks that a stop rule has an axis: it leaves out cases that differ only in its key.
    fn check_stop(&self, cases: &[Point], problems: &mut Problems) {
        for rule in &self.document.stop {
            let rows = self.document.axes.iter().flat_map(|axis| &axis.rows);
            let values = rows.filter_map(|row| row.get(&rule.key));
            let values: BTreeSet<String> = values.map(|given| given.value.to_string()).collect();
            if values.len() < 2 {
                problems.add(Problem::at(
                    rule.place.clone(),
                    format!("{} is not an axis of this plan, so the rule has no effect", rule.key),
                    "add its list below [vary], or leave the rule out",
                ));
            } else if problems.is_empty() && !varies_alone(&rule.key, cases) {
                problems.add(Problem::at(
                    rule.place.clone(),
                    format!("no two cases differ only in {}, so the rule has no effect", rule.key),
                    "leave the rule out, or add an axis of the key that is not zipped",
                ));
            }
        }
    }
}

/// True if two cases differ only in `key`.
fn varies_alone(key: &str, cases: &[Point]) -> bool {
    let mut lanes = BTreeSet::new();
    cases.iter().filter(|case| case.contains_key(key)).any(|case| {
        let mut rest = case.clone();
        rest.remove(key);
        !lanes.insert(format!("{rest:?}"))
    })
}

/// The error for a duplicate case.
fn repeated(row: &Row) -> Problem {
    let place = row.values().map(|given| given.place.clone()).next_back();
    let fix = "leave one out; set repetitions in [repeat]".to_owned();
    Problem { place, text: "two cases are the same".into(), fix }
}

/// The key of the timeout; a given value stays, however slow the path is.
const TIMEOUT: &str = "load.timeout";
