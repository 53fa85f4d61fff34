//! What a load must meet to pass: the draft's Search Goal (section 4.6.7) with conditions on other
//! figures than loss, and four presets.

use serde::{Deserialize, Serialize};
use weigh_model::condition::{Condition, LOSS_RATIO, LOST, Limit};
use weigh_model::numbers::{count, exact, percent};
use weigh_model::protocol::Invalid;
use weigh_model::units::Nanos;

use crate::trial::{TrialEnd, TrialResult};

/// A search goal. The names are the draft's; `conditions` and `sustain` are added.
///
/// # Examples
///
/// Half a percent of loss, and a response time, in trials of 2 s:
///
/// ```
/// use weigh_limit::Goal;
/// use weigh_model::Nanos;
///
/// let goal = Goal {
///     name: "fast".to_owned(),
///     final_trial_duration: Nanos::from_secs(2),
///     duration_sum: Nanos::from_secs(6),
///     conditions: vec!["p99 < 50ms".parse()?],
///     ..Goal::minute()
/// };
/// goal.check()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// Name of the goal in the answer.
    pub name: String,
    /// A trial shorter than this cannot make a load a lower bound (section 4.6.1); above 0.
    pub final_trial_duration: Nanos,
    /// Total time of full-length trials that decides a load (section 4.6.2); at least the final
    /// trial duration.
    pub duration_sum: Nanos,
    /// A trial that loses a larger share than this misses the goal (section 4.6.3); from 0, below
    /// 1.
    pub loss_ratio: f64,
    /// The share of the time at a lower bound that may be spent in trials that miss the goal
    /// (section 4.6.4); from 0, below 1. The draft recommends a half.
    pub exceed_ratio: f64,
    /// How close the bounds must come: (upper - lower) / upper (section 4.6.5); above 0, below 1.
    /// The draft recommends no less than the loss ratio.
    pub width: f64,
    /// The shortest trial (section 4.6.6); above 0, at most the final trial duration.
    pub initial_trial_duration: Nanos,
    /// Number of coarser searches before this one, each with twice the width of the next and with
    /// trials and sums between the initial trial duration and the duration sum: most loads are far
    /// from the limit, and a short trial shows it.
    pub coarser_stages: u32,
    /// The factor by which a search outside the expected bounds lengthens its step, in logarithms
    /// of load; above 1.
    pub expansion: f64,
    /// Conditions for every trial besides the loss ratio: latency, errors, the rate achieved. A
    /// trial that breaks one misses the goal, whatever it lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// How long the lower bound is offered again after the search; if it does not hold that long,
    /// there is no capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sustain: Option<Nanos>,
}

/// A figure of a goal's condition that a trial does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the goal {goal} asks for {metric}, which this trial does not have: measure it or ask \
         for another figure"
)]
pub struct MissingFigure {
    /// The goal's name.
    pub goal: String,
    /// The flat name of the figure.
    pub metric: String,
}

impl Goal {
    /// The names of the presets, in the order they are listed to a user.
    pub const PRESETS: [&str; 4] = ["minute", "quick", "rfc2544", "sustain"];

    /// The preset of this name.
    ///
    /// # Errors
    /// If there is no such preset.
    pub fn preset(name: &str) -> Result<Goal, Invalid> {
        match name {
            "minute" => Ok(Goal::minute()),
            "rfc2544" => Ok(Goal::rfc2544()),
            "quick" => Ok(Goal::quick()),
            "sustain" => Ok(Goal::sustained()),
            _ => {
                let fix = format!("type one of {}", Goal::PRESETS.join(", "));
                Err(Invalid::new("limit.goal", format!("unknown preset {name:?}"), fix))
            }
        }
    }

    /// Throughput as RFC 2544, section 24, defines it: nothing lost in 60 s (the draft, section
    /// 4.10.2). Short trials come first: with zero loss and a zero exceed ratio one short trial
    /// that loses is enough to dismiss a load.
    pub fn rfc2544() -> Goal {
        Goal {
            name: "rfc2544".to_owned(),
            final_trial_duration: Nanos::from_secs(60),
            duration_sum: Nanos::from_secs(60),
            loss_ratio: 0.0,
            exceed_ratio: 0.0,
            width: 0.005,
            initial_trial_duration: Nanos::from_secs(1),
            coarser_stages: 2,
            expansion: 2.0,
            conditions: Vec::new(),
            sustain: None,
        }
    }

