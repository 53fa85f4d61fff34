//! A search for a limit, as a study asks for it: the flags of `weigh limit` as keys.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use weigh_limit::{Axis, AxisKind, Goal};
use weigh_model::Nanos;
use weigh_model::units::{parse_duration, parse_rate, parse_size};
use weigh_plan::kind::{Wrong, nearest};
use weigh_plan::{Problem, Problems, metrics};

/// Search in every lane of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchAsked {
    /// Along what, and between which ends.
    pub axis: Axis,
    /// Goals, as after `--goal`; empty for the preset's own goal.
    pub goals: Vec<String>,
    /// The preset, as after `--preset`.
    pub preset: String,
    /// Distance of the bounds at which it stops, as a share of the upper one; `None` for the
    /// preset's.
    pub width: Option<f64>,
    /// Length of a trial that decides a load; `None` for the preset's.
    pub trial: Option<Nanos>,
    /// Total length of trials that decides a load; `None` for the preset's.
    pub sum: Option<Nanos>,
    /// No trial begins that would end later; divided equally among the lanes.
    pub budget: Option<Nanos>,
}

impl SearchAsked {
    /// Along what it goes.
    pub fn kind(&self) -> AxisKind {
        self.axis.kind()
    }

    /// Name of its limit in results.
    pub fn limit_name(&self) -> String {
        match self.kind() {
            AxisKind::Rate => "capacity_per_s".to_owned(),
            AxisKind::MessageSize => "capacity_bytes".to_owned(),
            other => format!("capacity_{}", other.name()),
        }
    }

    /// The plan key that takes the loads of the search.
    pub fn key(&self) -> &'static str {
        match self.kind() {
            AxisKind::Rate => "load.rate",
            AxisKind::Connections => "load.connections",
            AxisKind::Burst => "load.messages",
            AxisKind::Subscribers => "load.subscribers",
            AxisKind::MessageSize => "load.size",
        }
    }

    /// Length of its longest trial.
    pub fn longest_trial(&self) -> Nanos {
        let preset = Goal::preset(&self.preset).map(|goal| goal.final_trial_duration);
        self.trial.or(preset.ok()).unwrap_or(Nanos::from_secs(1))
    }

    /// Cut down to seconds.
    pub(crate) fn shortened(self) -> SearchAsked {
        SearchAsked {
            width: Some(self.width.unwrap_or(0.0).max(0.25)),
            trial: Some(MINI_TRIAL),
            sum: Some(MINI_TRIAL),
            budget: Some(self.budget.unwrap_or(MINI_BUDGET).min(MINI_BUDGET)),
            ..self
        }
    }

    /// The keys of a plan that offers the smallest load, in a trial as long as the search's: a
    /// plan in TOML.
    pub(crate) fn smallest_load(&self) -> String {
        let min = self.axis.min();
        let own = match self.kind() {
            AxisKind::Rate => format!("load.rate = \"{min}/s\"\n"),
            AxisKind::MessageSize => format!("load.size = \"{min}B\"\n"),
            AxisKind::Burst => format!("{} = {min}\nload.arrival = \"burst\"\n", self.key()),
            _ => format!("{} = {min}\n", self.key()),
        };
        match self.kind() {
            AxisKind::Burst => own,
            _ => format!("{own}load.duration = \"{}\"\n", self.longest_trial().recorded()),
        }
    }

    /// Reads the table `limit` of a plan.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(tables: &[&DeTable<'_>], place: Range<usize>) -> Result<Self, Problems> {
        let mut reader = Reader { tables, problems: Problems::default() };
        for (key, _) in tables.iter().flat_map(|table| table.iter()) {
            let word = key.get_ref().as_ref();
            if !KEYS.contains(&word) {
                let text = format!("unknown key {word:?} in the limit of a plan");
                let near = nearest(word, KEYS.into_iter());
                let fix = near.map_or_else(
                    || format!("expected one of: {}", KEYS.join(", ")),
                    |near| format!("did you mean {near}?"),
                );
                reader.problems.add(Problem::at(key.span(), text, fix));
            }
        }
        let axis = reader.axis(&place);
        let goals = reader.goals();
        let preset = reader.read("preset", |text| match Goal::preset(text) {
            Ok(_) => Ok(text.to_owned()),
            Err(invalid) => Err(Wrong::new(invalid.problem, invalid.fix)),
        });
        let time = |text: &str| parse_duration(text).map_err(|said| Wrong::split(&said));
        let width = reader.read("width", share);
        let trial = reader.read("trial", time);
        let sum = reader.read("sum", time);
        let budget = reader.read("budget", time);
        let preset = preset.unwrap_or_else(|| "quick".to_owned());
        match axis.filter(|_| reader.problems.is_empty()) {
            Some(axis) => Ok(SearchAsked { axis, goals, preset, width, trial, sum, budget }),
            None => Err(reader.problems),
        }
    }
}

