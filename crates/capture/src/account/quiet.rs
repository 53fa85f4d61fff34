//! Pauses of a connection. Whether a whole host was quiet depends on its other connections, so
//! the times of the first pauses are kept.

use serde::{Deserialize, Serialize};
use weigh_model::modelled::Pauses;

/// The pauses of a connection that are long enough to be noted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiet {
    /// Begin and end of the first [`PLACED_MAX`], nanoseconds since 1970.
    pub placed: Vec<(u64, u64)>,
    /// Sum of the later ones, which are rare: only long connections have them.
    pub rest: Pauses,
}

impl Quiet {
    /// Notes a pause between two packets.
    pub(crate) fn note(&mut self, from_ns: u64, to_ns: u64) {
        let length_ns = to_ns.saturating_sub(from_ns);
        if length_ns < Pauses::SHORTEST_NS {
            return;
        }
        if self.placed.len() < PLACED_MAX {
            self.placed.push((from_ns, to_ns));
        } else {
            self.rest.note(length_ns);
        }
    }
}

/// More than a short session has, on the worst of paths.
const PLACED_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_pauses_are_noted_and_only_the_first_keep_their_places() {
        let mut quiet = Quiet::default();
        quiet.note(0, Pauses::SHORTEST_NS - 1);
        (0..PLACED_MAX as u64 + 2)
            .for_each(|n| quiet.note(n * 1_000_000_000, (n + 1) * 1_000_000_000));
        assert_eq!(quiet.placed.len(), PLACED_MAX);
        assert_eq!(quiet.rest.longer_than(0.5), (2.0, 2.0));
    }
}
