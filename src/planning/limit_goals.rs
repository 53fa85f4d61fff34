//! Goals of a search on the command line: names of presets, or conditions.

use clap::Args;
use weigh_model::Nanos;
use weigh_model::units::parse_duration;
use weigh_runner::search::goals::{GoalsAsked, MINUTE};

/// Flags for the goals of a search.
#[derive(Args)]
pub struct GoalOptions {
    /// Goal of a load: conditions such as "loss <= 0.1%, p99 <= 100ms", or the name of a
    /// preset for its largest loss
    ///
    /// Several goals share one search. [default: the preset's: a loss of at most 0.5 % for minute
    /// and quick, none for rfc2544, 0.001 % for sustain]
    #[arg(long = "goal", value_name = "GOAL")]
    goals: Vec<String>,
    /// Length and precision of the search: minute, quick, rfc2544 or sustain
    ///
    /// minute: the majority of 3 trials of 1 s, bounds 5 % apart. quick: the majority of 21 trials
    /// of 1 s, bounds 0.5 % apart. rfc2544: 60 s without loss. sustain: 30 s, and 300 s more at the
    /// bound that was found.
    #[arg(long, value_name = "NAME", default_value = MINUTE)]
    preset: String,
    /// Stop when the bounds differ by less than this share of the upper one, such as 1%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    width: Option<f64>,
    /// Duration of the trials that decide a load
    ///
    /// The number of trials stays, so that the whole search takes less or more time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    trial: Option<Nanos>,
    /// Total duration of the trials that decide a load
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
        .ok_or_else(|| format!("{text:?} is not a share of a load: type for example 1%"))
}

impl GoalOptions {
    /// Returns the goals that the flags name.
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