struct Reader<'t, 'd> {
    tables: &'t [&'d DeTable<'d>],
    problems: Problems,
}

impl<'d> Reader<'_, 'd> {
    /// The value of a key, as the last table has it.
    fn value(&self, key: &str) -> Option<&'d Spanned<DeValue<'d>>> {
        self.tables.iter().rev().find_map(|table| table.get(key))
    }

    fn read<T>(&mut self, key: &str, read: impl Fn(&str) -> Result<T, Wrong>) -> Option<T> {
        let value = self.value(key)?;
        let read = match value.get_ref() {
            DeValue::String(text) => read(text),
            DeValue::Integer(number) => read(&number.to_string()),
            _ => Err(Wrong::new("expected a text", "write it in quotation marks")),
        };
        match read {
            Ok(value) => Some(value),
            Err(wrong) => {
                let text = format!("limit.{key}: {}", wrong.text);
                self.problems.add(Problem::at(value.span(), text, wrong.fix));
                None
            }
        }
    }

    fn axis(&mut self, place: &Range<usize>) -> Option<Axis> {
        let kind = match self.value("axis") {
            None => AxisKind::Rate,
            Some(_) => self.read("axis", |text| {
                let full = if text == "size" { AxisKind::MessageSize.name() } else { text };
                full.parse().map_err(|_| {
                    let text = format!("unknown axis of a limit {text:?}");
                    Wrong::new(text, "type rate, connections, burst, subscribers or size")
                })
            })?,
        };
        let (least, most) = match kind {
            AxisKind::Rate => (100.0, 1e6),
            AxisKind::Connections => (1.0, 10_000.0),
            AxisKind::Burst => (10.0, 1e6),
            AxisKind::Subscribers => (1.0, 1_000.0),
            AxisKind::MessageSize => (64.0, 1_048_576.0),
        };
        let from = self.end("from", kind, least)?;
        let to = self.end("to", kind, most)?;
        let place = self.value("to").map_or(place.clone(), Spanned::span);
        if from >= to {
            let text = format!("limit: from {from} to {to} leaves nothing to search");
            self.problems.add(Problem::at(place, text, "give a larger to"));
            return None;
        }
        match Axis::new(kind, from, to, 1.0) {
            Ok(axis) => Some(axis),
            Err(invalid) => {
                self.problems.add(Problem::at(place, invalid.problem, invalid.fix));
                None
            }
        }
    }

    fn end(&mut self, key: &str, kind: AxisKind, usual: f64) -> Option<f64> {
        if self.value(key).is_none() {
            return Some(usual);
        }
        self.read(key, |text| {
            let said = |said: String| Wrong::split(&said);
            match kind {
                AxisKind::Rate => match parse_rate(text).map_err(said)? {
                    rate if rate.per_client => {
                        Err(Wrong::new("the rate of all clients is searched", "type \"1000/s\""))
                    }
                    rate => Ok(rate.per_second),
                },
                AxisKind::MessageSize => parse_size(text).map(|size| size as f64).map_err(said),
                _ => {
                    let number = text.parse::<u32>().ok().filter(|number| *number > 0);
                    let text = format!("{text:?} is not a number of{}", kind.unit());
                    number.map(f64::from).ok_or_else(|| Wrong::new(text, "type a whole number"))
                }
            }
        })
    }

    /// The goals, each checked as far as it can be without a load.
    fn goals(&mut self) -> Vec<String> {
        let Some(value) = self.value("goal") else { return Vec::new() };
        let single = std::slice::from_ref(value);
        let list = match value.get_ref() {
            DeValue::Array(list) => &list[..],
            _ => single,
        };
        let mut goals = Vec::new();
        for goal in list {
            let Some(text) = goal.get_ref().as_str() else {
                let text = "limit.goal: expected a text";
                self.problems.add(Problem::at(goal.span(), text, "type \"loss <= 0\""));
                continue;
            };
            match check_goal(text) {
                Ok(()) => goals.push(text.to_owned()),
                Err(wrong) => {
                    let text = format!("limit.goal: {}", wrong.text);
                    self.problems.add(Problem::at(goal.span(), text, wrong.fix));
                }
            }
        }
        goals
    }
}