    /// Many short trials, most of which must lose little: 21 trials of 1 s, 0.5 % loss, exceed
    /// ratio a half, like the partial drop rate of FD.io's performance tests.
    pub fn quick() -> Goal {
        Goal {
            name: "quick".to_owned(),
            final_trial_duration: Nanos::from_secs(1),
            duration_sum: Nanos::from_secs(21),
            loss_ratio: 0.005,
            exceed_ratio: 0.5,
            ..Goal::rfc2544()
        }
    }

    /// An answer within a minute: most of three trials of 1 s lose at most 0.5 %, bounds 5 % apart.
    /// Trials before that take half a second.
    pub fn minute() -> Goal {
        Goal {
            name: "minute".to_owned(),
            duration_sum: Nanos::from_secs(3),
            width: 0.05,
            initial_trial_duration: Nanos::from_millis(500),
            ..Goal::quick()
        }
    }

    /// For servers with state: fewer than 1 in 100,000 lost (RFC 9411, section 7.1.3.4), and the
    /// bound must hold for 300 s after the search (section 4.3.4).
    pub fn sustained() -> Goal {
        Goal {
            name: "sustain".to_owned(),
            final_trial_duration: Nanos::from_secs(30),
            duration_sum: Nanos::from_secs(30),
            loss_ratio: 0.000_01,
            width: 0.01,
            sustain: Some(Nanos::from_secs(300)),
            ..Goal::rfc2544()
        }
    }

    /// Checks that a search for this goal can end.
    ///
    /// # Errors
    /// The number that is wrong, and what to type.
    pub fn check(&self) -> Result<(), Invalid> {
        let wrong = |key: &str, problem: String, fix: &str| {
            Err(Invalid::new(format!("limit.goal.{}.{key}", self.name), problem, fix))
        };
        let share = |value: f64| (0.0..1.0).contains(&value);
        if self.initial_trial_duration == Nanos(0) {
            return wrong("initial_trial_duration", "is 0".to_owned(), "type for example 1s");
        }
        if self.final_trial_duration < self.initial_trial_duration {
            let problem =
                format!("is shorter than the initial trial, {}", self.initial_trial_duration);
            return wrong("final_trial_duration", problem, "make it at least as long");
        }
        if self.duration_sum < self.final_trial_duration {
            let problem = format!("is less than one final trial, {}", self.final_trial_duration);
            return wrong("duration_sum", problem, "make it at least as long");
        }
        if !share(self.loss_ratio) {
            let problem = format!("{} is not a share from 0 to below 1", self.loss_ratio);
            return wrong("loss_ratio", problem, "type for example 0.005");
        }
        if !share(self.exceed_ratio) {
            let problem = format!("{} is not a share from 0 to below 1", self.exceed_ratio);
            return wrong("exceed_ratio", problem, "type for example 0.5");
        }
        if !(share(self.width) && self.width >= WIDTH_MIN) {
            let problem = format!("{} is not a width from {WIDTH_MIN} to below 1", self.width);
            return wrong("width", problem, "type for example 0.005");
        }
        if self.coarser_stages > COARSER_STAGES_MAX {
            let problem = format!("{} is more than {COARSER_STAGES_MAX}", self.coarser_stages);
            return wrong("coarser_stages", problem, "type for example 2");
        }
        if !(self.expansion.is_finite() && self.expansion > 1.0) {
            let problem = format!("{} does not lengthen a step", self.expansion);
            return wrong("expansion", problem, "type for example 2");
        }
        if self.sustain == Some(Nanos(0)) {
            return wrong("sustain", "is 0".to_owned(), "type for example 300s, or leave it out");
        }
        for condition in &self.conditions {
            if matches!(condition.limit, Limit::Change(_)) {
                let problem = format!("{condition:?} is a change against another run");
                return wrong("conditions", problem, "type a value, such as 500ms");
            }
        }
        Ok(())
    }

