//! The broker's own count of messages by identity. Trials differ in their tag, and a broker may
//! outlive a trial, so each tag has a tally of its own.

use std::collections::HashMap;

use weigh_model::mark::{Mark, Reading};
use weigh_model::server::ServerReport;
use weigh_model::tally::Tally;

/// Counts messages as they come in.
#[derive(Debug, Default)]
pub(super) struct Census {
    by_tag: HashMap<u16, Tally>,
    /// Messages whose tag cannot be read.
    unmarked: Tally,
}

impl Census {
    /// Counts a message with this body.
    pub(super) fn note(&mut self, body: &[u8]) {
        let reading = match Mark::read_any(body) {
            Reading::Whole(mark) | Reading::Corrupt(Some(mark)) if !is_plausible(&mark) => {
                Reading::Foreign
            }
            reading => reading,
        };
        let tally = match reading {
            Reading::Whole(mark) | Reading::Corrupt(Some(mark)) => {
                self.by_tag.entry(mark.tag).or_default()
            }
            Reading::Corrupt(None) | Reading::Foreign => &mut self.unmarked,
        };
        tally.note(reading, false);
    }

    /// Adds the count to `report`.
    pub(super) fn add_to(&self, report: &mut ServerReport) {
        for tally in self.by_tag.values().chain([&self.unmarked]) {
            report.received += tally.received + tally.warmup;
            report.unique += tally.unique();
            report.duplicates += tally.duplicates;
            report.corrupt += tally.corrupt;
            report.foreign += tally.foreign;
            report.warmup += tally.warmup;
        }
    }
}

/// A tally grows with the numbers it sees; a mark with numbers that no trial reaches is not
/// ours, and must not make it grow.
fn is_plausible(mark: &Mark) -> bool {
    mark.producer < 1 << 20 && mark.sequence < 1 << 32
}
