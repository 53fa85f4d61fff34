//! Checks claims and pictures against the plans: the run, its figures, the selected cells, at each
//! scale.

use std::collections::BTreeSet;

use serde_json::Value;
use weigh_model::trial::Point;
use weigh_plan::kind::nearest;
use weigh_plan::metrics;

use crate::plans::{Planned, StudyPlan};
use crate::scale::Scale;
use crate::selector::{self, Selector};
use crate::slips::{Around, At, Slip};

/// How many cells are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meant<'k> {
    /// One.
    One,
    /// At least this number along this axis, one for each of its values.
    Along(&'k str, usize),
}

impl Around<'_> {
    /// The plan of the run of this name.
    pub(crate) fn run(&self, name: &str) -> Result<&StudyPlan, Slip> {
        self.plans.iter().find(|plan| plan.name == name).ok_or_else(|| {
            let text = format!("unknown run {name:?}");
            let near = nearest(name, self.plans.iter().map(|plan| plan.name.as_str()));
            let fix = near.map(|near| format!("did you mean {near}?"));
            (text, fix.unwrap_or_else(|| "write published/PLAN or right/PLAN".to_owned()))
        })
    }

    /// A matrix, whose cells have figures.
    pub(crate) fn matrix(&self, name: &str) -> Result<&StudyPlan, Slip> {
        let plan = self.run(name)?;
        match plan.at(Scale::Full).search {
            Some(_) => Err((
                format!("{name} is a search and has no cells"),
                "use its result: limit = \"capacity_per_s\"".to_owned(),
            )),
            None => Ok(plan),
        }
    }

    /// A figure that a trial can have.
    pub(crate) fn metric(&self, name: &str) -> Result<(), Slip> {
        metrics::check(name).map_err(|wrong| (wrong.text, wrong.fix))
    }

    /// The keys that pick cells, each under its one name.
    pub(crate) fn selector(&self, plan: &StudyPlan, at: &At) -> Result<Selector, Slip> {
        let mut keys = Selector::default();
        for (written, value) in at {
            let (name, value) = (self.key(written)?, json(value));
            let value = if name == "protocol" { self.protocol(&value) } else { value };
            self.check_key(plan, &name)?;
            keys.0.insert(name, value);
        }
        Ok(keys)
    }

    /// The axis along which cells are taken, under its one name.
    pub(crate) fn axis(&self, plan: &StudyPlan, over: &str) -> Result<String, Slip> {
        let name = self.key(over)?;
        self.check_key(plan, &name)?;
        let points = points(plan.at(Scale::Full));
        let values = points.iter().filter_map(|point| point.get(&name));
        match values.clone().find(|value| selector::number(value).is_none()) {
            Some(value) => Err((
                format!("over {name}: {value} is not a number"),
                "use an axis of numbers, sizes, durations or rates".to_owned(),
            )),
            None => Ok(name),
        }
    }

    fn key(&self, written: &str) -> Result<String, Slip> {
        let found = self.keys.find(written).map_err(|wrong| (wrong.text, wrong.fix));
        // A case says whether it has its background by the name of the table.
        if written == weigh_plan::background::STATE {
            return Ok(written.to_owned());
        }
        found.map(|key| key.name.clone())
    }

    fn protocol(&self, value: &Value) -> Value {
        let word = value.as_str().unwrap_or_default();
        let known = self.keys.protocols().iter().find(|known| known.aliases().contains(&word));
        known.map_or_else(|| value.clone(), |protocol| protocol.name().into())
    }

    fn check_key(&self, plan: &StudyPlan, key: &str) -> Result<(), Slip> {
        let points = points(plan.at(Scale::Full));
        if points.iter().any(|point| point.contains_key(key)) {
            return Ok(());
        }
        let names: BTreeSet<&String> = points.iter().flat_map(Point::keys).collect();
        let near = nearest(key, names.iter().map(|name| name.as_str()));
        let fix = match near {
            Some(near) => format!("did you mean {near}?"),
            None => format!("its cells have {}", list(names.iter().map(|name| name.as_str()))),
        };
        Err((format!("no case of {} has {key}", plan.name), fix))
    }

    /// Whether the cells that are meant are there, at full scale and, unless the claim waits for
    /// that, at the quick one.
    pub(crate) fn check_cells(
        &self,
        plan: &StudyPlan,
        at: &Selector,
        meant: Meant<'_>,
        needs_full: bool,
    ) -> Result<(), Slip> {
        for scale in [Scale::Full, Scale::Quick] {
            let points = points(plan.at(scale));
            let found: Vec<&Point> = points.iter().filter(|point| at.fits(point)).collect();
            let place = format!("{}{at}, scale {scale}", plan.name);
            match meant {
                Meant::One if found.len() > 1 => {
                    let text = format!("{place}: {} cells match", found.len());
                    return Err((text, format!("add {}", differing(&found))));
                }
                Meant::Along(over, _) => {
                    let number = |point: &&Point| selector::number(point.get(over)?);
                    let mut values: Vec<f64> = found.iter().filter_map(number).collect();
                    values.sort_by(f64::total_cmp);
                    if let Some(pair) = values.windows(2).find(|pair| pair[0] == pair[1]) {
                        let text = format!("{place}: several cells have {over} {}", pair[0]);
                        return Err((text, format!("add {}", differing(&found))));
                    }
                }
                Meant::One => {}
            }
            let least = match meant {
                Meant::One => 1,
                Meant::Along(_, least) => least,
            };
            let is_excused = needs_full && scale == Scale::Quick;
            if found.len() < least && !is_excused {
                let text = match found.len() {
                    0 => format!("{place}: no cell matches"),
                    some => format!("{place}: {some} of at least {least} cells"),
                };
                let fix = match scale {
                    Scale::Full => some_values(&points, at),
                    _ => "add it to the quick plan, or give the claim scale = \"full\"".to_owned(),
                };
                return Err((text, fix));
            }
        }
        Ok(())
    }
}

/// All that is known of every case of a plan.
pub(crate) fn points(planned: &Planned) -> Vec<Point> {
    let plan = &planned.resolved.plan;
    plan.cases.iter().map(|case| selector::whole(plan, case)).collect()
}

/// The keys in which cells differ.
fn differing(found: &[&Point]) -> String {
    let keys: BTreeSet<&String> = found.iter().flat_map(|point| point.keys()).collect();
    let differs = |key: &&&String| {
        let values: BTreeSet<String> =
            found.iter().map(|point| format!("{:?}", point.get(**key))).collect();
        values.len() > 1
    };
    list(keys.iter().filter(differs).map(|key| key.as_str()))
}

/// The values that the keys of a selector have in a plan.
fn some_values(points: &[Point], at: &Selector) -> String {
    let of = |key: &String| {
        let values: BTreeSet<String> =
            points.iter().filter_map(|point| Some(point.get(key)?.to_string())).collect();
        format!("{key} is {}", list(values.iter().take(VALUES_MAX).map(String::as_str)))
    };
    at.0.keys().map(of).collect::<Vec<_>>().join("; ")
}

fn list<'t>(words: impl Iterator<Item = &'t str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

fn json(value: &toml::Value) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Values of an axis that are listed in a message.
const VALUES_MAX: usize = 20;