    /// Why a trial misses this goal; `None` if it meets it.
    ///
    /// # Errors
    /// If the trial does not have a figure of a condition.
    pub fn missed(&self, trial: &TrialResult) -> Result<Option<String>, MissingFigure> {
        if let TrialEnd::TargetDied(how) = &trial.end {
            return Ok(Some(format!("the target died: {how}")));
        }
        let loss_ratio = trial.loss_ratio();
        if loss_ratio > self.loss_ratio {
            return Ok(Some(format!(
                "{} of {} messages lost ({} %; allowed: {} %)",
                count(trial.lost),
                count(trial.forwarded + trial.lost),
                exact(100.0 * loss_ratio),
                exact(100.0 * self.loss_ratio)
            )));
        }
        for condition in &self.conditions {
            let figure = match condition.metric.as_str() {
                LOSS_RATIO => Some(loss_ratio),
                LOST => Some(trial.lost as f64),
                name => trial.figures.get(name).copied(),
            };
            let Some(figure) = figure else {
                // If no message arrived there is no latency that could meet a condition.
                if trial.forwarded == 0 {
                    return Ok(Some(format!("{condition}: nothing arrived")));
                }
                let metric = condition.metric.clone();
                return Err(MissingFigure { goal: self.name.clone(), metric });
            };
            // A condition does not hold for a figure that is not a number; changes were refused
            // before.
            if condition.holds(figure) != Some(true) {
                let shown = match condition.metric.contains("_ns") {
                    true if figure == f64::INFINITY => "infinite".to_owned(),
                    true => Nanos(figure as u64).to_string(),
                    false => three_digits(figure),
                };
                return Ok(Some(format!("{condition} does not hold: it is {shown}")));
            }
        }
        Ok(None)
    }
}

/// The answer of [`Goal::missed`] in few words, what failed with its figure: `1.6 % lost`,
/// `backlog 16 %`, `p99 73.2 ms`. `None` for words that it does not know.
pub fn in_few_words(missed: &str) -> Option<String> {
    if missed.starts_with("the target died") {
        return Some("the target died".to_owned());
    }
    if let Some((_, shares)) = missed.split_once(" messages lost (") {
        return Some(format!("{} lost", shares.split_once(';')?.0));
    }
    if missed.ends_with(": nothing arrived") {
        return Some("nothing arrived".to_owned());
    }
    let (condition, figure) = missed.split_once(" does not hold: it is ")?;
    let name = condition.split(['<', '>', '=', '!']).next()?.trim();
    let share = figure.parse::<f64>().ok().filter(|share| share.is_finite());
    Some(match (name.strip_suffix("_ratio"), share) {
        (Some(name), Some(share)) => format!("{name} {}", percent(100.0 * share)),
        (None, Some(share)) if name == "loss" => format!("{} lost", percent(100.0 * share)),
        _ => format!("{name} {figure}"),
    })
}

