//! The link between two hosts: delay and its jitter, loss, duplication, reordering, rate and queue,
//! each direction separately, and how they change over time. Presets are files of `paths/`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::units::Nanos;

mod check;
mod number;
mod parts;
mod preset;
mod quantity;
mod words;

pub use number::{NUMBERS, WHOLE};
pub use number::{parse_jitter, parse_loss, parse_reorder, parse_steps};
pub use parts::Path;
pub use parts::{Change, Direction, GilbertElliott, Jitter, Loss, Reorder, Step, Way};
pub use preset::{PRESETS, preset};
pub use quantity::{BitRate, Share, parse_bit_rate, parse_share};

/// A path file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {error}")]
pub struct PathError {
    /// The file's name.
    pub file: String,
    /// The error, its place, and what to type instead.
    pub error: String,
}

impl Path {
    /// Reads a path from the text of a file.
    ///
    /// # Errors
    /// With line and column if it cannot be read, with the key if numbers contradict.
    pub fn parse(file: &str, text: &str) -> Result<Path, PathError> {
        let told = |error: String| PathError { file: file.to_owned(), error };
        let read: File =
            toml::from_str(text).map_err(|error| told(error.to_string().trim_end().to_owned()))?;
        let path = Path {
            name: read.name,
            title: read.title,
            about: read.about,
            mtu: read.mtu,
            link: read.link,
            up: Direction::free().with(&read.up),
            down: Direction::free().with(&read.down),
            steps: read.steps,
            sources: read.sources,
        };
        check::link(&path, &read.up, &read.down).map_err(told)?;
        check::check(&path, &read.up, &read.down).map_err(told)?;
        Ok(path)
    }

    /// The direction over time: moments since the beginning, and what holds from each; the first is
    /// 0.
    pub fn over_time(&self, way: Way) -> Vec<(Nanos, Direction)> {
        let first = match way {
            Way::Up => &self.up,
            Way::Down => &self.down,
        };
        let mut all = vec![(Nanos(0), first.clone())];
        for step in &self.steps {
            let change = match way {
                Way::Up => &step.up,
                Way::Down => &step.down,
            };
            let before = &all[all.len() - 1].1;
            if *change != Change::default() {
                all.push((step.at, before.with(change)));
            }
        }
        all
    }

    /// True if it never changes any packet.
    pub fn is_free(&self) -> bool {
        [Way::Up, Way::Down]
            .into_iter()
            .all(|way| self.over_time(way).iter().all(|(_, direction)| direction.is_free()))
    }
}

/// A path file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    about: String,
    mtu: u16,
    #[serde(default)]
    link: Option<String>,
    #[serde(default)]
    up: Change,
    #[serde(default)]
    down: Change,
    #[serde(default, rename = "step")]
    steps: Vec<Step>,
    #[serde(default)]
    sources: BTreeMap<String, String>,
}

/// The name of a path whose numbers the plan gives.
const GIVEN: &str = "own";

#[cfg(test)]
mod tests;
