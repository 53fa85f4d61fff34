//! How much of a study is run, and in whose way.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Part of a study that is run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Seconds, for tests.
    Mini,
    /// Minutes: fewer repetitions, shorter axes, all experiments and claims.
    #[default]
    Quick,
    /// As the papers.
    Full,
}

impl Scale {
    /// All of them, the shortest first.
    pub const ALL: [Scale; 3] = [Scale::Mini, Scale::Quick, Scale::Full];

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Mini => "mini",
            Scale::Quick => "quick",
            Scale::Full => "full",
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Scale, String> {
        let found = Scale::ALL.into_iter().find(|scale| scale.name() == text);
        found.ok_or_else(|| format!("unknown scale {text:?}: type quick or full"))
    }
}

/// In whose way an experiment is run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// The authors' way, flaws included.
    Published,
    /// The right way.
    Right,
    /// Real client programs beside the plans.
    Tools,
}

impl Way {
    /// All of them, the authors' first.
    pub const ALL: [Way; 3] = [Way::Published, Way::Right, Way::Tools];

    /// Ways whose runs are made from plans.
    pub const PLANS: [Way; 2] = [Way::Published, Way::Right];

    /// Its name on the command line, and what the names of its runs begin with.
    pub fn name(self) -> &'static str {
        match self {
            Way::Published => "published",
            Way::Right => "right",
            Way::Tools => "tools",
        }
    }

    /// The file with its plans or tools.
    pub fn file(self) -> &'static str {
        match self {
            Way::Published => "plan-published.toml",
            Way::Right => "plan-right.toml",
            Way::Tools => "tools.toml",
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Way, String> {
        let found = Way::ALL.into_iter().find(|way| way.name() == text);
        found.ok_or_else(|| format!("unknown way {text:?}: type published, right or tools"))
    }
}