/// At least three significant digits, whole numbers in full: `0.0172`, `51.3`, `41318`.
fn three_digits(figure: f64) -> String {
    if figure == 0.0 || !figure.is_finite() {
        return figure.to_string();
    }
    let decimals = (2.0 - figure.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{figure:.decimals$}")
}

/// Finer widths would need millions of messages in every trial.
const WIDTH_MIN: f64 = 1e-6;

/// Twice the width each time: with more stages the first one would not narrow the bounds.
const COARSER_STAGES_MAX: u32 = 10;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn trial(forwarded: u64, lost: u64, figures: &[(&str, f64)]) -> TrialResult {
        TrialResult {
            load: 1000.0,
            duration: Nanos::from_secs(1),
            elapsed: Nanos::from_secs(1),
            forwarded,
            lost,
            figures: figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            end: TrialEnd::Completed,
        }
    }

    #[test]
    fn figures_have_three_digits() {
        for (figure, text) in [(0.017_211, "0.0172"), (51.34, "51.3"), (41_318.2, "41318")] {
            assert_eq!(three_digits(figure), text);
        }
        assert_eq!(three_digits(0.0) + &three_digits(f64::INFINITY), "0inf");
    }

    #[test]
    fn a_broken_condition_misses_the_goal_whatever_was_lost() {
        let conditions = vec!["response_time p(99) < 5ms".parse().unwrap()];
        let goal = Goal { conditions, ..Goal::quick() };
        let fast = [("response_time_ns.p99", 4e6)];
        let slow = [("response_time_ns.p99", 6e6)];
        assert_eq!(goal.missed(&trial(1000, 5, &fast)), Ok(None));
        let why = goal.missed(&trial(1000, 0, &slow)).unwrap().unwrap();
        assert!(why.contains("p(99)") && why.contains(": it is 6"), "{why}");
        assert!(
            goal.missed(&trial(990, 10, &fast))
                .unwrap()
                .unwrap()
                .contains("10 of 1,000 messages lost (1 %; allowed: 0.5 %)")
        );
        assert!(goal.missed(&trial(0, 0, &[])).unwrap().is_some());
        let missing = goal.missed(&trial(1000, 0, &[])).unwrap_err().to_string();
        assert!(missing.contains("quick asks for response_time_ns.p99"), "{missing}");
    }

    #[test]
    fn few_words_have_what_failed_and_its_figure() {
        let conditions = ["loss <= 0.1%", "backlog_ratio <= 0.01", "response_time p(99) < 5ms"];
        let conditions = conditions.map(|text| text.parse().unwrap()).to_vec();
        let goal = Goal { conditions, ..Goal::quick() };
        let few = |trial: &TrialResult| in_few_words(&goal.missed(trial).unwrap().unwrap());
        let figures = |backlog, p99| [("backlog_ratio", backlog), ("response_time_ns.p99", p99)];
        for (trial, words) in [
            (trial(980, 20, &figures(0.0, 1e6)), "2 % lost"),
            (trial(998, 2, &figures(0.0, 1e6)), "0.2 % lost"),
            (trial(1000, 0, &figures(0.163, 1e6)), "backlog 16 %"),
            (trial(1000, 0, &figures(0.0, 7.32e7)), "response_time p(99) 73.2 ms"),
            (trial(1000, 0, &figures(0.0, f64::INFINITY)), "response_time p(99) infinite"),
        ] {
            assert_eq!(few(&trial).as_deref(), Some(words));
        }
        let died =
            TrialResult { end: TrialEnd::TargetDied("signal 9".to_owned()), ..trial(9, 0, &[]) };
        assert_eq!(few(&died).as_deref(), Some("the target died"));
        assert_eq!(in_few_words("p99 < 5ms: nothing arrived").as_deref(), Some("nothing arrived"));
        assert_eq!(in_few_words("words of an older version"), None);
    }

    #[test]
    fn presets_are_sound_and_have_their_names() {
        for name in Goal::PRESETS {
            let goal = Goal::preset(name).unwrap();
            assert_eq!(goal.name, name);
            assert_eq!(goal.check(), Ok(()));
        }
        assert!(
            Goal::preset("fast")
                .unwrap_err()
                .to_string()
                .contains("minute, quick, rfc2544, sustain")
        );
    }

    #[test]
    fn a_goal_that_cannot_end_is_refused_with_the_fix() {
        let base = Goal::rfc2544;
        for (goal, part) in [
            (Goal { duration_sum: Nanos::from_secs(59), ..base() }, "duration_sum: is less than"),
            (Goal { loss_ratio: 1.0, ..base() }, "loss_ratio: 1 is not a share"),
            (Goal { exceed_ratio: -0.1, ..base() }, "exceed_ratio"),
            (Goal { width: 0.0, ..base() }, "width: 0 is not a width"),
            (Goal { expansion: 1.0, ..base() }, "expansion: 1 does not lengthen a step"),
            (Goal { sustain: Some(Nanos(0)), ..base() }, "sustain"),
            (Goal { initial_trial_duration: Nanos(0), ..base() }, "initial_trial_duration"),
        ] {
            let error = goal.check().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let change = vec!["response_time_ns.p99 < +5%".parse().unwrap()];
        assert!(Goal { conditions: change, ..base() }.check().is_err());
    }

    #[test]
    fn a_goal_survives_its_journal() {
        let conditions = vec!["loss == 0".parse().unwrap()];
        let goal = Goal { conditions, ..Goal::sustained() };
        let json = serde_json::to_string(&goal).unwrap();
        assert_eq!(serde_json::from_str::<Goal>(&json).unwrap(), goal);
        let figures: BTreeMap<String, f64> = BTreeMap::new();
        let dead = TrialResult {
            end: TrialEnd::TargetDied("signal 9".to_owned()),
            figures,
            ..trial(1000, 0, &[])
        };
        assert!(goal.missed(&dead).unwrap().unwrap().contains("signal 9"));
    }
}
