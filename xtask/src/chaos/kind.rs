//! The commands that are hit: their words, how they are resumed, and how many trials they have.

use std::time::Duration;

use super::place::Place;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Compare,
    Run,
    Limit,
    Study,
    /// A comparison that is watched.
    Watch,
    /// A comparison whose load two agents make.
    Fleet,
}

impl Kind {
    pub(super) const ALL: [Kind; 6] =
        [Kind::Compare, Kind::Run, Kind::Limit, Kind::Study, Kind::Watch, Kind::Fleet];

    /// One of ten, by a number: those with more processes are tried more often.
    pub(super) fn chosen(number: u64) -> Kind {
        match number {
            0 => Kind::Compare,
            1 => Kind::Run,
            2 | 3 => Kind::Limit,
            4 | 5 => Kind::Study,
            6 | 7 => Kind::Watch,
            _ => Kind::Fleet,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Compare => "compare",
            Kind::Run => "run",
            Kind::Limit => "limit",
            Kind::Study => "study",
            Kind::Watch => "watch",
            Kind::Fleet => "fleet",
        }
    }

    /// The words of the first call.
    pub(super) fn words(self) -> &'static [&'static str] {
        match self {
            Kind::Compare | Kind::Watch | Kind::Fleet => &COMPARE,
            Kind::Run => &["run", "plan.toml"],
            Kind::Limit => &["limit", "tcp", "--preset", "quick", "--budget", "8s"],
            Kind::Study => &["study", "run", "tiny", "--data", "data", "--only", "E1", "--quiet"],
        }
    }

    /// The words that resume it; `None` for a search, which begins anew.
    pub(super) fn resume(self) -> Option<&'static [&'static str]> {
        match self {
            Kind::Limit => None,
            Kind::Study => Some(&["study", "run", "--resume", "latest"]),
            Kind::Compare | Kind::Run | Kind::Watch | Kind::Fleet => {
                Some(&["run", "--resume", "latest"])
            }
        }
    }

    /// Trials of the whole.
    pub(super) fn trials(self) -> usize {
        match self {
            // Twelve as published, five as they should be measured.
            Kind::Study => 17,
            _ => TRIALS,
        }
    }

    /// Longest time for the command to end after the signal. Each attempt at a trial waits some
    /// 11 s for an agent that was killed, and each of six trials has three.
    pub(super) fn patience(self) -> Duration {
        Duration::from_secs(if self == Kind::Fleet { 240 } else { 90 })
    }

    /// Names of the processes that may be hit besides the program, as parts of their words.
    pub(super) fn others(self) -> &'static [&'static str] {
        match self {
            Kind::Watch => &[" watch ", " serve "],
            Kind::Fleet => &[" agent ", "nats-server", " fleet up", " serve "],
            _ => &[" serve "],
        }
    }

    /// What must be there before the program starts.
    pub(super) fn prepare(self, place: &Place) -> anyhow::Result<()> {
        match self {
            Kind::Run => {
                let words = [&COMPARE[..], &["--dry", "--save-plan", "plan.toml"]].concat();
                place.weigh(&words).status()?;
            }
            Kind::Study => {
                let to = place.folder.join("data/studies/tiny");
                std::fs::create_dir_all(&to)?;
                for (name, text) in STUDY {
                    std::fs::write(to.join(name), text)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Two cases with three repetitions, 0.4 s each.
pub(super) const COMPARE: [&str; 17] = compare("300ms", "100ms");

/// Two cases with three repetitions of this duration and warm-up.
pub(super) const fn compare(duration: &'static str, warmup: &'static str) -> [&'static str; 17] {
    [
        "compare",
        "tcp",
        "mqtt",
        "-q",
        "1",
        "--pattern",
        "publish",
        "-R",
        "500/s",
        "-d",
        duration,
        "-c",
        "4",
        "--reps",
        "3",
        "--warmup",
        warmup,
    ]
}

/// Trials of [`COMPARE`].
pub(super) const TRIALS: usize = 6;

/// The study of the tests.
const STUDY: [(&str, &str); 5] = [
    ("study.toml", include_str!("../../../tests/cli/tiny-study/study.toml")),
    ("plan-published.toml", include_str!("../../../tests/cli/tiny-study/plan-published.toml")),
    ("plan-right.toml", include_str!("../../../tests/cli/tiny-study/plan-right.toml")),
    ("published.csv", include_str!("../../../tests/cli/tiny-study/published.csv")),
    ("README.md", include_str!("../../../tests/cli/tiny-study/README.md")),
];
