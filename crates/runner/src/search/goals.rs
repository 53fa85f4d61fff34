//! Parses the goals of a search: names of presets, or conditions.

use weigh_limit::Goal;
use weigh_limit::trial::BACKLOG_RATIO;
use weigh_model::condition::{LOSS_RATIO, Limit, Operator};
use weigh_model::{Load, Nanos};
use weigh_plan::metrics;
use weigh_study::search::SearchAsked;

use crate::exit::Stop;
use crate::search::axis_load;

/// Goals as given on a command line or in a study's plan.
///
/// # Examples
///
/// ```
/// use weigh_model::units::parse_rate;
/// use weigh_model::{Load, Pattern};
/// use weigh_runner::search::goals::GoalsAsked;
/// # use weigh_runner::exit::Stop;
///
/// let asked = GoalsAsked {
///     goals: vec!["p99 < 50ms".to_owned()],
///     preset: "minute".to_owned(),
///     width: Some(0.1),
///     trial: None,
///     sum: None,
/// };
/// let load = Load::open(Pattern::Request, 2, parse_rate("1000/s").map_err(Stop::usage)?);
/// assert_eq!(asked.goals(&load)?[0].width, 0.1);
/// # Ok::<(), Stop>(())
/// ```
#[derive(Clone, Debug)]
pub struct GoalsAsked {
    /// Names of presets, or conditions; empty for the preset itself.
    pub goals: Vec<String>,
    /// The preset whose trials are used for goals of conditions.
    pub preset: String,
    /// Maximum distance of the bounds, as a share of the upper one.
    pub width: Option<f64>,
    /// Minimum length of a trial that decides a load.
    pub trial: Option<Nanos>,
    /// Total time of trials that decides a load.
    pub sum: Option<Nanos>,
}

impl From<&SearchAsked> for GoalsAsked {
    fn from(asked: &SearchAsked) -> GoalsAsked {
        GoalsAsked {
            goals: asked.goals.clone(),
            preset: asked.preset.clone(),
            width: asked.width,
            trial: asked.trial,
            sum: asked.sum,
        }
    }
}

impl GoalsAsked {
    /// True if the goals can be proven within a minute.
    pub fn fit_a_minute(&self) -> bool {
        let named = |text: &String| text.contains(['<', '>', '=']) || text.trim() == MINUTE;
        let is_changed = self.width.is_some() || self.trial.is_some() || self.sum.is_some();
        self.preset == MINUTE && !is_changed && self.goals.iter().all(named)
    }

    /// The goals of a lane with this load.
    ///
    /// # Errors
    /// An unknown preset; a condition that cannot be parsed; numbers that contradict each other.
    pub fn goals(&self, load: &Load) -> Result<Vec<Goal>, Stop> {
        let preset = self.adjusted(preset("--preset", &self.preset)?);
        let mut goals = Vec::new();
        if self.goals.is_empty() {
            goals.push(preset.clone());
        }
        for text in &self.goals {
            goals.push(match text.contains(['<', '>', '=']) {
                true => own(text, preset.clone())?,
                false => self.adjusted(self::preset("--goal", text.trim())?),
            });
        }
        for goal in &mut goals {
            if axis_load::can_pile_up(load) {
                let text = format!("{BACKLOG_RATIO} <= {}", goal.loss_ratio);
                goal.conditions.push(text.parse().map_err(Stop::usage)?);
            }
            goal.check().map_err(in_flags)?;
        }
        Ok(goals)
    }

    fn adjusted(&self, mut goal: Goal) -> Goal {
        if let Some(width) = self.width {
            goal.width = width;
        }
        if let Some(trial) = self.trial {
            let trials = goal.duration_sum.0 / goal.final_trial_duration.0;
            goal.duration_sum = Nanos(trial.0.saturating_mul(trials));
            goal.final_trial_duration = trial;
            goal.initial_trial_duration = goal.initial_trial_duration.min(trial);
        }
        if let Some(sum) = self.sum {
            goal.duration_sum = sum;
        }
        goal
    }
}

/// The preset that is proven within a minute.
pub const MINUTE: &str = "minute";

fn preset(flag: &str, name: &str) -> Result<Goal, Stop> {
    Goal::preset(name).map_err(|invalid| {
        let or = match flag {
            "--goal" => ", or conditions such as \"loss == 0, p99 < 10ms\"",
            _ => "",
        };
        Stop::usage(format!("{flag}: {}\nhelp: {}{or}", invalid.problem, invalid.fix))
    })
}

/// A goal of conditions with the trials of `preset`. A condition on loss replaces the preset's loss
/// ratio.
fn own(text: &str, preset: Goal) -> Result<Goal, Stop> {
    let wrong = |said: String| Stop::usage(format!("--goal {text:?}: {said}"));
    let mut goal = Goal { name: text.to_owned(), conditions: Vec::new(), ..preset };
    for part in text.split(',') {
        let part = part.trim();
        let condition = metrics::absolute(part).map_err(|said| {
            // The text of a single condition is printed already.
            let said = said.to_string();
            let own = format!("{part:?}: ");
            wrong(said.strip_prefix(&own).filter(|_| part == text).unwrap_or(&said).to_owned())
        })?;
        match (condition.metric.as_str(), condition.operator, condition.limit) {
            (LOSS_RATIO, Operator::LessOrEqual | Operator::Equal, Limit::Value(most)) => {
                goal.loss_ratio = most;
            }
            (LOSS_RATIO, Operator::Less, Limit::Value(bound)) => {
                goal.loss_ratio = bound;
                goal.conditions.push(condition);
            }
            _ => goal.conditions.push(condition),
        }
    }
    Ok(goal)
}

/// Moves an error of a goal's number to the flag that gave it.
fn in_flags(invalid: weigh_model::protocol::Invalid) -> Stop {
    let flag = match invalid.place.rsplit('.').next() {
        Some("final_trial_duration" | "initial_trial_duration") => "--trial",
        Some("duration_sum") => "--sum",
        Some("width") => "--width",
        _ => "--goal",
    };
    Stop::usage(format!("{flag}: {}\nhelp: {}", invalid.problem, invalid.fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_speaks_the_language_of_all_conditions() {
        let goal = own("loss <= 0.1%, p99 <= 1.5ms, cpu < 90%", Goal::quick()).expect("a goal");
        assert_eq!(goal.loss_ratio, 0.001);
        let metrics: Vec<&str> = goal.conditions.iter().map(|own| own.metric.as_str()).collect();
        assert_eq!(metrics, ["latency_time_ns.p99", "target_cpu_percent.mean"]);
        for (text, part) in [
            ("p99 < NaN", "finite number"),
            ("p99 < -1ms", "is negative"),
            ("p99 > +5%", "weigh diff"),
            ("respons_time p(99) < 5ms", "did you mean response_time?"),
        ] {
            let said = own(text, Goal::quick()).expect_err(text).to_string();
            assert!(said.contains(part) && said.contains("--goal"), "{said}");
        }
    }
}
