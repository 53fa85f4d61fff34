//! The goals of a search in the words of the command line: names of presets, or conditions.

use clap::Args;
use weigh_model::Nanos;
use weigh_model::units::parse_duration;
use weigh_runner::search::goals::{GoalsAsked, MINUTE};

/// The flags that say what must hold.
#[derive(Args)]
pub struct GoalOptions {
    /// What must hold: minute, quick, rfc2544, sustain, or conditions such as
    /// "loss <= 0.1%, p99 <= 100ms"; several goals share one search [default: the preset]
    #[arg(long = "goal", value_name = "GOAL")]
    goals: Vec<String>,
    /// Trials, exceed ratio and width of goals made of conditions: minute (most of 3 trials of 1 s,
    /// bounds 5 % apart), quick (most of 21 trials of 1 s, 0.5 %), rfc2544 (60 s without loss),
    /// sustain (30 s, and 300 s more at the bound found)
    #[arg(long, value_name = "NAME", default_value = MINUTE)]
    preset: String,
    /// How close the bounds must come, as a share of the upper one, such as 1%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    width: Option<f64>,
    /// How long a trial must be to decide a load; as many trials as before then take less or more
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    trial: Option<Nanos>,
    /// How much time in trials decides a load
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    sum: Option<Nanos>,
}

fn share(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let share = match text.trim().strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => None,
    };
    share
        .filter(|share| (0.0..1.0).contains(share) && *share > 0.0)
        .ok_or_else(|| format!("{text:?} is no share of a load: type for example 1%"))
}

impl GoalOptions {
    /// What the flags ask for.
    pub fn asked(&self) -> GoalsAsked {
        GoalsAsked {
            goals: self.goals.clone(),
            preset: self.preset.clone(),
            width: self.width,
            trial: self.trial,
            sum: self.sum,
        }
    }
}
