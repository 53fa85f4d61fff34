//! Forecast of `--dry`: the cases of a plan, the number of trials, their duration, and whether
//! their targets are installed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use weigh_model::numbers::count;

use serde_json::json;
use weigh_model::plan::Plan;
use weigh_plan::forecast as time;
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::find;

use crate::case::Case;
use crate::case::lanes::Against;
use crate::preflight::overhead;
use crate::preflight::patience;

/// Forecast of a plan.
pub struct Forecast<'f> {
    plan: &'f Plan,
    cases: &'f [Case],
    times: time::Forecast,
    /// State of each target.
    targets: BTreeMap<String, String>,
}

impl<'f> Forecast<'f> {
    /// Makes the forecast of a plan with these cases.
    pub fn of(plan: &'f Plan, cases: &'f [Case], catalogue: &Catalogue) -> Forecast<'f> {
        let background = cases.iter().filter_map(|case| case.background.as_ref());
        let lanes = cases.iter().map(|case| &case.lane).chain(background.map(|own| &own.lane));
        let against: BTreeMap<String, &Against> =
            lanes.map(|lane| (lane.against.name(), &lane.against)).collect();
        let targets =
            against.into_iter().map(|(name, against)| (name, state(against, catalogue))).collect();
        Forecast { plan, cases, times: times(plan, cases, catalogue), targets }
    }

    /// Formats the forecast as text.
    pub fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.plan.name, self.count());
        if let Some(question) = &self.plan.question {
            let _ = writeln!(text, "{question}");
        }
        text.push('\n');
        let varied = self.varied();
        let names: Vec<String> = self.cases.iter().map(|case| name(case, &varied)).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        for (index, (case, name)) in self.cases.iter().zip(&names).enumerate() {
            let length = match time::measured(&case.load) {
                Some(measured) => (measured + case.load.warmup).to_string(),
                None => match case.load.messages {
                    Some(1) => "1 message".to_owned(),
                    Some(messages) => format!("{} messages", count(messages)),
                    None => "duration unknown".to_owned(),
                },
            };
            let _ = writeln!(text, "{:>5}  {name:width$}  {length}", index + 1);
        }
        let _ = writeln!(text, "\n{}", self.time());
        for line in patience::lines(self.cases).iter().chain(&patience::warnings(self.cases)) {
            let _ = writeln!(text, "{line}");
        }
        for (name, state) in &self.targets {
            let _ = writeln!(text, "target {name}: {state}");
        }
        text
    }

    /// Formats the forecast as JSON.
    pub fn json(&self) -> String {
        let cases: Vec<_> = self.cases.iter().map(|case| json!(case.point)).collect();
        let document = json!({
            "name": self.plan.name,
            "cases": cases,
            "trials": { "least": self.times.trials_least, "most": self.times.trials_most },
            "time_s": {
                "least": self.times.time_least.as_secs_f64(),
                "most": self.times.time_most.as_secs_f64(),
            },
            "targets": self.targets,
        });
        format!("{document:#}\n")
    }

    fn count(&self) -> String {
        let cases = self.cases.len();
        let repeat = &self.plan.repeat;
        let repetitions = match repeat.most() {
            most if most == repeat.at_least => format!("{most}"),
            most => format!("{} to {most}", repeat.at_least),
        };
        let trials = match (self.times.trials_least, self.times.trials_most) {
            (least, most) if least == most => count(most),
            (least, most) => format!("{} to {}", count(least), count(most)),
        };
        let plural = if cases == 1 { "case" } else { "cases" };
        let cases = count(cases as u64);
        let repeated = if repetitions == "1" { "repetition" } else { "repetitions" };
        let tried = if trials == "1" { "trial" } else { "trials" };
        format!("{cases} {plural}, {repetitions} {repeated}: {trials} {tried}")
    }

    fn time(&self) -> String {
        let (least, most) = (self.times.time_least.rough(), self.times.time_most.rough());
        let (unknown, all) = (self.times.unknown, self.cases.len());
        let mut text = match unknown {
            0 => format!(
                "about {least}; at most {most}, if every trial waits for messages that never come \
                 (an estimate)"
            ),
            _ => format!(
                "duration unknown; at least {least} (an estimate): {unknown} of {all} cases send \
                 as fast as the target answers"
            ),
        };
        if !self.plan.stop.is_empty() {
            text.push_str("\nstop rules may leave some of them out");
        }
        text
    }

    /// Keys whose values differ among cases of one protocol.
    fn varied(&self) -> BTreeSet<&'f str> {
        let mut values: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
        for case in self.cases {
            for (key, value) in &case.point {
                let protocol = case.lane.protocol.name();
                values.entry((protocol, key)).or_default().insert(value.to_string());
            }
        }
        let differs = values.into_iter().filter(|(_, values)| values.len() > 1);
        differs.map(|((_, key), _)| key).collect()
    }
}

/// Number and duration of the trials of a plan with these cases.
pub fn times(plan: &Plan, cases: &[Case], catalogue: &Catalogue) -> time::Forecast {
    let expected = |case| overhead::expected(case, &plan.observe, catalogue);
    let expected: Vec<time::Expected<'_>> = cases.iter().map(expected).collect();
    time::forecast(plan, &expected)
}

fn name(case: &Case, varied: &BTreeSet<&str>) -> String {
    let settings = format!("{}.", case.lane.protocol.name());
    let mut name = format!(
        "{} {} on {}",
        case.lane.protocol.name(),
        case.load.pattern,
        case.lane.against.name()
    );
    for (key, value) in &case.point {
        let is_told = ["protocol", "target", "load.pattern"].contains(&key.as_str());
        if !is_told && (varied.contains(key.as_str()) || key.starts_with(&settings)) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let _ = write!(name, "  {key}={value}");
        }
    }
    name
}

fn state(against: &Against, catalogue: &Catalogue) -> String {
    match against {
        Against::Reference | Against::Pipeline(_) => "built in".to_owned(),
        Against::Foreign(_) => "an external server".to_owned(),
        Against::Managed(name) => match catalogue.choose(name) {
            Err(error) => error.to_string(),
            Ok(choice) => match find::find(choice.target) {
                Some(found) => format!("{} at {}", found.version, found.path.display()),
                None => format!("not installed; {}", find::fix(choice.target)),
            },
        },
    }
}