fn check_goal(text: &str) -> Result<(), Wrong> {
    if !text.contains(['<', '>', '=']) {
        let known = Goal::preset(text.trim());
        return known.map(drop).map_err(|invalid| Wrong::new(invalid.problem, invalid.fix));
    }
    for part in text.split(',').map(str::trim) {
        metrics::absolute(part)?;
    }
    Ok(())
}

fn share(text: &str) -> Result<f64, Wrong> {
    let percent = text.trim().strip_suffix('%').and_then(|text| text.trim().parse::<f64>().ok());
    let share = percent.map(|percent| percent / 100.0);
    share
        .filter(|share| *share > 0.0 && *share < 1.0)
        .ok_or_else(|| Wrong::new(format!("{text:?} is not a share of a load"), "type \"1%\""))
}

const KEYS: [&str; 9] = ["axis", "goal", "preset", "from", "to", "width", "trial", "sum", "budget"];

/// As long as the shortest trial that `weigh limit` takes.
const MINI_TRIAL: Nanos = Nanos::from_millis(200);
const MINI_BUDGET: Nanos = Nanos::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SearchAsked, String> {
        let table = weigh_plan::tables::parse(text).unwrap();
        SearchAsked::read(&[&table], 0..text.len()).map_err(|said| said.render("p", text, false))
    }

    #[test]
    fn the_flags_of_a_search_are_keys() {
        let text = "axis = \"rate\"\ngoal = [\"loss <= 0, p99 <= 1s\", \"rfc2544\"]\n\
                    from = \"50/s\"\n\
                    to = \"2k/s\"\nwidth = \"5%\"\ntrial = \"300ms\"\nbudget = \"20s\"\n";
        let search = read(text).unwrap();
        assert_eq!((search.axis.min(), search.axis.max()), (50.0, 2000.0));
        assert_eq!((search.goals.len(), search.width), (2, Some(0.05)));
        assert_eq!(search.limit_name(), "capacity_per_s");
        assert_eq!(search.smallest_load(), "load.rate = \"50/s\"\nload.duration = \"300ms\"\n");
        assert_eq!(search.shortened().budget, Some(MINI_BUDGET));
        let burst = read("axis = \"burst\"\nfrom = 125\n").unwrap();
        assert_eq!(burst.limit_name(), "capacity_burst");
        assert!(burst.smallest_load().contains("load.messages = 125"));
    }

    #[test]
    fn each_slip_is_named_with_its_fix() {
        for (text, said) in [
            ("axis = \"rat\"", "unknown axis of a limit"),
            ("gaol = \"loss <= 0\"", "did you mean goal"),
            ("goal = \"los <= 0\"", "did you mean loss"),
            ("goal = [\"quik\"]", "unknown preset"),
            ("from = \"10/s\"\nto = \"5/s\"", "nothing to search"),
            ("from = \"10\"", "limit.from"),
            ("width = \"1\"", "not a share"),
            ("trial = \"fast\"", "limit.trial"),
            ("goal = [5]", "expected a text"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
